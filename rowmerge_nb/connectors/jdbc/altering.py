"""ALTER TABLE in the words of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.errors import ConnectorError
from rowmerge_nb.names import quoted
from rowmerge_nb.spi.alterations import (
    AddColumn,
    ColumnPosition,
    DropColumn,
    DropNotNull,
    RenameColumn,
    RenameTable,
    SetColumnType,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.connectors.jdbc.handles import JdbcTableHandle
    from rowmerge_nb.connectors.jdbc.store import Store
    from rowmerge_nb.spi.alterations import Alteration
    from rowmerge_nb.spi.types import Type

__all__ = ["alteration_sql"]


_ANOTHER: Final = "Add a column, UPDATE it by a CAST, drop the old one and rename the new one."


def alteration_sql(store: Store, handle: JdbcTableHandle, alteration: Alteration, declared: Callable[[str, Type], str]) -> str:
    """Write the statement that alters a table.

    Args:
        store: the database.
        handle: the table.
        alteration: what is altered.
        declared: gives the database's type for a column's name and type.

    Raises:
        ConnectorError: NOT_SUPPORTED for what the database cannot do.
    """
    match alteration:
        case AddColumn(column=column, position=position):
            if position is not ColumnPosition.LAST:
                _refuse(store, f"a column {position.value}", "Leave the position out: it becomes the last one.")
            required = "" if column.nullable else " NOT NULL"
            action = f"ADD COLUMN {quoted(store.column_name(column.name))} {declared(column.name, column.type)}{required}"
        case DropColumn(column=name):
            action = f"DROP COLUMN {quoted(name)}"
        case RenameColumn(column=name, name=new):
            action = f"RENAME COLUMN {quoted(name)} TO {quoted(store.column_name(new))}"
        case SetColumnType(column=name, type=kind):
            if not store.alters_columns:
                _refuse(store, "another type of a column", _ANOTHER)
            action = f"ALTER COLUMN {quoted(name)} TYPE {declared(name, kind)}"
        case DropNotNull(column=name):
            if not store.alters_columns:
                _refuse(store, "DROP NOT NULL", _ANOTHER)
            action = f"ALTER COLUMN {quoted(name)} DROP NOT NULL"
        case RenameTable(name=name):
            if name.schema != handle.name.schema:
                _refuse(store, "a table's move to another schema", "CREATE TABLE AS copies it.")
            action = f"RENAME TO {quoted(name.table)}"
    return f"ALTER TABLE {store.table(handle)} {action}"


def _refuse(store: Store, what: str, hint: str) -> NoReturn:
    msg = f"{store.name} does not have {what} in ALTER TABLE"
    raise ConnectorError(msg, code="NOT_SUPPORTED", hint=hint)
