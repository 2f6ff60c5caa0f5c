"""Arguments of a connector's own methods are checked, and refused ones leave nothing behind."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import HiveAcidConnector, IcebergConnector, RowMergeError

COLUMNS = {"id": "bigint"}
NAMES: tuple[Any, ...] = ("", " ", None, 5, b"t", "a\0b")


def refused(call: Callable[[], Any], code: str = "INVALID_ARGUMENTS") -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        call()
    assert caught.value.code == code, str(caught.value)
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("name", NAMES)
def test_an_invalid_name_is_refused(tmp_path: Path, name: Any) -> None:
    hive = HiveAcidConnector(tmp_path / "hive")
    with closing(IcebergConnector(tmp_path / "iceberg")) as iceberg:
        for schema, table in (("default", name), (name, "t")):
            refused(
                lambda schema=schema, table=table: iceberg.register_table(
                    schema, table, "/nix.metadata.json"
                )
            )
            refused(
                lambda schema=schema, table=table: hive.register_table(
                    schema, table, tmp_path, columns=COLUMNS
                )
            )
            for method in (hive.unregister_table, hive.compact, hive.remove_obsolete):
                refused(lambda schema=schema, table=table, method=method: method(schema, table))


@pytest.mark.parametrize(
    "wrong",
    [
        {"columns": "id bigint"},
        {"columns": ["id bigint"]},
        {"columns": {"id": "numeral"}},
        {"columns": {"id": 5}},
        {"columns": {}},
        {"columns": {"": "bigint"}},
        {"columns": 5},
        {"columns": None},
        {"columns": [("id", "bigint"), ("ID", "bigint")]},
        {"columns": [("id",)]},
        {"location": 5},
        {"location": None},
        {"write_ids": {}},
        {"write_ids": []},
        {"write_ids": "6"},
        {"write_ids": {"highWatermark": "x"}},
        {"write_ids": {"highWatermark": -5}},
        {"write_ids": {"highWatermark": True}},
        {"write_ids": {"highWatermark": 6, "opened": [5]}},
        {"write_ids": {"highWatermark": 6, "open": 5}},
        {"write_ids": {"highWatermark": 6, "aborted": ["x"]}},
        {"partitioned_by": "id"},
        {"partitioned_by": 5},
        {"bucketed_by": [5]},
        {"bucketed_by": None},
    ],
    ids=str,
)
def test_hive_registers_no_table_by_wrong_arguments(tmp_path: Path, wrong: dict[str, Any]) -> None:
    store = HiveAcidConnector(tmp_path / "store")
    refused(
        lambda: store.register_table(
            "default", "t", **{"location": tmp_path, "columns": COLUMNS, **wrong}
        )
    )
    assert store.metastore.list_tables() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"bucketed_by": ["id"], "bucket_count": "x"},
        {"bucketing_version": 9},
        {"bucketing_version": "x"},
    ],
    ids=str,
)
def test_hive_registers_no_table_by_wrong_buckets(tmp_path: Path, wrong: dict[str, Any]) -> None:
    store = HiveAcidConnector(tmp_path / "store")
    refused(
        lambda: store.register_table("default", "t", tmp_path, columns=COLUMNS, **wrong),
        "INVALID_TABLE_PROPERTY",
    )


def test_a_missing_hive_table_and_an_invalid_number_are_reported(tmp_path: Path) -> None:
    store = HiveAcidConnector(tmp_path)
    for method in (store.unregister_table, store.compact, store.remove_obsolete):
        refused(lambda method=method: method("default", "nix"), "TABLE_NOT_FOUND")
    for number in (None, "1", -1):
        refused(lambda number=number: store.abort_transaction(number))


@pytest.mark.parametrize("location", ["", None, 5, b"x", "a\0b", "a\ud800"])
def test_an_invalid_location_is_refused(tmp_path: Path, location: Any) -> None:
    with closing(IcebergConnector(tmp_path)) as store:
        refused(lambda: store.register_table("default", "t", location))


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"{}",
        b"[]",
        b"no json",
        b"\xff",
        b"null",
        b'{"format-version": 9}',
        gzip.compress(b"{}", mtime=0)[:9],
    ],
)
@pytest.mark.parametrize("name", ["v1.metadata.json", "v1.gz.metadata.json"])
def test_a_refused_iceberg_table_leaves_no_name(
    tmp_path: Path, content: bytes | None, name: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with closing(IcebergConnector(tmp_path / "store")) as store:
        for location in (str(file), file.as_uri(), str(tmp_path), "s4://nix/v1.metadata.json"):
            error = refused(
                lambda location=location: store.register_table("default", "t", location),
                "ICEBERG_INVALID_METADATA",
            )
            assert location in error.message
        assert store.catalog.list_tables("default") == []
        assert store.orphans(timedelta()) == []


def test_an_iceberg_table_is_not_registered_if_another_name_differs_only_in_case(
    tmp_path: Path,
) -> None:
    from pyiceberg.schema import Schema

    with closing(IcebergConnector(tmp_path)) as store:
        place = store.catalog.create_table("default.T", Schema()).metadata_location
        refused(lambda: store.register_table("default", "t", place), "TABLE_ALREADY_EXISTS")
        refused(lambda: store.register_table("nix", "t", place), "SCHEMA_NOT_FOUND")
        assert store.catalog.list_tables("default") == [("default", "T")]
