"""The memory connector through its contract, without Spark."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.reading import make_splits, read_split
from rowmerge_nb.connectors.memory.row_changes import apply_changes, encode
from rowmerge_nb.connectors.memory.table_properties import check_content
from rowmerge_nb.connectors.memory.writing import MemoryMergeSink
from rowmerge_nb.spi import (
    ColumnHandle,
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    Constraint,
    RowChangeParadigm,
    SchemaTableName,
    parse_type,
)

SESSION = ConnectorSession("q")
NAME = SchemaTableName("default", "t")


def metadata(**properties: Any) -> ConnectorTableMetadata:
    columns = (
        ColumnMetadata("id", parse_type("bigint")),
        ColumnMetadata("Name", parse_type("varchar")),
    )
    return ConnectorTableMetadata(NAME, columns, properties)


def connector(rows: int = 4, **properties: Any) -> MemoryConnector:
    made = MemoryConnector()
    made.put(
        metadata(**properties),
        pa.table({"id": list(range(rows)), "Name": [f"n{i}" for i in range(rows)]}),
    )
    return made


def sink_page(
    rows: list[tuple[int, str | None, int, Any]], row_id: pa.DataType | None = None
) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([r[0] for r in rows], pa.int64()),
            pa.array([r[1] for r in rows], pa.string()),
            pa.array([r[2] for r in rows], pa.int8()),
            pa.array([r[3] for r in rows], row_id or pa.int64()),
        ],
        names=["id", "Name", "operation", "row_id"],
    )


def merge(store: MemoryConnector, pages: list[pa.RecordBatch]) -> None:
    transaction = store.begin_transaction()
    meta = store.get_metadata(transaction)
    handle = meta.get_table_handle(SESSION, NAME)
    assert handle is not None
    merge_handle = meta.begin_merge(SESSION, handle)
    sink = store.get_page_sink_provider().create_merge_sink(
        transaction, SESSION, pickle.loads(pickle.dumps(merge_handle))
    )
    for page in pages:
        sink.store_merged_rows(page)
    meta.finish_merge(SESSION, merge_handle, sink.finish())
    assert store.read(NAME).num_rows == 4, "nothing is visible before the commit"
    store.commit(transaction)


def rows_of(store: MemoryConnector) -> list[tuple[int, str]]:
    return sorted(tuple(row.values()) for row in store.read(NAME).to_pylist())


def test_inserts_deletes_and_updates_become_visible_with_the_commit() -> None:
    store = connector()
    merge(store, [sink_page([(0, None, 2, 1), (9, "new", 1, None), (2, "changed", 3, 2)])])
    assert rows_of(store) == [(0, "n0"), (2, "changed"), (3, "n3"), (9, "new")]
    assert store.versions(NAME) == (1, 2)
    assert store.read(NAME, 1).num_rows == 4


def test_the_halves_of_an_update_in_the_current_era_are_accepted_too() -> None:
    store = connector()
    page = sink_page([(0, None, 5, 1), (1, "moved", 4, None)])
    page = page.add_column(3, "case_number", pa.array([0, 0], pa.int32()))
    merge(store, [page])
    assert rows_of(store) == [(0, "n0"), (1, "moved"), (2, "n2"), (3, "n3")]


def test_a_rolled_back_transaction_leaves_the_table_unchanged() -> None:
    store = connector()
    transaction = store.begin_transaction()
    meta = store.get_metadata(transaction)
    handle = meta.get_table_handle(SESSION, NAME)
    assert handle is not None
    meta.finish_merge(
        SESSION,
        meta.begin_merge(SESSION, handle),
        list(encode("delete", [pa.RecordBatch.from_pydict({"position": [0]})])),
    )
    store.rollback(transaction)
    assert store.versions(NAME) == (1,)
    assert store.read(NAME).num_rows == 4


def test_the_second_of_two_concurrent_merges_gets_a_conflict() -> None:
    store = connector()
    open_ones = [store.begin_transaction() for _ in range(2)]
    for transaction in open_ones:
        meta = store.get_metadata(transaction)
        handle = meta.get_table_handle(SESSION, NAME)
        assert handle is not None
        fragments = list(encode("insert", [pa.RecordBatch.from_pydict({"id": [7], "Name": ["x"]})]))
        meta.finish_merge(SESSION, meta.begin_merge(SESSION, handle), fragments)
    store.commit(open_ones[0])
    with pytest.raises(RowMergeError) as caught:
        store.commit(open_ones[1])
    assert caught.value.code == "TRANSACTION_CONFLICT"
    assert store.read(NAME).num_rows == 5


def test_the_table_is_the_same_for_another_order_of_rows_and_other_page_cuts() -> None:
    rows = [(0, None, 2, 0), (1, None, 2, 1), (1, "b", 1, None), (5, "e", 1, None), (2, "z", 3, 2)]
    contents = []
    for seed in range(10):
        shuffled = random.Random(seed).sample(rows, len(rows))
        cut = seed % len(rows)
        store = connector()
        merge(store, [sink_page(part) for part in (shuffled[:cut], shuffled[cut:]) if part])
        contents.append(rows_of(store))
    assert all(content == contents[0] for content in contents)


@given(st.sets(st.integers(0, 19)), st.sets(st.integers(0, 19)), st.lists(st.integers()))
def test_changes_agree_with_a_list_of_rows(
    deleted: set[int], updated: set[int], added: list[int]
) -> None:
    updated -= deleted
    added = [number % 2**62 for number in added]
    data = pa.table({"v": list(range(20))})
    fragments = [
        *encode(
            "delete",
            [pa.RecordBatch.from_pydict({"position": pa.array(sorted(deleted), pa.int64())})],
        ),
        *encode(
            "update",
            [
                pa.RecordBatch.from_pydict(
                    {
                        "v": [n + 100 for n in updated],
                        "position": pa.array(list(updated), pa.int64()),
                    }
                )
            ],
        ),
        *encode("insert", [pa.RecordBatch.from_pydict({"v": pa.array(added, pa.int64())})]),
    ]
    expected = [n + 100 if n in updated else n for n in range(20) if n not in deleted] + added
    fragments = [f for f in fragments if b'"rows": 0' not in f.split(b"\n", 1)[0]]
    assert (
        apply_changes(data.cast(pa.schema([("v", pa.int64())])), fragments).column("v").to_pylist()
        == expected
    )


def test_large_tables_are_read_from_files_and_small_ones_travel_with_the_task(
    tmp_path: Any,
) -> None:
    data = pa.table({"v": list(range(1_000_000))})
    splits = make_splits(data, lambda: tmp_path / "t.arrow")
    assert len(splits) > 1
    positions = [
        (position, page.num_rows) for split in splits for position, page in read_split(split)
    ]
    assert positions[0] == (0, 65_536)
    assert sum(count for _, count in positions) == 1_000_000
    assert [position for position, _ in positions] == sorted(
        {position for position, _ in positions}
    )
    assert make_splits(pa.table({"v": [1]}))[0].data is not None


def test_the_layout_follows_the_tables_partitioning() -> None:
    for properties, columns, bucketed in (
        ({}, None, False),
        ({"partitioned_by": ("NAME",)}, ("Name",), False),
        (
            {"partitioned_by": ("name",), "bucketed_by": ("id",), "bucket_count": 4},
            ("id", "Name"),
            True,
        ),
    ):
        store = connector(**properties)
        meta = store.get_metadata(store.begin_transaction())
        handle = meta.get_table_handle(SESSION, NAME)
        assert handle is not None
        insert = meta.get_insert_layout(SESSION, handle)
        assert (insert.partition_columns if insert else None) == columns
        assert (meta.get_update_layout(SESSION, handle) is not None) == bucketed


def test_the_row_id_of_a_bucketed_table_leads_to_the_bucket_of_its_row() -> None:
    store = connector(rows=100, bucketed_by=("id",), bucket_count=8)
    transaction = store.begin_transaction()
    meta = store.get_metadata(transaction)
    handle = meta.get_table_handle(SESSION, NAME)
    assert handle is not None
    columns = [
        ColumnHandle("id", parse_type("bigint")),
        meta.get_merge_row_id_column_handle(SESSION, handle),
    ]
    (split,) = store.get_split_manager().get_splits(transaction, SESSION, handle, Constraint())
    source = store.get_page_source_provider().create_page_source(
        transaction, SESSION, split, handle, columns
    )
    page = source.get_next_page()
    assert page is not None
    partitioning = store.get_node_partitioning_provider()
    insert, update = (
        meta.get_insert_layout(SESSION, handle),
        meta.get_update_layout(SESSION, handle),
    )
    assert insert is not None
    assert insert.partitioning is not None
    assert update is not None
    assert update.partitioning is not None
    by_row = partitioning.get_bucket_function(transaction, SESSION, insert.partitioning, ())
    by_id = partitioning.get_bucket_function(transaction, SESSION, update.partitioning, ())
    buckets = by_row.get_buckets(page.select([0])).to_pylist()
    assert buckets == by_id.get_buckets(page.select([1])).to_pylist()
    assert set(buckets) == set(range(8))


@pytest.mark.parametrize(
    ("properties", "part"),
    [
        ({"paradigm": "COPY"}, "'COPY' is not a row change paradigm"),
        ({"partitioned_by": ("nope",)}, "names column 'nope'"),
        ({"bucketed_by": ("id",)}, "cannot be combined"),
        ({"bucket_count": 3}, "cannot be combined"),
        ({"bucketed_by": ("id",), "bucket_count": 0}, "cannot be combined"),
        ({"sorted_by": ("id",)}, "'sorted_by' does not exist"),
    ],
)
def test_wrong_table_properties_are_refused(properties: dict[str, Any], part: str) -> None:
    with pytest.raises(RowMergeError, match=part) as caught:
        connector(**properties)
    assert caught.value.code == "INVALID_TABLE_PROPERTY"
    assert caught.value.hint


def test_a_primary_key_refuses_nulls_and_duplicates_and_leaves_the_table_unchanged() -> None:
    store = connector(primary_key=("id",))
    with pytest.raises(RowMergeError, match="id = 3") as caught:
        merge(store, [sink_page([(3, "again", 1, None)])])
    assert caught.value.code == "CONSTRAINT_VIOLATION"
    assert store.read(NAME).num_rows == 4


@pytest.mark.parametrize(
    ("kind", "keys", "told"),
    [
        ("double", pa.array([0.0, -0.0]), "k = 0.0"),
        ("real", pa.array([-0.0, 0.0], pa.float32()), "k = 0.0"),
        ("date", pa.array([2932897, 2932897], pa.int32()).cast(pa.date32()), "k = 10000-01-01"),
        ("varchar", pa.array(["it's", "it's"]), "k = 'it''s'"),
    ],
)
def test_a_primary_key_has_one_of_what_is_equal_in_sql(
    kind: str, keys: pa.Array, told: str
) -> None:
    table = ConnectorTableMetadata(
        NAME, (ColumnMetadata("k", parse_type(kind)),), {"primary_key": ("k",)}
    )
    check_content(table, pa.table({"k": keys[:1]}))
    with pytest.raises(RowMergeError) as caught:
        check_content(table, pa.table({"k": keys}))
    assert caught.value.code == "CONSTRAINT_VIOLATION"
    assert told in caught.value.message


def test_the_paradigm_is_the_tables_unless_the_statement_asks_for_another() -> None:
    store = connector(paradigm="change_only_updated_columns")
    meta = store.get_metadata(store.begin_transaction())
    handle = meta.get_table_handle(SESSION, NAME)
    assert handle is not None
    assert (
        meta.get_row_change_paradigm(SESSION, handle)
        is RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS
    )
    asked = ConnectorSession("q", properties={"row_change_paradigm": "DELETE_ROW_AND_INSERT_ROW"})
    assert (
        meta.get_row_change_paradigm(asked, handle) is RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW
    )


def test_an_aborted_sink_returns_nothing() -> None:
    sink = MemoryMergeSink(2)
    sink.store_merged_rows(sink_page([(1, "a", 1, None), (0, None, 2, 1), (2, "b", 3, 2)]))
    sink.abort()
    assert sink.finish() == []
