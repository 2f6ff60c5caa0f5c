"""The contract kit for classes in notebook cells, without a test file."""

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

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.engine.tasks.call_frames import own_frame
from rowmerge_nb.testing.contract.differences import RowsDiffer

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from traceback import FrameSummary

    import pandas as pd


MODULES: Final = (
    "reading_checks",
    "changing",
    "layouts",
    "transactions",
    "failures",
    "version_checks",
    "older_flow_checks",
    "on_spark",
)
"""The modules of checks, the simplest first."""
_MOST_LINES: Final = 6
"""The maximum number of lines shown of a check's message."""


@dataclass(frozen=True)
class CodeLine:
    """A line of a connector's own code."""

    file: str
    line: int
    function: str
    code: str

    @classmethod
    def of(cls, frame: FrameSummary | None) -> CodeLine | None:
        """Return the place of a frame."""
        return (
            None
            if frame is None
            else cls(frame.filename, frame.lineno or 0, frame.name, frame.line or "")
        )

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}, in {self.function}: {self.code}"


@dataclass(frozen=True)
class ContractCheck:
    """One check and its outcome: ``passed``, ``failed`` or ``skipped``.

    Args:
        sentence: what it proves.
        differ: the wrong rows, if any.
        again: the value of ``only`` of `check_contract` that reruns it.
        details: the full report of a failure.
    """

    sentence: str
    way: str
    outcome: str
    message: str = ""
    place: CodeLine | None = None
    differ: RowsDiffer | None = None
    again: str = ""
    details: str = ""

    @property
    def cause(self) -> object:
        """What failures by one bug have in common."""
        return self.place or (self.differ.kind if self.differ is not None else self.message)

    @property
    def title(self) -> str:
        """The check and its parameters."""
        return f"{self.sentence} [{self.way}]" if self.way else self.sentence


@dataclass(frozen=True)
class Reason:
    """Failed checks with one cause: the simplest of them, and their number."""

    first: ContractCheck
    count: int

    @property
    def title(self) -> str:
        """The simplest check, and the number of others."""
        return self.first.title + (
            f" (and {plural(self.count - 1, 'more check')})" if self.count > 1 else ""
        )

    @property
    def lines(self) -> list[str]:
        """The first lines of the message."""
        lines = self.first.message.split("\n")
        first_lines = lines[:_MOST_LINES]
        more = (
            [f"and {plural(len(lines) - len(first_lines), 'more line')}"]
            if len(lines) > len(first_lines)
            else []
        )
        return [*first_lines, *more]


@dataclass(frozen=True)
class Checked:
    """All checks of a connector; displays the failed ones."""

    name: str
    checks: tuple[ContractCheck, ...]

    @property
    def failed(self) -> tuple[ContractCheck, ...]:
        """The failed checks, the simplest first."""
        return tuple(check for check in self.checks if check.outcome == "failed")

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The causes of failures, in the order of their simplest checks."""
        count = Counter(check.cause for check in self.failed)
        first = {check.cause: check for check in reversed(self.failed)}
        return tuple(Reason(first[cause], count[cause]) for cause in count)

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per check as a pandas DataFrame."""
        import pandas as pd

        fields = ("sentence", "way", "outcome", "message", "place", "again", "details")
        return pd.DataFrame(
            [{name: getattr(check, name) for name in fields} for check in self.checks],
            columns=list(fields),
        )

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        count = Counter(check.outcome for check in self.checks)
        successes, failures, skips = (count[outcome] for outcome in ("passed", "failed", "skipped"))
        causes = f" for {plural(len(self.reasons), 'reason')}" if failures > 1 else ""
        return (
            f"{self.name}: {plural(successes, 'check')} passed, {number(failures)} failed{causes},"
            f" {number(skips)} skipped"
        )

    def again(self, reason: Reason) -> str:
        """Return the line that reruns the simplest check of a reason."""
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
        return {
            "text/plain": text,
            "text/html": render_parts("contract.html.j2", {"checked": self}, text, text),
        }


@dataclass
class _Collector:
    spark: bool
    one: str
    numbered_checks: list[tuple[tuple[int, int, int], ContractCheck]] = field(default_factory=list)

    @property
    def checks(self) -> tuple[ContractCheck, ...]:
        return tuple(check for _, check in sorted(self.numbered_checks, key=lambda one: one[0]))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if not self.spark:
            items[:] = [item for item in items if "spark" not in getattr(item, "fixturenames", ())]
        if self.one:
            items[:] = [item for item in items if item.name == self.one]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, Any, None]:
        report = (yield).get_result()
        if call.when != "call" and report.passed:
            return
        name, _, way = item.name.partition("[")
        raised = call.excinfo if report.failed else None
        message, position, differ = "", None, None
        if report.skipped and isinstance(report.longrepr, tuple):
            message = str(report.longrepr[2]).removeprefix("Skipped: ")
        elif raised is not None:
            error = raised.value
            position = CodeLine.of(own_frame(error))
            text = (
                str(error)
                if isinstance(error, AssertionError)
                else f"{type(error).__name__}: {error}"
            )
            message = text.partition("\nassert ")[0]
            differ = error if isinstance(error, RowsDiffer) else None
        outcome = "failed" if report.failed else report.outcome
        sentence = name.removeprefix("test_").replace("_", " ")
        details = report.longreprtext if report.failed else ""
        check = ContractCheck(
            sentence, way.rstrip("]"), outcome, message, position, differ, item.name, details
        )
        self.numbered_checks.append(((*_simplicity(item), len(self.numbered_checks)), check))


def _simplicity(item: pytest.Item) -> tuple[int, int]:
    function = getattr(item, "function", None)
    module = getattr(function, "__module__", "").rpartition(".")[2]
    line = function.__code__.co_firstlineno if function is not None else 0
    return (MODULES.index(module) if module in MODULES else len(MODULES), line)


def _no_breakpoint(*_: Any, **__: Any) -> None:
    raise AssertionError(
        "breakpoint() was called, but the kit has no keyboard: run the check alone"
        " with pytest -s, or feed the sink with rowmerge_nb.replay"
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
"""The class being checked, for the file that pytest collects."""


def check_contract(contract: type[Any], *, spark: bool = False, only: str = "") -> Checked:
    """Run the contract kit on a connector.

    Args:
        contract: a subclass of `ConnectorContract`, of any name.
        spark: run the checks on Spark too.
        only: a filter as for pytest's ``-k``, or the full name of a check.

    Raises:
        RowMergeError: INVALID_ARGUMENTS for another class, and if no check ran; the message has
            pytest's output.
    """
    from rowmerge_nb.testing.contract.store_under_test import ContractStore

    checked(
        contract,
        "contract",
        lambda value: isinstance(value, type) and issubclass(value, ContractStore),
        "a subclass of ConnectorContract with the method make_connector(self, folder)",
    )
    # The full name of a check, which -k does not support.
    is_name = "[" in only
    collector, printed = _Collector(spark or is_name, only if is_name else ""), io.StringIO()
    name = contract.__name__ if contract.__name__.startswith("Test") else f"Test{contract.__name__}"
    CONTRACTS.clear()
    CONTRACTS[name] = contract
    with tempfile.TemporaryDirectory(prefix="rowmerge_nb-contract-") as folder:
        # A new name each time: Python would not reload a module of a known name.
        file = Path(folder) / f"test_contract_{next(_numbers)}.py"
        file.write_text(
            "from rowmerge_nb.testing.contract.notebook import"
            " CONTRACTS\nglobals().update(CONTRACTS)\n"
        )
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
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
            _hook_of_breakpoints(_no_breakpoint),
        ):
            pytest.main(
                [*options, *(["-k", only] if only and not is_name else []), str(file)],
                plugins=[collector],
            )
    if not collector.checks:
        raise RowMergeError.invalid(
            f"No check of {contract.__name__} was run. Output of pytest:"
            f" {' '.join(printed.getvalue().split())[-400:]}",
            hint="Omit 'only', or pass a subclass of ConnectorContract.",
        )
    return Checked(contract.__name__, collector.checks)
