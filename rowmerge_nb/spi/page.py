"""Helpers for pages. A page is a `pyarrow.RecordBatch`, a channel one of its named arrays; there is no class of our own.

The layouts are those of the seed document "Supporting MERGE", section "RowChangeProcessor implementation for MERGE".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.spi.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "CASE_NUMBER",
    "HASH",
    "INSERT_FROM_UPDATE",
    "IS_DISTINCT",
    "MERGE_ROW",
    "OPERATION",
    "PRESENT",
    "ROW_ID",
    "MergePage",
    "Page",
    "concat_pages",
    "operations_of",
    "rows_with",
    "split_page",
]

Page: TypeAlias = pa.RecordBatch

HASH: Final = "hash"
ROW_ID: Final = "row_id"
MERGE_ROW: Final = "merge_row"
PRESENT: Final = "present"
OPERATION: Final = "operation"
CASE_NUMBER: Final = "case_number"
IS_DISTINCT: Final = "is_distinct"
INSERT_FROM_UPDATE: Final = "insert_from_update"


def operations_of(page: Page, column_count: int) -> pa.Array:
    """Give the operation channel of a page that a merge sink gets (channel ``column_count``, int8).

    >>> page = pa.RecordBatch.from_pydict({"a": [1], "operation": pa.array([2], pa.int8()), "row_id": [7]})
    >>> operations_of(page, 1).to_pylist()
    [2]
    """
    return page.column(column_count)


def rows_with(page: Page, column_count: int, operations: Iterable[int]) -> Page:
    """Keep the rows of a sink's page whose operation is one of those given.

    >>> page = pa.RecordBatch.from_pydict({"a": [1, 2], "operation": pa.array([2, 1], pa.int8()), "row_id": [7, None]})
    >>> rows_with(page, 1, [Operation.DELETE]).to_pydict()
    {'a': [1], 'operation': [2], 'row_id': [7]}
    """
    wanted = pa.array([int(operation) for operation in operations], pa.int8())
    return page.filter(pc.is_in(page.column(column_count), value_set=wanted))


@dataclass(frozen=True)
class MergePage:
    """What a page asks of a delete-and-insert connector (Trino's ``MergePage``).

    Args:
        deletions: row ids, redistribution columns and nulls: all table columns followed by ``row_id``; None if there are none.
        insertions: the table columns of the rows to add; None if there are none.
    """

    deletions: Page | None
    insertions: Page | None


def split_page(page: Page, column_count: int) -> MergePage:
    """Split a sink's page into what is to be deleted (2, 5) and what is to be inserted (1, 4).

    Args:
        page: table columns, ``operation``, ``case_number`` (in the current era only), ``row_id``.
        column_count: how many table columns there are.

    Raises:
        ValueError: the page has another number of channels, or an operation that a delete-and-insert sink never gets.

    >>> page = pa.RecordBatch.from_pydict({"a": [1, 2], "operation": pa.array([2, 1], pa.int8()), "row_id": [7, None]})
    >>> parts = split_page(page, 1)
    >>> parts.deletions.to_pydict(), parts.insertions.to_pydict()
    ({'a': [1], 'row_id': [7]}, {'a': [2]})
    """
    if page.num_columns - column_count not in {2, 3}:
        msg = (
            f"A page for a merge sink has {column_count} table columns and 2 or 3 more; this one has {page.num_columns} channels"
        )
        raise ValueError(msg)
    operation = page.column(column_count)
    deleted = pc.is_in(operation, value_set=_DELETES)
    inserted = pc.is_in(operation, value_set=_INSERTS)
    strange = pc.unique(operation.filter(pc.invert(pc.or_(deleted, inserted)))).to_pylist()
    if strange:
        msg = f"Operations {strange} are not for a delete-and-insert sink, which gets 1, 2, 4 and 5"
        raise ValueError(msg)
    data = list(range(column_count))
    deletions = page.select([*data, page.num_columns - 1]).filter(deleted)
    insertions = page.select(data).filter(inserted)
    return MergePage(deletions if deletions.num_rows else None, insertions if insertions.num_rows else None)


def concat_pages(pages: Sequence[Page]) -> Page:
    """Join pages of one schema into one page; at least one is needed.

    >>> concat_pages([pa.RecordBatch.from_pydict({"a": [1]}), pa.RecordBatch.from_pydict({"a": [2]})]).num_rows
    2
    """
    return pages[0] if len(pages) == 1 else pa.concat_batches(pages)


_DELETES: Final = pa.array([Operation.DELETE, Operation.UPDATE_DELETE], pa.int8())
_INSERTS: Final = pa.array([Operation.INSERT, Operation.UPDATE_INSERT], pa.int8())
