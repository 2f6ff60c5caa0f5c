"""Helpers of the tests of the Iceberg connector: statements through the contract, without an engine."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet as pq

from rowmerge_nb import IcebergConnector
from rowmerge_nb.connectors.iceberg.commit_conflicts import Change
from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergSplit
from rowmerge_nb.connectors.iceberg.snapshot_producers import RowDelta
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorSession,
    ConnectorTableMetadata,
    Constraint,
    SchemaTableName,
    parse_type,
)

NAME = SchemaTableName("default", "t")
COLUMNS = (("id", "bigint"), ("v", "varchar"), ("p", "varchar"))
_queries = itertools.count(1)


class Statement:
    """One statement: a transaction, its table, and a session."""

    def __init__(self, store: IcebergConnector, name: SchemaTableName = NAME) -> None:
        self.store = store
        self.session = ConnectorSession(f"query-{next(_queries):06}")
        self.transaction = store.begin_transaction()
        self.metadata = store.get_metadata(self.transaction)
        self.handle: Any = self.metadata.get_table_handle(self.session, name)

    def splits(
        self, constraint: Constraint | None = None, handle: Any = None
    ) -> list[IcebergSplit]:
        splits = self.store.get_split_manager().get_splits(
            self.transaction, self.session, handle or self.handle, constraint or Constraint()
        )
        return pickle.loads(pickle.dumps(list(splits)))  # type: ignore[no-any-return]

    def pages(
        self, *names: str, ids: bool = False, constraint: Constraint | None = None
    ) -> list[pa.RecordBatch]:
        columns: list[Any] = list(self.metadata.get_column_handles(self.session, self.handle))
        if names:
            columns = [column for column in columns if column.name in names]
        if ids:
            columns.append(self.metadata.get_merge_row_id_column_handle(self.session, self.handle))
        provider, pages = self.store.get_page_source_provider(), []
        for split in self.splits(constraint):
            source = provider.create_page_source(
                self.transaction, self.session, split, self.handle, columns
            )
            while (page := source.get_next_page()) is not None:
                assert page.schema.types == [column.type.arrow for column in columns]
                page.validate(full=True)
                pages.append(page)
        return pages

    def rows_of(self, split: IcebergSplit) -> list[dict[str, Any]]:
        """Return the rows of one split."""
        columns = list(self.metadata.get_column_handles(self.session, self.handle))
        source = self.store.get_page_source_provider().create_page_source(
            self.transaction, self.session, split, self.handle, columns
        )
        return [row for page in iter(source.get_next_page, None) for row in page.to_pylist()]

    def rows(
        self, *names: str, ids: bool = False, constraint: Constraint | None = None
    ) -> list[dict[str, Any]]:
        return [
            row
            for page in self.pages(*names, ids=ids, constraint=constraint)
            for row in page.to_pylist()
        ]

    def begin_merge(self) -> None:
        self.merge_handle = self.metadata.begin_merge(self.session, self.handle)
        self.fragments: list[bytes] = []

    def stage(self, *changes: Sequence[tuple[Any, ...]]) -> None:
        """Pass every list of changes to its own sink; a change is an operation, the row id and the values."""
        for rows in changes:
            self.fragments += self.sink(rows).finish()

    def sink(self, rows: Sequence[tuple[Any, ...]]) -> Any:
        handle = pickle.loads(pickle.dumps(self.merge_handle))
        sink = self.store.get_page_sink_provider().create_merge_sink(
            self.transaction, self.session, handle
        )
        if rows:
            fields = self.handle.fields
            arrays = [
                pa.array([row[2 + i] for row in rows], field.type.arrow)
                for i, field in enumerate(fields)
            ]
            row_id = self.metadata.get_merge_row_id_column_handle(self.session, self.handle)
            arrays += [
                pa.array([row[0] for row in rows], pa.int8()),
                pa.array([row[1] for row in rows], row_id.type.arrow),
            ]
            sink.store_merged_rows(
                pa.RecordBatch.from_arrays(
                    arrays, names=[*(f.name for f in fields), "operation", "row_id"]
                )
            )
        return sink

    def finish(self) -> None:
        self.metadata.finish_merge(self.session, self.merge_handle, self.fragments)

    def commit(self) -> None:
        self.store.commit(self.transaction)

    def rollback(self) -> None:
        self.store.rollback(self.transaction)

    def ids(self) -> dict[Any, Any]:
        """Return the row id of every row by its first column."""
        return {next(iter(row.values())): row["$row_id"] for row in self.rows(ids=True)}


def make_table(
    tmp_path: Path,
    columns: Sequence[tuple[str, str]] = COLUMNS,
    name: SchemaTableName = NAME,
    **properties: Any,
) -> IcebergConnector:
    store = IcebergConnector(tmp_path)
    create(store, columns, name, **properties)
    return store


def create(
    store: IcebergConnector,
    columns: Sequence[tuple[str, str]] = COLUMNS,
    name: SchemaTableName = NAME,
    **properties: Any,
) -> None:
    transaction = store.begin_transaction()
    made = tuple(
        ColumnMetadata(c, parse_type(kind.replace(" NOT NULL", "")), " NOT NULL" not in kind)
        for c, kind in columns
    )
    store.get_metadata(transaction).create_table(
        ConnectorSession("c"), ConnectorTableMetadata(name, made, properties)
    )
    store.commit(transaction)


def insert(
    store: IcebergConnector, page: pa.RecordBatch | Mapping[str, Any], name: SchemaTableName = NAME
) -> None:
    statement = Statement(store, name)
    handle = statement.metadata.begin_insert(statement.session, statement.handle, ())
    sink = store.get_page_sink_provider().create_page_sink(
        statement.transaction, statement.session, handle
    )
    if not isinstance(page, pa.RecordBatch):
        schema = pa.schema([(field.name, field.type.arrow) for field in statement.handle.fields])
        page = pa.RecordBatch.from_pydict(dict(page), schema=schema)
    sink.append_page(page)
    statement.metadata.finish_insert(statement.session, handle, sink.finish())
    statement.commit()


def rows(*ids: int, v: str = "a", p: str = "x") -> dict[str, list[Any]]:
    return {"id": list(ids), "v": [v] * len(ids), "p": [p] * len(ids)}


def delete(store: IcebergConnector, *keys: Any) -> None:
    """Delete rows by their first column."""
    statement = Statement(store)
    statement.begin_merge()
    known = statement.ids()
    nothing = [None] * len(statement.handle.fields)
    statement.stage([(2, known[key], *nothing) for key in keys])
    statement.finish()
    statement.commit()


def contents(store: IcebergConnector, name: SchemaTableName = NAME) -> list[tuple[Any, ...]]:
    statement = Statement(store, name)
    found = sorted((tuple(row.values()) for row in statement.rows()), key=repr)
    statement.rollback()
    return found


def table(store: IcebergConnector, name: SchemaTableName = NAME) -> Any:
    return store.catalog.load_table((name.schema, name.table))


def by_pyiceberg(store: IcebergConnector, name: SchemaTableName = NAME) -> list[tuple[Any, ...]]:
    """Return the rows read by pyiceberg's own reader."""
    return sorted(
        (tuple(row.values()) for row in table(store, name).scan().to_arrow().to_pylist()), key=repr
    )


def files(store: IcebergConnector, folder: str = "data", name: SchemaTableName = NAME) -> set[Path]:
    """Return the files of a table, without the notes of writing processes."""
    root = Path(table(store, name).location().removeprefix("file://")) / folder
    return {
        path for path in root.rglob("*") if path.is_file() and not path.name.endswith("-writer")
    }


def add_deletes(
    store: IcebergConnector,
    path: Path,
    data: pa.Table,
    content: str,
    ids: Sequence[int] | None = None,
) -> None:
    """Commit a delete file of another engine: about a whole partition, without bounds.

    Args:
        path: the path of the file.
        data: its rows.
        content: ``POSITION_DELETES`` or ``EQUALITY_DELETES``.
        ids: the compared columns.
    """
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    pq.write_table(data, path)
    file = DataFile.from_args(
        3,
        content=DataFileContent[content],
        file_path=f"file://{path}",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=data.num_rows,
        file_size_in_bytes=path.stat().st_size,
        equality_ids=list(ids) if ids else None,
        lower_bounds=None,
        upper_bounds=None,
    )
    file.spec_id = 0
    commit_files(store, deletes=[file])


def commit_files(
    store: IcebergConnector, *, data: Sequence[Any] = (), deletes: Sequence[Any] = ()
) -> None:
    """Commit files like another writer, without any checks."""
    statement = Statement(store)
    transaction = table(store).transaction()
    RowDelta(
        Change(statement.handle, data=list(data), deletes=list(deletes)), transaction, {}
    ).commit()
    transaction.commit_transaction()
    statement.rollback()
