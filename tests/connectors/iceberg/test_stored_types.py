from __future__ import annotations

import datetime as dt
import gc
import json
import uuid
from collections.abc import Callable, Mapping
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyarrow import parquet as pq
from pyiceberg import types as t
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortField, SortOrder
from pyiceberg.transforms import IdentityTransform

from rowmerge_nb import ConnectorError, IcebergConnector
from rowmerge_nb.connectors.iceberg import fragments
from rowmerge_nb.connectors.iceberg.physical import require_physical_types
from tests.connectors.iceberg.kit import (
    Statement,
    by_pyiceberg,
    contents,
    delete,
    insert,
    make_table,
    rows,
    table,
)

UUID = uuid.UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
VALUES: Mapping[t.PrimitiveType, Any] = {
    t.BooleanType(): True,
    t.IntegerType(): -(2**31),
    t.LongType(): 2**63 - 1,
    t.FloatType(): 0.5,
    t.DoubleType(): -1e300,
    t.DecimalType(1, 0): Decimal(-9),
    t.DecimalType(9, 2): Decimal("-9999999.99"),
    t.DecimalType(10, 2): Decimal("99999999.99"),
    t.DecimalType(18, 18): Decimal("-0.999999999999999999"),
    t.DecimalType(19, 0): Decimal(-(10**19 - 1)),
    t.DecimalType(38, 10): Decimal("9999999999999999999999999999.9999999999"),
    t.DateType(): dt.date(1, 1, 1),
    t.TimeType(): dt.time(23, 59, 59, 999_999),
    t.TimestampType(): dt.datetime(9999, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001 - a timestamp without a zone
    t.TimestamptzType(): dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC),
    t.StringType(): "é€",
    t.UUIDType(): UUID,
    t.FixedType(1): b"\0",
    t.FixedType(5): b"abcde",
    t.FixedType(16): bytes(range(16)),
    t.BinaryType(): b"",
}
"""One value of each Iceberg type of version 2."""


def _list(kind: t.IcebergType) -> t.IcebergType:
    return t.ListType(-1, kind, element_required=False)


def _struct(kind: t.IcebergType) -> t.IcebergType:
    return t.StructType(t.NestedField(-1, "f", kind), t.NestedField(-2, "g", t.LongType()))


def _map(key: t.IcebergType, value: t.IcebergType) -> t.IcebergType:
    return t.MapType(-1, key, -2, value, value_required=False)


NESTINGS: Mapping[str, tuple[Callable[[Any], t.IcebergType], Callable[[Any], Any]]] = {
    "plain": (lambda kind: kind, lambda value: value),
    "list": (_list, lambda value: [value, None, value]),
    "struct": (_struct, lambda value: {"f": value, "g": 1}),
    "key": (lambda kind: _map(kind, t.LongType()), lambda value: [(value, 1)]),
    "value": (lambda kind: _map(t.LongType(), kind), lambda value: [(1, value), (2, None)]),
    "deep": (
        lambda kind: _list(_struct(_map(t.StringType(), _list(kind)))),
        lambda value: [{"f": [("k", [value, None])], "g": 2}, None],
    ),
}


def table_of(tmp_path: Path, *fields: t.NestedField, **properties: Any) -> IcebergConnector:
    store = IcebergConnector(tmp_path)
    store.catalog.create_table(("default", "t"), Schema(*fields), **properties)
    return store


@pytest.mark.parametrize("nesting", NESTINGS)
def test_every_type_is_read_back_by_every_reader_at_every_depth(
    tmp_path: Path, nesting: str
) -> None:
    kind_of, value_of = NESTINGS[nesting]
    fields = [t.NestedField(i, f"c{i}", kind_of(kind)) for i, kind in enumerate(VALUES, 1)]
    with closing(table_of(tmp_path, *fields)) as store:
        names = [field.name for field in fields]
        written = {
            name: [value_of(str(v) if v is UUID else v), None]
            for name, v in zip(names, VALUES.values(), strict=True)
        }
        expected = {
            name: value_of(value) for name, value in zip(names, VALUES.values(), strict=True)
        }
        insert(store, written)
        assert Statement(store).rows() == [
            {name: values[at] for name, values in written.items()} for at in range(2)
        ]
        first, second = table(store).scan().to_arrow().to_pylist()
        # pyiceberg itself reads a NULL as an empty list if it contains rows.
        assert (first, set(map(str, second.values())) - {"[]"}) == (
            expected,
            set() if nesting == "deep" else {"None"},
        )
        (split,) = Statement(store).splits()
        path = split.path.removeprefix("file://")
        found = duckdb.sql(f"FROM read_parquet('{path}')").fetchall()
        assert (len(found), set(found[1])) == (2, {None})
        if nesting == "plain":
            plain = dict(zip(names, found[0], strict=True))
            assert {
                name: value.astimezone(dt.UTC) if name == "c15" else value
                for name, value in plain.items()
            } == expected
        # The next statement reads and deletes beside the existing rows.
        insert(store, {name: values[:1] for name, values in written.items()})
        assert len(table(store).scan().to_arrow()) == 3


def test_many_rows_of_every_type_are_written_required_and_sorted_or_not(tmp_path: Path) -> None:
    count = 4_100
    optional = [t.NestedField(i, f"c{i}", kind) for i, kind in enumerate(VALUES, 1)]
    required = [
        t.NestedField(100 + i, f"r{i}", kind, required=True) for i, kind in enumerate(VALUES, 1)
    ]
    for at, order in enumerate(
        (
            UNSORTED_SORT_ORDER,
            SortOrder(SortField(17, IdentityTransform()), SortField(19, IdentityTransform())),
        )
    ):
        with closing(table_of(tmp_path / str(at), *optional, *required, sort_order=order)) as store:
            values = [str(value) if value is UUID else value for value in VALUES.values()]
            page = {f"c{i}": [value, None] * (count // 2) for i, value in enumerate(values, 1)}
            insert(
                store, {**page, **{f"r{i}": [value] * count for i, value in enumerate(values, 1)}}
            )
            found = table(store).scan().to_arrow()
            assert (len(found), found.column("c17").null_count, found.column("r19").null_count) == (
                count,
                count // 2,
                0,
            )


def test_files_of_deletes_are_those_of_the_specification(tmp_path: Path) -> None:
    with closing(make_table(tmp_path)) as store:
        insert(store, rows(1, 2))
        delete(store, 1)
        (written,) = tmp_path.glob("default/t-*/data/*-deletes.parquet")
        schema = pq.read_metadata(written).schema
        assert [schema.column(i).physical_type for i in range(2)] == ["BYTE_ARRAY", "INT64"]
        assert by_pyiceberg(store) == [(2, "a", "x")]


@pytest.mark.parametrize("nesting", NESTINGS)
def test_bytes_of_another_length_than_fixed_are_refused_with_the_column(
    tmp_path: Path, nesting: str
) -> None:
    kind_of, value_of = NESTINGS[nesting]
    with closing(table_of(tmp_path, t.NestedField(1, "c", kind_of(t.FixedType(4))))) as store:
        insert(store, {"c": [value_of(b"good")]})
        for value in (b"", b"abc", b"abcde"):
            with pytest.raises(
                ConnectorError,
                match=r"CONSTRAINT_VIOLATION: Column 'c[.a-z]*' is of type fixed\(4\)",
            ) as caught:
                insert(store, {"c": [value_of(b"fine"), value_of(value)]})
            assert f"X'{value.hex().upper()}' has {len(value)} bytes" in caught.value.message
        assert len(table(store).scan().to_arrow()) == 1


SCHEMA = Schema(
    t.NestedField(1, "xs", t.ListType(2, t.FixedType(3), element_required=False)),
    t.NestedField(3, "n", t.DecimalType(9, 0)),
)


@pytest.mark.parametrize(
    ("column", "field", "message"),
    [
        (
            pa.array([[b"abc"]]),
            "xs",
            r"Column 'xs[.]list[.]element' of file 'f' was written as BYTE_ARRAY, .* FIXED_LEN_BYTE_ARRAY\(3\)",
        ),
        (
            pa.array([[b"abcd"]], pa.list_(pa.binary(4))),
            "xs",
            r"written as FIXED_LEN_BYTE_ARRAY\(4\), but Iceberg has .*\(3\) for it",
        ),
        (
            pa.array([Decimal(1)], pa.decimal128(9, 0)),
            "n",
            r"Column 'n' .* FIXED_LEN_BYTE_ARRAY\(4\), but Iceberg has INT32 for it",
        ),
        (
            pa.array([1], pa.int64()),
            "m",
            r"Column 'm' of file 'f' was written as INT64, but Iceberg has no column for it",
        ),
    ],
)
def test_a_file_of_another_physical_type_is_not_committed(
    column: pa.Array, field: str, message: str
) -> None:
    from pyiceberg.io.pyarrow import parquet_path_to_id_mapping

    sink = pa.BufferOutputStream()
    schema = pa.schema(
        [
            pa.field(
                field,
                column.type
                if field != "xs"
                else pa.list_(pa.field("element", column.type.value_type)),
            )
        ]
    )
    pq.write_table(pa.Table.from_arrays([column.cast(schema.field(0).type)], schema=schema), sink)
    footer = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    with pytest.raises(ConnectorError, match=message):
        require_physical_types(footer, SCHEMA, parquet_path_to_id_mapping(SCHEMA), "f")


def test_a_writer_with_a_wrong_physical_type_leaves_the_table_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(make_table(tmp_path)) as store:
        insert(store, rows(1))
        true = fragments.footer_of

        def other(written: Any) -> Any:
            sink = pa.BufferOutputStream()
            schema = pa.schema([("id", pa.int32()), ("v", pa.string()), ("p", pa.string())])
            pq.write_table(schema.empty_table(), sink)
            return (
                pq.read_metadata(pa.BufferReader(sink.getvalue()))
                if json.loads(json.dumps(written))
                else true(written)
            )

        monkeypatch.setattr(fragments, "footer_of", other)
        with pytest.raises(
            ConnectorError, match=r"ICEBERG_WRITER_DATA_ERROR: Column 'id' .* was written as INT32"
        ):
            insert(store, rows(2))
        assert by_pyiceberg(store) == [(1, "a", "x")]


# -- required fields

INNER = t.StructType(
    t.NestedField(11, "n", t.LongType(), required=True),
    t.NestedField(12, "s", t.StringType(), required=True),
    t.NestedField(13, "u", t.UUIDType(), required=True),
    t.NestedField(14, "x", t.FixedType(2), required=True),
    t.NestedField(15, "d", t.DecimalType(20, 2), required=True),
    t.NestedField(16, "at", t.TimestamptzType(), required=True),
    t.NestedField(17, "ok", t.BooleanType(), required=True),
    t.NestedField(18, "b", t.BinaryType(), required=True),
    t.NestedField(19, "f", t.DoubleType(), required=True),
    t.NestedField(20, "o", t.LongType()),
)
WHOLE = {
    "n": 1, "s": "a", "u": str(UUID), "x": b"ab", "d": Decimal("1.50"), "at": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    "ok": True, "b": b"", "f": 1.5, "o": None,
}  # fmt: skip
SHOWN = {**WHOLE, "u": UUID}
OUTER = t.StructType(
    t.NestedField(21, "inner", INNER, required=True),
    t.NestedField(22, "xs", t.ListType(23, INNER, element_required=True), required=True),
    t.NestedField(
        24, "m", t.MapType(25, t.StringType(), 26, INNER, value_required=True), required=True
    ),
)
"""Rows within rows, like records of Avro, messages of Protobuf and envelopes of Debezium."""


def full(part: Any) -> dict[str, Any]:
    return {"inner": part, "xs": [part], "m": [("k", part)]}


@pytest.fixture
def required(tmp_path: Path) -> Any:
    fields = (
        t.NestedField(1, "id", t.LongType(), required=True),
        t.NestedField(2, "s", OUTER),
        t.NestedField(3, "many", t.ListType(4, t.LongType(), element_required=True)),
        t.NestedField(
            5, "named", t.MapType(6, t.StringType(), 7, t.LongType(), value_required=True)
        ),
    )
    with closing(table_of(tmp_path, *fields)) as store:
        yield store


def test_an_optional_row_of_required_fields_may_be_null(
    required: IcebergConnector, capfd: pytest.CaptureFixture[str]
) -> None:
    page = {
        "id": [1, 2, 3],
        "s": [full(WHOLE), None, full(WHOLE)],
        "many": [[1], None, []],
        "named": [[("a", 1)], None, []],
    }
    insert(required, page)
    statement = Statement(required)
    statement.begin_merge()
    ids = statement.ids()
    statement.stage(
        [
            (2, ids[1], 1, None, None, None),
            (1, None, 4, None, [2], []),
            (1, None, 5, full(WHOLE), None, None),
        ]
    )
    statement.finish()
    statement.commit()
    expected = [
        (2, None, None, None),
        (3, full(SHOWN), [], []),
        (4, None, [2], []),
        (5, full(SHOWN), None, None),
    ]
    assert by_pyiceberg(required) == expected
    assert [
        tuple(row.values()) for row in sorted(Statement(required).rows(), key=lambda row: row["id"])
    ] == [
        (number, None if s is None else full(WHOLE), many, named)
        for number, s, many, named in expected
    ]
    paths = [split.path.removeprefix("file://") for split in Statement(required).splits()]
    assert duckdb.sql(
        f"SELECT count(*), count(s), count(s.inner), count(s.inner.n) FROM read_parquet({paths})"
    ).fetchall() == [(5, 3, 3, 3)]
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"id": None}, "column: id"),
        ({"s": {**full(WHOLE), "inner": None}}, "field: s.inner"),
        ({"s": {**full(WHOLE), "xs": None}}, "field: s.xs"),
        ({"s": {**full(WHOLE), "m": None}}, "field: s.m"),
        ({"s": {**full(WHOLE), "xs": [WHOLE, None]}}, "field: s.xs.element"),
        ({"s": {**full(WHOLE), "m": [("k", None)]}}, "field: s.m.value"),
        *(
            ({"s": full({**WHOLE, name: None})}, f"field: s.inner.{name}")
            for name in WHOLE
            if name != "o"
        ),
        ({"s": {**full(WHOLE), "xs": [{**WHOLE, "u": None}]}}, "field: s.xs.element.u"),
        ({"s": {**full(WHOLE), "m": [("k", {**WHOLE, "b": None})]}}, "field: s.m.value.b"),
        ({"many": [1, None]}, "field: many.element"),
        ({"named": [("a", None)]}, "field: named.value"),
    ],
)
def test_a_required_field_that_is_null_in_a_row_that_is_not_is_refused_with_its_path(
    required: IcebergConnector, capfd: pytest.CaptureFixture[str], values: dict[str, Any], path: str
) -> None:
    good = {"id": 1, "s": None, "many": None, "named": None}
    with pytest.raises(ConnectorError) as caught:
        insert(required, {name: [good[name], {**good, **values}[name]] for name in good})
    assert (caught.value.code, caught.value.message) == (
        "CONSTRAINT_VIOLATION",
        f"NULL value not allowed for NOT NULL {path}",
    )
    assert contents(required) == []
    assert capfd.readouterr().err == ""


def test_a_table_is_partitioned_by_a_required_field_of_a_row_that_may_be_null(
    tmp_path: Path,
) -> None:
    from pyiceberg.partitioning import PartitionField, PartitionSpec

    row = t.StructType(
        t.NestedField(2, "n", t.LongType(), required=True), t.NestedField(3, "v", t.StringType())
    )
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "n"))
    with closing(table_of(tmp_path, t.NestedField(1, "s", row), partition_spec=spec)) as store:
        insert(store, {"s": [{"n": 1, "v": "a"}, None, {"n": 0, "v": None}]})
        assert by_pyiceberg(store) == [(None,), ({"n": 0, "v": None},), ({"n": 1, "v": "a"},)]
        files = table(store).inspect.files().to_pylist()
        assert sorted((file["partition"]["n"] is None, file["partition"]["n"]) for file in files) == [
            (False, 0), (False, 1), (True, None),
        ]  # fmt: skip


@pytest.mark.parametrize("method", ["write_table", "close"])
def test_a_file_that_the_library_fails_to_write_is_dropped_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], method: str
) -> None:
    with closing(make_table(tmp_path)) as store:
        insert(store, rows(1))
        statement = Statement(store)
        handle = statement.metadata.begin_insert(statement.session, statement.handle, ())
        sink = store.get_page_sink_provider().create_page_sink(
            statement.transaction, statement.session, handle
        )
        sink.append_page(pa.RecordBatch.from_pydict(rows(2)))

        def fails(*_: Any, **__: Any) -> None:
            raise pa.ArrowInvalid("no")

        with monkeypatch.context() as patch:
            patch.setattr(pq.ParquetWriter, method, fails)
            with pytest.raises(pa.ArrowInvalid):
                sink.finish()
            sink.abort()
            del sink
            gc.collect()
        statement.rollback()
        assert len(list(tmp_path.glob("default/*/data/*.parquet"))) == 1
        assert by_pyiceberg(store) == [(1, "a", "x")]
        assert capfd.readouterr().err == ""
