"""Encodings of columns in Parquet files, and their readers."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from rowmerge_nb.connectors.shared.encoding import encodings, repeating_texts

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 20_000
PACKED = "DELTA_BINARY_PACKED"


def _column(values: np.ndarray, arrow_type: pa.DataType) -> pa.Array:
    """Return a column whose every seventh value is NULL."""
    array = pa.array(values, mask=np.arange(len(values)) % 7 == 0)
    if pa.types.is_decimal(arrow_type):
        numbers = [None if value is None else Decimal(value) for value in array.to_pylist()]
        return pa.array(numbers, arrow_type)
    return array.cast(arrow_type)


DENSE = np.arange(ROWS, dtype=np.int64)
COLUMNS = {
    "smallint": _column(DENSE, pa.int16()),
    "integer": _column(DENSE[::-1], pa.int32()),
    "bigint": _column(DENSE * 1_000_003, pa.int64()),
    "date": _column((DENSE % 9_000).astype(np.int32), pa.date32()),
    "moment": _column(DENSE * 10**9, pa.timestamp("us")),
    "instant": _column(DENSE * 10**9, pa.timestamp("us", "UTC")),
    "short": _column(DENSE, pa.decimal128(9, 2)),
    "long": _column(DENSE, pa.decimal128(18, 2)),
}
OTHERS = {
    "hash": _column(np.random.default_rng(1).integers(-(2**62), 2**62, ROWS), pa.int64()),
    "wide": _column(DENSE, pa.decimal128(20, 2)),
    "text": pa.array([f"x{number}" for number in DENSE.tolist()]),
    "double": _column(DENSE.astype(np.float64), pa.float64()),
}


def test_differences_are_packed_if_they_are_small() -> None:
    rows = pa.table({**COLUMNS, **OTHERS, "region": ["a", "b"] * (ROWS // 2)})
    found = encodings(rows)
    assert found == {
        "use_dictionary": ["region"],
        "column_encoding": dict.fromkeys(COLUMNS, PACKED),
    }


@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"id": DENSE[:100]}),
        pa.table({"id": DENSE, "part": pa.array([{"a": 1}] * ROWS)}),
    ],
)
def test_few_and_nested_rows_have_dictionaries(rows: pa.Table) -> None:
    assert encodings(rows) == {"use_dictionary": True}


@pytest.mark.parametrize("values", [[], [None] * ROWS, [None] * (ROWS - 1) + [1]])
def test_columns_without_values_can_be_written(tmp_path: Path, values: list[int | None]) -> None:
    rows = pa.table({"id": pa.array(values, pa.int64()), "no": pa.array(values, pa.int64())})
    pq.write_table(rows, tmp_path / "rows.parquet", **encodings(rows))
    assert pq.read_table(tmp_path / "rows.parquet").equals(rows)


def test_other_libraries_read_packed_columns(tmp_path: Path) -> None:
    rows = pa.table({**COLUMNS, **OTHERS})
    path = tmp_path / "rows.parquet"
    pq.write_table(rows, path, store_decimal_as_integer=True, **encodings(rows))
    group = pq.ParquetFile(path).metadata.row_group(0)
    assert all(PACKED in group.column(index).encodings for index in range(len(COLUMNS)))
    assert pq.read_table(path).equals(rows)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        read = connection.sql(f"SELECT * FROM '{path}'").to_arrow_table()
    assert read.cast(rows.schema).equals(rows)


def _texts_of(path: Path, rows: int) -> list[str]:
    numbers = np.arange(rows)
    few, many = pa.array(numbers % 7).cast(pa.string()), pa.array(numbers).cast(pa.string())
    half = pa.chunked_array([few.slice(0, rows // 2), many.slice(rows // 2)])
    nested = pa.StructArray.from_arrays([few], names=["x"])
    table = pa.table(
        {"few": few, "many": many, "half": half, "other": few, "s": nested, "n": numbers}
    )
    pq.write_table(table, path, row_group_size=rows // 2)
    return repeating_texts(pq.ParquetFile(path), {"few", "many", "half", "s", "n", None})


def test_texts_are_read_as_dictionaries_if_each_row_group_has_few(tmp_path: Path) -> None:
    assert _texts_of(tmp_path / "large.parquet", 100_000) == ["few"]
    assert _texts_of(tmp_path / "small.parquet", 10_000) == []
