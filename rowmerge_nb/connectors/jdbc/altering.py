"""ALTER TABLE and COMMENT in a database's SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.names import quoted, quoted_text
from rowmerge_nb.spi import (
    AddColumn,
    ColumnPosition,
    DropColumn,
    DropNotNull,
    RenameColumn,
    RenameTable,
    SetColumnType,
    SetProperties,
    Type,
)
from rowmerge_nb.spi.alterations import SetColumnComment, SetTableComment

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.connectors.jdbc.database import Store
    from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcTableHandle
    from rowmerge_nb.spi.alterations import Alteration

_ANOTHER: Final = "Add a column, UPDATE it by a CAST, drop the old one and rename the new one."


def alteration_sql(
    store: Store,
    handle: JdbcTableHandle,
    alteration: Alteration,
    declared: Callable[[str, Type], str],
) -> list[str]:
    table = store.table(handle)
    match alteration:
        case SetTableComment(comment=comment):
            return [comment_sql(f"TABLE {table}", comment)]
        case SetColumnComment(column=name, comment=comment):
            return [comment_sql(f"COLUMN {table}.{quoted(name)}", comment)]
        case SetProperties():
            raise ConnectorError(
                "This connector does not support setting table properties",
                hint="CREATE TABLE AS creates a table with other properties.",
            )
        case AddColumn(column=column, position=position):
            if position is not ColumnPosition.LAST:
                _refuse(
                    store,
                    f"a column {position.value}",
                    "Leave the position out: it becomes the last one.",
                )
            required = "" if column.nullable else " NOT NULL"
            action = (
                f"ADD COLUMN {quoted(store.column_name(column.name))}"
                f" {declared(column.name, column.type)}{required}"
            )
        case DropColumn(column=name):
            action = f"DROP COLUMN {quoted(name)}"
        case RenameColumn(column=name, name=new):
            action = f"RENAME COLUMN {quoted(name)} TO {quoted(store.column_name(new))}"
        case SetColumnType(column=name, type=new_type):
            if not store.alters_columns:
                _refuse(store, "another type of a column", _ANOTHER)
            action = f"ALTER COLUMN {quoted(name)} TYPE {declared(name, new_type)}"
        case DropNotNull(column=name):
            if not store.alters_columns:
                _refuse(store, "DROP NOT NULL", _ANOTHER)
            action = f"ALTER COLUMN {quoted(name)} DROP NOT NULL"
        case RenameTable(name=name):
            if name.schema != handle.name.schema:
                _refuse(store, "a table's move to another schema", "CREATE TABLE AS copies it.")
            action = f"RENAME TO {quoted(name.table)}"
    statements = [f"ALTER TABLE {table} {action}"]
    if isinstance(alteration, AddColumn) and alteration.column.comment is not None:
        name = quoted(store.column_name(alteration.column.name))
        statements.append(comment_sql(f"COLUMN {table}.{name}", alteration.column.comment))
    return statements


def comment_sql(target: str, comment: str | None) -> str:
    r"""Build the statement that sets or removes a comment.

    >>> comment_sql('TABLE "shop"', "it's")
    'COMMENT ON TABLE "shop" IS \'it\'\'s\''
    """
    return f"COMMENT ON {target} IS {'NULL' if comment is None else quoted_text(comment)}"


def _refuse(store: Store, feature: str, hint: str) -> NoReturn:
    raise ConnectorError(f"{store.name} does not have {feature} in ALTER TABLE", hint=hint)
