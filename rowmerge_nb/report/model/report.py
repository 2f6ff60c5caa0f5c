"""What a report shows, without markup: the one source of all numbers for every renderer.

`build_report` looks at a trace and decides; text, HTML and drawings only give form to what it found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import ROW_CHANGES, StatementState
from rowmerge_nb.base.words import code
from rowmerge_nb.report.model.absences import absence_of
from rowmerge_nb.report.model.changed_rows import Diff, Stored, build_diff, build_stored
from rowmerge_nb.report.model.check import Check, build_check
from rowmerge_nb.report.model.clauses import ClauseTable, build_clauses
from rowmerge_nb.report.model.failures import Failure, build_failure
from rowmerge_nb.report.model.journeys import Journeys, build_journeys
from rowmerge_nb.report.model.near_notice import Near, build_near
from rowmerge_nb.report.model.outcome import Outcome, build_outcome
from rowmerge_nb.report.model.pages import Pages, build_pages
from rowmerge_nb.report.model.plan import Plan, build_plan
from rowmerge_nb.report.model.spi_calls import Calls, build_calls
from rowmerge_nb.report.model.terms import Terms, build_terms
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.trace.verdicts import Verdict, verdicts_of

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
"""The parts of a report, in their order; ``outcome`` is always shown, ``verdicts`` only to those who ask, ``journeys`` also where they are those of all rows,
``near`` and ``check`` where they have something to say."""
PRESETS: Final = {
    "short": ("outcome", "check"),
    "learn": ("check", "clauses", "plan", "pages", "journeys", "near", "diff", "words"),
    "connector": ("check", "pages", "stored", "calls"),
}
"""Names for some parts together: for a glance, for those who learn what a MERGE does, for those who look for what a connector was told."""


JOURNEYS_BY_NAME: Final = f"Row journeys are not shown of so many rows; {code('--show journeys')} shows the first ones."


@dataclass(frozen=True)
class Notice:
    """Something the user should know; the line is within the statement."""

    message: str
    line: int | None


@dataclass(frozen=True, kw_only=True)
class Report:
    """All that is shown of a statement; a part is None where there is nothing to show.

    Args:
        statement: the statement's text.
        kind: its kind, and ``state`` what became of it, as in the trace.
        absences: per part that is None a sentence why, and what helps.
        timings: seconds per step, for those who ask for times.
    """

    statement: str
    kind: str
    state: StatementState
    outcome: Outcome
    notices: tuple[Notice, ...]
    failure: Failure | None
    check: Check | None
    clauses: ClauseTable | None
    plan: Plan | None
    pages: Pages | None
    stored: Stored | None
    calls: Calls | None
    diff: Diff | None
    journeys: Journeys | None
    near: Near | None
    words: Terms | None
    verdicts: tuple[Verdict, ...] | None
    absences: Mapping[str, str]
    timings: tuple[tuple[str, float], ...]


def build_report(trace: Trace, other: Trace | None = None) -> Report:
    """Decide what to show of a trace, and of what its rows would have become under the other row change paradigm, where that is known.

    >>> from rowmerge_nb.trace.trace import Trace
    >>> report = build_report(Trace(statement="DROP TABLE t", kind="DROP TABLE", state="finished", target="t"))
    >>> "".join(run.text for run in report.outcome.sentence), report.plan
    ('Table t dropped.', None)
    """
    pages = build_pages(trace, other)
    report = Report(
        statement="\n".join(visible(line) for line in trace.statement.replace("\r", "").expandtabs(4).split("\n")),
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


def notices_of(trace: Trace) -> tuple[Notice, ...]:
    """Return the notices, and what another engine said of the statement as the last of them."""
    told = [Notice(visible(notice.message), notice.line) for notice in trace.notices]
    if trace.check is not None and trace.check.state != "differs":
        told.append(Notice(visible(trace.check.message), None))
    if trace.verification is not None:
        told.append(Notice(visible(trace.verification.message), None))
    return tuple(told)


def parts_to_show(report: Report, show: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of the parts to show, in the report's order; those that do not exist are left out.

    Args:
        report: the report.
        show: names of parts or of `PRESETS`, or one string with commas; None for the usual ones.

    Raises:
        ValueError: a name is not that of a part; the message lists those there are.
    """
    wanted = set(PARTS) - {"verdicts"}
    if report.journeys is not None and not report.journeys.by_themselves:
        wanted.remove("journeys")
    if show is not None:
        names = [name.strip() for name in show.split(",")] if isinstance(show, str) else list(show)
        wanted = {"outcome", "check", *(part for name in names if name for part in PRESETS.get(name, (name,)))}
        if unknown := sorted(wanted - set(PARTS)):
            known = f"its parts are {', '.join(PARTS)}, and {', '.join(PRESETS)} are some of them together"
            raise ValueError(f"A report has no part {', '.join(map(repr, unknown))}; {known}")
    elif report.state == StatementState.FAILED:
        # The plan and the channels of a statement that failed are no answer to the question why.
        wanted -= {"clauses", "plan", "pages"}
    elif report.state == StatementState.FINISHED and report.kind not in ROW_CHANGES:
        # One sentence is what one wants of a CREATE or INSERT beside the statement that it prepares, unless the store holds something else.
        wanted = {"outcome", "check"}
    return tuple(name for name in PARTS if name in wanted and (name == "outcome" or getattr(report, name) is not None))


def missing_parts(report: Report, show: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return a sentence for each part that was asked for by its name and is not there, and for journeys that are not shown by themselves.

    Args:
        report: the report.
        show: as for `parts_to_show`.
    """
    if show is not None:
        names = [name.strip() for name in show.split(",")] if isinstance(show, str) else list(show)
        return tuple(report.absences[name] for name in dict.fromkeys(names) if name in report.absences)
    if report.state != StatementState.FINISHED or report.kind not in ROW_CHANGES:
        return ()
    if report.journeys is None:
        return (report.absences["journeys"],)
    return () if report.journeys.by_themselves else (JOURNEYS_BY_NAME,)
