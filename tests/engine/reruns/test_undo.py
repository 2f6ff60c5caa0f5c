"""``undo`` undoes the last change of the engine and no change of other sessions; ``restore`` restores any version."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import StringType

from rowmerge_nb import Engine, HiveAcidConnector, IcebergConnector, RowMergeError, SqliteConnector
from rowmerge_nb.testing.faults import Fault, FaultyConnector

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

STORES = ["memory", "lake"]


@pytest.fixture
def lake(tmp_path: Path) -> IcebergConnector:
    return IcebergConnector(tmp_path / "lake")


@pytest.fixture
def engine(spark: Any, lake: IcebergConnector, tmp_path: Path) -> Iterator[Engine]:
    made = Engine(spark=spark)
    made.add_catalog("lake", lake)
    made.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
    made.add_catalog("lite", SqliteConnector(tmp_path / "lite.db", create=True))
    yield made
    made.close()


@pytest.fixture
def somebody(spark: Any, engine: Engine, lake: IcebergConnector) -> Engine:
    """Another engine on the same stores."""
    other = Engine(spark=spark)
    other.add_catalog("lake", lake)
    other._catalogs.memory = other._catalogs.connectors["memory"] = engine._catalogs.memory
    return other


def rows(engine: Engine, name: str) -> list[tuple[Any, ...]]:
    found = engine.run(f"SELECT * FROM {name}").table
    assert found is not None
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def made(engine: Engine, catalog: str, more: str = "") -> str:
    name = f"{catalog}.default.t"
    engine.run(f"CREATE TABLE {name} (id bigint, v varchar) {more}")
    engine.run(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    return name


def refused(engine: Engine, name: str | None = None) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        engine.undo(name)
    assert caught.value.changed is False
    assert caught.value.result.trace.kind == "UNDO"
    return caught.value


BEFORE = [(1, "a"), (2, "b"), (3, "c")]
STATEMENTS = {
    "INSERT of 1 row": "INSERT INTO {} VALUES (4, 'd')",
    "UPDATE of 2 rows": "UPDATE {} SET v = upper(v) WHERE id < 3",
    "DELETE of 3 rows": "DELETE FROM {}",
    "MERGE of 3 rows": "MERGE INTO {} t USING (VALUES (1, 'x'), (2, NULL), (9, 'y')) s (id, v) ON t.id = s.id "
    "WHEN MATCHED AND s.v IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)",
    "TRUNCATE TABLE": "TRUNCATE TABLE {}",
}


@pytest.mark.parametrize("words", STATEMENTS)
@pytest.mark.parametrize("catalog", STORES)
@pytest.mark.on_spark
def test_every_statement_that_changes_rows_is_undone(
    engine: Engine, catalog: str, words: str
) -> None:
    name = made(engine, catalog)
    changed = engine.run(STATEMENTS[words].format(name))
    after = rows(engine, name)
    assert after != BEFORE
    result = engine.undo(name)
    assert rows(engine, name) == BEFORE
    (notice,) = result.trace.notices
    assert notice.message == f"Undone: {words}: {STATEMENTS[words].format(name)}"
    assert (result.trace.kind, result.version_before, result.trace.committed) == (
        "UNDO",
        changed.version_after,
        True,
    )
    assert f"Table {name} has its earlier rows again, in version {result.version_after}." in str(
        result
    ).replace("\n", " ")
    # An undone change is not lost: it is a version like any other.
    engine.restore(name, changed.version_after)  # type: ignore[arg-type]
    assert rows(engine, name) == after


@pytest.mark.parametrize("catalog", STORES)
def test_another_undo_undoes_the_statement_before(engine: Engine, catalog: str) -> None:
    name = made(engine, catalog)
    for sql in (
        "UPDATE {} SET v = 'x'",
        "DELETE FROM {} WHERE id = 1",
        "INSERT INTO {} VALUES (9, 'z')",
    ):
        engine.run(sql.format(name))
    seen = []
    for _ in range(4):
        engine.undo()
        seen.append(rows(engine, name))
    assert seen == [[(2, "x"), (3, "x")], [(1, "x"), (2, "x"), (3, "x")], BEFORE, []]
    error = refused(engine, name)
    assert (error.code, error.hint) == (
        "NOT_FOUND",
        "engine.restore(table, version) restores any version that a store keeps.",
    )
    assert error.message.startswith(
        f"There is nothing to undo: this engine has not changed the rows of '{name}'"
    )
    # A later statement is undone separately.
    engine.run(f"INSERT INTO {name} VALUES (5, 'e')")
    engine.undo(name)
    assert rows(engine, name) == []


@pytest.mark.parametrize("catalog", STORES)
def test_later_changes_of_another_session_are_a_conflict(
    engine: Engine, somebody: Engine, catalog: str
) -> None:
    name = made(engine, catalog)
    changed = engine.run(f"UPDATE {name} SET v = 'x'")
    theirs = somebody.run(f"DELETE FROM {name} WHERE id = 2")
    after = rows(engine, name)
    error = refused(engine, name)
    assert error.code == "TRANSACTION_CONFLICT"
    assert error.message == (
        f"Table '{name}' was changed since the UPDATE of 3 rows: that made version {changed.version_after}, "
        f"and version {theirs.version_after} is there now"
    )
    assert f"engine.restore('{name}', {changed.version_before!r})" in (error.hint or "")
    assert rows(engine, name) == after
    # They can undo their change, and the table is as this engine left it.
    somebody.undo()
    assert rows(engine, name) == [(1, "x"), (2, "x"), (3, "x")]


@pytest.mark.parametrize("catalog", STORES)
def test_a_change_of_another_session_between_two_statements_blocks_the_undo_of_the_first(
    engine: Engine, somebody: Engine, catalog: str
) -> None:
    name = made(engine, catalog)
    somebody.run(f"DELETE FROM {name} WHERE id = 2")
    engine.run(f"UPDATE {name} SET v = 'x'")
    engine.undo()
    assert rows(engine, name) == [(1, "a"), (3, "c")]
    assert refused(engine).code == "TRANSACTION_CONFLICT"
    assert rows(engine, name) == [(1, "a"), (3, "c")]


@pytest.mark.parametrize("catalog", STORES)
def test_a_table_that_was_dropped_and_recreated_is_another_one(
    engine: Engine, somebody: Engine, catalog: str
) -> None:
    name = made(engine, catalog)
    somebody.run(f"DROP TABLE {name}")
    assert refused(engine, name).code == "TABLE_NOT_FOUND"
    error = refused(engine)
    assert (error.code, error.hint) == ("TRANSACTION_CONFLICT", "Nothing was taken back.")
    assert (
        error.message
        == f"Table '{name}' was changed since the INSERT of 3 rows: the table was dropped"
    )
    made(somebody, catalog)
    error = refused(engine, name)
    assert (error.code, error.hint) == ("TRANSACTION_CONFLICT", "Nothing was taken back.")
    assert rows(engine, name) == BEFORE


def test_a_table_with_altered_columns_is_not_restored_without_a_request(
    engine: Engine, lake: IcebergConnector
) -> None:
    name = made(engine, "lake")
    changed = engine.run(f"DELETE FROM {name}")
    with lake.catalog.load_table(("default", "t")).update_schema() as update:
        update.add_column("late", StringType())
    error = refused(engine)
    assert (error.code, error.message) == (
        "TRANSACTION_CONFLICT",
        f"Table '{name}' was changed since the DELETE of 3 rows: its columns were altered",
    )
    engine.restore(name, changed.version_before)  # type: ignore[arg-type]
    assert rows(engine, name) == [(1, "a", None), (2, "b", None), (3, "c", None)]


def test_a_column_that_was_dropped_and_added_again_is_another_one(
    engine: Engine, lake: IcebergConnector
) -> None:
    name = made(engine, "lake")
    engine.run(f"DELETE FROM {name}")
    table = lake.catalog.load_table(("default", "t"))
    with table.update_schema() as update:
        update.delete_column("v")
    with table.update_schema() as update:
        update.add_column("v", StringType())
    error = refused(engine)
    assert (error.code, error.message) == (
        "TRANSACTION_CONFLICT",
        f"Table '{name}' was changed since the DELETE of 3 rows: its columns were altered",
    )


def test_a_registered_table_that_is_registered_again_is_another_one(engine: Engine) -> None:
    engine.register("t", pa.table({"id": [1]}))
    engine.run("INSERT INTO t VALUES 2")
    engine.register("t", pa.table({"id": [7]}))
    assert refused(engine, "t").code == "TRANSACTION_CONFLICT"
    assert rows(engine, "t") == [(7,)]


def test_a_partitioned_table_is_restored_with_all_partitions(engine: Engine) -> None:
    name = made(engine, "lake", "WITH (partitioning = ARRAY['v', 'bucket(id, 2)'])")
    engine.run(f"UPDATE {name} SET v = 'moved' WHERE id < 3")
    engine.run(f"DELETE FROM {name} WHERE v = 'c'")
    engine.undo()
    assert rows(engine, name) == [(1, "moved"), (2, "moved"), (3, "c")]
    engine.undo()
    assert rows(engine, name) == BEFORE
    engine.undo()
    assert rows(engine, name) == []
    engine.run(f"INSERT INTO {name} VALUES (5, 'e')")
    assert rows(engine, name) == [(5, "e")]


@pytest.mark.parametrize(
    "more",
    [
        "partitioned_by = ARRAY['v']",
        "bucketed_by = ARRAY['id'], bucket_count = 2",
        "primary_key = ARRAY['id']",
    ],
)
def test_a_table_in_memory_is_restored_with_any_layout(engine: Engine, more: str) -> None:
    name = made(engine, "memory", f"WITH ({more})")
    engine.run(f"UPDATE {name} SET v = 'x' WHERE id = 2")
    engine.undo()
    engine.run(f"UPDATE {name} SET v = 'y' WHERE id = 2")
    assert rows(engine, name) == [(1, "a"), (2, "y"), (3, "c")]


def test_the_older_flow_is_undone_too(engine: Engine) -> None:
    name = made(engine, "memory")
    engine.run(f"DELETE FROM {name} WHERE id = 1", flow="updatable")
    engine.undo()
    assert rows(engine, name) == BEFORE


def test_undo_without_a_name_takes_the_table_changed_last(engine: Engine) -> None:
    first = made(engine, "memory")
    second = made(engine, "lake")
    engine.run(f"DELETE FROM {first}")
    assert f"DELETE FROM {first}" in engine.undo().trace.notices[0].message
    assert f"INSERT INTO {second}" in engine.undo().trace.notices[0].message
    assert (rows(engine, first), rows(engine, second)) == (BEFORE, [])


def test_rehearsed_and_failed_statements_are_not_undone(engine: Engine) -> None:
    name = made(engine, "memory")
    engine.run(f"UPDATE {name} SET v = 'x'")
    engine.run(f"DELETE FROM {name}", rehearse=True)
    engine.run(f"DELETE FROM {name}", dry_run=True)
    with pytest.raises(RowMergeError):
        engine.run(f"UPDATE {name} SET id = 1 / 0")
    assert "UPDATE of 3 rows" in engine.undo().trace.notices[0].message
    assert rows(engine, name) == BEFORE


def test_restoring_is_a_change_that_can_be_undone(engine: Engine) -> None:
    name = made(engine, "memory")
    first = engine.run(f"UPDATE {name} SET v = 'x'").version_before
    engine.restore(name, first)  # type: ignore[arg-type]
    assert rows(engine, name) == BEFORE
    assert (
        engine.undo().trace.notices[0].message
        == f"Undone: RESTORE: RESTORE {name} FOR VERSION AS OF {first}"
    )
    assert rows(engine, name) == [(1, "x"), (2, "x"), (3, "x")]


@pytest.mark.parametrize("catalog", STORES)
def test_a_table_is_restored_to_a_moment(engine: Engine, catalog: str) -> None:
    name = made(engine, catalog)
    moment = dt.datetime.now(dt.UTC)
    engine.run(f"DELETE FROM {name}")
    engine.restore(name, moment)
    assert rows(engine, name) == BEFORE
    with pytest.raises(RowMergeError, match=r"INVALID_ARGUMENTS: The moment .* is not in the past"):
        engine.restore(name, dt.date(2999, 1, 1))


def test_an_expired_version_is_reported(engine: Engine) -> None:
    name = made(engine, "memory")
    memory = engine._catalogs.memory
    memory.keep_versions = 1
    engine.run(f"UPDATE {name} SET v = 'x'")
    engine.run(f"UPDATE {name} SET v = 'y'")
    engine.undo()
    error = refused(engine)
    assert error.code == "INVALID_ARGUMENTS"
    assert "is not retained; available are" in error.message
    assert rows(engine, name) == [(1, "x"), (2, "x"), (3, "x")]


@pytest.mark.parametrize("name", ["lite.main.t", "hive.default.t"])
def test_a_store_without_versions_names_the_remedy(engine: Engine, name: str) -> None:
    other = made(engine, "memory")
    engine.run(f"CREATE TABLE {name} (id bigint)")
    engine.run(f"INSERT INTO {name} VALUES 1, 2")
    for wanted in (name, None):
        error = refused(engine, wanted)
        assert (error.code, error.hint) == (
            "NOT_SUPPORTED",
            (
                "Undo it with a statement: a DELETE removes the new rows."
                " rehearse=True shows a change without storing it."
            ),
        )
        assert error.message.startswith(
            f"The last change of '{name}' was the INSERT of 2 rows, and connector"
        )
    with pytest.raises(
        RowMergeError,
        match="NOT_SUPPORTED: This connector does not support restoring earlier versions",
    ):
        engine.restore(name, 1)
    assert rows(engine, name) == [(1,), (2,)]
    engine.undo(other)
    assert rows(engine, other) == []


def test_a_change_whose_result_could_not_be_reported_is_undone_anyway(spark: Any) -> None:
    from rowmerge_nb import MemoryConnector

    engine, store = Engine(spark=spark), FaultyConnector(MemoryConnector())
    engine.add_catalog("shop", store)
    name = made(engine, "shop")
    store.fault = Fault("commit", after=True, error=RuntimeError)
    with pytest.raises(RowMergeError) as caught:
        engine.run(f"DELETE FROM {name}")
    store.fault = None
    assert caught.value.changed is not True
    # It is not known to exist, so it is not undone by a guess.
    error = refused(engine, name)
    assert error.code == "TRANSACTION_CONFLICT"
    assert rows(engine, name) == []


def test_a_failed_commit_of_an_undo_leaves_the_table_and_can_be_tried_again(spark: Any) -> None:
    from rowmerge_nb import MemoryConnector

    engine, store = Engine(spark=spark), FaultyConnector(MemoryConnector())
    engine.add_catalog("shop", store)
    name = made(engine, "shop")
    engine.run(f"UPDATE {name} SET v = 'x'")
    store.fault = Fault("restore_table", message="the index is torn")
    error = refused(engine)
    assert "the index is torn" in error.message
    store.fault = None
    assert rows(engine, name) == [(1, "x"), (2, "x"), (3, "x")]
    engine.undo()
    assert rows(engine, name) == BEFORE


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda engine: engine.undo(3), "INVALID_ARGUMENTS"),
        (lambda engine: engine.undo(""), "INVALID_ARGUMENTS"),
        (lambda engine: engine.undo("a.b.c.d"), "INVALID_ARGUMENTS"),
        (lambda engine: engine.undo("nope"), "TABLE_NOT_FOUND"),
        (lambda engine: engine.undo("nope.default.t"), "CATALOG_NOT_FOUND"),
        (lambda engine: engine.undo("v"), "NOT_SUPPORTED"),
        (lambda engine: engine.restore("nope", 1), "TABLE_NOT_FOUND"),
        (lambda engine: engine.restore("v", 1), "NOT_SUPPORTED"),
        (lambda engine: engine.restore("memory.default.t", True), "INVALID_ARGUMENTS"),
        (lambda engine: engine.restore("memory.default.t", None), "INVALID_ARGUMENTS"),
        (lambda engine: engine.restore("memory.default.t", 99), "INVALID_ARGUMENTS"),
        (lambda engine: engine.restore("memory.default.t", "main"), "NOT_SUPPORTED"),
        (lambda engine: engine.restore("lake.default.t", "mian"), "INVALID_ARGUMENTS"),
    ],
)
def test_invalid_requests_are_refused(engine: Engine, call: Any, code: str) -> None:
    name = made(engine, "memory")
    made(engine, "lake")
    engine.run(f"CREATE VIEW v AS SELECT * FROM {name}")
    with pytest.raises(RowMergeError) as caught:
        call(engine)
    assert caught.value.code == code
    assert caught.value.hint or code in {"TABLE_NOT_FOUND", "INVALID_ARGUMENTS"}
    assert rows(engine, name) == BEFORE


def test_a_near_name_is_offered(engine: Engine) -> None:
    engine.register("accounts", pa.table({"id": [1]}))
    with pytest.raises(RowMergeError, match="Did you mean 'accounts'"):
        engine.undo("acounts")


def test_a_closed_engine_is_reported() -> None:
    closed = Engine()
    closed.close()
    for call in (closed.undo, lambda: closed.restore("t", 1)):
        with pytest.raises(RowMergeError, match="The engine is closed"):
            call()


def test_the_beginning_of_a_long_statement_is_shown(engine: Engine) -> None:
    name = made(engine, "memory")
    engine.run(
        f"INSERT INTO {name} VALUES {', '.join(f'({number}, NULL)' for number in range(1000))}"
    )
    told = engine.undo().trace.notices[0].message
    assert told.startswith(
        f"Undone: INSERT of 1,000 rows: INSERT INTO {name} VALUES (0, NULL), (1, NULL)"
    )
    assert told.endswith(" ...")
    assert len(told) < 400


def test_only_a_limited_number_of_changes_is_remembered(engine: Engine) -> None:
    from rowmerge_nb.engine.observers.undo_log import MOST

    engine.register("t", pa.table({"id": [0]}))
    changes = engine._runner.session.undo_log
    engine.run("INSERT INTO t VALUES 1")
    changes._changes = changes._changes * MOST
    engine.run("INSERT INTO t VALUES 2")
    assert len(changes._changes) == MOST


def test_the_default_engine_has_both(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    import rowmerge_nb as rm
    from rowmerge_nb import default

    monkeypatch.setattr(default, "_engines", [engine])
    name = made(engine, "memory")
    changed = engine.run(f"DELETE FROM {name}")
    assert rm.undo().trace.kind == "UNDO"
    assert rows(engine, name) == BEFORE
    assert rm.restore(name, changed.version_after).trace.kind == "RESTORE"  # type: ignore[arg-type]
    assert rows(engine, name) == []
