"""Changed rows of the target, old values beside new ones; and the pages that the sinks got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.report.model.clauses import operation_counts
from rowmerge_nb.report.model.pages import row_limit, stored_channels
from rowmerge_nb.report.model.placing import writers_phrase
from rowmerge_nb.report.words.display_values import NULL, Cell, cell, struct_rows, visible, with_ends
from rowmerge_nb.report.words.phrases import style_of
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.samples import different_codes, row_id_codes, rows_of, source_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from rowmerge_nb.report.model.pages import Channel, Pages
    from rowmerge_nb.trace.trace import PageSample, StoredSample, Trace

MOST_UNTOUCHED: Final = 30
"""So many rows that took no part a trace has at most, see `rowmerge_nb.engine.observers.untouched_rows.MOST_ROWS`."""
MOST_LEFT: Final = 15
"""Of a table with at most so many rows all that are left of it are shown."""
_SIGNS: Final = {"U": "~", "D": "\N{MINUS SIGN}", "I": "+"}


@dataclass(frozen=True)
class ChangeCell:
    """A column of a changed row: old value, new value, either None where there is none; ``changed`` if they differ."""

    old: Cell | None
    new: Cell | None
    changed: bool


@dataclass(frozen=True)
class Change:
    """A changed row of the target."""

    sign: str
    style: str
    word: str
    cells: tuple[ChangeCell, ...]
    case: str
    source: str
    row_id: Cell


@dataclass(frozen=True)
class SameRow:
    """A row that nothing changed: its values, and the number of a source row that matches it; ``""`` where there is none, or no number."""

    cells: tuple[Cell, ...]
    source: str


@dataclass(frozen=True)
class LeftRow:
    """A row of the table as the statement has left it: the sign and style of its change, and per column the value and whether that is new."""

    sign: str
    style: str
    cells: tuple[tuple[Cell, bool], ...]


@dataclass(frozen=True)
class Diff:
    """Changed rows.

    Args:
        columns: the table's columns.
        rows: changes in the order of the source.
        total: how many rows were changed in all.
        untouched: target rows that nothing changed; None where the connector does not count.
        same: rows of the table as committed that nothing changed, where they are known; the first ones, where there are many.
        summary: for a closed fold.
        sizes: how the rows before and after add up; ``""`` where they are not counted.
        remark: what a reader must know about what is missing; otherwise ``""``.
        joined: the rows come from a join, so a source row and a clause belong to each.
        left: the rows of a small table as the statement has left them, and ``left_said`` what they are; nothing where some are not known.
    """

    columns: tuple[Channel, ...]
    rows: tuple[Change, ...]
    total: int
    untouched: int | None
    summary: str
    remark: str
    joined: bool = True
    same: tuple[SameRow, ...] = ()
    sizes: str = ""
    left: tuple[LeftRow, ...] = ()
    left_said: str = ""


@dataclass(frozen=True)
class StoredRow:
    """A row of a sink's page."""

    cells: tuple[Cell, ...]
    style: str
    word: str


@dataclass(frozen=True)
class StoredPage:
    """The first rows that one writer's sink got."""

    writer: int
    rows: tuple[StoredRow, ...]
    total: int


@dataclass(frozen=True)
class Stored:
    """What the connector was handed.

    Args:
        title: who got the pages: sinks, or in the older flow the page sources that had read the rows.
        caller: the word for one of them: ``writer`` or ``split``.
        channels: the pages' channels.
        operation: which of them is the operation; None in the older flow, where the call says it.
        pages: the pages' first rows.
        summary: for a closed fold.
        remark: how the pages are to be read; ``""`` where that is plain.
    """

    title: str
    caller: str
    channels: tuple[Channel, ...]
    operation: int | None
    pages: tuple[StoredPage, ...]
    summary: str
    remark: str = ""


def build_diff(trace: Trace, pages: Pages | None) -> Diff | None:
    """Make the changed rows out of merge rows and the values of both sides; None where no rows were recorded."""
    sample = trace.pages
    if sample is None or trace.state != StatementState.FINISHED:
        return None
    if pages is not None:
        columns = pages.channels.columns
        changing = _changing(sample)
    else:
        channels = stored_channels(sample.after.schema)
        columns = tuple(channels[channel] for channel in sample.layout.after.columns)
        changing = np.arange(sample.after.num_rows)
    counts = operation_counts(trace)
    known = [counts.get(style) or 0 for style in "IUD"]
    total = sum(known) if counts and None not in counts.values() else len(changing)
    untouched = None
    if trace.rows_before is not None and counts and None not in counts.values():
        changed = _changed_targets(sample)
        untouched = max(trace.rows_before - (known[1] + known[2] if changed is None else len(changed)), 0)
    limit = row_limit(len(columns))
    drawn = rows_of(sample, changing[:limit])
    shown = _changes(drawn) if pages is not None else _without_merge_rows(drawn)
    count = f"{plural(total, 'row')} changed"
    summary = count if len(shown) >= total else f"first {number(len(shown))} of {count}"
    idle = _idle(sample)
    if untouched is not None:
        summary += f"; {plural(untouched, 'target row')} unchanged{_apart(trace, untouched, idle)}"
    same = _same(trace, sample, idle, untouched, max(limit, MOST_LEFT))
    remark = (
        ""
        if sample.witness is not None or not shown
        else "Old values were not recorded: new values only. --trace full keeps both."
    )
    merged, sizes = trace.kind == "MERGE", _sizes(trace, known, untouched)
    if same and len(same[:limit]) < (untouched or 0):
        sizes += f" Of the unchanged ones the first {number(len(same[:limit]))} are shown."
    # Where nothing was changed the unchanged rows are the table.
    whole = 0 < len(shown) == total and len(same) == untouched and not remark
    left = _left(trace, shown, same) if whole else ()
    return Diff(
        columns,
        tuple(shown),
        total,
        untouched,
        summary,
        remark,
        merged,
        same[:limit],
        sizes.strip(),
        left,
        f"{_left_said(trace)}{_repeated_keys(trace, columns, left)}" if left else "",
    )


def _left(trace: Trace, changes: Sequence[Change], same: Sequence[SameRow]) -> tuple[LeftRow, ...]:
    """Return all rows that the statement has left of a small table: those that it has changed first; none where they are not so many as the store counts."""
    there = [change for change in changes if change.style != "D"]
    if len(there) + len(same) != trace.rows_after or trace.rows_after > MOST_LEFT:
        return ()
    changed = [
        LeftRow(change.sign, change.style, tuple((one.new or NULL, one.changed) for one in change.cells)) for change in there
    ]
    return (*changed, *(LeftRow("=", "", tuple((one, False) for one in row.cells)) for row in same))


def _left_said(trace: Trace) -> str:
    """Return what the rows are that are left, and which version of the table that is, where the store counts them."""
    rows = f"{visible(trace.target)} {'after the commit' if trace.committed else 'as it would be'}: {plural(trace.rows_after or 0, 'row')}"
    if not trace.committed or trace.version_after is None:
        return f"{rows}."
    was = "" if trace.version_before is None else f"; before it was version {visible(str(trace.version_before))}"
    return f"{rows}, version {visible(str(trace.version_after))}{was}."


def _repeated_keys(trace: Trace, columns: Sequence[Channel], left: Sequence[LeftRow]) -> str:
    """Name keys that an inserted row has and another row as well, which was hardly meant: keys are what ON reads of the target."""
    read = {name for term in (() if trace.on is None else trace.on.walk()) for side, name in term.reads if side == "target"}
    at = [index for index, column in enumerate(columns) if column.name in read]
    styles: dict[tuple[str, ...], list[str]] = {}
    for row in left:
        key = [row.cells[index][0] for index in at]
        # Of a text that is cut nobody sees whether it is the same.
        if key and not any(one.null or one.title for one in key):
            styles.setdefault(tuple(one.text for one in key), []).append(row.style)
    return "".join(
        f" {plural(len(found), 'row')} have {', '.join(columns[index].name for index in at)} {', '.join(key)} now, {number(found.count('I'))} of them inserted."
        for key, found in styles.items()
        if len(found) > 1 and "I" in found
    )


def _sizes(trace: Trace, known: list[int], untouched: int | None) -> str:
    """Show that the rows before and those after are made of the same parts."""
    inserted, updated, deleted = known
    if untouched is None or trace.rows_after is None or not any(known):
        return ""
    before, after = untouched + updated + deleted, untouched + updated + inserted
    if (before, after) != (trace.rows_before, trace.rows_after):
        # Where two clauses have changed a row, its changes are more than the rows.
        return ""
    kept = [(untouched, "unchanged"), (updated, "updated")]
    old, new = _sum([*kept, (deleted, "deleted")]), _sum([*kept, (inserted, "inserted")])
    return f"{plural(before, 'row')} before{old}. {plural(after, 'row')} after{new}."


def _sum(parts: list[tuple[int, str]]) -> str:
    """Write a sum without what is nothing."""
    told = " + ".join(f"{number(rows)} {word}" for rows, word in parts if rows)
    return f": {told}" if told else ""


def _idle(sample: PageSample) -> npt.NDArray[np.int64]:
    """Return the joined rows of the target rows that are matched and that no clause changes, each target row once, in the order of the source.

    Nothing is returned if not all rows are known.
    """
    changed = _changed_targets(sample)
    if sample.witness is None or changed is None:
        return np.zeros(0, np.int64)
    order = source_order(sample)
    codes = row_id_codes(sample.row_ids)[order]
    matched = sample.witness.column("target").is_valid().to_numpy(zero_copy_only=False)[order]
    here = np.flatnonzero(matched & ~np.isin(codes, changed))
    _, first = np.unique(codes[here], return_index=True)
    idle: npt.NDArray[np.int64] = order[here[np.sort(first)]]
    return idle


def _changed_targets(sample: PageSample) -> npt.NDArray[np.int64] | None:
    """Return the codes of the target rows that clauses change, each once though two clauses change it; None if not all rows are known."""
    if not sample.complete or not sample.transformed:
        return None
    return different_codes(row_id_codes(sample.row_ids)[_acts(sample)])


def _acts(sample: PageSample) -> npt.NDArray[np.bool_]:
    """Return per joined row whether a clause changes something by it."""
    operations = sample.before.column(sample.layout.before.merge_row).flatten()[sample.layout.merge_row.operation]
    acts: npt.NDArray[np.bool_] = operations.fill_null(int(Operation.NONE)).to_numpy(zero_copy_only=False) != Operation.NONE
    return acts


def _changing(sample: PageSample) -> npt.NDArray[np.int64]:
    """Return the joined rows by which something is changed, in the order of the source."""
    order = source_order(sample)
    return order[_acts(sample)[order]]


def _apart(trace: Trace, untouched: int, idle: npt.NDArray[np.int64]) -> str:
    """Return which of the unchanged rows were matched; nothing where none was, and where that is not known."""
    if trace.kind != "MERGE" or not len(idle) or len(idle) > untouched:
        return ""
    alone = untouched - len(idle)
    parts = [f"{number(alone)} without a partner"] * bool(alone) + [f"{number(len(idle))} for which no clause fired"]
    return f": {', '.join(parts)}"


def _same(
    trace: Trace, sample: PageSample, idle: npt.NDArray[np.int64], untouched: int | None, limit: int
) -> tuple[SameRow, ...]:
    """Return the first rows that nothing changed; none if some are not known."""
    others = trace.untouched
    if others is None or untouched is None or (len(idle) + others.num_rows < untouched and others.num_rows < MOST_UNTOUCHED):
        return ()
    sides = _both_sides(rows_of(sample, idle[:limit]))
    matched = [SameRow(_cells(target), "" if at is None else str(at)) for at, target in sides if target is not None]
    rest = [python_values(column) for column in others.slice(0, limit - len(matched)).columns]
    return (*matched, *(SameRow(_cells(values), "") for values in zip(*rest, strict=True)))


def _cells(values: Iterable[Any]) -> tuple[Cell, ...]:
    return tuple(cell(with_ends(value)) for value in values)


def _changes(sample: PageSample) -> list[Change]:
    """Return the change that each row makes."""
    layout = sample.layout.merge_row
    merge_rows = struct_rows(sample.before.column(sample.layout.before.merge_row))
    rows = zip(merge_rows, _both_sides(sample), python_values(sample.row_ids), strict=True)
    return [
        _change(
            Operation(values[layout.operation]),
            [values[i] for i in layout.columns],
            target,
            values[layout.case_number],
            at,
            row_id,
        )
        for values, (at, target), row_id in rows
        if values is not None
    ]


def _without_merge_rows(sample: PageSample) -> list[Change]:
    """List the sampled rows of a statement without a processor: a DELETE, or what page sources changed themselves.

    What a DELETE hands over holds no more than what tells the rows; an update's row is whole.
    """
    channels = sample.layout.after
    row_ids = python_values(sample.after.column(channels.row_id))
    operations = map(Operation, sample.after.column(channels.operation).to_pylist())
    values = zip(*(python_values(sample.after.column(channel)) for channel in channels.columns), strict=True)
    return [
        _change(operation, list(new), target, 0, None, row_id)
        for (_, target), operation, new, row_id in zip(_both_sides(sample), operations, values, row_ids, strict=True)
    ]


def _both_sides(sample: PageSample) -> list[tuple[int | None, list[Any] | None]]:
    witness = sample.witness
    if witness is None:
        return [(None, None)] * sample.before.num_rows
    return list(zip(witness.column("source_row").to_pylist(), struct_rows(witness.column("target")), strict=True))


def _change(operation: Operation, new: list[Any], target: list[Any] | None, case: int, at: int | None, row_id: Any) -> Change:
    style = style_of(operation)
    return Change(
        sign=_SIGNS[style],
        style=style,
        word=operation.name,
        cells=tuple(_cell(style, target[i] if target else None, new[i], target is not None) for i in range(len(new))),
        case=str(case),
        source="" if at is None else str(at),
        row_id=cell(row_id),
    )


def _cell(style: str, old: Any, new: Any, known: bool) -> ChangeCell:
    if style == "I":
        return ChangeCell(None, cell(with_ends(new)), True)
    if style == "D":
        return ChangeCell(cell(with_ends(old)) if known else None, None, True)
    # Compared as values, not as they are shown: two long texts may be cut to the same start.
    return ChangeCell(cell(with_ends(old)) if known else None, cell(with_ends(new)), not known or old != new)


def build_stored(trace: Trace, pages: Pages | None) -> Stored | None:
    """Make the pages as ``store_merged_rows`` got them; None where none was recorded."""
    if not trace.stored:
        return None
    layout, channels = trace.stored[0].layout, stored_channels(trace.stored[0].page.schema)
    samples = sorted(trace.stored, key=lambda sample: sample.writer)
    if layout is None:
        return _given_back(trace, channels, samples)
    if pages is not None:
        channels = tuple(pages.channels.after[channel] for channel in layout.after.stored)
    operation = layout.after.operation
    shown = tuple(_stored_page(sample, operation) for sample in samples)
    total = sum(page.total for page in shown)
    # Where not every writer's pages were kept the phrase would name others than those that are shown.
    writers = writers_phrase(trace) if len(shown) == len(trace.writers) else plural(len(shown), "writer")
    summary = f"{plural(total, 'row')}, {writers}; without insert_from_update"
    return Stored("Pages the sinks got", "writer", channels, operation, shown, summary)


def _given_back(trace: Trace, channels: tuple[Channel, ...], samples: list[StoredSample]) -> Stored:
    """Make what ``update_rows`` and ``delete_rows`` were called with."""
    operation = Operation[trace.kind]
    shown = tuple(_stored_page(sample, None, operation) for sample in samples)
    summary = f"{plural(sum(page.total for page in shown), 'row')}, {plural(len(shown), 'split')}; by {trace.kind.lower()}_rows"
    if operation is Operation.DELETE:
        remark = "delete_rows gets row ids and nothing else."
    else:
        values = ", ".join(f"{channel.number} the new {channel.name}" for channel in channels[1:])
        remark = f"update_rows gets the updated columns alone: channel 0 is the row id ({channels[0].type}), {values}."
    return Stored("Pages the page sources got back", "split", channels, None, shown, summary, remark)


def _stored_page(sample: StoredSample, channel: int | None, code: Operation = Operation.NONE) -> StoredPage:
    """Make the rows of a page; their operation is in a channel, or is ``code`` for all of them."""
    rows = sample.page.slice(0, row_limit(sample.page.num_columns if channel is None else channel))
    columns = [python_values(column) for column in rows.columns]
    values = [[column[i] for column in columns] for i in range(rows.num_rows)]
    return StoredPage(
        writer=sample.writer,
        rows=tuple(_stored_row(row, code if channel is None else Operation(row[channel])) for row in values),
        total=sample.total,
    )


def _stored_row(values: list[Any], code: Operation) -> StoredRow:
    return StoredRow(_cells(values), style_of(code), code.name)
