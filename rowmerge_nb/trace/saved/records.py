"""Saved records: zip files of one JSON text and Arrow streams."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.base.errors import error_text
from rowmerge_nb.trace.record import HandedPage, Record
from rowmerge_nb.trace.saved.bounds import read_stream
from rowmerge_nb.trace.saved.files import FileFormat, read_json, write_private
from rowmerge_nb.trace.saved.schema import TraceSchemaError, decoded_as, encoded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FORMAT: Final = "rowmerge_nb record 1"
RECORD_FILE: Final = FileFormat(
    FORMAT, "a record", "result.record().save(...), or the option record"
)
HEADER: Final = "record.json"
ROWS: Final = "rows.arrow"
PAGES: Final = "pages/"


def save_record(record: Record, path: str | Path) -> None:
    content = io.BytesIO()
    # Stored without compression, so that no entry of a hostile file can be larger than the file.
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as file:
        header = {FORMAT: encoded(replace(record, pages=(), rows=None))}
        _put(file, HEADER, json.dumps(header).encode("ascii"))
        if record.rows is not None:
            _put(file, ROWS, _stream([record.rows]))
        for number in record.writers:
            _put(
                file,
                f"{PAGES}{number}.arrow",
                _stream([page.page for page in record.pages if page.number == number]),
            )
    write_private(path, content.getvalue(), "The record")


def load_record(path: str | Path, *, most_bytes: int | None = None) -> Record:
    """Open a file written by `Record.save` or by the option ``record``; see `load_trace`.

    >>> import tempfile, os
    >>> from rowmerge_nb.trace.record import RecordedColumn
    >>> file = os.path.join(tempfile.mkdtemp(), "insert.record")
    >>> columns = (RecordedColumn("id", "bigint"),)
    >>> Record(statement="INSERT INTO t VALUES 1", kind="INSERT", name=("m", "s", "t"), connector="mine", columns=columns).save(file)
    >>> load_record(file).kind, oct(os.stat(file).st_mode & 0o777)
    ('INSERT', '0o600')
    """
    return RECORD_FILE.opened(path, _read, most_bytes)


def _read(content: bytes) -> Record:
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        if sum(entry.compress_size for entry in file.infolist()) > len(content):
            raise TraceSchemaError(
                path="$",
                wrong=("its entries together are larger than the file, so they overlap"),
            )
        return _record(file)


def _record(file: zipfile.ZipFile) -> Record:
    header: Record = decoded_as(RECORD_FILE.inside(read_json(_entry(file, HEADER))), Record)
    _check_header(header)
    names = file.namelist()
    pages: list[HandedPage] = []
    for name in names:
        if name.startswith(PAGES):
            text = name.removeprefix(PAGES).removesuffix(".arrow")
            if (
                name != f"{PAGES}{text}.arrow"
                or not text.isascii()
                or not text.isdecimal()
                or len(text) > 9
            ):
                raise TraceSchemaError(
                    path=name[:80], wrong="no entry of this name is allowed there"
                )
            pages += [
                HandedPage(int(text), page) for page in _arrow(file, name, header.page_schema)
            ]
        elif name not in {HEADER, ROWS}:
            raise TraceSchemaError(path=name[:80], wrong="no entry of this name is allowed there")
    rows = None
    if ROWS in names:
        read = _arrow(file, ROWS, header.schema)
        rows = (
            pa.concat_batches(read)
            if read
            else pa.RecordBatch.from_pylist([], schema=header.schema)
        )
    return replace(header, pages=tuple(pages), rows=rows)


def _check_header(header: Record) -> None:
    columns = [column.name for column in header.columns]
    for at, column in enumerate(
        [*header.columns, *([header.row_id] if header.row_id is not None else [])]
    ):
        try:
            column.sql_type.arrow  # noqa: B018 - whether there is such a type
        except Exception as error:
            wrong = f"'{column.type[:80]}' is not a type: {error_text(error)[:200]}"
            raise TraceSchemaError(path=f"$.columns[{at}].type", wrong=wrong) from error
    if len(header.name) != 3 or not columns:
        raise TraceSchemaError(path="$.name", wrong="it is not the name of a table with columns")
    if list(header.redistribution) != sorted(set(header.redistribution) & set(range(len(columns)))):
        raise TraceSchemaError(
            path="$.redistribution",
            wrong=f"{list(header.redistribution)} are not columns of the table",
        )
    if strange := {name for names in header.updated.values() for name in names} - set(columns):
        raise TraceSchemaError(
            path="$.updated", wrong=f"{sorted(strange)} are not columns of the table"
        )
    if header.channels and sorted(header.channels) != list(
        range(len(header.updated.get(0, ())) + 1)
    ):
        raise TraceSchemaError(
            path="$.channels", wrong=f"{list(header.channels)} are not the channels of its pages"
        )
    if header.every < 1 or header.pages or header.rows is not None:
        raise TraceSchemaError(path="$.every", wrong="its parts do not match")


def _entry(file: zipfile.ZipFile, name: str) -> bytes:
    entries = [info for info in file.infolist() if info.filename == name]
    if len(entries) != 1:
        raise TraceSchemaError(
            path=name, wrong="it is missing" if not entries else "it occurs more than once"
        )
    if (
        entries[0].compress_type != zipfile.ZIP_STORED
        or entries[0].file_size != entries[0].compress_size
    ):
        raise TraceSchemaError(path=name, wrong="it is compressed, and records are not compressed")
    return file.read(entries[0])


def _arrow(file: zipfile.ZipFile, name: str, schema: pa.Schema) -> list[pa.RecordBatch]:
    content = _entry(file, name)
    try:
        pages = read_stream(
            content, lambda stream_schema: _check_channels(stream_schema, name, schema)
        )
    except (pa.ArrowException, TypeError) as error:
        wrong = f"it holds no pages of Arrow data: {' '.join(str(error).split())[:200]}"
        raise TraceSchemaError(path=name, wrong=wrong) from error
    return [pa.RecordBatch.from_arrays(page.columns, schema=schema) for page in pages]


def _check_channels(stream_schema: pa.Schema, name: str, schema: pa.Schema) -> None:
    if [(field.name, field.type) for field in stream_schema] != [
        (field.name, field.type) for field in schema
    ]:
        raise TraceSchemaError(
            path=name,
            wrong=f"its channels are not {', '.join(schema.names)} of the types of the table",
        )


def _put(file: zipfile.ZipFile, name: str, content: bytes) -> None:
    # A constant date makes the entry reproducible.
    file.writestr(zipfile.ZipInfo(name), content)


def _stream(pages: Sequence[pa.RecordBatch]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pages[0].schema) as writer:
        for page in pages:
            writer.write_batch(page)
    return bytes(sink.getvalue())
