"""Tables of version 3 written by Trino 483: `trino_483.zip` has them and Trino's answers."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import IcebergConnector
from rowmerge_nb.spi import SchemaTableName
from tests.connectors.iceberg.kit import Statement, by_pyiceberg, contents, table
from tests.connectors.iceberg.test_runtime import with_lineage

FOLDER = "/tmp/" + "trino-483-".ljust(195, "x")
"""The location where Trino wrote them. Another folder with a name of this length can replace it."""
UPDATE_INSERT, UPDATE_DELETE = 4, 5
TABLES = ["changes", "evolution"]


@pytest.fixture
def answers(tmp_path: Path) -> dict[str, Any]:
    folder = f"{tmp_path}/".ljust(len(FOLDER), "t")
    assert len(folder) == len(FOLDER), "the temporary folder has too long a name"
    archive = zipfile.ZipFile(Path(__file__).with_name("trino_483.zip"))
    for name in archive.namelist():
        file = Path(folder, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(moved(archive.read(name), folder.encode()))
    found: dict[str, Any] = json.loads(archive.read("answers.json"))
    for name, answer in found.items():
        answer["metadata"] = f"{folder}/{name}/metadata/{answer['metadata']}"
    return found


def moved(content: bytes, folder: bytes) -> bytes:
    """Replace the folder in the blocks of an Avro file, or in an uncompressed file."""
    if not content.startswith(b"Obj\x01"):
        return content.replace(FOLDER.encode(), folder)
    mark = content[-16:]
    head, *blocks, end = content.split(mark)
    return mark.join([head, *(moved_block(block, folder) for block in blocks), end])


def moved_block(block: bytes, folder: bytes) -> bytes:
    count = end_of_number(block, 0)
    records = zlib.decompress(block[end_of_number(block, count) :], -15)
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(records.replace(FOLDER.encode(), folder)) + packer.flush()
    size, rest = bytearray(), 2 * len(packed)
    while rest > 127:
        size.append(rest & 127 | 128)
        rest >>= 7
    return block[:count] + bytes([*size, rest]) + packed


def end_of_number(block: bytes, start: int) -> int:
    while block[start] & 128:
        start += 1
    return start + 1


def adopt(tmp_path: Path, name: str, answers: dict[str, Any]) -> IcebergConnector:
    store = IcebergConnector(tmp_path / "warehouse")
    store.register_table("default", "t", answers[name]["metadata"])
    return store


def lineage(store: IcebergConnector) -> dict[str, str]:
    return {row[0]: row[-2] for row in with_lineage(store, SchemaTableName("default", "t"))}


@pytest.mark.parametrize("name", TABLES)
def test_rows_and_their_lineage_are_those_that_trino_reads(
    tmp_path: Path, name: str, answers: dict[str, Any]
) -> None:
    store = adopt(tmp_path, name, answers)
    expected = sorted((tuple(row) for row in answers[name]["rows"]), key=repr)
    assert with_lineage(store, SchemaTableName("default", "t")) == expected
    assert contents(store) == by_pyiceberg(store)


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("name", TABLES)
def test_changed_rows_of_trino_keep_their_ids(
    tmp_path: Path, name: str, mode: str, answers: dict[str, Any]
) -> None:
    store = adopt(tmp_path, name, answers)
    before, numbers = lineage(store), table(store).metadata.last_sequence_number
    with table(store).transaction() as transaction:
        transaction.set_properties({"write.merge.mode": mode})
    for key in (1, 2, 1):
        statement = Statement(store)
        statement.begin_merge()
        (row,) = [row for row in statement.rows(ids=True) if row["id"] == key]
        row_id, values = row.pop("$row_id"), list(row.values())
        nothing = [None] * len(values)
        statement.stage([(UPDATE_DELETE, row_id, *nothing), (UPDATE_INSERT, row_id, *values)])
        statement.finish()
        statement.commit()
    assert lineage(store) == before
    changed = {row[0]: int(row[-1]) for row in with_lineage(store, SchemaTableName("default", "t"))}
    assert (changed.pop("1"), changed.pop("2")) == (numbers + 3, numbers + 2)
    assert max(changed.values()) <= numbers
    assert contents(store) == by_pyiceberg(store)
