"""ALTER TABLE of memory tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from rowmerge_nb.connectors.memory.table_properties import by_name, checked_metadata, schema_of
from rowmerge_nb.connectors.shared.transforms import parse_transforms
from rowmerge_nb.spi import (
    AddColumn,
    ColumnPosition,
    ConnectorTableMetadata,
    DropColumn,
    DropDefault,
    DropNotNull,
    RenameColumn,
    RenameTable,
    SetColumnType,
    SetDefault,
    SetProperties,
    Type,
)
from rowmerge_nb.spi.alterations import SetColumnComment, SetTableComment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.spi.alterations import Alteration

_INTEGERS: Final = ("tinyint", "smallint", "integer", "bigint")
_DIGITS: Final = {"tinyint": 3, "smallint": 5, "integer": 10, "bigint": 19}
_NAMING: Final = ("bucketed_by", "primary_key")


def altered(
    metadata: ConnectorTableMetadata, rows: pa.Table, alteration: Alteration
) -> tuple[ConnectorTableMetadata, pa.Table]:
    match alteration:
        case AddColumn():
            return _added(metadata, rows, alteration)
        case DropColumn(column=name):
            refuse_placing(metadata, name, "dropped")
            columns = tuple(column for column in metadata.columns if column.name != name)
            return replace(metadata, columns=columns), rows.drop_columns([name])
        case RenameColumn(column=name, name=new):
            names = [new if column == name else column for column in rows.column_names]
            renamed = replace(metadata, properties=_renamed(metadata, name, new))
            return _with_column(renamed, name, name=new), rows.rename_columns(names)
        case SetColumnType(column=name, type=new_type):
            return _retyped(metadata, rows, name, new_type)
        case DropNotNull(column=name):
            return _with_column(metadata, name, nullable=True), rows
        case SetDefault(column=name, default=default):
            return _with_column(metadata, name, default=default), rows
        case DropDefault(column=name):
            return _with_column(metadata, name, default=None), rows
        case RenameTable(name=table):
            return replace(metadata, name=table), rows
        case SetProperties(properties=changes):
            properties = {
                name: value
                for name, value in {**metadata.properties, **changes}.items()
                if value is not None
            }
            return checked_metadata(replace(metadata, properties=properties)), rows
        case SetTableComment(comment=comment):
            return replace(metadata, comment=comment), rows
        case SetColumnComment(column=name, comment=comment):
            return _with_column(metadata, name, comment=comment), rows
    raise TypeError(alteration)


def _added(
    metadata: ConnectorTableMetadata, rows: pa.Table, alteration: AddColumn
) -> tuple[ConnectorTableMetadata, pa.Table]:
    names = [column.name for column in metadata.columns]
    at = {ColumnPosition.FIRST: 0, ColumnPosition.LAST: len(names)}.get(alteration.position)
    if at is None:
        at = names.index(alteration.after) + 1
    new = alteration.column
    columns = (*metadata.columns[:at], new, *metadata.columns[at:])
    field = pa.field(new.name, new.type.arrow)
    return replace(metadata, columns=columns), rows.add_column(
        at, field, pa.nulls(rows.num_rows, field.type)
    )


def _retyped(
    metadata: ConnectorTableMetadata, rows: pa.Table, name: str, new_type: Type
) -> tuple[ConnectorTableMetadata, pa.Table]:
    old = next(column.type for column in metadata.columns if column.name == name)
    refuse_placing(metadata, name, "changed in type")
    if not _has_all_values(old, new_type):
        raise ConnectorError(
            f"Column '{name}' of type {old} cannot become {new_type}: a column in"
            " memory can only get a type that has all values of the old one",
            hint="Add a column, UPDATE it by a CAST, drop the old one and rename the new one.",
        )
    retyped = _with_column(metadata, name, type=new_type)
    return retyped, rows.cast(schema_of(retyped.columns))


def _has_all_values(old: Type, new: Type) -> bool:
    if old == new:
        return True
    pair = (old.base, new.base)
    if new.base in _INTEGERS and old.base in _INTEGERS:
        return _INTEGERS.index(old.base) < _INTEGERS.index(new.base)
    if new.base == "decimal":
        digits, scale = (
            (_DIGITS[old.base], 0)
            if old.base in _DIGITS
            else old.parameters
            if old.base == "decimal"
            else (99, 0)
        )
        return bool(
            new.parameters[1] >= scale and new.parameters[0] - new.parameters[1] >= digits - scale
        )
    if pair == ("varchar", "varchar"):
        return not new.parameters or bool(old.parameters and old.parameters[0] <= new.parameters[0])
    if pair in {
        ("timestamp", "timestamp"),
        ("timestamp with time zone", "timestamp with time zone"),
        ("time", "time"),
    }:
        return bool(old.parameters[0] <= new.parameters[0])
    return pair in {
        ("real", "double"),
        ("smallint", "real"),
        ("tinyint", "real"),
        ("integer", "double"),
    }


def _with_column(
    metadata: ConnectorTableMetadata, name: str, /, **changes: Any
) -> ConnectorTableMetadata:
    columns = (replace(c, **changes) if c.name == name else c for c in metadata.columns)
    return replace(metadata, columns=tuple(columns))


def _renamed(metadata: ConnectorTableMetadata, name: str, new: str) -> Mapping[str, Any]:
    transforms = parse_transforms(metadata.properties["partitioned_by"], by_name(metadata.columns))
    renamed_lists = {
        key: tuple(new if column == name else column for column in metadata.properties[key])
        for key in _NAMING
    }
    renamed_transforms = tuple(
        str(replace(transform, column=new) if transform.column == name else transform)
        for transform in transforms
    )
    return {**metadata.properties, **renamed_lists, "partitioned_by": renamed_transforms}


def refuse_placing(metadata: ConnectorTableMetadata, name: str, verb: str) -> None:
    transforms = parse_transforms(metadata.properties["partitioned_by"], by_name(metadata.columns))
    naming = [key for key in _NAMING if name in metadata.properties[key]]
    naming += (
        ["partitioned_by"] if any(transform.column == name for transform in transforms) else []
    )
    if naming:
        raise AnalysisError.unsupported(
            f"Column '{name}' cannot be {verb}: the table property '{naming[0]}' names it",
            hint="CREATE TABLE AS creates a table with other properties.",
        )
