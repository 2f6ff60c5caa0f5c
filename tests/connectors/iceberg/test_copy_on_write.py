"""Copy-on-write: files that lose rows are rewritten if the table's properties require it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi import Constraint
from tests.connectors.iceberg.kit import (
    Statement,
    by_pyiceberg,
    contents,
    delete,
    files,
    insert,
    make_table,
    rows,
    table,
)

COPY = {"write.merge.mode": "copy-on-write"}
INSERT, DELETE = 1, 2


def rewriting(tmp_path: Path, **properties: Any) -> IcebergConnector:
    """Create a table with two files; a MERGE rewrites those that lose rows."""
    store = make_table(tmp_path, extra_properties=COPY, **properties)
    insert(store, rows(1, 2, 3))
    insert(store, rows(4, 5, p="y"))
    return store


def begin(store: IcebergConnector, *deleted: int, inserted: int | None = None) -> Statement:
    """Begin a MERGE that has read the table, and stage its changes in one sink."""
    statement = Statement(store)
    statement.begin_merge()
    known = statement.ids()
    added = [] if inserted is None else [(INSERT, None, inserted, "new", "x")]
    statement.stage([*((DELETE, known[key], None, None, None) for key in deleted), *added])
    return statement


def live(store: IcebergConnector) -> tuple[set[str], int]:
    """Return the paths of the live data files and the number of live delete files."""
    tasks = list(table(store).scan().plan_files())
    return {task.file.file_path for task in tasks}, len(
        {one.file_path for task in tasks for one in task.delete_files}
    )


def summary(store: IcebergConnector) -> tuple[str, dict[str, str]]:
    found = table(store).current_snapshot().summary
    return found.operation.value, dict(found.additional_properties)


def test_a_file_that_loses_rows_is_replaced_and_others_stay(tmp_path: Path) -> None:
    store = rewriting(tmp_path)
    before, _ = live(store)
    statement = begin(store, 2, inserted=9)
    statement.finish()
    statement.commit()
    after, deletes = live(store)
    assert (len(before & after), len(before - after), deletes) == (1, 1, 0)
    assert contents(store) == by_pyiceberg(store)
    assert [row[0] for row in contents(store)] == [1, 3, 4, 5, 9]
    operation, counts = summary(store)
    assert operation == "overwrite"
    assert (counts["deleted-data-files"], counts["deleted-records"]) == ("1", "3")
    assert counts["total-records"] == "5"
    assert "added-delete-files" not in counts


def test_a_delete_of_all_rows_of_a_file_adds_no_file(tmp_path: Path) -> None:
    store = rewriting(tmp_path)
    statement = begin(store, 4, 5)
    statement.finish()
    statement.commit()
    assert summary(store)[0] == "delete"
    assert len(live(store)[0]) == 1
    assert [row[0] for row in by_pyiceberg(store)] == [1, 2, 3]


def test_delete_files_of_a_rewritten_file_are_applied_and_dropped(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2, 3))
    insert(store, rows(4, 5))
    delete(store, 1, 4)
    assert live(store)[1] == 2
    with table(store).transaction() as update:
        update.set_properties(COPY)
    delete(store, 2)
    assert live(store)[1] == 1
    assert contents(store) == by_pyiceberg(store)
    assert [row[0] for row in contents(store)] == [3, 5]
    assert summary(store)[1]["removed-position-delete-files"] == "1"


def test_rows_of_a_file_of_an_older_partitioning_go_to_their_partitions(tmp_path: Path) -> None:
    store = rewriting(tmp_path)
    with table(store).update_spec() as update:
        update.add_identity("p")
    delete(store, 1)
    tasks = list(table(store).scan().plan_files())
    assert sorted(task.file.spec_id for task in tasks) == [0, 1]
    assert contents(store) == by_pyiceberg(store)
    assert [row[0] for row in contents(store)] == [2, 3, 4, 5]


def test_sorted_tables_stay_sorted(tmp_path: Path) -> None:
    store = rewriting(tmp_path, sorted_by=("id DESC",))
    delete(store, 2)
    statement = Statement(store)
    assert {
        tuple(row["id"] for row in statement.rows_of(split)) for split in statement.splits()
    } == {(3, 1), (5, 4)}


def test_the_update_layout_has_one_writer_for_each_file(tmp_path: Path) -> None:
    for store, several in (
        (rewriting(tmp_path / "copy"), False),
        (make_table(tmp_path / "delete"), True),
    ):
        statement = Statement(store)
        layout = statement.metadata.get_update_layout(statement.session, statement.handle)
        assert layout.multiple_writers_per_partition_supported is several


def test_a_file_that_two_writers_rewrite_is_an_error(tmp_path: Path) -> None:
    store = rewriting(tmp_path)
    before = contents(store)
    statement = Statement(store)
    statement.begin_merge()
    known = statement.ids()
    for key in (1, 2):
        statement.stage([(DELETE, known[key], None, None, None)])
    with pytest.raises(ConnectorError, match="Two writers rewrote one file"):
        statement.finish()
    statement.rollback()
    assert contents(store) == before
    assert len(files(store)) == 2


def test_a_row_that_a_file_does_not_have_is_an_error(tmp_path: Path) -> None:
    store = rewriting(tmp_path)
    statement = Statement(store)
    statement.begin_merge()
    sink = statement.sink([(DELETE, {"file": 0, "position": 77}, None, None, None)])
    with pytest.raises(ValueError, match="at positions 77 to 77, but the file has 0 of them"):
        sink.finish()
    sink.abort()
    statement.rollback()
    assert len(files(store)) == 2


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_concurrent_change_of_the_same_file_is_a_conflict(tmp_path: Path, mode: str) -> None:
    store = rewriting(tmp_path)
    statement = begin(store, 1)
    with table(store).transaction() as update:
        update.set_properties({"write.merge.mode": mode})
    delete(store, 3)
    after = contents(store)
    statement.finish()
    with pytest.raises(ConnectorError, match="TRANSACTION_CONFLICT"):
        statement.commit()
    statement.rollback()
    assert contents(store) == after == by_pyiceberg(store)


@pytest.mark.parametrize("level", ["serializable", "snapshot"])
def test_a_concurrent_insert_is_a_conflict_of_serializable_statements(
    tmp_path: Path, level: str
) -> None:
    store = rewriting(tmp_path, isolation_level=level)
    statement = begin(store, 1)
    insert(store, rows(6))
    statement.finish()
    if level == "serializable":
        with pytest.raises(ConnectorError, match="added rows"):
            statement.commit()
        statement.rollback()
    else:
        statement.commit()
    expected = [1, 2, 3, 4, 5, 6] if level == "serializable" else [2, 3, 4, 5, 6]
    assert [row[0] for row in by_pyiceberg(store)] == expected


def test_a_failed_rewrite_leaves_no_file(tmp_path: Path) -> None:
    store = rewriting(tmp_path)
    before = files(store)
    statement = begin(store, 1, inserted=7)
    assert len(files(store)) == len(before) + 1
    statement.rollback()
    assert files(store) == before


# -- properties


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"write.merge.mode": "both"}, "can be 'copy-on-write' or 'merge-on-read', not 'both'"),
        ({"write.distribution-mode": "x"}, "can be 'none' or 'hash' or 'range', not 'x'"),
        ({"write.merge.modes": "x"}, r"Illegal keys in extra_properties: \[write.merge.modes\]"),
        ("copy-on-write", "Cannot convert"),
    ],
)
def test_other_values_and_properties_are_refused(tmp_path: Path, extra: Any, message: str) -> None:
    with pytest.raises(RowMergeError, match=message):
        make_table(tmp_path, extra_properties=extra)


def test_an_invalid_value_of_another_engine_is_refused_before_anything_is_written(
    tmp_path: Path,
) -> None:
    store = rewriting(tmp_path)
    with table(store).transaction() as update:
        update.set_properties({"write.merge.mode": "sometimes"})
    statement = Statement(store)
    with pytest.raises(ConnectorError, match=r"write\.merge\.mode .* is 'sometimes'"):
        statement.metadata.get_merge_row_id_column_handle(statement.session, statement.handle)


@pytest.mark.parametrize(("word", "has_layout"), [("none", False), ("hash", True), ("range", True)])
def test_a_distribution_decides_whether_partitions_have_one_writer(
    tmp_path: Path, word: str, has_layout: bool
) -> None:
    store = make_table(
        tmp_path, partitioning=("p",), extra_properties={"write.distribution-mode": word}
    )
    statement = Statement(store)
    layout = statement.metadata.get_insert_layout(statement.session, statement.handle)
    assert (layout is not None) is has_layout
    statement.begin_merge()
    output = statement.metadata.finish_merge(statement.session, statement.merge_handle, [])
    assert [" is 'range', which is executed as 'hash'" in one for one in output.notices] == (
        [True] if word == "range" else []
    )


# -- statements


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Any:
    store = IcebergConnector(tmp_path)
    with Engine(spark=spark) as engine:
        engine.add_catalog("ice", store)
        yield engine, store


@pytest.mark.spark
def test_a_map_of_properties_has_a_value_for_each_key(
    lake: tuple[Engine, IcebergConnector],
) -> None:
    for value in ("MAP(ARRAY['write.merge.mode'], ARRAY[])", "MAP(ARRAY['write.merge.mode'])"):
        with pytest.raises(
            RowMergeError, match=r"INVALID_TABLE_PROPERTY: line 1:43: .* neither a constant"
        ):
            lake[0].run(f"CREATE TABLE ice.default.t (id int) WITH (extra_properties = {value})")


@pytest.mark.spark
def test_each_statement_has_a_mode_of_its_own(lake: tuple[Engine, IcebergConnector]) -> None:
    engine, store = lake
    engine.run(
        "CREATE TABLE ice.default.t WITH (extra_properties = MAP(ARRAY['write.update.mode',"
        " 'write.delete.mode'], ARRAY['copy-on-write', 'merge-on-read'])) AS"
        " SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, 'c')) AS s(id, v)"
    )
    statements = {
        "UPDATE ice.default.t SET v = 'B' WHERE id = 2": 0,
        "MERGE INTO ice.default.t t USING (VALUES 3) s(id) ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET v = 'C'": 1,
        "DELETE FROM ice.default.t WHERE id = 1": 2,
    }
    for sql, deletes in statements.items():
        result = engine.run(sql)
        text = " ".join(notice.message for notice in result.trace.notices)
        word = sql.split()[0].lower()
        assert (f"write.{word}.mode of table" in text) is (word != "merge"), text
        assert ("copied rows" in text) is (word == "update")
        assert ("default of Spark is copy-on-write" in text) is (word != "merge")
        assert int(summary(store)[1].get("total-delete-files", "0")) == deletes
    assert by_pyiceberg(store) == [(2, "B"), (3, "C")]


@pytest.mark.spark
def test_properties_are_altered_and_changes_undone(
    lake: tuple[Engine, IcebergConnector],
) -> None:
    engine, store = lake
    engine.run("CREATE TABLE ice.default.t AS SELECT * FROM (VALUES 1, 2, 3) AS s(id)")
    engine.run(
        "ALTER TABLE ice.default.t SET PROPERTIES extra_properties ="
        " MAP(ARRAY['write.delete.mode'], ARRAY['copy-on-write'])"
    )
    engine.run("DELETE FROM ice.default.t WHERE id = 2")
    assert live(store)[1] == 0
    assert by_pyiceberg(store) == [(1,), (3,)]
    engine.undo()
    assert by_pyiceberg(store) == [(1,), (2,), (3,)]
    assert Statement(store).splits(Constraint())
