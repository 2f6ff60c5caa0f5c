"""The rows of RETURNING: which columns can be returned, and one table from the tasks' pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.engine.tasks.arrow import conform

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rowmerge_nb.sql.analyzer.analysis import Returning, TableBinding


def returned_table(pages: Sequence[bytes], returning: Returning | None) -> pa.Table | None:
    """Return the tasks' pages as one table, with the names and types of the statement; None without
    RETURNING.
    """
    if returning is None:
        return None
    schema = pa.schema(
        [pa.field(column.name, column.expression.type.arrow) for column in returning.columns]
    )
    batches = [batch for page in pages for batch in pa.ipc.open_stream(page)]
    conformed = (
        pa.RecordBatch.from_arrays(
            [conform(c, f.type) for c, f in zip(batch.columns, schema, strict=True)], schema=schema
        )
        for batch in batches
    )
    return pa.Table.from_batches(conformed, schema=schema)


def check_returned(
    returning: Returning | None, target: TableBinding, omitted: Collection[str]
) -> None:
    if returning is None:
        return
    read = {symbol for column in returning.columns for symbol in column.expression.references}
    for column, new, current in zip(target.columns, returning.new, returning.current, strict=True):
        if column.name in omitted and read & {new.symbol, current.symbol}:
            raise ConnectorError(
                f"RETURNING cannot return column '{column.name}': the store itself"
                " fills the columns that the INSERT omits",
                hint="Name the column in the INSERT, or read the table afterwards.",
            )
