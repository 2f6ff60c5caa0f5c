"""Exceptions of Java in the trace, the report and the explorer, without Java."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.connectors.trino.java_stack import raised_of, stack_lines
from rowmerge_nb.connectors.trino.trino_errors import error_of
from rowmerge_nb.engine.tasks.call_frames import raised_by
from rowmerge_nb.report.explorer.explorer_state import explorer_state
from rowmerge_nb.report.model.raised import all_raised, raised_text
from rowmerge_nb.trace.raised import as_text, of_text, remote_traceback
from rowmerge_nb.trace.saved.traces import load_trace, save_trace
from tests.connectors.trino.fake_connector import FakeTrinoConnector

OUTER = [
    "io.trino.plugin.base.classloader.ClassLoaderSafeConnectorMergeSink.finish(ClassLoaderSafeConnectorMergeSink.java:44)",
    "java.base.Thread.run(Thread.java:1474)",
]
ANSWER = {
    "class": "io.trino.spi.TrinoException",
    "message": "Failed to <write>",
    "code": "ICEBERG_WRITER_CLOSE_ERROR",
    "frames": [
        "com.google.common.base.Preconditions.checkState(Preconditions.java:513)",
        "io.trino.plugin.iceberg.IcebergMergeSink.writePositionDeletes(IcebergMergeSink.java:171)",
        "io.trino.plugin.iceberg.IcebergMergeSink.finish(IcebergMergeSink.java:129)",
        *OUTER,
    ],
    "causes": [
        {
            "class": "java.io.IOException",
            "message": "disk on fire",
            "code": "GENERIC_INTERNAL_ERROR",
            "frames": [
                "java.base.FileOutputStream.write(FileOutputStream.java:9)",
                "org.apache.iceberg.io.Writer.close(Writer.java:7)",
                "io.trino.plugin.iceberg.IcebergMergeSink.finish(IcebergMergeSink.java:128)",
                *OUTER,
            ],
        }
    ],
}


def raised(method="finish", **details):
    result = raised_by(error_of(ANSWER), method, caller="writer", number=0, **details)
    assert result is not None
    return result


def test_the_record_has_the_plugins_frames_the_call_and_the_causes():
    page = pa.RecordBatch.from_pydict({"id": [1, 2]})
    record = raised(call=2, page=page, handle={"t": 1})
    assert (record.where, record.rows, record.handle) == ("call 2 of writer 0", 2, "{'t': 1}")
    assert (
        record.what == "io.trino.spi.TrinoException (ICEBERG_WRITER_CLOSE_ERROR): Failed to <write>"
    )
    assert [(frame.function.rpartition(".")[2], frame.line) for frame in record.frames] == [
        ("finish", 129),
        ("writePositionDeletes", 171),
    ]
    (cause,) = record.causes
    assert (cause.what, cause.direct) == ("java.io.IOException: disk on fire", True)
    assert [frame.place for frame in cause.frames] == [
        "IcebergMergeSink.java, line 128, in io.trino.plugin.iceberg.IcebergMergeSink.finish",
        "Writer.java, line 7, in org.apache.iceberg.io.Writer.close",
    ]


def test_the_stack_is_as_java_prints_it_without_frames_that_causes_share():
    lines = list(raised().stack)
    assert lines == stack_lines(ANSWER)
    assert lines[0] == "io.trino.spi.TrinoException: Failed to <write>"
    assert lines[1].startswith("    at com.google.common.base.Preconditions.checkState(")
    assert lines.index("Caused by: java.io.IOException: disk on fire") == 6
    assert lines[-1] == "    ... 2 more"
    assert remote_traceback(raised()).split("\n") == ["finish, call 1 of writer 0", *lines]


def test_the_record_survives_the_text_of_sparks_error():
    assert of_text(f"... {as_text(raised())} ...") == (raised(),)


def test_equal_errors_of_several_writers_are_drawn_once_in_words():
    (error,) = all_raised([raised(), replace(raised(), number=1)])
    assert error.where == "call 1 of writer 0, and 1 other call"
    sink = "io.trino.plugin.iceberg.IcebergMergeSink"
    assert raised_text(error, 200) == [
        f"finish, call 1 of writer 0, and 1 other call, raised {error.what}",
        f"  IcebergMergeSink.java, line 129, in {sink}.finish",
        f"  IcebergMergeSink.java, line 171, in {sink}.writePositionDeletes",
        "Raised from java.io.IOException: disk on fire",
        f"  IcebergMergeSink.java, line 128, in {sink}.finish",
        "  Writer.java, line 7, in org.apache.iceberg.io.Writer.close",
        "The whole stack: 11 lines, in the error's traceback.",
    ]


def test_a_stack_that_is_very_long_is_cut():
    frames = [f"shop.Sink.descend(Sink.java:{line})" for line in range(500)]
    record = raised_of({"class": "java.lang.StackOverflowError", "frames": frames})
    assert (record.what, len(record.frames)) == ("java.lang.StackOverflowError", 10)
    assert (len(record.stack), record.stack[-1]) == (201, "... 301 more lines")


@pytest.mark.spark
def test_an_exception_in_a_task_is_in_report_explorer_and_saved_trace(spark, tmp_path):
    rest = {name: value for name, value in ANSWER.items() if name != "class"}
    fail = json.dumps({"call": "store_merged_rows", "error": rest})
    connector = FakeTrinoConnector(tmp_path, properties={"fail": fail})
    engine = rm.Engine(spark=spark)
    engine.add_catalog("shop", connector)
    try:
        engine.run("CREATE TABLE shop.default.accounts (id bigint, name varchar)")
        engine.run("INSERT INTO shop.default.accounts VALUES (1, 'a')")
        with pytest.raises(RowMergeError) as failed:
            engine.run("UPDATE shop.default.accounts SET name = 'x'")
    finally:
        connector.close()
    error = failed.value
    assert error.code == "ICEBERG_WRITER_CLOSE_ERROR"
    assert [one.method for one in error.raised] == ["store_merged_rows"]
    assert "Caused by: java.io.IOException: disk on fire" in str(error.__cause__)
    text = str(error.result)
    assert "IcebergMergeSink.java, line 171, in" in text
    assert "The page that it received: 2 rows" in text
    html = error.result._repr_mimebundle_()["text/html"]
    assert "<summary>The whole stack: 11 lines</summary>" in html
    assert "Failed to &lt;write&gt;" in html
    save_trace(error.result.trace, tmp_path / "trace.json")
    opened = load_trace(tmp_path / "trace.json")
    assert opened.error == error.result.trace.error
    (part,) = explorer_state(opened)["raised"]
    assert part["stack"]["title"] == "The whole stack: 11 lines"
    assert part["stack"]["text"].endswith("    ... 2 more")


def test_the_mistakes_of_a_configuration_are_reported_once():
    mistakes = ["Error: no path", "Error: no user"]
    error = error_of(
        {
            "message": f"The connector lake rejects its properties: {'; '.join(mistakes)}",
            "causes": [{"message": "\n".join(mistakes)}],
        }
    )
    assert error.message == (
        "The connector lake rejects its properties: Error: no path; Error: no user"
    )
