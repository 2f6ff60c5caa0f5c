"""The alterations of ALTER TABLE and COMMENT, one per statement.

Columns are named as in the table.
"""

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
    """The position of a new column."""

    FIRST = "FIRST"
    LAST = "LAST"
    AFTER = "AFTER"


@dataclass(frozen=True)
class AddColumn:
    """``ADD COLUMN``: existing rows get NULL, whatever its default.

    Args:
        after: the preceding column, for `ColumnPosition.AFTER`.
    """

    column: ColumnMetadata
    position: ColumnPosition = ColumnPosition.LAST
    after: str = ""


@dataclass(frozen=True)
class DropColumn:
    """``DROP COLUMN``: its values are lost."""

    column: str


@dataclass(frozen=True)
class RenameColumn:
    """``RENAME COLUMN``: its values stay."""

    column: str
    name: str


@dataclass(frozen=True)
class SetColumnType:
    """``ALTER COLUMN ... SET DATA TYPE``: values are converted as far as the store can represent
    them.
    """

    column: str
    type: Type


@dataclass(frozen=True)
class AddField:
    """``ADD COLUMN r.f``: a new last field of a row; existing rows get NULL.

    Args:
        within: the path to the row: column, names of fields, ``element`` of arrays.
    """

    within: tuple[str, ...]
    name: str
    type: Type


@dataclass(frozen=True)
class DropField:
    """``DROP COLUMN r.f``: the path to the field, which is not its row's only one."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class RenameField:
    """``RENAME COLUMN r.f TO g``: the path to the field; its values stay."""

    path: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class SetFieldType:
    """``ALTER COLUMN r.f SET DATA TYPE``: the path may contain ``element``, ``key`` and ``value``."""

    path: tuple[str, ...]
    type: Type


@dataclass(frozen=True)
class DropNotNull:
    """``ALTER COLUMN ... DROP NOT NULL``."""

    column: str


@dataclass(frozen=True)
class SetDefault:
    """``ALTER COLUMN ... SET DEFAULT``: existing rows keep their values.

    Args:
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
    """``SET PROPERTIES``: other properties stay.

    Args:
        properties: values by name; None for ``DEFAULT``.
    """

    properties: Mapping[str, Any]


@dataclass(frozen=True)
class SetTableComment:
    """``COMMENT ON TABLE``; None removes it."""

    comment: str | None


@dataclass(frozen=True)
class SetColumnComment:
    """``COMMENT ON COLUMN``; None removes it."""

    column: str
    comment: str | None


@dataclass(frozen=True)
class CreateBranch:
    """``CREATE [OR REPLACE] BRANCH name IN TABLE t [FROM origin]``: at the head of another branch, or
    of the table; raises BRANCH_ALREADY_EXISTS unless `replace`.
    """

    name: str
    origin: str | None = None
    replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropBranch:
    """``DROP BRANCH name IN TABLE t``: its rows are lost unless another branch has them."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class FastForwardBranch:
    """``ALTER BRANCH name IN TABLE t FAST FORWARD TO destination``: the branch gets the other's head,
    which must come after its own.
    """

    name: str
    destination: str


Alteration: TypeAlias = (
    "AddColumn | DropColumn | RenameColumn | SetColumnType | DropNotNull | SetDefault | DropDefault"
    " | RenameTable | SetProperties | SetTableComment | SetColumnComment | AddField | DropField |"
    " RenameField | SetFieldType | CreateBranch | DropBranch | FastForwardBranch"
)
