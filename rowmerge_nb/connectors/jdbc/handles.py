"""What the connector hands to engine and tasks. All of it pickles, and none of it shows a password."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rowmerge_nb.spi.handles import (
    ColumnHandle,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorSplit,
    ConnectorTableHandle,
    SchemaTableName,
    own,
)
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.types import Type

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Column:
    """A column as the database has it.

    Args:
        name: its name, as the database spells it.
        type: the SQL type that pages carry.
        declared: the database's own name of the type.
        nullable: NULL may be given for it: it may hold NULL, or the database puts its default in place of it.
        default: the expression that stands in for NULL where the column may not hold one; None where nothing does.
        generated: the database computes it; nobody can write it.
        always: the database numbers it (GENERATED ALWAYS AS IDENTITY), and takes a given number on special request only.
        cast: what is written behind a staged value to make it one of this column, for instance ``::uuid``.
        comment: the comment on it.
        added: the table does not have it yet: a MERGE adds it along with its changes.
        numbered: the database puts a number in the place of NULL.
    """

    name: str
    type: Type
    declared: str
    nullable: bool = True
    default: str | None = None
    generated: bool = False
    always: bool = False
    cast: str = ""
    comment: str | None = None
    added: bool = False
    numbered: bool = False

    @property
    def filled(self) -> bool:
        """The database puts a value of its own where a new row has NULL."""
        return self.numbered or self.generated or self.default is not None


@dataclass(frozen=True)
class JdbcTableHandle(ConnectorTableHandle):
    """A table or view.

    Args:
        name: its name in lower case, as statements have it.
        spelled: schema and table as the database spells them.
        columns: its columns in table order.
        key: the names of the primary key's columns in the key's order; none for a table without one.
        kind: ``table`` for what has rows of its own, else the word for what it is: ``view``, ...
        ranges: large ones can be read in ranges of the database's own row addresses.
        comment: the comment on it.
        refusing: what makes a statement fail at a row that breaks a constraint, where the table says to take another row out, or to skip it.
    """

    name: SchemaTableName
    spelled: tuple[str, str]
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    kind: str = "table"
    ranges: bool = True
    comment: str | None = None
    refusing: str = ""

    def column(self, name: str) -> Column:
        """Return a column by its name."""
        return next(column for column in self.columns if column.name == name)

    @property
    def key_columns(self) -> tuple[Column, ...]:
        """The columns of the primary key, in the key's order."""
        return tuple(self.column(name) for name in self.key)

    @property
    def metadata(self) -> ConnectorTableMetadata:
        """The table in the words of the contract."""
        columns = tuple(ColumnMetadata(c.name, c.type, c.nullable, comment=c.comment, filled=c.filled) for c in self.columns)
        return ConnectorTableMetadata(self.name, columns, {"primary_key": self.key} if self.key else {}, self.comment)


@dataclass(frozen=True)
class RowIdColumn(ColumnHandle):
    """The row id: told by its class, since a table may have a column of any name."""


@dataclass(frozen=True)
class JdbcSplit(ConnectorSplit):
    """A range of a table's rows.

    Args:
        low: first row address (SQLite: rowid or key, PostgreSQL: block); None for no bound.
        high: first row address behind the range; None for no bound.
        address: what a range is one of, in the database's SQL, where that differs between tables.
        predicate: the condition of rows that matter; ``""`` if all do.
        snapshot: the database's name of the state that all splits of the statement see; ``""`` where it has none.
        small: the table is so small that reading it costs less than a task.
    """

    low: int | None = None
    high: int | None = None
    snapshot: str = ""
    small: bool = False
    address: str = ""
    predicate: str = ""

    @property
    def is_repeatable(self) -> bool:
        """All who read it see one state of the database, if that has a name; SQLite has none."""
        return bool(self.snapshot)

    @property
    def carries_rows(self) -> bool:
        """Small tables are read at once, where the statement is planned."""
        return self.small


@dataclass(frozen=True)
class Stage:
    """Where the attempts of one statement put their rows, until the driver applies those that count.

    Args:
        area: SQLite: a directory; PostgreSQL: a table, beside the target.
        schema: the schema of that table.
    """

    area: str
    schema: str = ""


@dataclass(frozen=True)
class JdbcInsertTableHandle(ConnectorInsertTableHandle):
    """A table that rows are inserted into.

    Args:
        stage: where the rows are staged.
        filled: the columns that the statement names; the database puts its defaults into the others.
    """

    table_handle: JdbcTableHandle
    stage: Stage
    filled: tuple[str, ...]


@dataclass(frozen=True)
class JdbcMergeTableHandle(ConnectorMergeTableHandle):
    """A table that is merged into.

    Args:
        stage: where the changes are staged.
        updated: per case number the columns that its UPDATE assigns; None where that is not known (era ``documents``).
    """

    table_handle: JdbcTableHandle
    stage: Stage = field(default_factory=lambda: Stage(""))
    updated: Mapping[int, tuple[str, ...]] | None = None


def table_handle_of(handle: ConnectorTableHandle) -> JdbcTableHandle:
    """Return a handle as one of this connector."""
    return own(handle, JdbcTableHandle)
