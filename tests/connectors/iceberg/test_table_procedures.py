"""ALTER TABLE EXECUTE and CALL on Iceberg tables: the remaining files, snapshots and rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError
from rowmerge_nb.connectors.iceberg import commits, table_removal
from rowmerge_nb.connectors.iceberg.iceberg_metadata import IcebergMetadata

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(spark=spark, catalog="lake")
    engine.add_catalog("lake", IcebergConnector(tmp_path, min_retention=timedelta(0)))
    yield engine
    engine.close()


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    found = engine.run(query).table
    assert found is not None
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def files_of(folder: Path, ending: str) -> set[str]:
    return {path.name for path in folder.rglob(f"*{ending}")}


def refused(engine: Engine, statement: str, **options: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        engine.run(statement, **options)
    return caught.value


@pytest.mark.parametrize("partitioning", ["", "WITH (partitioning = ARRAY['p'])"])
@pytest.mark.on_spark
def test_compaction_leaves_the_rows_and_one_file_of_each_partition(
    lake: Engine, partitioning: str
) -> None:
    lake.run_script(f"""
        CREATE TABLE t (id integer, r row(a integer, b varchar), p varchar) {partitioning};
        INSERT INTO t VALUES (1, (1, 'a'), 'x'), (5, NULL, 'x'), (2, NULL, 'y');
        INSERT INTO t VALUES (3, (NULL, 'c'), 'x'), (4, (4, NULL), NULL);
        DELETE FROM t WHERE id = 1""")
    lake.run("ALTER TABLE t ADD COLUMN n bigint")
    before = rows(lake, "SELECT * FROM t")
    result = lake.run("ALTER TABLE t EXECUTE optimize")
    assert (result.trace.kind, result.table) == ("ALTER TABLE EXECUTE", None)
    assert "written anew, into" in str(result)
    assert rows(lake, "SELECT * FROM t") == before
    assert rows(lake, 'SELECT content, record_count FROM "t$files"') == (
        [(0, 1), (0, 1), (0, 2)] if partitioning else [(0, 4)]
    )
    told = """SELECT summary['added-data-files'], summary['deleted-data-files'], summary['removed-position-deletes'],
        summary['total-records'] FROM "t$snapshots" WHERE operation = 'replace'"""
    assert rows(lake, told) == [("1", "2", "1", "4")]
    made = rows(lake, 'SELECT count(*) FROM "t$snapshots"')
    again = lake.run("ALTER TABLE t EXECUTE optimize(file_size_threshold => '1GB')")
    assert again.trace.skipped
    assert rows(lake, 'SELECT count(*) FROM "t$snapshots"') == made


def test_compaction_of_named_partitions_does_not_touch_other_partitions_or_large_files(
    lake: Engine,
) -> None:
    lake.run_script("""
        CREATE TABLE t (id integer, p varchar) WITH (partitioning = ARRAY['p']);
        INSERT INTO t VALUES (1, 'x'), (2, 'y');
        INSERT INTO t VALUES (3, 'x'), (4, 'y')""")
    lake.run("ALTER TABLE t EXECUTE optimize(file_size_threshold => '1B')")
    assert len(rows(lake, 'SELECT file_path FROM "t$files"')) == 4
    lake.run("ALTER TABLE t EXECUTE optimize WHERE p = 'x'")
    assert rows(lake, """SELECT "partition".p, count(*) FROM "t$files" GROUP BY 1""") == [
        ("x", 1),
        ("y", 2),
    ]
    error = refused(lake, "ALTER TABLE t EXECUTE optimize WHERE id = 1")
    assert (error.code, error.line, error.column) == ("NOT_SUPPORTED", 1, 41)
    # A new partitioning redistributes all rows.
    lake.run("ALTER TABLE t SET PROPERTIES partitioning = ARRAY['bucket(id, 1)']")
    lake.run("ALTER TABLE t EXECUTE optimize")
    assert rows(lake, 'SELECT spec_id, record_count FROM "t$files"') == [(1, 4)]


@pytest.mark.parametrize(
    "fault", ["finish:raise", "finish_table_execute:after:raise", "commit:before:raise"]
)
def test_a_compaction_that_fails_leaves_the_table_and_no_files(
    lake: Engine, tmp_path: Path, fault: str
) -> None:
    lake.run_script("CREATE TABLE t (id integer); INSERT INTO t VALUES 1; INSERT INTO t VALUES 2")
    before = files_of(tmp_path, "")
    refused(lake, "ALTER TABLE t EXECUTE optimize", fault=fault)
    assert (rows(lake, "SELECT * FROM t"), files_of(tmp_path, "")) == ([(1,), (2,)], before)


@pytest.mark.parametrize(
    ("other", "left", "after"),
    [
        ("DELETE FROM t WHERE id = 2", None, 1),
        ("UPDATE t SET id = 7 WHERE id = 2", None, 2),
        ("INSERT INTO t VALUES 3", 2, 3),
    ],
)
def test_a_compaction_runs_beside_new_rows_but_conflicts_with_changes_of_its_input(
    lake: Engine, monkeypatch: pytest.MonkeyPatch, other: str, left: int | None, after: int
) -> None:
    lake.run_script("CREATE TABLE t (id integer); INSERT INTO t VALUES 1; INSERT INTO t VALUES 2")
    finish = IcebergMetadata.finish_table_execute

    def after_another(self: IcebergMetadata, *arguments: Any) -> Any:
        lake.run(other)
        return finish(self, *arguments)

    monkeypatch.setattr(IcebergMetadata, "finish_table_execute", after_another)
    if left is None:
        assert refused(lake, "ALTER TABLE t EXECUTE optimize").code == "TRANSACTION_CONFLICT"
    else:
        lake.run("ALTER TABLE t EXECUTE optimize")
        assert len(rows(lake, 'SELECT file_path FROM "t$files"')) == left
    assert len(rows(lake, "SELECT * FROM t")) == after


def test_expired_snapshots_are_removed_with_their_exclusive_files(
    lake: Engine, tmp_path: Path
) -> None:
    lake.run_script("CREATE TABLE t (id integer); INSERT INTO t VALUES 1; INSERT INTO t VALUES 2")
    lake.run("ALTER TABLE t EXECUTE expire_snapshots")
    assert len(rows(lake, 'SELECT snapshot_id FROM "t$snapshots"')) >= 2
    lake.run("ALTER TABLE t EXECUTE optimize")
    lake.run("ALTER TABLE t EXECUTE expire_snapshots(retention_threshold => '0s')")
    assert len(rows(lake, 'SELECT snapshot_id FROM "t$snapshots"')) == 1
    assert (rows(lake, "SELECT * FROM t"), len(files_of(tmp_path, ".parquet"))) == ([(1,), (2,)], 1)
    assert (
        len(files_of(tmp_path, ".avro")) == 4
    )  # the list, the added file, and the removed rows of two


def test_files_known_to_another_table_stay_when_snapshots_expire(
    lake: Engine, tmp_path: Path
) -> None:
    lake.run_script("CREATE TABLE t (id integer); INSERT INTO t VALUES 1, 2")
    [(newest,)] = rows(lake, 'SELECT max_by(file, timestamp) FROM "t$metadata_log_entries"')
    with closing(IcebergConnector(tmp_path)) as store:
        store.register_table("default", "twin", newest)
    lake.run_script("""DELETE FROM t WHERE id = 1; ALTER TABLE t EXECUTE optimize;
        ALTER TABLE t EXECUTE expire_snapshots(retention_threshold => '0s')""")
    assert rows(lake, "SELECT * FROM t") == [(2,)]
    assert rows(lake, "SELECT * FROM twin") == [(1,), (2,)]


def test_a_table_is_rolled_back_by_either_statement(lake: Engine) -> None:
    lake.run_script("CREATE TABLE t (id integer); INSERT INTO t VALUES 1")
    [(first,)] = rows(
        lake, 'SELECT snapshot_id FROM "t$snapshots" ORDER BY committed_at DESC LIMIT 1'
    )
    for statement in (
        f"ALTER TABLE t EXECUTE rollback_to_snapshot({first})",
        f"CALL system.rollback_to_snapshot('default', 't', {first})",
    ):
        lake.run("INSERT INTO t VALUES 2")
        lake.run(statement)
        assert rows(lake, "SELECT * FROM t") == [(1,)]
    said = refused(lake, "ALTER TABLE t EXECUTE rollback_to_snapshot(5)")
    assert (said.code, said.message) == (
        "INVALID_PROCEDURE_ARGUMENT",
        "Cannot roll back to unknown snapshot id: 5",
    )
    assert (
        refused(lake, "CALL system.rollback_to_snapshot('default', 'nope', 1)").code == "NOT_FOUND"
    )


def test_manifests_are_gathered_and_orphans_of_an_age_removed(lake: Engine, tmp_path: Path) -> None:
    lake.run_script("CREATE TABLE t (id integer); INSERT INTO t VALUES 1; INSERT INTO t VALUES 2")
    lake.run("ALTER TABLE t EXECUTE optimize_manifests")
    assert rows(lake, 'SELECT existing_data_files_count FROM "t$manifests"') == [(2,)]
    [folder] = tmp_path.glob("*/t-*/data")
    (folder / "nobodys.parquet").write_bytes(b"x")
    lake.run("ALTER TABLE t EXECUTE remove_orphan_files(retention_threshold => '7d')")
    assert "nobodys.parquet" in files_of(tmp_path, ".parquet")
    lake.run("ALTER TABLE t EXECUTE remove_orphan_files(retention_threshold => '0s')")
    assert (len(files_of(tmp_path, ".parquet")), rows(lake, "SELECT * FROM t")) == (2, [(1,), (2,)])


@pytest.mark.parametrize(
    ("statement", "code", "place", "message"),
    [
        (
            "nope EXECUTE optimize",
            "TABLE_NOT_FOUND",
            (1, 7),
            "Table 'lake.default.nope' does not exist",
        ),
        (
            "t EXECUTE nope(1) WHERE z = 1",
            "PROCEDURE_NOT_FOUND",
            (None, None),
            "Table procedure not registered: NOPE",
        ),
        (
            "t EXECUTE expire_snapshots WHERE id = 1",
            "NOT_SUPPORTED",
            (1, 1),
            "WHERE not supported for procedure EXPIRE_SNAPSHOTS",
        ),
        (
            "t EXECUTE optimize(x => 1) WHERE z = 1",
            "COLUMN_NOT_FOUND",
            (1, 46),
            "Column 'z' cannot be resolved",
        ),
        (
            "t EXECUTE optimize('1MB', '2MB')",
            "INVALID_ARGUMENTS",
            (1, 1),
            "Too many positional arguments",
        ),
        (
            "t EXECUTE optimize(a => 1, a => 1)",
            "DUPLICATE_PROPERTY",
            (1, 40),
            "Duplicate named argument: a",
        ),
        (
            "t EXECUTE optimize(file_size_threshold => true)",
            "INVALID_PROCEDURE_ARGUMENT",
            (1, 32),
            "Invalid value for catalog 'lake' table procedure 'OPTIMIZE' property 'file_size_threshold': Cannot convert [true] to varchar",
        ),
        (
            "t EXECUTE expire_snapshots('7x')",
            "INVALID_PROCEDURE_ARGUMENT",
            (1, 40),
            "Unable to set catalog 'lake' table procedure 'EXPIRE_SNAPSHOTS' property 'retention_threshold' to ['7x']: Unknown time unit: x",
        ),
        (
            "t EXECUTE add_files()",
            "PERMISSION_DENIED",
            (None, None),
            "add_files procedure is disabled",
        ),
    ],
)
def test_errors_are_those_of_trino(
    lake: Engine, statement: str, code: str, place: tuple[int | None, int | None], message: str
) -> None:
    lake.run("CREATE TABLE t (id integer)")
    error = refused(lake, f"ALTER TABLE {statement}")
    assert (error.code, (error.line, error.column), error.message) == (code, place, message)


def test_young_files_are_never_removed(spark: Any, tmp_path: Path) -> None:
    engine = Engine(spark=spark, catalog="lake")
    engine.add_catalog("lake", IcebergConnector(tmp_path))
    engine.run("CREATE TABLE t (id integer)")
    error = refused(
        engine, "ALTER TABLE t EXECUTE remove_orphan_files(retention_threshold => '25h')"
    )
    assert error.code == "INVALID_PROCEDURE_ARGUMENT"
    assert error.message.startswith(
        "Retention specified (25.00h) is shorter than the minimum retention configured in the system (7.00d)."
    )
    engine.close()


@pytest.mark.parametrize("retention", [7, "7d", None, timedelta(days=-1)])
def test_the_least_retention_is_a_span_of_time(tmp_path: Path, retention: Any) -> None:
    with pytest.raises(RowMergeError, match="INVALID_ARGUMENTS: min_retention") as caught:
        IcebergConnector(tmp_path, min_retention=retention)
    assert caught.value.hint == "Give a datetime.timedelta that is not negative."


def test_files_kept_by_other_owners_in_the_folder_of_a_table_are_not_orphans(
    lake: Engine, tmp_path: Path
) -> None:
    elsewhere = tmp_path.parent / "elsewhere"
    lake.run(
        f"CREATE TABLE o (id integer) WITH (object_store_layout_enabled = true, data_location = '{elsewhere}')"
    )
    lake.run("INSERT INTO o VALUES 1")
    theirs = [elsewhere / "letter.txt", elsewhere / "below" / "theirs.parquet"]
    for file in theirs:
        file.parent.mkdir(exist_ok=True)
        file.write_text("theirs")
        os.utime(file, (0, 0))
    lake.run("ALTER TABLE o EXECUTE remove_orphan_files(retention_threshold => '0s')")
    assert all(file.exists() for file in theirs)
    with closing(IcebergConnector(tmp_path)) as store:
        assert store.orphans(timedelta(0)) == []
    assert rows(lake, "SELECT * FROM o") == [(1,)]


@pytest.mark.parametrize(
    ("when", "how"),
    [("expired_files", "a tag"), ("expired_files", "a rollback"), ("_commit", "a rollback")],
)
def test_a_snapshot_that_gets_a_name_meanwhile_does_not_expire(
    lake: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str, how: str
) -> None:
    lake.run_script("CREATE TABLE t (id integer); INSERT INTO t VALUES 1; INSERT INTO t VALUES 2")
    module = table_removal if when == "expired_files" else commits
    former, whole = 0, getattr(module, when)

    def meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(module, when, whole)
        with closing(IcebergConnector(tmp_path)) as store:
            table = store.catalog.load_table("default.t")
            nonlocal former
            former = table.history()[1].snapshot_id
            change = table.manage_snapshots()
            (
                change.create_tag(former, "kept")
                if how == "a tag"
                else change.set_current_snapshot(former)
            ).commit()
        return whole(*given)

    monkeypatch.setattr(module, when, meanwhile)
    error = refused(lake, "ALTER TABLE t EXECUTE expire_snapshots(retention_threshold => '0s')")
    assert error.code == "TRANSACTION_CONFLICT"
    assert rows(lake, f"SELECT * FROM t FOR VERSION AS OF {former}") == [(1,)]


def test_rows_are_sorted_by_a_uuid(lake: Engine) -> None:
    lake.run("CREATE TABLE s (u uuid, i integer) WITH (sorted_by = ARRAY['u DESC'])")
    lake.run(
        "INSERT INTO s VALUES (UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59', 1), (NULL, 3), (UUID 'f2151fd2-7586-11e9-8f9e-2a86e4085a59', 2)"
    )
    assert lake.table("s")["i"].to_pylist() == [2, 1, 3]


def test_removed_files_are_returned_and_reported(lake: Engine, tmp_path: Path) -> None:
    lake.run_script("CREATE TABLE t (id integer); INSERT INTO t VALUES 1; TRUNCATE TABLE t")
    result = lake.run("ALTER TABLE t EXECUTE expire_snapshots(retention_threshold => '0s')")
    assert result.table is not None
    counts = dict(zip(*(column.to_pylist() for column in result.table.columns), strict=True))
    assert list(counts) == ["deleted_files_count", "left_files_count"]
    assert f"{counts['deleted_files_count']} files were removed: " in str(result.trace.notices)
    assert ".parquet" in str(result.trace.notices)
    [folder] = tmp_path.glob("*/t-*/data")
    (folder / "nobodys.parquet").write_bytes(b"x")
    os.utime(folder / "nobodys.parquet", (0, 0))
    assert rows(lake, "ALTER TABLE t EXECUTE remove_orphan_files(retention_threshold => '0s')") == [
        ("deleted_files_count", 1),
        ("left_files_count", 0),
    ]
