"""The rows of RETURNING, from the tasks' pages to one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowmerge_nb.engine.tasks.arrow import conform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.analyzer.analysis import Returning

__all__ = ["returned_table"]


def returned_table(pages: Sequence[bytes], returning: Returning | None) -> pa.Table | None:
    """Put the tasks' pages together, under the names and types that the statement gives; None without RETURNING.

    Args:
        pages: Arrow streams; their columns are those of RETURNING by position.
        returning: what the statement returns.
    """
    if returning is None:
        return None
    schema = pa.schema([pa.field(column.name, column.expression.type.arrow) for column in returning.columns])
    batches = [batch for page in pages for batch in pa.ipc.open_stream(page)]
    conformed = (
        pa.RecordBatch.from_arrays([conform(c, f.type) for c, f in zip(batch.columns, schema, strict=True)], schema=schema)
        for batch in batches
    )
    return pa.Table.from_batches(conformed, schema=schema)
