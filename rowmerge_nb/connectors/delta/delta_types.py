"""Mapping between Delta's types, as its log has them, and SQL types."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import AnalysisError, ConnectorError
from rowmerge_nb.spi import ColumnMetadata, Type
from rowmerge_nb.spi.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    TIMESTAMP,
    TIMESTAMP_TZ,
    VARBINARY,
    VARCHAR,
    array_of,
    decimal_of,
    map_of,
    parse_type,
    row_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_READ: Final = {
    "boolean": BOOLEAN,
    "byte": parse_type("tinyint"),
    "short": parse_type("smallint"),
    "integer": INTEGER,
    "long": BIGINT,
    "float": REAL,
    "double": DOUBLE,
    "date": DATE,
    "timestamp": TIMESTAMP_TZ,
    "timestamp_ntz": TIMESTAMP,
    "string": VARCHAR,
    "binary": VARBINARY,
}
_WRITTEN: Final = {
    **{sql_type.base: name for name, sql_type in _READ.items()},
    "char": "string",
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_REFUSED_NAMES: Final = re.compile(r"[ ,;{}()\n\t=]")


def columns_of(schema: str, table: object) -> tuple[ColumnMetadata, ...]:
    """Return the columns of a schema in JSON, or raise NOT_SUPPORTED."""
    return tuple(
        ColumnMetadata(
            field["name"],
            sql_type_of(field["type"], field["name"], table),
            field["nullable"],
            comment=field["metadata"].get("comment") or None,
        )
        for field in json.loads(schema)["fields"]
    )


def sql_type_of(delta_type: Any, path: str, table: object) -> Type:
    if isinstance(delta_type, str):
        if delta_type in _READ:
            return _READ[delta_type]
        decimal = _DECIMAL.fullmatch(delta_type)
        if decimal:
            return decimal_of(int(decimal[1]), int(decimal[2]))
    elif delta_type["type"] == "array":
        return array_of(sql_type_of(delta_type["elementType"], f"{path}.element", table))
    elif delta_type["type"] == "map":
        return map_of(
            sql_type_of(delta_type["keyType"], f"{path}.key", table),
            sql_type_of(delta_type["valueType"], f"{path}.value", table),
        )
    elif delta_type["type"] == "struct":
        return row_of(
            (part["name"], sql_type_of(part["type"], f"{path}.{part['name']}", table))
            for part in delta_type["fields"]
        )
    raise ConnectorError(
        f"Column '{path}' of Delta table '{table}' is of type {json.dumps(delta_type)}, which is"
        " not supported",
        hint="Read the table with another engine that casts the column.",
    )


def schema_json(columns: Sequence[ColumnMetadata]) -> str:
    """Return the schema of a new table in JSON, or raise NOT_SUPPORTED.

    >>> schema_json([ColumnMetadata("id", BIGINT, nullable=False)])
    '{"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": false, "metadata": {}}]}'
    """
    return json.dumps({"type": "struct", "fields": [field_json(column) for column in columns]})


def field_json(column: ColumnMetadata) -> dict[str, Any]:
    if _REFUSED_NAMES.search(column.name):
        raise AnalysisError.unsupported(
            f"Column name '{column.name}' has a character that Delta tables without column"
            " mapping do not allow",
            hint="Name the column without spaces and without , ; { } ( ) =.",
        )
    field = new_field(
        column.name, delta_type_of(column.type, column.name), nullable=column.nullable
    )
    if column.comment is not None:
        field["metadata"] = {"comment": column.comment}
    return field


def new_field(name: str, delta_type: Any, *, nullable: bool) -> dict[str, Any]:
    return {"name": name, "type": delta_type, "nullable": nullable, "metadata": {}}


def delta_type_of(sql_type: Type, path: str) -> Any:
    if sql_type.base in _WRITTEN:
        return _WRITTEN[sql_type.base]
    if sql_type.base == "decimal":
        return f"decimal({sql_type.parameters[0]},{sql_type.parameters[1]})"
    if sql_type.base == "array":
        element = delta_type_of(sql_type.parameters[0], f"{path}.element")
        return {"type": "array", "elementType": element, "containsNull": True}
    if sql_type.base == "map":
        key, value = (
            delta_type_of(part, f"{path}.{name}")
            for part, name in zip(sql_type.parameters, ("key", "value"), strict=True)
        )
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if sql_type.base == "row" and all(sql_type.fields):
        fields = [
            new_field(str(name), delta_type_of(part, f"{path}.{name}"), nullable=True)
            for name, part in zip(sql_type.fields, sql_type.parameters, strict=True)
        ]
        return {"type": "struct", "fields": fields}
    raise AnalysisError.unsupported(
        f"Type not supported for Delta: {sql_type}, of column '{path}'",
        hint="CAST it to a type that Delta has, for instance varchar.",
    )
