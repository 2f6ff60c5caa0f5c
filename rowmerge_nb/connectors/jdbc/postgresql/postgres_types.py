"""PostgreSQL's types, and the transport of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.base.names import quoted
from rowmerge_nb.connectors.jdbc.database import Reading
from rowmerge_nb.spi import Type
from rowmerge_nb.spi.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    JSON,
    REAL,
    SMALLINT,
    UUID,
    VARBINARY,
    VARCHAR,
    decimal_of,
)

if TYPE_CHECKING:
    from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcColumn

_PLAIN: Final = {
    "bool": BOOLEAN, "int2": SMALLINT, "int4": INTEGER, "int8": BIGINT, "float4": REAL, "float8": DOUBLE, "text": VARCHAR,
    "bytea": VARBINARY, "date": DATE, "uuid": UUID, "json": JSON, "jsonb": JSON,
}  # fmt: skip
_TIMES: Final = {
    "time": "time",
    "timestamp": "timestamp",
    "timestamptz": "timestamp with time zone",
}
_WRITTEN: Final = {
    "boolean": "boolean", "tinyint": "smallint", "smallint": "smallint", "integer": "integer", "bigint": "bigint", "real": "real",
    "double": "double precision", "varbinary": "bytea", "date": "date", "uuid": "uuid", "json": "jsonb",
}  # fmt: skip
_AS_TEXT: Final = {"uuid", "json", "varchar", "char"}
_LENGTH_OFFSET: Final = 4
"""The server's length of a text includes its header."""


def type_of(base: str, category: str, modifier: int) -> Type | None:
    """Return the SQL type of a column, or None.

    ``category`` is ``b`` for base types and ``e`` for enumerations, ``modifier`` is
    ``pg_attribute.atttypmod``.

    >>> str(type_of("varchar", "b", 24)), str(type_of("numeric", "b", (12 << 16 | 2) + 4)), type_of("point", "b", -1)
    ('varchar(20)', 'decimal(12,2)', None)
    """
    if category == "e":
        return VARCHAR
    if category != "b":
        return None
    if base in {"varchar", "bpchar"}:
        if modifier < 0:
            return VARCHAR
        return Type("varchar" if base == "varchar" else "char", (modifier - _LENGTH_OFFSET,))
    if base == "numeric" and modifier >= 0:
        precision, scale = (modifier - _LENGTH_OFFSET) >> 16, (modifier - _LENGTH_OFFSET) & 0x7FF
        return decimal_of(precision, scale) if precision <= 38 and scale <= precision else None
    if base in _TIMES:
        return Type(_TIMES[base], (modifier if modifier >= 0 else 6,))
    return _PLAIN.get(base)


def declared_type(sql_type: Type) -> str | None:
    """Return the declared type for an SQL type.

    >>> declared_type(Type("timestamp with time zone", (3,))), declared_type(Type("map", (VARCHAR, BIGINT)))
    ('timestamp(3) with time zone', None)
    """
    if sql_type.base in _WRITTEN:
        return _WRITTEN[sql_type.base]
    if sql_type.base == "decimal":
        return f"numeric({sql_type.parameters[0]},{sql_type.parameters[1]})"
    if sql_type.base in {"varchar", "char"}:
        return str(sql_type)
    if sql_type.base in _TIMES.values() and sql_type.parameters[0] <= 6:
        return str(sql_type)
    return None


def cast_of(base: str, category: str, declared: str) -> str:
    if category == "e":
        # With this connector's search path, the server's name includes the schema.
        return f"::{declared}"
    return f"::pg_catalog.{base}" if base in {"uuid", "json", "jsonb"} else ""


def transport_type(sql_type: Type) -> tuple[pa.DataType, str]:
    if sql_type.base in _AS_TEXT:
        return pa.string(), "text"
    if sql_type.base == "tinyint":
        return pa.int16(), "smallint"
    declared = declared_type(sql_type)
    if declared is None:
        raise TypeError(f"{sql_type} has no counterpart")
    return sql_type.arrow, declared


def value_reading(column: JdbcColumn) -> Reading:
    """Return the way a column is read. Infinite dates and NaN are misfits."""
    name, base = quoted(column.name), column.type.base
    if base == "decimal":
        return Reading(f"{name}::text", pa.string(), f"{name} = 'NaN'", name)
    if base in {"uuid", "json", "varchar", "char"}:
        return Reading(f"{name}::text", pa.string())
    if base in {"date", "timestamp", "timestamp with time zone"}:
        # Misfits must not reach the driver, which would read them as numbers.
        return Reading(
            f"CASE WHEN isfinite({name}) THEN {name} END",
            column.type.arrow,
            f"NOT isfinite({name})",
            name,
        )
    return Reading(name, column.type.arrow)
