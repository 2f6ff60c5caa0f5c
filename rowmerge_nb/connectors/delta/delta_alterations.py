"""ALTER TABLE and COMMENT, as far as delta-rs goes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from rowmerge_nb.connectors.delta.delta_types import field_json
from rowmerge_nb.spi import (
    AddColumn,
    ColumnPosition,
    DropColumn,
    DropNotNull,
    RenameColumn,
    SetColumnType,
    SetProperties,
)
from rowmerge_nb.spi.alterations import SetColumnComment, SetTableComment

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable

    from rowmerge_nb.spi.alterations import Alteration


def check_alteration(alteration: Alteration) -> None:
    """Raise NOT_SUPPORTED for what Delta tables without column mapping cannot do."""
    match alteration:
        case AddColumn(column=column, position=position):
            if position is not ColumnPosition.LAST:
                raise _refused("adding a column before others", "Remove FIRST and AFTER.")
            if not column.nullable:
                raise _refused(
                    "adding not null columns",
                    "Add it without NOT NULL: existing rows have NULL in it.",
                )
            field_json(column)
        case SetProperties(properties=properties):
            name = next(iter(properties))
            raise AnalysisError(
                f"The following properties cannot be updated: {name}",
                code="NOT_SUPPORTED",
                properties=(name,),
                hint="CREATE TABLE AS creates a table with other properties.",
            )
        case DropNotNull() | SetColumnComment() | SetTableComment():
            pass
        case DropColumn() | RenameColumn():
            verb = "drop" if isinstance(alteration, DropColumn) else "rename"
            raise ConnectorError(
                f"Cannot {verb} column from table using column mapping mode NONE",
                hint="CREATE TABLE AS creates a table with other columns.",
            )
        case SetColumnType():
            raise _refused(
                "setting column types", "CREATE TABLE AS creates a table with other columns."
            )
        case _:
            raise _refused("renaming tables", "CREATE TABLE AS creates a table with another name.")


def alter(table: DeltaTable, alteration: Alteration, properties: CommitProperties) -> None:
    from deltalake import Field

    commit: dict[str, Any] = {"commit_properties": properties}
    match alteration:
        case AddColumn(column=column):
            table.alter.add_columns(Field.from_json(json.dumps(field_json(column))), **commit)
        case DropNotNull(column=name):
            table.alter.drop_column_not_null(name, **commit)
        case SetColumnComment(column=name, comment=comment):
            table.alter.set_column_metadata(name, {"comment": comment or ""}, **commit)
        case SetTableComment(comment=comment):
            table.alter.set_table_description(comment or "", **commit)


def _refused(what: str, hint: str) -> ConnectorError:
    return ConnectorError(f"This connector does not support {what}", hint=hint)
