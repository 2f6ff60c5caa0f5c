"""The contract kit without a test file: a class of a notebook cell is checked where it is."""

from __future__ import annotations

import contextlib
import io
import itertools
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowmerge_nb.errors import RowMergeError

if TYPE_CHECKING:
    import pandas as pd

    from rowmerge_nb.testing.contract.store import ContractStore

__all__ = ["Checked", "check_contract"]


@dataclass(frozen=True)
class Check:
    """One check and how it ended.

    Args:
        sentence: what it proves.
        way: what it was run for: layout, era, paradigm, type, step.
        outcome: ``passed``, ``failed`` or ``skipped``.
        message: why it failed or was skipped, in a line.
        details: the whole story of a failure.
    """

    sentence: str
    way: str
    outcome: str
    message: str = ""
    details: str = ""


@dataclass(frozen=True)
class Checked:
    """All checks of a connector; ``str()`` of it says what failed."""

    name: str
    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.outcome == "failed")

    def to_pandas(self) -> pd.DataFrame:
        """Give a row per check as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame([vars(check) for check in self.checks])

    def __str__(self) -> str:
        count = {outcome: sum(c.outcome == outcome for c in self.checks) for outcome in ("passed", "failed", "skipped")}
        lines = [f"{self.name}: {count['passed']} checks passed, {count['failed']} failed, {count['skipped']} skipped"]
        for check in self.failed:
            lines += [f"FAILED {check.sentence}{f' [{check.way}]' if check.way else ''}", f"    {check.message}"]
        return "\n".join(lines)

    __repr__ = __str__


@dataclass
class _Collector:
    """Hands the class to pytest, and takes the reports."""

    spark: bool
    checks: list[Check] = field(default_factory=list)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what needs Spark, unless it is wanted."""
        if not self.spark:
            items[:] = [item for item in items if "spark" not in getattr(item, "fixturenames", ())]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the outcome of a check."""
        if report.when != "call" and report.passed:
            return
        name, _, way = report.nodeid.rpartition("::")[2].partition("[")
        sentence = name.removeprefix("test_").replace("_", " ")
        message = ""
        if report.skipped and isinstance(report.longrepr, tuple):
            message = str(report.longrepr[2]).removeprefix("Skipped: ")
        elif report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            message = (crash.message if crash is not None else str(report.longrepr)).split("\n")[0]
        outcome = "failed" if report.failed else report.outcome
        self.checks.append(Check(sentence, way.rstrip("]"), outcome, message, report.longreprtext if report.failed else ""))


_numbers = itertools.count(1)
CONTRACTS: dict[str, type[Any]] = {}
"""The class that is being checked, for the file that pytest collects."""


def check_contract(contract: type[ContractStore], *, spark: bool = False, only: str = "") -> Checked:
    """Run the contract kit on a connector.

    Args:
        contract: a subclass of `ConnectorContract`, of any name.
        spark: run the checks on Spark too; they take some seconds.
        only: words of the checks to run, as pytest's ``-k`` takes them; all of them by default.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if no check was run; the message has what pytest says.
    """
    collector, printed = _Collector(spark), io.StringIO()
    name = contract.__name__ if contract.__name__.startswith("Test") else f"Test{contract.__name__}"
    CONTRACTS.clear()
    CONTRACTS[name] = contract
    with tempfile.TemporaryDirectory(prefix="rowmerge_nb-contract-") as folder:
        # Another name every time: a module of a name that is known is not read again.
        file = Path(folder) / f"test_contract_{next(_numbers)}.py"
        file.write_text("from rowmerge_nb.testing.contract.notebook import CONTRACTS\nglobals().update(CONTRACTS)\n")
        (Path(folder) / "pytest.ini").write_text("[pytest]\n")
        options = ["-q", "--tb=native", "-p", "no:cacheprovider", "--import-mode=importlib", f"--rootdir={folder}"]
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            pytest.main([*options, *(["-k", only] if only else []), str(file)], plugins=[collector])
    if not collector.checks:
        msg = f"No check of {contract.__name__} was run. pytest says: {' '.join(printed.getvalue().split())[-400:]}"
        raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint="Leave 'only' out, or give a subclass of ConnectorContract.")
    return Checked(contract.__name__, tuple(collector.checks))
