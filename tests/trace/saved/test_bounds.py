"""A file that would expand to far more than its size is refused before the memory is taken; a regular one of any size is opened."""

from __future__ import annotations

import base64
import os
import struct
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import RowMergeError, load_audit, load_record, load_trace
from rowmerge_nb.trace.record import HandedPage
from rowmerge_nb.trace.saved.bounds import Budget, UnfoldsTooFar, budget_of, read_stream
from rowmerge_nb.trace.saved.schema import TraceSchemaError, decoded_page, encoded
from rowmerge_nb.trace.trino_query import trino_query
from tests.trace.saved.test_records import PAGE, RECORD, refused

ROWS = 10_000_000
"""This number of 64-bit zeros takes 80 MB, and some kilobytes when packed."""


def stream(*pages: pa.RecordBatch, packed: str | None = None) -> bytes:
    """Return an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, pages[0].schema, options=pa.ipc.IpcWriteOptions(compression=packed)
    ) as writer:
        for page in pages:
            writer.write_batch(page)
    return bytes(sink.getvalue())


def channel(values: pa.Array) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([values], names=["a"])


def repeated(count: int, value: Any = 7) -> pa.RunEndEncodedArray:
    return pa.RunEndEncodedArray.from_arrays(pa.array([count], pa.int64()), pa.array([value]))


def dictionary(count: int, text: str) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int8()), pa.array([text]))


def view(count: int, length: int) -> pa.Array:
    """Return lists that all are the same part of their values."""
    offsets, sizes = pa.array([0] * count, pa.int32()), pa.array([length] * count, pa.int32())
    return pa.ListViewArray.from_arrays(offsets, sizes, pa.array([1] * length))


@pytest.fixture
def zeros() -> pa.RecordBatch:
    return channel(pa.array(memoryview(bytes(8 * ROWS)).cast("q")))


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_packed_pages_are_refused_before_memory_is_allocated(
    zeros: pa.RecordBatch, codec: str
) -> None:
    content = stream(zeros, packed=codec)
    del zeros
    before = pa.total_allocated_bytes()
    pool = pa.default_memory_pool()
    with pytest.raises(
        UnfoldsTooFar,
        match=r"would take at least 80.0 MB of memory, and a file of [\d.]+ kB may take 67.1 MB",
    ):
        read_stream(content)
    assert pool.bytes_allocated() - before < 1 << 20


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(channel(repeated(2 * 10**9)), id="run ends"),
        pytest.param(channel(repeated(1_000_000, "x" * 1000)), id="run ends of texts"),
        pytest.param(channel(pa.nulls(2 * 10**9)), id="nulls"),
        pytest.param(
            channel(pa.FixedSizeListArray.from_arrays(pa.nulls(10**9), 1000)), id="lists of nulls"
        ),
        pytest.param(
            channel(
                pa.array([b""] * 3, pa.binary(0)).take(
                    pa.array(memoryview(bytes(10_000_000)).cast("b"))
                )
            ),
            id="no bytes",
        ),
        pytest.param(channel(dictionary(100_000, "x" * 100_000)), id="a dictionary"),
        pytest.param(channel(view(10_000, 100_000)), id="views of lists"),
        pytest.param(
            channel(pa.StructArray.from_arrays([pa.nulls(2 * 10**9)], ["b"])), id="rows of nulls"
        ),
    ],
)
def test_arrays_that_name_more_than_they_hold_are_refused(page: pa.RecordBatch) -> None:
    with pytest.raises(UnfoldsTooFar):
        read_stream(stream(page))


@pytest.mark.parametrize("packed", [None, "zstd", "lz4"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([True] * 1_000_000),
        pa.array([None] * 100_000),
        pa.array(["Ünï ☃"] * 100_000),
        pa.array([{"a": [1, None], "b": "x"}, None] * 1000),
        pa.array([[("k", 1)], [], None] * 1000, pa.map_(pa.string(), pa.int64())),
        dictionary(1000, "x"),
        repeated(1000),
    ],
)
def test_honest_pages_are_read(values: pa.Array, packed: str | None) -> None:
    (page,) = read_stream(stream(channel(values), packed=packed))
    assert page.column(0).equals(values)


def test_an_honest_page_of_any_size_is_read(zeros: pa.RecordBatch) -> None:
    (page,) = read_stream(stream(zeros))
    assert page.num_rows == ROWS


def test_pages_of_one_file_share_what_it_may_take() -> None:
    nulls = encoded(channel(pa.nulls(5_000_000)))
    assert decoded_page(nulls, "$").num_rows == 5_000_000
    with budget_of(Budget(1000)):
        decoded_page(nulls, "$")
        with pytest.raises(UnfoldsTooFar):
            decoded_page(nulls, "$")


@pytest.mark.parametrize("change", [*range(8, 200, 4)])
def test_a_damaged_header_of_a_packed_page_allocates_no_memory(change: int) -> None:
    content = bytearray(stream(channel(pa.array([0] * 1000)), packed="zstd"))
    start = content.index(struct.pack("<q", 1000))
    content[start - 100 + change : start - 96 + change] = b"\xff\xff\xff\x7f"
    page = {"is": "page", "arrow": base64.b64encode(content).decode()}
    before = pa.total_allocated_bytes()
    with suppress(TraceSchemaError, UnfoldsTooFar):
        decoded_page(page, "$")
    assert pa.total_allocated_bytes() - before < 1 << 20


# -- files


def record_with(path: Path, **entries: bytes) -> Path:
    """Save a record with other entries."""
    RECORD.save(path)
    with zipfile.ZipFile(path) as file:
        content = {info.filename: file.read(info) for info in file.infolist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        for name, entry in {**content, **entries}.items():
            file.writestr(zipfile.ZipInfo(name), entry)
    return path


def packed_rows() -> bytes:
    """Return the rows of a record: some kilobytes that expand to hundreds of megabytes."""
    count = 8_000_000
    numbers, texts = (
        pa.array(memoryview(bytes(8 * count)).cast("q")),
        pa.array([""]).take(pa.array(memoryview(bytes(count)).cast("b"))),
    )
    assert RECORD.rows is not None
    return stream(
        pa.RecordBatch.from_arrays([numbers, texts, numbers], schema=RECORD.rows.schema),
        packed="zstd",
    )


@pytest.mark.not_quick
def test_a_packed_record_is_refused_with_what_it_would_take(tmp_path: Path) -> None:
    path = record_with(tmp_path / "a.record", **{"rows.arrow": packed_rows()})
    error = refused(path)
    assert "opening it would take at least 160.0 MB of memory, and a file of " in error.message
    assert "If you trust the file, open it with most_bytes=160_" in str(error.hint)
    rows = load_record(path, most_bytes=1_000_000_000).rows
    assert rows is not None
    assert rows.num_rows == 8_000_000


def test_a_large_record_of_ours_is_opened(tmp_path: Path) -> None:
    count = 200_000
    page = PAGE.take(pa.array([0, 1] * (count // 2)))
    replace(RECORD, pages=(HandedPage(0, page),) * 5).save(tmp_path / "large.record")
    opened = load_record(tmp_path / "large.record")
    assert [page.page.num_rows for page in opened.pages] == [count] * 5


def test_overlapping_entries_are_refused(tmp_path: Path) -> None:
    path = record_with(
        tmp_path / "a.record", **{f"pages/{n}.arrow": b"\0" * 100_000 for n in (5, 6, 7)}
    )
    content = path.read_bytes()
    with zipfile.ZipFile(path) as file:
        offset = struct.pack("<L", file.getinfo("pages/5.arrow").header_offset)
        others = [struct.pack("<L", file.getinfo(f"pages/{n}.arrow").header_offset) for n in (6, 7)]
    directory = content.index(b"PK\x01\x02")
    head, tail = content[:directory], content[directory:]
    for other in others:
        tail = tail.replace(other, offset)
    cut = head[: struct.unpack("<L", others[0])[0]]
    end = bytearray(cut + tail)
    end[-6:-2] = struct.pack("<L", len(cut))
    path.write_bytes(end)
    assert "overlap" in refused(path).message


@pytest.mark.parametrize("load", [load_trace, load_audit])
@pytest.mark.parametrize("unit", ["[]", "{}", "[[]]"])
def test_json_of_empty_lists_is_refused_by_what_its_objects_take(
    tmp_path: Path, load: Any, unit: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text("[" + ",".join([unit] * 1_000_000) + "]")
    with pytest.raises(RowMergeError) as caught:
        load(path)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert "opening it would take at least" in caught.value.message
    assert "open it with most_bytes=" in str(caught.value.hint)


@pytest.mark.parametrize("load", [load_trace, load_audit, load_record])
def test_a_file_that_is_larger_than_it_may_be_is_not_read(tmp_path: Path, load: Any) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 1 << 40)
    with pytest.raises(RowMergeError) as caught:
        load(path)
    assert (
        "would take at least 1,099.5 GB of memory, and a file of 1,099.5 GB may take 4.3 GB"
        in caught.value.message
    )


@pytest.mark.parametrize("load", [load_trace, load_audit, load_record])
@pytest.mark.parametrize("most_bytes", [0, -1, True, 1.5, "1", b"1"])
def test_most_bytes_is_a_positive_integer(tmp_path: Path, load: Any, most_bytes: Any) -> None:
    with pytest.raises(RowMergeError) as caught:
        load(tmp_path / "nothing", most_bytes=most_bytes)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert (
        caught.value.message
        == f"most_bytes is {most_bytes!r}; it is a positive number of bytes, or None"
    )


def test_most_bytes_is_a_limit_for_honest_files_too(tmp_path: Path) -> None:
    RECORD.save(tmp_path / "a.record")
    with pytest.raises(RowMergeError, match="and a file may take 100 B"):
        load_record(tmp_path / "a.record", most_bytes=100)


@pytest.mark.parametrize("as_file", [True, False])
def test_the_json_of_a_query_is_refused_by_what_its_objects_take(
    tmp_path: Path, *, as_file: bool
) -> None:
    text = '{"queryId": [' + ",".join(["[]"] * 1_000_000) + "]}"
    (tmp_path / "q.json").write_text(text)
    with pytest.raises(RowMergeError, match="opening it would take at least") as caught:
        trino_query(tmp_path / "q.json" if as_file else text)
    assert caught.value.code == "INVALID_ARGUMENTS"
