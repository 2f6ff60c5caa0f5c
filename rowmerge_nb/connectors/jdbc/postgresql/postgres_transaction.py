"""PostgreSQL: transactions, tables and stages of a server; `postgresql_store` has its SQL."""

from __future__ import annotations

import json
import re
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError, ExecutionError, RowMergeError
from rowmerge_nb.base.names import quoted
from rowmerge_nb.connectors.jdbc.altering import comment_sql
from rowmerge_nb.connectors.jdbc.connector import JdbcTransaction
from rowmerge_nb.connectors.jdbc.database import Session, literal, unsupported
from rowmerge_nb.connectors.jdbc.handles import Column, JdbcSplit, JdbcTableHandle, Stage
from rowmerge_nb.connectors.jdbc.postgresql import postgres_types as types
from rowmerge_nb.connectors.jdbc.postgresql.orphaned_stages import PREFIX, remove_orphans
from rowmerge_nb.connectors.jdbc.postgresql.postgres_session import PostgresSession
from rowmerge_nb.connectors.jdbc.postgresql.postgres_store import PostgresStore
from rowmerge_nb.connectors.jdbc.predicates import predicate_of
from rowmerge_nb.connectors.shared.orphans import this_process
from rowmerge_nb.spi.handles import SchemaTableName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.spi.handles import ConnectorSession
    from rowmerge_nb.spi.metadata import ConnectorTableMetadata
    from rowmerge_nb.spi.page_source import ColumnDomain
    from rowmerge_nb.spi.types import Type

SPLIT_BLOCKS: Final = 16_384
"""128 MiB of a table with blocks of 8 KiB."""
SPLIT_ROWS: Final = 500_000
"""So many rows of known keys are read by one task."""
SMALL_ROWS: Final = 10_000
ASKING_SECONDS: Final = 10.0
"""So long a server is asked what has become of a commit whose answer was lost."""
COUNTED_BLOCKS: Final = 524_288
"""The rows of tables of more than 4 GiB are not counted."""

_KINDS: Final = {"r": "table", "p": "table", "v": "view", "m": "materialized view", "f": "foreign table"}
_COUNTED: Final = ("table", "materialized view")
_OWN_SCHEMAS: Final = "n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"


class PostgresTransaction(JdbcTransaction):
    """A statement on two connections: one keeps the state that is read, the other writes.

    They are two because the stage is filled after the state to be read was fixed, so that who sees that state does not see the stage.
    """

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._reader: PostgresSession | None = None
        self._writer: PostgresSession | None = None
        self._writing = False
        self._snapshot = ""
        self._stages: list[Stage] = []

    def reader(self) -> Session:
        """Return the connection that writes, if it does, since it sees what it has made; else the one that keeps the state."""
        if self._writer is not None and self._writing:
            return self._writer
        if self._reader is None:
            self._reader = self._store.connect()
            self._reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "Beginning to read")
        return self._reader

    def writer(self) -> Session:
        """Begin to write. Every statement sees what is there when it begins, the stage above all; see `VERSION`."""
        writer = self._connection()
        if not self._writing:
            writer.execute("BEGIN ISOLATION LEVEL READ COMMITTED", "Beginning to write")
            self._writing = True
        return writer

    def release(self) -> None:
        """Release the state that is read, whose lock DROP TABLE would wait for."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _connection(self) -> PostgresSession:
        if self._writer is None:
            self._writer = self._store.connect(writing=True)
            # In the middle of a long statement a server does not notice that its client is gone, and keeps its locks. Not all versions have
            # the setting, and not all systems take the value, which is an error of the value; a connection that is lost is another one.
            try:
                self._writer.query(
                    "SELECT set_config(name, '2s', false) AS told FROM pg_settings WHERE name = 'client_connection_check_interval'",
                    "Connecting",
                )
            except ConnectorError as error:
                if error.code != "INVALID_ARGUMENTS":
                    raise
        return self._writer

    # -- tables ---------------------------------------------------------------------------------------------------

    def find(self, name: SchemaTableName) -> JdbcTableHandle | None:
        """Find a table or view, whatever the case of its name's letters."""
        found = self.reader().query(
            "SELECT c.oid::bigint AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind, "
            "obj_description(c.oid, 'pg_class') AS comment, "
            "c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid) AS inherited FROM pg_class c "
            f"JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {_OWN_SCHEMAS} "
            f"AND lower(n.nspname) = {literal(name.schema)} AND lower(c.relname) = {literal(name.table)} "
            f"AND c.relname NOT LIKE {literal(PREFIX.replace('_', chr(92) + '_') + '%')}"
        )
        if not found:
            return None
        if len(found) > 1:
            several = ", ".join(f'"{row["schema"]}"."{row["name"]}"' for row in found)
            raise ConnectorError(
                f"PostgreSQL has several tables '{name}' that differ in case only: {several}",
                code="AMBIGUOUS_NAME",
                hint="Rename all but one, or make a view of another name.",
            )
        table = found[0]
        columns = [self._column(str(name), row) for row in self._catalog_columns(table["oid"])]
        lower = [column.name.lower() for column in columns]
        repeated = next((column.name for column in columns if lower.count(column.name.lower()) > 1), None)
        if repeated is not None:
            raise ConnectorError(
                f"PostgreSQL table '{name}' has several columns '{repeated.lower()}' that differ in case only",
                code="NOT_SUPPORTED",
                hint="Make a view that names them otherwise.",
            )
        keys = self.reader().query(
            "SELECT a.attname::text AS name FROM pg_index i CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place) "
            f"JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number WHERE i.indrelid = {table['oid']} "
            "AND i.indisprimary ORDER BY k.place"
        )
        spelled = (table["schema"], table["name"])
        kind = _KINDS[table["kind"]]
        # Among the rows of tables that inherit from it a key may be there several times.
        key = () if table["inherited"] else tuple(row["name"] for row in keys)
        return JdbcTableHandle(name, spelled, tuple(columns), key, kind, table["kind"] in "rm", table["comment"])

    def _catalog_columns(self, oid: int) -> list[dict[str, Any]]:
        return self.reader().query(
            "SELECT a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS declared, t.typname::text AS base, "
            "CASE WHEN t.typtype = 'b' AND t.typnamespace <> 'pg_catalog'::regnamespace THEN 'x' ELSE t.typtype END::text AS category, a.atttypmod AS modifier, a.attnotnull AS required, a.attidentity::text AS identity, "
            "a.attgenerated::text AS generated, CASE WHEN a.attidentity <> '' THEN 'nextval(' || "
            "quote_literal(pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)) || '::regclass)' "
            "ELSE pg_get_expr(d.adbin, d.adrelid) END AS value, col_description(a.attrelid, a.attnum) AS comment "
            "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
            "LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
            f"WHERE a.attrelid = {oid} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        )

    def _column(self, table: str, row: dict[str, Any]) -> Column:
        kind = types.type_of(row["base"], row["category"], row["modifier"])
        if kind is None:
            hint = "Make a view that leaves the column out or casts it"
            hint += ", or declare precision and scale." if row["base"] == "numeric" else "."
            raise unsupported(self._store, table, row["name"], row["declared"], "which has no counterpart", hint)
        stands_in = row["value"] if row["required"] and not row["generated"] else None
        nullable = not row["required"] or stands_in is not None
        cast = types.cast_of(row["base"], row["category"], row["declared"])
        generated, always = bool(row["generated"]), row["identity"] == "a"
        return Column(row["name"], kind, row["declared"], nullable, stands_in, generated, always, cast, row["comment"])

    def names(self) -> list[SchemaTableName]:
        """Return the names of all tables and views."""
        found = self.reader().query(
            "SELECT lower(n.nspname) AS schema, lower(c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {_OWN_SCHEMAS} "
            f"AND c.relname NOT LIKE {literal(PREFIX.replace('_', chr(92) + '_') + '%')} ORDER BY 1, 2"
        )
        return [SchemaTableName(row["schema"], row["name"]) for row in found]

    def schemas(self) -> list[str]:
        """Return the names of all schemas that are not the server's own."""
        found = self.reader().query(f"SELECT n.nspname::text AS name FROM pg_namespace n WHERE {_OWN_SCHEMAS}")
        return [row["name"] for row in found]

    def row_count(self, handle: JdbcTableHandle) -> int | None:
        """Count the rows of tables that are not huge."""
        if handle.kind not in _COUNTED or self._blocks(handle) > COUNTED_BLOCKS:
            return None
        return int(self.reader().value(f"SELECT count(*) AS n FROM {self._store.table(handle)}"))

    def _blocks(self, handle: JdbcTableHandle) -> int:
        # A view has no size of its own.
        name = literal(self._store.table(handle))
        sql = f"SELECT coalesce(pg_relation_size({name}::regclass), 0) / current_setting('block_size')::bigint AS n"
        return int(self.reader().value(sql))

    def splits(self, handle: JdbcTableHandle, domains: Mapping[str, ColumnDomain]) -> list[JdbcSplit]:
        """Cut a large table into ranges of blocks, all of which are read in the state that the driver keeps."""
        if not self._snapshot:
            self._snapshot = self.reader().value("SELECT pg_export_snapshot() AS s")
        unicode = bool(domains) and self.reader().value("SELECT current_setting('server_encoding') AS e") == "UTF8"
        predicate, by_key = predicate_of(handle, domains, lambda column: self._store.terms(column, unicode=unicode))
        blocks = self._blocks(handle) if handle.ranges else 0
        rows = self._rows(handle, predicate) if by_key or blocks <= SPLIT_BLOCKS else None
        if rows is not None and rows <= SMALL_ROWS:
            return [JdbcSplit(snapshot=self._snapshot, small=True, predicate=predicate)]
        # The key leads to rows wherever they lie; every range would ask its index anew.
        if blocks > SPLIT_BLOCKS and not (by_key and rows is not None and rows <= SPLIT_ROWS):
            lows = range(0, blocks, SPLIT_BLOCKS)
            # The last one is open: the table may have grown.
            highs = [*lows[1:], None]
            return [JdbcSplit(low, high, self._snapshot, predicate=predicate) for low, high in zip(lows, highs, strict=True)]
        return [JdbcSplit(snapshot=self._snapshot, predicate=predicate)]

    def _rows(self, handle: JdbcTableHandle, predicate: str) -> int | None:
        """Count the rows that matter, not more of them than decide anything."""
        if not predicate:
            return self.row_count(handle)
        if handle.kind not in _COUNTED:
            return None
        some = f"SELECT 1 FROM {self._store.table(handle)} WHERE {predicate} LIMIT {SPLIT_ROWS + 1}"
        return int(self.reader().value(f"SELECT count(*) AS n FROM ({some}) AS bounded"))

    def longest_name(self) -> int:
        """Ask the server, which cuts longer names."""
        return int(self.reader().value("SELECT current_setting('max_identifier_length')::bigint AS n"))

    def declared(self, table: SchemaTableName, column: str, kind: Type) -> str:
        """Return PostgreSQL's name of a type."""
        found = types.declared_type(kind)
        if found is None:
            raise unsupported(
                self._store, str(table), column, str(kind), "which PostgreSQL has no counterpart of here", "Use another type."
            )
        return found

    def create_table(self, metadata: ConnectorTableMetadata, key: Sequence[str]) -> None:
        """Make a table; its columns' names are in lower case, as the server itself makes names that are not quoted."""
        parts = []
        for column in metadata.columns:
            declared = self.declared(metadata.name, column.name, column.type)
            parts.append(f"{quoted(column.name.lower())} {declared}{'' if column.nullable else ' NOT NULL'}")
        if key:
            parts.append(f"PRIMARY KEY ({', '.join(quoted(name.lower()) for name in key)})")
        schema = next((name for name in self.schemas() if name.lower() == metadata.name.schema), metadata.name.schema)
        table = f"{quoted(schema)}.{quoted(metadata.name.table)}"
        self.writer().execute(f"CREATE TABLE {table} ({', '.join(parts)})", f"Creating table '{metadata.name}'")
        comments = [(f"TABLE {table}", metadata.comment)]
        comments += [(f"COLUMN {table}.{quoted(column.name.lower())}", column.comment) for column in metadata.columns]
        for what, comment in comments:
            if comment is not None:
                self.writer().execute(comment_sql(what, comment), f"Commenting on table '{metadata.name}'")

    # -- stages ---------------------------------------------------------------------------------------------------

    def begin_stage(self, session: ConnectorSession, handle: JdbcTableHandle) -> Stage:
        """Make a table beside the target.

        As long as this transaction's connection lives it holds a lock of the table's number; who finds a stage whose lock is free has
        found one that nobody will apply.
        """
        writer = self._store.connect(writing=True) if self._writing else self._connection()
        try:
            remove_orphans(writer)
            number = secrets.randbits(62)
            self._connection().query(f"SELECT pg_advisory_lock({number})::text AS locked")
            query = re.sub(r"\W", "", session.query_id.lower())[-20:]
            stage = Stage(f"{PREFIX}{query}_{number:016x}", handle.spelled[0])
            columns = ", ".join(f"{name} {declared}" for name, _, declared in self._store.stage_columns(handle))
            writer.execute(f"CREATE UNLOGGED TABLE {_table(stage)} ({columns})", "Making a table for staging")
            self._stages.append(stage)
            told = json.dumps({"statement": session.query_id, "process": this_process(), "began": time.time()})
            writer.execute(f"COMMENT ON TABLE {_table(stage)} IS {literal(told)}", "Making a table for staging")
        finally:
            if writer is not self._writer:
                writer.close()
        return stage

    def collect(self, handle: JdbcTableHandle, stage: Stage, attempts: Mapping[int, int]) -> str:
        """Remove the rows of attempts that do not count, and see that all others are there."""
        writer, table = self.writer(), _table(stage)
        listed = ", ".join(map(str, attempts))
        # An attempt that was given up may be writing still.
        writer.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE", "Staging rows")
        writer.execute(f"DELETE FROM {table} WHERE a NOT IN ({listed})", "Staging rows")
        staged = {row["a"]: row["rows"] for row in writer.query(f"SELECT a, count(*) AS rows FROM {table} GROUP BY a")}
        if staged != attempts:
            raise ExecutionError(
                f"{sum(attempts.values())} rows were staged, and {sum(staged.values())} of them are there", step="finish_merge"
            )
        # Without numbers of rows the server would guess them, and choose its joins badly.
        writer.execute(f"ANALYZE {table}", "Staging rows")
        return table

    def hold(self, handle: JdbcTableHandle) -> None:
        """Take the lock that ALTER TABLE needs, before anybody else does."""
        self.writer().execute(
            f"LOCK TABLE {self._store.table(handle)} IN ACCESS EXCLUSIVE MODE", f"Locking table '{handle.name}'"
        )

    def check_unchanged(self) -> None:
        """Every row's version is compared when it is changed."""

    def commit(self) -> None:
        """Commit the removal of the stage along with the changes; if the answer is lost, ask what has become of it.

        Raises:
            ConnectorError: nothing was changed; or, with ``changed=None``, the server cannot be asked.
        """
        if self._writer is not None and self._stages:
            self.writer()
            for stage in self._stages:
                self._writer.execute(f"DROP TABLE {_table(stage)}", "Committing")
        if self._writer is not None and self._writing:
            number = self._writer.value("SELECT pg_current_xact_id_if_assigned()::text AS n", "Committing")
            # Triggers that were put off run now.
            self._writer.use_own_settings()
            try:
                self._writer.execute("COMMIT", "Committing")
            except RowMergeError as error:
                if not self._has_landed(number, error):
                    raise
            self._writing = False
        self._stages.clear()

    def _has_landed(self, number: str | None, error: RowMergeError) -> bool:
        """Ask over another connection whether a transaction was committed whose COMMIT came to no answer.

        Raises:
            ConnectorError: JDBC_ERROR with ``changed=None``, the server does not answer, or does not know.
        """
        if number is None:
            # It has changed nothing.
            return False
        status: str | None = None
        end = time.monotonic() + ASKING_SECONDS
        while status in {None, "in progress"} and time.monotonic() < end:
            try:
                status = self._status(number)
            except RowMergeError:
                # A server that starts again takes no connections for a while.
                status = None
            if status in {None, "in progress"}:
                time.sleep(0.2)
        if status in {"committed", "aborted"}:
            return status == "committed"
        self._stages.clear()
        self.end()
        raise ConnectorError(
            f"The outcome is unknown: PostgreSQL at {self._store.shown} did not say whether the transaction was committed: {error.message}",
            code="JDBC_ERROR",
            hint=f"Once the server runs, SELECT pg_xact_status('{number}') tells. Do not run the statement again before.",
            changed=None,
        )

    def _status(self, number: str) -> str | None:
        """Ask for the state of a transaction.

        A server that was stopped may have lost a transaction altogether that was not committed: then its number is yet to be given, or is
        another's by now. A stage that is there says that its removal, which goes with the changes, was not committed.
        """
        staged = "".join(f" OR to_regclass({literal(_table(stage))}) IS NOT NULL" for stage in self._stages)
        known = f"pg_xact_status({literal(number)}::xid8)"
        sql = (
            f"SELECT CASE WHEN {literal(number)}::xid8 > pg_current_xact_id() THEN 'aborted' WHEN {known} = 'in progress' THEN 'in progress' "
            f"WHEN false{staged} THEN 'aborted' ELSE {known} END AS s"
        )
        other = self._store.connect(writing=True)
        try:
            found: str | None = other.value(sql, "Asking for a transaction")
            return found
        finally:
            other.close()

    def rollback(self) -> None:
        """Undo everything, then remove the stage."""
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
            # The connection may be lost; another one will do.
            other = self._store.connect(writing=True)
            try:
                other.execute(sql, "Removing what was staged")
            finally:
                other.close()

    def end(self) -> None:
        """Close both connections."""
        for session in (self._reader, self._writer):
            if session is not None:
                session.close()
        self._reader = self._writer = None


def _table(stage: Stage) -> str:
    return f"{quoted(stage.schema)}.{quoted(stage.area)}"
