"""Hive's type names: ``array<struct<a:int>>`` is ``array(row(a integer))`` here."""

from __future__ import annotations

import re
from typing import Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi import Type
from rowmerge_nb.spi.types import array_of, decimal_of, map_of, row_of

_NAMES: Final = {"integer": "int", "real": "float", "varchar": "string", "varbinary": "binary"}
_TYPES: Final = {
    "boolean": Type("boolean"),
    "tinyint": Type("tinyint"),
    "smallint": Type("smallint"),
    "int": Type("integer"),
    "bigint": Type("bigint"),
    "float": Type("real"),
    "double": Type("double"),
    "string": Type("varchar"),
    "binary": Type("varbinary"),
    "date": Type("date"),
    # Hive's timestamps have nine decimals, of which Arrow and Spark keep six.
    "timestamp": Type("timestamp", (6,)),
    "decimal": decimal_of(10),
}
_WORD: Final = re.compile(r"\s*([^<>(),:]+|[<>(),:])\s*")


def hive_type_name(sql_type: Type) -> str:
    """Format a type as Hive does.

    >>> from rowmerge_nb.spi.types import parse_type
    >>> hive_type_name(parse_type("row(A integer, b map(varchar(3), decimal(5,2)))"))
    'struct<a:int,b:map<varchar(3),decimal(5,2)>>'
    """
    if sql_type.base == "array":
        return f"array<{hive_type_name(sql_type.parameters[0])}>"
    if sql_type.base == "map":
        return f"map<{hive_type_name(sql_type.parameters[0])},{hive_type_name(sql_type.parameters[1])}>"
    if sql_type.base == "row":
        pairs = zip(sql_type.fields, sql_type.parameters, strict=True)
        return f"struct<{','.join(f'{str(name).lower()}:{hive_type_name(inner)}' for name, inner in pairs)}>"
    if sql_type.base == "timestamp":
        return "timestamp"
    if sql_type.base in {"varchar", "char", "decimal"} and sql_type.parameters:
        return f"{sql_type.base}({','.join(map(str, sql_type.parameters))})"
    return _NAMES.get(sql_type.base, sql_type.base)


def type_of_hive(text: str) -> Type:
    """Parse Hive's name of a type; NOT_SUPPORTED without a counterpart.

    >>> str(type_of_hive("struct<a:int,b:map<varchar(3),decimal(5,2)>>"))
    'row("a" integer, "b" map(varchar(3), decimal(5,2)))'
    """
    words = _WORD.findall(text)
    try:
        sql_type = _read(words)
    except (IndexError, ValueError):
        words = [text]
    if words:
        raise ConnectorError(
            f"Hive's type '{text}' has no counterpart here",
            hint="Read the table through a view without the column, or another table.",
        )
    return sql_type


def _read(words: list[str]) -> Type:
    name = words.pop(0)
    base = name.lower()
    if base in {"array", "map"}:
        _take(words, "<")
        inner = _read(words)
        if base == "map":
            _take(words, ",")
            nested_type = map_of(inner, _read(words))
        else:
            nested_type = array_of(inner)
        _take(words, ">")
        return nested_type
    if base == "struct":
        fields = []
        separator = _take(words, "<")
        while separator != ">":
            field = words.pop(0)
            _take(words, ":")
            fields.append((field, _read(words)))
            separator = _take(words, ",", ">")
        return row_of(fields)
    if words and words[0] == "(":
        numbers = []
        separator = words.pop(0)
        while separator != ")":
            numbers.append(int(words.pop(0)))
            separator = _take(words, ",", ")")
        if base == "decimal":
            return decimal_of(*numbers)
        if base in {"varchar", "char"} and len(numbers) == 1:
            return Type(base, tuple(numbers))
    if base not in _TYPES:
        raise ValueError(name)
    return _TYPES[base]


def _take(words: list[str], *expected: str) -> str:
    word = words.pop(0)
    if word not in expected:
        raise ValueError(word)
    return word
