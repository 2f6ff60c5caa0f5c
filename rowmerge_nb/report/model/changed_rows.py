"""Changed rows of the target, and the pages that the sinks received."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.report.model.clauses import operation_counts
from rowmerge_nb.report.model.pages import row_limit, stored_channels
from rowmerge_nb.report.model.placing import writers_phrase
from rowmerge_nb.report.words.display_values import (
    FILLED,
    NULL,
    Cell,
    cell,
    struct_rows,
    visible,
    with_ends,
)
from rowmerge_nb.report.words.phrases import style_of
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.journeys import NO_CLAUSE, case_numbers
from rowmerge_nb.trace.samples import different_codes, row_id_codes, rows_of, source_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from rowmerge_nb.report.model.pages import Channel, Pages
    from rowmerge_nb.trace.page_samples import PageSample, StoredSample
    from rowmerge_nb.trace.trace import Trace

MOST_UNTOUCHED: Final = 30
"""The limit of untouched rows in a trace, see
`rowmerge_nb.engine.observers.untouched_rows.MOST_ROWS`.
"""
MOST_LEFT: Final = 15
"""Tables with up to this many rows are shown whole."""
_SIGNS: Final = {"U": "~", "D": "\N{MINUS SIGN}", "I": "+"}


@dataclass(frozen=True)
class ChangeCell:
    """A column of a changed row; either value may be absent."""

    old: Cell | None
    new: Cell | None
    changed: bool


@dataclass(frozen=True)
class ChangedRow:
    sign: str
    style: str
    word: str
    cells: tuple[ChangeCell, ...]
    case: str
    source: str
    row_id: Cell


@dataclass(frozen=True)
class SameRow:
    """An unchanged row.

    Args:
        case: the number of the clause that leaves it unchanged, or ``""`` without a partner.
        source: the number of a matching source row, or ``""``.
    """

    cells: tuple[Cell, ...]
    case: str
    source: str


@dataclass(frozen=True)
class LeftRow:
    """A row of the resulting table; each cell has a value and whether it is new."""

    sign: str
    style: str
    cells: tuple[tuple[Cell, bool], ...]


@dataclass(frozen=True)
class Diff:
    """Changed rows, in the order of the source.

    Args:
        untouched: the number of unchanged target rows; None if the connector does not count rows.
        sizes: how the row counts before and after add up.
        joined: the rows come from a join, so each has a source row and a clause.
        result_rows: all rows of a small table after the statement, if known; ``result_note``
            describes them.
    """

    columns: tuple[Channel, ...]
    rows: tuple[ChangedRow, ...]
    total: int
    untouched: int | None
    summary: str
    remark: str
    joined: bool = True
    same: tuple[SameRow, ...] = ()
    sizes: str = ""
    result_rows: tuple[LeftRow, ...] = ()
    result_note: str = ""


@dataclass(frozen=True)
class StoredRow:
    """A row of a sink's page."""

    cells: tuple[Cell, ...]
    style: str
    word: str


@dataclass(frozen=True)
class StoredPage:
    """The first rows received by the sink of a writer."""

    writer: int
    rows: tuple[StoredRow, ...]
    total: int


@dataclass(frozen=True)
class Stored:
    """The pages that the connector received.

    Args:
        operation: the index of the operation channel; None in the older flow, where the call
            implies it.
    """

    title: str
    caller: str
    channels: tuple[Channel, ...]
    operation: int | None
    pages: tuple[StoredPage, ...]
    summary: str
    remark: str = ""


def build_diff(trace: Trace, pages: Pages | None) -> Diff | None:
    sample = trace.samples.pages
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
    by_operation = [counts.get(style) or 0 for style in "IUD"]
    is_counted = bool(counts) and None not in counts.values()
    total = sum(by_operation) if is_counted else len(changing)
    untouched = _untouched(trace, sample, by_operation) if is_counted else None
    limit = row_limit(len(columns))
    sampled = rows_of(sample, changing[:limit])
    changes = _with_store_values(
        _changes(sampled) if pages is not None else _without_merge_rows(sampled),
        [column.name in trace.target.filled_columns for column in columns],
    )
    count = f"{plural(total, 'row')} changed"
    summary = count if len(changes) >= total else f"first {number(len(changes))} of {count}"
    idle = _idle(sample)
    if untouched is not None:
        summary += (
            f"; {plural(untouched, 'target row')} unchanged{_apart(trace, sample, untouched, idle)}"
        )
    same = _same(trace, sample, idle, untouched, max(limit, MOST_LEFT))
    remark = (
        _same_values(trace, changes, total)
        if sample.witness is not None or not changes
        else "Old values were not recorded: new values only. --trace full keeps both."
    )
    merged, sizes = trace.kind == "MERGE", _sizes(trace, by_operation, untouched)
    if same and len(same[:limit]) < (untouched or 0):
        sizes += f" Of the unchanged rows, the first {number(len(same[:limit]))} are shown."
    # Without changes, the unchanged rows are the table.
    old_values = sample.witness is not None
    whole = 0 < len(changes) == total and len(same) == untouched and old_values
    resulting_rows = _left(trace, changes, same) if whole else ()
    return Diff(
        columns,
        tuple(changes),
        total,
        untouched,
        summary,
        remark,
        merged,
        same[:limit],
        sizes.strip(),
        resulting_rows,
        (
            f"{_left_said(trace)}{_repeated_keys(trace, columns, resulting_rows)}"
            if resulting_rows
            else ""
        ),
    )


def _untouched(trace: Trace, sample: PageSample, by_operation: Sequence[int]) -> int | None:
    """Return the number of unchanged target rows; None if the number of rows is unknown."""
    if trace.target.rows_before is None:
        return None
    changed = _changed_targets(sample)
    _, updated, deleted = by_operation
    return max(
        trace.target.rows_before - (updated + deleted if changed is None else len(changed)), 0
    )


def _same_values(trace: Trace, changes: Sequence[ChangedRow], total: int) -> str:
    same = sum(
        change.style == "U" and not any(one.changed for one in change.cells) for change in changes
    )
    if not same:
        return ""
    which = "" if len(changes) == total else " of those shown"
    have = "has" if same == 1 else "have"
    condition = (
        "WHEN MATCHED AND t.c IS DISTINCT FROM s.c"
        if trace.kind == "MERGE"
        else "A WHERE with c IS DISTINCT FROM its new value"
    )
    return (
        f"{plural(same, 'updated row')}{which} {have} the same values as before. {condition} skips"
        " such rows."
    )


def _left(
    trace: Trace, changes: Sequence[ChangedRow], same: Sequence[SameRow]
) -> tuple[LeftRow, ...]:
    """Return all rows of a small table; none if the store counts another number."""
    present = [change for change in changes if change.style != "D"]
    if len(present) + len(same) != trace.target.rows_after or trace.target.rows_after > MOST_LEFT:
        return ()
    changed = [
        LeftRow(
            change.sign, change.style, tuple((one.new or NULL, one.changed) for one in change.cells)
        )
        for change in present
    ]
    return (*changed, *(LeftRow("=", "", tuple((one, False) for one in row.cells)) for row in same))


def _left_said(trace: Trace) -> str:
    rows = (
        f"{visible(trace.target.name)} {'after the commit' if trace.committed else 'as it would be'}:"
        f" {plural(trace.target.rows_after or 0, 'row')}"
    )
    if not trace.committed or trace.target.version_after is None:
        return f"{rows}."
    was = (
        ""
        if trace.target.version_before is None
        else f"; before it was version {visible(str(trace.target.version_before))}"
    )
    return f"{rows}, version {visible(str(trace.target.version_after))}{was}."


def _repeated_keys(
    trace: Trace, columns: Sequence[Channel], resulting_rows: Sequence[LeftRow]
) -> str:
    """Describe keys that an inserted row shares with another row; keys are the target columns that
    ON reads.
    """
    read = {
        name
        for term in (() if trace.join.on is None else trace.join.on.walk())
        for side, name in term.reads
        if side == "target"
    }
    at = [index for index, column in enumerate(columns) if column.name in read]
    styles: dict[tuple[str, ...], list[str]] = {}
    for row in resulting_rows:
        key = [row.cells[index][0] for index in at]
        # Truncated texts cannot be compared.
        if key and not any(one.null or one.title for one in key):
            styles.setdefault(tuple(one.text for one in key), []).append(row.style)
    return "".join(
        f" {plural(len(row_styles), 'row')} have {', '.join(columns[index].name for index in at)}"
        f" {', '.join(key)} now, {number(row_styles.count('I'))} of them inserted."
        for key, row_styles in styles.items()
        if len(row_styles) > 1 and "I" in row_styles
    )


def _sizes(trace: Trace, by_operation: list[int], untouched: int | None) -> str:
    inserted, updated, deleted = by_operation
    if untouched is None or trace.target.rows_after is None or not any(by_operation):
        return ""
    before, after = untouched + updated + deleted, untouched + updated + inserted
    if (before, after) != (trace.target.rows_before, trace.target.rows_after):
        # A row changed by two clauses counts twice.
        return ""
    common = [(untouched, "unchanged"), (updated, "updated")]
    old, new = _sum([*common, (deleted, "deleted")]), _sum([*common, (inserted, "inserted")])
    return f"{plural(before, 'row')} before{old}. {plural(after, 'row')} after{new}."


def _sum(parts: list[tuple[int, str]]) -> str:
    terms = " + ".join(f"{number(rows)} {word}" for rows, word in parts if rows)
    return f": {terms}" if terms else ""


def _idle(sample: PageSample) -> npt.NDArray[np.int64]:
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
    if not sample.complete or not sample.transformed:
        return None
    return different_codes(row_id_codes(sample.row_ids)[_acts(sample)])


def _acts(sample: PageSample) -> npt.NDArray[np.bool_]:
    operations = sample.before.column(sample.layout.before.merge_row).flatten()[
        sample.layout.merge_row.operation
    ]
    acts: npt.NDArray[np.bool_] = (
        operations.fill_null(int(Operation.NONE)).to_numpy(zero_copy_only=False) != Operation.NONE
    )
    return acts


def _changing(sample: PageSample) -> npt.NDArray[np.int64]:
    order = source_order(sample)
    return order[_acts(sample)[order]]


def _apart(trace: Trace, sample: PageSample, untouched: int, idle: npt.NDArray[np.int64]) -> str:
    if trace.kind != "MERGE" or not len(idle) or len(idle) > untouched:
        return ""
    unmatched = untouched - len(idle)
    without_clause = np.count_nonzero(case_numbers(sample)[idle] == NO_CLAUSE)
    parts = (
        (unmatched, "without a partner"),
        (int(without_clause), "for which no clause fired"),
        (len(idle) - int(without_clause), "by DO NOTHING"),
    )
    return f": {', '.join(f'{number(rows)} {why}' for rows, why in parts if rows)}"


def _same(
    trace: Trace, sample: PageSample, idle: npt.NDArray[np.int64], untouched: int | None, limit: int
) -> tuple[SameRow, ...]:
    others = trace.samples.untouched_rows
    if (
        others is None
        or untouched is None
        or (len(idle) + others.num_rows < untouched and others.num_rows < MOST_UNTOUCHED)
    ):
        return ()
    idle_rows = rows_of(sample, idle[:limit])
    matched = [
        SameRow(_cells(target), number(case), "" if at is None else str(at))
        for (at, target), case in zip(
            _both_sides(idle_rows), case_numbers(idle_rows).tolist(), strict=True
        )
        if target is not None
    ]
    rest = [python_values(column) for column in others.slice(0, limit - len(matched)).columns]
    return (*matched, *(SameRow(_cells(values), "", "") for values in zip(*rest, strict=True)))


def _cells(values: Iterable[Any]) -> tuple[Cell, ...]:
    return tuple(cell(with_ends(value)) for value in values)


def _changes(sample: PageSample) -> list[ChangedRow]:
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


def _with_store_values(changes: list[ChangedRow], marks: Sequence[bool]) -> list[ChangedRow]:
    if not any(marks):
        return changes
    return [
        (
            replace(
                change,
                cells=tuple(
                    replace(one, new=FILLED) if fills and one.new == NULL else one
                    for one, fills in zip(change.cells, marks, strict=True)
                ),
            )
            if change.style == "I"
            else change
        )
        for change in changes
    ]


def _without_merge_rows(sample: PageSample) -> list[ChangedRow]:
    """Return the changes of a DELETE, which passes only row ids and keys, or of the older flow."""
    channels = sample.layout.after
    row_ids = python_values(sample.after.column(channels.row_id))
    operations = map(Operation, sample.after.column(channels.operation).to_pylist())
    values = zip(
        *(python_values(sample.after.column(channel)) for channel in channels.columns), strict=True
    )
    return [
        _change(operation, list(new), target, 0, None, row_id)
        for (_, target), operation, new, row_id in zip(
            _both_sides(sample), operations, values, row_ids, strict=True
        )
    ]


def _both_sides(sample: PageSample) -> list[tuple[int | None, list[Any] | None]]:
    witness = sample.witness
    if witness is None:
        return [(None, None)] * sample.before.num_rows
    return list(
        zip(
            witness.column("source_row").to_pylist(),
            struct_rows(witness.column("target")),
            strict=True,
        )
    )


def _change(
    operation: Operation,
    new: list[Any],
    old_row: list[Any] | None,
    case: int,
    at: int | None,
    row_id: Any,
) -> ChangedRow:
    style = style_of(operation)
    return ChangedRow(
        sign=_SIGNS[style],
        style=style,
        word=operation.name,
        cells=tuple(
            _cell(style, old_row[i] if old_row else None, new[i], old_row is not None)
            for i in range(len(new))
        ),
        case=str(case),
        source="" if at is None else str(at),
        row_id=cell(row_id),
    )


def _cell(style: str, old: Any, new: Any, recorded: bool) -> ChangeCell:
    if style == "I":
        return ChangeCell(None, cell(with_ends(new)), True)
    if style == "D":
        return ChangeCell(cell(with_ends(old)) if recorded else None, None, True)
    # Values are compared, not their display: two long texts may be truncated to the same start.
    return ChangeCell(
        cell(with_ends(old)) if recorded else None, cell(with_ends(new)), not recorded or old != new
    )


def build_stored(trace: Trace, pages: Pages | None) -> Stored | None:
    samples = sorted(trace.samples.stored_pages, key=lambda sample: sample.writer)
    if not samples:
        return None
    first = trace.samples.stored_pages[0]
    layout, channels = first.layout, stored_channels(first.page.schema)
    if layout is None:
        return _given_back(trace, channels, samples)
    if pages is not None:
        channels = tuple(pages.channels.after[channel] for channel in layout.after.stored)
    operation = layout.after.operation
    stored_pages = tuple(_stored_page(sample, operation) for sample in samples)
    total = sum(page.total for page in stored_pages)
    # If pages of a writer are missing, the phrase would list other writers than those shown.
    writers = (
        writers_phrase(trace)
        if len(stored_pages) == len(trace.writers)
        else plural(len(stored_pages), "writer")
    )
    summary = f"{plural(total, 'row')}, {writers}; without insert_from_update"
    return Stored("Pages the sinks got", "writer", channels, operation, stored_pages, summary)


def _given_back(trace: Trace, channels: tuple[Channel, ...], samples: list[StoredSample]) -> Stored:
    operation = Operation[trace.kind]
    stored_pages = tuple(_stored_page(sample, None, operation) for sample in samples)
    summary = (
        f"{plural(sum(page.total for page in stored_pages), 'row')},"
        f" {plural(len(stored_pages), 'split')}; by {trace.kind.lower()}_rows"
    )
    if operation is Operation.DELETE:
        remark = "delete_rows gets row ids and nothing else."
    else:
        values = ", ".join(f"{channel.number} the new {channel.name}" for channel in channels[1:])
        remark = (
            "update_rows gets only the updated columns: channel 0 is the row id"
            f" ({channels[0].type}), {values}."
        )
    return Stored(
        "Pages returned to the page sources", "split", channels, None, stored_pages, summary, remark
    )


def _stored_page(
    sample: StoredSample, channel: int | None, code: Operation = Operation.NONE
) -> StoredPage:
    rows = sample.page.slice(0, row_limit(sample.page.num_columns if channel is None else channel))
    columns = [python_values(column) for column in rows.columns]
    values = [[column[i] for column in columns] for i in range(rows.num_rows)]
    return StoredPage(
        writer=sample.writer,
        rows=tuple(
            _stored_row(row, code if channel is None else Operation(row[channel])) for row in values
        ),
        total=sample.total,
    )


def _stored_row(values: list[Any], code: Operation) -> StoredRow:
    return StoredRow(_cells(values), style_of(code), code.name)
