"""The option record keeps the pages passed to the connector; without it, those of a failing call are kept."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from rowmerge_nb import ConnectorError, Engine, MemoryConnector, RowMergeError, load_record, replay
from rowmerge_nb.connectors.hive_acid.hive_connector import HiveAcidConnector
from rowmerge_nb.connectors.iceberg.iceberg_connector import IcebergConnector
from rowmerge_nb.engine.observers import statement_record as recording_module
from rowmerge_nb.testing.faults import Fault, FaultyConnector
from tests.replays.shop import Shop

pytestmark = pytest.mark.spark

MERGE = """MERGE INTO {0} t USING (VALUES (1, 'x'), (2, 'y'), (9, 'z')) s (id, v) ON t.id = s.id
WHEN MATCHED AND s.id = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"""
FRAME = pd.DataFrame({"id": [1, 2, 3], "v": ["a", "b", None]})


@pytest.fixture
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark)
    engine.register("t", FRAME)
    return engine


@pytest.mark.parametrize(
    "options", [{}, {"era": "current"}, {"paradigm": "CHANGE_ONLY_UPDATED_COLUMNS"}], ids=str
)
def test_a_recorded_merge_is_replayed_with_the_same_rows(
    engine: Engine, options: Any, tmp_path: Path
) -> None:
    result = engine.run(MERGE.format("t"), record=str(tmp_path / "t.record"), **options)
    record = result.record()
    assert record.is_complete
    assert load_record(tmp_path / "t.record") == record
    done = replay(record, MemoryConnector)
    assert done.agrees, done
    assert done.remaining is not None
    left = pa.Table.from_batches([done.remaining]).sort_by("id")
    assert left.equals(engine.table("t").sort_by("id").cast(left.schema))


@pytest.mark.parametrize("flow", ["merge", "updatable"])
@pytest.mark.parametrize(
    "sql", ["UPDATE t SET v = v || '!', id = id + 10 WHERE id > 1", "DELETE FROM t WHERE id <> 2"]
)
def test_updates_and_deletes_of_both_flows_are_replayed(
    engine: Engine, sql: str, flow: str
) -> None:
    result = engine.run(sql, record=True, flow=flow)
    done = replay(result, MemoryConnector)
    assert done.agrees, done
    assert done.record.worker == ("split" if flow == "updatable" else "writer")


def test_inserts_are_replayed(engine: Engine) -> None:
    for sql in ("INSERT INTO t VALUES (7, 'q')", "CREATE TABLE u AS SELECT id, v FROM t"):
        done = replay(engine.run(sql, record=True), MemoryConnector)
        assert done.agrees, done


@pytest.mark.parametrize("kind", [HiveAcidConnector, IcebergConnector])
def test_partitioned_tables_of_stores_with_files_are_replayed(
    engine: Engine, kind: Any, tmp_path: Path
) -> None:
    engine.add_catalog("files", kind(tmp_path / "lake"))
    name = "partitioned_by" if kind is HiveAcidConnector else "partitioning"
    engine.run("CREATE SCHEMA IF NOT EXISTS files.default")
    engine.run(
        f"CREATE TABLE files.default.p (id bigint, v varchar, part varchar) WITH ({name} = ARRAY['part'])"
    )
    engine.run(
        "INSERT INTO files.default.p VALUES (1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'x'), (4, 'd', 'y')"
    )
    result = engine.run(
        "UPDATE files.default.p SET part = 'z', v = 'new' WHERE id IN (1, 2, 3)", record=True
    )
    done = replay(result, lambda folder: kind(folder / "other"))
    assert done.agrees, done


def test_pages_are_not_kept_unless_requested(engine: Engine) -> None:
    with pytest.raises(
        RowMergeError, match=r"The pages of this MERGE were not kept.*record=True"
    ) as caught:
        engine.run(MERGE.format("t")).record()
    assert caught.value.code == "NOT_SUPPORTED"
    with pytest.raises(RowMergeError, match="The pages of this SELECT were not kept"):
        engine.run("SELECT * FROM t", record=True).record()
    with pytest.raises(RowMergeError, match="The pages of this MERGE were not kept"):
        engine.run(MERGE.format("t"), record=True, dry_run=True).record()


def test_the_pages_of_a_call_that_fails_in_a_task_are_kept_anyway(engine: Engine) -> None:
    faulty = FaultyConnector(Shop(), Fault("store_merged_rows", error=ValueError, message="no"))
    engine.add_catalog("shop", faulty)
    engine.run("CREATE TABLE shop.default.t (id bigint, v varchar)")
    engine.run("INSERT INTO shop.default.t VALUES (1, 'a'), (2, 'b')")
    with pytest.raises(RowMergeError) as caught:
        engine.run(MERGE.format("shop.default.t"))
    record = caught.value.result.record()
    assert record.failure is not None
    assert (record.failure.method, record.failure.number) == ("store_merged_rows", 0)
    assert record.is_complete
    assert record.rows.num_rows == 2
    done = replay(
        record,
        lambda: FaultyConnector(Shop(), Fault("store_merged_rows", error=ValueError, message="no")),
        writer=0,
    )
    assert (done.step, str(done.error)) == ("store_merged_rows", "no")


def test_a_failure_of_the_finish_call_is_in_the_requested_record(
    engine: Engine, tmp_path: Path
) -> None:
    engine.add_catalog("shop", Shop("typo in finish_merge"))
    engine.run("CREATE TABLE shop.default.t (id bigint, v varchar)")
    engine.run("INSERT INTO shop.default.t VALUES (1, 'a'), (2, 'b')")
    with pytest.raises(RowMergeError):
        engine.run(MERGE.format("shop.default.t"), record=str(tmp_path / "t.record"))
    record = load_record(tmp_path / "t.record")
    assert record.failure is not None
    assert record.failure.method == "finish_merge"
    done = replay(record, partial(Shop, "typo in finish_merge"))
    assert (done.step, type(done.error)) == ("finish_merge", AttributeError)


def test_a_bound_of_bytes_keeps_the_first_pages_and_reports_omitted_ones(engine: Engine) -> None:
    engine.register("many", pa.table({"id": range(50_000), "v": ["text of a row"] * 50_000}))
    result = engine.run(
        "UPDATE many SET v = v || '!' WHERE id >= 100", record=True, record_bytes=1_000
    )
    record = result.record()
    assert record.row_count == 50_000
    assert record.rows is not None
    assert record.rows.num_rows < 50_000
    assert not record.is_complete
    sampled = engine.run("UPDATE many SET v = v || '?'", record=True, record_every=1_000).record()
    assert (sampled.every, sampled.page_rows) == (1_000, 100)
    done = replay(sampled, MemoryConnector)
    assert "The record is a sample: one row of 1000 was kept" in done.notices
    assert not done.failed, done


def test_a_rehearsal_is_recorded_too(engine: Engine) -> None:
    result = engine.run(MERGE.format("t"), rehearse=True, record=True)
    assert replay(result, MemoryConnector).agrees
    assert engine.table("t").num_rows == 3


def test_a_record_that_cannot_be_saved_is_reported_and_the_statement_continues(
    engine: Engine, tmp_path: Path
) -> None:
    result = engine.run(MERGE.format("t"), record=str(tmp_path / "no" / "t.record"))
    assert result.count == 3
    assert [
        n.message
        for n in result.trace.notices
        if "There is no record: The record cannot be saved" in n.message
    ]
    with pytest.raises(RowMergeError, match="were not kept: The record cannot be saved"):
        result.record()


def test_rows_that_cannot_be_read_again_do_not_fail_the_statement(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        msg = "The store is away"
        raise ConnectorError(msg)

    monkeypatch.setattr(recording_module, "_with_rows", broken)
    result = engine.run(MERGE.format("t"), record=True)
    assert result.count == 3
    with pytest.raises(RowMergeError, match="were not kept: The store is away"):
        result.record()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"record": 7}, "record = 7"),
        ({"record": "a\0b"}, "without zero bytes"),
        ({"record": True, "record_bytes": 0}, "record_bytes = 0 is not possible"),
        ({"record": True, "record_every": 1.5}, "record_every = 1.5 is not possible"),
        ({"recod": True}, "Did you mean 'record'"),
    ],
)
def test_options_that_cannot_be_are_refused(engine: Engine, options: Any, message: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        engine.run(MERGE.format("t"), **options)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert message in str(caught.value)


def test_a_comparison_and_a_trial_are_not_recorded(engine: Engine) -> None:
    with pytest.raises(RowMergeError, match="the option record cannot be combined"):
        engine.compare(MERGE.format("t"), by="paradigms", record=True)
    result = engine.run(MERGE.format("t"), record=True)
    with pytest.raises(RowMergeError, match="were not kept"):
        result.what_if().record()
