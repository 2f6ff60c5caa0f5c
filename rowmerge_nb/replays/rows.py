"""Matching of rows by values or row ids, and the expected rows after a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.ordering import other_rows
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
    fields = [pa.field(column.name, column.sql_type.arrow) for column in record.columns]
    arrays = [conform(page.column(index), field.type) for index, field in enumerate(fields)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def places_in(table: Page, rows: Page) -> npt.NDArray[np.int64]:
    """Return, for each row, the index of a distinct equal row of a table, or -1.

    >>> table = pa.RecordBatch.from_pydict({"a": [7, 8, 7]})
    >>> places_in(table, pa.RecordBatch.from_pydict({"a": [7, 9, 7, 7]})).tolist()
    [0, -1, 2, -1]
    """
    table_keys = row_keys(table.columns, table.num_rows)
    keys = row_keys(rows.columns, rows.num_rows)
    order = np.argsort(table_keys, kind="stable")
    sorted_keys = table_keys[order]
    # The n-th of equal rows matches the n-th one of the table.
    positions = np.searchsorted(sorted_keys, keys) + _ranks(keys)
    matches = positions < len(sorted_keys)
    matches[matches] = sorted_keys[positions[matches]] == keys[matches]
    result = np.full(len(keys), NOT_FOUND, np.int64)
    result[matches] = order[positions[matches]]
    return result


def _ranks(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    return ranks


class NamedRows:
    """Finds the target rows of pages by row id, and by the insert layout's columns if row ids
    repeat.
    """

    def __init__(self, record: Record) -> None:
        self._record = record
        self._along: tuple[int, ...] = ()
        self._order = self._keys = np.zeros(0, np.int64)
        if record.rows is not None and record.row_id is not None:
            self._sort([row_ids_of(record.rows)], record.rows.num_rows)
            if record.flow is Flow.MERGE and (self._keys[1:] == self._keys[:-1]).any():
                self._along = record.redistribution
                self._sort(
                    [
                        row_ids_of(record.rows),
                        *(record.rows.column(index) for index in self._along),
                    ],
                    record.rows.num_rows,
                )

    def _sort(self, columns: list[pa.Array], rows: int) -> None:
        keys = row_keys(columns, rows)
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]

    def of(self, page: Page) -> npt.NDArray[np.int64]:
        if not len(self._keys):
            return np.full(page.num_rows, NOT_FOUND, np.int64)
        ids = row_ids_in(self._record, page)
        keys = row_keys([ids, *(page.column(index) for index in self._along)], page.num_rows)
        positions = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        matches = (self._keys[positions] == keys) & ids.is_valid().to_numpy(zero_copy_only=False)
        return np.where(matches, self._order[positions], NOT_FOUND)


def row_ids_in(record: Record, page: Page) -> pa.Array:
    return page.column(0 if record.flow is Flow.UPDATABLE else record.layout.after.row_id)


def lacks_targets(
    record: Record, page: Page, targets: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return the rows that change a target row which the record does not have."""
    ids = row_ids_in(record, page)
    has_id: npt.NDArray[np.bool_] = ids.is_valid().to_numpy(zero_copy_only=False)
    if record.flow is Flow.MERGE:
        # The new row of an update may have the row id of the old one, and other values.
        operations = page.column(record.layout.after.operation).to_numpy(zero_copy_only=False)
        has_id &= ~np.isin(operations, [Operation.INSERT, Operation.UPDATE_INSERT])
    is_absent: npt.NDArray[np.bool_] = has_id & (targets == NOT_FOUND)
    return is_absent


def rows_left(
    record: Record, table: Page, places: npt.NDArray[np.int64], pages: Iterable[HandedPage]
) -> Page:
    rows_named = NamedRows(record)
    removed, added = [np.zeros(0, np.int64)], [table.slice(0, 0)]
    for handed_page in pages:
        page, targets = handed_page.page, rows_named.of(handed_page.page)
        if record.row_id is None:
            added.append(data_of(record, page))
            continue
        lacks_target = lacks_targets(record, page, targets)
        page, targets = page.filter(pa.array(~lacks_target)), targets[~lacks_target]
        if record.flow is Flow.UPDATABLE:
            removed.append(places[targets])
            if record.channels:
                added.append(_updated(record, table, page, places[targets]))
        else:
            operation = page.column(record.layout.after.operation).to_numpy(zero_copy_only=False)
            takes = np.isin(
                operation, [Operation.DELETE, Operation.UPDATE, Operation.UPDATE_DELETE]
            )
            gives = np.isin(
                operation, [Operation.INSERT, Operation.UPDATE, Operation.UPDATE_INSERT]
            )
            removed.append(places[targets[takes & (targets != NOT_FOUND)]])
            added.append(data_of(record, page).filter(pa.array(gives)))
    retained = other_rows(table.num_rows, np.concatenate(removed))
    return pa.concat_batches([table.take(pa.array(retained)), *added])


def _updated(record: Record, table: Page, page: Page, indexes: npt.NDArray[np.int64]) -> Page:
    assigned = dict(zip(record.updated.get(0, ()), page.columns[1:], strict=True))
    old = table.take(pa.array(indexes))
    arrays = [
        assigned.get(name, old.column(index)) for index, name in enumerate(table.schema.names)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=table.schema)


def difference(expected: Page, actual: Page) -> tuple[Page, Page]:
    """Compare rows regardless of order; return the missing and the unexpected ones.

    >>> missing, extra = difference(pa.RecordBatch.from_pydict({"a": [1, 2]}), pa.RecordBatch.from_pydict({"a": [2, 2]}))
    >>> missing.to_pydict(), extra.to_pydict()
    ({'a': [1]}, {'a': [2]})
    """
    missing, extra = (
        second.filter(pc.equal(pa.array(places_in(first, second)), NOT_FOUND))
        for first, second in ((actual, expected), (expected, actual))
    )
    return missing, extra
