"""A record is saved as data and opened again; a truncated or hostile one, or one of another version, is one error, and no code runs."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Record, RowMergeError, load_record
from rowmerge_nb.base.choices import Flow
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.trace.contract_calls import Call
from rowmerge_nb.trace.record import HandedPage, RecordedColumn, RecordedFailure
from rowmerge_nb.trace.saved.records import FORMAT
from rowmerge_nb.trace.saved.schema import encoded

COLUMNS = (RecordedColumn("id", "bigint", nullable=False), RecordedColumn("name", "varchar"))
PAGE = pa.RecordBatch.from_pydict(
    {
        "id": pa.array([None, 2]),
        "name": ["a", None],
        "operation": pa.array([2, 1], pa.int8()),
        "row_id": pa.array([7, None]),
    }
)
RECORD = Record(
    statement="MERGE INTO t ...",
    kind="MERGE",
    name=("memory", "default", "t"),
    connector="memory",
    paradigm="DELETE_ROW_AND_INSERT_ROW",
    columns=COLUMNS,
    row_id=RecordedColumn("$row_id", "bigint"),
    properties={"partitioned_by": ("id",), "bucket_count": None},
    session={"era": "documents"},
    redistribution=(0,),
    pages=(HandedPage(0, PAGE), HandedPage(0, PAGE.slice(1)), HandedPage(3, PAGE)),
    left_out={3: 2},
    rows=pa.RecordBatch.from_pydict({"id": [1, 2], "name": ["x", None], "$row_id": [7, 8]}),
    row_count=2,
    splits=1,
    calls=(
        Call(
            1, "writer", "store_merged_rows", "D 1, I 1", "", 2, 30, error="KeyError: 1", number=0
        ),
    ),
    failure=RecordedFailure("store_merged_rows", 0, "KeyError: 1"),
)


def refused(path: Path) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        load_record(path)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert "cannot be opened as a record" in caught.value.message
    assert FORMAT in str(caught.value.hint)
    return caught.value


def rewritten(path: Path, **entries: bytes | None) -> Path:
    """Save the record with other entries in the file; None omits one."""
    RECORD.save(path)
    with zipfile.ZipFile(path) as file:
        content: dict[str, bytes | None] = {name: file.read(name) for name in file.namelist()}
    content |= {
        name.replace("__", "/").replace("_arrow", ".arrow").replace("_json", ".json"): data
        for name, data in entries.items()
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, data in content.items():
            if data is not None:
                file.writestr(name, data)
    return path


def header(change: Any) -> bytes:
    fields = encoded(replace(RECORD, pages=(), rows=None))
    change(fields["fields"])
    return json.dumps({FORMAT: fields}).encode()


def stream(page: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, page.schema) as writer:
        writer.write_batch(page)
    return bytes(sink.getvalue())


def test_a_record_is_the_same_when_it_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "t.record"
    RECORD.save(path)
    assert load_record(path) == RECORD
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_older_flow_and_the_current_era_are_saved_too(tmp_path: Path) -> None:
    older = replace(
        RECORD,
        kind="UPDATE",
        flow=Flow.UPDATABLE,
        redistribution=(),
        updated={0: ("name",)},
        channels=(1, 0),
        pages=(HandedPage(1, pa.RecordBatch.from_pydict({"row_id": [7], "name": ["b"]})),),
        left_out={},
    )
    numbered = PAGE.add_column(3, "case_number", pa.array([0, 1], pa.int32()))
    current = replace(
        RECORD, era=Era.CURRENT, updated={1: ("id", "name")}, pages=(HandedPage(0, numbered),)
    )
    inserted = replace(
        RECORD, kind="INSERT", row_id=None, rows=None, pages=(HandedPage(0, PAGE.select([0, 1])),)
    )
    for record in (older, current, inserted):
        record.save(tmp_path / "t.record")
        assert load_record(tmp_path / "t.record") == record


def test_a_record_describes_its_content() -> None:
    assert str(replace(RECORD, every=5)).splitlines() == [
        "Record of MERGE memory.default.t (memory)",
        "3 pages with 5 rows for 2 writers",
        "2 rows of the target before: all of them",
        "sampled: one row of 5 was kept",
        "2 pages of writer 3 omitted, before its last page",
        "store_merged_rows of writer 0 failed: KeyError: 1",
    ]
    assert "the rows of the target before are not in it" in str(replace(RECORD, rows=None))
    assert "2 rows of the target before, of 1,000" in str(replace(RECORD, row_count=1_000))


def test_a_file_cut_short_anywhere_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "t.record"
    RECORD.save(path)
    content = path.read_bytes()
    for size in [0, 1, 10, *range(20, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:size])
        refused(path)


def test_a_byte_changed_anywhere_is_an_error_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.record"
    RECORD.save(path)
    content = path.read_bytes()
    for at in range(0, len(content), 41):
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        try:
            found: Record | None = load_record(path)
        except RowMergeError as error:
            found = RECORD if error.code == "INVALID_ARGUMENTS" else None
        assert found == RECORD


def test_another_version_is_named(tmp_path: Path) -> None:
    path = rewritten(
        tmp_path / "t.record", record_json=json.dumps({"rowmerge_nb record 7": {}}).encode()
    )
    assert "it is of the format 'rowmerge_nb record 7'" in refused(path).message


class Evil:
    def __reduce__(self) -> Any:
        return os.mkdir, ("made_by_the_file",)


@pytest.mark.parametrize(
    "content",
    [pickle.dumps(Evil()), b"PK\x05\x06" + b"\0" * 18, b"not a zip", json.dumps({"a": 1}).encode()],
    ids=["pickle", "empty zip", "text", "json"],
)
def test_invalid_records_are_refused_and_no_code_runs(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "t.record"
    path.write_bytes(content)
    refused(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.record"]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"record_json": b"[]"}, "is not a record"),
        ({"record_json": b"{"}, "is not a record"),
        ({"record_json": None}, "record.json: it is missing"),
        ({"evil_py": b"import os"}, "evil_py: no entry of this name is allowed there"),
        ({"pages__..__x_arrow": b""}, "no entry of this name is allowed there"),
        ({"pages__-1_arrow": b""}, "no entry of this name is allowed there"),
        ({"pages__0_arrow": pickle.dumps(Evil())}, "it holds no pages of Arrow data"),
        (
            {"rows_arrow": stream(pa.RecordBatch.from_pydict({"id": ["x"]}))},
            "its channels are not id, name, $row_id",
        ),
        ({"record_json": header(lambda f: f.update(statement=7))}, "$.statement: 7 is not a text"),
        (
            {"record_json": header(lambda f: f.update(more=7))},
            "$.more: no entry of this name is allowed there",
        ),
        ({"record_json": header(lambda f: f.update(every=0))}, "$.every"),
        (
            {"record_json": header(lambda f: f.update(name={"is": "tuple", "items": ["t"]}))},
            "$.name: it is not the name of a table",
        ),
        (
            {
                "record_json": header(
                    lambda f: f.update(redistribution={"is": "tuple", "items": [5]})
                )
            },
            "[5] are not columns",
        ),
        (
            {
                "record_json": header(
                    lambda f: f["columns"]["items"][0]["fields"].update(type="os.system")
                )
            },
            "is not a type",
        ),
        (
            {
                "record_json": header(
                    lambda f: f["columns"]["items"][0]["fields"].update(type="row(" * 9_999)
                )
            },
            "is not a type",
        ),
        (
            {"record_json": header(lambda f: f.update(channels={"is": "tuple", "items": [9]}))},
            "$.channels",
        ),
        (
            {
                "record_json": header(
                    lambda f: f.update(
                        updated={"is": "mapping", "items": [[0, {"is": "tuple", "items": ["no"]}]]}
                    )
                )
            },
            "$.updated",
        ),
        (
            {"record_json": b'{"rowmerge_nb record 2": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"},
            "nested too deeply",
        ),
    ],
)
def test_hostile_parts_are_refused_with_their_position(
    entries: Any, message: str, tmp_path: Path
) -> None:
    assert message in refused(rewritten(tmp_path / "t.record", **entries)).message


def test_arrow_data_that_point_outside_of_themselves_are_refused(tmp_path: Path) -> None:
    long = pa.array(["a text of 20 letters", None])
    good = stream(
        pa.RecordBatch.from_arrays(
            [PAGE.column(0), long, PAGE.column(2), PAGE.column(3)], names=PAGE.schema.names
        )
    )
    offsets = (0).to_bytes(4, "little") + (20).to_bytes(4, "little") * 2
    assert good.count(offsets) == 1
    bad = good.replace(offsets, offsets[:4] + (2**31 - 1).to_bytes(4, "little") * 2)
    assert (
        "it holds no pages of Arrow data"
        in refused(rewritten(tmp_path / "t.record", pages__0_arrow=bad)).message
    )


def test_compressed_entries_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.record"
    RECORD.save(path)
    with zipfile.ZipFile(path) as file:
        content = file.read("record.json")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("record.json", content)
    assert "it is compressed" in refused(path).message
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("record.json", content)
        file.writestr("record.jsom", content)
    path.write_bytes(path.read_bytes().replace(b"record.jsom", b"record.json"))
    assert "it occurs more than once" in refused(path).message


def test_missing_files_and_invalid_paths_are_refused(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "no.record").message
    assert "directory" in refused(tmp_path).message.lower()
    with pytest.raises(RowMergeError, match="is not the path of a file"):
        load_record(7)  # type: ignore[arg-type]
    with pytest.raises(RowMergeError, match="The record cannot be saved as"):
        RECORD.save(tmp_path / "no" / "t.record")
