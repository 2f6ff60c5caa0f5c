"""SQLite's declared types, their SQL types, and the storage of values.

SQLite does not check types, so every value is checked when it is read. Numeric affinity converts
text that looks like a number. Therefore decimals of more than 15 digits and JSON are declared
``decimal_text`` and ``json_text``, which have text affinity.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.names import backquoted
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
    TINYINT,
    UUID,
    VARBINARY,
    VARCHAR,
    decimal_of,
)

if TYPE_CHECKING:
    from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcColumn

EXACT_DIGITS: Final = 15
"""The number of decimal digits that survive in floating point."""

_DECLARED: Final = {
    "bool": BOOLEAN, "boolean": BOOLEAN, "tinyint": TINYINT, "smallint": SMALLINT, "int2": SMALLINT,
    "int": INTEGER, "int4": INTEGER, "mediumint": INTEGER, "integer": BIGINT, "bigint": BIGINT, "int8": BIGINT,
    "float4": REAL, "real": DOUBLE, "double": DOUBLE, "double precision": DOUBLE, "float": DOUBLE,
    "numeric": DOUBLE, "decimal": DOUBLE, "text": VARCHAR, "clob": VARCHAR, "varchar": VARCHAR, "nvarchar": VARCHAR,
    "character varying": VARCHAR, "character": VARCHAR, "char": VARCHAR, "nchar": VARCHAR,
    "blob": VARBINARY, "varbinary": VARBINARY, "binary": VARBINARY, "date": DATE, "uuid": UUID, "json": JSON, "json_text": JSON,
    "time": Type("time", (6,)), "timestamp": Type("timestamp", (6,)), "datetime": Type("timestamp", (6,)),
    "timestamp with time zone": Type("timestamp with time zone", (6,)), "timestamptz": Type("timestamp with time zone", (6,)),
}  # fmt: skip
_WRITTEN: Final = {
    "boolean": "boolean", "tinyint": "tinyint", "smallint": "smallint", "integer": "int", "bigint": "bigint", "real": "float4",
    "double": "double", "varbinary": "blob", "date": "date", "uuid": "uuid", "json": "json_text",
}  # fmt: skip
_FORM: Final = re.compile(r"([^()]+?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
_KINDS: Final = {
    pa.int64(): "'integer'",
    pa.float64(): "'real', 'integer'",
    pa.binary(): "'blob'",
    pa.string(): "'text'",
}
"""What SQLite's ``typeof`` returns for stored values."""
_A_DAY: Final = "1970-01-01 "
_LARGEST_REAL: Final = 3.4028234663852886e38
_RANGES: Final = {"tinyint": 1 << 7, "smallint": 1 << 15, "integer": 1 << 31}
# A declaration cannot contain the words WITH TIME ZONE.
_MOMENTS: Final = {
    "time": "time",
    "timestamp": "timestamp",
    "timestamp with time zone": "timestamptz",
}


def named(column: str) -> str:
    """Put a column's name into backquotes: SQLite reads a double-quoted name as a string if no
    column has it.

    >>> named("a`b")
    '`a``b`'
    """
    return backquoted(column)


def type_of(declared: str) -> Type | None:
    """Return the SQL type of a declared type, or None.

    >>> [str(type_of(text)) for text in ("INTEGER", "int", "NVARCHAR(20)", "decimal(10, 2)", "timestamptz(3)", "GEOMETRY")]
    ['bigint', 'integer', 'varchar(20)', 'decimal(10,2)', 'timestamp(3) with time zone', 'None']
    """
    match = _FORM.fullmatch(" ".join(declared.lower().split()))
    if match is None:
        return None
    base, first, second = match.groups()
    if base in {"numeric", "decimal", "decimal_text"} and first:
        precision, scale = int(first), int(second or 0)
        return decimal_of(precision, scale) if 1 <= precision <= 38 and scale <= precision else None
    sql_type = _DECLARED.get(base)
    if sql_type is None or first is None:
        return sql_type
    if sql_type.base in _MOMENTS:
        return Type(sql_type.base, (int(first),)) if int(first) <= 6 else None
    if sql_type.base == "varchar":
        return Type("char" if base in {"char", "character", "nchar"} else "varchar", (int(first),))
    return sql_type


def declared_type(sql_type: Type) -> str | None:
    """Return the declared type for an SQL type.

    >>> declared_type(decimal_of(12, 2)), declared_type(decimal_of(38)), declared_type(Type("array", (INTEGER,)))
    ('decimal(12,2)', 'decimal_text(38,0)', None)
    """
    if sql_type.base in _WRITTEN:
        return _WRITTEN[sql_type.base]
    if sql_type.base == "decimal":
        return f"decimal{'' if sql_type.parameters[0] <= EXACT_DIGITS else '_text'}({sql_type.parameters[0]},{sql_type.parameters[1]})"
    if sql_type.base in {"varchar", "char"}:
        return str(sql_type)
    if sql_type.base in _MOMENTS and sql_type.parameters[0] <= 6:
        return f"{_MOMENTS[sql_type.base]}({sql_type.parameters[0]})"
    return None


def has_text_affinity(declared: str) -> bool:
    upper = declared.upper()
    return "INT" not in upper and any(word in upper for word in ("CHAR", "CLOB", "TEXT"))


def storage_type(sql_type: Type) -> pa.DataType:
    if sql_type.base in {"boolean", "tinyint", "smallint", "integer", "bigint"}:
        return pa.int64()
    if sql_type.base in {"real", "double"}:
        return pa.float64()
    return pa.binary() if sql_type.base == "varbinary" else pa.string()


def value_reading(column: JdbcColumn) -> Reading:
    name, base, parameters = named(column.name), column.type.base, column.type.parameters
    if base == "decimal":
        number = f"printf('%.{parameters[1]}f', {name})"
        select = f"CASE typeof({name}) WHEN 'real' THEN {number} ELSE CAST({name} AS TEXT) END"
        rounded = f"typeof({name}) = 'real' AND {name} <> round({name}, {parameters[1]})"
        return Reading(select, pa.string(), f"typeof({name}) = 'blob' OR {rounded}", name)
    if base == "json":
        return Reading(f"CAST({name} AS TEXT)", pa.string(), f"typeof({name}) = 'blob'", name)
    misfit = f"typeof({name}) NOT IN ({_KINDS[storage_type(column.type)]}, 'null')"
    if base == "boolean":
        misfit += f" OR {name} NOT IN (0, 1)"
    elif base in _RANGES:
        misfit += f" OR {name} NOT BETWEEN {-_RANGES[base]} AND {_RANGES[base] - 1}"
    elif base in {"varchar", "char"} and parameters:
        misfit += f" OR length({name}) > {parameters[0]}"
    elif base in {"real", "double"}:
        misfit += f" OR {_changes_as_real(name)}"
    if base == "real":
        misfit += f" OR abs({name}) > {_LARGEST_REAL!r} AND abs({name}) < 9e999"
    select = f"CAST({name} AS REAL)" if storage_type(column.type) == pa.float64() else name
    return Reading(select, storage_type(column.type), misfit, name)


def key_type(column: JdbcColumn) -> Type:
    if column.type.base == "decimal" and not has_text_affinity(column.declared):
        return DOUBLE
    if column.type.base in {"tinyint", "smallint", "integer", "bigint"}:
        return column.type
    return {pa.int64(): BIGINT, pa.float64(): DOUBLE, pa.binary(): VARBINARY, pa.string(): VARCHAR}[
        storage_type(column.type)
    ]


def key_reading(column: JdbcColumn) -> Reading:
    """Return how a key column is read for the row id; NULL is a misfit."""
    name, arrow_type = named(column.name), storage_type(key_type(column))
    misfit = f"typeof({name}) NOT IN ({_KINDS[arrow_type]})"
    if arrow_type == pa.float64():
        return Reading(
            f"CAST({name} AS REAL)", arrow_type, f"{misfit} OR {_changes_as_real(name)}", name
        )
    return Reading(name, arrow_type, misfit, name)


def _changes_as_real(name: str) -> str:
    """Return the condition for integers with too many digits for floating point."""
    return f"typeof({name}) = 'integer' AND {name} <> CAST({name} AS REAL)"


def stored(column: JdbcColumn, array: pa.Array) -> pa.Array:
    """Convert values to the form in which SQLite stores them."""
    base = column.type.base
    if base in {"real", "double"}:
        if pc.any(pc.is_nan(array)).as_py():
            _refuse(column, "NaN", "SQLite keeps NaN as NULL", "Use NULL or another value instead.")
        return array.cast(pa.float64())
    if base == "decimal" and not has_text_affinity(column.declared):
        _check_digits(column, array)
    if base == "char":
        return pc.utf8_rtrim(array.cast(pa.string()), " ")
    if base == "timestamp with time zone":
        return pc.binary_join_element_wise(
            array.cast(pa.timestamp("us")).cast(pa.string()), "+00:00", ""
        )
    return array.cast(storage_type(column.type))


def _check_digits(column: JdbcColumn, array: pa.Array) -> None:
    precision, scale = column.type.parameters
    if precision <= EXACT_DIGITS:
        return
    limit = pa.scalar(Decimal(1).scaleb(EXACT_DIGITS - scale), array.type)
    beyond = array.filter(pc.greater_equal(pc.abs(array), limit))
    if len(beyond):
        why = f"SQLite keeps {EXACT_DIGITS} digits in a column declared {column.declared}"
        _refuse(
            column, str(beyond[0]), why, f"Declare the column decimal_text({precision},{scale})."
        )


def _refuse(column: JdbcColumn, value: str, why: str, hint: str) -> None:
    raise ConnectorError(
        f"The value {value} of column '{column.name}' cannot be stored: {why}",
        code="NUMERIC_VALUE_OUT_OF_RANGE",
        hint=hint,
    )


def converted(column: JdbcColumn, array: pa.Array) -> pa.Array:
    """Convert values from the form in which SQLite stores them."""
    if column.type.base == "decimal":
        return array.cast(column.type.arrow)
    if column.type.base == "char":
        return pc.utf8_rpad(array.cast(pa.string()), column.type.parameters[0], " ")
    if column.type.base == "timestamp with time zone":
        return array.cast(pa.timestamp("us", tz="UTC"))
    if column.type.base == "time":
        timestamps = pc.binary_join_element_wise(_A_DAY, array, "")
        try:
            return timestamps.cast(pa.timestamp("us")).cast(pa.time64("us"))
        except pa.ArrowInvalid as error:
            raise pa.ArrowInvalid(str(error).replace(_A_DAY, "")) from None
    return array.cast(column.type.arrow)
