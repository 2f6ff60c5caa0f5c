"""DuckDB and PostgreSQL for verification, on temporary tables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, Protocol

from rowmerge_nb.base.conninfo import SAFE_PATH, with_safe_path
from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.base.names import quoted
from rowmerge_nb.engine.observers.verify.translation import column_type
from rowmerge_nb.spi.types import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from rowmerge_nb.spi.metadata import ColumnMetadata

POSTGRES_VARIABLE: Final = "ROWMERGE_POSTGRES"


class RefusedError(Exception):
    """The other engine's error, with its own message."""


class DuplicateRefusedError(RefusedError):
    """The other engine's error for a row that is changed more than once, as in standard SQL."""


class Verifier(Protocol):
    """A session of another engine for one statement."""

    name: str
    dialect: str

    def load(self, name: str, columns: Sequence[ColumnMetadata], rows: pa.Table) -> None: ...

    def change(self, statement: str) -> int:
        """Run a statement, and return the number of changed rows, or raise RefusedError."""

    def rows(self, query: str) -> list[tuple[Any, ...]]: ...

    def close(self) -> None: ...


def create_table(name: str, columns: Sequence[ColumnMetadata], dialect: str) -> str:
    """Return the CREATE TABLE of a copy.

    >>> from rowmerge_nb.spi import ColumnMetadata, parse_type
    >>> create_table("t", [ColumnMetadata("Id", parse_type("bigint"), False)], "duckdb")
    'CREATE TEMPORARY TABLE "t" ("id" bigint NOT NULL)'
    """
    definitions = (
        f"{quoted(column.name.lower())} {column_type(column.type, dialect)}"
        f"{'' if column.default is None else f' DEFAULT {column.default}'}{'' if column.nullable else ' NOT NULL'}"
        for column in columns
    )
    return f"CREATE TEMPORARY TABLE {quoted(name)} ({', '.join(definitions)})"


class DuckDBVerifier:
    """DuckDB in this process; MERGE requires version 1.4."""

    name = "DuckDB"
    dialect = "duckdb"

    def __init__(self) -> None:
        try:
            import duckdb
        except ModuleNotFoundError as error:
            raise SetupError(
                "DuckDB is not installed", hint=f"Run: {install_command('verify')}"
            ) from error
        if tuple(int(part) for part in duckdb.__version__.split(".")[:2]) < (1, 4):
            raise SetupError(
                f"DuckDB {duckdb.__version__} has no MERGE", hint="Run: pip install 'duckdb>=1.4'"
            )
        self._errors: Any = duckdb.Error
        self._connection = duckdb.connect()

    def load(self, name: str, columns: Sequence[ColumnMetadata], rows: pa.Table) -> None:
        typed = [column for column in columns if column.type != UNKNOWN] or columns
        table = name if len(typed) == len(columns) else f"{name} without NULLs"
        self._connection.execute(create_table(table, typed, self.dialect))
        self._connection.register(
            "rowmerge_rows", rows.select([column.name.lower() for column in typed])
        )
        self._connection.execute(f"INSERT INTO {quoted(table)} SELECT * FROM rowmerge_rows")
        self._connection.unregister("rowmerge_rows")
        if table != name:
            expressions = (
                f"{'' if column in typed else 'NULL AS '}{quoted(column.name.lower())}"
                for column in columns
            )
            self._connection.execute(
                f"CREATE TEMPORARY VIEW {quoted(name)} AS SELECT {', '.join(expressions)} FROM"
                f" {quoted(table)}"
            )

    def change(self, statement: str) -> int:
        try:
            answer = self._connection.execute(statement).fetchone()
        except self._errors as error:
            text = str(error).strip().splitlines()[0]
            if "affect the same target row more than once" in text:
                raise DuplicateRefusedError(text) from error
            raise RefusedError(text) from error
        return int(answer[0]) if answer else 0

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(query).fetchall()

    def close(self) -> None:
        self._connection.close()


class PostgreSQLVerifier:
    """A PostgreSQL server, used with temporary tables."""

    name = "PostgreSQL"
    dialect = "postgresql"

    def __init__(self, uri: str = "") -> None:
        uri = uri or os.environ.get(POSTGRES_VARIABLE, "")
        if not uri:
            raise SetupError(
                "No PostgreSQL server is named",
                hint=(
                    "Write --verify postgresql://user:password@host/database in the cell (in a"
                    f" program verify='postgresql://...'), or set {POSTGRES_VARIABLE} to that"
                    " address before Jupyter starts."
                ),
            )
        try:
            from adbc_driver_manager import Error
            from adbc_driver_postgresql import dbapi
        except ModuleNotFoundError as error:
            raise SetupError(
                "The driver for PostgreSQL is not installed",
                hint=f"Run: {install_command('verify')}",
            ) from error
        self._errors = Error
        try:
            self._connection = dbapi.connect(with_safe_path(uri))
            self.rows(f"SELECT pg_catalog.set_config('search_path', '{SAFE_PATH}', false)")
        except Error as error:
            # The driver's message may hold the password.
            raise SetupError(
                f"The PostgreSQL server does not answer (SQLSTATE {error.sqlstate or 'unknown'})",
                hint=f"Look at {POSTGRES_VARIABLE}.",
            ) from error

    def load(self, name: str, columns: Sequence[ColumnMetadata], rows: pa.Table) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(create_table(name, columns, self.dialect))
            if rows.num_rows:
                cursor.adbc_ingest(name, rows, mode="append", temporary=True)

    def change(self, statement: str) -> int:
        with self._connection.cursor() as cursor:
            try:
                cursor.execute(statement)
            except self._errors as error:
                text = next(
                    (line for line in str(error).splitlines() if "ERROR:" in line), str(error)
                ).partition("ERROR:")[2]
                error_class = DuplicateRefusedError if error.sqlstate == "21000" else RefusedError
                raise error_class(text.strip() or str(error)) from error
            return int(cursor.rowcount)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return [tuple(row) for row in cursor.fetchall()]

    def close(self) -> None:
        self._connection.close()


def open_verifier(engine: str) -> Verifier:
    if engine == "duckdb":
        return DuckDBVerifier()
    return PostgreSQLVerifier("" if engine == "postgresql" else engine)
