"""Rows that the store holds wrongly after the commit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.base.words import join, plural
from rowmerge_nb.report.model.changed_rows import ChangeCell
from rowmerge_nb.report.model.journeys import journey_row
from rowmerge_nb.report.words.display_values import cell, is_number, visible, with_ends
from rowmerge_nb.report.words.side_names import names_in, with_side_names
from rowmerge_nb.spi.types import from_arrow
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.journeys import journeys_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.report.model.journeys import JourneyRow
    from rowmerge_nb.trace.check_records import CommitCheck, WrongRow
    from rowmerge_nb.trace.trace import Trace

MOST_JOURNEYS: Final = 1_000
"""Statements with more joined rows get no journeys."""
MOST_COLUMNS: Final = 12
"""The maximum number of shown columns."""
UNEXPECTED: Final = ("too often", "still there", "not requested")
"""The problems of rows that must not be there."""


@dataclass(frozen=True)
class WrongLine:
    """A wrong row.

    Args:
        cells: per shown column the stored value (``old``) and the expected one (``new``); a value
            is None if there is no such row.
    """

    sentence: str
    problem: str
    cells: tuple[ChangeCell, ...]
    call: str
    way: str


@dataclass(frozen=True)
class ShownCheck:
    """The first wrong rows after the commit.

    Args:
        columns: the shown columns: their names, and whether they are right-aligned.
    """

    message: str
    patterns: tuple[str, ...]
    columns: tuple[tuple[str, bool], ...]
    rows: tuple[WrongLine, ...]
    more: str


def build_check(trace: Trace) -> ShownCheck | None:
    check = trace.checks.commit
    if check is None or check.state != "differs":
        return None
    ways = _ways(trace)
    method = "append_page" if trace.kind == "INSERT" else "store_merged_rows"
    schema = pa.schema([]) if check.expected is None else check.expected.schema
    indices = _columns(check, len(schema))
    rows = tuple(
        _line(row, cells, method, ways)
        for row, cells in zip(check.rows, _cells(check, indices), strict=True)
    )
    more = [
        (max(check.wrong - len(rows), 0) if rows else 0, "more wrong row"),
        (len(schema) - len(indices), "more column"),
    ]
    return ShownCheck(
        visible(check.message),
        tuple(map(visible, check.patterns)),
        tuple(
            (visible(schema.names[index]), is_number(str(from_arrow(schema.types[index]))))
            for index in indices
        ),
        rows,
        join([plural(count, words) for count, words in more if count]),
    )


def _columns(check: CommitCheck, count: int) -> list[int]:
    differing = (index for row in check.rows for index in row.differing)
    order = dict.fromkeys([*range(min(count, 1)), *differing, *range(count)])
    return sorted([*order][:MOST_COLUMNS])


def _cells(check: CommitCheck, indices: Sequence[int]) -> list[tuple[ChangeCell, ...]]:
    if check.expected is None or check.actual is None:
        return [() for _ in check.rows]
    sides = [
        [[cell(with_ends(v)) for v in python_values(side.column(i))] for i in indices]
        for side in (check.actual, check.expected)
    ]
    return [
        tuple(
            ChangeCell(
                None if row.problem == "missing" else actual[at],
                None if row.problem in UNEXPECTED else expected[at],
                index in row.differing,
            )
            for index, actual, expected in zip(indices, *sides, strict=True)
        )
        for at, row in enumerate(check.rows)
    ]


def _line(
    row: WrongRow, cells: tuple[ChangeCell, ...], method: str, ways: Mapping[int, JourneyRow]
) -> WrongLine:
    way = ways.get(row.joined_row) if row.joined_row is not None else None
    journey = (
        ""
        if way is None
        else (
            f"{f'source row {way.source}' if way.source else f'target row {way.target}'}:"
            f" {way.clause}"
        )
    )
    return WrongLine(visible(row.sentence), row.problem, cells, _call(row, method), journey)


def _call(row: WrongRow, method: str) -> str:
    if row.writer is None:
        return ""
    if row.call is None:
        return f"{method} of writer {row.writer}"
    position = "" if row.row is None else f", position {row.row}"
    return f"{method}, call {row.call} of writer {row.writer}{position}"


def _ways(trace: Trace) -> Mapping[int, JourneyRow]:
    pages = trace.samples.pages
    if (
        pages is None
        or pages.before.num_rows > MOST_JOURNEYS
        or (journeys := journeys_of(trace)) is None
    ):
        return {}
    merged = trace.kind == "MERGE"
    return {
        journey.page_row: journey_row(journey, merged)
        for journey in with_side_names(journeys, names_in(trace))
    }
