"""Helpers for pages: a page is a `pyarrow.RecordBatch`, and a channel one of its arrays.

The layouts are those of "Supporting MERGE", section "RowChangeProcessor implementation for MERGE".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.spi.operations import Era, Operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Page: TypeAlias = pa.RecordBatch

HASH: Final = "hash"
ROW_ID: Final = "row_id"
MERGE_ROW: Final = "merge_row"
PRESENT: Final = "present"
OPERATION: Final = "operation"
CASE_NUMBER: Final = "case_number"
IS_DISTINCT: Final = "is_distinct"
INSERT_FROM_UPDATE: Final = "insert_from_update"


@dataclass(frozen=True)
class InputChannels:
    """The channels of the page before ``transform_page``.

    Args:
        write_redistribution_columns: the insert layout's columns, with the target row's values.
        hash: their hash; None without such columns, and in the current era.
        is_distinct: whether the row is the only match of its target row.
    """

    write_redistribution_columns: range
    hash: int | None
    row_id: int
    merge_row: int
    case_number: int
    is_distinct: int

    @property
    def count(self) -> int:
        """The number of channels."""
        return self.is_distinct + 1


@dataclass(frozen=True)
class MergeRowFields:
    """The fields of a merge row.

    Args:
        present: whether there is a target row.
        operation: the operation of the clause that fired.
    """

    columns: range
    present: int
    operation: int
    case_number: int

    @property
    def count(self) -> int:
        """The number of fields."""
        return self.case_number + 1


@dataclass(frozen=True)
class OutputChannels:
    """The channels of the page after ``transform_page``; the sink gets all but the last one.

    Args:
        case_number: None in the era of the documents.
        insert_from_update: 1 for the INSERT half of an update, for the row count.
    """

    columns: range
    operation: int
    case_number: int | None
    row_id: int
    insert_from_update: int

    @property
    def stored(self) -> range:
        """The channels that the sink gets."""
        return range(self.insert_from_update)

    @property
    def count(self) -> int:
        """The number of channels."""
        return self.insert_from_update + 1


@dataclass(frozen=True)
class PageLayout:
    """The channels of one statement's pages: before ``transform_page``, after it, and in the sink.

    It is the same for both paradigms. Find channels by this class, not by name, since a table
    column may have the same name.

    Args:
        redistribution_columns: indices of the insert layout's columns, in table order.
        identifies_new_rows: `ColumnHandle.identifies_new_rows` of the row id.

    >>> layout = PageLayout(column_count=3, redistribution_columns=(2,))
    >>> layout.before
    InputChannels(write_redistribution_columns=range(0, 1), hash=1, row_id=2, merge_row=3, case_number=4, is_distinct=5)
    >>> layout.merge_row
    MergeRowFields(columns=range(0, 3), present=3, operation=4, case_number=5)
    >>> layout.after
    OutputChannels(columns=range(0, 3), operation=3, case_number=None, row_id=4, insert_from_update=5)
    >>> layout.after.stored
    range(0, 5)

    The current era has no ``hash``, and passes the case number to the sink:

    >>> current = PageLayout(column_count=3, redistribution_columns=(2,), era=Era.CURRENT)
    >>> current.before
    InputChannels(write_redistribution_columns=range(0, 1), hash=None, row_id=1, merge_row=2, case_number=3, is_distinct=4)
    >>> current.after
    OutputChannels(columns=range(0, 3), operation=3, case_number=4, row_id=5, insert_from_update=6)
    """

    column_count: int
    redistribution_columns: tuple[int, ...] = ()
    era: Era = Era.DOCUMENTS
    identifies_new_rows: bool = False

    @classmethod
    def of_output(
        cls,
        channel_count: int,
        redistribution_columns: tuple[int, ...] = (),
        era: Era = Era.DOCUMENTS,
    ) -> PageLayout:
        """Build the layout from the number of channels after ``transform_page``.

        >>> PageLayout.of_output(7, era=Era.CURRENT).column_count
        3
        """
        return cls(channel_count - cls(0, era=era).after.count, redistribution_columns, era)

    @classmethod
    def of_stored(cls, page: Page, column_count: int) -> PageLayout:
        """Build the layout of a merge sink's page; the number of channels determines the era.

        Raises:
            ValueError: the number of channels fits no era.

        >>> page = pa.RecordBatch.from_pydict({"a": [1], "operation": pa.array([2], pa.int8()), "row_id": [7]})
        >>> PageLayout.of_stored(page, 1).after.row_id
        2
        """
        for era in Era:
            layout = cls(column_count, era=era)
            if len(layout.after.stored) == page.num_columns:
                return layout
        raise ValueError(
            f"A page for a merge sink has {column_count} table columns and 2 or 3 more; this one"
            f" has {page.num_columns} channels"
        )

    @cached_property
    def before(self) -> InputChannels:
        """The page before ``transform_page``."""
        redistribution = range(len(self.redistribution_columns))
        hashed = bool(redistribution) and self.era is Era.DOCUMENTS
        row_id = len(redistribution) + hashed
        return InputChannels(
            write_redistribution_columns=redistribution,
            hash=row_id - 1 if hashed else None,
            row_id=row_id,
            merge_row=row_id + 1,
            case_number=row_id + 2,
            is_distinct=row_id + 3,
        )

    @cached_property
    def merge_row(self) -> MergeRowFields:
        """The merge row."""
        count = self.column_count
        return MergeRowFields(
            columns=range(count), present=count, operation=count + 1, case_number=count + 2
        )

    @cached_property
    def after(self) -> OutputChannels:
        """The page after ``transform_page``."""
        count, numbered = self.column_count, self.era is Era.CURRENT
        row_id = count + 1 + numbered
        return OutputChannels(
            columns=range(count),
            operation=count,
            case_number=count + 1 if numbered else None,
            row_id=row_id,
            insert_from_update=row_id + 1,
        )

    def input_schema(self, columns: pa.Schema) -> pa.Schema:
        """Return the schema before ``transform_page``; ``columns`` are the table's, then the row
        id.

        >>> PageLayout(2, (1,)).input_schema(pa.schema([("customer", "string"), ("address", "string"), ("$id", "int64")])).names
        ['address', 'hash', 'row_id', 'merge_row', 'case_number', 'is_distinct']
        """
        *table, row_id = columns
        control = [
            pa.field(PRESENT, pa.bool_()),
            pa.field(OPERATION, pa.int8()),
            pa.field(CASE_NUMBER, pa.int32()),
        ]
        return pa.schema(
            [
                *(table[index] for index in self.redistribution_columns),
                *([pa.field(HASH, pa.int64())] if self.before.hash is not None else []),
                pa.field(ROW_ID, row_id.type),
                pa.field(MERGE_ROW, pa.struct([*table, *control])),
                pa.field(CASE_NUMBER, pa.int32()),
                pa.field(IS_DISTINCT, pa.int8()),
            ]
        )

    def output_schema(self, columns: pa.Schema) -> pa.Schema:
        """Return the schema after ``transform_page``; ``columns`` are the table's, then the row id.

        >>> columns = pa.schema([("customer", "string"), ("address", "string"), ("$id", "int64")])
        >>> PageLayout(2, (1,)).output_schema(columns).names
        ['customer', 'address', 'operation', 'row_id', 'insert_from_update']
        """
        *table, row_id = columns
        number = [pa.field(CASE_NUMBER, pa.int32())] if self.after.case_number is not None else []
        control = [
            pa.field(OPERATION, pa.int8()),
            *number,
            pa.field(ROW_ID, row_id.type),
            pa.field(INSERT_FROM_UPDATE, pa.int8()),
        ]
        return pa.schema([*table, *control])

    def stored_page(self, page: Page) -> Page:
        """Return the sink's page: all channels but ``insert_from_update``."""
        return page.select(list(self.after.stored))


def operations_of(page: Page, column_count: int) -> pa.Array:
    """Return the operation channel of a merge sink's page (channel ``column_count``, int8).

    >>> page = pa.RecordBatch.from_pydict({"a": [1], "operation": pa.array([2], pa.int8()), "row_id": [7]})
    >>> operations_of(page, 1).to_pylist()
    [2]
    """
    return page.column(PageLayout(column_count).after.operation)


def row_ids_of(page: Page | pa.Table) -> pa.Array:
    """Return the last channel: the row ids of a sink's page, a target's scan, or
    `MergePage.deletions`.

    >>> row_ids_of(pa.RecordBatch.from_pydict({"a": [1], "operation": pa.array([2], pa.int8()), "row_id": [7]})).to_pylist()
    [7]
    """
    return page.column(page.num_columns - 1)


def rows_with(page: Page, column_count: int, operations: Iterable[int]) -> Page:
    """Return the rows of a sink's page with one of the operations.

    >>> page = pa.RecordBatch.from_pydict({"a": [1, 2], "operation": pa.array([2, 1], pa.int8()), "row_id": [7, None]})
    >>> rows_with(page, 1, [Operation.DELETE]).to_pydict()
    {'a': [1], 'operation': [2], 'row_id': [7]}
    """
    numbers = pa.array([int(operation) for operation in operations], pa.int8())
    return page.filter(pc.is_in(operations_of(page, column_count), value_set=numbers))


@dataclass(frozen=True)
class MergePage:
    """The deletions and insertions of a page (Trino's ``MergePage``).

    Args:
        deletions: all table columns, of which only the redistribution columns are set, and
            ``row_id``.
        insertions: the table columns of the rows to add.
    """

    deletions: Page | None
    insertions: Page | None


def split_page(page: Page, column_count: int) -> MergePage:
    """Split a sink's page into deletions (operations 2, 5) and insertions (1, 4).

    Raises:
        ValueError: the number of channels is wrong, or an operation is not for a delete-and-insert
            sink.

    >>> page = pa.RecordBatch.from_pydict({"a": [1, 2], "operation": pa.array([2, 1], pa.int8()), "row_id": [7, None]})
    >>> parts = split_page(page, 1)
    >>> parts.deletions.to_pydict(), parts.insertions.to_pydict()
    ({'a': [1], 'row_id': [7]}, {'a': [2]})
    """
    channels = PageLayout.of_stored(page, column_count).after
    operation = page.column(channels.operation)
    deleted = pc.is_in(operation, value_set=_DELETES)
    inserted = pc.is_in(operation, value_set=INSERTS)
    strange = pc.unique(operation.filter(pc.invert(pc.or_(deleted, inserted)))).to_pylist()
    if strange:
        raise ValueError(
            f"Operations {strange} are not for a delete-and-insert sink, which gets 1, 2, 4 and 5"
        )
    deletions = page.select([*channels.columns, channels.row_id]).filter(deleted)
    insertions = page.select(list(channels.columns)).filter(inserted)
    return MergePage(
        deletions if deletions.num_rows else None, insertions if insertions.num_rows else None
    )


def concat_pages(pages: Sequence[Page]) -> Page:
    """Concatenate one or more pages of the same schema.

    >>> concat_pages([pa.RecordBatch.from_pydict({"a": [1]}), pa.RecordBatch.from_pydict({"a": [2]})]).num_rows
    2
    """
    return pages[0] if len(pages) == 1 else pa.concat_batches(pages)


_DELETES: Final = pa.array([Operation.DELETE, Operation.UPDATE_DELETE], pa.int8())
INSERTS: Final = pa.array([Operation.INSERT, Operation.UPDATE_INSERT], pa.int8())
