"""Transactions, tables and stages of a PostgreSQL server; `postgres_store` has its SQL."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Any, Final

from rowmerge_nb.base.errors import ConnectorError, ExecutionError, RowMergeError
from rowmerge_nb.base.names import quoted, quoted_path, quoted_text
from rowmerge_nb.connectors.jdbc.altering import comment_sql
from rowmerge_nb.connectors.jdbc.database import DatabaseSession, unsupported
from rowmerge_nb.connectors.jdbc.jdbc_connector import JdbcTransaction
from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcColumn, JdbcSplit, JdbcTableHandle, Stage
from rowmerge_nb.connectors.jdbc.postgresql import postgres_types as types
from rowmerge_nb.connectors.jdbc.postgresql.orphaned_stages import PREFIX, STAGES, remove_orphans
from rowmerge_nb.connectors.jdbc.postgresql.postgres_session import PostgresSession
from rowmerge_nb.connectors.jdbc.postgresql.postgres_store import PostgresStore
from rowmerge_nb.connectors.jdbc.predicates import predicate_of
from rowmerge_nb.connectors.shared.orphans import this_process
from rowmerge_nb.spi import ColumnDomain, ConnectorSession, ConnectorTableMetadata, SchemaTableName

SPLIT_BLOCKS: Final = 16_384
"""128 MiB of a table with blocks of 8 KiB."""
SPLIT_ROWS: Final = 500_000
"""The limit of rows that one task finds by known keys."""
SMALL_ROWS: Final = 10_000
ASKING_SECONDS: Final = 10.0
"""The time limit for asking the server about a commit whose answer was lost."""
COUNTED_BLOCKS: Final = 524_288
"""Rows of tables larger than 4 GiB are not counted."""

_KINDS: Final = {
    "r": "table",
    "p": "table",
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
}
_COUNTED: Final = ("table", "materialized view")
_OWN_SCHEMAS: Final = "n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"


class PostgresTransaction(JdbcTransaction):
    """A statement on two connections: one keeps the snapshot, the other writes.

    The stage is filled after the snapshot was taken, so the reading connection cannot see it.
    """

    _store: PostgresStore

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._reader: PostgresSession | None = None
        self._writer: PostgresSession | None = None
        self._writing = False
        self._snapshot = ""
        self._stages: list[Stage] = []

    def reader(self) -> DatabaseSession:
        """Return the connection that sees the statement's own changes."""
        if self._writer is not None and self._writing:
            return self._writer
        if self._reader is None:
            self._reader = self._store.connect()
            self._reader.execute(
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "Beginning to read"
            )
        return self._reader

    def writer(self) -> DatabaseSession:
        """Begin to write. Each statement sees the stage; see `VERSION`."""
        writer = self._connection()
        if not self._writing:
            writer.execute("BEGIN ISOLATION LEVEL READ COMMITTED", "Beginning to write")
            self._writing = True
        return writer

    def release(self) -> None:
        """Release the snapshot, which would block DROP TABLE."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _connection(self) -> PostgresSession:
        if self._writer is None:
            self._writer = self._store.connect(writing=True)
            # During a long statement, a server does not notice that its client is gone and keeps
            # its locks. Not all versions have the setting, and not all systems accept the value.
            try:
                self._writer.query(
                    "SELECT set_config(name, '2s', false) AS new_value FROM pg_settings WHERE name"
                    " = 'client_connection_check_interval'",
                    "Connecting",
                )
            except ConnectorError as error:
                if error.code != "INVALID_ARGUMENTS":
                    raise
        return self._writer

    # -- tables

    def find(self, name: SchemaTableName) -> JdbcTableHandle | None:
        matches = self.reader().query(
            "SELECT c.oid::bigint AS oid, n.nspname::text AS schema, c.relname::text AS name,"
            " c.relkind::text AS kind, obj_description(c.oid, 'pg_class') AS comment, c.relkind ="
            " 'r' AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid) AS inherited FROM"
            " pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r',"
            f" 'p', 'v', 'm', 'f') AND {_OWN_SCHEMAS} AND lower(n.nspname) = {quoted_text(name.schema)}"
            f" AND lower(c.relname) = {quoted_text(name.table)} AND c.relname NOT LIKE {STAGES}"
        )
        if not matches:
            return None
        table = self._single_match(
            name, matches, (f'"{row["schema"]}"."{row["name"]}"' for row in matches)
        )
        columns = [self._column(str(name), row) for row in self._catalog_columns(table["oid"])]
        lower = [column.name.lower() for column in columns]
        repeated = next(
            (column.name for column in columns if lower.count(column.name.lower()) > 1), None
        )
        if repeated is not None:
            raise ConnectorError(
                f"PostgreSQL table '{name}' has several columns '{repeated.lower()}'"
                " that differ only in case",
                hint="Create a view that gives them other names.",
            )
        keys = self.reader().query(
            "SELECT a.attname::text AS name FROM pg_index i CROSS JOIN unnest(i.indkey::int2[])"
            " WITH ORDINALITY k(number, place) JOIN pg_attribute a ON a.attrelid = i.indrelid AND"
            f" a.attnum = k.number WHERE i.indrelid = {table['oid']} AND i.indisprimary ORDER BY"
            " k.place"
        )
        spelled = (table["schema"], table["name"])
        table_type = _KINDS[table["kind"]]
        # Rows of inheriting tables may repeat a key.
        key = () if table["inherited"] else tuple(row["name"] for row in keys)
        return JdbcTableHandle(
            name, spelled, tuple(columns), key, table_type, table["kind"] in "rm", table["comment"]
        )

    def _catalog_columns(self, oid: int) -> list[dict[str, Any]]:
        return self.reader().query(
            "SELECT a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS declared,"
            " t.typname::text AS base, CASE WHEN t.typtype = 'b' AND t.typnamespace <>"
            " 'pg_catalog'::regnamespace THEN 'x' ELSE t.typtype END::text AS category,"
            " a.atttypmod AS modifier, a.attnotnull AS required, a.attidentity::text AS identity,"
            " a.attgenerated::text AS generated, CASE WHEN a.attidentity <> '' THEN 'nextval(' ||"
            " quote_literal(pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)) ||"
            " '::regclass)' ELSE pg_get_expr(d.adbin, d.adrelid) END AS value,"
            " col_description(a.attrelid, a.attnum) AS comment FROM pg_attribute a JOIN pg_type t"
            " ON t.oid = a.atttypid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum ="
            f" a.attnum WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY"
            " a.attnum"
        )

    def _column(self, table: str, row: dict[str, Any]) -> JdbcColumn:
        sql_type = types.type_of(row["base"], row["category"], row["modifier"])
        if sql_type is None:
            hint = "Create a view that omits or casts the column"
            hint += ", or declare precision and scale." if row["base"] == "numeric" else "."
            raise unsupported(
                self._store, table, row["name"], row["declared"], "which has no counterpart", hint
            )
        default_sql = row["value"] if row["required"] and not row["generated"] else None
        nullable = not row["required"] or default_sql is not None
        cast = types.cast_of(row["base"], row["category"], row["declared"])
        generated, always = bool(row["generated"]), row["identity"] == "a"
        return JdbcColumn(
            row["name"],
            sql_type,
            row["declared"],
            nullable,
            default_sql,
            generated,
            always,
            cast,
            row["comment"],
            insert_default=None if row["required"] or generated else row["value"],
        )

    def names(self) -> list[SchemaTableName]:
        rows = self.reader().query(
            "SELECT lower(n.nspname) AS schema, lower(c.relname) AS name FROM pg_class c JOIN"
            " pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm',"
            f" 'f') AND {_OWN_SCHEMAS} AND c.relname NOT LIKE {STAGES} ORDER BY 1, 2"
        )
        return [SchemaTableName(row["schema"], row["name"]) for row in rows]

    def schemas(self) -> list[str]:
        rows = self.reader().query(
            f"SELECT n.nspname::text AS name FROM pg_namespace n WHERE {_OWN_SCHEMAS}"
        )
        return [row["name"] for row in rows]

    def row_count(self, handle: JdbcTableHandle) -> int | None:
        """Return the number of rows; None for huge tables."""
        if handle.kind not in _COUNTED or self._blocks(handle) > COUNTED_BLOCKS:
            return None
        return self._count(self._store.table(handle))

    def _blocks(self, handle: JdbcTableHandle) -> int:
        # A view has no size.
        name = quoted_text(self._store.table(handle))
        sql = (
            f"SELECT coalesce(pg_relation_size({name}::regclass), 0) /"
            " current_setting('block_size')::bigint AS n"
        )
        return int(self.reader().value(sql))

    def splits(
        self, handle: JdbcTableHandle, domains: Mapping[str, ColumnDomain]
    ) -> list[JdbcSplit]:
        """Split a large table into ranges of blocks."""
        if not self._snapshot:
            self._snapshot = self.reader().value("SELECT pg_export_snapshot() AS s")
        unicode = (
            bool(domains)
            and self.reader().value("SELECT current_setting('server_encoding') AS e") == "UTF8"
        )
        predicate, by_key = predicate_of(
            handle, domains, lambda column: self._store.terms(column, unicode=unicode)
        )
        blocks = self._blocks(handle) if handle.ranges else 0
        rows = self._rows(handle, predicate) if by_key or blocks <= SPLIT_BLOCKS else None
        if rows is not None and rows <= SMALL_ROWS:
            return [JdbcSplit(snapshot=self._snapshot, carries_rows=True, predicate=predicate)]
        # The key finds rows anywhere; each range would search its index again.
        if blocks > SPLIT_BLOCKS and not (by_key and rows is not None and rows <= SPLIT_ROWS):
            lows = range(0, blocks, SPLIT_BLOCKS)
            # The last range is open: the table may have grown.
            highs = [*lows[1:], None]
            return [
                JdbcSplit(low, high, self._snapshot, predicate=predicate)
                for low, high in zip(lows, highs, strict=True)
            ]
        return [JdbcSplit(snapshot=self._snapshot, predicate=predicate)]

    def _rows(self, handle: JdbcTableHandle, predicate: str) -> int | None:
        if not predicate:
            return self.row_count(handle)
        if handle.kind not in _COUNTED:
            return None
        bounded = (
            f"SELECT 1 FROM {self._store.table(handle)} WHERE {predicate} LIMIT {SPLIT_ROWS + 1}"
        )
        return self._count(f"({bounded}) AS bounded")

    def longest_name(self) -> int:
        return int(
            self.reader().value("SELECT current_setting('max_identifier_length')::bigint AS n")
        )

    def spelled_name(self, name: SchemaTableName) -> tuple[str, str]:
        matches = (schema for schema in self.schemas() if schema.lower() == name.schema)
        return next(matches, name.schema), name.table

    def create_table(self, metadata: ConnectorTableMetadata, key: Sequence[str]) -> None:
        table = quoted_path(self.spelled_name(metadata.name))
        self._declare_table(table, metadata, key)
        comments = [(f"TABLE {table}", metadata.comment)]
        comments += [
            (f"COLUMN {table}.{quoted(column.name.lower())}", column.comment)
            for column in metadata.columns
        ]
        for target, comment in comments:
            if comment is not None:
                self.writer().execute(
                    comment_sql(target, comment), f"Commenting on table '{metadata.name}'"
                )

    # -- stages

    def begin_stage(self, session: ConnectorSession, handle: JdbcTableHandle) -> Stage:
        """Create a table next to the target.

        This transaction's connection holds an advisory lock on the table's number.
        """
        writer = self._store.connect(writing=True) if self._writing else self._connection()
        try:
            remove_orphans(writer)
            number = secrets.randbits(62)
            self._connection().query(f"SELECT pg_advisory_lock({number})::text AS locked")
            query = re.sub(r"\W", "", session.query_id.lower())[-20:]
            stage = Stage(f"{PREFIX}{query}_{number:016x}", handle.spelled[0])
            columns = ", ".join(
                f"{name} {declared}" for name, _, declared in self._store.stage_columns(handle)
            )
            writer.execute(
                f"CREATE UNLOGGED TABLE {_table(stage)} ({columns})", "Making a table for staging"
            )
            self._stages.append(stage)
            description = json.dumps(
                {"statement": session.query_id, "process": this_process(), "began": time.time()}
            )
            writer.execute(
                f"COMMENT ON TABLE {_table(stage)} IS {quoted_text(description)}",
                "Making a table for staging",
            )
        finally:
            if writer is not self._writer:
                writer.close()
        return stage

    def collect(self, handle: JdbcTableHandle, stage: Stage, attempts: Mapping[int, int]) -> str:
        """Delete invalid attempts' rows, and count the others."""
        writer, table = self.writer(), _table(stage)
        listed = ", ".join(map(str, attempts))
        # An abandoned attempt may still be writing.
        writer.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE", "Staging rows")
        writer.execute(f"DELETE FROM {table} WHERE a NOT IN ({listed})", "Staging rows")
        staged = {
            row["a"]: row["rows"]
            for row in writer.query(f"SELECT a, count(*) AS rows FROM {table} GROUP BY a")
        }
        if staged != attempts:
            raise ExecutionError(
                f"{sum(attempts.values())} rows were staged, but"
                f" {sum(staged.values())} of them exist",
                step="finish_merge",
            )
        # Without statistics the server would choose bad joins.
        writer.execute(f"ANALYZE {table}", "Staging rows")
        return table

    def hold(self, handle: JdbcTableHandle) -> None:
        """Take the lock of ALTER TABLE."""
        self.writer().execute(
            f"LOCK TABLE {self._store.table(handle)} IN ACCESS EXCLUSIVE MODE",
            f"Locking table '{handle.name}'",
        )

    def keep_others_out(self, handle: JdbcTableHandle) -> None:
        """Lock a table against changes, and against another statement that does the same.

        From now on this connection reads, whose snapshots come after the lock.
        """
        self.writer().execute(
            f"LOCK TABLE {self._store.table(handle)} IN SHARE ROW EXCLUSIVE MODE",
            f"Locking table '{handle.name}'",
        )
        if self.find(handle.name) != handle:
            raise ExecutionError(
                f"PostgreSQL table '{handle.name}' has been altered or replaced by another session"
                " since it was looked up",
                code="TRANSACTION_CONFLICT",
                step="begin_create_table",
                hint="Run the statement again.",
            )
        self._snapshot = ""

    def check_unchanged(self) -> None:
        """Rely on row versions, which each change compares."""

    def commit(self) -> None:
        """Commit, dropping the stage.

        If the answer is lost, ask for the outcome; an error with ``changed=None`` if it is unknown.
        """
        if self._writer is not None and self._stages:
            self.writer()
            for stage in self._stages:
                self._writer.execute(f"DROP TABLE {_table(stage)}", "Committing")
        if self._writer is not None and self._writing:
            number = self._writer.value(
                "SELECT pg_current_xact_id_if_assigned()::text AS n", "Committing"
            )
            # Deferred triggers run at the commit.
            self._writer.use_own_settings()
            try:
                self._writer.execute("COMMIT", "Committing")
            except RowMergeError as error:
                if not self._has_landed(number, error):
                    raise
            self._writing = False
        self._stages.clear()

    def _has_landed(self, number: str | None, error: RowMergeError) -> bool:
        if number is None:
            # It changed nothing.
            return False
        status: str | None = None
        end = time.monotonic() + ASKING_SECONDS
        while status in {None, "in progress"} and time.monotonic() < end:
            try:
                status = self._status(number)
            except RowMergeError:
                # A restarting server accepts no connections for a while.
                status = None
            if status in {None, "in progress"}:
                time.sleep(0.2)
        if status in {"committed", "aborted"}:
            return status == "committed"
        self._stages.clear()
        self.end()
        raise ConnectorError(
            f"The outcome is unknown: PostgreSQL at {self._store.shown} did not report"
            f" whether the transaction was committed: {error.message}",
            code="JDBC_ERROR",
            hint=(
                f"Once the server runs, SELECT pg_xact_status('{number}') shows the"
                " outcome. Do not run the statement again until then."
            ),
            changed=None,
        )

    def _status(self, number: str) -> str | None:
        """Return the status of a transaction.

        A stopped server may have lost the number of an uncommitted one. While a stage exists, the
        transaction was not committed.
        """
        staged = "".join(
            f" OR to_regclass({quoted_text(_table(stage))}) IS NOT NULL" for stage in self._stages
        )
        status = f"pg_xact_status({quoted_text(number)}::xid8)"
        sql = (
            f"SELECT CASE WHEN {quoted_text(number)}::xid8 > pg_current_xact_id() THEN 'aborted' WHEN"
            f" {status} = 'in progress' THEN 'in progress' WHEN false{staged} THEN 'aborted' ELSE"
            f" {status} END AS s"
        )
        with closing(self._store.connect(writing=True)) as other:
            result: str | None = other.value(sql, "Asking for a transaction")
            return result

    def rollback(self) -> None:
        try:
            if self._writer is not None and self._writing:
                self._writing = False
                with suppress(RowMergeError):
                    self._writer.execute("ROLLBACK", "Rolling back")
            for stage in self._stages:
                self._drop(stage)
        finally:
            self._stages.clear()
            self.end()

    def _drop(self, stage: Stage) -> None:
        sql = f"DROP TABLE IF EXISTS {_table(stage)}"
        try:
            self._connection().execute(sql, "Removing what was staged")
        except RowMergeError:
            # The connection may be lost, so use another one.
            with closing(self._store.connect(writing=True)) as other:
                other.execute(sql, "Removing what was staged")

    def end(self) -> None:
        for session in (self._reader, self._writer):
            if session is not None:
                session.close()
        self._reader = self._writer = None


def _table(stage: Stage) -> str:
    return f"{quoted(stage.schema)}.{quoted(stage.area)}"
