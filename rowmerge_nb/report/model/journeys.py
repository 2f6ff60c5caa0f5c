"""Row journeys as they are shown: a line per joined row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowmerge_nb.choices import Flow
from rowmerge_nb.report.model.pages import row_limit
from rowmerge_nb.report.words.phrases import style_of
from rowmerge_nb.report.words.values import cell
from rowmerge_nb.trace.journeys import journeys_of
from rowmerge_nb.words import number, plural

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rowmerge_nb.trace.journeys import Journey
    from rowmerge_nb.trace.trace import Trace

__all__ = ["JourneyRow", "Journeys", "build_journeys"]

_VALUES = 48


@dataclass(frozen=True)
class JourneyRow:
    """A journey as texts: the row, the join, the clauses, what became of it, and who stored that."""

    source: str
    target: str
    join: str
    clause: str
    passed: str
    style: str
    becomes: str
    writers: str


@dataclass(frozen=True)
class Journeys:
    """Journeys in the order of the source, and a summary.

    Args:
        joined: the rows come from a join; those of UPDATE and DELETE were chosen by the WHERE condition.
        stored_by: what stored a row: ``writers``, or in the older flow ``split``.
    """

    rows: tuple[JourneyRow, ...]
    summary: str
    joined: bool
    stored_by: str

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads of the columns."""
        if self.joined:
            return ("source row", "join", "target row", "not true", "clause", "becomes", self.stored_by)
        return ("row", "operation", "becomes", self.stored_by)

    def values(self, row: JourneyRow) -> tuple[str, ...]:
        """Give the texts of a row, one per head."""
        if self.joined:
            return (row.source, row.join, row.target, row.passed, row.clause, row.becomes, row.writers)
        return (row.target, row.clause, row.becomes, row.writers)


def build_journeys(trace: Trace) -> Journeys | None:
    """Make the journeys of a trace; None where rows were not kept with both sides."""
    journeys = journeys_of(trace)
    if journeys is None:
        return None
    shown = journeys[: row_limit(8)]
    total = trace.joined if trace.joined is not None else len(journeys)
    joined = trace.kind == "MERGE"
    rows = plural(total, "joined row" if joined else "row")
    summary = rows if len(shown) >= total else f"{number(len(shown))} of {rows}"
    stored_by = "split" if trace.flow == Flow.UPDATABLE else "writers"
    return Journeys(tuple(_row(journey, joined) for journey in shown), summary, joined, stored_by)


def _row(journey: Journey, joined: bool) -> JourneyRow:
    passed = ", ".join(map(str, journey.passed))
    clause = f"case {journey.case_number} {journey.operation.name}" if joined else journey.operation.name
    clause = "no clause fired" if journey.case_number < 0 else clause
    at = "" if journey.source_row is None else f"{number(journey.source_row)} "
    writers = dict.fromkeys("?" if writer < 0 else str(writer) for writer in journey.writers)
    return JourneyRow(
        source=f"{at}{_values(journey.source)}".strip(),
        target=_values(journey.target),
        join=journey.join,
        clause=clause,
        passed=passed,
        style=style_of(journey.operation),
        becomes=" + ".join(journey.becomes) or "dropped",
        writers=", ".join(writers),
    )


def _values(side: Mapping[str, Any] | None) -> str:
    return "" if side is None else cell(tuple(side.values()), _VALUES).text
