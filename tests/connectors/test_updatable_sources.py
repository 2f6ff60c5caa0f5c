"""Updatable page sources of all stores, through the contract and without Spark: stored rows, for any order of channels."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from proof.engines.stores import insert_page, read_rows
from rowmerge_nb import HiveAcidConnector, SqliteConnector
from rowmerge_nb.base.errors import ConnectorError, ExecutionError
from rowmerge_nb.connectors.jdbc.postgresql.postgres_connector import PostgresConnector
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    Constraint,
    SchemaTableName,
    UpdatablePageSource,
    parse_type,
)
from rowmerge_nb.spi.page_source import PagesSource

COLUMNS = {"id": "integer", "name": "varchar", "val": "double", "place": "varchar"}
ROWS = [
    (1, "a", 1.0, "n"),
    (2, "b", 2.0, "s"),
    (3, None, None, "n"),
    (4, "d", 4.0, "n"),
    (5, "e", 5.0, "s"),
]
NEW: dict[str, Callable[[int], Any]] = {
    "id": lambda i: i + 100,
    "name": lambda i: f"new{i}",
    "val": lambda i: i / 2,
}


def _page(rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
    arrays = [
        pa.array([row[i] for row in rows], parse_type(kind).arrow)
        for i, kind in enumerate(COLUMNS.values())
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))


class Store:
    """A table of five rows, in the splits of two inserts."""

    def __init__(self, connector: Any, schema: str, properties: dict[str, Any]) -> None:
        self.connector = connector
        self.name = SchemaTableName(schema, "t")
        key = properties.get("primary_key", ())
        columns = tuple(
            ColumnMetadata(name, parse_type(kind), name not in key)
            for name, kind in COLUMNS.items()
        )
        transaction = connector.begin_transaction()
        connector.get_metadata(transaction).create_table(
            self.session(), ConnectorTableMetadata(self.name, columns, properties)
        )
        connector.commit(transaction)
        insert_page(connector, self.name, _page(ROWS[:3]))
        insert_page(connector, self.name, _page(ROWS[3:]))

    def session(self, writer: int | None = None) -> ConnectorSession:
        return ConnectorSession("query", writer=writer)

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(
            row
            for row, count in read_rows(self.connector, self.name, list(COLUMNS))
            for _ in range(count)
        )

    def change(
        self,
        ids: set[int],
        updated: Sequence[str] | None,
        order: Sequence[int] = (),
        attempts: int = 1,
    ) -> int:
        """Delete or update rows like the engine; return the number of splits.

        Args:
            ids: which rows.
            updated: the columns to update, in table order; None to delete.
            order: the channels of the values and the row id in the page.
            attempts: the number of attempts per split; only the fragments of the last one count.
        """
        connector, session = self.connector, self.session()
        transaction = connector.begin_transaction()
        metadata = connector.get_metadata(transaction)
        table = metadata.get_table_handle(session, self.name)
        own = {column.name: column for column in metadata.get_column_handles(session, table)}
        more = [] if updated is None else [[own[name] for name in updated]]
        verb = "delete" if updated is None else "update"
        row_id = getattr(metadata, f"get_{verb}_row_id_column_handle")(session, table, *more)
        handle = getattr(metadata, f"begin_{verb}")(session, table, *more)
        provider = pickle.loads(pickle.dumps(connector.get_page_source_provider()))
        fragments: list[bytes] = []
        splits = connector.get_split_manager().get_splits(
            transaction, session, handle, Constraint()
        )
        for number, split in enumerate(splits):
            for attempt in range(attempts):
                task = pickle.loads(pickle.dumps((split, handle)))
                source = provider.create_page_source(
                    transaction, self.session(number), *task, [own["id"], row_id]
                )
                assert isinstance(source, UpdatablePageSource)
                while (page := source.get_next_page()) is not None:
                    self._give_back(source, page, ids, updated, order)
                given = source.finish()
                if attempt == attempts - 1:
                    fragments += given
                source.close()
        getattr(metadata, f"finish_{verb}")(session, handle, fragments)
        connector.commit(transaction)
        return len(splits)

    def _give_back(
        self,
        source: UpdatablePageSource,
        page: Any,
        ids: set[int],
        updated: Sequence[str] | None,
        order: Any,
    ) -> None:
        chosen = page.filter(pa.array([value in ids for value in page.column(0).to_pylist()]))
        if not chosen.num_rows:
            return
        row_ids = chosen.column(1)
        if updated is None:
            source.delete_rows(row_ids)
            return
        keys = chosen.column(0).to_pylist()
        kinds = [parse_type(COLUMNS[name]).arrow for name in updated]
        values = [
            pa.array([NEW[name](key) for key in keys], kind)
            for name, kind in zip(updated, kinds, strict=True)
        ]
        channels: list[Any] = [None] * len(order)
        for place, array in zip(order, [*values, row_ids], strict=True):
            channels[place] = array
        source.update_rows(
            pa.RecordBatch.from_arrays(channels, names=[f"c{i}" for i in range(len(order))]),
            list(order),
        )


STORES = (
    "memory",
    "memory bucketed",
    "hive",
    "hive partitioned",
    "hive bucketed",
    "sqlite",
    "postgresql",
)


@pytest.fixture(params=STORES)
def store(request: Any, tmp_path: Path) -> Iterator[Store]:
    kind, _, form = request.param.partition(" ")
    properties = {
        "bucketed": {"bucketed_by": ["place"], "bucket_count": 3},
        "partitioned": {"partitioned_by": ["place"]},
    }.get(form, {})
    if kind == "postgresql":
        made: Any = PostgresConnector(request.getfixturevalue("postgresql"))
        transaction = made.begin_transaction()
        metadata = made.get_metadata(transaction)
        if (
            old := metadata.get_table_handle(ConnectorSession("q"), SchemaTableName("public", "t"))
        ) is not None:
            metadata.drop_table(ConnectorSession("q"), old)
        made.commit(transaction)
    else:
        makers: dict[str, Callable[[], Any]] = {
            "memory": MemoryConnector,
            "hive": lambda: HiveAcidConnector(tmp_path / "w"),
            "sqlite": lambda: SqliteConnector(tmp_path / "x.db", create=True),
        }
        made = makers[kind]()
    schema = {"sqlite": "main", "postgresql": "public"}.get(kind, "default")
    if kind in {"sqlite", "postgresql"}:
        properties = {"primary_key": ["id"]}
    yield Store(made, schema, properties)
    made.close()


def test_rows_are_deleted_by_their_row_ids(store: Store) -> None:
    store.change({2, 3}, None)
    assert store.rows() == [ROWS[0], ROWS[3], ROWS[4]]


@pytest.mark.each_value
@pytest.mark.parametrize(
    "updated", [("name",), ("name", "val"), ("id", "name", "val")], ids="+".join
)
def test_values_arrive_in_their_columns_in_any_order_of_the_channels(
    store: Store, updated: tuple[str, ...]
) -> None:
    wanted = {row[0]: row for row in ROWS}
    for order in itertools.permutations(range(len(updated) + 1)):
        ids = {1, 4} & set(wanted)
        store.change(ids, updated, order)
        for key in ids:
            row = dict(zip(COLUMNS, wanted.pop(key), strict=True))
            new = tuple(NEW[name](key) if name in updated else value for name, value in row.items())
            wanted[new[0]] = new
        assert store.rows() == sorted(wanted.values())


def test_a_second_attempt_counts_once_and_the_first_not_at_all(store: Store) -> None:
    store.change({1, 2, 5}, ("val",), (1, 0), attempts=2)
    assert [row[2] for row in store.rows() if row[0] in {1, 2, 5}] == [0.5, 1.0, 2.5]
    store.change({1, 5}, None, attempts=2)
    assert [row[0] for row in store.rows()] == [2, 3, 4]


def test_nothing_changes_without_fragments(store: Store) -> None:
    assert store.change(set(), ("val",), (0, 1)) >= 1
    assert store.change(set(), None) >= 1
    assert store.rows() == ROWS


def test_an_aborted_source_leaves_nothing_behind(store: Store, tmp_path: Path) -> None:
    connector, session = store.connector, store.session()
    transaction = connector.begin_transaction()
    metadata = connector.get_metadata(transaction)
    table = metadata.get_table_handle(session, store.name)
    row_id = metadata.get_delete_row_id_column_handle(session, table)
    handle = metadata.begin_delete(session, table)
    split = connector.get_split_manager().get_splits(transaction, session, handle, Constraint())[0]
    source: Any = connector.get_page_source_provider().create_page_source(
        transaction, store.session(0), split, handle, [row_id]
    )
    source.delete_rows(source.get_next_page().column(0))
    source.finish()
    source.abort()
    source.close()
    connector.rollback(transaction)
    assert store.rows() == ROWS
    assert not [path for path in tmp_path.rglob("_tmp_*") if any(path.rglob("*"))]


def test_hives_row_id_for_update_carries_the_data_columns_that_are_not_updated(
    tmp_path: Path,
) -> None:
    store = Store(HiveAcidConnector(tmp_path), "default", {"partitioned_by": ["place"]})
    transaction = store.connector.begin_transaction()
    metadata, session = store.connector.get_metadata(transaction), store.session()
    table = metadata.get_table_handle(session, store.name)
    handles = {column.name: column for column in metadata.get_column_handles(session, table)}
    found = [
        str(
            metadata.get_update_row_id_column_handle(
                session, table, [handles[name] for name in names]
            ).type
        )
        for names in (("val",), ("id", "name", "val"))
    ]
    identity = '"originalTransaction" bigint, "bucket" integer, "rowId" bigint'
    assert found == [
        f'row({identity}, "row" row("id" integer, "name" varchar))',
        f"row({identity})",
    ]
    for names, kind in ((("place",), "partition"),):
        with pytest.raises(
            ConnectorError, match=f"Updating Hive table {kind} columns is not supported"
        ):
            metadata.begin_update(session, table, [handles[name] for name in names])
    store.connector.rollback(transaction)


def test_unique_values_that_move_between_rows_are_left_to_the_other_flow(tmp_path: Path) -> None:
    store = Store(SqliteConnector(tmp_path / "x.db", create=True), "main", {"primary_key": ["id"]})
    transaction = store.connector.begin_transaction()
    metadata, session = store.connector.get_metadata(transaction), store.session()
    table = metadata.get_table_handle(session, store.name)
    own = {column.name: column for column in metadata.get_column_handles(session, table)}
    row_id = metadata.get_update_row_id_column_handle(session, table, [own["id"]])
    handle = metadata.begin_update(session, table, [own["id"]])
    split = store.connector.get_split_manager().get_splits(
        transaction, session, handle, Constraint()
    )[0]
    source: Any = store.connector.get_page_source_provider().create_page_source(
        transaction, session, split, handle, [own["id"], row_id]
    )
    page = source.get_next_page()
    ids = pa.array(np.asarray(page.column(0)) + 1, pa.int32())
    source.update_rows(
        pa.RecordBatch.from_arrays([ids, page.column(1)], names=["id", "row_id"]), [0, 1]
    )
    fragments = source.finish()
    source.close()
    with pytest.raises(ExecutionError, match="UNIQUE constraint failed") as caught:
        metadata.finish_update(session, handle, fragments)
    assert "omit the option flow" in (caught.value.hint or "")
    store.connector.rollback(transaction)
    assert store.rows() == ROWS


def test_a_source_that_overrides_nothing_refuses_by_name() -> None:
    class Bare(UpdatablePageSource):
        def finish(self) -> list[bytes]:
            return []

    source = Bare(PagesSource([_page(ROWS)]))
    page = source.get_next_page()
    assert page is not None
    with pytest.raises(
        ConnectorError, match=r"does not support row-level delete \(Bare has no delete_rows\)"
    ):
        source.delete_rows(page.column(0))
    with pytest.raises(
        ConnectorError, match=r"does not support row update \(Bare has no update_rows\)"
    ):
        source.update_rows(page, [0, 1])
    source.abort()
    source.close()
