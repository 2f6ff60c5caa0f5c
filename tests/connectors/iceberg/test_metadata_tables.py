"""The metadata tables of Iceberg tables, as in Trino 483."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from rowmerge_nb import Engine, IcebergConnector, RowMergeError

pytestmark = [pytest.mark.spark, pytest.mark.stand_in]

TABLE = """
CREATE TABLE t (a integer, b varchar, c decimal(5,2), d date, e timestamp(6), f double, g varbinary, h boolean, i row(x integer), j array(integer),
    k timestamp(6) with time zone, u uuid, m time(6)) WITH (partitioning = ARRAY['b', 'month(d)', 'bucket(a, 4)']);
INSERT INTO t VALUES
    (1, 'x', 1.5, DATE '2024-01-05', TIMESTAMP '2024-01-05 10:11:12.1234', nan(), X'01ff', true, ROW(1), ARRAY[1, 2],
        TIMESTAMP '2024-01-05 10:11:12 UTC', UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59', TIME '10:11:12.5'),
    (2, 'y', NULL, DATE '2024-02-05', NULL, -1.5, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO t (a, b, d) VALUES (5, 'x', DATE '2024-01-06')
"""


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(spark=spark, catalog="lake")
    engine.add_catalog("lake", IcebergConnector(tmp_path_factory.mktemp("told") / "warehouse"))
    engine.run_script(TABLE)
    yield engine
    engine.close()


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    found = engine.run(query).table
    assert found is not None
    return [tuple(row.values()) for row in found.to_pylist()]


def described(engine: Engine, name: str) -> list[str]:
    return [f"{column} {kind}" for column, kind, *_ in rows(engine, f'DESCRIBE "{name}"')]


def test_their_columns_are_those_of_trino(lake: Engine) -> None:
    moment = "timestamp(3) with time zone"
    assert described(lake, "t$history") == [
        *(
            f"made_current_at {moment}",
            "snapshot_id bigint",
            "parent_id bigint",
            "is_current_ancestor boolean",
        ),
    ]
    assert described(lake, "t$snapshots") == [
        *(
            f"committed_at {moment}",
            "snapshot_id bigint",
            "parent_id bigint",
            "operation varchar",
            "manifest_list varchar",
        ),
        "summary map(varchar, varchar)",
    ]
    files = described(lake, "t$files")
    assert files[:5] == [
        *("content integer", "file_path varchar", "file_format varchar", "spec_id integer"),
        'partition row("b" varchar, "d_month" integer, "a_bucket" integer)',
    ]
    bounds = 'row("1" integer, "2" varchar, "3" decimal(5,2), "4" date, "5" timestamp(6), "6" double, "7" varbinary, "8" boolean, "14" integer, "15" integer, "11" timestamp(6) with time zone, "12" uuid, "13" time(6))'
    assert files[11:13] == [f"lower_bounds {bounds}", f"upper_bounds {bounds}"]
    assert files[17:] == [
        *("readable_metrics json", "added_snapshot_id bigint", "file_sequence_number bigint"),
        *("data_sequence_number bigint", "referenced_data_file varchar", "pos bigint"),
        *("manifest_location varchar", "first_row_id bigint", "content_offset bigint"),
        "content_size_in_bytes bigint",
    ]
    for kind in ("manifests", "all_manifests"):
        assert described(lake, f"t${kind}")[:2] == ["content integer", "path varchar"]
    *sizes, data = described(lake, "t$partitions")
    assert sizes[1:] == ["record_count bigint", "file_count bigint", "total_size bigint"]
    counts = '"null_count" bigint, "nan_count" bigint'
    assert data.startswith(
        f'data row("a" row("min" integer, "max" integer, {counts}), "c" row("min" decimal(5,2), "max" decimal(5,2), {counts}), '
    )
    assert ' "b" row(' not in data
    assert ' "i" row(' not in data
    assert described(lake, "t$refs")[:3] == ["name varchar", "type varchar", "snapshot_id bigint"]
    assert described(lake, "t$metadata_log_entries")[0] == f"timestamp {moment}"


def test_snapshots_and_history_list_every_commit(lake: Engine) -> None:
    told = rows(
        lake,
        """SELECT operation, parent_id IS NULL, element_at(summary, 'added-records') FROM "t$snapshots" ORDER BY committed_at""",
    )
    assert told == [("append", True, None), ("append", False, "2"), ("append", False, "1")]
    joined = 'SELECT h.is_current_ancestor FROM "t$history" h JOIN "t$snapshots" s USING (snapshot_id) ORDER BY committed_at'
    assert rows(lake, joined) == [(True,), (True,), (True,)]
    assert rows(lake, 'SELECT name, type FROM "t$refs"') == [("main", "BRANCH")]
    assert rows(lake, """SELECT value FROM "t$properties" WHERE key = 'format'""") == [
        ("iceberg/PARQUET",)
    ]
    assert rows(
        lake, 'SELECT count(*), count(latest_snapshot_id) FROM "t$metadata_log_entries"'
    ) == [(3, 3)]


def test_files_list_their_bounds_as_in_trino(lake: Engine) -> None:
    told = rows(
        lake,
        """SELECT partition.d_month, lower_bounds, readable_metrics FROM "t$files" WHERE partition.b = 'x' AND partition.a_bucket = 0""",
    )
    month, bounds, metrics = next(row for row in told if row[1]["3"] is not None)
    assert month == 648
    assert bounds == {
        "1": 1,
        "2": "x",
        "3": Decimal("1.50"),
        "4": date(2024, 1, 5),
        "5": datetime(2024, 1, 5, 10, 11, 12, 123400),  # noqa: DTZ001 - without a zone
        "6": None,
        "7": b"\x01\xff",
        "8": True,
        "14": None,
        "15": None,
        "11": datetime(2024, 1, 5, 10, 11, 12, tzinfo=UTC),
        "12": "12151fd2-7586-11e9-8f9e-2a86e4085a59",
        "13": time(10, 11, 12, 500000),
    }
    read = json.loads(metrics)
    assert list(read) == ["a", "b", "c", "d", "e", "f", "g", "h", "i.x", "j.element", "k", "m", "u"]
    wanted = {
        "a": 1,
        "c": "1.50",
        "e": "2024-01-05T10:11:12.1234",
        "f": None,
        "g": "01FF",
        "h": True,
        "m": "10:11:12.5",
    }
    assert {name: read[name]["lower_bound"] for name in wanted} == wanted


def test_partitions_summarize_their_files(lake: Engine) -> None:
    told = rows(
        lake,
        """SELECT sum(record_count), sum(file_count), min(data.a.min), max(data.a.max) FROM "t$partitions" WHERE partition.b = 'x'""",
    )
    assert told == [(2, 2, 1, 5)]
    nulls = rows(
        lake,
        """SELECT data.c.min, data.c.null_count, data.f.max AS greatest FROM "t$partitions" WHERE partition.b = 'y'""",
    )
    assert nulls == [(None, 1, -1.5)]
    summaries = rows(
        lake,
        'SELECT added_data_files_count, partition_summaries[2].lower_bound FROM "t$manifests" ORDER BY added_rows_count',
    )
    assert summaries == [(1, "2024-01"), (2, "2024-01")]


def test_they_are_read_only(lake: Engine) -> None:
    for statement in ('DELETE FROM "t$files"', 'SELECT * FROM "t$snapshots" FOR VERSION AS OF 1'):
        with pytest.raises(RowMergeError) as caught:
            lake.run(statement)
        assert caught.value.code == "NOT_SUPPORTED"
    for name in ("t$nosuch", "nosuch$files", "$files"):
        with pytest.raises(RowMergeError) as caught:
            lake.run(f'SELECT * FROM "{name}"')
        assert (caught.value.code, caught.value.message) == (
            "TABLE_NOT_FOUND",
            f"Table 'lake.default.\"{name}\"' does not exist",
        )


def test_a_table_without_files_has_no_rows_for_them(lake: Engine) -> None:
    lake.run("CREATE TABLE plain (a integer)")
    assert described(lake, "plain$partitions")[0] == "record_count bigint"
    assert "partition" not in " ".join(described(lake, "plain$files"))
    for kind in ("files", "manifests", "all_manifests", "entries", "all_entries"):
        assert rows(lake, f'SELECT * FROM "plain${kind}"') == []
    assert rows(lake, 'SELECT * FROM "plain$partitions"') == [(None, 0, None, {"a": None})]
    for kind in ("snapshots", "history", "refs"):
        assert rows(lake, f'SELECT count(*) FROM "plain${kind}"') == [(1,)]


def test_entries_and_manifests_of_all_snapshots_list_the_fate_of_files(lake: Engine) -> None:
    lake.run_script("""
        CREATE TABLE kept (a integer, p integer) WITH (partitioning = ARRAY['p']);
        INSERT INTO kept VALUES (1, 1), (2, 1), (3, 2), (4, 3);
        DELETE FROM kept WHERE a IN (1, 3)""")
    of_file = "status, data_file.content, data_file.record_count, data_file.partition.p"
    assert sorted(rows(lake, f'SELECT {of_file} FROM "kept$entries"')) == [
        (1, 0, 1, 2), (1, 0, 1, 3), (1, 0, 2, 1), (1, 1, 1, 1), (1, 1, 1, 2),
    ]  # fmt: skip
    lake.run("ALTER TABLE kept EXECUTE optimize")
    # One of the two files with deleted rows is rewritten, and nothing remains of the other.
    assert sorted(rows(lake, f'SELECT {of_file} FROM "kept$entries"')) == [
        (0, 0, 1, 3), (1, 0, 1, 1), (2, 0, 1, 2), (2, 0, 2, 1), (2, 1, 1, 1), (2, 1, 1, 2),
    ]  # fmt: skip
    assert sorted(rows(lake, 'SELECT partition.p, record_count FROM "kept$partitions"')) == [
        (1, 1),
        (3, 1),
    ]
    assert rows(lake, 'SELECT status, count(*) FROM "kept$all_entries" GROUP BY 1 ORDER BY 1') == [
        (0, 1),
        (1, 6),
        (2, 4),
    ]
    lake.run("TRUNCATE TABLE kept")
    assert (
        rows(lake, 'SELECT * FROM "kept$files"')
        == rows(lake, 'SELECT * FROM "kept$partitions"')
        == []
    )
