"""The columns of Parquet files that dictionaries make smaller."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

_SAMPLE: Final = 1 << 14


def _stored_values(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the storage of extension types, which Arrow cannot count."""
    arrow_type = values.type
    if not isinstance(arrow_type, pa.BaseExtensionType):
        return values
    return pa.chunked_array([chunk.storage for chunk in values.chunks], arrow_type.storage_type)


def repeating_columns(rows: pa.Table) -> list[str] | bool:
    """Return the columns to dictionary-encode, or True for all.

    >>> repeating_columns(pa.table({"id": range(9000), "region": ["north", "south", "west"] * 3000}))
    ['region']
    """
    if rows.num_rows < _SAMPLE // 4 or any(
        pa.types.is_nested(arrow_type) for arrow_type in rows.schema.types
    ):
        return True
    sample = rows.slice(0, _SAMPLE)
    return [
        name
        for name, values in zip(rows.column_names, sample, strict=True)
        if pc.count_distinct(_stored_values(values)).as_py() < len(sample) // 4
    ]
