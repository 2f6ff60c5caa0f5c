"""The search for the row on which an expression fails, after a statement has failed."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ExecutionError
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.engine.tasks.page_program import PageEvaluator, PageProgram

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.engine.tasks.arrow import Batches
    from rowmerge_nb.engine.tasks.page_program import AssignedColumn

FAILURE: Final = pa.schema([pa.field("failure", pa.binary())])
"""The output of `FailingRowPass`: a pickled error."""


@dataclass(frozen=True)
class FailingRowPass:
    """Computes an expression up to the first row on which it fails."""

    column: AssignedColumn
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        evaluator = PageEvaluator(PageProgram())
        for batch in batches:
            arrays = [
                conform(batch.column(index), field.type) for index, field in enumerate(self.schema)
            ]
            try:
                evaluator.values_of(
                    [self.column], pa.RecordBatch.from_arrays(arrays, schema=self.schema)
                )
            except ExecutionError as error:
                yield pa.RecordBatch.from_pydict({"failure": [pickle.dumps(error)]}, FAILURE)
                return
