"""Two runs of a statement side by side."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import number
from rowmerge_nb.report.words.display_values import cell
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.journeys import journeys_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.trace.journeys import Journey
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.trace import Trace

MOST_ROWS: Final = 30
"""The maximum number of aligned rows."""
MOST_JOINED: Final = 1_000
"""Statements with more joined rows are not aligned."""
_VALUES: Final = 48


@dataclass(frozen=True)
class AlignedRow:
    """A joined row, and its results in both runs; none if it changed nothing.

    Args:
        source: its number in the source; ``""`` without one.
    """

    source: str
    name: str
    left: tuple[str, ...]
    right: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return self.left != self.right

    @property
    def lines(self) -> list[tuple[str, str, str, str, str]]:
        height = max(len(self.left), len(self.right), 1)
        first, second = (
            list(side or ("no change",)) + [""] * height for side in (self.left, self.right)
        )
        heads = [(self.source, self.name, "≠" if self.differs else "")] + [("", "", "")] * height
        return [(*heads[line], first[line], second[line]) for line in range(height)]


def unaligned(left: Trace, right: Trace) -> str:
    """Return why the rows of two runs cannot be aligned, or ``""``.

    In a sample, a missing row would look like one that changed nothing.
    """
    pages = [trace.samples.pages for trace in (left, right)]
    if left.settings.flow != right.settings.flow or any(page is None for page in pages):
        return ""
    if any(page.before.num_rows > MOST_JOINED for page in pages if page is not None):
        return (
            "Rows are compared side by side for statements with at most"
            f" {number(MOST_JOINED)} joined rows."
        )
    if not all(page.complete for page in pages if page is not None):
        return (
            "Rows are not compared side by side: the traces have only a sample, and a"
            " row outside the sample would look unchanged."
        )
    return ""


def aligned_rows(left: Trace, right: Trace) -> tuple[AlignedRow, ...]:
    """Return the aligned rows of two runs; none if a side is incomplete, or if no row differs."""
    if left.settings.flow != right.settings.flow or unaligned(left, right):
        return ()
    sides = [_made(trace) for trace in (left, right)]
    if not all(sides):
        return ()
    keys = list(dict.fromkeys(key for side in sides for key in side))[:MOST_ROWS]
    rows = tuple(AlignedRow(*key[:2], *(side.get(key, ()) for side in sides)) for key in keys)
    return rows if any(row.differs for row in rows) else ()


def _made(trace: Trace) -> dict[tuple[str, str, str], tuple[str, ...]]:
    pages = trace.samples.pages
    if pages is None:
        return {}
    result_rows = list(_texts(pages))
    starts = list(accumulate(pages.produced, initial=0))
    return {
        _key(journey): tuple(result_rows[starts[journey.page_row] : starts[journey.page_row + 1]])
        for journey in journeys_of(trace) or ()
    }


def _key(journey: Journey) -> tuple[str, str, str]:
    values = journey.source if journey.source is not None else journey.target
    source_row = "" if journey.source_row is None else str(journey.source_row)
    return source_row, _values(tuple((values or {}).values())), repr(journey.target)


def _texts(pages: PageSample) -> Iterator[str]:
    channels = pages.layout.after
    operations = pages.after.column(channels.operation).to_pylist()
    row_ids = python_values(pages.after.column(channels.row_id))
    columns = [python_values(pages.after.column(index)) for index in channels.columns]
    rows = list(zip(*columns, strict=True)) if columns else [()] * len(operations)
    for operation, row_id, row in zip(operations, row_ids, rows, strict=True):
        where = "" if row_id is None else f", row id {_values(row_id)}"
        yield f"{Operation(operation).letter} {_values(row)}{where}"


def _values(value: Any) -> str:
    return cell(value, _VALUES).text


@dataclass(frozen=True)
class PlanLine:
    """A line of two plans; ``side`` is ``<`` or ``>`` if only one of them has it."""

    side: str
    text: str


def aligned_plans(left: Sequence[str], right: Sequence[str]) -> tuple[PlanLine, ...]:
    """Merge the lines of two plans.

    >>> [line.side + line.text for line in aligned_plans(["Output", "Sort"], ["Output", "Limit"])]
    ['Output', '<Sort', '>Limit']
    """
    lines: list[PlanLine] = []
    for what, start, end, other_start, other_end in SequenceMatcher(
        a=left, b=right, autojunk=False
    ).get_opcodes():
        if what == "equal":
            lines += [PlanLine("", line) for line in left[start:end]]
        else:
            lines += [PlanLine("<", line) for line in left[start:end]]
            lines += [PlanLine(">", line) for line in right[other_start:other_end]]
    return tuple(lines)
