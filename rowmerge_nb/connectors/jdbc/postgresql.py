"""PostgreSQL: a server."""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.connectors.jdbc import postgresql_types as types
from rowmerge_nb.connectors.jdbc.connector import JdbcConnector, JdbcTransaction
from rowmerge_nb.connectors.jdbc.dsn import redacted, shown
from rowmerge_nb.connectors.jdbc.handles import Column, JdbcSplit, JdbcTableHandle, Stage
from rowmerge_nb.connectors.jdbc.staging import CopyWriter, StageWriter
from rowmerge_nb.connectors.jdbc.store import Reading, Session, Store, literal, quote, unsupported
from rowmerge_nb.errors import ConnectorError, ExecutionError, RowMergeError, SetupError
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.types import BIGINT, Type, row_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.spi.handles import ConnectorSession
    from rowmerge_nb.spi.metadata import ConnectorTableMetadata

__all__ = ["PostgresConnector", "PostgresStore"]

PREFIX: Final = "rowmerge_nb_stage_"
BATCH_BYTES: Final = 4 << 20
SPLIT_BLOCKS: Final = 16_384
"""128 MiB of a table with blocks of 8 KiB."""
SMALL_ROWS: Final = 10_000
COUNTED_BLOCKS: Final = 524_288
"""The rows of tables of more than 4 GiB are not counted."""
LOCK_SECONDS: Final = 30
VERSION: Final = "t.xmin::text::bigint"
"""The transaction that wrote a row's version: another one if the row has been changed since it was read.

It is part of the row id and so of every condition that finds a staged row. A statement that meets a row which another session is
changing waits for it, then looks at the condition again, and misses the row if the change was committed.
"""

_KINDS: Final = {"r": "table", "p": "table", "v": "view", "m": "materialized view", "f": "foreign table"}
_OWN_SCHEMAS: Final = "n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'"
_CONSTRAINT: Final = "23"


@dataclass(frozen=True, repr=False)
class PostgresStore(Store):
    """A database of a PostgreSQL server.

    Args:
        dsn: the connection string; it is shown nowhere.
    """

    dsn: str

    name = "PostgreSQL"
    extra = "postgresql"
    truncating = "TRUNCATE TABLE"
    has_schemas = True
    batch_option = ("adbc.postgresql.batch_size_hint_bytes", str(BATCH_BYTES))

    @property
    def shown(self) -> str:
        """Host, port and database."""
        return shown(self.dsn)

    def connect(self, *, writing: bool = False) -> Session:
        """Connect to the server."""
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError:
            msg = "The PostgreSQL connector needs the package adbc-driver-postgresql, which is not installed"
            raise SetupError(msg, hint="Run: pip install 'rowmerge-nb[postgresql]'") from None
        try:
            connection = dbapi.connect(self.dsn, autocommit=True)
        except Exception as error:  # noqa: BLE001 - whatever the driver raises is told as ours
            raise self._unreachable(error) from None
        session = Session(self, connection)
        try:
            # In one order every time: no sharing of scans, no parallel workers. Waiting for others has an end.
            session.execute(
                "SELECT set_config('synchronize_seqscans', 'off', false), set_config('max_parallel_workers_per_gather', '0', false), "
                "set_config('standard_conforming_strings', 'on', false), set_config('timezone', 'UTC', false), "
                f"set_config('lock_timeout', '{LOCK_SECONDS}s', false)",
                "Connecting",
            )
        except BaseException:
            session.close()
            raise
        return session

    def _unreachable(self, error: Exception) -> ConnectorError:
        """Say why there is no connection. What the server is not asked yet may hold parts of the connection string."""
        words = " ".join(str(error).split("Failed to connect: ")[-1].split())
        where = f"PostgreSQL at {self.shown}"
        if re.search(
            r"connection info string|invalid URI|connection option|could not parse|percent-encoded|IPv6|unexpected char", words
        ):
            msg = "The connection string for PostgreSQL cannot be read"
            hint = "It is of the form 'postgresql://user:password@host:port/database' or 'host=... dbname=... user=... password=...'."
            return ConnectorError(msg, code="JDBC_ERROR", hint=hint)
        words = redacted(words, self.dsn)
        if "authentication failed" in words or "no password supplied" in words or "role" in words:
            hint = "Correct user and password in the connection string."
            return ConnectorError(f"{where} refuses the connection: {words}", code="PERMISSION_DENIED", hint=hint)
        hint = "See that the server runs and that host, port and database are right: pg_isready tells."
        return ConnectorError(f"{where} cannot be reached: {words}", code="JDBC_ERROR", hint=hint)

    def translate(self, error: Exception, doing: str) -> RowMergeError:
        """Tell an error of the server by its state."""
        state = getattr(error, "sqlstate", None) or ""
        details = {key: value for key, value in (getattr(error, "details", None) or []) if isinstance(value, bytes)}
        found = {
            name: details.get(name) or details.get(name.encode())
            for name in ("PG_DIAG_MESSAGE_PRIMARY", "PG_DIAG_MESSAGE_DETAIL")
        }
        told = [value.decode("utf-8", "replace") for value in found.values() if value]
        words = redacted(": ".join(told) if told else " ".join(str(error).split()), self.dsn).rstrip(".")
        where = f"PostgreSQL at {self.shown}"
        again = "Run the statement again."
        if state.startswith(_CONSTRAINT):
            failed = ExecutionError(f"{doing} in {where} failed: {words}", code="CONSTRAINT_VIOLATION", step="finish_merge")
            failed.sqlstate = state  # type: ignore[attr-defined]
            return failed
        if state in {"40001", "40P01"}:
            return ExecutionError(
                f"{doing} in {where} failed: {words}", code="TRANSACTION_CONFLICT", step="finish_merge", hint=again
            )
        if state == "55P03":
            msg = f"{doing} in {where} failed: another session has held a lock for more than {LOCK_SECONDS} seconds"
            return ExecutionError(msg, code="TRANSACTION_CONFLICT", step="finish_merge", hint=f"End that transaction. {again}")
        if state in {"42501", "25006"}:
            hint = "GRANT the right to the connection's user."
            return ConnectorError(f"{doing} in {where} failed: {words}", code="PERMISSION_DENIED", hint=hint)
        if state in {"42P01", "3F000"}:
            code = "TABLE_NOT_FOUND" if state == "42P01" else "SCHEMA_NOT_FOUND"
            return ConnectorError(f"{doing} in {where} failed: {words}", code=code, hint=again)
        if state.startswith("22"):
            return ExecutionError(f"{doing} in {where} failed: {words}", code="INVALID_CAST_ARGUMENT", step="finish_merge")
        return ConnectorError(f"{doing} in {where} failed: {words}", code="JDBC_ERROR")

    def is_repeated_key(self, error: ExecutionError) -> bool:
        """Tell whether an error speaks of a key, or an exclusion, that would be there twice."""
        return getattr(error, "sqlstate", "") in {"23505", "23P01"}

    # -- reading --------------------------------------------------------------------------------------------------

    def reading(self, column: Column, *, key: bool = False) -> Reading:
        """Say how a column is read."""
        return types.value_reading(column)

    def row_id_type(self, handle: JdbcTableHandle) -> Type:
        """Give the key and the version of the row."""
        return row_of([*((column.name, column.type) for column in handle.key_columns), ("$version", BIGINT)])

    def row_id_readings(self, handle: JdbcTableHandle) -> list[Reading]:
        """Say how key and version are read."""
        return [*(types.value_reading(column) for column in handle.key_columns), Reading(VERSION.removeprefix("t."), pa.int64())]

    def range_of(self, split: JdbcSplit) -> str:
        """Give a range of blocks."""
        if split.low is None:
            return ""
        upper = "" if split.high is None else f" AND ctid < '({split.high},0)'::tid"
        return f"ctid >= '({split.low},0)'::tid{upper}"

    def begin_reading(self, session: Session, split: JdbcSplit) -> None:
        """See what the driver sees."""
        if split.snapshot:
            session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "Beginning to read")
            session.execute(f"SET TRANSACTION SNAPSHOT {literal(split.snapshot)}", "Beginning to read")

    def select(self, readings: Sequence[Reading], names: Sequence[str], source: str) -> str:
        """Write the query."""
        columns = (f"{reading.select} AS {name}" for reading, name in zip(readings, names, strict=True))
        return f"SELECT {', '.join(columns)} FROM {source}"

    def shown_value(self, reading: Reading) -> str:
        """Write the expression that shows a misfit."""
        return f"{reading.column}::text"

    # -- writing --------------------------------------------------------------------------------------------------

    def stage_writer(self, stage: Stage) -> StageWriter:
        """Make what copies an attempt's rows into the stage."""
        return CopyWriter(self, stage)

    def stage_columns(self, handle: JdbcTableHandle) -> list[tuple[str, pa.DataType, str]]:
        """Give the columns of a stage."""
        keys = [types.transport_type(column.type) for column in handle.key_columns] + [(pa.int64(), "bigint")]
        data = [types.transport_type(column.type) for column in handle.columns]
        control = [("a", pa.int64(), "bigint"), ("o", pa.int16(), "smallint"), ("n", pa.int32(), "integer")]
        return [
            *control,
            *((f"k{place}", kind, declared) for place, (kind, declared) in enumerate(keys)),
            *((f"c{place}", kind, declared) for place, (kind, declared) in enumerate(data)),
        ]

    def transported(self, column: Column, array: pa.Array) -> pa.Array:
        """Bring values into the form in which they are staged; a char's padding is the server's own affair."""
        if column.type.base == "char":
            return pc.utf8_rtrim(array.cast(pa.string()), " ")
        return array.cast(types.transport_type(column.type)[0])

    def transported_key(self, handle: JdbcTableHandle, parts: list[pa.Array]) -> list[pa.Array]:
        """Bring key and version into the form in which they are staged."""
        keys = [self.transported(column, part) for column, part in zip(handle.key_columns, parts, strict=False)]
        return [*keys, parts[-1]]

    def row_id_conditions(self, handle: JdbcTableHandle) -> list[str]:
        """Write what joins a table ``t`` to its stage ``s``: the key, and the version that was read."""
        keys = [f"t.{quote(column.name)} = s.k{place}{column.cast}" for place, column in enumerate(handle.key_columns)]
        return [*keys, f"{VERSION} = s.k{len(keys)}"]

    def staged_rows(self, handle: JdbcTableHandle, stage: str, operation: int) -> str:
        """Write the condition of a DELETE from ``t``."""
        conditions = [*self.row_id_conditions(handle), f"s.o = {int(operation)}"]
        return f"USING {stage} AS s WHERE {' AND '.join(conditions)}"

    def reinserting(self, handle: JdbcTableHandle, stage: str, insert: str, rows: int) -> list[str]:
        """Write the statement that takes updated rows out and puts them in anew.

        It is one, so that foreign keys, which are looked at when a statement ends, find the rows there.
        """
        gone = f"DELETE FROM {self.table(handle)} AS t {self.staged_rows(handle, stage, 3)} RETURNING 1"
        return [f"WITH gone AS ({gone}) {insert} AND (SELECT count(*) FROM gone) = {rows}"]

    def follower(self, session: Session, handle: JdbcTableHandle) -> str | None:
        """Give a table whose rows would change or go with rows that are taken out of this one."""
        found = session.query(
            f"SELECT conrelid::regclass::text AS name FROM pg_constraint WHERE contype = 'f' AND confdeltype IN ('c', 'n', 'd') "
            f"AND confrelid = {literal(self.table(handle))}::regclass"
        )
        return found[0]["name"] if found else None

    def changed(self, session: Session, sql: str, doing: str) -> int:
        """Run a statement; the server tells how many rows it touched."""
        return session.execute(sql, doing)


class PostgresTransaction(JdbcTransaction):
    """A statement on two connections: one keeps the state that is read, the other writes.

    They are two because the stage is filled after the state to be read was fixed, so that who sees that state does not see the stage.
    """

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._reader: Session | None = None
        self._writer: Session | None = None
        self._writing = False
        self._snapshot = ""
        self._stages: list[Stage] = []

    def reader(self) -> Session:
        """Give the connection that writes, if it does, since it sees what it has made; else the one that keeps the state."""
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
        """Give up the state that is read, whose lock DROP TABLE would wait for."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _connection(self) -> Session:
        if self._writer is None:
            self._writer = self._store.connect(writing=True)
        return self._writer

    # -- tables ---------------------------------------------------------------------------------------------------

    def find(self, name: SchemaTableName) -> JdbcTableHandle | None:
        """Find a table or view, whatever the case of its name's letters."""
        found = self.reader().query(
            "SELECT c.oid::bigint AS oid, n.nspname::text AS schema, c.relname::text AS name, c.relkind::text AS kind FROM pg_class c "
            f"JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {_OWN_SCHEMAS} "
            f"AND lower(n.nspname) = {literal(name.schema)} AND lower(c.relname) = {literal(name.table)} "
            f"AND c.relname NOT LIKE {literal(PREFIX.replace('_', chr(92) + '_') + '%')}"
        )
        if not found:
            return None
        if len(found) > 1:
            several = ", ".join(f'"{row["schema"]}"."{row["name"]}"' for row in found)
            msg = f"PostgreSQL has several tables '{name}' that differ in case only: {several}"
            raise ConnectorError(msg, code="AMBIGUOUS_NAME", hint="Rename all but one, or make a view of another name.")
        table = found[0]
        columns = [self._column(str(name), row) for row in self._catalog_columns(table["oid"])]
        lower = [column.name.lower() for column in columns]
        repeated = next((column.name for column in columns if lower.count(column.name.lower()) > 1), None)
        if repeated is not None:
            msg = f"PostgreSQL table '{name}' has several columns '{repeated.lower()}' that differ in case only"
            raise ConnectorError(msg, code="NOT_SUPPORTED", hint="Make a view that names them otherwise.")
        keys = self.reader().query(
            "SELECT a.attname::text AS name FROM pg_index i CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place) "
            f"JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number WHERE i.indrelid = {table['oid']} "
            "AND i.indisprimary ORDER BY k.place"
        )
        spelled = (table["schema"], table["name"])
        kind = _KINDS[table["kind"]]
        return JdbcTableHandle(name, spelled, tuple(columns), tuple(row["name"] for row in keys), kind, table["kind"] in "rm")

    def _catalog_columns(self, oid: int) -> list[dict[str, Any]]:
        return self.reader().query(
            "SELECT a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS declared, t.typname::text AS base, "
            "t.typtype::text AS category, a.atttypmod AS modifier, a.attnotnull AS required, a.attidentity::text AS identity, "
            "a.attgenerated::text AS generated, CASE WHEN a.attidentity <> '' THEN 'nextval(' || "
            "quote_literal(pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)) || '::regclass)' "
            "ELSE pg_get_expr(d.adbin, d.adrelid) END AS value "
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
        return Column(
            row["name"], kind, row["declared"], nullable, stands_in, bool(row["generated"]), row["identity"] == "a", cast
        )

    def names(self) -> list[SchemaTableName]:
        """Give the names of all tables and views."""
        found = self.reader().query(
            "SELECT lower(n.nspname) AS schema, lower(c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {_OWN_SCHEMAS} "
            f"AND c.relname NOT LIKE {literal(PREFIX.replace('_', chr(92) + '_') + '%')} ORDER BY 1, 2"
        )
        return [SchemaTableName(row["schema"], row["name"]) for row in found]

    def schemas(self) -> list[str]:
        """Give the names of all schemas that are not the server's own."""
        found = self.reader().query(f"SELECT n.nspname::text AS name FROM pg_namespace n WHERE {_OWN_SCHEMAS}")
        return [row["name"] for row in found]

    def row_count(self, handle: JdbcTableHandle) -> int | None:
        """Count the rows of tables that are not huge."""
        if handle.kind not in {"table", "materialized view"} or self._blocks(handle) > COUNTED_BLOCKS:
            return None
        return int(self.reader().value(f"SELECT count(*) AS n FROM {self._store.table(handle)}"))

    def _blocks(self, handle: JdbcTableHandle) -> int:
        # A view has no size of its own.
        name = literal(self._store.table(handle))
        sql = f"SELECT coalesce(pg_relation_size({name}::regclass), 0) / current_setting('block_size')::bigint AS n"
        return int(self.reader().value(sql))

    def splits(self, handle: JdbcTableHandle) -> list[JdbcSplit]:
        """Cut a large table into ranges of blocks, all of which are read in the state that the driver keeps."""
        if not self._snapshot:
            self._snapshot = self.reader().value("SELECT pg_export_snapshot() AS s")
        blocks = self._blocks(handle) if handle.ranges else 0
        if blocks > SPLIT_BLOCKS:
            lows = range(0, blocks, SPLIT_BLOCKS)
            # The last one is open: the table may have grown.
            return [JdbcSplit(low, low + SPLIT_BLOCKS if low + SPLIT_BLOCKS < blocks else None, self._snapshot) for low in lows]
        rows = self.row_count(handle)
        return [JdbcSplit(snapshot=self._snapshot, small=rows is not None and rows <= SMALL_ROWS)]

    def create_table(self, metadata: ConnectorTableMetadata, key: Sequence[str]) -> None:
        """Make a table; its columns' names are in lower case, as the server itself makes names that are not quoted."""
        parts = []
        for column in metadata.columns:
            declared = types.declared_type(column.type)
            if declared is None:
                why = "which PostgreSQL has no counterpart of here"
                raise unsupported(self._store, str(metadata.name), column.name, str(column.type), why, "Use another type.")
            parts.append(f"{quote(column.name.lower())} {declared}{'' if column.nullable else ' NOT NULL'}")
        if key:
            parts.append(f"PRIMARY KEY ({', '.join(quote(name.lower()) for name in key)})")
        schema = next((name for name in self.schemas() if name.lower() == metadata.name.schema), metadata.name.schema)
        table = f"{quote(schema)}.{quote(metadata.name.table)}"
        self.writer().execute(f"CREATE TABLE {table} ({', '.join(parts)})", f"Creating table '{metadata.name}'")

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
            msg = f"{sum(attempts.values())} rows were staged, and {sum(staged.values())} of them are there"
            raise ExecutionError(msg, step="finish_merge")
        # Without numbers of rows the server would guess them, and choose its joins badly.
        writer.execute(f"ANALYZE {table}", "Staging rows")
        return table

    def check_unchanged(self) -> None:
        """Every row's version is compared when it is changed."""

    def commit(self) -> None:
        """Commit the removal of the stage along with the changes."""
        if self._writer is not None and self._stages:
            self.writer()
            for stage in self._stages:
                self._writer.execute(f"DROP TABLE {_table(stage)}", "Committing")
        if self._writer is not None and self._writing:
            self._writer.execute("COMMIT", "Committing")
            self._writing = False
        self._stages.clear()
        self._end()

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
            self._end()

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

    def _end(self) -> None:
        for session in (self._reader, self._writer):
            if session is not None:
                session.close()
        self._reader = self._writer = None


def _table(stage: Stage) -> str:
    return f"{quote(stage.schema)}.{quote(stage.place)}"


def orphans(session: Session) -> list[Stage]:
    """List stages whose drivers have died: their locks are free."""
    found = session.query(
        "SELECT n.nspname::text AS schema, c.relname::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE c.relkind = 'r' AND c.relname LIKE {literal(PREFIX.replace('_', chr(92) + '_') + '%')} ORDER BY 1, 2"
    )
    free = []
    for row in found:
        number = re.search(r"_([0-9a-f]{16})$", row["name"])
        if number is None:
            continue
        key = int(number[1], 16)
        if session.value(f"SELECT pg_try_advisory_lock({key}) AS free"):
            session.value(f"SELECT pg_advisory_unlock({key}) AS freed")
            free.append(Stage(row["name"], row["schema"]))
    return free


def remove_orphans(session: Session) -> list[Stage]:
    """Remove stages whose drivers have died."""
    found = orphans(session)
    for stage in found:
        # Somebody else may be removing it, or own it.
        with suppress(RowMergeError):
            session.execute(f"DROP TABLE IF EXISTS {_table(stage)}", "Removing what was left behind")
    return found


class PostgresConnector(JdbcConnector):
    """The tables of a PostgreSQL database. Needs ``pip install 'rowmerge-nb[postgresql]'``.

    Args:
        dsn: the connection string, ``postgresql://user:password@host:port/database`` or ``host=... dbname=...``. It travels to tasks, and
            shows in no report, trace or error. A ``.pgpass`` file or ``PGPASSWORD`` keeps the password out of it.

    >>> PostgresConnector("postgresql://ann:secret@db:5432/shop")
    PostgresConnector(host=db port=5432 dbname=shop)
    """

    name = "postgresql"
    store: PostgresStore

    def __init__(self, dsn: str) -> None:
        super().__init__(PostgresStore(dsn))

    def new_transaction(self) -> PostgresTransaction:
        """Make a transaction."""
        return PostgresTransaction(self.store)

    def orphans(self) -> list[str]:
        """List staging tables of drivers that have died."""
        session = self.store.connect()
        try:
            return [f"{stage.schema}.{stage.place}" for stage in orphans(session)]
        finally:
            session.close()

    def remove_orphans(self) -> list[str]:
        """Remove staging tables of drivers that have died."""
        session = self.store.connect(writing=True)
        try:
            return [f"{stage.schema}.{stage.place}" for stage in remove_orphans(session)]
        finally:
            session.close()
