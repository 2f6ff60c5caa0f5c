"""Rows found again: by their values in another table, by their row ids in a page; and the rows that a statement must leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.engine.tasks.identity import row_keys
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import row_ids_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.trace.record import HandedPage, Record

NOT_FOUND = -1


def data_of(record: Record, page: Page) -> Page:
    """Return the first channels of a page as the columns of the record's table.

    Raises:
        pyarrow.ArrowInvalid: a value does not fit its column.
    """
    fields = [pa.field(column.name, column.sql_type.arrow) for column in record.columns]
    arrays = [conform(page.column(index), field.type) for index, field in enumerate(fields)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def places_in(table: Page, rows: Page) -> npt.NDArray[np.int64]:
    """Return, for each of some rows, the place of a row of a table that has the same values; -1 where there is none left.

    >>> table = pa.RecordBatch.from_pydict({"a": [7, 8, 7]})
    >>> places_in(table, pa.RecordBatch.from_pydict({"a": [7, 9, 7, 7]})).tolist()
    [0, -1, 2, -1]
    """
    there, wanted = row_keys(table.columns, table.num_rows), row_keys(rows.columns, rows.num_rows)
    order = np.argsort(there, kind="stable")
    sorted_keys = there[order]
    # Of equal rows the first takes the first, the second the second.
    place = np.searchsorted(sorted_keys, wanted) + _ranks(wanted)
    found = place < len(sorted_keys)
    found[found] = sorted_keys[place[found]] == wanted[found]
    result = np.full(len(wanted), NOT_FOUND, np.int64)
    result[found] = order[place[found]]
    return result


def _ranks(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how many equal keys stand before each key."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    return ranks


class NamedRows:
    """Finds the rows of the target that pages speak of, by their row ids.

    Where row ids repeat, as those of a store that numbers the rows of each partition, the columns decide that come along with them.

    Args:
        record: the record.
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        self._along: tuple[int, ...] = ()
        self._order = self._keys = np.zeros(0, np.int64)
        if record.rows is not None and record.row_id is not None:
            self._sort([row_ids_of(record.rows)], record.rows.num_rows)
            if record.flow is Flow.MERGE and (self._keys[1:] == self._keys[:-1]).any():
                self._along = record.redistribution
                self._sort([row_ids_of(record.rows), *(record.rows.column(index) for index in self._along)], record.rows.num_rows)

    def _sort(self, columns: list[pa.Array], rows: int) -> None:
        keys = row_keys(columns, rows)
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def of(self, page: Page) -> npt.NDArray[np.int64]:
        """Return for each row of a page its place among the record's rows of the target; -1 of a row to insert, and of one that is not there."""
        if not len(self._keys):
            return np.full(page.num_rows, NOT_FOUND, np.int64)
        ids = row_ids_in(self._record, page)
        asked = row_keys([ids, *(page.column(index) for index in self._along)], page.num_rows)
        place = np.minimum(np.searchsorted(self._keys, asked), len(self._keys) - 1)
        found = (self._keys[place] == asked) & ids.is_valid().to_numpy(zero_copy_only=False)
        return np.where(found, self._order[place], NOT_FOUND)


def row_ids_in(record: Record, page: Page) -> pa.Array:
    """Return the row ids of a page of a record; NULL of rows to insert."""
    return page.column(0 if record.flow is Flow.UPDATABLE else record.layout.after.row_id)


def rows_left(record: Record, table: Page, places: npt.NDArray[np.int64], pages: Iterable[HandedPage]) -> Page:
    """Return the rows that must be left when pages have been stored.

    Args:
        record: the record.
        table: the rows of the table before.
        places: for each row of the record its place in the table. Rows of the pages that speak of another one are left out.
        pages: the pages.
    """
    rows_named = NamedRows(record)
    gone, added = [np.zeros(0, np.int64)], [table.slice(0, 0)]
    for handed in pages:
        page, named = handed.page, rows_named.of(handed.page)
        if record.row_id is None:
            added.append(data_of(record, page))
            continue
        ids = row_ids_in(record, page)
        there = (named != NOT_FOUND) | ids.is_null().to_numpy(zero_copy_only=False)
        page, named = page.filter(pa.array(there)), named[there]
        if record.flow is Flow.UPDATABLE:
            gone.append(places[named])
            if record.channels:
                added.append(_updated(record, table, page, places[named]))
        else:
            operation = page.column(record.layout.after.operation).to_numpy(zero_copy_only=False)
            takes = np.isin(operation, [Operation.DELETE, Operation.UPDATE, Operation.UPDATE_DELETE])
            gives = np.isin(operation, [Operation.INSERT, Operation.UPDATE, Operation.UPDATE_INSERT])
            gone.append(places[named[takes & (named != NOT_FOUND)]])
            added.append(data_of(record, page).filter(pa.array(gives)))
    kept = np.setdiff1d(np.arange(table.num_rows), np.concatenate(gone))
    return pa.concat_batches([table.take(pa.array(kept)), *added])


def _updated(record: Record, table: Page, page: Page, named: npt.NDArray[np.int64]) -> Page:
    """Return rows of a table with the new values that a page of the older flow has for them."""
    assigned = dict(zip(record.updated.get(0, ()), page.columns[1:], strict=True))
    old = table.take(pa.array(named))
    arrays = [assigned.get(name, old.column(index)) for index, name in enumerate(table.schema.names)]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def difference(expected: Page, there: Page) -> tuple[Page, Page]:
    """Compare rows without regard to their order: gives those that are missing, and those that nobody asked for.

    >>> missing, extra = difference(pa.RecordBatch.from_pydict({"a": [1, 2]}), pa.RecordBatch.from_pydict({"a": [2, 2]}))
    >>> missing.to_pydict(), extra.to_pydict()
    ({'a': [1]}, {'a': [2]})
    """
    missing, extra = (
        second.filter(pc.equal(pa.array(places_in(first, second)), NOT_FOUND))
        for first, second in ((there, expected), (expected, there))
    )
    return missing, extra
