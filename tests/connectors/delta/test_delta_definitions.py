"""ALTER TABLE, COMMENT, CREATE OR REPLACE TABLE and the procedures of Delta tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rowmerge_nb import DeltaConnector, Engine, RowMergeError
from rowmerge_nb.spi import ConnectorSession, SchemaTableName

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

NAME = SchemaTableName("default", "t")


@pytest.fixture
def store(tmp_path: Path) -> DeltaConnector:
    return DeltaConnector(tmp_path, min_retention=timedelta(0))


@pytest.fixture
def engine(spark: Any, store: DeltaConnector) -> Iterator[Engine]:
    with Engine(spark=spark, catalog="lake") as engine:
        engine.add_catalog("lake", store)
        yield engine


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of five small files of delta-rs."""
    folder = tmp_path / "default" / "t"
    for key in range(5):
        write_deltalake(folder, pa.table({"id": [key], "v": [key * 10]}), mode="append")
    return folder


def rows(engine: Engine) -> list[tuple[Any, ...]]:
    table = engine.run("SELECT * FROM t").table
    assert table is not None
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def metrics(engine: Engine, sql: str) -> dict[str, int]:
    table = engine.run(sql).table
    assert table is not None
    return {row["metric_name"]: row["metric_value"] for row in table.to_pylist()}


def shown(engine: Engine) -> str:
    table = engine.run("SHOW CREATE TABLE t").table
    assert table is not None
    return str(table.to_pylist()[0]["Create Table"])


# -- procedures


def test_optimize_joins_small_files_in_one_version(engine: Engine, folder: Path) -> None:
    before = rows(engine)
    counts = metrics(engine, "ALTER TABLE t EXECUTE optimize")
    assert counts == {"added_files_count": 1, "removed_files_count": 5}
    assert len(DeltaTable(folder).file_uris()) == 1
    assert DeltaTable(folder).version() == 5
    assert rows(engine) == before
    counts = metrics(engine, "ALTER TABLE t EXECUTE optimize(file_size_threshold => '10MB')")
    assert counts == {"added_files_count": 0, "removed_files_count": 0}
    assert DeltaTable(folder).version() == 5


def test_vacuum_removes_what_no_version_in_its_time_needs(engine: Engine, folder: Path) -> None:
    before = rows(engine)
    engine.run("ALTER TABLE t EXECUTE optimize")
    assert metrics(engine, "ALTER TABLE t EXECUTE vacuum")["deleted_files_count"] == 0
    counts = metrics(engine, "ALTER TABLE t EXECUTE vacuum(retention_threshold => '0s')")
    assert counts == {"deleted_files_count": 5, "left_files_count": 0}
    assert len(list(folder.rglob("*.parquet"))) == 1
    assert rows(engine) == before


def test_vacuum_leaves_the_files_of_a_running_statement(
    engine: Engine, store: DeltaConnector, folder: Path
) -> None:
    transaction, session = store.begin_transaction(), ConnectorSession("q")
    metadata = store.get_metadata(transaction)
    handle = metadata.get_table_handle(session, NAME)
    assert handle is not None
    insert = metadata.begin_insert(session, handle, ())
    sink = store.get_page_sink_provider().create_page_sink(transaction, session, insert)
    sink.append_page(pa.RecordBatch.from_pydict({"id": [9], "v": [9]}))
    fragments = sink.finish()
    counts = metrics(engine, "ALTER TABLE t EXECUTE vacuum(retention_threshold => '0s')")
    assert counts == {"deleted_files_count": 0, "left_files_count": 1}
    metadata.finish_insert(session, insert, fragments)
    store.commit(transaction)
    assert (9, 9) in rows(engine)


def test_vacuum_has_a_minimum_retention(
    spark: Any, engine: Engine, folder: Path, tmp_path: Path
) -> None:
    engine.add_catalog("careful", DeltaConnector(tmp_path))
    with pytest.raises(RowMergeError, match=r"Retention specified \(1.00d\) is shorter"):
        engine.run("ALTER TABLE careful.default.t EXECUTE vacuum(retention_threshold => '1d')")
    DeltaTable(folder).alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 2 days"}
    )
    with pytest.raises(RowMergeError, match="INVALID_PROCEDURE_ARGUMENT"):
        engine.run("ALTER TABLE t EXECUTE vacuum(retention_threshold => '1d')")


@pytest.mark.parametrize("value", [timedelta(days=-1), 7])
def test_a_retention_is_a_duration(tmp_path: Path, value: Any) -> None:
    with pytest.raises(RowMergeError, match="INVALID_ARGUMENTS"):
        DeltaConnector(tmp_path, min_retention=value)


# -- ALTER TABLE


def test_a_column_is_added_and_old_rows_have_null_in_it(engine: Engine, folder: Path) -> None:
    engine.run("ALTER TABLE t ADD COLUMN w varchar COMMENT 'a word'")
    engine.run("INSERT INTO t VALUES (7, 70, 'x')")
    engine.run("UPDATE t SET w = 'y' WHERE id = 0")
    assert rows(engine)[:2] == [(0, 0, "y"), (1, 10, None)]
    assert DeltaTable(folder).to_pyarrow_table().column("w").to_pylist().count(None) == 4
    assert "w varchar COMMENT 'a word'" in shown(engine)


def test_comments_are_set_and_removed(engine: Engine, folder: Path) -> None:
    engine.run("COMMENT ON TABLE t IS 'a table'")
    engine.run("COMMENT ON COLUMN t.id IS 'a key'")
    assert "id bigint COMMENT 'a key'" in shown(engine)
    assert "COMMENT 'a table'" in shown(engine)
    assert DeltaTable(folder).metadata().description == "a table"
    engine.run("COMMENT ON TABLE t IS NULL")
    engine.run("COMMENT ON COLUMN t.id IS NULL")
    assert "COMMENT" not in shown(engine)


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("DROP COLUMN v", "Cannot drop column from table using column mapping mode NONE"),
        ("RENAME COLUMN v TO w", "Cannot rename column from table"),
        ("ALTER COLUMN v SET DATA TYPE varchar", "does not support setting column types"),
        ("ADD COLUMN w varchar NOT NULL", "does not support adding not null columns"),
        ("ADD COLUMN w varchar FIRST", "does not support adding a column before others"),
        ('ADD COLUMN "w x" varchar', "has a character"),
        ("ADD COLUMN w time", "Type not supported for Delta"),
        ("SET PROPERTIES partitioned_by = ARRAY['id']", "cannot be updated: partitioned_by"),
        ("RENAME TO u", "does not support renaming tables"),
    ],
)
def test_unsupported_alterations_are_refused(
    engine: Engine, folder: Path, clause: str, message: str
) -> None:
    with pytest.raises(RowMergeError, match=f"NOT_SUPPORTED.*{message}"):
        engine.run(f"ALTER TABLE t {clause}")
    assert DeltaTable(folder).version() == 4


def test_an_alteration_conflicts_with_a_concurrent_commit(
    engine: Engine, store: DeltaConnector, folder: Path
) -> None:
    committed, keys = store.commit, iter((1, 2))

    def late(transaction: Any) -> Any:
        DeltaTable(folder).delete(f"id = {next(keys)}")
        return committed(transaction)

    store.commit = late  # type: ignore[method-assign]
    with pytest.raises(RowMergeError, match="TRANSACTION_CONFLICT"):
        engine.run("ALTER TABLE t ADD COLUMN w varchar")
    with pytest.raises(RowMergeError, match="TRANSACTION_CONFLICT"):
        engine.run("CREATE OR REPLACE TABLE t (x int)")
    assert [field.name for field in DeltaTable(folder).schema().fields] == ["id", "v"]


# -- CREATE OR REPLACE TABLE


def test_a_table_is_replaced_by_a_query_on_itself(engine: Engine, folder: Path) -> None:
    engine.run(
        "CREATE OR REPLACE TABLE t COMMENT 'new' WITH (partitioned_by = ARRAY['k']) AS"
        " SELECT v AS id, 'a' AS k FROM t WHERE id > 2"
    )
    assert rows(engine) == [(30, "a"), (40, "a")]
    table = DeltaTable(folder)
    assert (table.version(), table.metadata().partition_columns) == (5, ["k"])
    assert table.to_pyarrow_table().num_rows == 2
    old = engine.run("SELECT count(*) AS n FROM t FOR VERSION AS OF 4").table
    assert old is not None
    assert old.column("n").to_pylist() == [5]
    with pytest.raises(RowMergeError, match="DIVISION_BY_ZERO"):
        engine.run("CREATE OR REPLACE TABLE t AS SELECT id / (id - 30) AS x FROM t")
    assert rows(engine) == [(30, "a"), (40, "a")]
    engine.run("CREATE OR REPLACE TABLE u AS SELECT 1 AS x")
    assert DeltaTable(folder.parent / "u").version() == 0
