"""Row change processors: what the engine does between the CASE and the sinks.

Seed document "Supporting MERGE", section "RowChangeProcessor implementation for MERGE". Both processors work on whole
columns; nothing here knows Spark.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.spi.operations import Era, Operation, RowChangeParadigm
from rowmerge_nb.spi.page import CASE_NUMBER, HASH, INSERT_FROM_UPDATE, IS_DISTINCT, MERGE_ROW, OPERATION, PRESENT, ROW_ID

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.spi.page import Page

__all__ = [
    "ChangeOnlyUpdatedColumnsMergeProcessor",
    "DeleteAndInsertMergeProcessor",
    "MergeLayout",
    "RowChangeProcessor",
    "create_processor",
]


@dataclass(frozen=True)
class MergeLayout:
    """Which channels the pages of one merge have.

    Args:
        columns: the table's columns, in table order.
        redistribution_columns: names of the insert layout's columns, in table order.
        row_id: the type of the row id.
        has_hash: the table is partitioned or bucketed, so a ``hash`` channel is there.
        era: whose page layout.

    >>> layout = MergeLayout((pa.field("customer", pa.string()), pa.field("address", pa.string())), ("address",), pa.int64(), True)
    >>> layout.input_schema.names
    ['address', 'hash', 'row_id', 'merge_row', 'case_number', 'is_distinct']
    >>> layout.output_schema.names
    ['customer', 'address', 'operation', 'row_id', 'insert_from_update']
    """

    columns: tuple[pa.Field, ...]
    redistribution_columns: tuple[str, ...]
    row_id: pa.DataType
    has_hash: bool
    era: Era = Era.DOCUMENTS

    @property
    def merge_row(self) -> pa.DataType:
        """The type of the merge row: the table's columns, ``present``, ``operation``, ``case_number``."""
        control = [pa.field(PRESENT, pa.bool_()), pa.field(OPERATION, pa.int8()), pa.field(CASE_NUMBER, pa.int32())]
        return pa.struct([*self.columns, *control])

    @property
    def input_schema(self) -> pa.Schema:
        """The channels of the page that ``transform_page`` gets, in the document's order."""
        by_name = {field.name: field for field in self.columns}
        return pa.schema(
            [
                *(by_name[name] for name in self.redistribution_columns),
                *([pa.field(HASH, pa.int64())] if self.has_hash else []),
                pa.field(ROW_ID, self.row_id),
                pa.field(MERGE_ROW, self.merge_row),
                pa.field(CASE_NUMBER, pa.int32()),
                pa.field(IS_DISTINCT, pa.int8()),
            ]
        )

    @property
    def sink_schema(self) -> pa.Schema:
        """The channels of the page that a merge sink gets."""
        number = [pa.field(CASE_NUMBER, pa.int32())] if self.era is Era.CURRENT else []
        return pa.schema([*self.columns, pa.field(OPERATION, pa.int8()), *number, pa.field(ROW_ID, self.row_id)])

    @property
    def output_schema(self) -> pa.Schema:
        """The channels of the page that ``transform_page`` gives: the sink's, and ``insert_from_update``."""
        return self.sink_schema.append(pa.field(INSERT_FROM_UPDATE, pa.int8()))


class RowChangeProcessor(ABC):
    """Turns merge rows into rows to store.

    The connector never sees the processor; it chooses one by its paradigm.
    """

    def __init__(self, layout: MergeLayout) -> None:
        self.layout = layout
        self._row_id = len(layout.redistribution_columns) + layout.has_hash

    @abstractmethod
    def transform_page(self, page: Page) -> Page:
        """Turn a page of ``layout.input_schema`` into one of ``layout.output_schema``.

        Rows with operation -1 (in the current era: with a NULL merge row) do not leave. The output may be empty.

        Raises:
            ValueError: the page is empty, has other channels, or an operation number that cannot be; the message has the numbers.
        """

    def operations(self, page: Page) -> npt.NDArray[np.int8]:
        """Give the operation of every row, -1 where the merge row is NULL.

        Raises:
            ValueError: another number than 1, 2, 3 and -1, or a NULL merge row in the era of the documents.
        """
        self._check_channels(page)
        merge_row = page.column(self._row_id + 1)
        if merge_row.null_count and self.layout.era is Era.DOCUMENTS:
            msg = f"The merge row may not be NULL; {merge_row.null_count} of {len(merge_row)} are"
            raise ValueError(msg)
        flat = merge_row.flatten()[len(self.layout.columns) + 1]
        operation: npt.NDArray[np.int8] = pc.fill_null(flat, int(Operation.NONE)).to_numpy(zero_copy_only=False)
        strange = np.setdiff1d(operation, _INPUT_OPERATIONS)
        if strange.size:
            msg = f"Operation numbers {strange.tolist()} cannot reach transform_page; it takes 1, 2, 3 and -1"
            raise ValueError(msg)
        return operation

    def _check_channels(self, page: Page) -> None:
        expected = len(self.layout.input_schema)
        if page.num_columns != expected:
            msg = (
                f"transform_page takes {expected} channels ({', '.join(self.layout.input_schema.names)}); got {page.num_columns}"
            )
            raise ValueError(msg)
        if not page.num_rows:
            msg = "transform_page does not take empty pages"
            raise ValueError(msg)

    def rows_produced(self, page: Page) -> npt.NDArray[np.int64]:
        """Give, per input row, how many rows of the output it becomes: 0, 1 or 2."""
        operation = self.operations(page)
        return np.where(operation == Operation.NONE, 0, 1)


class ChangeOnlyUpdatedColumnsMergeProcessor(RowChangeProcessor):
    """For connectors that update columns of rows in place: an UPDATE stays one row with operation 3 and all columns filled.

    >>> layout = MergeLayout((pa.field("v", pa.int64()),), (), pa.int64(), False)
    >>> row = {"v": 5, "present": True, "operation": 3, "case_number": 0}
    >>> page = pa.RecordBatch.from_pylist(
    ...     [{"row_id": 7, "merge_row": row, "case_number": 0, "is_distinct": 1}], schema=layout.input_schema)
    >>> ChangeOnlyUpdatedColumnsMergeProcessor(layout).transform_page(page).to_pylist()
    [{'v': 5, 'operation': 3, 'row_id': 7, 'insert_from_update': 0}]
    """

    def transform_page(self, page: Page) -> Page:
        """Take the columns out of the merge row and drop the rows where nothing fired."""
        operation = self.operations(page)
        fields = page.column(self._row_id + 1).flatten()
        number = [fields[-1]] if self.layout.era is Era.CURRENT else []
        arrays = [
            *fields[: len(self.layout.columns)],
            pa.array(operation),
            *number,
            page.column(self._row_id),
            pa.array(np.zeros(page.num_rows, np.int8)),
        ]
        result = pa.RecordBatch.from_arrays(arrays, schema=self.layout.output_schema)
        acting = operation != Operation.NONE
        return result if acting.all() else result.filter(pa.array(acting))


class DeleteAndInsertMergeProcessor(RowChangeProcessor):
    """For connectors that delete and insert: an UPDATE becomes two rows, the DELETE half first.

    The DELETE half carries the old values of the redistribution columns and nulls elsewhere, the INSERT half the new row; so
    each can be sent to the writer of its own partition.

    >>> layout = MergeLayout((pa.field("v", pa.int64()),), (), pa.int64(), False)
    >>> row = {"v": 5, "present": True, "operation": 3, "case_number": 0}
    >>> page = pa.RecordBatch.from_pylist(
    ...     [{"row_id": 7, "merge_row": row, "case_number": 0, "is_distinct": 1}], schema=layout.input_schema)
    >>> for row in DeleteAndInsertMergeProcessor(layout).transform_page(page).to_pylist():
    ...     print(row)
    {'v': None, 'operation': 2, 'row_id': 7, 'insert_from_update': 0}
    {'v': 5, 'operation': 1, 'row_id': None, 'insert_from_update': 1}
    """

    def transform_page(self, page: Page) -> Page:
        """Split updates in two, keep the old place of what is deleted, and drop the rows where nothing fired."""
        operation = self.operations(page)
        produced = _produced(operation)
        origin = np.repeat(np.arange(len(operation)), produced)
        from_update = operation[origin] == Operation.UPDATE
        # Rows of one input row stand together, so the second one is where its origin repeats.
        second_half = np.zeros(len(origin), bool)
        second_half[1:] = origin[1:] == origin[:-1]
        deletes = (operation[origin] == Operation.DELETE) | (from_update & ~second_half)
        counts = {kind: int(np.count_nonzero(operation == kind)) for kind in _INPUT_OPERATIONS}
        if len(origin) != counts[Operation.INSERT] + counts[Operation.DELETE] + 2 * counts[Operation.UPDATE]:
            msg = f"{len(origin)} rows came out of {counts}"
            raise AssertionError(msg)
        arrays = [
            *self._data(page, origin, deletes),
            pa.array(self._numbers(deletes, from_update)),
            *([pa.array(np.zeros(len(origin), np.int32))] if self.layout.era is Era.CURRENT else []),
            page.column(self._row_id).take(pa.array(origin, mask=~deletes)),
            pa.array((from_update & ~deletes).astype(np.int8)),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.layout.output_schema)

    def rows_produced(self, page: Page) -> npt.NDArray[np.int64]:
        """Give, per input row, how many rows of the output it becomes: an UPDATE becomes 2."""
        return _produced(self.operations(page))

    def _data(self, page: Page, origin: npt.NDArray[np.int64], deletes: npt.NDArray[np.bool_]) -> list[pa.Array]:
        fields = page.column(self._row_id + 1).flatten()
        inserted = pa.array(origin, mask=deletes)
        both = pa.array(np.where(deletes, origin, origin + page.num_rows))
        data = []
        for field, new in zip(self.layout.columns, fields, strict=False):
            if field.name in self.layout.redistribution_columns:
                old = page.column(self.layout.redistribution_columns.index(field.name))
                data.append(pa.concat_arrays([old, new]).take(both))
            else:
                data.append(new.take(inserted))
        return data

    def _numbers(self, deletes: npt.NDArray[np.bool_], from_update: npt.NDArray[np.bool_]) -> npt.NDArray[np.int8]:
        plain = np.where(deletes, Operation.DELETE, Operation.INSERT)
        if self.layout.era is Era.CURRENT:
            halves = np.where(deletes, Operation.UPDATE_DELETE, Operation.UPDATE_INSERT)
            plain = np.where(from_update, halves, plain)
        return plain.astype(np.int8)


def create_processor(paradigm: RowChangeParadigm, layout: MergeLayout) -> RowChangeProcessor:
    """Make the processor of a paradigm.

    >>> layout = MergeLayout((pa.field("v", pa.int64()),), (), pa.int64(), False)
    >>> type(create_processor(RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW, layout)).__name__
    'DeleteAndInsertMergeProcessor'
    """
    if paradigm is RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS:
        return ChangeOnlyUpdatedColumnsMergeProcessor(layout)
    return DeleteAndInsertMergeProcessor(layout)


def _produced(operation: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    return np.where(operation == Operation.UPDATE, 2, np.where(operation == Operation.NONE, 0, 1))


_INPUT_OPERATIONS: Final = np.array([Operation.NONE, Operation.INSERT, Operation.DELETE, Operation.UPDATE], np.int8)
