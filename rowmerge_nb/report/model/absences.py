"""Why a report lacks a part, and how to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import ROW_CHANGES, Flow, StatementState, TraceLevel
from rowmerge_nb.base.words import code

if TYPE_CHECKING:
    from rowmerge_nb.trace.trace import Trace

TITLES: Final = {
    "check": "Rows that are wrong in the store",
    "diff": "Changed rows",
    "clauses": "The clauses",
    "plan": "The plan",
    "pages": "The pages",
    "stored": "The pages that the connector got",
    "calls": "The connector's calls",
    "journeys": "Row journeys",
    "near": "The nearest keys",
    "words": "The words",
    "verdicts": "The verdicts of other engines",
}
"""The names of parts in a sentence."""
_ROWS: Final = frozenset({"diff", "pages", "stored", "journeys"})


def absence_of(trace: Trace, part: str) -> str:
    """Return why a part of a report is missing, and how to get it.

    >>> from rowmerge_nb.trace.trace import Trace
    >>> absence_of(Trace(statement="SELECT 1", kind="SELECT", state=StatementState.FINISHED), "journeys")
    'Row journeys are not shown: they are about MERGE, UPDATE and DELETE.'
    """
    return f"{TITLES[part]} {'is' if part == 'plan' else 'are'} not shown: {_reason(trace, part)}."


def _reason(trace: Trace, part: str) -> str:
    if trace.state in {StatementState.PLANNED, StatementState.EXPLAINED}:
        return "nothing was run"
    if trace.kind not in ROW_CHANGES:
        return (
            "they are about MERGE, UPDATE and DELETE"
            if part != "plan"
            else f"a {trace.kind} has none"
        )
    if part == "near":
        return _no_near(trace)
    if part == "check":
        return (
            f"they were not searched; {code('--check')} does"
            if trace.checks.commit is None
            else "none was found"
        )
    if part == "verdicts":
        return (
            "how rows were matched is unknown"
            if trace.kind == "MERGE"
            else f"a {trace.kind} has no source rows that match"
        )
    if part == "clauses":
        return f"a {trace.kind} has no WHEN clauses"
    if trace.state == StatementState.FAILED:
        return "the statement failed"
    if any(record.kind == "TableDelete" for record in trace.plan):
        return "the connector deleted the rows itself"
    if trace.settings.trace_level == TraceLevel.OFF and part in _ROWS:
        return f"the trace has counts only; {code('--trace full')} records rows"
    if trace.join.rows == 0 and part in _ROWS:
        return "there were no rows to process"
    if part == "journeys":
        return (
            "the trace of a large statement lacks the values of both sides;"
            f" {code('--why CONDITION')} requests rows, {code('--trace full')} keeps all"
        )
    if part == "pages" and (trace.settings.flow == Flow.UPDATABLE or trace.kind == "DELETE"):
        return "there is no transform_page"
    return "they were not recorded"


def _no_near(trace: Trace) -> str:
    if trace.kind != "MERGE":
        return f"a {trace.kind} has no source whose rows could have a partner"
    if trace.samples.near_misses is None:
        return (
            "every source row has a partner"
            if trace.join.unmatched_rows == 0
            else f"they were not searched; {code('--near')} does"
        )
    return (
        trace.samples.near_misses.problem.removesuffix(".")
        or f"no unmatched row is near one; {code('result.near()')} has all"
    )
