"""What the store does not hold as it must, after the commit: the wrong rows, each with the call that brought it and the row's way."""

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
    from rowmerge_nb.trace.trace import Trace, WrongRow

MOST_JOURNEYS: Final = 1_000
"""Of statements with more joined rows no ways are told."""


@dataclass(frozen=True)
class WrongLine:
    """A row that is wrong.

    Args:
        sentence: what is wrong with it.
        call: the call of the contract that was given its change; ``""`` where none was.
        way: the joined row that its change comes from, and the clause that took it; ``""`` where there is none.
    """

    sentence: str
    call: str
    way: str


@dataclass(frozen=True)
class Check:
    """What a reading after the commit has found wrong.

    Args:
        message: how many rows.
        rows: the first of them.
        more: how many are not among these, in words; ``""`` if all are.
    """

    message: str
    rows: tuple[WrongLine, ...]
    more: str


def build_check(trace: Trace) -> Check | None:
    """Return what is wrong in the store; None where nothing is, or nobody looked."""
    found = trace.check
    if found is None or found.state != "differs":
        return None
    ways = _ways(trace)
    method = "append_page" if trace.kind == "INSERT" else "store_merged_rows"
    rows = tuple(_line(row, method, ways) for row in found.rows)
    left = max(found.wrong - len(rows), 0)
    return Check(visible(found.message), rows, f"and {plural(left, 'more row')}" if left else "")


def _line(row: WrongRow, method: str, ways: Mapping[int, JourneyRow]) -> WrongLine:
    call = "" if row.writer is None else f"{method}, writer {row.writer}"
    way = ways.get(row.joined_row) if row.joined_row is not None else None
    told = "" if way is None else f"{f'source row {way.source}' if way.source else f'target row {way.target}'}: {way.clause}"
    return WrongLine(visible(row.sentence), call, told)


def _ways(trace: Trace) -> Mapping[int, JourneyRow]:
    """Return the ways of joined rows, by their places in the sample."""
    pages = trace.pages
    if pages is None or pages.before.num_rows > MOST_JOURNEYS or (journeys := journeys_of(trace)) is None:
        return {}
    merged = trace.kind == "MERGE"
    return {journey.page_row: journey_row(journey, merged) for journey in journeys}
