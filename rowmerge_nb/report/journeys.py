"""Row journeys as they are shown: a line per joined row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowmerge_nb.engine.journeys import journeys_of
from rowmerge_nb.report.ledger import row_limit
from rowmerge_nb.report.phrases import number, plural, style_of
from rowmerge_nb.report.values import cell

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rowmerge_nb.engine.journeys import Journey
    from rowmerge_nb.engine.trace import Trace

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
    """Journeys in the order of the source, and a summary."""

    rows: tuple[JourneyRow, ...]
    summary: str


def build_journeys(trace: Trace) -> Journeys | None:
    """Make the journeys of a trace; None where rows were not kept with both sides."""
    journeys = journeys_of(trace)
    if journeys is None:
        return None
    shown = journeys[: row_limit(8)]
    total = trace.joined if trace.joined is not None else len(journeys)
    summary = plural(total, "joined row") if len(shown) >= total else f"{number(len(shown))} of {plural(total, 'joined row')}"
    return Journeys(tuple(_row(journey) for journey in shown), summary)


def _row(journey: Journey) -> JourneyRow:
    passed = ", ".join(map(str, journey.passed))
    clause = "no clause fired" if journey.case_number < 0 else f"case {journey.case_number} {journey.operation.name}"
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
