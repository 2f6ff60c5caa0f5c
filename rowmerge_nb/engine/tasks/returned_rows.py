"""The rows of RETURNING, computed on pages: of the rows for which a clause changes something, and of no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.joined_rows import NO_ROW, JoinedRows, Side
from rowmerge_nb.engine.tasks.searched_case import read_by
from rowmerge_nb.spi.operations import Operation

if TYPE_CHECKING:
    from rowmerge_nb.engine.tasks.page_program import AssignedColumn, PageEvaluator


@dataclass(frozen=True)
class ReturnedRows:
    """Computes what RETURNING gives back.

    Args:
        fields: the channels of the merge row's fields.
        known: what is known of a change, over these and the joined columns.
        values: the values that are given back, over the joined columns and what is known.
    """

    fields: tuple[str, ...]
    known: tuple[AssignedColumn, ...]
    values: tuple[AssignedColumn, ...]

    def of(self, rows: JoinedRows, merge_row: pa.StructArray, evaluator: PageEvaluator) -> pa.StructArray:
        """Return the row of every joined row; NULL of those that stay as they are.

        Args:
            rows: joined rows.
            merge_row: the merge row of each.
            evaluator: computes values.

        Raises:
            ExecutionError: a value cannot be computed for a row; with its place.
        """
        made = pa.RecordBatch.from_arrays(merge_row.flatten(), names=list(self.fields))
        *_, operations, _ = made.columns
        changed = np.flatnonzero(pc.fill_null(operations, Operation.NONE).to_numpy(zero_copy_only=False) > 0)
        kind = pa.struct([pa.field(column.name, column.type) for column in self.values])
        if not len(changed):
            return pa.nulls(rows.count, kind)
        some = JoinedRows(rows.count, (*rows.sides, Side(made))).picked(changed)
        known = evaluator.values_of(self.known, some.page(read_by(self.known)), some)
        beside = pa.RecordBatch.from_arrays(known, names=[column.name for column in self.known])
        some = JoinedRows(some.count, (*some.sides, Side(beside)))
        values = evaluator.values_of(self.values, some.page(read_by(self.values)), some)
        row = pa.StructArray.from_arrays(values, fields=list(kind))
        places = np.full(rows.count, NO_ROW)
        places[changed] = np.arange(len(changed))
        return Side(made, places).taken(row)
