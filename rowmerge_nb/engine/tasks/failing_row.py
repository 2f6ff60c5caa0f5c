"""The row that an expression cannot be computed for: looked for on pages once a statement has failed."""

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
"""What `FailingRowPass` gives: an error, pickled."""


@dataclass(frozen=True)
class FailingRowPass:
    """Computes an expression on pages up to the first row that it fails for, and gives that error alone.

    Args:
        column: the expression, and what it is assigned to.
        schema: the channels that it reads, as pages have them.
    """

    column: AssignedColumn
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the partition of this task."""
        evaluator = PageEvaluator(PageProgram())
        for batch in batches:
            arrays = [conform(batch.column(index), field.type) for index, field in enumerate(self.schema)]
            try:
                evaluator.values_of([self.column], pa.RecordBatch.from_arrays(arrays, schema=self.schema))
            except ExecutionError as error:
                yield pa.RecordBatch.from_pydict({"failure": [pickle.dumps(error)]}, FAILURE)
                return
