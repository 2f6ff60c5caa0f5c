"""Row change processors, between the CASE and the sinks.

See the design document "Supporting MERGE", section "RowChangeProcessor implementation for MERGE".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.spi.operations import Era, Operation, RowChangeParadigm

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.spi.page import Page, PageLayout


class RowChangeProcessor(ABC):
    def __init__(self, layout: PageLayout, columns: pa.Schema) -> None:
        self.layout = layout
        self.input_schema = layout.input_schema(columns)
        self.output_schema = layout.output_schema(columns)

    @abstractmethod
    def transform_page(self, page: Page) -> Page:
        """Turn a page of ``input_schema`` into one of ``output_schema``.

        Rows with operation -1 (current era: with a NULL merge row) are dropped. The output may be
        empty.
        """

    def operations(self, page: Page) -> npt.NDArray[np.int8]:
        """Return the operation of every row, -1 for a NULL merge row."""
        self._check_channels(page)
        merge_row = page.column(self.layout.before.merge_row)
        if merge_row.null_count and self.layout.era is Era.DOCUMENTS:
            raise ValueError(
                f"The merge row may not be NULL; {merge_row.null_count} of {len(merge_row)} are"
            )
        flat = merge_row.flatten()[self.layout.merge_row.operation]
        operation: npt.NDArray[np.int8] = pc.fill_null(flat, int(Operation.NONE)).to_numpy(
            zero_copy_only=False
        )
        invalid = ascending(operation[~np.isin(operation, _INPUT_OPERATIONS)])
        if invalid.size:
            raise ValueError(
                f"Operation numbers {invalid.tolist()} cannot reach transform_page; it"
                " accepts 1, 2, 3 and -1"
            )
        return operation

    def _check_channels(self, page: Page) -> None:
        expected = self.layout.before.count
        if page.num_columns != expected:
            raise ValueError(
                f"transform_page takes {expected} channels ({', '.join(self.input_schema.names)});"
                f" got {page.num_columns}"
            )
        if not page.num_rows:
            raise ValueError("transform_page does not accept empty pages")

    def rows_produced(self, page: Page) -> npt.NDArray[np.int64]:
        operation = self.operations(page)
        return np.where(operation == Operation.NONE, 0, 1)


class ChangeOnlyUpdatedColumnsMergeProcessor(RowChangeProcessor):
    """For connectors that update columns in place: an UPDATE remains one row with operation 3 and
    all columns.
    """

    def transform_page(self, page: Page) -> Page:
        operation = self.operations(page)
        before, merge_row = self.layout.before, self.layout.merge_row
        fields = page.column(before.merge_row).flatten()
        arrays = [
            *(fields[index] for index in merge_row.columns),
            pa.array(operation),
            *([fields[merge_row.case_number]] if self.layout.after.case_number is not None else []),
            page.column(before.row_id),
            pa.array(np.zeros(page.num_rows, np.int8)),
        ]
        result = pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)
        acting = operation != Operation.NONE
        return result if acting.all() else result.filter(pa.array(acting))


class DeleteAndInsertMergeProcessor(RowChangeProcessor):
    """For connectors that delete and insert: an UPDATE becomes two rows, DELETE first.

    The DELETE row has the old values of the redistribution columns and NULL elsewhere, the INSERT
    row the new values; each can be sent to the writer of its own partition. In the current era both
    have the row id.
    """

    def transform_page(self, page: Page) -> Page:
        operation = self.operations(page)
        produced = _produced(operation)
        origin = np.repeat(np.arange(len(operation)), produced)
        from_update = operation[origin] == Operation.UPDATE
        # Output rows of one input row are adjacent, so a repeated origin marks the second one.
        second_half = np.zeros(len(origin), bool)
        second_half[1:] = origin[1:] == origin[:-1]
        deletes = (operation[origin] == Operation.DELETE) | (from_update & ~second_half)
        counts = {
            number: int(np.count_nonzero(operation == number)) for number in _INPUT_OPERATIONS
        }
        if (
            len(origin)
            != counts[Operation.INSERT] + counts[Operation.DELETE] + 2 * counts[Operation.UPDATE]
        ):
            raise AssertionError(f"{len(origin)} rows came out of {counts}")
        arrays = [
            *self._data(page, origin, deletes),
            pa.array(self._numbers(deletes, from_update)),
            *(
                [pa.array(np.zeros(len(origin), np.int32))]
                if self.layout.after.case_number is not None
                else []
            ),
            page.column(self.layout.before.row_id).take(
                pa.array(origin, mask=~self._with_row_id(deletes, from_update))
            ),
            pa.array((from_update & ~deletes).astype(np.int8)),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.output_schema)

    def rows_produced(self, page: Page) -> npt.NDArray[np.int64]:
        return _produced(self.operations(page))

    def _data(
        self, page: Page, origin: npt.NDArray[np.int64], deletes: npt.NDArray[np.bool_]
    ) -> list[pa.Array]:
        before = self.layout.before
        fields = page.column(before.merge_row).flatten()
        old_channels = dict(
            zip(
                self.layout.redistribution_columns, before.write_redistribution_columns, strict=True
            )
        )
        inserted = pa.array(origin, mask=deletes)
        both = pa.array(np.where(deletes, origin, origin + page.num_rows))
        data = []
        for index in self.layout.merge_row.columns:
            if index in old_channels:
                data.append(
                    pa.concat_arrays([page.column(old_channels[index]), fields[index]]).take(both)
                )
            else:
                data.append(fields[index].take(inserted))
        return data

    def _with_row_id(
        self, deletes: npt.NDArray[np.bool_], from_update: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        if self.layout.era is Era.CURRENT or self.layout.identifies_new_rows:
            return deletes | from_update
        return deletes

    def _numbers(
        self, deletes: npt.NDArray[np.bool_], from_update: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int8]:
        plain = np.where(deletes, Operation.DELETE, Operation.INSERT)
        if self.layout.era is Era.CURRENT:
            halves = np.where(deletes, Operation.UPDATE_DELETE, Operation.UPDATE_INSERT)
            plain = np.where(from_update, halves, plain)
        return plain.astype(np.int8)


def create_processor(
    paradigm: RowChangeParadigm, layout: PageLayout, columns: pa.Schema
) -> RowChangeProcessor:
    if paradigm is RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS:
        return ChangeOnlyUpdatedColumnsMergeProcessor(layout, columns)
    return DeleteAndInsertMergeProcessor(layout, columns)


def _produced(operation: npt.NDArray[np.int8]) -> npt.NDArray[np.int64]:
    return np.where(operation == Operation.UPDATE, 2, np.where(operation == Operation.NONE, 0, 1))


_INPUT_OPERATIONS: Final = np.array(
    [Operation.NONE, Operation.INSERT, Operation.DELETE, Operation.UPDATE], np.int8
)
