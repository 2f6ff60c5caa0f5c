"""The interface of a database: connections, types, and SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError, RowMergeError, SetupError
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.base.names import quoted_path
from rowmerge_nb.connectors.jdbc.interrupts import interruptible
from rowmerge_nb.spi import SchemaTableName, Type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.base.errors import ExecutionError
    from rowmerge_nb.connectors.jdbc.jdbc_handles import (
        JdbcColumn,
        JdbcSplit,
        JdbcTableHandle,
        Stage,
    )
    from rowmerge_nb.connectors.jdbc.predicates import ColumnTerms
    from rowmerge_nb.connectors.jdbc.staging import StageWriter

SHOWN: Final = 200
"""The maximum number of characters of a value in messages."""
USUAL_STEP: Final = (
    "Change what the message refers to, in the statement or in the database, such as"
    " a trigger. The tables are unchanged."
)
"""The hint for errors of a database that have no hint of their own."""


@dataclass(frozen=True)
class Reading:
    """How a column is read.

    Args:
        select: the expression that converts its values for the driver.
        misfit: the condition of values that its type does not have.
    """

    select: str
    kind: pa.DataType
    misfit: str = ""
    column: str = ""

    def without_misfits(self) -> Reading:
        if not self.misfit:
            return self
        return replace(
            self, select=f"CASE WHEN {self.misfit} THEN NULL ELSE {self.select} END", misfit=""
        )


@dataclass(frozen=True)
class Follower:
    """A foreign key, trigger or rule that reacts to changes of a table's rows.

    Args:
        what: the effect of reinserting updated rows.
    """

    what: str
    column: str | None = None

    @classmethod
    def table(cls, name: str, column: str | None = None) -> Follower:
        return cls(
            f"table '{name}' would {'follow' if column is None else 'not follow'}: its foreign key"
            " says so",
            column,
        )

    @classmethod
    def trigger(cls, name: str) -> Follower:
        return cls(f"'{name}', its trigger or rule, would see different changes")


class Store(ABC):
    """A database. It is pickled for tasks, and shows no credentials."""

    name: str
    """The name in messages: ``SQLite``, ``PostgreSQL``."""

    extra: str
    """The optional dependency with its driver."""

    truncating: str
    """The SQL before the name of a table to truncate."""

    has_schemas: bool
    """Whether schemas can be created and dropped."""

    alters_columns: bool
    """Whether a column's type can be changed and its NOT NULL dropped."""

    stores_comments: bool
    """Whether tables and columns have comments."""

    equals = "="
    """The comparison operator in statements that write to a user's table."""

    keeps_negative_zero: bool
    """Whether -0.0 is read as -0.0."""

    keeps_others_out: bool
    """Whether a writing transaction blocks all other writers."""

    def column_name(self, name: str) -> str:
        return name

    def cast_of(self, declared: str) -> str:
        return ""

    undeclared: str
    """The words for a type that the database does not have."""

    @abstractmethod
    def declared_type(self, sql_type: Type) -> str | None: ...

    most_columns: int
    """The limit on columns of a table."""

    staged_beside: int
    """The number of a stage's columns besides those of the table and its key."""

    batch_option: tuple[str, str]
    """The driver's option that limits the rows it buffers."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """The database, in words without secrets."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shown})"

    def driver(self) -> Any:
        package = f"adbc_driver_{self.extra}"
        try:
            # A loaded submodule is returned even if its package cannot be imported.
            import_module(package)
            return import_module(f"{package}.dbapi")
        except ImportError:
            raise SetupError(
                f"The {self.name} connector needs the package adbc-driver-{self.extra}, which is"
                " not installed",
                hint=f"Run: {install_command(self.extra)}",
            ) from None

    @abstractmethod
    def connect(self, *, writing: bool = False) -> DatabaseSession:
        """Open a session in autocommit mode."""

    @abstractmethod
    def translate(self, error: Exception, doing: str) -> RowMergeError: ...

    @abstractmethod
    def reading(self, column: JdbcColumn) -> Reading: ...

    @abstractmethod
    def row_id_type(self, handle: JdbcTableHandle) -> Type: ...

    @abstractmethod
    def row_id_readings(self, handle: JdbcTableHandle) -> list[Reading]: ...

    @abstractmethod
    def range_of(self, split: JdbcSplit) -> str:
        """Return the condition of a split, or ``""``."""

    @abstractmethod
    def terms(self, column: JdbcColumn, *, unicode: bool) -> ColumnTerms | None:
        """Return the comparisons that agree with the engine's, if any."""

    @abstractmethod
    def begin_reading(self, session: DatabaseSession, split: JdbcSplit) -> None: ...

    @abstractmethod
    def select(self, readings: Sequence[Reading], names: Sequence[str], source: str) -> str:
        """Build the query; its `leading_rows` only show types."""

    leading_rows = 0
    """The number of rows at the head of a `select` that are not the table's."""

    @abstractmethod
    def transported(self, column: JdbcColumn, array: pa.Array) -> pa.Array: ...

    @abstractmethod
    def stage_columns(self, handle: JdbcTableHandle) -> list[tuple[str, pa.DataType, str]]:
        """Return name, Arrow type and the database's type."""

    @abstractmethod
    def shown_value(self, reading: Reading) -> str:
        """Build the expression that shows a misfit as text."""

    @abstractmethod
    def address(self, handle: JdbcTableHandle) -> str:
        """Build the expression of a row's address, or ``""``."""

    def address_of_text(
        self, session: DatabaseSession, handle: JdbcTableHandle, column: JdbcColumn, value: bytes
    ) -> str:
        """Describe the row that has a text, or ``""``."""
        return ""

    @abstractmethod
    def stage_writer(self, stage: Stage) -> StageWriter: ...

    @abstractmethod
    def transported_key(self, handle: JdbcTableHandle, parts: list[pa.Array]) -> list[pa.Array]:
        """Convert the parts of row ids for staging."""

    @abstractmethod
    def row_id_conditions(self, handle: JdbcTableHandle) -> list[str]:
        """Build the conditions that join table ``t`` to stage ``s``."""

    @abstractmethod
    def staged_rows(self, handle: JdbcTableHandle, stage: str, operation: int) -> str:
        """Build the SQL after ``DELETE FROM ... AS t``."""

    @abstractmethod
    def reinserting(self, handle: JdbcTableHandle, stage: str, insert: str, rows: int) -> list[str]:
        """Build the statements that delete and reinsert updated rows."""

    @abstractmethod
    def triggers(self, session: DatabaseSession, handle: JdbcTableHandle) -> list[str]: ...

    @abstractmethod
    def followers(self, session: DatabaseSession, handle: JdbcTableHandle) -> list[Follower]:
        """Return what would act differently if updated rows were reinserted."""

    @abstractmethod
    def bound_tables(self, session: DatabaseSession, handle: JdbcTableHandle) -> list[str]:
        """Return other tables whose rows DROP or TRUNCATE would change."""

    @abstractmethod
    def is_repeated_key(self, error: ExecutionError) -> bool: ...

    @abstractmethod
    def changed(self, session: DatabaseSession, sql: str, doing: str) -> int:
        """Run a statement; return the number of rows."""

    def fill(
        self, session: DatabaseSession, handle: JdbcTableHandle, stage: str, operation: int
    ) -> None:
        """Replace NULL by defaults in staged rows, if `inserted` does not."""

    def inserted(self, column: JdbcColumn, value: str) -> str:
        return f"COALESCE({value}, {column.default})" if column.default else value

    def table(self, handle: JdbcTableHandle) -> str:
        return quoted_path(handle.spelled)

    def check_room(self, name: SchemaTableName, columns: int, keys: int) -> None:
        room = self.most_columns - self.staged_beside - keys
        if columns > room:
            raise ConnectorError(
                f"Table '{name}' has {columns} columns; {self.name} supports {room} in"
                " a table that is written here",
                hint="Divide it into several tables, or keep it in a store of files.",
            )

    def converted(self, column: JdbcColumn, array: pa.Array) -> pa.Array:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if column.type.base == "char":
            array = pc.utf8_rpad(array.cast(pa.string()), column.type.parameters[0], " ")
        return array.cast(column.type.arrow)


class DatabaseSession:
    """A connection: SQL in, Arrow in and out, converted errors."""

    def __init__(self, store: Store, connection: Any) -> None:
        self.store = store
        self._connection = connection

    @contextmanager
    def _cursor(self, doing: str) -> Iterator[Any]:
        cursor = None
        try:
            cursor = self._connection.cursor()
            yield cursor
        except RowMergeError:
            raise
        except Exception as error:  # noqa: BLE001 - any error of the driver is converted
            # Without a cause: the driver's error may hold the connection string.
            raise self.store.translate(error, doing) from None
        finally:
            if cursor is not None:
                cursor.close()

    def execute(self, sql: str, doing: str = "A statement") -> int:
        """Run a statement; return the number of rows, if known."""
        with self._cursor(doing) as cursor:
            interruptible(partial(cursor.execute, sql), cursor.adbc_cancel)
            return int(cursor.rowcount)

    def query(self, sql: str, doing: str = "A query") -> list[dict[str, Any]]:
        def rows(cursor: Any) -> list[dict[str, Any]]:
            cursor.execute(sql)
            records: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
            return records

        with self._cursor(doing) as cursor:
            return interruptible(partial(rows, cursor), cursor.adbc_cancel)

    def value(self, sql: str, doing: str = "A query") -> Any:
        (row,) = self.query(sql, doing)
        (value,) = row.values()
        return value

    def stream(
        self, sql: str, batch_option: tuple[str, str] | None, doing: str
    ) -> Iterator[pa.RecordBatch]:
        with self._cursor(doing) as cursor:
            if batch_option is not None:
                cursor.adbc_statement.set_options(**dict([batch_option]))
            interruptible(partial(cursor.execute, sql), cursor.adbc_cancel)
            with cursor.fetch_record_batch() as reader:
                yield from reader

    def bind(self, sql: str, rows: pa.RecordBatchReader, doing: str) -> None:
        with self._cursor(doing) as cursor:
            interruptible(partial(cursor.executemany, sql, rows), cursor.adbc_cancel)

    def ingest(self, schema: str, table: str, rows: pa.Table, doing: str) -> None:
        with self._cursor(doing) as cursor:
            ingest = partial(cursor.adbc_ingest, table, rows, mode="append", db_schema_name=schema)
            interruptible(ingest, cursor.adbc_cancel)

    def close(self) -> None:
        with suppress(Exception):
            self._connection.close()


def unsupported(
    store: Store, table: str, column: str, declared: str, why: str, hint: str
) -> ConnectorError:
    return ConnectorError(
        f"Column '{column}' of {store.name} table '{table}' is of type {declared}, {why}",
        hint=hint,
    )
