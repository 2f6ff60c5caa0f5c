"""Helpers of DuckDB SQL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import quoted, quoted_text
from rowmerge_nb.spi.types import UNKNOWN, Type
from rowmerge_nb.sql.typed.type_rules import is_zoned

if TYPE_CHECKING:
    from collections.abc import Callable

_TYPES: Final = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double": "DOUBLE",
    "varchar": "VARCHAR",
    "char": "VARCHAR",
    "uuid": "VARCHAR",
    "varbinary": "BLOB",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMPTZ",
}
_LONG: Final = 200
"""Texts up to this length are repeated."""
_SIMPLE: Final = re.compile(r""""(?:[^"]|"")+"|'(?:[^']|'')*'|\w+""")
_ISO: Final = {
    "date": r"\d{4}-\d\d-\d\d",
    "time": r"\d\d:\d\d:\d\d\.\d{6}",
    "timestamp": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}",
    "timestamp with time zone": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}",
}


class UnprintableError(Exception):
    """DuckDB has no known equivalent of an expression, which the message names."""


def duckdb_type(sql_type: Type) -> str:
    """Return the DuckDB type of a type, or raise UnprintableError.

    >>> from rowmerge_nb.spi.types import decimal_of
    >>> duckdb_type(decimal_of(12, 2))
    'DECIMAL(12,2)'
    """
    if sql_type.base == "decimal":
        return f"DECIMAL({sql_type.parameters[0]},{sql_type.parameters[1]})"
    if sql_type.base == "array":
        return f"{duckdb_type(sql_type.parameters[0])}[]"
    if sql_type.base == "map":
        return f"MAP({', '.join(map(duckdb_type, sql_type.parameters))})"
    if sql_type.base == "row":
        pairs = zip(field_names(sql_type), sql_type.parameters, strict=True)
        return f"STRUCT({', '.join(f'{quoted(name)} {duckdb_type(part)}' for name, part in pairs)})"
    if sql_type.base not in _TYPES or is_zoned(sql_type):
        raise UnprintableError(f"a value of type {sql_type}")
    return _TYPES[sql_type.base]


def field_names(sql_type: Type) -> list[str]:
    """Return unique names for the fields of a row."""
    names: list[str] = []
    for index, name in enumerate(sql_type.fields):
        base_name = name or f"field{index}"
        used_names = {other.lower() for other in names}
        names.append(base_name if base_name.lower() not in used_names else f"{base_name}${index}")
    return names


def text_literal(value: str) -> str:
    """Write a text literal.

    >>> text_literal("it's")
    "'it''s'"
    """
    if "\0" in value:
        raise UnprintableError("a text with the character U+0000")
    return quoted_text(value)


def literal(sql_type: Type, value: str | None) -> str:
    if value is None:
        return "NULL" if sql_type == UNKNOWN else f"CAST(NULL AS {duckdb_type(sql_type)})"
    type_text = duckdb_type(sql_type)
    if sql_type.base == "boolean":
        return value
    if sql_type.base in {"varchar", "char", "uuid"}:
        return text_literal(value)
    if sql_type.base in {"tinyint", "smallint", "integer", "bigint"}:
        return f"CAST({value} AS {type_text})"
    if sql_type.base in _ISO and not re.fullmatch(_ISO[sql_type.base], value):
        raise UnprintableError(f"the {sql_type} {value}")
    if sql_type.base == "varbinary":
        return f"unhex('{value}')"
    if sql_type.base == "timestamp with time zone":
        return f"CAST('{value}+00' AS {type_text})"
    return f"CAST('{value}' AS {type_text})"


def failure(code: str, *message: str) -> str:
    """Write SQL that raises an error with Trino's code and a message of SQL parts."""
    return f"error('[[{code}]] ' || {' || '.join(message)})"


def once(write: Callable[..., str], *texts: str) -> str:
    """Write SQL with long, repeated arguments bound to lambda parameters."""
    sql = write(*texts)
    if not any(len(text) > _LONG and sql.count(text) > 1 for text in texts):
        return sql
    return bound(write, *texts)


def bound(write: Callable[..., str], *texts: str) -> str:
    """Bind arguments to lambda parameters, or repeat them beside a subquery, which lambdas cannot
    contain.
    """
    sql = write(*texts)
    if "(SELECT " in sql:
        return sql
    # Names that the text has already, of other lambdas or of columns, must not be captured.
    depth = max((int(number) for number in re.findall(r"v(\d+)_", sql)), default=0) + 1
    short_texts = [
        text if _SIMPLE.fullmatch(text) else f"v{depth}_{index}" for index, text in enumerate(texts)
    ]
    body = write(*short_texts)
    for parameter, text in reversed(list(zip(short_texts, texts, strict=True))):
        if parameter != text:
            body = f"list_transform([{text}], lambda {parameter}: {body})[1]"
    return body
