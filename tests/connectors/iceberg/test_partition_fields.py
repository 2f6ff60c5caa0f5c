"""Partition fields keep their ids when a table is recreated, and tables whose fields have several ids can be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import IcebergConnector
from rowmerge_nb.connectors.iceberg import replacing
from rowmerge_nb.connectors.iceberg.metadata_tables import METADATA_TABLES, metadata_table
from rowmerge_nb.spi import ColumnMetadata, ConnectorTableMetadata, SaveMode, parse_type
from tests.connectors.iceberg.kit import Statement, by_pyiceberg, contents, make_table, table

COLUMNS = (("id", "bigint"), ("d", "date"), ("p", "varchar"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[IcebergConnector]:
    with closing(make_table(tmp_path, COLUMNS, partitioning=("p",), format_version=2)) as store:
        fill(store)
        yield store


def fill(store: IcebergConnector, *more: Any) -> None:
    statement = Statement(store)
    handle = statement.metadata.begin_insert(statement.session, statement.handle, ())
    sink = store.get_page_sink_provider().create_page_sink(
        statement.transaction, statement.session, handle
    )
    schema = pa.schema([(field.name, field.type.arrow) for field in statement.handle.fields])
    values = {"bigint": [1, 2], "integer": [1, 2], "date": [None, 5], "varchar": ["x", None]}
    page = {field.name: values[field.type.base] for field in statement.handle.fields}
    sink.append_page(pa.RecordBatch.from_pydict(page, schema=schema))
    statement.metadata.finish_insert(statement.session, handle, sink.finish())
    statement.commit()


def replace(store: IcebergConnector, columns: Sequence[tuple[str, str]], **properties: Any) -> None:
    statement = Statement(store)
    made = tuple(ColumnMetadata(name, parse_type(kind)) for name, kind in columns)
    definition = ConnectorTableMetadata(statement.handle.name, made, properties)
    statement.metadata.create_table(statement.session, definition, SaveMode.REPLACE)
    statement.commit()
    fill(store)


def read_all(store: IcebergConnector) -> dict[str, list[dict[str, Any]]]:
    """Read all metadata tables of the table, and its rows by two readers."""
    described = {
        kind: metadata_table(table(store), kind).rows.to_pylist() for kind in METADATA_TABLES
    }
    assert contents(store) == by_pyiceberg(store)
    return described


def test_a_recreated_table_reuses_ids_and_partitionings(
    store: IcebergConnector,
) -> None:
    for _ in range(2):
        replace(store, COLUMNS, partitioning=("p",))
        replace(store, COLUMNS, partitioning=("bucket(id, 4)", "p"))
    metadata = table(store).metadata
    assert [[(f.name, f.field_id) for f in spec.fields] for spec in metadata.partition_specs] == [
        [("p", 1000)],
        [("id_bucket", 1001), ("p", 1000)],
    ]
    assert metadata.last_partition_id == 1001
    described = read_all(store)
    assert {row["partition"]["p"] for row in described["partitions"]} == {"x", None}
    assert list(described["entries"][0]["data_file"]["partition"]) == ["p", "id_bucket"]


CHANGES: dict[str, list[tuple[Sequence[tuple[str, str]], tuple[str, ...]]]] = {
    "other widths": [
        (COLUMNS, ("bucket(id, 4)",)),
        (COLUMNS, ("bucket(id, 8)",)),
        (COLUMNS, ("bucket(id, 4)",)),
    ],
    "other transforms": [
        (COLUMNS, ("month(d)",)),
        (COLUMNS, ("day(d)",)),
        (COLUMNS, ("truncate(p, 2)", "year(d)")),
    ],
    "another type": [((("id", "bigint"), ("p", "integer")), ("p",)), (COLUMNS, ("p",))],
    "a column that is gone": [((("id", "bigint"),), ("id",)), (COLUMNS, ())],
    "no partitions": [(COLUMNS, ()), (COLUMNS, ("p",)), (COLUMNS, ())],
}


@pytest.mark.each_value
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("case", CHANGES)
def test_tables_of_all_partitionings_can_be_read(tmp_path: Path, case: str, version: int) -> None:
    with closing(
        make_table(tmp_path, COLUMNS, partitioning=("p",), format_version=version)
    ) as store:
        fill(store)
        for columns, partitioning in CHANGES[case]:
            replace(store, columns, partitioning=partitioning, format_version=version)
            described = read_all(store)
            assert sum(row["record_count"] for row in described["partitions"]) == 2
            number = table(store).spec().spec_id
            assert {row["spec_id"] for row in described["files"]} == {number}


def test_a_table_whose_field_has_got_a_second_id_can_be_read(
    store: IcebergConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions of this connector created such tables."""

    def always_new(wanted: Any, metadata: Any) -> Any:
        return [
            field.model_copy(update={"field_id": metadata.last_partition_id + 1 + i})
            for i, field in enumerate(wanted)
        ]

    monkeypatch.setattr(replacing, "_with_old_ids", always_new)
    for _ in range(2):
        replace(store, COLUMNS, partitioning=("p",))
    assert (
        len({field.field_id for spec in table(store).specs().values() for field in spec.fields})
        == 3
    )
    described = read_all(store)
    assert [list(row["partition"]) for row in described["partitions"]] == [["p"], ["p"]]
    assert {row["data_file"]["partition"]["p"] for row in described["all_entries"]} == {"x", None}


def test_fields_of_one_name_are_distinguished_by_their_ids(store: IcebergConnector) -> None:
    replace(store, (("id", "bigint"), ("p", "integer")), partitioning=("p",))
    [row, _] = read_all(store)["partitions"]
    assert list(row["partition"]) == ["p_1000", "p"]
    assert row["partition"]["p_1000"] is None


def test_partitionings_that_pyiceberg_has_changed_can_be_read(store: IcebergConnector) -> None:
    from pyiceberg.transforms import BucketTransform, IdentityTransform

    with table(store).update_spec() as update:
        update.remove_field("p")
        update.add_field("id", BucketTransform(4), "b")
    fill(store)
    with table(store).update_schema() as schema:
        schema.rename_column("p", "q")
    with table(store).update_spec() as update:
        update.remove_field("b")
        update.add_field("q", IdentityTransform(), "again")
    fill(store)
    described = read_all(store)
    assert list(described["partitions"][0]["partition"]) == ["again", "b"]
    with table(store).update_spec() as update:
        update.remove_field("again")
    with table(store).update_schema() as schema:
        schema.delete_column("q")
    fill(store)
    assert sum(row["record_count"] for row in read_all(store)["partitions"]) == 8
    replace(store, (("id", "bigint"), ("b", "varchar")), partitioning=("bucket(id, 4)", "b"))
    read_all(store)
