"""The pages before and after ``transform_page``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.words import MINUS, number, plural
from rowmerge_nb.report.model.alignment import AlignedRow, aligned_rows
from rowmerge_nb.report.model.places import places_of
from rowmerge_nb.report.model.placing import (
    DELETE_AND_INSERT,
    exchange_sentence,
    number_head,
    other_paradigm,
    passage,
    update_form,
    writers_word,
)
from rowmerge_nb.report.words.display_values import (
    NULL,
    Cell,
    cell,
    is_number,
    struct_rows,
    tail,
    visible,
    with_ends,
)
from rowmerge_nb.report.words.phrases import style_of
from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.spi.page import (
    CASE_NUMBER,
    HASH,
    INSERT_FROM_UPDATE,
    IS_DISTINCT,
    MERGE_ROW,
    OPERATION,
    PRESENT,
    ROW_ID,
    PageLayout,
)
from rowmerge_nb.spi.types import from_arrow
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.sql.parser.column_names import column_in_sql
from rowmerge_nb.trace.journeys import case_numbers
from rowmerge_nb.trace.node_records import ProcessorFacts
from rowmerge_nb.trace.samples import first_of_each, rows_of, source_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from rowmerge_nb.trace.node_records import NodeRecord
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.trace import Trace

MOST_ROWS: Final = 30
MOST_CELLS: Final = 480
TYPE_ROOM: Final = 14
"""The maximum number of characters of a type in a drawing."""


@dataclass(frozen=True)
class Channel:
    """A channel of a page: its number as text (``3.0`` inside the merge row), name and type."""

    number: str
    name: str
    type: str

    @property
    def right(self) -> bool:
        return is_number(self.type)


@dataclass(frozen=True)
class Channels:
    """All channels of both pages, by role.

    Args:
        redistribution: write redistribution columns, with the target row's values.
        merge_row: the merge row's channel; ``fields`` are its columns, ``present``, ``operation``
            and ``case`` its last fields.
        case_number: the input of MarkDistinct; ``is_distinct`` is its output.
        columns: the table's columns in the page after; ``after_case`` exists in the current era
            only.
    """

    layout: PageLayout
    redistribution: tuple[Channel, ...]
    hash: Channel | None
    row_id: Channel
    merge_row: Channel
    fields: tuple[Channel, ...]
    present: Channel
    operation: Channel
    case: Channel
    case_number: Channel
    is_distinct: Channel
    columns: tuple[Channel, ...]
    after_operation: Channel
    after_case: Channel | None
    after_row_id: Channel
    insert_from_update: Channel

    @property
    def location(self) -> tuple[Channel, ...]:
        """The channels before the merge row: the row's identity and old location."""
        return (*self.redistribution, *([self.hash] if self.hash else []), self.row_id)

    @property
    def before(self) -> tuple[Channel, ...]:
        return (
            *self.location,
            *self.fields,
            self.present,
            self.operation,
            self.case,
            self.case_number,
            self.is_distinct,
        )

    @property
    def after(self) -> tuple[Channel, ...]:
        return (*self.columns, *self.others)

    @property
    def others(self) -> tuple[Channel, ...]:
        extra = (self.after_case,) if self.after_case else ()
        return (self.after_operation, *extra, self.after_row_id, self.insert_from_update)

    @property
    def long_types(self) -> tuple[Channel, ...]:
        return tuple(
            channel for channel in (self.row_id, *self.columns) if len(channel.type) > TYPE_ROOM
        )


@dataclass(frozen=True)
class AfterRow:
    """A row after ``transform_page``, and the number that selected its writer."""

    word: str
    letter: str
    style: str
    code: int
    columns: tuple[Cell, ...]
    case: Cell | None
    row_id: Cell
    insert_from_update: Cell
    number: str
    writer: int | None
    at: int = 0


@dataclass(frozen=True)
class SentRows:
    """Rows that the exchange sent to one writer; ``number`` is the result of the hash or function
    for ``values``.
    """

    values: str
    number: str
    writer: str
    rows: str


@dataclass(frozen=True)
class TransformedRow:
    """A row before ``transform_page`` and its results; a row that changes nothing has none.

    Args:
        source: its number in the source, ``none`` for a target row without one, ``""`` if not
            recorded.
        merge_null: the whole merge row is NULL (current era, no clause fired).
        idle: it has a target row, and no clause changes it.
    """

    source: str
    name: Cell | None
    redistribution: tuple[Cell, ...]
    hash: Cell | None
    row_id: Cell
    fields: tuple[Cell, ...]
    present: Cell
    operation: Cell
    case: Cell
    case_number: Cell
    is_distinct: Cell
    merge_null: bool
    idle: bool
    style: str
    word: str
    letter: str
    after: tuple[AfterRow, ...]


@dataclass(frozen=True)
class Pages:
    """Channels and sampled rows; counts are None if nothing ran.

    Args:
        number_head: the head of the numbers that select writers; ``writer_head`` is the rule:
            ``writer = mod 2``.
        other: the other paradigm, if its results are known; ``aligned_rows`` has the rows with
            different results.
    """

    channels: Channels
    paradigm: str
    rows: tuple[TransformedRow, ...]
    total_before: int | None
    total_after: int | None
    summary: str
    sample: str
    remarks: tuple[str, ...]
    row_word: str = "source row"
    updates_only: bool = False
    number_head: str = ""
    writer_head: str = "writer"
    destinations: tuple[SentRows, ...] = ()
    other: str = ""
    aligned_rows: tuple[AlignedRow, ...] = ()


def build_pages(trace: Trace, other: Trace | None = None) -> Pages | None:
    channels = _channels(trace)
    if channels is None:
        return None
    sample = trace.samples.pages
    remarks = tuple(_remarks(trace, channels))
    if sample is None:
        summary = (
            "channels only: nothing ran"
            if trace.state in {StatementState.EXPLAINED, StatementState.PLANNED}
            else "no rows were recorded"
        )
        remarks = (_update_rows(trace, channels), *remarks)
        return Pages(
            channels,
            trace.settings.paradigm,
            (),
            None,
            None,
            summary,
            "",
            remarks,
            updates_only=trace.kind == "UPDATE",
        )
    sample = _drawn(sample, row_limit(len(channels.columns)))
    ledger = tuple(_ledger(sample, channels))
    if any(row.idle or (row.merge_null and not row.row_id.null) for row in ledger):
        remarks = (*remarks, _PRESENT)
    remarks = (_update_rows(trace, channels), *remarks)
    which = ""
    if len(ledger) < sample.total_before:
        which = (
            f"{number(len(ledger))} of {plural(sample.total_before, 'row')}: the first ones of each"
            " clause that were recorded"
        )
    summary = f"transform_page: {passage(trace, sample.total_before, sample.total_after)}"
    word = "source row" if trace.kind == "MERGE" else "row"
    head = number_head(trace)
    writer = f"writer ={writers_word(trace)}" if head else "writer"
    totals = sample.total_before, sample.total_after
    return Pages(
        channels,
        trace.settings.paradigm,
        ledger,
        *totals,
        summary,
        which,
        remarks,
        word,
        trace.kind == "UPDATE",
        head,
        writer,
        _destinations(replace(trace, samples=replace(trace.samples, pages=sample)), ledger),
        "" if other is None else other.settings.paradigm,
        () if other is None else tuple(row for row in aligned_rows(trace, other) if row.differs),
    )


def _destinations(trace: Trace, rows: Sequence[TransformedRow]) -> tuple[SentRows, ...]:
    places = places_of(trace)
    groups: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        for half in row.after:
            if half.at < len(places):
                groups.setdefault(places[half.at].cells, []).append(
                    f"{row.source or (row.name.text if row.name else 'row')} {half.letter}"
                )
    return tuple(
        SentRows(*cells, ", ".join(rows_of_group)) for cells, rows_of_group in groups.items()
    )


_PRESENT: Final = (
    "present: the join has found a target row, whether a clause fires or not; in pages of era"
    " current the whole merge_row is NULL where none fires."
)
_HASH_OF_NULL: Final = 42
"""The engine's hash of columns that are all NULL."""


def _update_rows(trace: Trace, channels: Channels) -> str:
    if trace.settings.paradigm != DELETE_AND_INSERT:
        return update_form(trace.settings.paradigm)
    columns = " and ".join(channel.name for channel in channels.redistribution)
    updates, apart = _split_updates(trace.samples.pages)
    halves = f" {_halves(apart, updates)}" if updates and trace.writers else ""
    old = (
        f" The DELETE keeps the old {columns} too; the INSERT has the new values.{halves}"
        if columns
        else ""
    )
    mark = (
        "insert_from_update = 1 marks the INSERT, so that the UPDATE counts as one row; the sink"
        " does not get it."
    )
    return f"{update_form(trace.settings.paradigm)}{old} {mark}"


def _split_updates(sample: PageSample | None) -> tuple[int, int]:
    if sample is None or not sample.complete:
        return 0, 0
    produced = np.array(sample.produced, np.int64)
    first = (np.cumsum(produced) - produced)[produced == 2]
    writers = np.array(sample.writers or [-1] * sample.after.num_rows, np.int64)
    return len(first), int(np.count_nonzero(writers[first] != writers[first + 1]))


def _halves(apart: int, updates: int) -> str:
    if updates == 1:
        return (
            "Here both rows of the one UPDATE went to"
            f" {'two writers' if apart else 'the same writer'}."
        )
    if not apart:
        return f"Here both rows of each of the {number(updates)} UPDATEs went to the same writer."
    return (
        f"Here {number(apart)} of {number(updates)} UPDATEs sent their DELETE and their INSERT to"
        " two writers."
    )


def _remarks(trace: Trace, channels: Channels) -> Iterator[str]:
    sentence = exchange_sentence(trace)
    if channels.hash:
        columns = " and ".join(channel.name for channel in channels.redistribution)
        sentence += (
            " The hash is Spark's xxhash64. The channel hash has that of the old"
            f" {columns}, or {_HASH_OF_NULL} without one; the exchange computes a new hash of"
            " each row after transform_page, as the table of writers shows."
        )
    if sentence:
        yield sentence.strip()
    if other := other_paradigm(trace):
        yield other
    is_current = trace.settings.era == Era.CURRENT
    current = ", 4 and 5 the INSERT and the DELETE of an UPDATE" if is_current else ""
    null = "NULL" if is_current else f"{MINUS}1"
    clause = (
        f"; case_number: the clause. Both are {null} where none fires."
        if trace.kind == "MERGE"
        else "."
    )
    yield f"operation: 1 INSERT, 2 DELETE, 3 UPDATE{current}{clause}"


def _channels(trace: Trace) -> Channels | None:
    processor = next((record for record in trace.plan if record.kind == "MergeProcessor"), None)
    if trace.samples.pages is not None and trace.samples.pages.transformed:
        return _channels_of_pages(trace.samples.pages, processor)
    return _channels_of_plan(trace, processor) if processor is not None else None


def _channels_of_pages(sample: PageSample, processor: NodeRecord | None) -> Channels:
    """Read channels from the schemas by position: a table may have a column named ``hash`` or
    ``row_id``.
    """
    layout, before = sample.layout, sample.before.schema
    merge_row = before.field(layout.before.merge_row).type
    columns = [merge_row.field(index) for index in layout.merge_row.columns]
    types = [str(from_arrow(column.type)) for column in columns]
    if processor is not None and len(processor.layout) == layout.after.count:
        types = [processor.layout[channel][1] for channel in layout.after.columns]
    row_id = str(from_arrow(before.field(layout.before.row_id).type))
    return _numbered([column.name for column in columns], types, row_id, layout)


def _channels_of_plan(trace: Trace, processor: NodeRecord) -> Channels:
    redistribution = (
        processor.facts.redistribution_columns
        if isinstance(processor.facts, ProcessorFacts)
        else ()
    )
    layout = PageLayout.of_output(len(processor.layout), era=Era(trace.settings.era))
    columns = [processor.layout[channel] for channel in layout.after.columns]
    indexes = tuple(index for index, (name, _) in enumerate(columns) if name in redistribution)
    _, row_id = processor.layout[layout.after.row_id]
    sample = trace.samples.pages
    keeps_ids = sample is not None and sample.layout.identifies_new_rows
    return _numbered(
        [name for name, _ in columns],
        [sql_type for _, sql_type in columns],
        row_id,
        replace(layout, redistribution_columns=indexes, identifies_new_rows=keeps_ids),
    )


def _numbered(
    names: Sequence[str], types: Sequence[str], row_id: str, layout: PageLayout
) -> Channels:
    before, merge_row, after = layout.before, layout.merge_row, layout.after
    names = [visible(name) for name in names]
    columns = tuple(
        Channel(str(i), name, sql_type)
        for i, (name, sql_type) in enumerate(zip(names, types, strict=True))
    )
    parts = [
        *zip(names, types, strict=True),
        (PRESENT, "boolean"),
        (OPERATION, "tinyint"),
        (CASE_NUMBER, "integer"),
    ]
    inner = [
        Channel(f"{before.merge_row}.{i}", name, sql_type)
        for i, (name, sql_type) in enumerate(parts)
    ]
    redistribution = zip(
        before.write_redistribution_columns, layout.redistribution_columns, strict=True
    )
    return Channels(
        layout=layout,
        redistribution=tuple(
            replace(columns[index], number=str(channel)) for channel, index in redistribution
        ),
        hash=Channel(str(before.hash), HASH, "bigint") if before.hash is not None else None,
        row_id=Channel(str(before.row_id), ROW_ID, row_id),
        merge_row=Channel(
            str(before.merge_row),
            MERGE_ROW,
            f"row({', '.join(f'{column_in_sql(name)} {sql_type}' for name, sql_type in parts)})",
        ),
        fields=tuple(inner[index] for index in merge_row.columns),
        present=inner[merge_row.present],
        operation=inner[merge_row.operation],
        case=inner[merge_row.case_number],
        case_number=Channel(str(before.case_number), CASE_NUMBER, "integer"),
        is_distinct=Channel(str(before.is_distinct), IS_DISTINCT, "tinyint"),
        columns=columns,
        after_operation=Channel(str(after.operation), OPERATION, "tinyint"),
        after_case=(
            Channel(str(after.case_number), CASE_NUMBER, "integer")
            if after.case_number is not None
            else None
        ),
        after_row_id=Channel(str(after.row_id), ROW_ID, row_id),
        insert_from_update=Channel(str(after.insert_from_update), INSERT_FROM_UPDATE, "tinyint"),
    )


def stored_channels(schema: pa.Schema) -> tuple[Channel, ...]:
    return tuple(
        Channel(str(i), visible(field.name), str(from_arrow(field.type)))
        for i, field in enumerate(schema)
    )


def _ledger(sample: PageSample, channels: Channels) -> list[TransformedRow]:
    merge_row = sample.layout.before.merge_row
    before = [
        struct_rows(column) if i == merge_row else python_values(column)
        for i, column in enumerate(sample.before.columns)
    ]
    after = [python_values(column) for column in sample.after.columns]
    witness = _witness(sample.witness, sample.before.num_rows)
    rows, position = [], 0
    for index, produced in enumerate(sample.produced):
        halves = tuple(
            _after_row(after, i, channels, sample) for i in range(position, position + produced)
        )
        position += produced
        row = [column[index] for column in before]
        entry = _ledger_row(row, witness[index], channels, halves)
        if (
            witness[index][0] is None
            and sample.witness is not None
            and "source" in sample.witness.schema.names
        ):
            # A target row that a FULL join kept without a source row.
            entry = replace(entry, source="none")
        rows.append(entry)
    return rows


def _witness(witness: pa.RecordBatch | None, count: int) -> list[tuple[int | None, Cell | None]]:
    if witness is None:
        return [(None, None)] * count
    names = witness.schema.names
    numbers = witness.column("source_row").to_pylist() if "source_row" in names else [None] * count
    # Without a source, the target's values identify a row.
    sources = struct_rows(witness.column("source" if "source" in names else "target"))
    return [
        (at, cell(with_ends(values[0]), 24) if values else None)
        for at, values in zip(numbers, sources, strict=True)
    ]


def _ledger_row(
    row: Sequence[Any],
    witness: tuple[int | None, Cell | None],
    channels: Channels,
    after: tuple[AfterRow, ...],
) -> TransformedRow:
    before, layout = channels.layout.before, channels.layout.merge_row
    merge_row = row[before.merge_row]
    values = merge_row if merge_row is not None else [None] * layout.count
    operation = values[layout.operation]
    requested = Operation(operation) if operation is not None else Operation.NONE
    return TransformedRow(
        source="" if witness[0] is None else str(witness[0]),
        name=witness[1],
        redistribution=tuple(
            _value(row[channel]) for channel in before.write_redistribution_columns
        ),
        hash=tail(row[before.hash]) if before.hash is not None else None,
        row_id=cell(row[before.row_id]),
        fields=tuple(_value(values[index]) for index in layout.columns),
        present=cell(values[layout.present]),
        operation=_small(operation),
        case=_small(values[layout.case_number]),
        case_number=_small(row[before.case_number]),
        is_distinct=_small(row[before.is_distinct]),
        merge_null=merge_row is None,
        idle=requested is Operation.NONE and values[layout.present] is True,
        style=style_of(requested),
        word=requested.name if requested is not Operation.NONE else "none",
        letter=requested.letter,
        after=after,
    )


def _value(value: Any) -> Cell:
    return cell(with_ends(value))


def _after_row(
    after: Sequence[Sequence[Any]], index: int, channels: Channels, sample: PageSample
) -> AfterRow:
    layout, writers = channels.layout.after, sample.writers
    code = Operation(after[layout.operation][index])
    writer = writers[index] if index < len(writers) and writers[index] >= 0 else None
    return AfterRow(
        word=code.name,
        letter=code.letter,
        style=style_of(code),
        code=int(code),
        columns=tuple(_value(after[i][index]) for i in layout.columns),
        case=_small(after[layout.case_number][index]) if layout.case_number is not None else None,
        row_id=cell(after[layout.row_id][index]),
        insert_from_update=_small(after[layout.insert_from_update][index]),
        number=(
            ""
            if sample.placement is None
            else str(sample.placement.numbers[index]).replace("-", MINUS)
        ),
        writer=writer,
        at=index,
    )


def _small(value: int | None) -> Cell:
    return NULL if value is None else Cell(number(value))


def row_limit(columns: int) -> int:
    """Return how many rows are shown of a table; fewer if it is wide.

    >>> row_limit(3), row_limit(24), row_limit(500)
    (30, 20, 5)
    """
    return min(MOST_ROWS, max(MOST_CELLS // max(columns, 1), 5))


def _drawn(sample: PageSample, limit: int) -> PageSample:
    # Spark's order of rows varies; the source's order is stable.
    order = source_order(sample)
    return rows_of(sample, order[first_of_each(case_numbers(sample)[order], limit)])
