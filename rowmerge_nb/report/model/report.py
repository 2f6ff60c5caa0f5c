"""The content of a report: the one source of all numbers for every renderer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import ROW_CHANGES, StatementState
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.base.words import code
from rowmerge_nb.report.model.absences import absence_of
from rowmerge_nb.report.model.changed_rows import Diff, Stored, build_diff, build_stored
from rowmerge_nb.report.model.check import ShownCheck, build_check
from rowmerge_nb.report.model.clauses import ClauseTable, build_clauses
from rowmerge_nb.report.model.failures import Failure, build_failure
from rowmerge_nb.report.model.journeys import Journeys, build_journeys
from rowmerge_nb.report.model.near_notice import NearNotice, build_near
from rowmerge_nb.report.model.outcome import Outcome, build_outcome
from rowmerge_nb.report.model.pages import Pages, build_pages
from rowmerge_nb.report.model.plan import Plan, build_plan
from rowmerge_nb.report.model.spi_calls import Calls, build_calls
from rowmerge_nb.report.model.terms import TermDefinitions, build_terms
from rowmerge_nb.report.model.unknown_conditions import unknown_sentences
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.trace.verdicts import EngineVerdict, verdicts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rowmerge_nb.trace.trace import Trace

PARTS: Final = (
    "outcome",
    "check",
    "diff",
    "clauses",
    "journeys",
    "near",
    "plan",
    "pages",
    "stored",
    "calls",
    "words",
    "verdicts",
)
"""The parts of a report, in order.

``outcome`` is always shown, ``verdicts`` only on request. ``journeys`` is also shown by default if
it covers all rows. ``near`` and ``check`` are warnings: any choice of parts shows them if they have
content.
"""
PRESETS: Final = {
    "short": ("outcome", "check", "diff"),
    "rows": ("outcome", "check", "diff", "clauses", "journeys"),
    "learn": ("check", "clauses", "plan", "pages", "journeys", "near", "diff", "words"),
    "connector": ("check", "pages", "stored", "calls"),
    "all": PARTS,
}
"""Names for sets of parts: the changed rows, what became of each row, a MERGE explained, the calls
of a connector, and everything.
"""


JOURNEYS_BY_NAME: Final = (
    f"Row journeys are not shown for this many rows; {code('--show journeys')} shows"
    " the first ones."
)


@dataclass(frozen=True)
class ShownNotice:
    """A message to the user; the line is within the statement."""

    message: str
    line: int | None


@dataclass(frozen=True, kw_only=True)
class Report:
    """All parts of a report; a part without content is None, and ``absences`` has a sentence about
    it.
    """

    statement: str
    kind: str
    state: StatementState
    outcome: Outcome
    notices: tuple[ShownNotice, ...]
    failure: Failure | None
    check: ShownCheck | None
    clauses: ClauseTable | None
    plan: Plan | None
    pages: Pages | None
    stored: Stored | None
    calls: Calls | None
    diff: Diff | None
    journeys: Journeys | None
    near: NearNotice | None
    words: TermDefinitions | None
    verdicts: tuple[EngineVerdict, ...] | None
    absences: Mapping[str, str]
    timings: tuple[tuple[str, float], ...]


def build_report(trace: Trace, other: Trace | None = None) -> Report:
    """Build the report of a trace; ``other`` is a trace under the other row change paradigm.

    >>> from rowmerge_nb.trace.target_record import TargetRecord
    >>> from rowmerge_nb.trace.trace import Trace
    >>> trace = Trace(statement="DROP TABLE t", kind="DROP TABLE", state="finished", target=TargetRecord(name="t"))
    >>> report = build_report(trace)
    >>> "".join(run.text for run in report.outcome.sentence), report.plan
    ('Table t dropped.', None)
    """
    pages = build_pages(trace, other)
    report = Report(
        statement="\n".join(
            visible(line) for line in trace.statement.replace("\r", "").expandtabs(4).split("\n")
        ),
        kind=trace.kind,
        state=trace.state,
        outcome=build_outcome(trace),
        notices=notices_of(trace),
        failure=build_failure(trace) if trace.error is not None else None,
        check=build_check(trace),
        clauses=build_clauses(trace),
        plan=build_plan(trace),
        pages=pages,
        stored=build_stored(trace, pages),
        calls=build_calls(trace),
        diff=build_diff(trace, pages),
        journeys=build_journeys(trace),
        near=build_near(trace),
        words=build_terms(trace),
        verdicts=verdicts_of(trace),
        absences={},
        timings=tuple(trace.seconds.items()),
    )
    absent = [part for part in PARTS if part != "outcome" and getattr(report, part) is None]
    return replace(report, absences={part: absence_of(trace, part) for part in absent})


def notices_of(trace: Trace) -> tuple[ShownNotice, ...]:
    notices = [ShownNotice(visible(notice.message), notice.line) for notice in trace.notices]
    if unknown := unknown_sentences(trace):
        notices.append(ShownNotice(unknown, None))
    if trace.checks.commit is not None and trace.checks.commit.state != "differs":
        notices.append(ShownNotice(visible(trace.checks.commit.message), None))
    if trace.checks.verification is not None:
        notices.append(ShownNotice(visible(trace.checks.verification.message), None))
    return tuple(notices)


def parts_to_show(report: Report, show: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of the existing parts to show, in the report's order.

    ``show`` has names of parts or of `PRESETS`, also as one string with commas.
    """
    selected = set(PARTS) - {"verdicts"}
    if report.journeys is not None and not report.journeys.by_themselves:
        selected.remove("journeys")
    if show is not None:
        names = [name.strip() for name in show.split(",")] if isinstance(show, str) else list(show)
        selected = {
            "outcome",
            "check",
            "near",
            *(part for name in names if name for part in PRESETS.get(name, (name,))),
        }
        if unknown := sorted(selected - set(PARTS)):
            choices = (
                f"its parts are {', '.join(PARTS)}, and {', '.join(PRESETS)} are some of them"
                " together"
            )
            raise ValueError(f"A report has no part {', '.join(map(repr, unknown))}; {choices}")
    elif report.state == StatementState.FAILED:
        # The plan and the channels do not explain the failure.
        selected -= {"clauses", "plan", "pages"}
    elif report.state == StatementState.FINISHED and report.kind not in ROW_CHANGES:
        # One sentence is enough for a CREATE or INSERT that prepares another statement, unless the
        # check fails.
        selected = {"outcome", "check"}
    return tuple(
        name
        for name in PARTS
        if name in selected and (name == "outcome" or getattr(report, name) is not None)
    )


def part_hint(name: str) -> str:
    """Return the next step for a part that no report has.

    >>> part_hint("plans").partition("? ")[0]
    "Did you mean 'plan'"
    """
    if name == "sql":
        return (
            "Spark runs the nodes of the plan, not one statement for its shell: the"
            " part plan shows them. docs/functions.md has Spark's form of each function."
        )
    parts = f"The parts are: {', '.join(PARTS)}; {', '.join(PRESETS)} are some of them together."
    return " ".join(filter(None, [did_you_mean(name, [*PARTS, *PRESETS]), parts]))


def missing_parts(report: Report, show: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return a sentence for each requested part that does not exist, and for hidden journeys."""
    if show is not None:
        names = [name.strip() for name in show.split(",")] if isinstance(show, str) else list(show)
        return tuple(
            report.absences[name] for name in dict.fromkeys(names) if name in report.absences
        )
    if report.state != StatementState.FINISHED or report.kind not in ROW_CHANGES:
        return ()
    if report.journeys is None:
        return (report.absences["journeys"],)
    return () if report.journeys.by_themselves else (JOURNEYS_BY_NAME,)
