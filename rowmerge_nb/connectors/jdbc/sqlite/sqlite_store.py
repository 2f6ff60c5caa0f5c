"""SQLite: a database in a file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote as percent

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError, ExecutionError, RowMergeError
from rowmerge_nb.base.names import quoted, quoted_text
from rowmerge_nb.connectors.jdbc.database import (
    SHOWN,
    USUAL_STEP,
    DatabaseSession,
    Follower,
    Reading,
    Store,
)
from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcColumn, JdbcSplit, JdbcTableHandle, Stage
from rowmerge_nb.connectors.jdbc.sqlite import sqlite_types as types
from rowmerge_nb.connectors.jdbc.sqlite.sqlite_predicates import terms_of
from rowmerge_nb.connectors.jdbc.staging import StageFileWriter, StageWriter
from rowmerge_nb.spi import Type
from rowmerge_nb.spi.types import row_of

if TYPE_CHECKING:
    from collections.abc import Sequence


SCHEMA: Final = "main"
BATCH_ROWS: Final = 16_384
BUSY_MILLISECONDS: Final = 10_000

_IDLE: Final = frozenset({"NO ACTION", "RESTRICT"})
"""Actions of a foreign key that do not change rows."""
_ASKED: Final = ("pragma_foreign_key_list", "pragma_table_list", "pragma_table_xinfo")
"""SQLite's tables that this connector queries. A user's table of the same name would hide one."""
_FAILURES: Final = {
    "disk is full": (
        "GENERIC_INSUFFICIENT_RESOURCES",
        "Free space on its disk, and run the statement again. The table is unchanged.",
    ),
    "disk I/O error": ("JDBC_ERROR", "Check its disk. The table is unchanged."),
    "no such table": ("TABLE_NOT_FOUND", "Run the statement again."),
    "no such column": ("COLUMN_NOT_FOUND", "Run the statement again."),
}
"""Code and hint by the words of an error."""
_MODELS: Final = {pa.int64(): "0", pa.float64(): "0.0", pa.string(): "''", pa.binary(): "x''"}


@dataclass(frozen=True, repr=False)
class SqliteStore(Store):
    path: str

    name = "SQLite"
    extra = "sqlite"
    truncating = "DELETE FROM"
    has_schemas = False
    alters_columns = False
    undeclared = "which SQLite cannot hold"
    stores_comments = False
    keeps_negative_zero = False
    keeps_others_out = True
    most_columns = 2_000
    # A stage has three more; queries of rows need a few others.
    staged_beside = 8
    batch_option = ("adbc.sqlite.query.batch_rows", str(BATCH_ROWS))
    # The driver infers the types of columns from the first rows, so a row of examples precedes the
    # table's.
    leading_rows = 1

    @property
    def shown(self) -> str:
        return repr(self.path)

    def is_there(self) -> bool:
        try:
            os.lstat(self.path)
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ConnectorError(
                f"SQLite database '{self.path}' cannot be opened: {why}",
                code="JDBC_ERROR",
                hint="Correct the path.",
            ) from None
        return True

    def connect(self, *, writing: bool = False, create: bool = False) -> DatabaseSession:
        path = Path(self.path)
        self.is_there()
        if not path.parent.is_dir():
            raise ConnectorError(
                f"SQLite database '{path}' cannot be opened: there is no directory '{path.parent}'",
                code="JDBC_ERROR",
                hint="Correct the path, or create the directory.",
            )
        if not create and not path.is_file():
            raise ConnectorError(
                f"SQLite database '{path}' cannot be opened:"
                f" {'it is a directory' if path.is_dir() else 'there is no such file'}",
                code="JDBC_ERROR",
                hint="Correct the path; SqliteConnector(path, create=True) creates a new one.",
            )
        if writing and not os.access(path, os.W_OK):
            raise self.read_only()
        mode = "rwc" if create else "rw" if writing else "ro"
        driver = self.driver()
        try:
            connection = driver.connect(
                f"file:{percent(str(path.resolve()))}?mode={mode}", autocommit=True
            )
        except Exception as error:  # noqa: BLE001 - any error of the driver is converted
            raise self.translate(error, "Opening it") from None
        session = DatabaseSession(self, connection)
        try:
            session.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}", "Opening it")
            session.execute("PRAGMA foreign_keys = ON", "Opening it")
            # Triggers, views and defaults must not call functions with side effects outside of the
            # database.
            session.execute("PRAGMA trusted_schema = OFF", "Opening it")
            self._refuse_shadows(session)
        except BaseException:
            session.close()
            raise
        return session

    def _refuse_shadows(self, session: DatabaseSession) -> None:
        names = ", ".join(map(quoted_text, _ASKED))
        rows = session.query(
            f"SELECT name FROM main.sqlite_schema WHERE lower(name) IN ({names}) LIMIT 1",
            "Opening it",
        )
        if rows:
            raise ConnectorError(
                f"SQLite database {self.shown} has a table '{rows[0]['name']}', which"
                " hides one of SQLite's own",
                hint="Rename it in the sqlite3 shell: ALTER TABLE ... RENAME TO ...",
            )

    def read_only(self) -> ConnectorError:
        return ConnectorError(
            f"SQLite database {self.shown} is read-only and cannot be written",
            code="PERMISSION_DENIED",
            hint="Give yourself write permission to the file and its directory.",
        )

    def translate(self, error: Exception, doing: str) -> RowMergeError:
        text = str(error).split("\nquery:")[0]
        words = text.rsplit("Failed to step query: ", 1)[-1].rsplit("Failed to prepare query: ", 1)[
            -1
        ]
        words = words.removeprefix("IO: ").removeprefix("INTEGRITY: ").strip()
        subject = f"SQLite database {self.shown}"
        if "constraint failed" in words or "datatype mismatch" in words:
            return ExecutionError(
                f"{doing} in {subject} failed: {words}",
                code="CONSTRAINT_VIOLATION",
                step="finish_merge",
            )
        if "is locked" in words:
            return ExecutionError(
                f"{doing} failed: {subject} is locked by another connection for more than"
                f" {BUSY_MILLISECONDS // 1000} seconds",
                code="TRANSACTION_CONFLICT",
                hint="End the other program's transaction, and run the statement again.",
            )
        if "readonly" in words:
            return self.read_only()
        if "not a database" in words or "malformed" in words:
            return ConnectorError(
                f"{subject} cannot be read: {words}",
                code="JDBC_ERROR",
                hint=(
                    "Check the path; a damaged file may be rescued with .recover of"
                    " the sqlite3 shell."
                ),
            )
        # "error in ...": an index, view or trigger lacks it, not the statement.
        matching = (
            (code, hint)
            for part, (code, hint) in _FAILURES.items()
            if part in words and not (part.startswith("no such") and words.startswith("error in"))
        )
        code, hint = next(matching, ("JDBC_ERROR", USUAL_STEP))
        return ConnectorError(f"{doing} in {subject} failed: {words}", code=code, hint=hint)

    def is_repeated_key(self, error: ExecutionError) -> bool:
        return "UNIQUE constraint failed" in error.message

    # -- reading

    declared_type = staticmethod(types.declared_type)
    reading = staticmethod(types.value_reading)
    terms = staticmethod(terms_of)
    converted = staticmethod(types.converted)

    def row_id_type(self, handle: JdbcTableHandle) -> Type:
        fields = [(column.name, types.key_type(column)) for column in handle.key_columns]
        return fields[0][1] if len(fields) == 1 else row_of(fields)

    def row_id_readings(self, handle: JdbcTableHandle) -> list[Reading]:
        return [types.key_reading(column) for column in handle.key_columns]

    def range_of(self, split: JdbcSplit) -> str:
        bounds = ((">=", split.low), ("<", split.high))
        return " AND ".join(
            f"{split.address} {sign} {bound}" for sign, bound in bounds if bound is not None
        )

    def begin_reading(self, session: DatabaseSession, split: JdbcSplit) -> None:
        """Rely on `check_unchanged` instead of a snapshot."""

    def select(self, readings: Sequence[Reading], names: Sequence[str], source: str) -> str:
        models = ", ".join(
            f"{_MODELS[reading.kind]} AS {name}"
            for reading, name in zip(readings, names, strict=True)
        )
        return (
            f"SELECT {models} UNION ALL SELECT {', '.join(reading.select for reading in readings)}"
            f" FROM {source}"
        )

    def shown_value(self, reading: Reading) -> str:
        return (
            f"substr(quote({reading.column}), 1, {SHOWN}) || ' (' || typeof({reading.column})"
            " || ')'"
        )

    def address(self, handle: JdbcTableHandle) -> str:
        number = rowid_of(handle)
        if number:
            return f"'rowid ' || {number}"
        parts = [
            f"{quoted_text(name)} || ' = ' || quote({types.named(name)})" for name in handle.key
        ]
        return " || ', ' || ".join(parts)

    def address_of_text(
        self, session: DatabaseSession, handle: JdbcTableHandle, column: JdbcColumn, value: bytes
    ) -> str:
        address = self.address(handle)
        if not address:
            return ""
        query = (
            f"SELECT {address} AS a FROM {self.table(handle)} WHERE CAST({types.named(column.name)}"
            f" AS BLOB) = x'{value.hex()}' LIMIT 1"
        )
        rows = session.query(query)
        return f", in the row with {rows[0]['a']}" if rows else ""

    # -- writing

    def stage_writer(self, stage: Stage) -> StageWriter:
        return StageFileWriter(stage.area)

    def stage_columns(self, handle: JdbcTableHandle) -> list[tuple[str, pa.DataType, str]]:
        """Return columns declared as the table's, so that values compare alike."""
        keys = [
            (f"k{i}", types.storage_type(types.key_type(c)), c.declared)
            for i, c in enumerate(handle.key_columns)
        ]
        data = [
            (f"c{i}", types.storage_type(c.type), c.declared) for i, c in enumerate(handle.columns)
        ]
        return [
            ("a", pa.int64(), "bigint"),
            ("o", pa.int64(), "int"),
            ("n", pa.int64(), "int"),
            *keys,
            *data,
        ]

    transported = staticmethod(types.stored)

    def transported_key(self, handle: JdbcTableHandle, parts: list[pa.Array]) -> list[pa.Array]:
        return parts

    def row_id_conditions(self, handle: JdbcTableHandle) -> list[str]:
        return [
            f"t.{quoted(column.name)} = s.k{index}"
            for index, column in enumerate(handle.key_columns)
        ]

    def staged_rows(self, handle: JdbcTableHandle, stage: str, operation: int) -> str:
        names = ", ".join(f"t.{quoted(name)}" for name in handle.key)
        keys = ", ".join(f"s.k{index}" for index in range(len(handle.key)))
        return f"WHERE ({names}) IN (SELECT {keys} FROM {stage} AS s WHERE s.o = {int(operation)})"

    def reinserting(self, handle: JdbcTableHandle, stage: str, insert: str, rows: int) -> list[str]:
        return [
            f"DELETE FROM {self.table(handle)} AS t {self.staged_rows(handle, stage, 3)}",
            insert,
        ]

    def triggers(self, session: DatabaseSession, handle: JdbcTableHandle) -> list[str]:
        table = f"lower({quoted_text(handle.spelled[1])})"
        rows = session.query(
            f"SELECT name FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = {table}"
            " ORDER BY name"
        )
        return [row["name"] for row in rows]

    def followers(self, session: DatabaseSession, handle: JdbcTableHandle) -> list[Follower]:
        session.execute("PRAGMA defer_foreign_keys = ON")
        keys = _foreign_keys(session, handle)
        return [
            *map(Follower.trigger, self.triggers(session, handle)),
            *(Follower.table(row["name"]) for row in keys if row["gone"] not in _IDLE),
            *(
                Follower.table(row["name"], row["column"] or handle.key[row["place"]])
                for row in keys
                if row["moved"] not in _IDLE
            ),
        ]

    def bound_tables(self, session: DatabaseSession, handle: JdbcTableHandle) -> list[str]:
        """Return the tables that refer to this one: SQLite deletes all rows before a DROP."""
        keys = _foreign_keys(session, handle)
        return sorted(
            {
                row["name"]
                for row in keys
                if row["gone"] not in _IDLE and row["name"] != handle.spelled[1]
            }
        )

    def changed(self, session: DatabaseSession, sql: str, doing: str) -> int:
        session.execute(sql, doing)
        return int(session.value("SELECT changes() AS n"))


def rowid_of(handle: JdbcTableHandle) -> str:
    column_names = {column.name.lower() for column in handle.columns}
    return (
        next((name for name in ("rowid", "_rowid_", "oid") if name not in column_names), "")
        if handle.ranges
        else ""
    )


def _foreign_keys(session: DatabaseSession, handle: JdbcTableHandle) -> list[dict[str, Any]]:
    return session.query(
        'SELECT m.name AS name, f.seq AS place, f."to" AS "column", f.on_delete AS gone,'
        " f.on_update AS moved "
        "FROM sqlite_schema AS m, pragma_foreign_key_list(m.name) AS f "
        f"WHERE m.type = 'table' AND lower(f.\"table\") = lower({quoted_text(handle.spelled[1])})"
    )
