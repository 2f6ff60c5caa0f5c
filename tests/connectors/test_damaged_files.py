"""Files of Iceberg and Hive tables with damaged bytes: our error with the file's name and a next step, or rows.

Other errors and the end of this process are failures. Flipped bits in the footer of a Parquet file are omitted: some make Arrow end the process, which the engine reports for tasks.
"""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow import parquet as pq

from rowmerge_nb import HiveAcidConnector, IcebergConnector, RowMergeError
from rowmerge_nb.connectors.hive_acid.metastore.embedded import EmbeddedMetastore
from tests.connectors.hive_acid import kit as hive_acid_kit
from tests.connectors.iceberg import kit as iceberg_kit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TRIALS = 150
ROWS = [
    (number, f"v{number % 50}" if number % 7 else None, f"p{number % 2}") for number in range(300)
]
DAMAGES = ("cut", "zeros", "bit", "bytes", "empty", "tail", "missing", "noise", "folder", "another")


def hive_table(place: Path) -> Callable[[], int | None]:
    store = hive_acid_kit.make_table(place, partitioned_by=("p",))
    hive_acid_kit.merge(store, hive_acid_kit.inserted(*ROWS))
    ids = hive_acid_kit.row_ids(store)
    hive_acid_kit.merge(store, [(2, ids[1], None, None, "p1"), (1, None, 1000, "new", "p1")])

    def read() -> int | None:
        statement = hive_acid_kit.Statement(HiveAcidConnector(place))
        try:
            if statement.handle is None:
                return None
            statement.metadata.row_count(statement.session, statement.handle)
            return len(statement.rows(ids=True))
        finally:
            statement.rollback()

    return read


def iceberg_table(place: Path) -> Callable[[], int | None]:
    from pyiceberg.manifest import clear_manifest_cache

    store = iceberg_kit.make_table(place, partitioning=("p",))
    iceberg_kit.insert(
        store, {name: [row[i] for row in ROWS] for i, name in enumerate(("id", "v", "p"))}
    )
    iceberg_kit.delete(store, 1)
    iceberg_kit.insert(store, iceberg_kit.rows(1000))
    store.close()

    def read() -> int | None:
        clear_manifest_cache()
        store = IcebergConnector(place)
        try:
            statement = iceberg_kit.Statement(store)
            if statement.handle is None:
                return None
            statement.metadata.row_count(statement.session, statement.handle)
            rows = len(statement.rows(ids=True))
            statement.begin_merge()
            store.rollback(statement.transaction)
            return rows
        finally:
            store.close()

    return read


TABLES = {"hive": hive_table, "iceberg": iceberg_table}


def damaged(how: str, whole: bytes, others: list[bytes], draw: random.Random) -> bytes | None:
    """Return a file's bytes after an accident, or None for a removed file or a folder."""
    data = bytearray(whole)
    start = draw.randrange(max(len(data), 1))
    if how == "cut":
        del data[start:]
    elif how == "zeros":
        end = min(len(data), start + draw.choice([1, 8, 64, 1000]))
        data[start:end] = bytes(end - start)
    elif how == "bit" and data:
        data[start] ^= 1 << draw.randrange(8)
    elif how == "bytes" and data:
        for _ in range(10):
            data[draw.randrange(len(data))] = draw.randrange(256)
    elif how == "tail" and data:
        data[len(data) - 1 - draw.randrange(min(len(data), 300))] = draw.randrange(256)
    elif how == "noise":
        data = bytearray(draw.randbytes(len(data)))
    elif how == "another":
        data = bytearray(draw.choice(others))
    return {"empty": b"", "missing": None, "folder": None}.get(how, bytes(data))


def error_of(action: Callable[[], Any]) -> RowMergeError | None:
    try:
        action()
    except RowMergeError as error:
        return error
    return None


@pytest.mark.trial
@pytest.mark.each_value
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", TABLES)
def test_any_damage_to_a_file_is_reported_by_our_error_or_rows_are_read(
    tmp_path: Path, kind: str, seed: int
) -> None:
    read, draw = TABLES[kind](tmp_path), random.Random(seed)
    files = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    rows, refusals = read(), 0
    assert rows in {len(ROWS), len(ROWS) + 1}
    for _ in range(TRIALS):
        path, how = draw.choice(list(files)), draw.choice(DAMAGES)
        whole = files[path]
        changed = damaged(how, whole, list(files.values()), draw)
        if (
            path.suffix == ".parquet"
            and how in {"zeros", "bit", "bytes", "tail"}
            and changed is not None
        ):
            footer = int.from_bytes(whole[-8:-4], "little") + 8
            changed = changed[:-footer] + whole[-footer:]
        path.unlink()
        if how == "folder":
            path.mkdir()
        elif changed is not None:
            path.write_bytes(changed)
        told = error_of(read)
        if told is not None:
            assert told.hint, told
            refusals += 1
        if path.is_dir():
            shutil.rmtree(path)
        for other, content in files.items():
            if not other.is_file() or other.read_bytes() != content:
                other.write_bytes(content)
    assert refusals > TRIALS // 5
    assert read() == rows


@pytest.mark.parametrize("damage", ["cut", "zeros behind", "no blocks", "mark"])
@pytest.mark.parametrize("kind", ["manifest list", "manifest"])
def test_a_truncated_manifest_is_refused_by_name_and_does_not_hide_files(
    tmp_path: Path, kind: str, damage: str
) -> None:
    read = iceberg_table(tmp_path)
    lists = sorted(tmp_path.rglob("snap-*.avro"), key=lambda path: path.stat().st_mtime_ns)
    manifests = sorted(set(tmp_path.rglob("*.avro")) - set(lists))
    path = lists[-1] if kind == "manifest list" else manifests[0]
    whole = path.read_bytes()
    mark = whole[-16:]
    header = whole.index(mark) + 16
    changed = {
        "cut": whole[:-1],
        "zeros behind": whole[:header] + bytes(len(whole) - header),
        "no blocks": whole + b"\0",
        "mark": whole[:-16] + bytes(16),
    }
    path.write_bytes(changed[damage])
    with pytest.raises(RowMergeError) as caught:
        read()
    assert caught.value.code == "ICEBERG_INVALID_METADATA"
    assert path.name in caught.value.message
    assert (
        caught.value.hint
        == "Restore that file, or roll the table back to a snapshot whose manifests are intact."
    )


def refused(code: str, action: Callable[[], Any]) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        action()
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize(
    "content",
    [b"{", b"\xff", b"[" * 100_000, b'{"format-version": 2}', b"[]", b'{"format-version": "x"}'],
)
def test_damaged_iceberg_metadata_is_reported_with_its_file(tmp_path: Path, content: bytes) -> None:
    read = iceberg_table(tmp_path)
    newest = max(tmp_path.rglob("*.metadata.json"))
    newest.write_bytes(content)
    assert newest.name in refused("ICEBERG_INVALID_METADATA", read).message


def test_bytes_that_are_not_text_are_reported_with_their_file(tmp_path: Path) -> None:
    store = iceberg_kit.make_table(tmp_path)
    iceberg_kit.insert(store, iceberg_kit.rows(1, v="somewhere"))
    (path,) = iceberg_kit.files(store)
    pq.write_table(pq.read_table(path), path, compression="none", use_dictionary=False)
    assert iceberg_kit.contents(store) == [(1, "somewhere", "x")]
    path.write_bytes(path.read_bytes().replace(b"somewhere", b"somewher\xe8"))
    error = refused("ICEBERG_BAD_DATA", lambda: iceberg_kit.contents(store))
    assert path.name in error.message
    assert "Invalid UTF8" in error.message
    store.close()


# -- bucket folders


@pytest.mark.parametrize("kind", ["delta", "delete_delta"])
@pytest.mark.parametrize("entry", ["empty", "folder", "dangling link", "pipe"])
def test_an_empty_or_odd_entry_in_a_bucket_folder_is_refused(
    tmp_path: Path, kind: str, entry: str
) -> None:
    read = hive_table(tmp_path)
    file = next(
        path
        for path in sorted(tmp_path.rglob("bucket_*"))
        if path.parent.name.startswith(f"{kind}_")
    )
    file.unlink()
    if entry == "empty":
        file.touch()
    elif entry == "folder":
        file.mkdir()
    elif entry == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("nothing")
    assert str(file) in refused("HIVE_BAD_DATA", read).message


# -- missing catalogs


@pytest.mark.parametrize("state", ["missing", "empty"])
def test_a_metastore_missing_beside_its_tables_is_not_replaced_by_an_empty_one(
    tmp_path: Path, state: str
) -> None:
    read = hive_table(tmp_path)
    file = tmp_path / "metastore.sqlite"
    content = file.read_bytes()
    running = EmbeddedMetastore(file)
    file.unlink()
    if state == "empty":
        file.touch()
    error = refused("HIVE_METASTORE_ERROR", lambda: HiveAcidConnector(tmp_path))
    assert "such as 't'" in error.message
    assert "register_table" in str(error.hint)
    assert file.exists() is (state == "empty")
    refused("HIVE_METASTORE_ERROR", running.list_tables)
    assert file.exists() is (state == "empty")
    other = HiveAcidConnector(tmp_path / "new")
    columns = {"id": "bigint", "v": "varchar", "p": "varchar"}
    other.register_table(
        "default", "t", tmp_path / "warehouse" / "t", columns=columns, partitioned_by=["p"]
    )
    assert len(hive_acid_kit.contents(other)) == len(ROWS)
    file.write_bytes(content)
    assert read() == len(ROWS)


def test_a_catalog_missing_beside_its_tables_is_not_replaced_by_an_empty_one(
    tmp_path: Path,
) -> None:
    read = iceberg_table(tmp_path)
    file = tmp_path / "catalog.sqlite"
    content = file.read_bytes()
    file.unlink()
    error = refused("ICEBERG_CATALOG_ERROR", lambda: IcebergConnector(tmp_path))
    assert "register_table" in str(error.hint)
    assert not file.exists()
    file.touch()
    refused("ICEBERG_CATALOG_ERROR", lambda: IcebergConnector(tmp_path))
    other = IcebergConnector(tmp_path / "new")
    other.register_table("default", "t", f"file://{max(tmp_path.rglob('*.metadata.json'))}")
    assert len(iceberg_kit.contents(other)) == len(ROWS)
    other.close()
    file.write_bytes(content)
    assert read() == len(ROWS)


@pytest.mark.parametrize("make", [HiveAcidConnector, IcebergConnector])
def test_an_empty_directory_and_one_with_other_things_in_it_is_a_new_store(
    tmp_path: Path, make: Any
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "warehouse" / "_tmp").mkdir(parents=True)
    (tmp_path / "warehouse" / "s.db").mkdir()
    make(tmp_path).close()
    make(tmp_path).close()
