"""CREATE OR REPLACE TABLE of Iceberg tables: the same table with other columns, partitioning and rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError
from rowmerge_nb.connectors.iceberg import commits

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(spark=spark, catalog="lake")
    engine.add_catalog("lake", IcebergConnector(tmp_path / "warehouse"))
    engine.run(
        "CREATE TABLE t (a integer, b varchar) COMMENT 'old' WITH (partitioning = ARRAY['b'])"
    )
    engine.run("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    yield engine
    engine.close()


def rows(engine: Engine, query: str = "SELECT * FROM t ORDER BY 1") -> list[tuple[Any, ...]]:
    found = engine.run(query).table
    assert found is not None
    return [tuple(row.values()) for row in found.to_pylist()]


def table(engine: Engine) -> Any:
    connector: Any = engine._catalogs.connectors["lake"]
    return connector.catalog.load_table(("default", "t"))


def refused(engine: Engine, sql: str) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql)
    return caught.value


def test_a_replaced_table_is_empty_and_keeps_its_identity_its_folder_and_its_snapshots(
    lake: Engine,
) -> None:
    before = table(lake)
    lake.run(
        "CREATE OR REPLACE TABLE t (b varchar, c bigint) WITH (partitioning = ARRAY['bucket(c, 2)'])"
    )
    after = table(lake)
    assert rows(lake) == []
    assert (after.metadata.table_uuid, after.location()) == (
        before.metadata.table_uuid,
        before.location(),
    )
    assert len(after.snapshots()) == len(before.snapshots()) + 1
    assert after.current_snapshot().parent_snapshot_id is None
    assert [str(field.transform) for field in after.spec().fields] == ["bucket[2]"]
    assert "comment" not in after.properties
    lake.run("INSERT INTO t VALUES ('q', 5)")
    assert rows(lake) == [("q", 5)]
    former = before.current_snapshot().snapshot_id
    assert rows(lake, f"SELECT * FROM t FOR VERSION AS OF {former} ORDER BY a") == [
        (1, "x"),
        (2, "y"),
    ]
    assert rows(lake, 'SELECT is_current_ancestor FROM "t$history" ORDER BY made_current_at') == [
        (False,),
        (False,),
        (True,),
        (True,),
    ]


@pytest.mark.on_spark
def test_table_and_rows_are_replaced_by_one_commit_and_may_be_those_of_the_table_itself(
    lake: Engine,
) -> None:
    before = len(table(lake).snapshots())
    assert (
        lake.run("CREATE OR REPLACE TABLE t AS SELECT b, a + 10 AS n FROM t WHERE a < 3").count == 2
    )
    assert rows(lake) == [("x", 11), ("y", 12)]
    after = table(lake)
    assert len(after.snapshots()) == before + 1
    assert after.scan().to_arrow().num_rows == 2
    lake.run(
        "MERGE INTO t USING (VALUES ('x', 1), ('z', 2)) s(k, v) ON b = k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (k, v)"
    )
    assert rows(lake) == [("y", 12), ("z", 2)]
    lake.run("CREATE OR REPLACE TABLE t AS SELECT 1 AS b WHERE false")
    assert rows(lake) == []


def test_a_failure_leaves_the_table_unchanged(lake: Engine) -> None:
    before = table(lake).metadata
    assert (
        refused(lake, "CREATE OR REPLACE TABLE t AS SELECT 1 / (a - 1) AS z FROM t").code
        == "DIVISION_BY_ZERO"
    )
    assert (
        refused(lake, "CREATE OR REPLACE TABLE t (a integer) WITH (format_version = 1)").code
        == "NOT_SUPPORTED"
    )
    error = refused(
        lake, "CREATE OR REPLACE TABLE t (a integer) WITH (location = '/somewhere/else')"
    )
    assert (error.code, error.column) == ("INVALID_TABLE_PROPERTY", 45)
    assert refused(lake, "CREATE OR REPLACE TABLE t (a json)").code == "NOT_SUPPORTED"
    lake.run("CREATE OR REPLACE TABLE t (z integer)", dry_run=True)
    assert rows(lake) == [(1, "x"), (2, "y")]
    assert table(lake).metadata == before


def test_a_missing_table_is_created(lake: Engine) -> None:
    lake.run("CREATE OR REPLACE TABLE other AS SELECT 'a' AS x")
    assert rows(lake, "SELECT * FROM other") == [("a",)]
    lake.run("CREATE VIEW v AS SELECT 1 AS one")
    assert refused(lake, "CREATE OR REPLACE TABLE v (a integer)").code == "TABLE_ALREADY_EXISTS"


@pytest.mark.parametrize(
    "other",
    ["INSERT INTO t VALUES (3, 'z')", "ALTER TABLE t ADD COLUMN more integer", "DROP TABLE t"],
)
def test_any_commit_between_is_in_the_way(
    lake: Engine, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    stage = commits._stage

    def late(producer: Any) -> None:
        monkeypatch.setattr(commits, "_stage", stage)
        lake.run(other)
        stage(producer)

    monkeypatch.setattr(commits, "_stage", late)
    error = refused(lake, "CREATE OR REPLACE TABLE t AS SELECT 7 AS n")
    assert error.code == "TRANSACTION_CONFLICT"
    if not other.startswith("DROP"):
        assert len(rows(lake)) >= 2


def test_a_snapshot_of_other_columns_is_not_restored_but_copied(lake: Engine) -> None:
    former = table(lake).current_snapshot().snapshot_id
    lake.run("CREATE OR REPLACE TABLE t AS SELECT a + 10 AS a2 FROM t")
    with pytest.raises(
        RowMergeError, match=f"Snapshot {former} of table 'default.t' has other columns"
    ) as caught:
        lake.restore("lake.default.t", former)
    assert caught.value.code == "NOT_SUPPORTED"
    assert rows(lake) == [(11,), (12,)]
    statement = (caught.value.hint or "").partition(": ")[2].removesuffix(".")
    lake.run(statement)
    assert rows(lake) == [(1, "x"), (2, "y")]


def test_columns_of_the_same_name_and_type_keep_their_ids_and_the_table_can_be_altered(
    lake: Engine,
) -> None:
    former = table(lake)
    lake.run("CREATE OR REPLACE TABLE t AS SELECT b, CAST(a AS bigint) + 10 AS a, 1 AS c FROM t")
    ids = {field.name: field.field_id for field in table(lake).schema().fields}
    assert ids["b"] == former.schema().find_field("b").field_id
    assert former.metadata.last_column_id < ids["a"] < ids["c"]
    lake.run("ALTER TABLE t ADD COLUMN d integer")
    lake.run("UPDATE t SET d = 4 WHERE b = 'x'")
    assert rows(lake) == [("x", 11, 1, 4), ("y", 12, 1, None)]
    lake.restore("lake.default.t", former.current_snapshot().snapshot_id)
    assert rows(lake) == [("x", None, None, None), ("y", None, None, None)]
