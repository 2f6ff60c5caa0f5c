"""The contract kit without a test file: a class of a notebook cell is checked where it is."""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.engine.tasks.call_frames import own_frame
from rowmerge_nb.testing.contract.differences import RowsDiffer

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from traceback import FrameSummary

    import pandas as pd

    from rowmerge_nb.testing.contract.store_under_test import ContractStore

MODULES: Final = (
    "reading",
    "changing",
    "layouts",
    "transactions",
    "failures",
    "versions",
    "updatable",
    "on_spark",
)
"""Where checks are, the simplest first."""
_MOST_LINES: Final = 6
"""So many lines are shown of what one check has to say."""


@dataclass(frozen=True)
class Place:
    """A line of a connector's own code.

    Args:
        file: the file, or the cell as Python calls it.
        line: its number, from 1.
        function: what it is in.
        code: the line itself.
    """

    file: str
    line: int
    function: str
    code: str

    @classmethod
    def of(cls, frame: FrameSummary | None) -> Place | None:
        """Return the place of a frame."""
        return None if frame is None else cls(frame.filename, frame.lineno or 0, frame.name, frame.line or "")

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}, in {self.function}: {self.code}"


@dataclass(frozen=True)
class Check:
    """One check and how it ended.

    Args:
        sentence: what it proves.
        way: what it was run for: layout, era, paradigm, type, step.
        outcome: ``passed``, ``failed`` or ``skipped``.
        message: why it failed or was skipped, in a few lines.
        place: the line of the connector's code that raised; None where none did.
        differ: the rows that are wrong, if that is what failed.
        again: what runs this check alone, as ``only`` of `check_contract`.
        details: the whole story of a failure.
    """

    sentence: str
    way: str
    outcome: str
    message: str = ""
    place: Place | None = None
    differ: RowsDiffer | None = None
    again: str = ""
    details: str = ""

    @property
    def cause(self) -> object:
        """What failures have in common that one bug makes."""
        return self.place or (self.differ.kind if self.differ is not None else self.message)

    @property
    def title(self) -> str:
        """What was checked, and for what."""
        return f"{self.sentence} [{self.way}]" if self.way else self.sentence


@dataclass(frozen=True)
class Reason:
    """Failed checks that have one cause.

    Args:
        first: the simplest of them.
        count: how many there are.
    """

    first: Check
    count: int

    @property
    def title(self) -> str:
        """The simplest check, and how many more failed for this."""
        return self.first.title + (f" (and {plural(self.count - 1, 'more check')})" if self.count > 1 else "")

    @property
    def lines(self) -> list[str]:
        """What went wrong, the cause first."""
        lines = self.first.message.split("\n")
        shown = lines[:_MOST_LINES]
        more = [f"and {plural(len(lines) - len(shown), 'more line')}"] if len(lines) > len(shown) else []
        return [*shown, *more]


@dataclass(frozen=True)
class Checked:
    """All checks of a connector; it shows itself: what failed, the simplest check of each cause first."""

    name: str
    checks: tuple[Check, ...]

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed, the simplest first."""
        return tuple(check for check in self.checks if check.outcome == "failed")

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The causes of failures, that of the simplest check first."""
        count = Counter(check.cause for check in self.failed)
        first = {check.cause: check for check in reversed(self.failed)}
        return tuple(Reason(first[cause], count[cause]) for cause in count)

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per check as a pandas DataFrame."""
        import pandas as pd

        shown = ("sentence", "way", "outcome", "message", "place", "again", "details")
        return pd.DataFrame([{name: getattr(check, name) for name in shown} for check in self.checks], columns=list(shown))

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        count = Counter(check.outcome for check in self.checks)
        passed, failed, skipped = (count[outcome] for outcome in ("passed", "failed", "skipped"))
        causes = f" for {plural(len(self.reasons), 'reason')}" if failed > 1 else ""
        return f"{self.name}: {plural(passed, 'check')} passed, {number(failed)} failed{causes}, {number(skipped)} skipped"

    def again(self, reason: Reason) -> str:
        """Return the line that runs the simplest check of a reason alone."""
        return f'check_contract({self.name}, only="{reason.first.again}")'

    def __str__(self) -> str:
        lines = [self.sentence]
        for reason in self.reasons:
            lines += [f"FAILED {reason.title}", *(f"    {line}" for line in reason.lines)]
            lines += [f"    at {reason.first.place}"] if reason.first.place is not None else []
            lines += [f"    again: {self.again(reason)}"]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        from rowmerge_nb.report.html import render_parts

        text = str(self)
        return {"text/plain": text, "text/html": render_parts("contract.html.j2", {"checked": self}, text, text)}


@dataclass
class _Collector:
    """Hands the class to pytest, and takes what comes out."""

    spark: bool
    one: str
    found: list[tuple[tuple[int, int, int], Check]] = field(default_factory=list)

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks, the simplest first."""
        return tuple(check for _, check in sorted(self.found, key=lambda one: one[0]))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out what needs Spark, unless it is wanted, and all others where one check is named."""
        if not self.spark:
            items[:] = [item for item in items if "spark" not in getattr(item, "fixturenames", ())]
        if self.one:
            items[:] = [item for item in items if item.name == self.one]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        """Take the outcome of a check, and what it raised."""
        report = (yield).get_result()
        if call.when != "call" and report.passed:
            return
        name, _, way = item.name.partition("[")
        raised = call.excinfo if report.failed else None
        message, place, differ = "", None, None
        if report.skipped and isinstance(report.longrepr, tuple):
            message = str(report.longrepr[2]).removeprefix("Skipped: ")
        elif raised is not None:
            error = raised.value
            place = Place.of(own_frame(error))
            told = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
            message = told.partition("\nassert ")[0]
            differ = error if isinstance(error, RowsDiffer) else None
        outcome = "failed" if report.failed else report.outcome
        sentence = name.removeprefix("test_").replace("_", " ")
        details = report.longreprtext if report.failed else ""
        check = Check(sentence, way.rstrip("]"), outcome, message, place, differ, item.name, details)
        self.found.append(((*_simplicity(item), len(self.found)), check))


def _simplicity(item: pytest.Item) -> tuple[int, int]:
    """Return how simple a check is: the modules stand from the simplest to the rest, and so do the checks within."""
    function = getattr(item, "function", None)
    module = getattr(function, "__module__", "").rpartition(".")[2]
    line = function.__code__.co_firstlineno if function is not None else 0
    return (MODULES.index(module) if module in MODULES else len(MODULES), line)


def _no_breakpoint(*_: Any, **__: Any) -> None:
    raise AssertionError(
        "breakpoint() is called, and the kit has no keyboard: run the check alone by pytest -s, or feed the sink by rowmerge_nb.replay"
    )


@contextlib.contextmanager
def _hook_of_breakpoints(hook: Any) -> Iterator[None]:
    before, sys.breakpointhook = sys.breakpointhook, hook
    try:
        yield
    finally:
        sys.breakpointhook = before


_numbers = itertools.count(1)
CONTRACTS: dict[str, type[Any]] = {}
"""The class that is being checked, for the file that pytest collects."""


def check_contract(contract: type[ContractStore], *, spark: bool = False, only: str = "") -> Checked:
    """Run the contract kit on a connector.

    Args:
        contract: a subclass of `ConnectorContract`, of any name.
        spark: run the checks on Spark too; they take some seconds.
        only: words of the checks to run, as pytest's ``-k`` takes them, or the name of one as a failure gives it; all of them by default.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if no check was run; the message has what pytest says.
    """
    # A name as a failure gives it, which pytest's -k does not take.
    is_name = "[" in only
    collector, printed = _Collector(spark or is_name, only if is_name else ""), io.StringIO()
    name = contract.__name__ if contract.__name__.startswith("Test") else f"Test{contract.__name__}"
    CONTRACTS.clear()
    CONTRACTS[name] = contract
    with tempfile.TemporaryDirectory(prefix="rowmerge_nb-contract-") as folder:
        # Another name every time: a module of a name that is known is not read again.
        file = Path(folder) / f"test_contract_{next(_numbers)}.py"
        file.write_text("from rowmerge_nb.testing.contract.notebook import CONTRACTS\nglobals().update(CONTRACTS)\n")
        (Path(folder) / "pytest.ini").write_text("[pytest]\n")
        options = [
            "-q",
            "--tb=native",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:debugging",
            "--import-mode=importlib",
            f"--rootdir={folder}",
        ]
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), _hook_of_breakpoints(_no_breakpoint):
            pytest.main([*options, *(["-k", only] if only and not is_name else []), str(file)], plugins=[collector])
    if not collector.checks:
        raise RowMergeError(
            f"No check of {contract.__name__} was run. pytest says: {' '.join(printed.getvalue().split())[-400:]}",
            code="INVALID_ARGUMENTS",
            hint="Leave 'only' out, or give a subclass of ConnectorContract.",
        )
    return Checked(contract.__name__, collector.checks)
