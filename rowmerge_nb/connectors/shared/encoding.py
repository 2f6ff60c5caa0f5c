"""The encodings that make columns of Parquet files smaller and faster to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyarrow import parquet as pq

_SAMPLE: Final = 1 << 14
_PACKED: Final = "DELTA_BINARY_PACKED"
_MANY_ROWS: Final = 1 << 16
_DICTIONARY_BYTES: Final = 1.5
"""The maximum size of a value in a column that is read as a dictionary."""
_MOST_BITS: Final = 0.75
"""The largest part of a value's bits that differences may need; beyond it, packing costs time and
saves nothing.
"""


def _stored_values(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the storage of extension types, which Arrow cannot count."""
    arrow_type = values.type
    if not isinstance(arrow_type, pa.BaseExtensionType):
        return values
    return pa.chunked_array([chunk.storage for chunk in values.chunks], arrow_type.storage_type)


def encodings(rows: pa.Table) -> dict[str, Any]:
    """Return the options of a ParquetWriter: dictionaries for repeating values, differences for
    other whole numbers, dates, timestamps and decimals of at most 18 digits.

    Numbers with packed differences take a third of the time to write and to read, and dense ones
    hardly any space. A sample of the rows decides.
    """
    if rows.num_rows < _SAMPLE // 4 or any(
        pa.types.is_nested(arrow_type) for arrow_type in rows.schema.types
    ):
        return {"use_dictionary": True}
    sample = rows.slice(0, _SAMPLE)
    repeating = [
        name
        for name, values in zip(rows.column_names, sample, strict=True)
        if pa.types.is_dictionary(values.type)
        or pc.count_distinct(_stored_values(values)).as_py() < len(sample) // 4
    ]
    packed = {
        name: _PACKED
        for name, values in zip(rows.column_names, sample, strict=True)
        if name not in repeating and _has_small_differences(values)
    }
    return {"use_dictionary": repeating, "column_encoding": packed}


def _has_small_differences(values: pa.ChunkedArray) -> bool:
    arrow_type = values.type
    if pa.types.is_decimal(arrow_type):
        return bool(arrow_type.precision <= 18)
    if pa.types.is_timestamp(arrow_type):
        values = values.cast(pa.int64())
    elif pa.types.is_date32(arrow_type):
        values = values.cast(pa.int32())
    elif not pa.types.is_signed_integer(arrow_type):
        return False
    numbers = values.drop_null().to_numpy().astype(np.float64)
    if len(numbers) < 2:
        return False
    differences = np.diff(numbers)
    width = 64 if values.type.bit_width == 64 else 32
    spread = float(differences.max() - differences.min())
    return bool(np.log2(spread + 1) <= _MOST_BITS * width)


def repeating_texts(file: pq.ParquetFile, names: Collection[str | None]) -> list[str]:
    """Return the text columns of a large file, among those named, that have few distinct values in
    each row group.

    Read as dictionaries and then decoded, they take half of the time.
    """
    metadata, schema = file.metadata, file.schema_arrow
    if metadata.num_rows < _MANY_ROWS:
        return []
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return [
        name
        for index in range(metadata.num_columns)
        if (name := metadata.schema.column(index).path) in names
        and name in schema.names
        and pa.types.is_string(schema.field(name).type)
        and all(_has_small_dictionary(group.column(index)) for group in groups)
    ]


def _has_small_dictionary(chunk: pq.ColumnChunkMetaData) -> bool:
    """Return whether a chunk has a dictionary, and too few bytes for rows beside it: each would
    have four bytes of length.
    """
    return bool(
        chunk.has_dictionary_page
        and chunk.total_uncompressed_size <= _DICTIONARY_BYTES * chunk.num_values
    )
