"""The rows of RETURNING, computed for changed rows only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.joined_rows import NO_ROW, JoinedRows, JoinedSide
from rowmerge_nb.engine.tasks.searched_case import read_by
from rowmerge_nb.spi.operations import Operation

if TYPE_CHECKING:
    from rowmerge_nb.engine.tasks.page_program import AssignedColumn, PageEvaluator


@dataclass(frozen=True)
class ReturnedRows:
    fields: tuple[str, ...]
    assignments: tuple[AssignedColumn, ...]
    values: tuple[AssignedColumn, ...]

    def of(
        self, rows: JoinedRows, merge_row: pa.StructArray, evaluator: PageEvaluator
    ) -> pa.StructArray:
        """Return a row per joined row; NULL for unchanged rows."""
        merge_page = pa.RecordBatch.from_arrays(merge_row.flatten(), names=list(self.fields))
        *_, operations, _ = merge_page.columns
        changed = np.flatnonzero(
            pc.fill_null(operations, Operation.NONE).to_numpy(zero_copy_only=False) > 0
        )
        row_type = pa.struct([pa.field(column.name, column.type) for column in self.values])
        if not len(changed):
            return pa.nulls(rows.count, row_type)
        some = JoinedRows(rows.count, (*rows.sides, JoinedSide(merge_page))).picked(changed)
        arrays = evaluator.values_of(self.assignments, some.page(read_by(self.assignments)), some)
        known_page = pa.RecordBatch.from_arrays(
            arrays, names=[column.name for column in self.assignments]
        )
        some = JoinedRows(some.count, (*some.sides, JoinedSide(known_page)))
        values = evaluator.values_of(self.values, some.page(read_by(self.values)), some)
        row = pa.StructArray.from_arrays(values, fields=list(row_type))
        indexes = np.full(rows.count, NO_ROW)
        indexes[changed] = np.arange(len(changed))
        return JoinedSide(merge_page, indexes).taken(row)
