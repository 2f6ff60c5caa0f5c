"""Handles for engine and tasks. They pickle and reveal no password."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowmerge_nb.spi import (
    ColumnHandle,
    ColumnMetadata,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorOutputTableHandle,
    ConnectorSplit,
    ConnectorTableHandle,
    ConnectorTableMetadata,
    SchemaTableName,
    Type,
    own,
)


@dataclass(frozen=True)
class JdbcColumn:
    """A column of a database.

    Args:
        nullable: whether NULL may be written; a default may replace it.
        default: the expression that replaces NULL in a NOT NULL column.
        insert_default: the default of a nullable column, for an INSERT that omits it.
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
    insert_default: str | None = None

    @property
    def filled(self) -> bool:
        """Whether the database replaces NULL in a new row."""
        return self.numbered or self.generated or self.default is not None


@dataclass(frozen=True)
class JdbcTableHandle(ConnectorTableHandle):
    """A table or view.

    Args:
        ranges: whether it can be read in ranges of row addresses.
        refusing: the SQL that makes a statement fail if a row breaks a constraint.
    """

    name: SchemaTableName
    spelled: tuple[str, str]
    columns: tuple[JdbcColumn, ...]
    key: tuple[str, ...] = ()
    kind: str = "table"
    ranges: bool = True
    comment: str | None = None
    refusing: str = ""

    def column(self, name: str) -> JdbcColumn:
        return next(column for column in self.columns if column.name == name)

    @property
    def key_columns(self) -> tuple[JdbcColumn, ...]:
        return tuple(self.column(name) for name in self.key)

    @property
    def metadata(self) -> ConnectorTableMetadata:
        columns = tuple(
            ColumnMetadata(
                c.name,
                c.type,
                c.nullable,
                comment=c.comment,
                filled=c.filled,
                insert_default=c.insert_default,
            )
            for c in self.columns
        )
        return ConnectorTableMetadata(
            self.name, columns, {"primary_key": self.key} if self.key else {}, self.comment
        )


@dataclass(frozen=True)
class JdbcRowIdColumn(ColumnHandle):
    """The row id column, which its class identifies, not its name."""


@dataclass(frozen=True)
class JdbcSplit(ConnectorSplit):
    """A range of a table's rows.

    Args:
        address: the SQL of the address, if it differs between tables.
    """

    low: int | None = None
    high: int | None = None
    snapshot: str = ""
    carries_rows: bool = False
    address: str = ""
    predicate: str = ""

    @property
    def is_repeatable(self) -> bool:
        return bool(self.snapshot)


@dataclass(frozen=True)
class Stage:
    """The place of staged rows: a directory (SQLite), or a table next to the target (PostgreSQL)."""

    area: str
    schema: str = ""


@dataclass(frozen=True)
class JdbcInsertTableHandle(ConnectorInsertTableHandle):
    table_handle: JdbcTableHandle
    stage: Stage
    filled_columns: tuple[str, ...]


@dataclass(frozen=True)
class JdbcOutputTableHandle(JdbcInsertTableHandle, ConnectorOutputTableHandle):
    """The table of a CREATE TABLE AS, which does not exist yet."""

    metadata: ConnectorTableMetadata
    old_table: JdbcTableHandle | None = None


@dataclass(frozen=True)
class JdbcMergeTableHandle(ConnectorMergeTableHandle):
    """The target of a MERGE; ``updated`` has each case's updated columns, if known."""

    table_handle: JdbcTableHandle
    stage: Stage = field(default_factory=lambda: Stage(""))
    updated: Mapping[int, tuple[str, ...]] | None = None


def table_handle_of(handle: ConnectorTableHandle) -> JdbcTableHandle:
    return own(handle, JdbcTableHandle)
