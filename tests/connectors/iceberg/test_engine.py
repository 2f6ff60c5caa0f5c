"""Statements on Iceberg tables, run by the engine on Spark."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError
from rowmerge_nb.connectors.iceberg.iceberg_metadata import IcebergMetadata
from rowmerge_nb.demo import SETUP, STATEMENT

pytestmark = pytest.mark.spark

AFTER = [
    ("Aaron", 11, "Arches"),
    ("Carol", 12, "Centreville"),
    ("Dave", 11, "Devon"),
    ("Ed", 7, "Etherville"),
    ("Gus", 2, "Gilroy"),
    ("Joe Shmoe", 112, "Jamestown"),
]


@pytest.fixture
def lake(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(spark=spark, catalog="lake")
    engine.add_catalog("lake", IcebergConnector(tmp_path))
    yield engine
    engine.close()


def rows_of(engine: Engine, table: str = "t") -> list[tuple[Any, ...]]:
    found = engine.run(f"SELECT * FROM {table}").table
    assert found is not None
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=repr)


def table_of(engine: Engine, name: str) -> Any:
    connector: Any = engine._catalogs.connectors["lake"]
    return connector.catalog.load_table(("default", name))


@pytest.mark.parametrize("era", ["documents", "current"])
@pytest.mark.parametrize(
    "partitioning", ["", "'address'", "'bucket(customer, 4)', 'truncate(address, 1)'"]
)
def test_the_document_s_merge_in_both_eras_creates_one_snapshot_that_pyiceberg_reads_alike(
    lake: Engine, era: str, partitioning: str
) -> None:
    made = f"WITH (partitioning = ARRAY[{partitioning}])" if partitioning else ""
    lake.run_script(SETUP.replace("WITH (partitioned_by = ARRAY['address'])", made))
    before = len(table_of(lake, "accounts").snapshots())
    result = lake.run(STATEMENT.replace("= purchases +", "= t.purchases +"), era=era)
    assert [(a, int(b), c) for a, b, c in rows_of(lake, "accounts")] == AFTER
    assert result.count == 6
    table = table_of(lake, "accounts")
    read = table.scan().to_arrow().to_pylist()
    assert sorted((row["customer"], int(row["purchases"]), row["address"]) for row in read) == AFTER
    assert len(table.snapshots()) == before + 1
    summary = table.current_snapshot().summary
    assert summary.operation.value == "overwrite"
    assert (summary["added-records"], summary["added-position-deletes"]) == ("5", "4")


def test_statements_of_every_kind_on_a_partitioned_table(lake: Engine) -> None:
    made = lake.run("""
        CREATE TABLE t WITH (partitioning = ARRAY['month(day)', 'bucket(id, 2)']) AS
        SELECT * FROM (VALUES (1, DATE '2024-01-31', CAST('a' AS char(3)), TIMESTAMP '2024-01-31 01:02:03.1'),
                              (2, DATE '2024-02-01', 'b', NULL), (3, NULL, NULL, NULL)) x (id, day, c, ts)""")
    assert made.count == 3
    shown = lake.run("SHOW CREATE TABLE t").table.to_pylist()[0]["Create Table"]
    assert "c varchar" in shown
    assert "partitioning = ARRAY['month(day)', 'bucket(id, 2)']" in shown
    assert len(table_of(lake, "t").snapshots()) == 1, "table and rows are one commit"
    assert lake.run("INSERT INTO t (id, day) VALUES (4, DATE '2024-02-29'), (5, NULL)").count == 2
    assert lake.run("UPDATE t SET day = DATE '2024-03-01', c = 'new' WHERE id IN (1, 4)").count == 2
    assert lake.run("DELETE FROM t WHERE day IS NULL").count == 2
    assert [row[:3] for row in rows_of(lake)] == [
        (1, dt.date(2024, 3, 1), "new"),
        (2, dt.date(2024, 2, 1), "b"),
        (4, dt.date(2024, 3, 1), "new"),
    ]
    read = table_of(lake, "t").scan().to_arrow().select(["id", "day", "c"]).to_pylist()
    assert sorted(tuple(row.values()) for row in read) == [row[:3] for row in rows_of(lake)]
    assert lake.run("SELECT count(*) FROM t WHERE day >= DATE '2024-03-01'").table.to_pylist()[
        0
    ] == {"_col0": 2}
    lake.run("TRUNCATE TABLE t")
    assert rows_of(lake) == []
    lake.run_script(
        "CREATE SCHEMA lake.more; CREATE TABLE lake.more.t (a integer); DROP TABLE lake.more.t; DROP SCHEMA lake.more"
    )
    assert "more" not in {
        row["Schema"] for row in lake.run("SHOW SCHEMAS FROM lake").table.to_pylist()
    }


@pytest.mark.parametrize(
    ("begin", "after"), [("9999-12-31", "10000-01-02"), ("9998-12-30", "9999-01-01")]
)
def test_days_beyond_the_range_of_python_are_written_changed_and_found(
    lake: Engine, begin: str, after: str
) -> None:
    lake.run("CREATE TABLE t (id integer, d date, ts timestamp(6))")
    lake.run(
        f"INSERT INTO t SELECT 1, DATE '{begin}' + INTERVAL '1' DAY, TIMESTAMP '{begin} 00:00:00' + INTERVAL '1' DAY"
    )
    lake.run("INSERT INTO t SELECT 2, DATE '0001-01-01' - INTERVAL '1' DAY, NULL")
    lake.run("UPDATE t SET id = id + 10, d = d + INTERVAL '1' DAY")
    assert (
        lake.run(
            "MERGE INTO t USING (VALUES 12) s(id) ON t.id = s.id WHEN MATCHED THEN DELETE"
        ).count
        == 1
    )
    found = lake.run(f"SELECT id, CAST(d AS varchar) FROM t WHERE d > DATE '{begin}'").table
    assert found is not None
    assert [tuple(row.values()) for row in found.to_pylist()] == [(11, after)]


@pytest.mark.parametrize("partitioning", ["", "'d'", "'day(d)'", "'at'", "'hour(at)'"])
def test_partitions_of_years_beyond_the_range_of_python_are_written_changed_and_found(
    lake: Engine, partitioning: str
) -> None:
    lake.run(
        f"CREATE TABLE t (d date, at timestamp(6)) WITH (partitioning = ARRAY[{partitioning}])"
    )
    for day in ("-0001-01-01", "2024-02-29", "10000-01-01"):
        lake.run(
            f"INSERT INTO t SELECT d, CAST(d AS timestamp(6)) FROM (VALUES DATE '{day}') AS v(d)"
        )
    assert lake.run("DELETE FROM t WHERE d > DATE '9999-12-31'").count == 1
    assert (
        lake.run(
            "UPDATE t SET d = date_add('day', 1, d) WHERE at < TIMESTAMP '0000-01-01 00:00:00'"
        ).count
        == 1
    )
    found = lake.run("SELECT CAST(d AS varchar) AS d FROM t ORDER BY 1").table
    assert found is not None
    assert found.column("d").to_pylist() == ["-0001-01-02", "2024-02-29"]


def test_a_small_merge_creates_one_data_file_and_one_delete_file_per_touched_file(
    lake: Engine, spark: Any
) -> None:
    lake.run("CREATE TABLE t (id bigint, v varchar)")
    for start in (0, 100):
        lake.run(f"INSERT INTO t SELECT n, 'old' FROM TABLE(sequence({start}, {start + 99})) s (n)")
    files = int(table_of(lake, "t").current_snapshot().summary["total-data-files"])
    result = lake.run("""
        MERGE INTO t USING (SELECT * FROM TABLE(sequence(90, 209))) s (n) ON t.id = s.n
        WHEN MATCHED AND n < 95 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'new' WHEN NOT MATCHED THEN INSERT VALUES (n, 'more')""")
    summary = table_of(lake, "t").current_snapshot().summary
    assert result.count == 120
    assert summary["added-data-files"] == "1"
    assert int(summary["added-delete-files"]) <= files
    assert summary["added-position-deletes"] == "110"


def test_another_commit_while_the_statement_runs_fails_it_and_leaves_the_table_to_the_other(
    lake: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.run_script(
        "CREATE TABLE t (id bigint, v varchar); INSERT INTO t VALUES (1, 'a'), (2, 'b')"
    )
    finish = IcebergMetadata.finish_merge

    def late(self: Any, *arguments: Any) -> None:
        finish(self, *arguments)
        monkeypatch.undo()
        lake.run("UPDATE t SET v = 'other' WHERE id = 1")

    monkeypatch.setattr(IcebergMetadata, "finish_merge", late)
    with pytest.raises(
        RowMergeError,
        match=r"TRANSACTION_CONFLICT: Iceberg table 'default.t' was changed while the statement ran",
    ) as caught:
        lake.run("UPDATE t SET v = 'mine'")
    assert "Run it again" in str(caught.value)
    assert rows_of(lake) == [(1, "other"), (2, "b")]
    connector: Any = lake._catalogs.connectors["lake"]
    assert connector.orphans() == []


def test_a_statement_that_fails_in_a_task_or_at_its_end_leaves_nothing(
    lake: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.run_script("CREATE TABLE t (id bigint, v bigint); INSERT INTO t VALUES (1, 1), (2, 0)")
    before = table_of(lake, "t").metadata_location
    with pytest.raises(RowMergeError, match=r"DIVISION_BY_ZERO"):
        lake.run("UPDATE t SET v = 1 / v")

    def failing(*_: Any) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(IcebergMetadata, "finish_merge", failing)
    with pytest.raises(RowMergeError, match=r"no more"):
        lake.run("UPDATE t SET v = 3")
    table = table_of(lake, "t")
    assert table.metadata_location == before
    folder = Path(table.location().removeprefix("file://")) / "data"
    assert len(list(folder.rglob("*.parquet"))) == int(
        table.current_snapshot().summary["total-data-files"]
    )
    assert rows_of(lake) == [(1, 1), (2, 0)]


def test_a_table_that_cannot_be_shown_does_not_hide_the_others(lake: Engine) -> None:
    lake.run_script("CREATE TABLE good (id bigint); CREATE TABLE bad (id bigint)")
    path = Path(table_of(lake, "bad").metadata_location.removeprefix("file://"))
    path.write_text(
        path.read_text()
        .replace('"type":"long"', '"type":"timestamp_ns"')
        .replace('"format-version":2', '"format-version":3,"next-row-id":0')
    )
    listed = {entry[0]: entry[2] for entry in lake.tables()}
    assert listed["lake.default.good"] == ("id bigint",)
    assert listed["lake.default.bad"] == ()
    with pytest.raises(
        RowMergeError, match=r"Column 'id' of Iceberg table 'default.bad' is of type timestamp_ns"
    ):
        lake.run("SELECT * FROM bad")
