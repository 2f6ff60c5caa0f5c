"""Tables of the maximum width of each store; wider ones are refused before anything is created."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import RowMergeError
from tests.extremes.conftest import Store
from tests.extremes.support import tuples

ROOM = {"sqlite": 1_990, "postgresql": 1_594}
"""The maximum number of columns beside the key ``idx``."""


def wide(store: Store, columns: int) -> list[str]:
    names = [f"k{place}" for place in range(columns)]
    store.create(
        "t", f"idx bigint NOT NULL, {', '.join(f'{name} integer' for name in names)}", "idx"
    )
    return names


def changed_whole(store: Store, columns: int) -> None:
    names = wide(store, columns)
    rows = [[row, *(row * place for place in range(columns))] for row in range(3)]
    store.engine.run(f"INSERT INTO t VALUES {', '.join(str(tuple(row)) for row in rows)}")
    for flow in store.flows:
        store.engine.run(
            f"UPDATE t SET {', '.join(f'{name} = {name} + 1' for name in names)} WHERE idx = 1",
            flow=flow,
        )
        rows[1][1:] = [value + 1 for value in rows[1][1:]]
    merged = store.engine.run(
        f"MERGE INTO t USING t s ON t.idx = s.idx + 1 WHEN MATCHED THEN UPDATE SET {', '.join(f'{name} = s.{name}' for name in names)} "
        f"WHEN NOT MATCHED THEN INSERT VALUES (s.idx + 100, {', '.join(f's.{name}' for name in names)})"
    )
    assert merged.count == 3
    assert "k0" in str(merged)
    expected = [rows[0], [1, *rows[0][1:]], [2, *rows[1][1:]], [102, *rows[2][1:]]]
    assert store.rows("t") == tuples(expected)
    positive = " AND ".join(f"{name} >= 0" for name in names)
    assert store.engine.run(f"DELETE FROM t WHERE idx > 1 AND {positive}").count == 2
    assert store.rows("t") == tuples(expected[:2])


@pytest.mark.only("memory", "hive", "postgresql")
def test_a_hundred_columns(store: Store) -> None:
    changed_whole(store, 100)


@pytest.mark.long
def test_two_thousand_columns_or_the_maximum_of_the_store_are_supported(store: Store) -> None:
    changed_whole(store, ROOM.get(store.kind, 2_000))


def test_more_columns_than_a_database_has_room_for_are_refused(store: Store) -> None:
    if store.kind not in ROOM:
        pytest.skip("has room for all")
    with pytest.raises(RowMergeError) as caught:
        wide(store, ROOM[store.kind] + 1)
    assert caught.value.code == "NOT_SUPPORTED"
    assert f"supports {ROOM[store.kind] + 1}" in caught.value.message
    assert caught.value.hint
    with pytest.raises(RowMergeError) as caught:
        store.engine.run("SELECT * FROM t")
    assert caught.value.code == "TABLE_NOT_FOUND"


def test_a_foreign_table_without_room_for_a_stage_is_not_written(
    spark: Any, tmp_path: Path
) -> None:
    import sqlite3

    from rowmerge_nb import Engine, SqliteConnector

    with sqlite3.connect(tmp_path / "x.db") as other:
        other.execute(
            f"CREATE TABLE t ({', '.join(f'c{place} integer' for place in range(1_999))}, idx integer PRIMARY KEY)"
        )
        other.execute("INSERT INTO t (idx, c7) VALUES (1, 7)")
    other.close()
    with Engine(spark=spark, catalog="store", schema="main") as engine:
        engine.add_catalog("store", SqliteConnector(tmp_path / "x.db"))
        for statement in ("DELETE FROM t", "UPDATE t SET c1 = 1"):
            for flow in ("merge", "updatable"):
                with pytest.raises(RowMergeError) as caught:
                    engine.run(statement, flow=flow)
                assert (caught.value.code, "supports 1991" in caught.value.message) == (
                    "NOT_SUPPORTED",
                    True,
                )
