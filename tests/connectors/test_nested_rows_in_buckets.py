"""Rows with NULLs at every depth, in bucketed tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, HiveAcidConnector, IcebergConnector, RowMergeError

pytestmark = pytest.mark.spark

NESTED = "row(x integer, y varchar, z row(u integer, w array(integer)))"
VALUES = f"""
    (VALUES (1, CAST(ROW(1, 'a', ROW(1, ARRAY[1, NULL])) AS {NESTED})), (2, ROW(NULL, 'b', ROW(NULL, ARRAY[2]))),
            (3, ROW(3, NULL, NULL)), (4, ROW(NULL, NULL, NULL)), (5, NULL), (NULL, ROW(6, 'f', ROW(6, NULL)))) v(id, r)
"""
ROWS: list[tuple[int | None, dict[str, Any] | None]] = [
    (1, {"x": 1, "y": "a", "z": {"u": 1, "w": [1, None]}}),
    (2, {"x": None, "y": "b", "z": {"u": None, "w": [2]}}),
    (3, {"x": 3, "y": None, "z": None}),
    (4, {"x": None, "y": None, "z": None}),
    (5, None),
    (None, {"x": 6, "y": "f", "z": {"u": 6, "w": None}}),
]
BUCKETS = "bucketed_by = ARRAY['{}'], bucket_count = 3"
PLACED = {"memory": BUCKETS, "hive": BUCKETS, "iceberg": "partitioning = ARRAY['bucket({}, 3)']"}
REFUSED = {
    "memory": ("INVALID_TABLE_PROPERTY", "'bucketed_by' names column 'r' of type row"),
    "hive": (
        "NOT_SUPPORTED",
        "Cannot create a table bucketed on an unsupported type: column 'r' is row",
    ),
    "iceberg": (
        "INVALID_TABLE_PROPERTY",
        r"bucket\(r, 3\) cannot be computed for a column of type row",
    ),
}


@pytest.fixture(params=PLACED)
def store(
    request: pytest.FixtureRequest, spark: Any, tmp_path: Path
) -> Iterator[tuple[Engine, str]]:
    """An engine with a store as its default catalog, and that store's name."""
    engine = (
        Engine(spark=spark) if request.param == "memory" else Engine(spark=spark, catalog="lake")
    )
    if request.param == "hive":
        engine.add_catalog("lake", HiveAcidConnector(tmp_path))
    elif request.param == "iceberg":
        engine.add_catalog("lake", IcebergConnector(tmp_path))
    yield engine, request.param
    engine.close()


def rows_of(engine: Engine) -> list[tuple[Any, ...]]:
    found = engine.run("SELECT id, r FROM t ORDER BY id").table
    assert found is not None
    return [tuple(row.values()) for row in found.to_pylist()]


@pytest.mark.parametrize(
    "statement",
    [
        f"INSERT INTO t SELECT * FROM {VALUES}",
        f"INSERT INTO t (r, id) SELECT r, id FROM {VALUES}",
        f"MERGE INTO t USING {VALUES} ON t.id = v.id WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.r)",
    ],
    ids=["INSERT", "INSERT with columns", "MERGE"],
)
def test_nulls_at_every_depth_of_a_row_are_read_back_from_a_bucketed_table(
    store: tuple[Engine, str], statement: str
) -> None:
    engine, placed_in = store
    engine.run(f"CREATE TABLE t (id bigint, r {NESTED}) WITH ({PLACED[placed_in].format('id')})")
    assert engine.run(statement).count == len(ROWS)
    assert rows_of(engine) == ROWS
    # Existing rows are found in their buckets, and rewritten unchanged.
    changed = {"x": None, "y": "u", "z": {"u": None, "w": [None]}}
    engine.run("UPDATE t SET r = ROW(NULL, 'u', ROW(NULL, ARRAY[NULL])) WHERE id IN (3, 5)")
    engine.run("DELETE FROM t WHERE r.z IS NULL AND id = 4")
    assert rows_of(engine) == [
        (id_, changed if id_ in {3, 5} else row) for id_, row in ROWS if id_ != 4
    ]


def test_rows_cannot_be_bucketed_by_a_row_column(store: tuple[Engine, str]) -> None:
    engine, placed_in = store
    code, words = REFUSED[placed_in]
    with pytest.raises(RowMergeError, match=words) as refused:
        engine.run(f"CREATE TABLE t (id bigint, r {NESTED}) WITH ({PLACED[placed_in].format('r')})")
    assert refused.value.code == code
