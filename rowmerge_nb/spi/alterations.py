"""What ALTER TABLE and COMMENT do to a table, as the contract has it: one of these per statement. Columns are named as the table names them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.spi.handles import SchemaTableName
    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.types import Type


class ColumnPosition(StrEnum):
    """Where a new column stands."""

    FIRST = "FIRST"
    LAST = "LAST"
    AFTER = "AFTER"


@dataclass(frozen=True)
class AddColumn:
    """``ADD COLUMN``: existing rows have NULL in it, whatever its default.

    Args:
        column: the new column.
        position: where it stands.
        after: behind which one, for `ColumnPosition.AFTER`.
    """

    column: ColumnMetadata
    position: ColumnPosition = ColumnPosition.LAST
    after: str = ""


@dataclass(frozen=True)
class DropColumn:
    """``DROP COLUMN``: its values are gone."""

    column: str


@dataclass(frozen=True)
class RenameColumn:
    """``RENAME COLUMN``: its values stay."""

    column: str
    name: str


@dataclass(frozen=True)
class SetColumnType:
    """``ALTER COLUMN ... SET DATA TYPE``: its values stay what they are, as far as the store can say them in the other type."""

    column: str
    type: Type


@dataclass(frozen=True)
class AddField:
    """``ADD COLUMN r.f``: a field more behind those of a row; existing rows have NULL in it.

    Args:
        within: the column, and the way from it to the row: names of fields, ``element`` of arrays.
        name: the field's name.
        type: its type.
    """

    within: tuple[str, ...]
    name: str
    type: Type


@dataclass(frozen=True)
class DropField:
    """``DROP COLUMN r.f``: the column, and the way from it to the field, which is not its row's only one."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class RenameField:
    """``RENAME COLUMN r.f TO g``: the column, and the way from it to the field; its values stay."""

    path: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class SetFieldType:
    """``ALTER COLUMN r.f SET DATA TYPE``: the column, and the way from it to the field, by ``element``, ``key`` and ``value`` too."""

    path: tuple[str, ...]
    type: Type


@dataclass(frozen=True)
class DropNotNull:
    """``ALTER COLUMN ... DROP NOT NULL``."""

    column: str


@dataclass(frozen=True)
class SetDefault:
    """``ALTER COLUMN ... SET DEFAULT``: rows that are there keep their values.

    Args:
        column: the column.
        default: the literal, as SQL text.
    """

    column: str
    default: str


@dataclass(frozen=True)
class DropDefault:
    """``ALTER COLUMN ... DROP DEFAULT``."""

    column: str


@dataclass(frozen=True)
class RenameTable:
    """``RENAME TO``."""

    name: SchemaTableName


@dataclass(frozen=True)
class SetProperties:
    """``SET PROPERTIES``: the properties that are not named stay as they are.

    Args:
        properties: values by name, as CREATE TABLE has them; None for ``DEFAULT``, the value of a table that was made without the property.
    """

    properties: Mapping[str, Any]


@dataclass(frozen=True)
class SetTableComment:
    """``COMMENT ON TABLE``; None takes the comment away."""

    comment: str | None


@dataclass(frozen=True)
class SetColumnComment:
    """``COMMENT ON COLUMN``; None takes the comment away."""

    column: str
    comment: str | None


Alteration: TypeAlias = (
    "AddColumn | DropColumn | RenameColumn | SetColumnType | DropNotNull | SetDefault | DropDefault | RenameTable"
    " | SetProperties | SetTableComment | SetColumnComment | AddField | DropField | RenameField | SetFieldType"
)
