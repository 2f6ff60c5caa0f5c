"""A statement's use of an SQLite database."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError, ExecutionError, RowMergeError
from rowmerge_nb.base.names import quoted, quoted_text
from rowmerge_nb.connectors.jdbc.database import DatabaseSession, unsupported
from rowmerge_nb.connectors.jdbc.jdbc_connector import JdbcTransaction
from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcColumn, JdbcSplit, JdbcTableHandle, Stage
from rowmerge_nb.connectors.jdbc.predicates import predicate_of
from rowmerge_nb.connectors.jdbc.sqlite import sqlite_types as types
from rowmerge_nb.connectors.jdbc.sqlite.spool import Spool, remove_orphans
from rowmerge_nb.connectors.jdbc.sqlite.sqlite_store import SCHEMA, SqliteStore, rowid_of
from rowmerge_nb.connectors.jdbc.staging import file_of
from rowmerge_nb.spi import ColumnDomain, ConnectorSession, ConnectorTableMetadata, SchemaTableName

SPLIT_ROWS: Final = 500_000
SMALL_ROWS: Final = 10_000
COUNTED_BYTES: Final = 4 << 30
"""Rows of larger files are not counted."""
STAGE: Final = "temp.rowmerge_nb_stage"


class SqliteTransaction(JdbcTransaction):
    """A statement on one connection, which detects commits of others.

    Args:
        repeatable: whether several statements read in it, and fail if another commit comes between.
    """

    _store: SqliteStore

    def __init__(self, store: SqliteStore, *, create: bool, repeatable: bool = False) -> None:
        self._store = store
        self._create = create
        self._repeatable = repeatable
        self._session: DatabaseSession | None = None
        self._writing = False
        self._version = 0
        self._spool: Spool | None = None

    def reader(self) -> DatabaseSession:
        if self._session is None:
            creating = not self._store.is_there() and self._create
            writing = not creating and os.access(self._store.path, os.W_OK)
            self._session = self._store.connect(writing=writing, create=creating)
            self._version = self._session.value("PRAGMA data_version")
        elif self._repeatable:
            self._check_repeatable(self._session)
        return self._session

    def _check_repeatable(self, session: DatabaseSession) -> None:
        if session.value("PRAGMA data_version") != self._version:
            raise ConnectorError(
                f"SQLite database {self._store.shown} was changed by another connection since START"
                " TRANSACTION",
                code="TRANSACTION_CONFLICT",
                hint="ROLLBACK, and read again.",
            )

    def writer(self) -> DatabaseSession:
        session = self.reader()
        if not self._writing:
            if not os.access(self._store.path, os.W_OK):
                raise self._store.read_only()
            session.execute("BEGIN IMMEDIATE", "Beginning to write")
            self._writing = True
        return session

    def find(self, name: SchemaTableName) -> JdbcTableHandle | None:
        if name.schema != SCHEMA:
            return None
        # SQLite itself ignores case only for ASCII letters.
        matches = [row for row in self._tables() if row["name"].lower() == name.table]
        if not matches:
            return None
        table = self._single_match(name, matches, (row["name"] for row in matches))
        spelled, table_type = table["name"], table["type"]
        rows = self.reader().query(
            "SELECT name, type, \"notnull\" AS required, CAST(dflt_value AS TEXT) || '' AS value,"
            f" pk, hidden FROM pragma_table_xinfo({quoted_text(spelled)}, 'main') WHERE hidden <> 1"
            " ORDER BY cid"
        )
        keys = sorted((row["pk"], row["name"]) for row in rows if row["pk"])
        columns = tuple(
            self._column(str(name), row, keys, without_rowid=bool(table["wr"])) for row in rows
        )
        return JdbcTableHandle(
            name,
            (SCHEMA, spelled),
            columns,
            tuple(key for _, key in keys),
            {"virtual": "virtual table"}.get(table_type, table_type),
            ranges=table_type == "table" and not table["wr"],
            refusing="OR ABORT " if self._resolves_conflicts(spelled) else "",
        )

    def _resolves_conflicts(self, table: str) -> bool:
        """Return whether ON CONFLICT clauses would silently delete or skip rows."""
        query = (
            "SELECT coalesce(max(sql), '') AS v FROM main.sqlite_master WHERE type = 'table' AND"
            f" name = {quoted_text(table)}"
        )
        return (
            re.search(r"\bON\s+CONFLICT\b", str(self.reader().value(query)), re.IGNORECASE)
            is not None
        )

    def _column(
        self, table: str, row: dict[str, Any], keys: list[tuple[int, str]], *, without_rowid: bool
    ) -> JdbcColumn:
        declared, default = row["type"], row["value"]
        sql_type = types.type_of(declared)
        if sql_type is None:
            raise unsupported(
                self._store,
                table,
                row["name"],
                declared or "''",
                "which has no counterpart" if declared else "no type at all",
                "Declare it differently, or create a view without it.",
            )
        # SQLite fills a single key column that is declared INTEGER by the rowid.
        numbered = (
            bool(row["pk"])
            and len(keys) == 1
            and declared.upper() == "INTEGER"
            and not without_rowid
        )
        nullable = (
            numbered
            or not (row["required"] or (row["pk"] and without_rowid))
            or default is not None
        )
        default_sql = f"({default})" if row["required"] and default is not None else None
        generated = row["hidden"] in {2, 3}
        return JdbcColumn(
            row["name"],
            sql_type,
            declared,
            nullable,
            default_sql,
            generated,
            numbered=numbered,
            insert_default=None if row["required"] or generated or numbered else default,
        )

    def names(self) -> list[SchemaTableName]:
        return [SchemaTableName(SCHEMA, row["name"].lower()) for row in self._tables()]

    def _tables(self) -> list[dict[str, Any]]:
        return self.reader().query(
            "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main' AND type IN"
            " ('table', 'view', 'virtual') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )

    def schemas(self) -> list[str]:
        return [SCHEMA]

    def row_count(self, handle: JdbcTableHandle) -> int | None:
        """Return the number of rows; None for large files."""
        return self._rows(handle, "")

    def splits(
        self, handle: JdbcTableHandle, domains: Mapping[str, ColumnDomain]
    ) -> list[JdbcSplit]:
        unicode = bool(domains) and self.reader().value("PRAGMA encoding") == "UTF-8"
        predicate, _ = predicate_of(
            handle, domains, lambda column: self._store.terms(column, unicode=unicode)
        )
        rows = self._rows(handle, predicate)
        if rows is not None and rows <= SMALL_ROWS:
            return [JdbcSplit(carries_rows=True, predicate=predicate)]
        address = _address(handle)
        if not address or (rows is not None and rows <= SPLIT_ROWS):
            return [JdbcSplit(predicate=predicate)]
        # Values that are not numbers sort after all numbers, or are rejected on reading: the outer
        # ranges are open.
        conditions = [
            *([] if handle.ranges else [f"typeof({address}) = 'integer'"]),
            *([predicate] if predicate else []),
        ]
        source = f"{self._store.table(handle)}{' WHERE ' if conditions else ''}{' AND '.join(conditions)}"
        # Two queries, since SQLite finds each end without a scan.
        query = (
            f"SELECT (SELECT min({address}) FROM {source}) AS low, (SELECT max({address}) FROM"
            f" {source}) AS high"
        )
        (ends,) = self.reader().query(query)
        if ends["low"] is None:
            return [JdbcSplit(predicate=predicate)]
        count = -(-(rows or ends["high"] - ends["low"] + 1) // SPLIT_ROWS)
        width = -(-(ends["high"] - ends["low"] + 1) // count)
        inner = [
            ends["low"] + width * number
            for number in range(1, count)
            if width * number <= ends["high"] - ends["low"]
        ]
        return [
            JdbcSplit(low, high, address=address, predicate=predicate)
            for low, high in pairwise([None, *inner, None])
        ]

    def _rows(self, handle: JdbcTableHandle, predicate: str) -> int | None:
        if handle.kind == "view" or Path(self._store.path).stat().st_size > COUNTED_BYTES:
            return None
        source = self._store.table(handle)
        return self._count(f"{source} WHERE {predicate}" if predicate else source)

    def spelled_name(self, name: SchemaTableName) -> tuple[str, str]:
        if name.schema != SCHEMA:
            raise ConnectorError(
                f"Schema '{name.schema}' does not exist; an SQLite database has only"
                f" the schema '{SCHEMA}'",
                code="SCHEMA_NOT_FOUND",
                hint=f"Name the table {SCHEMA}.{name.table}.",
            )
        return SCHEMA, name.table

    def create_table(self, metadata: ConnectorTableMetadata, key: Sequence[str]) -> None:
        schema, table = self.spelled_name(metadata.name)
        self._declare_table(f"{schema}.{quoted(table)}", metadata, key, required=key)

    # -- stages

    def begin_stage(self, session: ConnectorSession, handle: JdbcTableHandle) -> Stage:
        self.reader()
        if not os.access(self._store.path, os.W_OK):
            raise self._store.read_only()
        remove_orphans(self._store.path)
        if self._spool is None:
            self._spool = Spool(self._store.path, session.query_id)
        return Stage(str(self._spool.directory))

    def collect(self, handle: JdbcTableHandle, stage: Stage, attempts: Mapping[int, int]) -> str:
        session, columns = self.writer(), self._store.stage_columns(handle)
        declared = ", ".join(f"{name} {type_name}" for name, _, type_name in columns)
        session.execute(f"CREATE TEMP TABLE rowmerge_nb_stage ({declared})", "Staging rows")
        for attempt in attempts:
            try:
                with (
                    pa.OSFile(str(file_of(stage.area, attempt)), "rb") as file,
                    pa.ipc.open_stream(file) as reader,
                ):
                    session.bind(
                        f"INSERT INTO {STAGE} VALUES ({', '.join('?' * len(columns))})",
                        reader,
                        "Staging rows",
                    )
            except OSError as error:
                raise ConnectorError(
                    f"Staged rows of SQLite table '{handle.name}' cannot be read from"
                    f" '{file_of(stage.area, attempt)}': {error}",
                    code="JDBC_ERROR",
                    hint="Driver and tasks must see the same directory beside the database.",
                ) from error
        staged_rows = session.value(f"SELECT count(*) AS n FROM {STAGE}")
        if staged_rows != sum(attempts.values()):
            raise ExecutionError(
                f"{sum(attempts.values())} rows were staged, but {staged_rows} of them exist",
                step="finish_merge",
            )
        return STAGE

    def check_unchanged(self) -> None:
        """Compare SQLite's counter of other connections' commits."""
        if self.writer().value("PRAGMA data_version") != self._version:
            raise ExecutionError(
                f"SQLite database {self._store.shown} was changed by another"
                " connection after the statement read it",
                code="TRANSACTION_CONFLICT",
                step="finish_merge",
                hint="Run the statement again.",
            )

    def commit(self) -> None:
        """Commit; the stage's table is temporary."""
        if self._session is not None and self._repeatable:
            self._check_repeatable(self._session)
        if self._session is not None and self._writing:
            self._session.execute("DROP TABLE IF EXISTS temp.rowmerge_nb_stage", "Committing")
            try:
                self._session.execute("COMMIT", "Committing")
            except ConnectorError as error:
                # A full disk is detected before the commit takes effect; other errors may come
                # after it.
                if error.code == "GENERIC_INSUFFICIENT_RESOURCES" or self._rolled_back():
                    raise
                self.end()
                raise ConnectorError(
                    "The outcome is unknown: SQLite could not report whether the"
                    f" transaction was committed. {error.message}",
                    code=error.code,
                    hint=(
                        "Check its disk, and check the table before you run the statement again."
                    ),
                    changed=None,
                ) from error
            self._writing = False

    def _rolled_back(self) -> bool:
        try:
            self._session.execute("ROLLBACK", "Rolling back") if self._session is not None else None
        except RowMergeError:
            return False
        self._writing = False
        return True

    def rollback(self) -> None:
        try:
            if self._session is not None and self._writing:
                # A failed statement may have ended the transaction.
                with suppress(RowMergeError):
                    self._session.execute("ROLLBACK", "Rolling back")
        finally:
            self.end()

    def end(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
        if self._spool is not None:
            self._spool.remove()
            self._spool = None


def _address(handle: JdbcTableHandle) -> str:
    if handle.ranges:
        return rowid_of(handle)
    first = next(iter(handle.key_columns), None)
    whole = first is not None and first.type.base in {"tinyint", "smallint", "integer", "bigint"}
    return types.named(first.name) if first is not None and whole and handle.kind == "table" else ""
