"""Helpers of the tests of both databases: a direct connection, and a merge without Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rowmerge_nb.connectors.jdbc.database import DatabaseSession
from rowmerge_nb.connectors.jdbc.jdbc_connector import JdbcConnector
from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcTableHandle
from rowmerge_nb.spi import (
    ColumnDomain,
    ColumnHandle,
    ConnectorSession,
    Constraint,
    SchemaTableName,
)

SESSION = ConnectorSession("q1")


@dataclass
class Database:
    """A connector, and a session of another program.

    Args:
        kind: ``sqlite`` or ``postgresql``.
        schema: the schema of the tables.
        kept: the session for `sql` and `rows`, if one is kept for them: connecting to a server takes as long as many statements.
    """

    kind: str
    connector: JdbcConnector
    schema: str
    kept: DatabaseSession | None = None

    def session(self) -> DatabaseSession:
        """Return a session with the search path of other programs' sessions."""
        session = self.connector.store.connect(writing=True)
        if self.kind == "postgresql":
            session.execute('SET search_path TO "$user", public')
        return session

    @contextmanager
    def _own_session(self) -> Iterator[DatabaseSession]:
        if self.kept is not None:
            yield self.kept
            return
        session = self.session()
        try:
            yield session
        finally:
            session.close()

    def sql(self, *statements: str) -> None:
        with self._own_session() as session:
            for statement in statements:
                session.execute(statement)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self._own_session() as session:
            return [tuple(row.values()) for row in session.query(query)]

    def name(self, table: str) -> SchemaTableName:
        return SchemaTableName(self.schema, table)

    def leftovers(self) -> list[str]:
        """Return all stages, held or not."""
        if self.kind == "sqlite":
            from pathlib import Path

            path = Path(self.connector.store.path)
            return [
                entry.name
                for entry in path.parent.iterdir()
                if entry.name.startswith((f".{path.name}", f"{path.name}-journal"))
            ]
        return [
            row[0]
            for row in self.rows(
                "SELECT relname::text AS n FROM pg_class WHERE relname LIKE 'rowmerge\\_nb%'"
            )
        ]


class Statement:
    """A statement in the steps of the engine; everything that goes to tasks is pickled."""

    def __init__(self, database: Database, table: str) -> None:
        self.database, self.connector = database, database.connector
        self.transaction = self.connector.begin_transaction()
        self.metadata = self.connector.get_metadata(self.transaction)
        found = self.metadata.get_table_handle(SESSION, database.name(table))
        assert found is not None
        self.handle: JdbcTableHandle = found
        self.merge: Any = None

    def columns(self) -> list[ColumnHandle]:
        return list(self.metadata.get_column_handles(SESSION, self.handle))

    def splits(self, **domains: ColumnDomain) -> Any:
        constraint = Constraint(domains)
        return self.connector.get_split_manager().get_splits(
            self.transaction, SESSION, self.handle, constraint
        )

    def read(self, *names: str, row_id: bool = False, **domains: ColumnDomain) -> pa.Table:
        """Read columns, by default all, like tasks."""
        wanted = [c for c in self.columns() if not names or c.name in names]
        if row_id:
            wanted.append(self.metadata.get_merge_row_id_column_handle(SESSION, self.handle))
        provider = pickle.loads(pickle.dumps(self.connector.get_page_source_provider()))
        pages = []
        for split in self.splits(**domains):
            source = provider.create_page_source(
                self.transaction, SESSION, split, self.handle, wanted
            )
            try:
                while (page := source.get_next_page()) is not None:
                    pages.append(page)
            finally:
                source.close()
        schema = pa.schema([(column.name, column.type.arrow) for column in wanted])
        return pa.Table.from_batches(pages, schema)

    def begin(self, updated: dict[int, list[str]] | None = None) -> None:
        by_name = {column.name: column for column in self.columns()}
        columns = (
            {case: [by_name[name] for name in names] for case, names in updated.items()}
            if updated is not None
            else None
        )
        self.merge = self.metadata.begin_merge(SESSION, self.handle, columns)

    def sink(self) -> Any:
        provider = pickle.loads(pickle.dumps(self.connector.get_page_sink_provider()))
        return provider.create_merge_sink(
            self.transaction, SESSION, pickle.loads(pickle.dumps(self.merge))
        )

    def page(self, rows: Sequence[tuple[Any, ...]], *, current: bool = False) -> pa.RecordBatch:
        """Build a sink's page of rows: the table's values, operation, in the current era the case number, and the old key (or None).

        The rest of a row id (PostgreSQL: the row's version) is that of the table's current state.
        """
        columns = self.columns()
        kind = self.metadata.get_merge_row_id_column_handle(SESSION, self.handle).type.arrow
        read = self.read(row_id=True).column("$row_id").to_pylist()
        known = {_key(row_id): row_id for row_id in read}
        arrays = [
            pa.array([row[i] for row in rows], column.type.arrow)
            for i, column in enumerate(columns)
        ]
        arrays.append(pa.array([row[len(columns)] for row in rows], pa.int8()))
        names = [*(column.name for column in columns), "operation"]
        if current:
            arrays.append(pa.array([row[len(columns) + 1] for row in rows], pa.int32()))
            names.append("case_number")
        arrays.append(pa.array([None if row[-1] is None else known[row[-1]] for row in rows], kind))
        return pa.RecordBatch.from_arrays(arrays, names=[*names, "row_id"])

    def finish(self, fragments: list[bytes]) -> None:
        self.metadata.finish_merge(SESSION, self.merge, fragments)

    def commit(self) -> None:
        self.connector.commit(self.transaction)

    def rollback(self) -> None:
        self.connector.rollback(self.transaction)


def _key(row_id: Any) -> Any:
    """Return the key of a row id without the row's version."""
    if not isinstance(row_id, dict):
        return row_id
    values = tuple(value for name, value in row_id.items() if name != "$version")
    return values[0] if len(values) == 1 else values


def merge(
    database: Database,
    table: str,
    rows: Sequence[tuple[Any, ...]],
    updated: dict[int, list[str]] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Run a whole merge; roll back failures."""
    statement = Statement(database, table)
    try:
        statement.begin(updated)
        page = statement.page(rows, current=updated is not None)
        sink = statement.sink()
        sink.store_merged_rows(page)
        fragments = sink.finish()
        meanwhile()
        statement.finish(fragments)
        statement.commit()
    except BaseException:
        statement.rollback()
        raise
