"""Partition transforms return the values of Iceberg's specification, column by column."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.shared.murmur import murmur3
from rowmerge_nb.connectors.shared.transforms import Transform, parse_transforms
from rowmerge_nb.spi.handles import ConnectorSession, SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.types import parse_type

NOON = dt.datetime(2017, 11, 16, 22, 31, 8)  # noqa: DTZ001 - a timestamp without a zone is meant

# Appendix B of the specification: a value of each type, and its hash.
HASHES = [
    (pa.array([34], pa.int32()), 2017239379),
    (pa.array([34], pa.int64()), 2017239379),
    (pa.array([Decimal("14.20")], pa.decimal128(9, 2)), -500754589),
    (pa.array([dt.date(2017, 11, 16)], pa.date32()), -653330422),
    (pa.array([dt.time(22, 31, 8)], pa.time64("us")), -662762989),
    (pa.array([NOON], pa.timestamp("us")), -2047944441),
    (pa.array([NOON.replace(microsecond=1)], pa.timestamp("us")), -1207196810),
    (pa.array([NOON], pa.timestamp("us", "UTC")), -2047944441),
    (pa.array(["iceberg"]), 1210000089),
    (pa.array([bytes([0, 1, 2, 3])]), -188683207),
]
COLUMNS = {
    name: (name, parse_type(kind))
    for name, kind in {
        "id": "bigint",
        "Sku": "varchar",
        "day": "date",
        "at": "timestamp(6)",
        "price": "decimal(8,2)",
        "ratio": "double",
        "tags": "array(integer)",
        "ref": "uuid",
    }.items()
} | {"sku": ("Sku", parse_type("varchar"))}


@pytest.mark.parametrize(
    ("values", "expected"), HASHES, ids=lambda value: str(getattr(value, "type", value))
)
def test_the_hash_is_that_of_the_specification(values, expected):
    assert murmur3(values).tolist() == [expected]


@pytest.mark.parametrize(
    ("values", "expected"), HASHES, ids=lambda value: str(getattr(value, "type", value))
)
def test_a_value_hashes_alike_at_every_position_and_null_has_no_bucket(values, expected):
    column = pa.concat_arrays([pa.nulls(2, values.type), values, pa.nulls(1, values.type)])
    assert murmur3(column)[2] == expected
    bucket = (expected & 0x7FFFFFFF) % 16
    assert Transform("bucket", "c", 16).apply(column).to_pylist() == [None, None, bucket, None]
    assert Transform("bucket", "c", 16).apply(column.slice(1, 2)).to_pylist() == [None, bucket]


def test_a_uuid_is_hashed_as_its_sixteen_bytes():
    column = pa.array(
        [None, "f79c3e09-677c-4bbd-a479-3f349cb785e7", "F79C3E09-677C-4BBD-A479-3F349CB785E7"]
    )
    assert Transform("bucket", "ref", 1 << 20, "uuid").apply(column).to_pylist() == [
        None,
        *[1488055340 % (1 << 20)] * 2,
    ]


def test_texts_of_every_length_hash_as_their_bytes_do():
    texts = ["", "a", "ab", "abc", "abcd", "abcde", "žluť", "x" * 100]
    together = murmur3(pa.array(texts)).tolist()
    assert together == [murmur3(pa.array([text.encode()]))[0] for text in texts]
    assert len(set(together)) == len(texts)


@pytest.mark.parametrize(
    ("transform", "values", "expected"),
    [
        (Transform("truncate", "c", 10), pa.array([1, -1, 10, None]), [0, -10, 10, None]),
        (Transform("truncate", "c", 10), pa.array([-7], pa.int32()), [-10]),
        (
            Transform("truncate", "c", 50),
            pa.array([Decimal("10.65"), Decimal("-0.05"), None], pa.decimal128(4, 2)),
            [Decimal("10.50"), Decimal("-0.50"), None],
        ),
        (Transform("truncate", "c", 3), pa.array(["žluťoučký", "a", None]), ["žlu", "a", None]),
        (Transform("truncate", "c", 2), pa.array([b"\x00\xff\x01"]), [b"\x00\xff"]),
        (
            Transform("year", "c"),
            pa.array([dt.date(1969, 12, 31), dt.date(2024, 3, 1), None]),
            [-1, 54, None],
        ),
        (
            Transform("month", "c"),
            pa.array([dt.date(1969, 12, 31), dt.date(2024, 3, 1)]),
            [-1, 650],
        ),
        (Transform("day", "c"), pa.array([dt.date(1969, 12, 31)]), [-1]),
        (
            Transform("day", "c"),
            pa.array([dt.datetime(1969, 12, 31, 23), NOON], pa.timestamp("us")),  # noqa: DTZ001
            [-1, 17486],
        ),
        (
            Transform("hour", "c"),
            pa.array([dt.datetime(1969, 12, 31, 23), NOON], pa.timestamp("us", "UTC")),  # noqa: DTZ001
            [-1, 419686],
        ),
        (Transform("void", "c"), pa.array(["a"]), [None]),
        (Transform("identity", "c"), pa.array(["a", None]), ["a", None]),
    ],
    ids=str,
)
def test_a_transform_returns_the_specifications_value(transform, values, expected):
    assert transform.apply(values).to_pylist() == expected


def test_transforms_are_parsed_without_regard_to_case_and_blanks():
    written = [
        "BUCKET( sku ,4 )",
        "Month(day)",
        "SKU",
        'truncate("Sku", 2)',
        "hour(at)",
        "void(tags)",
        "bucket(ref, 2)",
    ]
    read = [str(transform) for transform in parse_transforms(written, COLUMNS)]
    assert read == [
        "bucket(Sku, 4)",
        "month(day)",
        "Sku",
        "truncate(Sku, 2)",
        "hour(at)",
        "void(tags)",
        "bucket(ref, 2)",
    ]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (["week(day)"], "'week(day)' is not a partition transform"),
        (["bucket(id)"], "'bucket(id)' lacks its number"),
        (["month(day, 3)"], "'month(day, 3)' takes no number"),
        (["bucket(id, 0)"], "0 in 'bucket(id, 0)' is out of range"),
        (["bucket(nope, 3)"], "names column 'nope', which the table does not have"),
        (["nope"], "names column 'nope', which the table does not have"),
        (["hour(day)"], "hour(day) cannot be computed for a column of type date"),
        (["bucket(ratio, 3)"], "bucket(ratio, 3) cannot be computed for a column of type double"),
        (
            ["tags"],
            "column 'tags' is of type array(integer), which cannot determine where rows are stored",
        ),
        (["id", "ID"], "id is named twice"),
        (["bucket(id, 4"], "'bucket(id, 4' is not a partition transform"),
    ],
    ids=str,
)
def test_invalid_transforms_are_refused_with_the_reason(written, message):
    with pytest.raises(AnalysisError) as caught:
        parse_transforms(written, COLUMNS)
    assert caught.value.code == "INVALID_TABLE_PROPERTY"
    assert message in caught.value.message
    assert caught.value.hint


def _connector(*partitioned_by, **properties):
    connector = MemoryConnector()
    name = SchemaTableName("default", "t")
    columns = (
        ColumnMetadata("id", parse_type("integer")),
        ColumnMetadata("day", parse_type("date")),
    )
    connector.put(
        ConnectorTableMetadata(name, columns, {"partitioned_by": partitioned_by, **properties}),
        pa.table({"id": [1, 2, None], "day": [dt.date(2024, 1, 5), None, dt.date(2024, 1, 9)]}),
    )
    return connector, name


def test_rows_of_a_partition_have_one_bucket_and_partitions_are_listed():
    connector, name = _connector("month(day)")
    transaction, session = connector.begin_transaction(), ConnectorSession("q")
    metadata = connector.get_metadata(transaction)
    layout = metadata.get_insert_layout(session, metadata.get_table_handle(session, name))
    assert layout.partition_columns == ("day",)
    types = (parse_type("date"),)
    function = connector.get_node_partitioning_provider().get_bucket_function(
        transaction, session, layout.partitioning, types
    )
    places = function.get_buckets(connector.read(name).select(["day"]).to_batches()[0]).to_pylist()
    assert places[0] == places[2] != places[1]
    assert all(0 <= place < function.bucket_count for place in places)
    assert connector.partitions(name).to_pylist() == [
        {"month(day)": 648, "row_count": 2},
        {"month(day)": None, "row_count": 1},
    ]


def test_the_layout_has_the_columns_that_transforms_read_and_plain_columns_need_no_function_of_the_connectors():
    for partitioned_by, columns, own in (
        (["bucket(id, 4)", "day"], ("id", "day"), True),
        (["day"], ("day",), False),
    ):
        connector, name = _connector(*partitioned_by)
        session = ConnectorSession("q")
        metadata = connector.get_metadata(connector.begin_transaction())
        layout = metadata.get_insert_layout(session, metadata.get_table_handle(session, name))
        assert (layout.partition_columns, layout.partitioning is not None) == (columns, own)


def test_a_table_without_partitions_is_reported_as_such():
    connector, name = _connector()
    with pytest.raises(ConnectorError, match="has no partitions"):
        connector.partitions(name)
