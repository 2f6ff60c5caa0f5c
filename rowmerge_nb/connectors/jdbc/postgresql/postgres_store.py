"""PostgreSQL as a store: connections, errors, and its SQL."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.conninfo import with_safe_path
from rowmerge_nb.base.errors import ConnectorError, ExecutionError, RowMergeError
from rowmerge_nb.base.names import quoted, quoted_text
from rowmerge_nb.connectors.jdbc.database import DatabaseSession, Follower, Reading, Store
from rowmerge_nb.connectors.jdbc.dsn import redacted, shown, startup_options
from rowmerge_nb.connectors.jdbc.postgresql import postgres_types as types
from rowmerge_nb.connectors.jdbc.postgresql.postgres_errors import translated
from rowmerge_nb.connectors.jdbc.postgresql.postgres_predicates import terms_of
from rowmerge_nb.connectors.jdbc.postgresql.postgres_session import PostgresSession
from rowmerge_nb.connectors.jdbc.staging import CopyWriter, StageWriter
from rowmerge_nb.spi import Type
from rowmerge_nb.spi.types import BIGINT, row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.connectors.jdbc.jdbc_handles import (
        JdbcColumn,
        JdbcSplit,
        JdbcTableHandle,
        Stage,
    )

BATCH_BYTES: Final = 4 << 20
VERSION: Final = "t.xmin::pg_catalog.text::pg_catalog.int8"
"""The transaction that wrote a row's version, which changes with the row.

It is part of the row id, and so of every condition that finds a staged row. A statement waits for
another session's change of a row, then evaluates the condition again, and misses the row if the
change was committed.
"""


class _Databases(threading.local):
    """The databases of a thread, which its connections share.

    Opening a database takes a connection, and reads all types of the server.
    """

    def __init__(self) -> None:
        self._by_dsn: dict[str, Any] = {}

    def get(self, dsn: str) -> Any:
        if dsn not in self._by_dsn:
            self._by_dsn[dsn] = import_module("adbc_driver_postgresql").connect(dsn)
        return self._by_dsn[dsn]


_databases: Final = _Databases()


class _SharedDatabase:
    """What a connection closes at its end in place of its database, which stays open."""

    def close(self) -> None: ...


def _connection(driver: Any, dsn: str) -> Any:
    from adbc_driver_manager import AdbcConnection

    connection = AdbcConnection(_databases.get(dsn))
    return driver.Connection(_SharedDatabase(), connection, autocommit=True)


@dataclass(frozen=True, repr=False)
class PostgresStore(Store):
    dsn: str

    name = "PostgreSQL"
    extra = "postgresql"
    truncating = "TRUNCATE TABLE"
    has_schemas = True
    alters_columns = True
    undeclared = "which has no counterpart in PostgreSQL here"
    stores_comments = True
    keeps_negative_zero = True
    keeps_others_out = False
    equals = "OPERATOR(pg_catalog.=)"
    most_columns = 1_600
    staged_beside = 4
    batch_option = ("adbc.postgresql.batch_size_hint_bytes", str(BATCH_BYTES))

    def column_name(self, name: str) -> str:
        return name.lower()

    @property
    def shown(self) -> str:
        return shown(self.dsn)

    def connect(self, *, writing: bool = False) -> PostgresSession:
        driver = self.driver()
        try:
            connection = self._connected(driver)
        except Exception as error:  # noqa: BLE001 - any error of the driver is converted
            raise self._unreachable(error) from None
        session = PostgresSession(self, connection, startup_options(self.dsn))
        try:
            session.prepare()
        except BaseException:
            session.close()
            raise
        return session

    def _connected(self, driver: Any) -> Any:
        try:
            return _connection(driver, with_safe_path(self.dsn))
        except Exception as error:
            # Some poolers do not support options.
            if "unsupported startup parameter" not in str(error):
                raise
            return _connection(driver, self.dsn)

    def _unreachable(self, error: Exception) -> ConnectorError:
        words = " ".join(str(error).split("Failed to connect: ")[-1].split())
        subject = f"PostgreSQL at {self.shown}"
        if re.search(
            r"connection info string|invalid URI|connection option|could not"
            r" parse|percent-encoded|IPv6|unexpected char",
            words,
        ):
            return ConnectorError(
                "The connection string for PostgreSQL cannot be read",
                code="JDBC_ERROR",
                hint=(
                    "It is of the form 'postgresql://user:password@host:port/database' or 'host=..."
                    " dbname=... user=... password=...'."
                ),
            )
        words = redacted(words, self.dsn)
        if "too many" in words or "remaining connection slots" in words:
            return ConnectorError(
                f"{subject} accepts no more connections: {words}",
                code="JDBC_ERROR",
                hint=(
                    "Each task of a statement has its own connection: raise"
                    " max_connections, or run fewer tasks at a time."
                ),
            )
        if "authentication failed" in words or "no password supplied" in words or "role" in words:
            return ConnectorError(
                f"{subject} refuses the connection: {words}",
                code="PERMISSION_DENIED",
                hint="Correct user and password in the connection string.",
            )
        return ConnectorError(
            f"{subject} cannot be reached: {words}",
            code="JDBC_ERROR",
            hint=(
                "Check that the server is running and that host, port and database are right, for"
                " example with pg_isready."
            ),
        )

    def translate(self, error: Exception, doing: str) -> RowMergeError:
        return translated(error, doing, f"PostgreSQL at {self.shown}", self.dsn)

    def is_repeated_key(self, error: ExecutionError) -> bool:
        return getattr(error, "sqlstate", "") in {"23505", "23P01"}

    # -- reading

    declared_type = staticmethod(types.declared_type)
    reading = staticmethod(types.value_reading)
    terms = staticmethod(terms_of)

    def cast_of(self, declared: str) -> str:
        return types.cast_of(declared, "b", declared)

    def row_id_type(self, handle: JdbcTableHandle) -> Type:
        return row_of(
            [*((column.name, column.type) for column in handle.key_columns), ("$version", BIGINT)]
        )

    def row_id_readings(self, handle: JdbcTableHandle) -> list[Reading]:
        return [
            *(types.value_reading(column) for column in handle.key_columns),
            Reading(VERSION.removeprefix("t."), pa.int64()),
        ]

    def range_of(self, split: JdbcSplit) -> str:
        if split.low is None:
            return ""
        upper = "" if split.high is None else f" AND ctid < '({split.high},0)'::tid"
        return f"ctid >= '({split.low},0)'::tid{upper}"

    def begin_reading(self, session: DatabaseSession, split: JdbcSplit) -> None:
        """Use the split's snapshot, and a stable order of rows."""
        if split.predicate:
            # A retried attempt must read rows in the same order, even if the planner's statistics
            # changed: bitmap scans and table scans both return physical order.
            settings = (
                "SELECT set_config('enable_indexscan', 'off', false),"
                " set_config('enable_indexonlyscan', 'off', false)"
            )
            session.execute(settings, "Beginning to read")
        if split.snapshot:
            session.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", "Beginning to read")
            session.execute(
                f"SET TRANSACTION SNAPSHOT {quoted_text(split.snapshot)}", "Beginning to read"
            )

    def select(self, readings: Sequence[Reading], names: Sequence[str], source: str) -> str:
        columns = (
            f"{reading.select} AS {name}" for reading, name in zip(readings, names, strict=True)
        )
        return f"SELECT {', '.join(columns)} FROM {source}"

    def shown_value(self, reading: Reading) -> str:
        return f"{reading.column}::text"

    def address(self, handle: JdbcTableHandle) -> str:
        if not handle.key:
            return "'ctid ' || ctid::text" if handle.ranges else ""
        return " || ', ' || ".join(
            f"{quoted_text(f'{name} = ')} || {quoted(name)}::text" for name in handle.key
        )

    # -- writing

    def stage_writer(self, stage: Stage) -> StageWriter:
        return CopyWriter(self, stage)

    def stage_columns(self, handle: JdbcTableHandle) -> list[tuple[str, pa.DataType, str]]:
        keys = [types.transport_type(column.type) for column in handle.key_columns]
        data = [types.transport_type(column.type) for column in handle.columns]
        return [
            ("a", pa.int64(), "bigint"),
            ("o", pa.int16(), "smallint"),
            ("n", pa.int32(), "integer"),
            *((f"k{i}", *types_of) for i, types_of in enumerate([*keys, (pa.int64(), "bigint")])),
            *((f"c{i}", *types_of) for i, types_of in enumerate(data)),
        ]

    def transported(self, column: JdbcColumn, array: pa.Array) -> pa.Array:
        if column.type.base == "char":
            return pc.utf8_rtrim(array.cast(pa.string()), " ")
        return array.cast(types.transport_type(column.type)[0])

    def transported_key(self, handle: JdbcTableHandle, parts: list[pa.Array]) -> list[pa.Array]:
        keys = [
            self.transported(column, part)
            for column, part in zip(handle.key_columns, parts, strict=False)
        ]
        return [*keys, parts[-1]]

    def row_id_conditions(self, handle: JdbcTableHandle) -> list[str]:
        parts = [f"t.{quoted(column.name)}" for column in handle.key_columns]
        casts = [*(column.cast for column in handle.key_columns), ""]
        return [
            f"{part} {self.equals} s.k{index}{casts[index]}"
            for index, part in enumerate([*parts, VERSION])
        ]

    def staged_rows(self, handle: JdbcTableHandle, stage: str, operation: int) -> str:
        conditions = [*self.row_id_conditions(handle), f"s.o {self.equals} {int(operation)}"]
        return f"USING {stage} AS s WHERE {' AND '.join(conditions)}"

    def reinserting(self, handle: JdbcTableHandle, stage: str, insert: str, rows: int) -> list[str]:
        """Build a single statement, because foreign keys are checked at its end."""
        deletion = (
            f"DELETE FROM {self.table(handle)} AS t {self.staged_rows(handle, stage, 3)}"
            " RETURNING 1"
        )
        return [
            (
                f"WITH gone AS ({deletion}) {insert} AND (SELECT pg_catalog.count(*) FROM gone)"
                f" {self.equals} {rows}"
            )
        ]

    def triggers(self, session: DatabaseSession, handle: JdbcTableHandle) -> list[str]:
        table = f"{quoted_text(self.table(handle))}::regclass"
        # Partitions may have their own triggers.
        tables = f"(SELECT {table} UNION SELECT relid FROM pg_partition_tree({table}))"
        rows = session.query(
            "SELECT tgname::text AS name FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <>"
            f" 'D' AND tgtype::int & 28 <> 0 AND tgrelid IN {tables} UNION SELECT rulename::text"
            f" FROM pg_rewrite WHERE ev_type <> '1' AND ev_class IN {tables} ORDER BY name"
        )
        return [row["name"] for row in rows]

    def followers(self, session: DatabaseSession, handle: JdbcTableHandle) -> list[Follower]:
        table = f"{quoted_text(self.table(handle))}::regclass"
        keys = session.query(
            'SELECT c.conrelid::regclass::text AS name, a.attname::text AS "column",'
            " c.confdeltype IN ('c', 'n', 'd') AS gone, c.confupdtype IN ('c', 'n', 'd') AS moved"
            " FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.confrelid AND a.attnum ="
            f" ANY (c.confkey) WHERE c.contype = 'f' AND c.confrelid = {table}"
        )
        return [
            *map(Follower.trigger, self.triggers(session, handle)),
            *(Follower.table(row["name"]) for row in keys if row["gone"]),
            *(Follower.table(row["name"], row["column"]) for row in keys if row["moved"]),
        ]

    def bound_tables(self, session: DatabaseSession, handle: JdbcTableHandle) -> list[str]:
        """Return none: PostgreSQL refuses to drop a referenced table."""
        return []

    def changed(self, session: DatabaseSession, sql: str, doing: str) -> int:
        """Run a statement with the role's own settings."""
        assert isinstance(session, PostgresSession)
        with session.own_settings():
            return session.execute(sql, doing)

    def fill(
        self, session: DatabaseSession, handle: JdbcTableHandle, stage: str, operation: int
    ) -> None:
        """Put defaults into the stage; their names resolve by this connector's search path."""
        for index, column in enumerate(handle.columns):
            if column.default is not None:
                value = f"({column.default})::{types.transport_type(column.type)[1]}"
                empty = f"o = {int(operation)} AND c{index} IS NULL"
                session.execute(
                    f"UPDATE {stage} SET c{index} = {value} WHERE {empty}",
                    f"Writing to table '{handle.name}'",
                )

    def inserted(self, column: JdbcColumn, value: str) -> str:
        """Return the value, since `fill` has put defaults into the stage."""
        return value
