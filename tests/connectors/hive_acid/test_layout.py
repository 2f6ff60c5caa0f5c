"""Directories and files of a Hive table that count, and the words of refusals; without Spark."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import orc

from rowmerge_nb import HiveAcidConnector, RowMergeError
from rowmerge_nb.connectors.hive_acid.layout_names import encode_bucket
from rowmerge_nb.connectors.hive_acid.orc.orc_reading import RowKeys
from rowmerge_nb.connectors.hive_acid.orc.writing import AcidFileWriter, write_deletes
from rowmerge_nb.connectors.hive_acid.visible_deltas import ValidWriteIds, acid_state
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    SchemaTableName,
    parse_type,
)
from tests.connectors.hive_acid.kit import (
    NAME,
    Statement,
    contents,
    inserted,
    make_table,
    merge,
    row_ids,
)

COLUMNS = [ColumnMetadata("id", parse_type("bigint"))]


def delta(
    folder: Path, name: str, write_id: int, *values: int, bucket: int = 0, statement: int = 0
) -> None:
    writer = AcidFileWriter(
        folder / name / f"bucket_{bucket:05d}", COLUMNS, write_id, bucket, statement
    )
    writer.append(pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], names=["id"]))
    writer.close()
    (folder / name / "_orc_acid_version").write_text("2")


def delete(
    folder: Path, name: str, *keys: tuple[int, int], bucket: int = 0, write_id: int = 9
) -> None:
    numbers = np.array([n for _, n in keys])
    buckets = np.full(len(keys), encode_bucket(bucket))
    write_deletes(
        folder / name / f"bucket_{bucket:05d}",
        COLUMNS,
        write_id,
        RowKeys(np.array([w for w, _ in keys]), buckets, numbers),
    )


def original(folder: Path, name: str, *values: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    orc.write_table(pa.table({"id": pa.array(values, pa.int64())}), str(folder / name))


def adopt(tmp_path: Path, **more: Any) -> HiveAcidConnector:
    store = HiveAcidConnector(tmp_path / "store")
    store.register_table("default", "t", tmp_path / "t", columns={"id": "bigint"}, **more)
    return store


def values(store: HiveAcidConnector) -> list[int]:
    return sorted(row[0] for row in contents(store))


def test_a_base_hides_what_is_below_it_and_a_compacted_delta_hides_its_parts(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "t"
    original(folder, "000000_0", 1)
    delta(folder, "delta_0000001_0000001_0000", 1, 2)
    delta(folder, "base_0000002", 2, 20, 21)
    delta(folder, "delta_3_3", 3, 30)
    delta(folder, "delta_0000004_0000004_0000", 4, 40)
    delta(folder, "delta_0000003_0000004", 4, 34)
    delta(folder, "delta_0000005_0000005_0000", 5, 50)
    delta(folder, "delta_0000005_0000005_0001", 5, 51, statement=1)
    delta(folder, "delta_0000006_0000006_0000", 6, 60)
    delete(folder, "delete_delta_0000006_0000006_0000", (2, 1), (5, 0))
    store = adopt(tmp_path, write_ids={"highWatermark": 5})
    assert values(store) == [20, 21, 34, 50, 51]


def test_deletes_reach_the_row_of_their_own_statement_only(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    delta(folder, "delta_0000001_0000001_0000", 1, 10, 11)
    delta(folder, "delta_0000001_0000001_0001", 1, 12, 13, statement=1)
    delete(folder, "delete_delta_0000002_0000002_0000", (1, 0))
    assert values(adopt(tmp_path)) == [11, 12, 13]


def test_originals_of_a_bucket_are_numbered_on_over_its_files_and_can_be_deleted(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "t"
    original(folder, "000000_0", 10, 11)
    original(folder, "000000_0_copy_1", 12, 13)
    original(folder, "000001_0", 20)
    store = adopt(tmp_path)
    ids = row_ids(store)
    assert [tuple(ids[n].values()) for n in (10, 12, 13, 20)] == [
        (0, 536870912, 0),
        (0, 536870912, 2),
        (0, 536870912, 3),
        (0, 536936448, 0),
    ]
    merge(store, [(2, ids[12], None), (2, ids[20], None), (1, None, 30)])
    assert values(store) == [10, 11, 13, 30]
    assert (folder / "delete_delta_0000001_0000001_0000" / "bucket_00001").exists()


@pytest.mark.parametrize(
    ("valid", "seen"),
    [
        (ValidWriteIds(7), ["base_0000005_v12"]),
        (ValidWriteIds(7, frozenset({6})), ["base_0000005_v12"]),
        (ValidWriteIds(7, frozenset({4})), ["base_0000003"]),
        (ValidWriteIds(7, frozenset({4}), frozenset({3})), None),
    ],
)
def test_the_base_that_counts_is_the_highest_valid_one(
    tmp_path: Path, valid: ValidWriteIds, seen: list[str] | None
) -> None:
    for name in ("base_0000003", "base_0000005_v12"):
        (tmp_path / name).mkdir()
    if seen is None:
        with pytest.raises(RowMergeError, match="Not enough history available"):
            acid_state(tmp_path, valid)
    else:
        state = acid_state(tmp_path, valid)
        assert state.base is not None
        assert [state.base.name] == seen


def test_hidden_and_empty_files_of_hive_are_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    delta(folder, "delta_0000001_0000001_0000", 1, 1)
    delta(folder, "_tmp_x", 1, 2)
    delta(folder, ".hidden", 1, 3)
    (folder / "000001_0").touch()
    (folder / "delta_0000001_0000001_0000" / "bucket_00001").touch()
    (folder / "delta_0000001_0000001_0000" / "bucket_00001_flush_length").touch()
    (folder / "delta_0000002_0000002_0000").mkdir()
    delta(folder, "delta_0000001_0000001_0000/below", 1, 4)
    assert values(adopt(tmp_path)) == [1]


# -- refusals


def refused(code: str, action: Any) -> str:
    with pytest.raises(RowMergeError) as caught:
        action()
    assert caught.value.code == code, str(caught.value)
    assert caught.value.hint or code == "INVALID_TABLE_PROPERTY"
    return caught.value.message


def test_a_stray_file_a_lost_folder_and_an_old_format_are_reported(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    delta(folder, "delta_0000001_0000001_0000", 1, 1)
    store = adopt(tmp_path)
    (folder / "notes.txt").write_text("x")
    assert "notes.txt" in refused("HIVE_INVALID_BUCKET_FILES", lambda: values(store))
    (folder / "notes.txt").unlink()
    version = folder / "delta_0000001_0000001_0000" / "_orc_acid_version"
    version.write_text("two")
    assert "'two'" in refused("HIVE_BAD_DATA", lambda: values(store))
    version.write_text("1")
    # The file's own metadata still have version 2.
    assert values(store) == [1]
    path = folder / "delta_0000001_0000001_0000" / "bucket_00000"
    orc.write_table(orc.ORCFile(str(path)).read(), str(path))
    assert "since Hive 3.0" in refused("NOT_SUPPORTED", lambda: values(store))
    path.write_bytes(b"ORC and no more")
    version.write_text("2")
    assert str(path) in refused("HIVE_BAD_DATA", lambda: values(store))
    original(folder / "delta_0000001_0000001_0000", "bucket_00000", 7)
    assert "does not have the columns" in refused("HIVE_BAD_DATA", lambda: values(store))
    folder.rename(tmp_path / "moved")
    assert str(folder) in refused("HIVE_FILE_NOT_FOUND", lambda: values(store))
    refused("HIVE_FILE_NOT_FOUND", lambda: adopt(tmp_path))


def test_a_file_of_a_bucket_that_the_table_does_not_have_is_refused(tmp_path: Path) -> None:
    delta(tmp_path / "t", "delta_0000001_0000001_0000", 1, 1, bucket=5)
    store = adopt(tmp_path, bucketed_by=["id"], bucket_count=4)
    assert "the table has 4" in refused("HIVE_INVALID_BUCKET_FILES", lambda: values(store))


def test_a_column_whose_type_differs_from_the_file_is_reported(tmp_path: Path) -> None:
    delta(tmp_path / "t", "delta_0000001_0000001_0000", 1, 1)
    store = HiveAcidConnector(tmp_path / "store")
    store.register_table("default", "t", tmp_path / "t", columns={"id": "array(bigint)"})
    assert "Column 'id' of type array(bigint)" in refused("HIVE_BAD_DATA", lambda: values(store))


@pytest.mark.parametrize(
    ("columns", "properties", "code", "text"),
    [
        (
            [("p", "varchar"), ("a", "bigint")],
            {"partitioned_by": ("p",)},
            "HIVE_COLUMN_ORDER_MISMATCH",
            "Partition keys must be the last columns",
        ),
        (
            [("p", "varchar")],
            {"partitioned_by": ("p",)},
            "INVALID_TABLE_PROPERTY",
            "only partition columns",
        ),
        (
            [("a", "bigint")],
            {"partitioned_by": ("q",)},
            "INVALID_TABLE_PROPERTY",
            "Partition columns [q]",
        ),
        (
            [("a", "bigint"), ("p", "double")],
            {"partitioned_by": ("p",)},
            "NOT_SUPPORTED",
            "Unsupported partition column type",
        ),
        ([("a", "time(6)")], {}, "NOT_SUPPORTED", "Unsupported Hive type: time(6) (column 'a')"),
        ([("a", "timestamp(9)")], {}, "NOT_SUPPORTED", "timestamp(9)"),
        ([("a", "array(uuid)")], {}, "NOT_SUPPORTED", "uuid"),
        ([("a", "row(bigint)")], {}, "NOT_SUPPORTED", "without a name"),
        (
            [("a", "bigint")],
            {"bucketed_by": ("a",)},
            "INVALID_TABLE_PROPERTY",
            "cannot be combined",
        ),
        (
            [("a", "decimal(3,1)")],
            {"bucketed_by": ("a",), "bucket_count": 2},
            "NOT_SUPPORTED",
            "bucketed on an unsupported type",
        ),
        ([("a", "bigint")], {"format": "PARQUET"}, "INVALID_TABLE_PROPERTY", "PARQUET"),
        (
            [("a", "bigint")],
            {"sorted_by": ("a",)},
            "INVALID_TABLE_PROPERTY",
            "'sorted_by' does not exist",
        ),
        (
            [("a", "bigint")],
            {"bucketed_by": ("a",), "bucket_count": 2, "bucketing_version": 3},
            "INVALID_TABLE_PROPERTY",
            "1 or 2",
        ),
    ],
)
def test_a_table_that_hive_cannot_have_is_refused(
    tmp_path: Path, columns: Any, properties: Any, code: str, text: str
) -> None:
    assert text in refused(code, lambda: make_table(tmp_path, columns, **properties))
    assert not (tmp_path / "warehouse").exists()


def test_rows_of_a_table_that_is_not_transactional_are_read_and_not_changed(tmp_path: Path) -> None:
    original(tmp_path / "t", "000000_0", 1, 2)
    store = adopt(tmp_path, transactional=False)
    assert values(store) == [1, 2]
    statement = Statement(store)
    metadata, asked = statement.metadata, (statement.session, statement.handle)
    for call in (
        lambda: metadata.get_merge_row_id_column_handle(*asked),
        lambda: metadata.begin_merge(*asked),
        lambda: metadata.get_delete_row_id_column_handle(*asked),
        lambda: metadata.begin_delete(*asked),
        lambda: metadata.get_update_row_id_column_handle(*asked, ()),
        lambda: metadata.begin_update(*asked, ()),
    ):
        assert "Modifying Hive table rows is only supported for transactional tables" in refused(
            "NOT_SUPPORTED", call
        )
    refused(
        "NOT_SUPPORTED",
        lambda: statement.metadata.begin_insert(statement.session, statement.handle, ()),
    )


def test_an_existing_name_or_folder_is_refused(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    delta(tmp_path / "t", "delta_0000001_0000001_0000", 1, 1)
    refused(
        "TABLE_ALREADY_EXISTS",
        lambda: store.register_table("default", "t", tmp_path / "t", columns={"id": "bigint"}),
    )
    refused(
        "SCHEMA_NOT_FOUND",
        lambda: store.register_table("nope", "t", tmp_path / "t", columns={"id": "bigint"}),
    )
    transaction = store.begin_transaction()
    (store.warehouse / "u").mkdir()
    metadata = ConnectorTableMetadata(SchemaTableName("default", "u"), tuple(COLUMNS))
    refused(
        "HIVE_PATH_ALREADY_EXISTS",
        lambda: store.get_metadata(transaction).create_table(ConnectorSession("q"), metadata),
    )
    assert [orphan.name for orphan in store.orphans()] == [str(store.warehouse / "u")]


def test_a_folder_that_is_not_a_partition_is_reported(tmp_path: Path) -> None:
    (tmp_path / "t" / "q=1").mkdir(parents=True)
    store = HiveAcidConnector(tmp_path / "store")
    columns = {"id": "bigint", "p": "integer"}
    for name in ("q=1", "p=x"):
        text = refused(
            "HIVE_INVALID_PARTITION_VALUE",
            lambda: store.register_table(
                "default", "t", tmp_path / "t", columns=columns, partitioned_by=["p"]
            ),
        )
        assert name in text or "Invalid partition value 'x' for integer partition key: p" in text
        (tmp_path / "t" / "q=1").rename(tmp_path / "t" / "p=x") if name == "q=1" else None


def test_a_missing_metastore_or_one_of_another_format_is_reported(tmp_path: Path) -> None:
    make_table(tmp_path)
    with sqlite3.connect(tmp_path / "metastore.sqlite") as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    assert "has format 7" in refused("HIVE_METASTORE_ERROR", lambda: HiveAcidConnector(tmp_path))
    (tmp_path / "metastore.sqlite").write_text("no database " * 100)
    assert "metastore.sqlite" in refused(
        "HIVE_METASTORE_ERROR", lambda: HiveAcidConnector(tmp_path)
    )


def test_schemas_are_created_and_dropped_by_commits(tmp_path: Path) -> None:
    store = HiveAcidConnector(tmp_path)
    transaction = store.begin_transaction()
    store.get_metadata(transaction).create_schema(ConnectorSession("q"), "sales")
    assert store.metastore.list_schemas() == ["default"]
    store.commit(transaction)
    transaction = store.begin_transaction()
    metadata = store.get_metadata(transaction)
    assert metadata.schema_exists(ConnectorSession("q"), "sales")
    metadata.create_table(
        ConnectorSession("q"), ConnectorTableMetadata(SchemaTableName("sales", "o"), tuple(COLUMNS))
    )
    store.commit(transaction)
    assert (tmp_path / "warehouse" / "sales.db" / "o").is_dir()
    transaction = store.begin_transaction()
    store.get_metadata(transaction).drop_schema(ConnectorSession("q"), "sales")
    refused("SCHEMA_NOT_EMPTY", lambda: store.commit(transaction))
    assert NAME not in store.metastore.list_tables()


def test_many_rows_are_read_in_pages_and_deleted_across_stripes(tmp_path: Path) -> None:
    store = make_table(tmp_path, [("id", "bigint")])
    merge(store, inserted(*((n,) for n in range(150_000))))
    ids = row_ids(store)
    merge(store, [(2, ids[n], None) for n in range(0, 150_000, 7)])
    assert values(store) == [n for n in range(150_000) if n % 7]
