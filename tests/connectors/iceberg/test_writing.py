"""The output of the Iceberg connector: files, partitions, bounds, snapshots, and definitions of tables."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from rowmerge_nb import AnalysisError, ConnectorError, IcebergConnector
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.connectors.iceberg.planning import content_of
from rowmerge_nb.connectors.iceberg.writer import IcebergPageSink
from rowmerge_nb.spi import SchemaTableName
from tests.connectors.iceberg.kit import (
    Statement,
    by_pyiceberg,
    contents,
    create,
    delete,
    files,
    insert,
    make_table,
    rows,
    table,
)

KINDS = [
    ("i", "integer"), ("l", "bigint"), ("f", "real"), ("n", "decimal(9,2)"), ("s", "varchar"), ("x", "varbinary"), ("u", "uuid"),
    ("d", "date"), ("t", "time(6)"), ("ts", "timestamp(6)"), ("tz", "timestamp(6) with time zone"), ("b", "boolean"),
]  # fmt: skip
NOON = dt.datetime(2017, 11, 16, 22, 31, 8)  # noqa: DTZ001 - a timestamp without a zone is meant
VALUES: dict[str, list[Any]] = {
    "i": [-7, 34], "l": [34, -(2**40)], "f": [1.5, -0.5], "n": [Decimal("14.20"), Decimal("-0.01")], "s": ["iceberg", "ä/b=c"],
    "x": [b"\x00\x01\x02\x03", b"abc"], "u": ["f79c3e09-677c-4bbd-a479-3f349cb785e7", "00000000-0000-0000-0000-000000000000"],
    "d": [dt.date(2017, 11, 16), dt.date(1969, 1, 1)], "t": [dt.time(22, 31, 8), dt.time(0)],
    "ts": [NOON, NOON - dt.timedelta(days=365 * 48, microseconds=5)],
    "tz": [dt.datetime(2017, 11, 16, 22, 31, 8, tzinfo=dt.UTC), dt.datetime(1960, 1, 1, tzinfo=dt.UTC)], "b": [True, False],
}  # fmt: skip
MOMENTS = ("d", "ts", "tz")
TRANSFORMS = {
    "identity": [name for name, _ in KINDS if name != "f"],
    "bucket": [
        f"bucket({name}, 7)" for name in ("i", "l", "n", "s", "x", "u", "d", "t", "ts", "tz")
    ],
    "truncate": [f"truncate({name}, 3)" for name in ("i", "l", "n", "s", "x")],
    **{period: [f"{period}({name})" for name in MOMENTS] for period in ("year", "month", "day")},
    "hour": ["hour(ts)", "hour(tz)", "void(i)"],
}


@pytest.mark.parametrize("transforms", TRANSFORMS.values(), ids=TRANSFORMS)
def test_a_file_is_in_the_partition_that_pyiceberg_computes(
    tmp_path: Path, transforms: list[str]
) -> None:
    from pyiceberg.partitioning import PartitionFieldValue, PartitionKey

    store = make_table(tmp_path, KINDS, partitioning=tuple(transforms))
    columns = {name: [*values, None] for name, values in VALUES.items()}
    insert(store, columns)
    found = table(store)
    spec, schema = found.spec(), found.schema()
    entries = content_of(found, found.current_snapshot().snapshot_id).data
    assert sum(entry.data_file.record_count for entry in entries) == 3
    for file in (entry.data_file for entry in entries):
        data = pq.read_table(file.file_path.removeprefix("file://"))
        for place, part in enumerate(spec.fields):
            source = schema.find_field(part.source_id)
            for value in data.column(source.name).to_pylist():
                if str(part.transform) == "identity":
                    expected = PartitionKey(
                        [PartitionFieldValue(part, value)], spec, schema
                    ).partition[0]
                    expected = value if isinstance(value, uuid.UUID) else expected
                else:
                    expected = part.transform.transform(source.field_type)(value)
                assert file.partition[place] == expected, (part, value)
        assert f"/data/{spec.partition_to_path(file.partition, schema)}/" in file.file_path
    assert contents(store) == sorted(zip(*columns.values(), strict=True), key=repr)
    assert len(by_pyiceberg(store)) == 3


def test_a_table_may_be_partitioned_by_a_part_of_a_row(tmp_path: Path) -> None:
    from pyiceberg.transforms import BucketTransform

    store = make_table(tmp_path, [("id", "bigint"), ("r", "row(a integer, b varchar)")])
    with table(store).update_spec() as update:
        update.add_identity("r.b").add_field("r.a", BucketTransform(4), "a4")
    insert(store, {"id": [1, 2, 3], "r": [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, None]})
    assert len(contents(store)) == len(by_pyiceberg(store)) == 3
    assert len(files(store)) == 3
    statement = Statement(store)
    layout = statement.metadata.get_insert_layout(statement.session, statement.handle)
    assert layout is not None
    assert layout.partition_columns == ("r",)


def test_bounds_and_counts_are_in_the_manifests(tmp_path: Path) -> None:
    from pyiceberg.conversions import from_bytes

    store = make_table(tmp_path, KINDS)
    insert(store, {name: [*values, None] for name, values in VALUES.items()})
    (entry,) = content_of(table(store), table(store).current_snapshot().snapshot_id).data
    file, schema = entry.data_file, table(store).schema()
    path = Path(file.file_path.removeprefix("file://"))
    assert (file.record_count, file.file_size_in_bytes, len(file.split_offsets or [])) == (
        3,
        path.stat().st_size,
        1,
    )
    for field in schema.fields:
        assert (file.value_counts[field.field_id], file.null_value_counts[field.field_id]) == (3, 1)
        assert file.column_sizes[field.field_id] > 0
    bounds = {
        field.name: [
            from_bytes(field.field_type, side[field.field_id])
            for side in (file.lower_bounds, file.upper_bounds)
        ]
        for field in schema.fields
    }
    assert bounds["i"] == [-7, 34]
    assert bounds["n"] == [Decimal("-0.01"), Decimal("14.20")]
    assert bounds["s"] == ["iceberg", "ä/b=c"]
    assert bounds["d"] == [-365, 17486]
    assert pq.ParquetFile(path).schema_arrow.field("i").metadata[b"PARQUET:field_id"] == b"1"


@pytest.mark.parametrize(("count", "wanted"), [(20_000, {"p"}), (100, {"id", "v", "p"})])
def test_columns_with_repeated_values_have_dictionaries_and_others_in_small_files(
    tmp_path: Path, count: int, wanted: set[str]
) -> None:
    store = make_table(tmp_path)
    insert(
        store,
        {
            "id": list(range(count)),
            "v": [f"name {number}" for number in range(count)],
            "p": ["x", None] * (count // 2),
        },
    )
    (path,) = files(store)
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    assert {column.path_in_schema for column in columns if column.has_dictionary_page} == wanted
    assert all(column.statistics.has_min_max for column in columns)
    assert len(by_pyiceberg(store)) == count


def test_a_statement_creates_one_snapshot_whose_summary_counts_its_changes(tmp_path: Path) -> None:
    store = make_table(tmp_path, partitioning=("p",))
    insert(store, {"id": [1, 2, 3], "v": ["a"] * 3, "p": ["x", "x", "y"]})
    summaries = [table(store).current_snapshot().summary]
    statement = Statement(store)
    statement.begin_merge()
    ids = statement.ids()
    statement.stage(
        [(2, ids[1], None, None, "x"), (1, None, 1, "b", "z")],
        [(5, ids[3], 3, "a", "y"), (4, None, 3, "c", "y")],
    )
    statement.finish()
    assert len(table(store).snapshots()) == 2, "nothing is visible before the commit"
    statement.commit()
    summaries.append(table(store).current_snapshot().summary)
    delete(store, 2)
    summaries.append(table(store).current_snapshot().summary)
    assert [summary.operation.value for summary in summaries] == ["append", "overwrite", "delete"]
    names = (
        "added-data-files", "added-records", "added-delete-files", "added-position-delete-files", "added-position-deletes",
        "changed-partition-count", "total-data-files", "total-records", "total-delete-files", "total-position-deletes",
    )  # fmt: skip
    counted = [
        [int(summary.additional_properties.get(name, 0)) for name in names] for summary in summaries
    ]
    assert counted == [
        [2, 3, 0, 0, 0, 2, 2, 3, 0, 0],
        [2, 2, 2, 2, 2, 3, 4, 5, 2, 2],
        [0, 0, 1, 1, 1, 1, 4, 5, 3, 3],
    ]
    assert summaries[1]["engine-name"] == "rowmerge-nb"
    assert contents(store) == by_pyiceberg(store) == [(1, "b", "z"), (3, "c", "y")]
    # Without fragments, no snapshot is created.
    empty = Statement(store)
    empty.begin_merge()
    empty.finish()
    empty.commit()
    assert len(table(store).snapshots()) == 4


def test_delete_files_are_sorted_about_one_file_each_and_name_a_row_once(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, rows(*range(100)))
    insert(store, rows(*range(100, 200)))
    statement = Statement(store)
    statement.begin_merge()
    ids = statement.ids()
    nothing = (None, None, None)
    keys = [150, 3, 77, 120, 0, 3, 3]
    statement.stage([(2, ids[key], *nothing) for key in keys])
    statement.finish()
    statement.commit()
    found = content_of(table(store), table(store).current_snapshot().snapshot_id)
    assert len(found.deletes) == 2
    assert sorted(entry.data_file.record_count for entry in found.deletes) == [2, 3]
    for entry in found.deletes:
        rows_of = pq.read_table(entry.data_file.file_path.removeprefix("file://"))
        (path,) = set(rows_of.column("file_path").to_pylist())
        positions = rows_of.column("pos").to_pylist()
        assert positions == sorted(set(positions))
        bounds = (
            entry.data_file.lower_bounds[2147483546],
            entry.data_file.upper_bounds[2147483546],
        )
        assert bounds == (path.encode(), path.encode())
    assert [row[0] for row in contents(store)] == [row[0] for row in by_pyiceberg(store)]
    assert len(contents(store)) == 195


def test_manifests_are_merged_if_the_table_requests_it(tmp_path: Path) -> None:
    store = make_table(tmp_path, partitioning=("p",))
    with table(store).transaction() as update:
        update.set_properties(
            {"commit.manifest-merge.enabled": "true", "commit.manifest.min-count-to-merge": "2"}
        )
    for key in range(1, 6):
        insert(store, rows(key, p=f"p{key % 2}"))
    delete(store, 1, 2)
    delete(store, 3)
    found = table(store)
    manifests = found.current_snapshot().manifests(found.io)
    assert [manifest.content.name for manifest in manifests].count("DATA") == 1
    assert contents(store) == by_pyiceberg(store) == [(4, "a", "p0"), (5, "a", "p1")]


def test_files_are_rolled_at_their_target_size_and_only_some_are_open_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowmerge_nb.connectors.iceberg.writer.GROUP_ROWS", 1000)
    monkeypatch.setattr("rowmerge_nb.connectors.shared.partitioned_sink.OPEN_FILES", 3)
    store = make_table(tmp_path, [("id", "bigint"), ("r", "double")])
    with table(store).transaction() as update:
        update.set_properties({"write.target-file-size-bytes": "20000"})
    schema = pa.schema([("id", pa.int64()), ("r", pa.float64())])
    statement = Statement(store)
    handle = statement.metadata.begin_insert(statement.session, statement.handle, ())
    sink = store.get_page_sink_provider().create_page_sink(
        statement.transaction, statement.session, handle
    )
    for start in range(0, 9000, 1000):
        numbers = {
            "id": list(range(start, start + 1000)),
            "r": np.random.default_rng(start).random(1000).tolist(),
        }
        sink.append_page(pa.RecordBatch.from_pydict(numbers, schema=schema))
    statement.metadata.finish_insert(statement.session, handle, sink.finish())
    statement.commit()
    assert len(files(store)) == 5
    assert len(contents(store)) == 9000
    create(store, name=SchemaTableName("default", "many"), partitioning=("id",))
    many = SchemaTableName("default", "many")
    insert(store, {"id": [*range(10), 0, 1], "v": ["v"] * 12, "p": ["p"] * 12}, many)
    assert len(contents(store, many)) == 12
    schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.string())])
    for gathered_bytes, file_count in ((1, 5), (1 << 20, 4)):
        monkeypatch.setattr(
            "rowmerge_nb.connectors.shared.partitioned_sink.GATHERED_BYTES", gathered_bytes
        )
        writer = IcebergPageSink(Statement(store, many).handle, "q")
        for page in ({"id": [key], "v": ["v"], "p": ["p"]} for key in (1, 2, 3, 4, 1)):
            writer.append_page(pa.RecordBatch.from_pydict(page, schema=schema))
        # The partition that waited longest is closed, and reopened unless all of its rows were gathered.
        assert len(writer.finish()) == file_count


# -- layouts


def test_the_rows_of_a_partition_and_the_deletes_of_a_file_go_to_one_writer(tmp_path: Path) -> None:
    store = make_table(
        tmp_path,
        [("v", "varchar"), ("day", "date"), ("id", "bigint")],
        partitioning=("bucket(id, 4)", "month(day)"),
    )
    statement = Statement(store)
    layout = statement.metadata.get_insert_layout(statement.session, statement.handle)
    assert layout is not None
    assert layout.partition_columns == ("day", "id")
    provider = store.get_node_partitioning_provider()
    page = pa.RecordBatch.from_pydict({
        "day": pa.array([dt.date(2024, 2, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 1), None]), "id": pa.array([1, 1, 1, 1]),
    })  # fmt: skip
    insert_place = provider.get_bucket_function(
        statement.transaction, statement.session, layout.partitioning, ()
    )  # type: ignore[arg-type]
    first, second, third, nothing = insert_place.get_buckets(page).to_pylist()
    assert first == second != third != nothing
    update = statement.metadata.get_update_layout(statement.session, statement.handle)
    assert update is not None
    assert update.partition_columns == ()
    file_place = provider.get_bucket_function(
        statement.transaction, statement.session, update.partitioning, ()
    )  # type: ignore[arg-type]
    ids = pa.array(
        [{"file": 1, "position": 0}, {"file": 1, "position": 9}, {"file": 2, "position": 0}]
    )
    one, two, three = file_place.get_buckets(
        pa.RecordBatch.from_arrays([ids], names=["row_id"])
    ).to_pylist()
    assert one == two != three
    assert insert_place.bucket_count == file_place.bucket_count
    # Without partitions, inserted rows have no layout.
    create(store, name=SchemaTableName("default", "plain"))
    plain = Statement(store, SchemaTableName("default", "plain"))
    assert plain.metadata.get_insert_layout(plain.session, plain.handle) is None


# -- definitions


def test_types_without_a_counterpart_become_the_next_wider_one_and_others_are_refused(
    tmp_path: Path,
) -> None:
    kinds = [
        "tinyint",
        "smallint",
        "varchar(3)",
        "char(3)",
        "timestamp(0)",
        "time(0)",
        "timestamp(3) with time zone",
        "array(tinyint)",
    ]
    store = make_table(
        tmp_path, [(f"c{i}", kind) for i, kind in enumerate(kinds)] + [("k", "bigint NOT NULL")]
    )
    statement = Statement(store)
    known = statement.metadata.get_table_metadata(statement.session, statement.handle)
    assert [str(column.type) for column in known.columns] == [
        "integer", "integer", "varchar", "varchar", "timestamp(6)", "time(6)", "timestamp(6) with time zone", "array(integer)", "bigint",
    ]  # fmt: skip
    assert [column.nullable for column in known.columns] == [True] * 8 + [False]
    with pytest.raises(
        AnalysisError, match="NOT_SUPPORTED: Type not supported for Iceberg: json, of column 'j'"
    ):
        create(store, [("j", "json")], SchemaTableName("default", "u"))
    with pytest.raises(
        AnalysisError,
        match=r"NOT_SUPPORTED: Row type field does not have a name: row\(integer\), of column 'r'",
    ):
        create(store, [("r", "row(integer)")], SchemaTableName("default", "u"))


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        (
            {"sorted": ("id",)},
            "Catalog 'iceberg' table property 'sorted' does not exist. There are: format, format_version",
        ),
        ({"format": "ORC"}, "format can be 'PARQUET', not 'ORC'"),
        ({"format_version": 4}, "format_version must be between 1 and 3, not 4"),
        (
            {"isolation_level": "none"},
            "isolation_level can be 'serializable' or 'snapshot', not 'none'",
        ),
        ({"partitioning": ("bucket(nix, 4)",)}, "Table property 'partitioning' names column 'nix'"),
        (
            {"partitioning": ("day(v)",)},
            "Table property 'partitioning': day.v. cannot be computed for a column of type varchar",
        ),
        (
            {"partitioning": ("bucket(id, 2)", "bucket(id, 4)")},
            "two transforms create a partition field 'id_bucket'",
        ),
        (
            {"location": "s3://lake/a#b"},
            "location has '#' or '\\?', which end the path of an address",
        ),
    ],
)
def test_properties_that_a_table_cannot_have_are_refused(
    tmp_path: Path, properties: Any, message: str
) -> None:
    with pytest.raises(AnalysisError, match=f"INVALID_TABLE_PROPERTY: .*{message}"):
        make_table(tmp_path, **properties)


def test_a_table_is_shown_with_the_properties_that_make_it(tmp_path: Path) -> None:
    place = str(tmp_path / "elsewhere")
    store = make_table(
        tmp_path, location=place, partitioning=("p", "truncate(v, 2)"), isolation_level="snapshot"
    )
    statement = Statement(store)
    shown = statement.metadata.get_table_metadata(statement.session, statement.handle).properties
    assert {name: value for name, value in shown.items() if value not in {None, ()}} == {
        "format": "PARQUET", "format_version": 2, "location": place, "max_commit_retry": 4, "partitioning": ("p", "truncate(v, 2)"), "isolation_level": "snapshot",
    }  # fmt: skip
    insert(store, rows(1))
    assert (tmp_path / "elsewhere" / "data" / "p=x" / "v_trunc=a").is_dir()
    statement = Statement(store)
    statement.metadata.drop_table(statement.session, statement.handle)
    statement.commit()
    assert not (tmp_path / "elsewhere").exists()


def test_tables_of_version_1_are_read_and_inserted_into_and_their_rows_are_not_changed(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path, format_version=1, partitioning=("p",))
    insert(store, rows(1, 2))
    assert contents(store) == by_pyiceberg(store) == [(1, "a", "x"), (2, "a", "x")]
    statement = Statement(store)
    with pytest.raises(
        ConnectorError,
        match="NOT_SUPPORTED: Iceberg table updates require at least format version 2",
    ):
        statement.metadata.get_merge_row_id_column_handle(statement.session, statement.handle)


def test_the_snapshot_counts_rows_exactly_without_deletes_and_as_a_bound_with_deletes(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)

    def bound() -> int | None:
        statement = Statement(store)
        found: int | None = statement.metadata.get_table_statistics(
            statement.session, statement.handle
        ).row_count
        return found

    def count() -> int | None:
        statement = Statement(store)
        return statement.metadata.row_count(statement.session, statement.handle)

    assert count() == bound() == 0
    insert(store, rows(1, 2, 3))
    insert(store, rows(4))
    assert count() == bound() == 4
    delete(store, 2)
    assert (count(), bound()) == (None, 4)
    statement = Statement(store)
    statement.metadata.truncate_table(statement.session, statement.handle)
    statement.commit()
    assert (count(), contents(store), by_pyiceberg(store)) == (0, [], [])
    summary = table(store).current_snapshot().summary
    assert summary.operation.value == "delete"
    assert (
        summary["deleted-records"],
        summary["total-records"],
        summary["total-delete-files"],
    ) == ("4", "0", "0")
    insert(store, rows(9))
    assert contents(store) == [(9, "a", "x")]


def test_names_are_found_in_any_case_and_two_equal_ones_are_refused(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1))
    store.catalog.create_namespace("Shop")
    store.catalog.rename_table(("default", "t"), ("Shop", "Orders"))
    name = SchemaTableName("shop", "orders")
    assert contents(store, name) == [(1, "a", "x")]
    statement = Statement(store, name)
    assert statement.metadata.list_tables(statement.session) == [name]
    assert list(statement.metadata.list_schemas(statement.session)) == ["default", "shop"]
    store.catalog.create_table(("Shop", "ORDERS"), table_schema())
    with pytest.raises(
        ConnectorError,
        match="AMBIGUOUS_NAME: Iceberg tables ORDERS, Orders of schema 'Shop' differ only in case",
    ):
        Statement(store, name)


def table_schema() -> Any:
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    return Schema(NestedField(1, "id", LongType()))


@pytest.mark.parametrize("name", ["Müller's #1 100% dir", "what?", "a%20b"])
def test_directories_may_have_names_that_addresses_would_take_apart(
    tmp_path: Path, name: str
) -> None:
    store = make_table(tmp_path / name, partitioning=("p",))
    insert(store, rows(1, 2, p="a/b#c?d e"))
    delete(store, 1)
    assert contents(store) == by_pyiceberg(store) == [(2, "a", "a/b#c?d e")]
    assert (tmp_path / name / "catalog.sqlite").exists()


def test_a_catalog_of_pyiceberg_may_be_passed_or_named(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1))
    properties = {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path / 'catalog.sqlite'}",
        "warehouse": str(tmp_path),
    }
    named = IcebergConnector(catalog="rowmerge", properties=properties)
    assert contents(named) == [(1, "a", "x")]
    given = IcebergConnector(catalog=named.catalog)
    assert contents(given) == [(1, "a", "x")]
    # Tables of a foreign catalog keep their files when they are dropped.
    kept = files(store)
    statement = Statement(given)
    statement.metadata.drop_table(statement.session, statement.handle)
    statement.commit()
    assert Statement(store).handle is None
    assert all(path.exists() for path in kept)
    named.close()
    with pytest.raises(
        ConnectorError,
        match="INVALID_ARGUMENTS: An Iceberg connector has either a warehouse directory or a catalog",
    ):
        IcebergConnector()
    with pytest.raises(
        ConnectorError, match="ICEBERG_CATALOG_ERROR: Iceberg catalog 'nix' does not answer"
    ):
        IcebergConnector(catalog="nix", properties={"type": "nix"})


def test_a_table_is_adopted_by_its_metadata_file(tmp_path: Path) -> None:
    store = make_table(tmp_path / "one")
    insert(store, rows(1, 2))
    place = table(store).metadata_location
    other = IcebergConnector(tmp_path / "two")
    with pytest.raises(
        ConnectorError,
        match=r"TABLE_ALREADY_EXISTS: .* is a file of table 'default.t' in the warehouse '.*one'",
    ):
        other.register_table("default", "T", place)
    store.catalog.drop_table("default.t")
    other.register_table("default", "T", place)
    assert contents(other) == [(1, "a", "x"), (2, "a", "x")]
    delete(other, 1)
    assert contents(other) == [(2, "a", "x")]
    with pytest.raises(
        ConnectorError, match=r"TABLE_ALREADY_EXISTS: Table 'default.t' already exists"
    ):
        other.register_table("default", "t", place)
    with pytest.raises(ConnectorError, match="SCHEMA_NOT_FOUND: Schema 'nix' does not exist"):
        other.register_table("nix", "t", place)
    with pytest.raises(
        ConnectorError,
        match=r"ICEBERG_INVALID_METADATA: '/nix.metadata.json' is not a metadata file",
    ):
        other.register_table("default", "u", "/nix.metadata.json")
    statement = Statement(other)
    statement.metadata.drop_table(statement.session, statement.handle)
    statement.commit()
    store.register_table("default", "t", place)
    assert contents(store) == [(1, "a", "x"), (2, "a", "x")], "what was adopted is not removed"


def test_a_missing_pyiceberg_is_reported_with_the_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from rowmerge_nb import SetupError

    monkeypatch.delitem(sys.modules, "rowmerge_nb.connectors.iceberg.embedded", raising=False)
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog.sql", None)
    with pytest.raises(SetupError, match=r"pyiceberg, .* is not installed") as caught:
        IcebergConnector(tmp_path)
    assert caught.value.hint == f"Run: {install_command('iceberg')}"
