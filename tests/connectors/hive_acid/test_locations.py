"""Targets of a metastore's locations and of links are read and written, and nothing outside a table is removed."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import HiveAcidConnector, RowMergeError
from tests.connectors.hive_acid.kit import Statement, contents, inserted, make_table, merge, row_ids
from tests.connectors.hive_acid.test_layout import adopt, delta, values
from tests.connectors.hive_acid.test_writes import drop


def changed(root: Path, *statements: str) -> None:
    connection = sqlite3.connect(root / "metastore.sqlite")
    with connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def refused(code: str, action: Any) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        action()
    assert caught.value.code == code, caught.value
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("location", ["/", "..", "x/..", ""])
def test_a_managed_table_cannot_be_a_parent_folder(tmp_path: Path, location: str) -> None:
    store = make_table(tmp_path)
    changed(tmp_path, f"UPDATE tables SET location = '{location}'")
    refused("HIVE_METASTORE_ERROR", lambda: drop(store))
    assert (store.warehouse / "t").is_dir()


@pytest.mark.parametrize(
    "name", ["../../elsewhere", "/elsewhere", "p=x/../../..", "q=x", "", "p", "p=x/p=y"]
)
def test_a_partition_cannot_be_a_folder_elsewhere(tmp_path: Path, name: str) -> None:
    store = make_table(tmp_path, partitioned_by=("p",))
    merge(store, inserted((1, "a", "x")))
    changed(tmp_path, f"UPDATE partitions SET name = '{name}'")
    for action in (
        contents,
        lambda s: s.compact("default", "t"),
        lambda s: s.remove_obsolete("default", "t"),
    ):
        assert (
            "metastore"
            in refused("HIVE_METASTORE_ERROR", lambda action=action: action(store)).message
        )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE tables SET bucket_count = 'x'",
        "UPDATE tables SET bucket_count = 3",
        "UPDATE tables SET bucketing_version = 9",
        "UPDATE tables SET location = 'relative', managed = 0",
        "UPDATE tables SET location = '/a/../b', managed = 0",
        "UPDATE tables SET location = 's3://bucket/t', managed = 0",
        "UPDATE tables SET location = x'ff', managed = 0",
        "UPDATE columns SET type = 'nope'",
        "UPDATE columns SET type = '" + "array(" * 3000 + "'",
        "UPDATE columns SET name = x'ff'",
        "UPDATE columns SET partition_position = 'x'",
        "UPDATE columns SET partition_position = 0 WHERE name = 'id'",
        "DELETE FROM columns",
        "UPDATE write_id_counters SET high_watermark = 'x'",
        "INSERT INTO hidden_write_ids VALUES ((SELECT id FROM tables), 'x', 1)",
        "UPDATE commits SET sequence = 'x'",
        "UPDATE sqlite_sequence SET seq = 'x'",
        "INSERT INTO comments VALUES ((SELECT id FROM tables), -1, x'ff')",
    ],
)
def test_values_that_a_metastore_cannot_hold_are_refused(tmp_path: Path, statement: str) -> None:
    store = make_table(tmp_path)
    merge(store, inserted((1, "a", "x")))
    if "hidden_write_ids" in statement:
        changed(
            tmp_path,
            "INSERT INTO transactions VALUES (1000000, 'open', 'u', 'q', 'elsewhere', 0)",
            statement.replace(", 1)", ", 1000000)"),
        )
    else:
        changed(tmp_path, statement)

    def look() -> None:
        contents(store)
        statement = Statement(store)
        statement.metadata.get_table_metadata(statement.session, statement.handle)

    if "comments" in statement:
        look()
    else:
        refused("HIVE_METASTORE_ERROR", look)


def test_a_link_in_place_of_a_partition_is_read_and_nothing_beyond_it_is_removed(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path, partitioned_by=("p",))
    for number in range(2):
        merge(store, inserted((number, "a", "x")))
    partition = store.warehouse / "t" / "p=x"
    partition.rename(tmp_path / "elsewhere")
    partition.symlink_to(tmp_path / "elsewhere")
    store.compact("default", "t")
    assert len(contents(store)) == 2
    things = set((tmp_path / "elsewhere").iterdir())
    assert store.remove_obsolete("default", "t") == []
    statement = Statement(store)
    statement.stage([inserted((3, "c", "x"))])
    statement.finish()
    (number,) = (opened.number for opened in store.open_transactions())
    store.abort_transaction(number)
    assert {Path(orphan.name).name[:4] for orphan in store.remove_orphans()} == {"_tmp"}
    assert set((tmp_path / "elsewhere").iterdir()) > things
    drop(store)
    assert set((tmp_path / "elsewhere").iterdir()) > things


def test_a_link_in_place_of_a_managed_table_is_dropped_without_its_target(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    merge(store, inserted((1, "a", "x")))
    (store.warehouse / "t").rename(tmp_path / "elsewhere")
    (store.warehouse / "t").symlink_to(tmp_path / "elsewhere")
    assert len(contents(store)) == 1
    drop(store)
    assert list(store.warehouse.iterdir()) == []
    assert {path.name for path in (tmp_path / "elsewhere").rglob("*")} == {
        "delta_0000001_0000001_0000",
        "bucket_00000",
        "_orc_acid_version",
    }


def test_links_to_deltas_are_not_touched(tmp_path: Path) -> None:
    delta(tmp_path / "elsewhere", "delta_0000001_0000001_0000", 1, 1)
    delta(tmp_path / "t", "delta_0000002_0000002_0000", 2, 2)
    (tmp_path / "t" / "delta_0000001_0000001_0000").symlink_to(
        tmp_path / "elsewhere" / "delta_0000001_0000001_0000"
    )
    store = adopt(tmp_path)
    assert values(store) == [1, 2]
    store.compact("default", "t")
    assert [path.name for path in store.remove_obsolete("default", "t")] == [
        "delta_0000002_0000002_0000"
    ]
    assert (tmp_path / "elsewhere" / "delta_0000001_0000001_0000" / "bucket_00000").is_file()
    assert row_ids(store)


@pytest.mark.parametrize(
    "location", ["s3://bucket/t", "http://127.0.0.1:1/t", "x" * 5000, "a/" * 3000]
)
def test_other_locations_cannot_be_registered(tmp_path: Path, location: str) -> None:
    store = HiveAcidConnector(tmp_path)
    with pytest.raises(RowMergeError) as caught:
        store.register_table("default", "t", location, columns={"id": "bigint"})
    assert caught.value.code in {"HIVE_FILE_NOT_FOUND", "HIVE_FILESYSTEM_ERROR"}


def test_links_that_lead_to_themselves_are_refused(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(RowMergeError) as caught:
        store.register_table("default", "u", tmp_path / "loop", columns={"id": "bigint"})
    assert caught.value.code in {"HIVE_FILE_NOT_FOUND", "HIVE_FILESYSTEM_ERROR"}
    (store.warehouse / "t" / "delta_1_1").symlink_to(store.warehouse / "t" / "delta_1_1")
    (store.warehouse / "t" / "000000_0").symlink_to(tmp_path / "loop")
    refused("HIVE_FILESYSTEM_ERROR", lambda: contents(store))


@pytest.mark.parametrize(
    "properties",
    [
        {"transactional": "yes"},
        {"transactional": 5},
        {"bucketing_version": [1]},
        {"bucketing_version": 1.0},
        {"bucketed_by": ("id",), "bucket_count": True},
        {"bucketed_by": ("id",), "bucket_count": [4]},
        {"bucketed_by": ("id",), "bucket_count": 10**30},
        {"partitioned_by": {"p": 1}},
        {"format": 5},
        {"format": ["ORC"]},
        {"nope": None},
    ],
)
def test_invalid_values_of_table_properties_are_refused(
    tmp_path: Path, properties: dict[str, Any]
) -> None:
    refused("INVALID_TABLE_PROPERTY", lambda: make_table(tmp_path, **properties))


@pytest.mark.parametrize(
    "write_ids", [{"highWatermark": 1 << 63}, {"highWatermark": 5, "aborted": [1 << 70]}]
)
def test_write_ids_beyond_64_bits_are_refused(tmp_path: Path, write_ids: dict[str, Any]) -> None:
    delta(tmp_path / "t", "delta_0000001_0000001_0000", 1, 1)
    refused("INVALID_ARGUMENTS", lambda: adopt(tmp_path, write_ids=write_ids))
    refused(
        "HIVE_METASTORE_ERROR",
        lambda: HiveAcidConnector(tmp_path / "store").abort_transaction(1 << 70),
    )


def test_names_with_numbers_beyond_64_bits_do_not_belong_to_hive(tmp_path: Path) -> None:
    delta(tmp_path / "t", "delta_0000001_0000001_0000", 1, 1)
    for name in (f"delta_1_{10**30}", f"base_{10**19}", f"base_1_v{10**40}", "delta_5_3", "base_١"):
        (tmp_path / "t" / name).mkdir()
    assert values(adopt(tmp_path)) == [1]


def test_a_folder_whose_name_is_not_text_is_not_a_partition(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    os.mkdir(os.fsencode(tmp_path / "t") + b"/p=\xff")  # noqa: PTH102 - a name in bytes
    store, columns = HiveAcidConnector(tmp_path / "store"), {"id": "bigint", "p": "varchar"}
    refused(
        "HIVE_INVALID_PARTITION_VALUE",
        lambda: store.register_table(
            "default", "t", tmp_path / "t", columns=columns, partitioned_by=["p"]
        ),
    )


def test_a_folder_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_table(tmp_path)
    merge(store, inserted((1, "a", "x")))
    scandir = os.scandir

    def denied(path: Any) -> Any:
        if str(path).endswith("_0000"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    for action in (contents, lambda s: s.compact("default", "t")):
        error = refused("HIVE_FILESYSTEM_ERROR", lambda action=action: action(store))
        assert (
            "delta_0000001_0000001_0000' of a Hive table cannot be read: Permission denied"
            in error.message
        )
