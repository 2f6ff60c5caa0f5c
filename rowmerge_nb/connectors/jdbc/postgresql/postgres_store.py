"""PostgreSQL as a store: connections, errors, and the SQL that is its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.conninfo import with_safe_path
from rowmerge_nb.base.errors import ConnectorError, ExecutionError, RowMergeError, SetupError
from rowmerge_nb.base.names import quoted
from rowmerge_nb.connectors.jdbc.database import Follower, Reading, Session, Store, literal
from rowmerge_nb.connectors.jdbc.dsn import redacted, shown, startup_options
from rowmerge_nb.connectors.jdbc.postgresql import postgres_types as types
from rowmerge_nb.connectors.jdbc.postgresql.errors import translated
from rowmerge_nb.connectors.jdbc.postgresql.postgres_predicates import terms_of
from rowmerge_nb.connectors.jdbc.postgresql.postgres_session import PostgresSession
from rowmerge_nb.connectors.jdbc.staging import CopyWriter, StageWriter
from rowmerge_nb.spi.types import BIGINT, Type, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.connectors.jdbc.handles import Column, JdbcSplit, JdbcTableHandle, Stage
    from rowmerge_nb.connectors.jdbc.predicates import Terms

BATCH_BYTES: Final = 4 << 20
VERSION: Final = "t.xmin::pg_catalog.text::pg_catalog.int8"
"""The transaction that wrote a row's version: another one if the row has been changed since it was read.

It is part of the row id and so of every condition that finds a staged row. A statement that meets a row which another session is
changing waits for it, then looks at the condition again, and misses the row if the change was committed.
"""


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
    alters_columns = True
    stores_comments = True
    keeps_negative_zero = True
    keeps_others_out = False
    equals = "OPERATOR(pg_catalog.=)"
    most_columns = 1_600
    staged_beside = 4
    batch_option = ("adbc.postgresql.batch_size_hint_bytes", str(BATCH_BYTES))

    def column_name(self, name: str) -> str:
        """Return the name in lower case, as the server itself makes names that are not quoted."""
        return name.lower()

    @property
    def shown(self) -> str:
        """Host, port and database."""
        return shown(self.dsn)

    def connect(self, *, writing: bool = False) -> PostgresSession:
        """Connect to the server."""
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError:
            raise SetupError(
                "The PostgreSQL connector needs the package adbc-driver-postgresql, which is not installed",
                hint="Run: pip install 'rowmerge-nb[postgresql]'",
            ) from None
        try:
            connection = self._connected(dbapi.connect)
        except Exception as error:  # noqa: BLE001 - whatever the driver raises is told as ours
            raise self._unreachable(error) from None
        session = PostgresSession(self, connection, startup_options(self.dsn))
        try:
            session.prepare()
        except BaseException:
            session.close()
            raise
        return session

    def _connected(self, connect: Callable[..., Any]) -> Any:
        try:
            return connect(with_safe_path(self.dsn), autocommit=True)
        except Exception as error:
            # Some poolers know no options.
            if "unsupported startup parameter" not in str(error):
                raise
            return connect(self.dsn, autocommit=True)

    def _unreachable(self, error: Exception) -> ConnectorError:
        """Return why there is no connection. What the server is not asked yet may hold parts of the connection string."""
        words = " ".join(str(error).split("Failed to connect: ")[-1].split())
        where = f"PostgreSQL at {self.shown}"
        if re.search(
            r"connection info string|invalid URI|connection option|could not parse|percent-encoded|IPv6|unexpected char", words
        ):
            return ConnectorError(
                "The connection string for PostgreSQL cannot be read",
                code="JDBC_ERROR",
                hint="It is of the form 'postgresql://user:password@host:port/database' or 'host=... dbname=... user=... password=...'.",
            )
        words = redacted(words, self.dsn)
        if "too many" in words or "remaining connection slots" in words:
            return ConnectorError(
                f"{where} takes no more connections: {words}",
                code="JDBC_ERROR",
                hint="Every task of a statement has a connection of its own: raise max_connections, or run fewer tasks at a time.",
            )
        if "authentication failed" in words or "no password supplied" in words or "role" in words:
            return ConnectorError(
                f"{where} refuses the connection: {words}",
                code="PERMISSION_DENIED",
                hint="Correct user and password in the connection string.",
            )
        return ConnectorError(
            f"{where} cannot be reached: {words}",
            code="JDBC_ERROR",
            hint="See that the server runs and that host, port and database are right: pg_isready tells.",
        )

    def translate(self, error: Exception, doing: str) -> RowMergeError:
        """Return the error for one of the server, by its state."""
        return translated(error, doing, f"PostgreSQL at {self.shown}", self.dsn)

    def is_repeated_key(self, error: ExecutionError) -> bool:
        """Return whether an error speaks of a key, or an exclusion, that would be there twice."""
        return getattr(error, "sqlstate", "") in {"23505", "23P01"}

    # -- reading --------------------------------------------------------------------------------------------------

    def reading(self, column: Column, *, key: bool = False) -> Reading:
        """Return how a column is read."""
        return types.value_reading(column)

    def cast_of(self, declared: str) -> str:
        """Return the cast of types to which no text is assigned."""
        return types.cast_of(declared, "b", declared)

    def row_id_type(self, handle: JdbcTableHandle) -> Type:
        """Return the key and the version of the row."""
        return row_of([*((column.name, column.type) for column in handle.key_columns), ("$version", BIGINT)])

    def row_id_readings(self, handle: JdbcTableHandle) -> list[Reading]:
        """Return how key and version are read."""
        return [*(types.value_reading(column) for column in handle.key_columns), Reading(VERSION.removeprefix("t."), pa.int64())]

    def range_of(self, split: JdbcSplit) -> str:
        """Return a range of blocks."""
        if split.low is None:
            return ""
        upper = "" if split.high is None else f" AND ctid < '({split.high},0)'::tid"
        return f"ctid >= '({split.low},0)'::tid{upper}"

    def terms(self, column: Column, *, unicode: bool) -> Terms | None:
        """Return how a column is compared with values."""
        return terms_of(column, unicode=unicode)

    def begin_reading(self, session: Session, split: JdbcSplit) -> None:
        """Map the errors of the driver."""
        if split.predicate:
            # An attempt must read the rows in the order of the one before, whatever the planner has learnt in between: bitmaps of an
            # index give them in the order in which they lie, as a scan of the table does.
            off = "SELECT set_config('enable_indexscan', 'off', false), set_config('enable_indexonlyscan', 'off', false)"
            session.execute(off, "Beginning to read")
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

    def address(self, handle: JdbcTableHandle) -> str:
        """Write the primary key, or of a table without one the row's place."""
        if not handle.key:
            return "'ctid ' || ctid::text" if handle.ranges else ""
        return " || ', ' || ".join(f"{literal(f'{name} = ')} || {quoted(name)}::text" for name in handle.key)

    # -- writing --------------------------------------------------------------------------------------------------

    def stage_writer(self, stage: Stage) -> StageWriter:
        """Make what copies an attempt's rows into the stage."""
        return CopyWriter(self, stage)

    def stage_columns(self, handle: JdbcTableHandle) -> list[tuple[str, pa.DataType, str]]:
        """Return the columns of a stage."""
        keys = [types.transport_type(column.type) for column in handle.key_columns] + [(pa.int64(), "bigint")]
        data = [types.transport_type(column.type) for column in handle.columns]
        control = [("a", pa.int64(), "bigint"), ("o", pa.int16(), "smallint"), ("n", pa.int32(), "integer")]
        return [
            *control,
            *((f"k{index}", kind, declared) for index, (kind, declared) in enumerate(keys)),
            *((f"c{index}", kind, declared) for index, (kind, declared) in enumerate(data)),
        ]

    def transported(self, column: Column, array: pa.Array) -> pa.Array:
        """Convert values into the form in which they are staged; a char's padding is the server's own affair."""
        if column.type.base == "char":
            return pc.utf8_rtrim(array.cast(pa.string()), " ")
        return array.cast(types.transport_type(column.type)[0])

    def transported_key(self, handle: JdbcTableHandle, parts: list[pa.Array]) -> list[pa.Array]:
        """Convert key and version into the form in which they are staged."""
        keys = [self.transported(column, part) for column, part in zip(handle.key_columns, parts, strict=False)]
        return [*keys, parts[-1]]

    def row_id_conditions(self, handle: JdbcTableHandle) -> list[str]:
        """Write what joins a table ``t`` to its stage ``s``: the key, and the version that was read."""
        parts = [f"t.{quoted(column.name)}" for column in handle.key_columns]
        casts = [*(column.cast for column in handle.key_columns), ""]
        return [f"{part} {self.equals} s.k{index}{casts[index]}" for index, part in enumerate([*parts, VERSION])]

    def staged_rows(self, handle: JdbcTableHandle, stage: str, operation: int) -> str:
        """Write the condition of a DELETE from ``t``."""
        conditions = [*self.row_id_conditions(handle), f"s.o {self.equals} {int(operation)}"]
        return f"USING {stage} AS s WHERE {' AND '.join(conditions)}"

    def reinserting(self, handle: JdbcTableHandle, stage: str, insert: str, rows: int) -> list[str]:
        """Write the statement that takes updated rows out and puts them in anew.

        It is one, so that foreign keys, which are looked at when a statement ends, find the rows there.
        """
        gone = f"DELETE FROM {self.table(handle)} AS t {self.staged_rows(handle, stage, 3)} RETURNING 1"
        return [f"WITH gone AS ({gone}) {insert} AND (SELECT pg_catalog.count(*) FROM gone) {self.equals} {rows}"]

    def triggers(self, session: Session, handle: JdbcTableHandle) -> list[str]:
        """Name the triggers and rules of a table."""
        table = f"{literal(self.table(handle))}::regclass"
        # Partitions may have triggers of their own.
        tables = f"(SELECT {table} UNION SELECT relid FROM pg_partition_tree({table}))"
        rows = session.query(
            "SELECT tgname::text AS name FROM pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D' AND tgtype::int & 28 <> 0 "
            f"AND tgrelid IN {tables} UNION SELECT rulename::text FROM pg_rewrite WHERE ev_type <> '1' AND ev_class IN {tables} "
            "ORDER BY name"
        )
        return [row["name"] for row in rows]

    def followers(self, session: Session, handle: JdbcTableHandle) -> list[Follower]:
        """Return what acts on changes of a table's rows, and would act otherwise if updated rows are taken out and put in again."""
        table = f"{literal(self.table(handle))}::regclass"
        keys = session.query(
            "SELECT c.conrelid::regclass::text AS name, a.attname::text AS \"column\", c.confdeltype IN ('c', 'n', 'd') AS gone, "
            "c.confupdtype IN ('c', 'n', 'd') AS moved FROM pg_constraint c JOIN pg_attribute a ON a.attrelid = c.confrelid "
            f"AND a.attnum = ANY (c.confkey) WHERE c.contype = 'f' AND c.confrelid = {table}"
        )
        return [
            *map(Follower.trigger, self.triggers(session, handle)),
            *(Follower.table(row["name"]) for row in keys if row["gone"]),
            *(Follower.table(row["name"], row["column"]) for row in keys if row["moved"]),
        ]

    def bound_tables(self, session: Session, handle: JdbcTableHandle) -> list[str]:
        """PostgreSQL drops and empties no table that another one refers to."""
        return []

    def changed(self, session: Session, sql: str, doing: str) -> int:
        """Run a statement as the table's code expects it; the server tells how many rows it touched."""
        assert isinstance(session, PostgresSession)
        with session.own_settings():
            return session.execute(sql, doing)

    def fill(self, session: Session, handle: JdbcTableHandle, stage: str, operation: int) -> None:
        """Put defaults into the stage: their text is read with the search path of this connector, which the table's statement has not."""
        for index, column in enumerate(handle.columns):
            if column.default is not None:
                value = f"({column.default})::{types.transport_type(column.type)[1]}"
                empty = f"o = {int(operation)} AND c{index} IS NULL"
                session.execute(f"UPDATE {stage} SET c{index} = {value} WHERE {empty}", f"Writing to table '{handle.name}'")

    def inserted(self, column: Column, value: str) -> str:
        """Write the staged value as it is: `fill` has put the default in the place of NULL."""
        return value
