"""The small parts of DuckDB SQL: names, literals, types, failures, and arguments that are written once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import quoted
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
    """DuckDB has no form of an expression that is known to mean the same; the message names what it is about."""


def duckdb_type(kind: Type) -> str:
    """Return the DuckDB type that holds a type's values.

    Raises:
        UnprintableError: values of that type are not computed with.

    >>> from rowmerge_nb.spi.types import decimal_of
    >>> duckdb_type(decimal_of(12, 2))
    'DECIMAL(12,2)'
    """
    if kind.base == "decimal":
        return f"DECIMAL({kind.parameters[0]},{kind.parameters[1]})"
    if kind.base == "array":
        return f"{duckdb_type(kind.parameters[0])}[]"
    if kind.base == "map":
        return f"MAP({', '.join(map(duckdb_type, kind.parameters))})"
    if kind.base == "row":
        pairs = zip(field_names(kind), kind.parameters, strict=True)
        return f"STRUCT({', '.join(f'{quoted(name)} {duckdb_type(part)}' for name, part in pairs)})"
    if kind.base not in _TYPES or is_zoned(kind):
        raise UnprintableError(f"a value of type {kind}")
    return _TYPES[kind.base]


def field_names(kind: Type) -> list[str]:
    """Return the names that the fields of a row have as a struct, all of them different.

    >>> from rowmerge_nb.spi.types import INTEGER, row_of
    >>> field_names(row_of([("a", INTEGER), (None, INTEGER), ("A", INTEGER)]))
    ['a', 'field1', 'A$2']
    """
    names: list[str] = []
    for index, name in enumerate(kind.fields):
        wanted = name or f"field{index}"
        known = {other.lower() for other in names}
        names.append(wanted if wanted.lower() not in known else f"{wanted}${index}")
    return names


def text_literal(value: str) -> str:
    """Write a text, which knows no escapes but doubled quotes.

    >>> text_literal("it's")
    "'it''s'"
    """
    if "\0" in value:
        raise UnprintableError("a text with the character U+0000")
    return "'" + value.replace("'", "''") + "'"


def literal(kind: Type, value: str | None) -> str:
    """Write a constant, typed.

    >>> from rowmerge_nb.spi.types import DATE, INTEGER
    >>> literal(INTEGER, "-3"), literal(DATE, None)
    ('CAST(-3 AS INTEGER)', 'CAST(NULL AS DATE)')
    """
    if value is None:
        return "NULL" if kind == UNKNOWN else f"CAST(NULL AS {duckdb_type(kind)})"
    written = duckdb_type(kind)
    if kind.base == "boolean":
        return value
    if kind.base in {"varchar", "char", "uuid"}:
        return text_literal(value)
    if kind.base in {"tinyint", "smallint", "integer", "bigint"}:
        return f"CAST({value} AS {written})"
    if kind.base in _ISO and not re.fullmatch(_ISO[kind.base], value):
        raise UnprintableError(f"the {kind} {value}")
    if kind.base == "varbinary":
        return f"unhex('{value}')"
    if kind.base == "timestamp with time zone":
        return f"CAST('{value}+00' AS {written})"
    return f"CAST('{value}' AS {written})"


def failure(code: str, *message: str) -> str:
    """Write what raises an error that the engine reports with Trino's code; the message's parts are texts in SQL.

    >>> failure("DIVISION_BY_ZERO", "'Division by zero'")
    "error('[[DIVISION_BY_ZERO]] ' || 'Division by zero')"
    """
    return f"error('[[{code}]] ' || {' || '.join(message)})"


def once(write: Callable[..., str], *texts: str) -> str:
    """Write SQL that uses its arguments more than once without repeating a long one: a lambda's parameter stands for it.

    >>> once(lambda x: f"CASE WHEN {x} = 0 THEN 1 ELSE {x} END", '"a"')
    'CASE WHEN "a" = 0 THEN 1 ELSE "a" END'
    >>> once(lambda x: f"CASE WHEN {x} = 0 THEN 1 ELSE {x} END", "+".join(['"a"'] * 60)).count('"a"')
    60
    """
    written = write(*texts)
    if not any(len(text) > _LONG and written.count(text) > 1 for text in texts):
        return written
    return bound(write, *texts)


def bound(write: Callable[..., str], *texts: str) -> str:
    """Write SQL in which parameters of a lambda stand for its arguments, so that each is computed once.

    No lambda may hold a subquery: where there is one, the arguments are repeated.

    >>> bound(lambda x: f"{x} * {x}", "(a + 1)")
    'list_transform([(a + 1)], lambda v1_0: v1_0 * v1_0)[1]'
    """
    written = write(*texts)
    if "(SELECT " in written:
        return written
    # No name that stands in the text already, be it another lambda's or a column's, may be caught.
    depth = max((int(found) for found in re.findall(r"v(\d+)_", written)), default=0) + 1
    named = [text if _SIMPLE.fullmatch(text) else f"v{depth}_{index}" for index, text in enumerate(texts)]
    body = write(*named)
    for parameter, text in reversed(list(zip(named, texts, strict=True))):
        if parameter != text:
            body = f"list_transform([{text}], lambda {parameter}: {body})[1]"
    return body
