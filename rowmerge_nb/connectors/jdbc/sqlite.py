"""SQLite: a database in a file."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote as percent

import pyarrow as pa

from rowmerge_nb.connectors.jdbc import sqlite_types as types
from rowmerge_nb.connectors.jdbc.connector import JdbcConnector, JdbcTransaction
from rowmerge_nb.connectors.jdbc.handles import Column, JdbcSplit, JdbcTableHandle, Stage
from rowmerge_nb.connectors.jdbc.predicates import predicate_of
from rowmerge_nb.connectors.jdbc.spool import Spool, orphans, remove_orphans
from rowmerge_nb.connectors.jdbc.sqlite_predicates import terms_of
from rowmerge_nb.connectors.jdbc.staging import FileWriter, StageWriter, file_of
from rowmerge_nb.connectors.jdbc.store import Reading, Session, Store, literal, quote, unsupported
from rowmerge_nb.errors import ConnectorError, ExecutionError, RowMergeError, SetupError
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.types import Type, row_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.connectors.jdbc.predicates import Terms
    from rowmerge_nb.spi.connector import Orphan
    from rowmerge_nb.spi.handles import ConnectorSession
    from rowmerge_nb.spi.metadata import ConnectorTableMetadata
    from rowmerge_nb.spi.page_source import ColumnDomain

__all__ = ["SqliteConnector", "SqliteStore"]

SCHEMA: Final = "main"
BATCH_ROWS: Final = 16_384
SPLIT_ROWS: Final = 500_000
SMALL_ROWS: Final = 10_000
COUNTED_BYTES: Final = 4 << 30
"""The rows of larger files are not counted."""
STAGE: Final = "temp.rowmerge_nb_stage"
BUSY_MILLISECONDS: Final = 10_000

_MODELS: Final = {pa.int64(): "0", pa.float64(): "0.0", pa.string(): "''", pa.binary(): "x''"}


@dataclass(frozen=True, repr=False)
class SqliteStore(Store):
    """An SQLite file.

    Args:
        path: where it is.
    """

    path: str

    name = "SQLite"
    extra = "sqlite"
    truncating = "DELETE FROM"
    has_schemas = False
    most_columns = 2_000
    staged_beside = 3
    batch_option = ("adbc.sqlite.query.batch_rows", str(BATCH_ROWS))
    # The driver finds the types of columns in the first rows: a row that shows them goes before the table's own.
    leading_rows = 1

    @property
    def shown(self) -> str:
        """The file's path."""
        return repr(self.path)

    def connect(self, *, writing: bool = False, create: bool = False) -> Session:
        """Open the file."""
        path = Path(self.path)
        if not path.parent.is_dir():
            msg = f"SQLite database '{path}' cannot be opened: there is no directory '{path.parent}'"
            raise ConnectorError(msg, code="JDBC_ERROR", hint="Correct the path, or make the directory.")
        if not create and not path.is_file():
            msg = (
                f"SQLite database '{path}' cannot be opened: {'it is a directory' if path.is_dir() else 'there is no such file'}"
            )
            raise ConnectorError(
                msg, code="JDBC_ERROR", hint="Correct the path; SqliteConnector(path, create=True) makes a new one."
            )
        if writing and not os.access(path, os.W_OK):
            raise self.read_only()
        mode = "rwc" if create else "rw" if writing else "ro"
        try:
            from adbc_driver_sqlite import dbapi
        except ImportError:
            msg = "The SQLite connector needs the package adbc-driver-sqlite, which is not installed"
            raise SetupError(msg, hint="Run: pip install 'rowmerge-nb[sqlite]'") from None
        try:
            connection = dbapi.connect(f"file:{percent(str(path.resolve()))}?mode={mode}", autocommit=True)
        except Exception as error:  # noqa: BLE001 - whatever the driver raises is told as ours
            raise self.translate(error, "Opening it") from None
        session = Session(self, connection)
        try:
            session.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}", "Opening it")
            session.execute("PRAGMA foreign_keys = ON", "Opening it")
            session.query("SELECT name FROM sqlite_schema LIMIT 1", "Opening it")
        except BaseException:
            session.close()
            raise
        return session

    def read_only(self) -> ConnectorError:
        """Give the error of a file that may not be written."""
        msg = f"SQLite database {self.shown} is read-only and cannot be written"
        return ConnectorError(msg, code="PERMISSION_DENIED", hint="Give yourself write permission to the file and its directory.")

    def translate(self, error: Exception, doing: str) -> RowMergeError:
        """Tell an error of the driver by SQLite's words."""
        text = str(error).split("\nquery:")[0]
        words = text.rsplit("Failed to step query: ", 1)[-1].rsplit("Failed to prepare query: ", 1)[-1]
        words = words.removeprefix("IO: ").removeprefix("INTEGRITY: ").strip()
        where = f"SQLite database {self.shown}"
        if "constraint failed" in words or "datatype mismatch" in words:
            return ExecutionError(f"{doing} in {where} failed: {words}", code="CONSTRAINT_VIOLATION", step="finish_merge")
        if "is locked" in words:
            msg = f"{doing} failed: {where} is locked by another connection for more than {BUSY_MILLISECONDS // 1000} seconds"
            return ExecutionError(msg, code="TRANSACTION_CONFLICT", hint="End the other program's transaction, and run it again.")
        if "readonly" in words:
            return self.read_only()
        if "not a database" in words or "malformed" in words:
            hint = "Check the path; a damaged file may be rescued by the sqlite3 shell's .recover."
            return ConnectorError(f"{where} cannot be read: {words}", code="JDBC_ERROR", hint=hint)
        if "disk is full" in words:
            hint = "Make room on its disk, and run the statement again; the table is as it was."
            return ConnectorError(f"{doing} in {where} failed: {words}", code="GENERIC_INSUFFICIENT_RESOURCES", hint=hint)
        if "disk I/O error" in words:
            hint = "See what is wrong with its disk; the table is as it was."
            return ConnectorError(f"{doing} in {where} failed: {words}", code="JDBC_ERROR", hint=hint)
        if "no such table" in words or "no such column" in words:
            code = "TABLE_NOT_FOUND" if "no such table" in words else "COLUMN_NOT_FOUND"
            return ConnectorError(f"{doing} in {where} failed: {words}", code=code, hint="Run the statement again.")
        return ConnectorError(f"{doing} in {where} failed: {words}", code="JDBC_ERROR")

    def is_repeated_key(self, error: ExecutionError) -> bool:
        """Tell whether an error speaks of a key that would be there twice."""
        return "UNIQUE constraint failed" in error.message

    # -- reading --------------------------------------------------------------------------------------------------

    def reading(self, column: Column, *, key: bool = False) -> Reading:
        """Say how a column is read."""
        return types.key_reading(column) if key else types.value_reading(column)

    def row_id_type(self, handle: JdbcTableHandle) -> Type:
        """Give the key as it is stored, of several columns as a row."""
        kinds = [(column.name, types.key_type(column)) for column in handle.key_columns]
        return kinds[0][1] if len(kinds) == 1 else row_of(kinds)

    def row_id_readings(self, handle: JdbcTableHandle) -> list[Reading]:
        """Say how the key's columns are read."""
        return [types.key_reading(column) for column in handle.key_columns]

    def range_of(self, split: JdbcSplit) -> str:
        """Give a range of rowids, or of a key."""
        bounds = ((">=", split.low), ("<", split.high))
        return " AND ".join(f"{split.address} {sign} {bound}" for sign, bound in bounds if bound is not None)

    def terms(self, column: Column, *, unicode: bool) -> Terms | None:
        """Say how a column is compared with values."""
        return terms_of(column, unicode=unicode)

    def begin_reading(self, session: Session, split: JdbcSplit) -> None:
        """Nothing is to be done: a change between two splits is found out before anything is applied."""

    def select(self, readings: Sequence[Reading], names: Sequence[str], source: str) -> str:
        """Write the query, headed by a row that shows the types."""
        models = ", ".join(f"{_MODELS[reading.kind]} AS {name}" for reading, name in zip(readings, names, strict=True))
        return f"SELECT {models} UNION ALL SELECT {', '.join(reading.select for reading in readings)} FROM {source}"

    def shown_value(self, reading: Reading) -> str:
        """Write the expression that shows a misfit."""
        return f"quote({reading.column}) || ' (' || typeof({reading.column}) || ')'"

    def converted(self, column: Column, array: pa.Array) -> pa.Array:
        """Bring stored values into the column's Arrow type."""
        return types.converted(column, array)

    # -- writing --------------------------------------------------------------------------------------------------

    def stage_writer(self, stage: Stage) -> StageWriter:
        """Make what writes an attempt's rows into a file."""
        return FileWriter(stage.place)

    def stage_columns(self, handle: JdbcTableHandle) -> list[tuple[str, pa.DataType, str]]:
        """Give the columns of a stage, declared as the table's, so that values compare alike."""
        keys = [(f"k{i}", types.storage_type(types.key_type(c)), c.declared) for i, c in enumerate(handle.key_columns)]
        data = [(f"c{i}", types.storage_type(c.type), c.declared) for i, c in enumerate(handle.columns)]
        return [("a", pa.int64(), "bigint"), ("o", pa.int64(), "int"), ("n", pa.int64(), "int"), *keys, *data]

    def transported(self, column: Column, array: pa.Array) -> pa.Array:
        """Bring values into the form in which they are stored."""
        return types.stored(column, array)

    def transported_key(self, handle: JdbcTableHandle, parts: list[pa.Array]) -> list[pa.Array]:
        """Keys are as they are stored already."""
        return parts

    def row_id_conditions(self, handle: JdbcTableHandle) -> list[str]:
        """Write what joins a table ``t`` to its stage ``s``."""
        return [f"t.{quote(column.name)} = s.k{place}" for place, column in enumerate(handle.key_columns)]

    def staged_rows(self, handle: JdbcTableHandle, stage: str, operation: int) -> str:
        """Write the condition of a DELETE from ``t``."""
        names = ", ".join(f"t.{quote(name)}" for name in handle.key)
        keys = ", ".join(f"s.k{place}" for place in range(len(handle.key)))
        return f"WHERE ({names}) IN (SELECT {keys} FROM {stage} AS s WHERE s.o = {int(operation)})"

    def reinserting(self, handle: JdbcTableHandle, stage: str, insert: str, rows: int) -> list[str]:
        """Write the statements that take updated rows out and put them in anew."""
        return [f"DELETE FROM {self.table(handle)} AS t {self.staged_rows(handle, stage, 3)}", insert]

    def follower(self, session: Session, handle: JdbcTableHandle) -> str | None:
        """Give a table whose rows would change or go with rows that are taken out of this one."""
        session.execute("PRAGMA defer_foreign_keys = ON")
        # Foreign keys are told per table that has them.
        found = session.query(
            "SELECT m.name AS name FROM sqlite_schema AS m, pragma_foreign_key_list(m.name) AS f WHERE m.type = 'table' "
            f"AND lower(f.\"table\") = lower({literal(handle.spelled[1])}) AND f.on_delete NOT IN ('NO ACTION', 'RESTRICT')"
        )
        return found[0]["name"] if found else None

    def changed(self, session: Session, sql: str, doing: str) -> int:
        """Run a statement and ask how many rows it touched."""
        session.execute(sql, doing)
        return int(session.value("SELECT changes() AS n"))


class SqliteTransaction(JdbcTransaction):
    """A statement on one connection, which notices commits of others."""

    def __init__(self, store: SqliteStore, *, create: bool) -> None:
        self._store = store
        self._create = create
        self._session: Session | None = None
        self._writing = False
        self._version = 0
        self._spool: Spool | None = None

    def reader(self) -> Session:
        """Give the connection."""
        if self._session is None:
            creating = self._create and not Path(self._store.path).exists()
            writing = not creating and os.access(self._store.path, os.W_OK)
            self._session = self._store.connect(writing=writing, create=creating)
            self._version = self._session.value("PRAGMA data_version")
        return self._session

    def writer(self) -> Session:
        """Begin a transaction that writes: from here on others have to wait."""
        session = self.reader()
        if not self._writing:
            if not os.access(self._store.path, os.W_OK):
                raise self._store.read_only()
            session.execute("BEGIN IMMEDIATE", "Beginning to write")
            self._writing = True
        return session

    def find(self, name: SchemaTableName) -> JdbcTableHandle | None:
        """Find a table or view."""
        if name.schema != SCHEMA:
            return None
        # SQLite itself ignores the case of ASCII letters alone.
        found = [row for row in self._tables() if row["name"].lower() == name.table]
        if not found:
            return None
        if len(found) > 1:
            msg = f"SQLite has several tables '{name}' that differ in case only: {', '.join(row['name'] for row in found)}"
            raise ConnectorError(msg, code="AMBIGUOUS_NAME", hint="Rename all but one, or make a view of another name.")
        spelled, kind = found[0]["name"], found[0]["type"]
        rows = self.reader().query(
            "SELECT name, type, \"notnull\" AS required, CAST(dflt_value AS TEXT) || '' AS value, pk, hidden "
            f"FROM pragma_table_xinfo({literal(spelled)}, 'main') WHERE hidden <> 1 ORDER BY cid"
        )
        keys = sorted((row["pk"], row["name"]) for row in rows if row["pk"])
        columns = tuple(self._column(str(name), row, keys, without_rowid=bool(found[0]["wr"])) for row in rows)
        return JdbcTableHandle(
            name,
            (SCHEMA, spelled),
            columns,
            tuple(key for _, key in keys),
            {"virtual": "virtual table"}.get(kind, kind),
            ranges=kind == "table" and not found[0]["wr"],
        )

    def _column(self, table: str, row: dict[str, Any], keys: list[tuple[int, str]], *, without_rowid: bool) -> Column:
        declared, default = row["type"], row["value"]
        kind = types.type_of(declared)
        if kind is None:
            why = "which has no counterpart" if declared else "no type at all"
            raise unsupported(
                self._store, table, row["name"], declared or "''", why, "Declare it otherwise, or make a view without it."
            )
        # SQLite numbers the rows of a table itself by a lone key that is declared INTEGER.
        numbered = bool(row["pk"]) and len(keys) == 1 and declared.upper() == "INTEGER" and not without_rowid
        nullable = numbered or not (row["required"] or (row["pk"] and without_rowid)) or default is not None
        stands_in = f"({default})" if row["required"] and default is not None else None
        return Column(row["name"], kind, declared, nullable, stands_in, generated=row["hidden"] in {2, 3})

    def names(self) -> list[SchemaTableName]:
        """Give the names of all tables and views."""
        return [SchemaTableName(SCHEMA, row["name"].lower()) for row in self._tables()]

    def _tables(self) -> list[dict[str, Any]]:
        return self.reader().query(
            "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'view', 'virtual') "
            "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
        )

    def schemas(self) -> list[str]:
        """An SQLite file has one schema."""
        return [SCHEMA]

    def row_count(self, handle: JdbcTableHandle) -> int | None:
        """Count the rows, which SQLite does by reading its smallest index."""
        if handle.kind == "view" or Path(self._store.path).stat().st_size > COUNTED_BYTES:
            return None
        return int(self.reader().value(f"SELECT count(*) AS n FROM {self._store.table(handle)}"))

    def splits(self, handle: JdbcTableHandle, domains: Mapping[str, ColumnDomain]) -> list[JdbcSplit]:
        """Cut a large table into ranges of rowids, or of its key where it has none."""
        unicode = bool(domains) and self.reader().value("PRAGMA encoding") == "UTF-8"
        predicate, _ = predicate_of(handle, domains, lambda column: self._store.terms(column, unicode=unicode))
        rows = self._rows(handle, predicate)
        if rows is not None and rows <= SMALL_ROWS:
            return [JdbcSplit(small=True, predicate=predicate)]
        address = _address(handle)
        if not address or (rows is not None and rows <= SPLIT_ROWS):
            return [JdbcSplit(predicate=predicate)]
        # What is no number comes behind all numbers, or is refused when it is read: the outer ranges are open.
        conditions = [*([] if handle.ranges else [f"typeof({address}) = 'integer'"]), *([predicate] if predicate else [])]
        source = f"{self._store.table(handle)}{' WHERE ' if conditions else ''}{' AND '.join(conditions)}"
        # Asked for one by one, both ends are found without a scan.
        query = f"SELECT (SELECT min({address}) FROM {source}) AS low, (SELECT max({address}) FROM {source}) AS high"
        (ends,) = self.reader().query(query)
        if ends["low"] is None:
            return [JdbcSplit(predicate=predicate)]
        count = -(-(rows or ends["high"] - ends["low"] + 1) // SPLIT_ROWS)
        width = -(-(ends["high"] - ends["low"] + 1) // count)
        inner = [ends["low"] + width * number for number in range(1, count) if width * number <= ends["high"] - ends["low"]]
        return [JdbcSplit(low, high, address=address, predicate=predicate) for low, high in pairwise([None, *inner, None])]

    def _rows(self, handle: JdbcTableHandle, predicate: str) -> int | None:
        """Count the rows that matter."""
        if not predicate:
            return self.row_count(handle)
        if handle.kind == "view" or Path(self._store.path).stat().st_size > COUNTED_BYTES:
            return None
        return int(self.reader().value(f"SELECT count(*) AS n FROM {self._store.table(handle)} WHERE {predicate}"))

    def create_table(self, metadata: ConnectorTableMetadata, key: Sequence[str]) -> None:
        """Make a table; the key's columns are NOT NULL."""
        if metadata.name.schema != SCHEMA:
            msg = f"Schema '{metadata.name.schema}' does not exist; an SQLite database has the schema '{SCHEMA}' alone"
            raise ConnectorError(msg, code="SCHEMA_NOT_FOUND", hint=f"Name the table {SCHEMA}.{metadata.name.table}.")
        parts = []
        for column in metadata.columns:
            declared = types.declared_type(column.type)
            if declared is None:
                why = "which SQLite cannot hold"
                raise unsupported(self._store, str(metadata.name), column.name, str(column.type), why, "Use another type.")
            required = not column.nullable or column.name in key
            parts.append(f"{quote(column.name)} {declared}{' NOT NULL' if required else ''}")
        if key:
            parts.append(f"PRIMARY KEY ({', '.join(map(quote, key))})")
        table = f"{SCHEMA}.{quote(metadata.name.table)}"
        self.writer().execute(f"CREATE TABLE {table} ({', '.join(parts)})", f"Creating table '{metadata.name}'")

    # -- stages ---------------------------------------------------------------------------------------------------

    def begin_stage(self, session: ConnectorSession, handle: JdbcTableHandle) -> Stage:
        """Make a directory beside the database."""
        self.reader()
        if not os.access(self._store.path, os.W_OK):
            raise self._store.read_only()
        remove_orphans(self._store.path)
        if self._spool is None:
            self._spool = Spool(self._store.path, session.query_id)
        return Stage(str(self._spool.directory))

    def collect(self, handle: JdbcTableHandle, stage: Stage, attempts: Mapping[int, int]) -> str:
        """Load the files of the attempts that count into a temporary table."""
        session, columns = self.writer(), self._store.stage_columns(handle)
        declared = ", ".join(f"{name} {kind}" for name, _, kind in columns)
        session.execute(f"CREATE TEMP TABLE rowmerge_nb_stage ({declared})", "Staging rows")
        for attempt in attempts:
            try:
                with pa.OSFile(str(file_of(stage.place, attempt)), "rb") as file, pa.ipc.open_stream(file) as reader:
                    session.bind(f"INSERT INTO {STAGE} VALUES ({', '.join('?' * len(columns))})", reader, "Staging rows")
            except OSError as error:
                msg = (
                    f"Staged rows of SQLite table '{handle.name}' cannot be read from '{file_of(stage.place, attempt)}': {error}"
                )
                hint = "Driver and tasks must see the same directory beside the database."
                raise ConnectorError(msg, code="JDBC_ERROR", hint=hint) from error
        staged = session.value(f"SELECT count(*) AS n FROM {STAGE}")
        if staged != sum(attempts.values()):
            msg = f"{sum(attempts.values())} rows were staged, and {staged} of them are there"
            raise ExecutionError(msg, step="finish_merge")
        return STAGE

    def check_unchanged(self) -> None:
        """Compare SQLite's count of other connections' commits with that at the begin."""
        if self.writer().value("PRAGMA data_version") != self._version:
            msg = f"SQLite database {self._store.shown} was changed by another connection since the statement has read it"
            raise ExecutionError(msg, code="TRANSACTION_CONFLICT", step="finish_merge", hint="Run the statement again.")

    def commit(self) -> None:
        """Commit; the stage's table is the connection's own.

        Raises:
            ConnectorError: nothing was changed; or, with ``changed=None``, nobody knows.
        """
        if self._session is not None and self._writing:
            self._session.execute("DROP TABLE IF EXISTS temp.rowmerge_nb_stage", "Committing")
            try:
                self._session.execute("COMMIT", "Committing")
            except ConnectorError as error:
                # A full disk is met before anything counts; whatever else happens at the end of a commit may be behind that.
                if error.code == "GENERIC_INSUFFICIENT_RESOURCES" or self._rolled_back():
                    raise
                self.end()
                msg = f"The outcome is unknown: SQLite could not say whether the transaction was committed. {error.message}"
                hint = "See what is wrong with its disk, and look at the table before you run the statement again."
                raise ConnectorError(msg, code=error.code, hint=hint, changed=None) from error
            self._writing = False

    def _rolled_back(self) -> bool:
        """Roll back; False if there is no transaction any more, so that it may have been committed."""
        try:
            self._session.execute("ROLLBACK", "Rolling back") if self._session is not None else None
        except RowMergeError:
            return False
        self._writing = False
        return True

    def rollback(self) -> None:
        """Undo everything, and remove the stage."""
        try:
            if self._session is not None and self._writing:
                # A failed statement may have ended the transaction already.
                with suppress(RowMergeError):
                    self._session.execute("ROLLBACK", "Rolling back")
        finally:
            self.end()

    def end(self) -> None:
        """Close the connection, and remove the stage."""
        if self._session is not None:
            self._session.close()
            self._session = None
        if self._spool is not None:
            self._spool.remove()
            self._spool = None


def _address(handle: JdbcTableHandle) -> str:
    """Give what tells a table's rows apart by number: the rowid, under a name that no column has, or the first part of the key."""
    if handle.ranges:
        taken = {column.name.lower() for column in handle.columns}
        return next((name for name in ("rowid", "_rowid_", "oid") if name not in taken), "")
    first = next(iter(handle.key_columns), None)
    whole = first is not None and first.type.base in {"tinyint", "smallint", "integer", "bigint"}
    return types.named(first.name) if first is not None and whole and handle.kind == "table" else ""


class SqliteConnector(JdbcConnector):
    """The tables of an SQLite database, in the schema ``main``. Needs ``pip install 'rowmerge-nb[sqlite]'``.

    Args:
        path: the database file. ``:memory:`` is not possible, since tasks open the file too.
        create: make the file if it is not there.

    Raises:
        ConnectorError: the path names no file.

    >>> SqliteConnector("shop.db")
    SqliteConnector('shop.db')
    """

    name = "sqlite"
    store: SqliteStore

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        text = os.fspath(path)
        if not text or text.startswith((":memory:", "file:")):
            msg = f"'{text}' is not the path of a file; SQLite tables of this connector are read by several processes"
            raise ConnectorError(msg, code="NOT_SUPPORTED", hint="Give a path such as 'shop.db'; memory tables need no SQLite.")
        # Tasks may run in another directory.
        super().__init__(SqliteStore(str(Path(text).absolute())))
        self._text = text
        self._create = create

    def __repr__(self) -> str:
        return f"SqliteConnector({self._text!r})"

    @property
    def shared_directory(self) -> Path:
        """The directory that the database is in: tasks read it, and stage rows beside it."""
        return Path(self.store.path).parent

    def new_transaction(self) -> SqliteTransaction:
        """Make a transaction."""
        return SqliteTransaction(self.store, create=self._create)

    def orphans(self) -> list[Orphan]:
        """List directories of drivers that have died."""
        return orphans(self.store.path)

    def remove_orphans(self) -> list[Orphan]:
        """Remove directories of drivers that have died."""
        return remove_orphans(self.store.path)
