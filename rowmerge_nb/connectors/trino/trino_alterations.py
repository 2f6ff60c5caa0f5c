"""ALTER TABLE and COMMENT as calls of a plugin's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowmerge_nb.connectors.trino.trino_handles import wire_of
from rowmerge_nb.spi import alterations as a
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.spi.types import UNKNOWN

if TYPE_CHECKING:
    from rowmerge_nb.connectors.trino.trino_handles import TrinoTableHandle
    from rowmerge_nb.spi.metadata import ColumnMetadata


def alteration_call(
    table: TrinoTableHandle, alteration: a.Alteration
) -> tuple[str, dict[str, Any]]:
    match alteration:
        case a.RenameTable(name):
            return "rename_table", {"new": {"schema": name.schema, "table": name.table}}
        case a.SetProperties(properties):
            return "set_table_properties", {"properties": dict(properties)}
        case a.SetTableComment(comment):
            return "set_table_comment", {"comment": comment}
        case a.AddField() | a.DropField() | a.RenameField() | a.SetFieldType():
            return _field_call(table, alteration)
        case _:
            return _column_call(table, alteration)


def _column_call(table: TrinoTableHandle, alteration: Any) -> tuple[str, dict[str, Any]]:
    if isinstance(alteration, a.AddColumn):
        return "add_column", {
            "column": column_on_wire(alteration.column),
            "position": str(alteration.position),
            "after": alteration.after,
        }
    column = {"column": _column(table, alteration.column)}
    match alteration:
        case a.DropColumn():
            return "drop_column", column
        case a.RenameColumn(_, name):
            return "rename_column", {**column, "name": name}
        case a.SetColumnType(_, sql_type):
            return "set_column_type", {**column, "type": str(sql_type)}
        case a.DropNotNull():
            return "drop_not_null_constraint", column
        case a.SetDefault(_, default):
            return "set_default_value", {**column, "default": default}
        case a.DropDefault():
            return "drop_default_value", column
        case a.SetColumnComment(_, comment):
            return "set_column_comment", {**column, "comment": comment}
        case _:
            raise TypeError(f"{alteration!r} is not an alteration of a column")


def _field_call(
    table: TrinoTableHandle,
    alteration: a.AddField | a.DropField | a.RenameField | a.SetFieldType,
) -> tuple[str, dict[str, Any]]:
    match alteration:
        case a.AddField(within, name, sql_type):
            return "add_field", {"path": list(within), "name": name, "type": str(sql_type)}
        case a.DropField((column, *path)):
            return "drop_field", {"column": _column(table, column), "path": path}
        case a.RenameField(path, name):
            return "rename_field", {"path": list(path), "name": name}
        case a.SetFieldType(path, sql_type):
            return "set_field_type", {"path": list(path), "type": str(sql_type)}
        case _:
            raise TypeError(f"{alteration!r} has no path")


def _column(table: TrinoTableHandle, name: str) -> dict[str, Any] | None:
    (column,) = table.columns_of([ColumnHandle(name, UNKNOWN)])
    return wire_of(column.java)


def column_on_wire(column: ColumnMetadata) -> dict[str, Any]:
    """Return a new column as an object of the wire.

    >>> from rowmerge_nb.spi.metadata import ColumnMetadata
    >>> from rowmerge_nb.spi.types import BIGINT
    >>> column_on_wire(ColumnMetadata("id", BIGINT, nullable=False))
    {'name': 'id', 'type': 'bigint', 'nullable': False, 'comment': None, 'default': None}
    """
    return {
        "name": column.name,
        "type": str(column.type),
        "nullable": column.nullable,
        "comment": column.comment,
        "default": column.default,
    }
