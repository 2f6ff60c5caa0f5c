"""A database: how it is reached, what its types are, and how it speaks where databases differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError, RowMergeError
from rowmerge_nb.base.names import quoted
from rowmerge_nb.connectors.jdbc.interrupts import interruptible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.base.errors import ExecutionError
    from rowmerge_nb.connectors.jdbc.handles import Column, JdbcSplit, JdbcTableHandle, Stage
    from rowmerge_nb.connectors.jdbc.predicates import Terms
    from rowmerge_nb.connectors.jdbc.staging import StageWriter
    from rowmerge_nb.spi.handles import SchemaTableName
    from rowmerge_nb.spi.types import Type

SHOWN: Final = 200
"""At most this many characters of a value are shown."""


def literal(text: str) -> str:
    """Write a text as SQL has it.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Reading:
    """How a column is read.

    Args:
        select: the expression that gives its values in a form that the driver has.
        kind: the Arrow type of that form.
        misfit: a condition that holds for values that the column's type does not have; ``""`` where all are good.
        column: the column as it is, to show a misfit.
    """

    select: str
    kind: pa.DataType
    misfit: str = ""
    column: str = ""

    def without_misfits(self) -> Reading:
        """Return the reading that gives NULL for misfits."""
        if not self.misfit:
            return self
        return replace(self, select=f"CASE WHEN {self.misfit} THEN NULL ELSE {self.select} END", misfit="")


@dataclass(frozen=True)
class Follower:
    """What acts on changes of a table's rows by itself.

    Args:
        what: a sentence that says what would become of it if updated rows are taken out and put in again.
        column: the column whose new values it follows; None where it follows any change.
    """

    what: str
    column: str | None = None

    @classmethod
    def table(cls, name: str, column: str | None = None) -> Follower:
        """Another table, or the same, by its foreign key: its rows go with rows that go, or get the new values of a column."""
        return cls(f"table '{name}' would {'follow' if column is None else 'not follow'}: its foreign key says so", column)

    @classmethod
    def trigger(cls, name: str) -> Follower:
        """A trigger or a rule, which may do anything."""
        return cls(f"'{name}', its trigger or rule, would see other changes than these")


class Store(ABC):
    """A database. Travels to tasks; its credentials do not show in its ``repr`` nor in what it raises."""

    name: str
    """What it is called in messages: ``SQLite``, ``PostgreSQL``."""

    extra: str
    """The optional dependency that brings its driver."""

    truncating: str
    """The words before the name of a table that is emptied."""

    has_schemas: bool
    """Whether there are schemas to make and to remove."""

    alters_columns: bool
    """Whether a column can get another type, and lose its NOT NULL."""

    stores_comments: bool
    """Whether tables and columns keep comments."""

    equals = "="
    """The operator that a statement which writes to a user's table compares by."""

    keeps_negative_zero: bool
    """Whether -0.0 is read as -0.0."""

    keeps_others_out: bool
    """Whether nobody else writes from the moment on when a transaction begins to write."""

    def column_name(self, name: str) -> str:
        """Return the name that a new column gets."""
        return name

    def cast_of(self, declared: str) -> str:
        """Return what is written behind a staged value to make it one of a declared type; by default nothing is needed."""
        return ""

    most_columns: int
    """How many columns a table can have."""

    staged_beside: int
    """How many columns a stage has beside those of the table and of its key."""

    batch_option: tuple[str, str]
    """The driver's option that bounds what it holds of a query's rows at a time."""

    @property
    @abstractmethod
    def shown(self) -> str:
        """Which database this is, in words that may be shown to anybody."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shown})"

    @abstractmethod
    def connect(self, *, writing: bool = False) -> Session:
        """Open a session in which every statement is its own transaction until one is begun.

        Raises:
            SetupError: the driver is not installed.
            ConnectorError: the database cannot be reached.
        """

    @abstractmethod
    def translate(self, error: Exception, doing: str) -> RowMergeError:
        """Return an error of ours for one that the driver raised."""

    @abstractmethod
    def reading(self, column: Column, *, key: bool) -> Reading:
        """Return how a column is read, or how it is as a part of the row id."""

    @abstractmethod
    def row_id_type(self, handle: JdbcTableHandle) -> Type:
        """Return the type of the row id."""

    @abstractmethod
    def row_id_readings(self, handle: JdbcTableHandle) -> list[Reading]:
        """Return how the parts of the row id are read."""

    @abstractmethod
    def range_of(self, split: JdbcSplit) -> str:
        """Return the condition of a split; ``""`` for the whole table."""

    @abstractmethod
    def terms(self, column: Column, *, unicode: bool) -> Terms | None:
        """Return how a column is compared with values, where the database does so as the engine does; ``unicode``: texts are UTF-8."""

    @abstractmethod
    def begin_reading(self, session: Session, split: JdbcSplit) -> None:
        """Make a session see what all splits see."""

    @abstractmethod
    def select(self, readings: Sequence[Reading], names: Sequence[str], source: str) -> str:
        """Write the query that reads; its first row may be one that only shows the types (`leading_rows`)."""

    leading_rows = 0
    """How many rows at the head of what `select` gives are not the table's."""

    @abstractmethod
    def transported(self, column: Column, array: pa.Array) -> pa.Array:
        """Convert values of a page into the form in which they are staged.

        Raises:
            ConnectorError: the database has no such value; the message names the column and the value.
        """

    @abstractmethod
    def stage_columns(self, handle: JdbcTableHandle) -> list[tuple[str, pa.DataType, str]]:
        """Return the columns of a stage: name, Arrow type, the database's type."""

    @abstractmethod
    def shown_value(self, reading: Reading) -> str:
        """Write the expression that shows a misfit as a text."""

    @abstractmethod
    def address(self, handle: JdbcTableHandle) -> str:
        """Write the expression that says in words which row of a table it is; ``""`` where rows have no address."""

    def address_of_text(self, session: Session, handle: JdbcTableHandle, column: Column, value: bytes) -> str:
        """Return in words which row of a table has a text, from its bytes; by default that is not known."""
        return ""

    @abstractmethod
    def stage_writer(self, stage: Stage) -> StageWriter:
        """Make what stages the rows of one attempt."""

    @abstractmethod
    def transported_key(self, handle: JdbcTableHandle, parts: list[pa.Array]) -> list[pa.Array]:
        """Convert the parts of row ids into the form in which they are staged."""

    @abstractmethod
    def row_id_conditions(self, handle: JdbcTableHandle) -> list[str]:
        """Write what joins a table ``t`` to its stage ``s``."""

    @abstractmethod
    def staged_rows(self, handle: JdbcTableHandle, stage: str, operation: int) -> str:
        """Write what stands behind ``DELETE FROM ... AS t`` for the rows staged with an operation."""

    @abstractmethod
    def reinserting(self, handle: JdbcTableHandle, stage: str, insert: str, rows: int) -> list[str]:
        """Write the statements that take updated rows out and put them in anew; each touches ``rows`` rows."""

    @abstractmethod
    def triggers(self, session: Session, handle: JdbcTableHandle) -> list[str]:
        """Name the triggers and rules that act when a table's rows are changed."""

    @abstractmethod
    def followers(self, session: Session, handle: JdbcTableHandle) -> list[Follower]:
        """Return what acts on changes of a table's rows, and would act otherwise if updated rows are taken out and put in again."""

    @abstractmethod
    def bound_tables(self, session: Session, handle: JdbcTableHandle) -> list[str]:
        """Name the other tables whose rows would go, or change, if this one were dropped or emptied; none where the database refuses both."""

    @abstractmethod
    def is_repeated_key(self, error: ExecutionError) -> bool:
        """Return whether an error of ours speaks of a key that would be there twice."""

    @abstractmethod
    def changed(self, session: Session, sql: str, doing: str) -> int:
        """Run a statement and give how many rows it touched."""

    def fill(self, session: Session, handle: JdbcTableHandle, stage: str, operation: int) -> None:
        """Put the defaults that stand in for NULL into the rows staged with an operation, where `inserted` does not; by default it does."""

    def inserted(self, column: Column, value: str) -> str:
        """Return the SQL of what is inserted for a staged value: the column's default if it replaces NULL."""
        return f"COALESCE({value}, {column.default})" if column.default else value

    def table(self, handle: JdbcTableHandle) -> str:
        """Write a table's name."""
        return ".".join(map(quoted, handle.spelled))

    def check_room(self, name: SchemaTableName, columns: int, keys: int) -> None:
        """Refuse a table that has too many columns for the database, or for the stage of rows that are written to it."""
        room = self.most_columns - self.staged_beside - keys
        if columns > room:
            raise ConnectorError(
                f"Table '{name}' has {columns} columns; {self.name} has room for {room} of a table that is written to here",
                code="NOT_SUPPORTED",
                hint="Divide it into several tables, or keep it in a store of files.",
            )

    def converted(self, column: Column, array: pa.Array) -> pa.Array:
        """Convert what the driver gave into the column's Arrow type."""
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if column.type.base == "char":
            array = pc.utf8_rpad(array.cast(pa.string()), column.type.parameters[0], " ")
        return array.cast(column.type.arrow)


class Session:
    """A connection to a database: SQL in, Arrow in and out, errors of ours.

    Args:
        store: the database.
        connection: the driver's connection, which commits by itself.
    """

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
        except Exception as error:  # noqa: BLE001 - whatever the driver raises is told as ours
            # Without the driver's error as its cause: that one may hold the connection string.
            raise self.store.translate(error, doing) from None
        finally:
            if cursor is not None:
                cursor.close()

    def execute(self, sql: str, doing: str = "A statement") -> int:
        """Run a statement; give the number of rows touched where the driver tells it."""
        with self._cursor(doing) as cursor:
            interruptible(partial(cursor.execute, sql), cursor.adbc_cancel)
            return int(cursor.rowcount)

    def query(self, sql: str, doing: str = "A query") -> list[dict[str, Any]]:
        """Return the rows of a small query."""

        def rows(cursor: Any) -> list[dict[str, Any]]:
            cursor.execute(sql)
            found: list[dict[str, Any]] = cursor.fetch_arrow_table().to_pylist()
            return found

        with self._cursor(doing) as cursor:
            return interruptible(partial(rows, cursor), cursor.adbc_cancel)

    def value(self, sql: str, doing: str = "A query") -> Any:
        """Return the only value of a query."""
        (row,) = self.query(sql, doing)
        (value,) = row.values()
        return value

    def stream(self, sql: str, batch_option: tuple[str, str] | None, doing: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a query batch by batch."""
        with self._cursor(doing) as cursor:
            if batch_option is not None:
                cursor.adbc_statement.set_options(**dict([batch_option]))
            interruptible(partial(cursor.execute, sql), cursor.adbc_cancel)
            with cursor.fetch_record_batch() as reader:
                yield from reader

    def bind(self, sql: str, rows: pa.RecordBatchReader, doing: str) -> None:
        """Run a statement with parameters once per row."""
        with self._cursor(doing) as cursor:
            interruptible(partial(cursor.executemany, sql, rows), cursor.adbc_cancel)

    def ingest(self, schema: str, table: str, rows: pa.Table, doing: str) -> None:
        """Append rows to a table."""
        with self._cursor(doing) as cursor:
            ingest = partial(cursor.adbc_ingest, table, rows, mode="append", db_schema_name=schema)
            interruptible(ingest, cursor.adbc_cancel)

    def close(self) -> None:
        """Close the connection; a transaction that is open is undone by the database."""
        with suppress(Exception):
            self._connection.close()


def unsupported(store: Store, table: str, column: str, declared: str, why: str, hint: str) -> ConnectorError:
    """Return the error of a column whose type has no counterpart."""
    return ConnectorError(
        f"Column '{column}' of {store.name} table '{table}' is of type {declared}, {why}", code="NOT_SUPPORTED", hint=hint
    )
