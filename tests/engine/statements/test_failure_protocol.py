"""After any failure the table is unchanged, nothing is left behind, and the report describes the events."""

from __future__ import annotations

import _thread
import threading
import time
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorTableLayout,
    ConnectorTableMetadata,
    SchemaTableName,
    parse_type,
)
from rowmerge_nb.testing.faults import UNSET, Fault, FaultyConnector

pytestmark = pytest.mark.spark

TARGET = SchemaTableName("default", "t")
MERGE = "MERGE INTO shop.default.t t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
ROWS = pa.table({"id": [1, 2, 3], "v": [10, 20, 30]})
SOURCE = pa.table({"id": [2, 3, 4], "v": [200, 300, 400]})


def shop(spark: Any, fault: Fault | None = None) -> tuple[Engine, FaultyConnector]:
    connector = FaultyConnector(MemoryConnector(), fault)
    columns = tuple(ColumnMetadata(name, parse_type("bigint")) for name in ROWS.column_names)
    connector.put(ConnectorTableMetadata(TARGET, columns), ROWS)
    engine = Engine(spark=spark)
    engine.add_catalog("shop", connector)
    return engine, connector


def bad_data(message: str) -> ConnectorError:
    return ConnectorError(message, code="HIVE_BAD_DATA")


def failed(engine: Engine, sql: str, **options: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql, namespace={"s": SOURCE}, **options)
    return caught.value


NO_ANSWER = {"error": RuntimeError, "message": "the metastore does not answer"}


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault("begin_merge", **NO_ANSWER), "the metastore does not answer"),
        (
            Fault("create_merge_sink", error=PermissionError, message="no place to write"),
            "no place to write",
        ),
        (Fault("store_merged_rows", after=True), "the disk is full"),
        (Fault("finish", message="the network is gone"), "the network is gone"),
        (Fault("finish", gives=["text"]), "fragment of type str"),
        (Fault("finish", gives=None), "finish() returned NoneType"),
        (Fault("begin_merge", gives=None), "begin_merge gave NoneType"),
        (
            Fault("get_merge_row_id_column_handle", gives=None),
            "get_merge_row_id_column_handle returned NoneType; it must return a ColumnHandle",
        ),
        (
            Fault("get_row_change_paradigm", gives="DELETE"),
            "get_row_change_paradigm returned str; it must return a RowChangeParadigm",
        ),
        (
            Fault("get_insert_layout", gives=5),
            "get_insert_layout returned int; it must return a ConnectorTableLayout or None",
        ),
        (
            Fault("get_next_page", gives=ROWS),
            (
                "get_next_page returned Table; it must return a pyarrow.RecordBatch, and"
                " None at the end"
            ),
        ),
        (
            Fault("get_insert_layout", error=KeyError, message="address"),
            "get_insert_layout failed: KeyError",
        ),
        (Fault("get_insert_layout", gives=ConnectorTableLayout(("nope",))), "names column 'nope'"),
        (Fault("get_splits", message="the name node is gone"), "the name node is gone"),
        (
            Fault("create_page_source", error=bad_data, message="The ORC file is cut short"),
            "The ORC file is cut short",
        ),
        (Fault("get_next_page", message="the drive is gone"), "the drive is gone"),
        (Fault("finish_merge", after=True, **NO_ANSWER), "the metastore does not answer"),
        (Fault("commit", message="the journal is gone"), "the journal is gone"),
    ],
    ids=lambda value: value.step if isinstance(value, Fault) else None,
)
def test_a_fault_at_any_step_leaves_the_table_unchanged(
    spark: Any, fault: Fault, text: str
) -> None:
    engine, connector = shop(spark, fault)
    error = failed(engine, MERGE)
    assert text in error.message
    if fault.gives is UNSET:
        assert fault.step in error.message or getattr(error, "step", "") == fault.step
    assert connector.read(TARGET).equals(ROWS)
    trace = error.result.trace
    assert trace.state == "failed"
    assert str(trace.error.consequences[-1]) == "the transaction was rolled back"
    assert trace.calls[-1].method == "rollback"
    assert not connector._transactions, "no transaction is left open"
    if fault.step == "create_page_source":
        assert error.code == "HIVE_BAD_DATA"
    if fault.step in {"store_merged_rows", "finish"}:
        assert "abort" in connector.calls, "the sink was told to drop what it had"
        assert any(
            call.method == fault.step and (call.error or fault.gives is not UNSET)
            for call in trace.calls
        )
        assert trace.writers[0].state == "aborted"
    connector.fault = None
    assert engine.run(MERGE, namespace={"s": SOURCE}).count == 3


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (
            Fault("get_delete_row_id_column_handle", gives="id"),
            "get_delete_row_id_column_handle returned str; it must return a ColumnHandle",
        ),
        (
            Fault("begin_delete", gives=None),
            "begin_delete returned NoneType; it must return a ConnectorTableHandle",
        ),
        (
            Fault("get_next_page", gives=ROWS),
            (
                "get_next_page returned Table; it must return a pyarrow.RecordBatch, and"
                " None at the end"
            ),
        ),
        (
            Fault("get_next_page", gives=ROWS.to_batches()[0]),
            "returned a page of 2 channels; 3 columns were requested",
        ),
        (Fault("delete_rows", after=True), "the disk is full"),
        (Fault("delete_rows", error=SystemExit, message="7"), "delete_rows failed: SystemExit: 7"),
        (Fault("finish", gives=None), "finish() returned NoneType"),
        (Fault("close", after=True), "close failed: OSError: the disk is full"),
        (Fault("finish_delete", after=True), "the disk is full"),
        (Fault("commit"), "the disk is full"),
    ],
    ids=lambda value: value.step if isinstance(value, Fault) else None,
)
def test_a_fault_at_any_step_of_the_older_flow_leaves_the_table_unchanged(
    spark: Any, fault: Fault, text: str
) -> None:
    engine, connector = shop(spark, fault)
    error = failed(engine, "DELETE FROM shop.default.t WHERE id > 0", flow="updatable")
    assert text in error.message
    assert connector.read(TARGET).equals(ROWS)
    assert str(error.result.trace.error.consequences[-1]) == "the transaction was rolled back"
    assert not connector._transactions, "no transaction is left open"
    if fault.step in {"delete_rows", "finish", "close"}:
        assert "abort" in connector.calls, "the page source was told to drop what it had"
        assert connector.calls.count("delete_rows") == 1, "nothing was tried again"


def test_a_process_that_ends_every_time_is_reported_as_such(spark: Any) -> None:
    engine, connector = shop(spark, Fault("delete_rows", exits=True))
    error = failed(engine, "DELETE FROM shop.default.t WHERE id > 0", flow="updatable")
    assert (
        error.message
        == "A Python process ended in the middle of a task: it crashed, was killed, or ran out of memory"
    )
    assert connector.read(TARGET).equals(ROWS)


def test_a_task_that_dies_is_run_again_and_its_rows_count_once(spark: Any) -> None:
    engine, connector = shop(spark, Fault("store_merged_rows", call=1, after=True, exits=True))
    result = engine.run(MERGE, namespace={"s": SOURCE})
    assert connector.calls.count("create_merge_sink") > 1, "the sink was made again"
    assert result.count == 3
    assert sorted(connector.read(TARGET).to_pydict()["id"]) == [1, 2, 3, 4]


def test_an_error_on_sparks_side_that_cuts_the_stream_short_changes_nothing(spark: Any) -> None:
    engine, connector = shop(spark)
    numbers = pa.table({"id": list(range(10, 200_010)), "v": [1] * 199_999 + [0]})
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            "MERGE INTO shop.default.t t USING many s ON t.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, 100 / s.v)",
            namespace={"many": numbers},
        )
    assert caught.value.code == "DIVISION_BY_ZERO"
    assert connector.read(TARGET).equals(ROWS)
    assert not connector._transactions


def test_a_source_that_fails_while_running_changes_nothing(spark: Any) -> None:
    engine, connector = shop(spark)

    def broken(batches: Any) -> Any:
        yield from batches
        raise ValueError("the sensor is offline")

    source = spark.createDataFrame([(2, 5)], "id long, v long").mapInArrow(
        broken, "id long, v long"
    )
    with pytest.raises(RowMergeError, match="the sensor is offline") as caught:
        engine.run(MERGE, namespace={"s": source})
    assert caught.value.code == "GENERIC_USER_ERROR"
    assert connector.read(TARGET).equals(ROWS)


@pytest.mark.parametrize("how", ["interrupt", "cancel"])
def test_an_interrupt_cancels_the_work_and_rolls_back(spark: Any, how: str) -> None:
    engine, connector = shop(spark)

    def slow(batches: Any) -> Any:
        for batch in batches:
            time.sleep(60)
            yield batch

    source = spark.createDataFrame([(2, 5)], "id long, v long").mapInArrow(slow, "id long, v long")
    stop = _thread.interrupt_main if how == "interrupt" else engine.cancel
    threading.Timer(3, stop).start()
    started = time.monotonic()
    with pytest.raises(RowMergeError) as caught:
        engine.run(MERGE, namespace={"s": source})
    assert time.monotonic() - started < 30
    assert caught.value.code == "USER_CANCELED"
    assert connector.read(TARGET).equals(ROWS)
    assert not connector._transactions
    assert caught.value.result.trace.calls[-1].method == "rollback"


def test_an_error_after_the_commit_does_not_turn_it_into_a_failure(spark: Any) -> None:
    # The first call is the analyzer's, the second one follows the commit.
    engine, connector = shop(spark, Fault("row_count", call=2, message="the statistics are gone"))
    result = engine.run(MERGE, namespace={"s": SOURCE})
    assert result.trace.state == "finished"
    assert result.count == 3
    assert result.trace.target.rows_after is None
    assert connector.read(TARGET).num_rows == 4
    assert not connector._transactions, "the transaction that asked is ended too"


def test_a_failing_end_of_a_catalog_that_was_only_read_is_a_notice(spark: Any) -> None:
    engine, _ = shop(spark)
    reader = FaultyConnector(MemoryConnector(), Fault("commit", message="gone"))
    columns = tuple(ColumnMetadata(name, parse_type("bigint")) for name in SOURCE.column_names)
    reader.put(ConnectorTableMetadata(SchemaTableName("default", "s"), columns), SOURCE)
    engine.add_catalog("elsewhere", reader)
    result = engine.run(MERGE.replace("USING s", "USING elsewhere.default.s s"))
    assert result.trace.state == "finished"
    assert "'elsewhere', which was only read" in result.trace.notices[0].message


def test_a_table_dropped_and_recreated_meanwhile_is_another_table(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.register("t", ROWS)

    def meanwhile(step: str) -> None:
        if step == "finish_merge":
            engine.register("t", pa.table({"id": [7], "v": [7]}))

    with pytest.raises(RowMergeError) as caught:
        engine.run(
            MERGE.replace("shop.default.t", "t"), namespace={"s": SOURCE}, progress=meanwhile
        )
    assert caught.value.code == "TRANSACTION_CONFLICT"
    assert engine.table("t").to_pydict() == {"id": [7], "v": [7]}


@pytest.mark.parametrize(
    "step", ["analyze", "plan", "begin_merge", "run", "finish_merge", "commit"]
)
def test_a_statement_can_be_cancelled_at_every_step(spark: Any, step: str) -> None:
    engine, connector = shop(spark)
    with pytest.raises(RowMergeError) as caught:
        engine.run(
            MERGE,
            namespace={"s": SOURCE},
            progress=lambda name: engine.cancel() if name == step else None,
        )
    assert caught.value.code == "USER_CANCELED"
    assert connector.read(TARGET).equals(ROWS)
    assert not connector._transactions


def test_a_reader_of_a_large_table_is_not_disturbed_by_its_replacement(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.register("big", pa.table({"id": list(range(300_000))}))

    def meanwhile(step: str) -> None:
        if step == "run":
            engine.register("big", pa.table({"id": [1]}))

    assert engine.run("SELECT count(*) AS n FROM big", progress=meanwhile).table.to_pydict() == {
        "n": [300_000]
    }


def test_records_after_an_exchange_survive_a_failing_sink(spark: Any) -> None:
    engine, connector = shop(spark, Fault("store_merged_rows", after=True))
    columns = tuple(ColumnMetadata(name, parse_type("bigint")) for name in ROWS.column_names)
    connector.put(ConnectorTableMetadata(TARGET, columns, {"partitioned_by": ("v",)}), ROWS)
    many = pa.table({"id": list(range(300_000)), "v": list(range(300_000))})
    trace = failed_with(engine, MERGE, many).result.trace
    assert (trace.join.rows, trace.join.matched_rows) == (300_000, 3)
    assert [clause.rows for clause in trace.clauses] == [3, 299_997, 0]


def failed_with(engine: Engine, sql: str, source: pa.Table) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        engine.run(sql, namespace={"s": source})
    return caught.value


def test_a_duplicate_in_one_task_stops_the_statement_even_if_others_have_stored(spark: Any) -> None:
    engine, connector = shop(spark)
    twice = pa.table({"id": [2, 2, 9], "v": [1, 2, 3]})
    with pytest.raises(RowMergeError) as caught:
        engine.run(MERGE, namespace={"s": twice})
    assert caught.value.code == "MERGE_TARGET_ROW_MULTIPLE_MATCHES"
    (group,) = caught.value.groups  # type: ignore[attr-defined]
    assert group.target == {"id": 2, "v": 20}
    assert [(s.source_row, s.values["v"], s.case_number) for s in group.sources] == [
        (0, 1, 0),
        (1, 2, 0),
    ]
    assert connector.read(TARGET).equals(ROWS)


class MuteError(Exception):
    """An error that cannot print its text."""

    def __str__(self) -> str:
        raise KeyError("text")


def test_an_error_whose_text_raises_is_reported_by_its_class(spark: Any) -> None:
    engine, _ = shop(spark, Fault("finish_merge", error=MuteError))
    error = failed(engine, MERGE)
    assert error.message == "finish_merge failed: MuteError: its text is not available (KeyError)"
    assert "finish_merge was not called" not in str(error.result)


def test_statistics_that_are_something_else_end_a_statement_before_it_writes(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, connector = shop(spark, Fault("get_table_statistics", gives=5))
    # If the exact number is known, no estimate is requested.
    monkeypatch.setattr(MemoryMetadata, "row_count", lambda self, session, handle: None)
    error = failed(engine, MERGE)
    assert error.code == "GENERIC_INTERNAL_ERROR"
    assert error.message.endswith("get_table_statistics gave int; it gives TableStatistics")
    assert connector.read(TARGET).equals(ROWS)
    assert not connector._transactions
