"""Errors raised below a statement under Trino's names, with a next step."""

from __future__ import annotations

import socket
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import AnalysisError, ExecutionError, RowMergeError
from rowmerge_nb.base.next_steps import null_refusal
from rowmerge_nb.connectors.memory.table_properties import check_content
from rowmerge_nb.engine.spark.errors.translate import translate, with_next_step
from rowmerge_nb.engine.tasks.page_program import translated
from rowmerge_nb.spi import ColumnMetadata, ConnectorTableMetadata, SchemaTableName
from rowmerge_nb.spi.types import parse_type


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_an_ended_java_process_is_reported_as_such() -> None:
    py4j = {"__name__": "py4j.clientserver"}
    exec("def send():\n    raise ConnectionRefusedError(111, 'Connection refused')", py4j)
    send: Any = py4j["send"]
    with pytest.raises(ConnectionRefusedError) as caught:
        send()
    error = translate(caught.value, "run")
    assert (
        error.message
        == "Spark's Java process has ended: it crashed, was killed, or ran out of memory"
    )
    assert error.hint is not None
    assert "ROWMERGE_DRIVER_MEMORY" in error.hint


def test_a_lost_spark_connect_server_is_reported_with_a_remedy() -> None:
    gone = type("SparkConnectGrpcException", (Exception,), {})(
        "[INVALID_HANDLE.SESSION_CHANGED] The handle is invalid."
    )
    error = translate(gone, "run")
    assert error.message == "The Spark Connect server, or the session on it, is gone"
    assert "Engine(spark=session)" in str(error.hint)


def test_an_unresponsive_store_is_not_taken_for_java() -> None:
    with pytest.raises(ConnectionRefusedError) as caught, socket.socket() as store:
        store.connect(("127.0.0.1", free_port()))
    assert "Java" not in translate(caught.value, "run").message


@pytest.mark.parametrize(
    "code", ["TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND", "DUPLICATE_COLUMN_NAME", "CONSTRAINT_VIOLATION"]
)
def test_usual_errors_have_a_next_step_and_keep_a_better_one(code: str) -> None:
    assert with_next_step(RowMergeError("It is wrong", code=code)).hint
    assert (
        with_next_step(AnalysisError("It is wrong", code=code, hint="Do this.")).hint == "Do this."
    )


def raised_by_content(data: pa.Table, *, nullable: bool = True) -> ExecutionError:
    metadata = ConnectorTableMetadata(
        SchemaTableName("default", "stock"),
        (ColumnMetadata("name", parse_type("varchar"), nullable=nullable),),
        {"primary_key": ("name",)},
    )
    with pytest.raises(ExecutionError) as caught:
        check_content(metadata, data)
    return caught.value


def test_a_repeated_key_of_memory_is_answered_by_merge() -> None:
    error = raised_by_content(pa.table({"name": ["apple", "apple"]}))
    assert error.hint is None
    assert str(with_next_step(error).hint).startswith(
        "Each key may occur only once. `MERGE` updates"
    )


def test_any_refused_null_is_answered_by_coalesce() -> None:
    hint = str(null_refusal("name").error("run").next_step)
    assert "COALESCE" in hint
    nulls = pa.table({"name": pa.array([None], pa.string())})
    assert with_next_step(raised_by_content(nulls, nullable=False)).hint == hint
    text = "[[INVALID_ARGUMENTS@2]] NULL value not allowed for NOT NULL column: name"
    by_spark = translate(RuntimeError(f"[USER_RAISED_EXCEPTION] {text} SQLSTATE: P0001"), "run")
    for error in (by_spark, translated(text.replace("@2", ""))):
        assert (error.code, error.hint) == ("INVALID_ARGUMENTS", None)
        assert with_next_step(error).hint == hint


@pytest.mark.parametrize(
    "message",
    [
        "Inserting in SQLite database x failed: UNIQUE constraint failed: stock.name",
        'Inserting failed: duplicate key value violates unique constraint "stock_pkey"',
    ],
)
def test_a_repeated_key_is_answered_by_merge(message: str) -> None:
    hint = with_next_step(ExecutionError(message, code="CONSTRAINT_VIOLATION")).hint
    assert hint is not None
    assert "`MERGE` updates" in hint
    assert "ON CONFLICT" in hint
    assert "COALESCE" not in hint
