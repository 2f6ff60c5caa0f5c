"""Iceberg tables of other writers, read by the connector and by pyiceberg's own reader."""

from __future__ import annotations

import datetime as dt
import random
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from pyroaring import BitMap64

from rowmerge_nb import ConnectorError
from rowmerge_nb.connectors.iceberg import planning
from rowmerge_nb.connectors.iceberg.deletion_vectors import vector_positions
from rowmerge_nb.spi import ColumnDomain, Constraint, parse_type
from tests.connectors.iceberg.kit import (
    Statement,
    add_deletes,
    by_pyiceberg,
    commit_files,
    contents,
    delete,
    files,
    insert,
    make_table,
    rows,
    table,
)

MOMENT = dt.datetime(2024, 2, 29, 12, 30, 15, 123456)  # noqa: DTZ001 - a timestamp without a zone is meant
TYPES = {
    "b": ("boolean", [True, False, None]),
    "i": ("integer", [1, -(2**31), None]),
    "l": ("bigint", [1, 2**62, None]),
    "r": ("real", [1.5, float("-inf"), None]),
    "d": ("double", [0.1, float("inf"), None]),
    "n": ("decimal(20,3)", [Decimal("1.500"), Decimal("-12345678901234567.890"), None]),
    "s": ("varchar", ["ä", "", None]),
    "x": ("varbinary", [b"\x00\xff", b"", None]),
    "u": (
        "uuid",
        ["00010203-0405-0607-0809-0a0b0c0d0e0f", "ffffffff-ffff-ffff-ffff-ffffffffffff", None],
    ),
    "day": ("date", [dt.date(1969, 12, 31), dt.date(2024, 2, 29), None]),
    "t": ("time(6)", [dt.time(23, 59, 59, 999999), dt.time(0), None]),
    "ts": ("timestamp(6)", [MOMENT, MOMENT.replace(1, 1, 1), None]),
    "tz": (
        "timestamp(6) with time zone",
        [MOMENT.replace(tzinfo=dt.UTC), dt.datetime(1960, 1, 1, tzinfo=dt.UTC), None],
    ),
    "a": ("array(integer)", [[1, None], [], None]),
    "m": ("map(varchar, bigint)", [[("k", 1), ("j", None)], [], None]),
    "row": (
        "row(a integer, b row(c uuid, d array(row(e varchar))))",
        [{"a": 1, "b": {"c": None, "d": [{"e": "z"}]}}, {"a": None, "b": None}, None],
    ),
}


def test_all_types_are_read_back_as_written_also_by_pyiceberg(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path, [(name, kind) for name, (kind, _) in TYPES.items()])
    columns = {name: values for name, (_, values) in TYPES.items()}
    insert(store, columns)
    statement = Statement(store)
    (page,) = statement.pages()
    assert page.to_pydict() == columns
    read = table(store).scan().to_arrow().to_pydict()
    assert {**read, "u": columns["u"], "row": columns["row"]} == columns
    assert [str(value) if value is not None else None for value in read["u"]] == columns["u"]
    # Slices of pages, as in exchanges, are written in the same way.
    insert(store, page.slice(1, 2))
    assert len(contents(store)) == 5
    # Only some columns, in any order, and no columns.
    assert Statement(store).rows("s", "row")[0] == {"s": "ä", "row": columns["row"][0]}
    empty = store.get_page_source_provider().create_page_source(
        statement.transaction, statement.session, statement.splits()[0], statement.handle, ()
    )
    counted = empty.get_next_page()
    assert counted is not None
    assert (counted.num_columns, counted.num_rows) == (0, 3)


def test_a_table_whose_columns_were_altered_is_read_by_field_ids(tmp_path: Path) -> None:
    from pyiceberg.types import DecimalType, DoubleType, LongType, StringType

    columns = [
        ("i", "integer"), ("f", "real"), ("n", "decimal(5,2)"), ("gone", "varchar"),
        ("r", "row(a integer, b varchar)"), ("l", "array(row(x integer, y integer))"), ("m", "map(integer, row(p real))"),
    ]  # fmt: skip
    store = make_table(tmp_path, columns)
    old = {
        "i": [1, None], "f": [0.5, None], "n": [Decimal("1.25"), None], "gone": ["old", "old"],
        "r": [{"a": 1, "b": "z"}, None], "l": [[{"x": 1, "y": 2}, None], None], "m": [[(1, {"p": 0.5})], None],
    }  # fmt: skip
    insert(store, old)
    with table(store).update_schema(allow_incompatible_changes=True) as update:
        update.update_column("i", LongType()).update_column("f", DoubleType()).update_column(
            "n", DecimalType(10, 2)
        )
        update.delete_column("gone").add_column("new", StringType())
        update.rename_column("i", "number").update_column(("r", "a"), LongType()).delete_column(
            ("r", "b")
        )
        update.add_column(("r", "c"), StringType()).update_column(("l", "element", "y"), LongType())
        update.delete_column(("l", "element", "x")).update_column(("m", "value", "p"), DoubleType())
    with table(store).update_schema() as update:
        # A new column with an old name is another column.
        update.add_column("gone", LongType()).move_first("new")
    statement = Statement(store)
    assert [(f.name, str(f.type)) for f in statement.handle.fields] == [
        ("new", "varchar"), ("number", "bigint"), ("f", "double"), ("n", "decimal(10,2)"), ("r", 'row("a" bigint, "c" varchar)'),
        ("l", 'array(row("y" bigint))'), ("m", 'map(integer, row("p" double))'), ("gone", "bigint"),
    ]  # fmt: skip
    assert statement.rows() == [
        {
            "new": None, "number": 1, "f": 0.5, "n": Decimal("1.25"), "r": {"a": 1, "c": None}, "l": [{"y": 2}, None],
            "m": [(1, {"p": 0.5})], "gone": None,
        },
        {"new": None, "number": None, "f": None, "n": None, "r": None, "l": None, "m": None, "gone": None},
    ]  # fmt: skip
    # Rows of the old file can be changed like any others.
    change = Statement(store)
    change.begin_merge()
    ids = [row["$row_id"] for row in change.rows(ids=True)]
    change.stage(
        [
            (2, ids[1], *[None] * 8),
            (1, None, "n", 2**40, 1.0, None, {"a": 1, "c": "c"}, [{"y": 2**40}], [], 7),
        ]
    )
    change.finish()
    change.commit()
    assert [row[:2] for row in contents(store)] == [("n", 2**40), (None, 1)]
    assert len(by_pyiceberg(store)) == 2


def test_a_table_whose_partitioning_was_altered_is_read_and_changed(tmp_path: Path) -> None:
    from pyiceberg.transforms import BucketTransform

    store = make_table(tmp_path, partitioning=("p",))
    insert(store, rows(1, 2, p="x"))
    with table(store).update_spec() as update:
        update.remove_field("p").add_field("id", BucketTransform(2), "b")
    insert(store, rows(3, 4, p="x"))
    with table(store).update_spec() as update:
        update.remove_field("b")
    insert(store, rows(5, p="y"))
    delete(store, 1, 3, 5)
    assert contents(store) == by_pyiceberg(store) == [(2, "a", "x"), (4, "a", "x")]
    deletes = [
        entry.data_file.spec_id
        for entry in planning.content_of(
            table(store), table(store).current_snapshot().snapshot_id
        ).deletes
    ]
    assert sorted(deletes) == [0, 1, 2], (
        "a delete file belongs to the partitioning of the file whose rows it deletes"
    )
    found = Statement(store).splits(Constraint({"p": ColumnDomain(values=("y",))}))
    assert [split.path.count("p=x") for split in found].count(1) == 0
    # A partition field whose column was dropped.
    with table(store).update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("p")
    assert contents(store) == [(2, "a"), (4, "a")]
    delete(store, 2)
    assert contents(store) == by_pyiceberg(store) == [(4, "a")]
    statement = Statement(store)
    statement.metadata.truncate_table(statement.session, statement.handle)
    statement.commit()
    assert contents(store) == by_pyiceberg(store) == []


def test_files_without_field_ids_are_read_by_the_name_mapping_and_partition_columns_by_the_partition(
    tmp_path: Path,
) -> None:
    from pyiceberg.typedef import Record

    store = make_table(
        tmp_path,
        [("id", "bigint"), ("r", "row(a bigint)"), ("day", "date"), ("k", "bigint")],
        partitioning=("day", "k"),
    )
    plain = tmp_path / "hive.parquet"
    pq.write_table(pa.table({"number": [1, 2], "r": [{"A": 1}, {"A": 2}]}), plain)
    found = table(store)
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

    file = DataFile.from_args(
        3,
        content=DataFileContent.DATA, file_path=f"file://{plain}", file_format=FileFormat.PARQUET, partition=Record(19782, None),
        record_count=2, file_size_in_bytes=plain.stat().st_size,
    )  # fmt: skip
    file.spec_id = 0
    commit_files(store, data=[file])
    with pytest.raises(
        ConnectorError, match=r"ICEBERG_BAD_DATA: File 'file://.*hive.parquet' has no field ids"
    ) as caught:
        contents(store)
    assert "schema.name-mapping.default" in str(caught.value.hint)
    names = '[{"field-id": 1, "names": ["id", "number"]}, {"field-id": 2, "names": ["r"], "fields": [{"field-id": 5, "names": ["A"]}]}]'
    ids = {field.name: field.id for field in Statement(store).handle.fields}
    inner = Statement(store).handle.fields[1].fields[0].id
    names = names.replace('"field-id": 5', f'"field-id": {inner}').replace(
        '"field-id": 2', f'"field-id": {ids["r"]}'
    )
    found.transaction().set_properties({"schema.name-mapping.default": names}).commit_transaction()
    assert contents(store) == [
        (1, {"a": 1}, dt.date(2024, 2, 29), None),
        (2, {"a": 2}, dt.date(2024, 2, 29), None),
    ]


# -- deletes of other engines


def test_position_deletes_about_a_whole_partition_concern_older_files_only(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2, 3))
    insert(store, rows(4, 5))
    first, second = sorted(files(store), key=lambda path: -path.stat().st_size)
    paths = [f"file://{first}", f"file://{first}", f"file://{second}"]
    add_deletes(
        store,
        tmp_path / "d.parquet",
        pa.table({"file_path": sorted(paths), "pos": [0, 2, 1]}),
        "POSITION_DELETES",
    )
    left = contents(store)
    assert left == by_pyiceberg(store)
    assert len(left) == 2


def test_equality_deletes_concern_older_rows_only_and_null_equals_null(tmp_path: Path) -> None:
    store = make_table(tmp_path)
    insert(store, {"id": [1, 2, 3, None], "v": ["a", "b", None, None], "p": ["x"] * 4})
    ids = {field.name: field.id for field in Statement(store).handle.fields}
    meta = lambda name: {b"PARQUET:field_id": str(ids[name]).encode()}
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), metadata=meta("id")),
            pa.field("v", pa.string(), metadata=meta("v")),
        ]
    )
    dead = pa.table({"id": [1, 2, None], "v": ["a", "other", None]}, schema=schema)
    add_deletes(store, tmp_path / "e.parquet", dead, "EQUALITY_DELETES", [ids["id"], ids["v"]])
    assert contents(store) == [(2, "b", "x"), (3, None, "x")]
    insert(store, rows(1))
    assert contents(store) == [(1, "a", "x"), (2, "b", "x"), (3, None, "x")]
    # The compared column need not be requested, and may be dropped.
    assert Statement(store).rows("p") == [{"p": "x"}] * 3
    with table(store).update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("v")
    assert contents(store) == [(1, "x"), (2, "x"), (3, "x")]
    delete(store, 3)
    assert contents(store) == [(1, "x"), (2, "x")]


def puffin(*vectors: tuple[str, Any]) -> bytes:
    """Write a Puffin file with deletion vectors, as in the specification."""
    import json
    import zlib

    data, blobs = b"PFA1", []
    for path, positions in vectors:
        body = bytes.fromhex("d1d33964") + BitMap64(positions).serialize()
        blob = len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
        blobs.append({
            "type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1, "offset": len(data),
            "length": len(blob), "properties": {"referenced-data-file": path, "cardinality": str(len(positions))},
        })  # fmt: skip
        data += blob
    footer = json.dumps({"blobs": blobs}).encode()
    return data + b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"


def test_deletion_vectors_are_read_as_pyiceberg_reads_them() -> None:
    from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
    from pyiceberg.table.puffin import PuffinFile

    positions = [0, 7, 70_000, 2**33 + 5]
    written = puffin(("file:///a", positions), ("file:///b", [1]))
    assert vector_positions(written, "file:///a", "f").tolist() == positions
    assert vector_positions(written, "file:///b", "f").tolist() == [1]
    assert vector_positions(written, "file:///c", "f").tolist() == []
    own = {
        vector.referenced_data_file: vector.to_vector().to_pylist()
        for vector in deletion_vectors_from_puffin_file(PuffinFile(written))
    }
    assert own == {"file:///a": positions, "file:///b": [1]}
    with pytest.raises(ConnectorError, match="is not a Puffin file"):
        vector_positions(b"PAR1" + bytes(20), "file:///a", "f")


def test_a_deletion_vector_names_no_more_positions_than_the_file_has_rows() -> None:
    from pyroaring import BitMap64

    everything = BitMap64()
    everything.add_range(0, 1 << 36)
    written = puffin(("file:///a", everything), ("file:///b", [1, 7]))
    assert vector_positions(written, "file:///a", "f", 3).tolist() == [0, 1, 2]
    assert vector_positions(written, "file:///b", "f", 3).tolist() == [1]
    assert vector_positions(written, "file:///b", "f", 0).tolist() == []


# -- splits and pruning


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file of ten row groups with some deleted rows."""
    monkeypatch.setattr("rowmerge_nb.connectors.iceberg.writer.GROUP_ROWS", 500)
    monkeypatch.setattr(planning, "SPLIT_ROWS", 2000)
    monkeypatch.setattr("rowmerge_nb.connectors.iceberg.reader.PAGE_ROWS", 300)
    store = make_table(tmp_path)
    schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("p", pa.string())])
    with_rows = Statement(store)
    handle = with_rows.metadata.begin_insert(with_rows.session, with_rows.handle, ())
    sink = store.get_page_sink_provider().create_page_sink(
        with_rows.transaction, with_rows.session, handle
    )
    for start in range(0, 10_000, 1000):
        ids = list(range(start, start + 1000))
        sink.append_page(
            pa.RecordBatch.from_pydict(
                {"id": ids, "v": [f"v{i}" for i in ids], "p": ["x"] * 1000}, schema=schema
            )
        )
    with_rows.metadata.finish_insert(with_rows.session, handle, sink.finish())
    with_rows.commit()
    return store


def test_a_large_file_is_cut_into_splits_with_every_row_once_and_at_its_position(
    large: Any,
) -> None:
    delete(large, *range(0, 10_000, 7), *range(3000, 4000))
    statement = Statement(large)
    splits = statement.splits()
    assert len(splits) == 5
    assert [split.start for split in splits[1:]] == [split.end for split in splits[:-1]]
    found = statement.rows("id", ids=True)
    expected = [i for i in range(10_000) if i % 7 and not 3000 <= i < 4000]
    assert [row["id"] for row in found] == expected
    assert [row["$row_id"]["position"] for row in found] == expected
    assert max(page.num_rows for page in statement.pages()) <= 300


def test_row_groups_outside_of_a_constraint_are_not_read(large: Any) -> None:
    def read(**domain: Any) -> list[int]:
        return [
            row["id"]
            for row in Statement(large).rows(
                "id", constraint=Constraint({"id": ColumnDomain(**domain)})
            )
        ]

    assert read(low=2500, high=2600) == list(range(2000, 3000))
    assert read(values=(1, 9999)) == [*range(1000), *range(9000, 10_000)]
    assert read(low=20_000) == []
    assert read(values=()) == []
    constraint = Constraint({"v": ColumnDomain(values=("w",)), "missing": ColumnDomain(low=1)})
    assert Statement(large).rows("id", constraint=constraint) == []


def test_files_are_pruned_by_their_bounds_and_partitions(tmp_path: Path) -> None:
    store = make_table(
        tmp_path,
        [("id", "bigint"), ("v", "decimal(10,2)"), ("day", "date")],
        partitioning=("month(day)",),
    )
    days = [dt.date(2024, month, 3) for month in range(1, 13)]
    insert(store, {"id": list(range(12)), "v": [Decimal(i) for i in range(12)], "day": days})

    def files_read(**domains: ColumnDomain) -> int:
        return len(Statement(store).splits(Constraint(domains)))

    assert files_read() == 12
    assert files_read(day=ColumnDomain(low=dt.date(2024, 11, 1))) == 2
    assert files_read(day=ColumnDomain(values=(dt.date(2024, 2, 1), dt.date(2024, 5, 1)))) == 0, (
        "the bounds of the day say so"
    )
    assert files_read(v=ColumnDomain(low=Decimal("3.50"), high=Decimal("5.00"))) == 2
    assert files_read(id=ColumnDomain(values=tuple(range(5, 1000)))) == 7, (
        "of many values the smallest and the largest count"
    )
    # Incomparable values prune nothing.
    assert files_read(id=ColumnDomain(low="a")) == 12
    assert files_read(v=ColumnDomain(low=Decimal("1.23456789"))) in {11, 12}


# -- unreadable tables


def test_missing_and_corrupt_files_are_reported_with_store_file_and_next_step(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    (file,) = files(store)
    content = file.read_bytes()
    file.write_bytes(content[:50] + b"junk")
    with pytest.raises(
        ConnectorError,
        match=rf"ICEBERG_BAD_DATA: File 'file://{file}' of Iceberg table 'default.t' cannot be read",
    ):
        contents(store)
    file.unlink()
    with pytest.raises(
        ConnectorError,
        match=rf"ICEBERG_MISSING_DATA: File 'file://{file}' of Iceberg table 'default.t' does not exist",
    ):
        contents(store)
    for manifest in files(store, "metadata"):
        if manifest.suffix == ".avro":
            manifest.unlink()
    from pyiceberg.manifest import clear_manifest_cache

    clear_manifest_cache()
    with pytest.raises(
        ConnectorError,
        match=r"ICEBERG_INVALID_METADATA: The manifests of snapshot \d+ of Iceberg table 'default.t'",
    ):
        contents(store)
    for metadata in files(store, "metadata"):
        metadata.unlink()
    with pytest.raises(
        ConnectorError,
        match=r"ICEBERG_MISSING_METADATA: The metadata file of Iceberg table 'default.t'",
    ):
        contents(store)


def test_manifests_that_describe_a_type_once_and_then_name_it_are_refused_by_what_partitions(
    tmp_path: Path,
) -> None:
    from pyiceberg.manifest import clear_manifest_cache

    store = make_table(
        tmp_path, [("a", "decimal(9,0)"), ("b", "decimal(9,0)")], partitioning=("a", "b")
    )
    insert(store, {"a": [Decimal(1)], "b": [Decimal(2)]})
    for manifest in files(store, "metadata"):
        if manifest.name.endswith("-m0.avro"):
            name_second_type(manifest, b"decimal_9_0")
    clear_manifest_cache()
    with pytest.raises(
        ConnectorError,
        match=r"NOT_SUPPORTED: Iceberg table 'default\.t' is partitioned by 'a' and 'b', of one type",
    ):
        contents(store)


def name_second_type(manifest: Path, name: bytes) -> None:
    """Refer to a type by name where a manifest's header describes it again, like Avro's Java library."""
    content = manifest.read_bytes()
    start = content.index(b"avro.schema") + len(b"avro.schema")
    # The length is a zigzag number of seven bits to a byte.
    length, width = 0, 0
    while True:
        byte = content[start + width]
        length |= (byte & 0x7F) << (7 * width)
        width += 1
        if byte < 0x80:
            break
    begin = start + width
    schema = content[begin : begin + length // 2]
    described = re.findall(rb'\{[^{}]*"name": ?"' + name + rb'"[^{}]*\}', schema)
    assert len(described) == 2
    where = schema.rindex(described[1])
    schema = schema[:where] + b'"' + name + b'"' + schema[where + len(described[1]) :]
    number, coded = len(schema) * 2, b""
    while number >= 0x80:
        coded += bytes([number & 0x7F | 0x80])
        number >>= 7
    manifest.write_bytes(
        content[:start] + coded + bytes([number]) + schema + content[begin + length // 2 :]
    )


@pytest.mark.parametrize("form", ["ORC", "AVRO"])
def test_data_files_of_other_formats_are_refused(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    store = make_table(tmp_path)
    insert(store, rows(1))
    (entry,) = planning.content_of(table(store), table(store).current_snapshot().snapshot_id).data
    from pyiceberg.manifest import DataFile, FileFormat

    file = DataFile.from_args(
        3,
        content=entry.data_file.content, file_path="file:///elsewhere/a", file_format=FileFormat[form],
        partition=entry.data_file.partition, record_count=1, file_size_in_bytes=1,
    )  # fmt: skip
    file.spec_id = 0
    commit_files(store, data=[file])
    with pytest.raises(
        ConnectorError,
        match=f"NOT_SUPPORTED: File 'file:///elsewhere/a' of Iceberg table 'default.t' is of format {form}",
    ):
        contents(store)


def test_unknown_format_versions_and_types_are_refused_with_the_name(tmp_path: Path) -> None:
    import json

    store = make_table(tmp_path)
    insert(store, rows(1))
    path = Path(table(store).metadata_location.removeprefix("file://"))
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "format-version": 9}))
    with pytest.raises(
        ConnectorError, match=r"ICEBERG_INVALID_METADATA: The metadata of Iceberg table 'default.t'"
    ):
        contents(store)
    content["format-version"], content["next-row-id"] = 3, 10
    content["schemas"][0]["fields"][1]["type"] = "timestamp_ns"
    path.write_text(json.dumps(content))
    with pytest.raises(
        ConnectorError,
        match=r"NOT_SUPPORTED: Column 'v' of Iceberg table 'default.t' is of type timestamp_ns",
    ):
        contents(store)


def test_tables_that_pyiceberg_wrote_are_read_nested_and_large_types_too(tmp_path: Path) -> None:
    store = make_table(tmp_path, [(name, kind) for name, (kind, _) in TYPES.items()])
    arrays = [pa.array(values, parse_type(kind).arrow) for kind, values in TYPES.values()]
    page = pa.Table.from_arrays(arrays, names=list(TYPES))
    insert(store, page.to_batches()[0])
    read = table(store).scan().to_arrow()
    table(store).append(read)
    table(store).append(read.slice(1))
    found = contents(store)
    expected = list(zip(*(values for _, values in TYPES.values()), strict=True))
    assert found == sorted([*expected, *expected, *expected[1:]], key=repr)


def test_columns_of_version_3_have_their_defaults_in_older_files(tmp_path: Path) -> None:
    import json

    store = make_table(tmp_path)
    insert(store, rows(1, 2))
    path = Path(table(store).metadata_location.removeprefix("file://"))
    content = json.loads(path.read_text())
    content["format-version"], content["next-row-id"], content["last-column-id"] = 3, 10, 12
    values = {"d": ("date", "2024-02-29"), "n": ("decimal(5, 2)", "1.50"), "u": ("uuid", "00010203-0405-0607-0809-0a0b0c0d0e0f"),
              "ts": ("timestamp", "2024-02-29T12:30:15.123456"), "b": ("binary", "00ff"), "s": ("string", "s"), "i": ("int", 7)}  # fmt: skip
    content["schemas"][0]["fields"] += [
        {
            "id": 4 + number,
            "name": name,
            "required": False,
            "type": kind,
            "initial-default": default,
            "write-default": default,
        }
        for number, (name, (kind, default)) in enumerate(values.items())
    ]
    path.write_text(json.dumps(content))
    row = (
        dt.date(2024, 2, 29),
        Decimal("1.50"),
        "00010203-0405-0607-0809-0a0b0c0d0e0f",
        MOMENT,
        b"\x00\xff",
        "s",
        7,
    )
    assert contents(store) == [(1, "a", "x", *row), (2, "a", "x", *row)]
    statement = Statement(store)
    described = statement.metadata.get_table_metadata(statement.session, statement.handle)
    statement.rollback()
    assert [column.default for column in described.columns[3:]] == [
        "DATE '2024-02-29'",
        "DECIMAL '1.50'",
        "UUID '00010203-0405-0607-0809-0a0b0c0d0e0f'",
        "TIMESTAMP '2024-02-29 12:30:15.123456'",
        "X'00FF'",
        "'s'",
        "7",
    ]


def test_a_constant_is_the_same_as_a_column_of_it() -> None:
    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergField
    from rowmerge_nb.connectors.iceberg.projection import constant

    for number, (kind, stored, shown) in enumerate([
        ("date", 19782, dt.date(2024, 2, 29)), ("time(6)", 1_000_000, dt.time(0, 0, 1)), ("timestamp(6)", 1, MOMENT.replace(1970, 1, 1, 0, 0, 0, 1)),
        ("integer", 3, 3), ("varchar", "s", "s"), ("decimal(4,1)", Decimal("1.5"), Decimal("1.5")), ("varbinary", b"x", b"x"), ("boolean", True, True),
    ]):  # fmt: skip
        field = IcebergField(number, "c", parse_type(kind), kind)
        assert constant(field, stored, 2).to_pylist() == [shown, shown]
        assert constant(field, stored, 2).type == field.type.arrow


@pytest.mark.parametrize(
    ("wanted", "whole"), [((8,), 1), ((5,), 0), ((1, 2), 2), ((3, 4, 5, 6, 7, *range(100, 112)), 2)]
)
def test_keys_are_read_before_the_other_columns_if_few_rows_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: tuple[int, ...], whole: int
) -> None:
    store = make_table(tmp_path)
    insert(store, rows(1, 9))
    insert(store, rows(2, 8))
    reads: list[list[str]] = []
    iter_batches = pq.ParquetFile.iter_batches

    def recorded(self: Any, *arguments: Any, columns: list[str], **options: Any) -> Any:
        reads.append(columns)
        return iter_batches(self, *arguments, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", recorded)
    constraint = Constraint({"id": ColumnDomain(wanted, 1, 9)})
    # The files' bounds alone exclude none of them.
    found = Statement(store).rows(constraint=constraint)
    assert [columns == ["id", "v", "p"] for columns in reads].count(True) == whole
    assert [columns == ["id"] for columns in reads].count(True) == (2 if len(wanted) < 17 else 0)
    assert {row["id"] for row in found} >= set(wanted) & {1, 2, 8, 9}


@pytest.mark.parametrize("seed", range(3))
def test_the_same_rows_are_omitted_for_all_requested_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("rowmerge_nb.connectors.iceberg.writer.GROUP_ROWS", 2)
    chance = random.Random(seed)
    store = make_table(tmp_path)
    everything = [(chance.randrange(20), chance.choice("abc")) for _ in range(60)]
    insert(
        store,
        {
            "id": [i for i, _ in everything],
            "v": [v for _, v in everything],
            "p": ["x"] * len(everything),
        },
    )
    for _ in range(10):
        domains = {"id": ColumnDomain(tuple(chance.sample(range(20), chance.randrange(1, 4))))}
        if chance.random() < 0.5:
            domains["v"] = ColumnDomain((chance.choice("abc"),))
        constraint = Constraint(domains)
        whole = Statement(store).rows(ids=True, constraint=constraint)
        for name in ("id", "v", "p"):
            alone = Statement(store).rows(name, ids=True, constraint=constraint)
            assert [(row[name], row["$row_id"]) for row in alone] == [
                (row[name], row["$row_id"]) for row in whole
            ]
        kept = sorted(
            (i, v)
            for i, v in everything
            if i in domains["id"].values and ("v" not in domains or v in domains["v"].values)
        )
        assert [
            pair for pair in sorted((row["id"], row["v"]) for row in whole) if pair in kept
        ] == kept


def test_a_snapshot_to_which_pyiceberg_has_added_no_file_is_read_and_changed(
    tmp_path: Path,
) -> None:
    store = make_table(tmp_path)
    for content in (rows(), rows(1, 2), rows()):
        found = table(store)
        schema = found.schema().as_arrow()
        data = pa.Table.from_pydict(
            {name: pa.array(content[name], schema.field(name).type) for name in schema.names},
            schema=schema,
        )
        found.append(data)
    assert [row[0] for row in contents(store)] == [1, 2]
    insert(store, rows(3))
    delete(store, 1)
    assert sorted(row[0] for row in contents(store)) == [2, 3]
    table(store).overwrite(schema.empty_table())
    assert contents(store) == []
