"""Rows that the store holds wrongly after the commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import plural
from rowmerge_nb.report.model.journeys import journey_row
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.trace.journeys import journeys_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.report.model.journeys import JourneyRow
    from rowmerge_nb.trace.check_records import WrongRow
    from rowmerge_nb.trace.trace import Trace

MOST_JOURNEYS: Final = 1_000
"""Statements with more joined rows get no journeys."""


@dataclass(frozen=True)
class WrongLine:
    """A wrong row, the call that received its change, and its journey."""

    sentence: str
    call: str
    way: str


@dataclass(frozen=True)
class Check:
    """The first wrong rows after the commit; ``more`` counts the others in words."""

    message: str
    rows: tuple[WrongLine, ...]
    more: str


def build_check(trace: Trace) -> Check | None:
    """Return the wrong rows, or None."""
    check = trace.checks.commit
    if check is None or check.state != "differs":
        return None
    ways = _ways(trace)
    method = "append_page" if trace.kind == "INSERT" else "store_merged_rows"
    rows = tuple(_line(row, method, ways) for row in check.rows)
    rest = max(check.wrong - len(rows), 0)
    return Check(visible(check.message), rows, f"and {plural(rest, 'more row')}" if rest else "")


def _line(row: WrongRow, method: str, ways: Mapping[int, JourneyRow]) -> WrongLine:
    call = "" if row.writer is None else f"{method}, writer {row.writer}"
    way = ways.get(row.joined_row) if row.joined_row is not None else None
    journey = (
        ""
        if way is None
        else (
            f"{f'source row {way.source}' if way.source else f'target row {way.target}'}:"
            f" {way.clause}"
        )
    )
    return WrongLine(visible(row.sentence), call, journey)


def _ways(trace: Trace) -> Mapping[int, JourneyRow]:
    pages = trace.samples.pages
    if (
        pages is None
        or pages.before.num_rows > MOST_JOURNEYS
        or (journeys := journeys_of(trace)) is None
    ):
        return {}
    merged = trace.kind == "MERGE"
    return {journey.page_row: journey_row(journey, merged) for journey in journeys}
