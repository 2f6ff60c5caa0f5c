"""Helpers of the tests of the Hive connector: statements through the contract, without an engine."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import orc

from rowmerge_nb import HiveAcidConnector
from rowmerge_nb.connectors.hive_acid.hive_handles import ROW_ID_TYPE, HiveTableHandle
from rowmerge_nb.connectors.hive_acid.hive_metadata import HiveAcidMetadata
from rowmerge_nb.connectors.hive_acid.reader import read_split, splits_of
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    SchemaTableName,
    parse_type,
)

NAME = SchemaTableName("default", "t")
COLUMNS = (("id", "bigint"), ("v", "varchar"), ("p", "varchar"))
_queries = itertools.count(1)


class Statement:
    """One statement: a transaction, its table, and a session."""

    def __init__(self, store: HiveAcidConnector, name: SchemaTableName = NAME) -> None:
        self.store = store
        self.session = ConnectorSession(f"q{next(_queries)}")
        self.transaction = store.begin_transaction()
        self.metadata: HiveAcidMetadata = store.get_metadata(self.transaction)
        self.handle: HiveTableHandle = self.metadata.get_table_handle(self.session, name)  # type: ignore[assignment]

    def rows(self, *, ids: bool = False) -> list[dict[str, Any]]:
        columns = list(self.metadata.get_column_handles(self.session, self.handle))
        if ids:
            columns.append(self.metadata.get_merge_row_id_column_handle(self.session, self.handle))
        splits = splits_of(self.handle)
        return [
            row
            for split in splits
            for page in read_split(split, self.handle.table, columns)
            for row in page.to_pylist()
        ]

    def stage(self, changes: Sequence[Sequence[tuple[Any, ...]]]) -> None:
        """Begin a merge and pass every list of changes to its own sink; a change is an operation, the row id and the values."""
        self.merge_handle = self.metadata.begin_merge(self.session, self.handle)
        self.fragments: list[bytes] = []
        for writer, rows in enumerate(changes):
            self.fragments += self.sink(writer, rows).finish()

    def sink(self, writer: int, rows: Sequence[tuple[Any, ...]]) -> Any:
        session = ConnectorSession(self.session.query_id, writer=writer)
        handle = pickle.loads(pickle.dumps(self.merge_handle))
        sink = self.store.get_page_sink_provider().create_merge_sink(
            self.transaction, session, handle
        )
        if rows:
            sink.store_merged_rows(self.page(rows))
        return sink

    def page(self, rows: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        columns = self.handle.table.columns
        arrays = [
            pa.array([row[2 + i] for row in rows], column.type.arrow)
            for i, column in enumerate(columns)
        ]
        arrays += [
            pa.array([row[0] for row in rows], pa.int8()),
            pa.array([row[1] for row in rows], ROW_ID_TYPE.arrow),
        ]
        return pa.RecordBatch.from_arrays(
            arrays, names=[*(c.name for c in columns), "operation", "row_id"]
        )

    def finish(self) -> None:
        self.metadata.finish_merge(self.session, self.merge_handle, self.fragments)

    def commit(self) -> None:
        self.store.commit(self.transaction)

    def rollback(self) -> None:
        self.store.rollback(self.transaction)


def make_table(
    place: Path | HiveAcidConnector, columns: Sequence[tuple[str, str]] = COLUMNS, **properties: Any
) -> HiveAcidConnector:
    store = place if isinstance(place, HiveAcidConnector) else HiveAcidConnector(place)
    transaction = store.begin_transaction()
    made = tuple(ColumnMetadata(name, parse_type(kind)) for name, kind in columns)
    store.get_metadata(transaction).create_table(
        ConnectorSession("c"), ConnectorTableMetadata(NAME, made, properties)
    )
    store.commit(transaction)
    return store


def merge(store: HiveAcidConnector, *changes: Sequence[tuple[Any, ...]]) -> None:
    """Run a merge with one writer per list of changes."""
    statement = Statement(store)
    statement.stage(changes)
    statement.finish()
    statement.commit()


def inserted(*rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [(1, None, *row) for row in rows]


def contents(store: HiveAcidConnector) -> list[tuple[Any, ...]]:
    statement = Statement(store)
    rows = sorted((tuple(row.values()) for row in statement.rows()), key=repr)
    statement.commit()
    return rows


def row_ids(store: HiveAcidConnector) -> dict[Any, Any]:
    """Return the row id of every row by its first column."""
    statement = Statement(store)
    found = {next(iter(row.values())): row["$row_id"] for row in statement.rows(ids=True)}
    statement.commit()
    return found


def events(store: HiveAcidConnector) -> dict[str, list[list[Any]]]:
    """Return the events in every file of the table's deltas, by path."""
    root = store.warehouse / "t"
    found = {}
    for path in sorted(root.rglob("bucket_*")):
        rows = orc.ORCFile(str(path)).read().to_pylist()
        found[path.relative_to(root).as_posix()] = [list(row.values()) for row in rows]
    return found


def files(store: HiveAcidConnector) -> set[str]:
    root = store.warehouse / "t"
    return (
        {path.relative_to(root).as_posix() for path in root.rglob("*")} if root.exists() else set()
    )
