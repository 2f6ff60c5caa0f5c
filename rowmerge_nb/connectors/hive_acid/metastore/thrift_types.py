"""Types as Hive writes them in its metastore: ``array<struct<a:int>>`` is our ``array(row(a integer))``."""

from __future__ import annotations

import re
from typing import Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi.types import Type, array_of, decimal_of, map_of, row_of

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
    # Hive's timestamps have nine decimals, of which six come through Arrow and Spark.
    "timestamp": Type("timestamp", (6,)),
    "decimal": decimal_of(10),
}
_WORD: Final = re.compile(r"\s*([^<>(),:]+|[<>(),:])\s*")


def hive_type_name(kind: Type) -> str:
    """Write a type as Hive does.

    >>> from rowmerge_nb.spi.types import parse_type
    >>> hive_type_name(parse_type("row(A integer, b map(varchar(3), decimal(5,2)))"))
    'struct<a:int,b:map<varchar(3),decimal(5,2)>>'
    """
    if kind.base == "array":
        return f"array<{hive_type_name(kind.parameters[0])}>"
    if kind.base == "map":
        return f"map<{hive_type_name(kind.parameters[0])},{hive_type_name(kind.parameters[1])}>"
    if kind.base == "row":
        pairs = zip(kind.fields, kind.parameters, strict=True)
        return f"struct<{','.join(f'{str(name).lower()}:{hive_type_name(inner)}' for name, inner in pairs)}>"
    if kind.base == "timestamp":
        return "timestamp"
    if kind.base in {"varchar", "char", "decimal"} and kind.parameters:
        return f"{kind.base}({','.join(map(str, kind.parameters))})"
    return _NAMES.get(kind.base, kind.base)


def type_of_hive(text: str) -> Type:
    """Read a type that Hive wrote.

    Raises:
        ConnectorError: NOT_SUPPORTED, the type is none of those that tables here can have.

    >>> str(type_of_hive("struct<a:int,b:map<varchar(3),decimal(5,2)>>"))
    'row(a integer, b map(varchar(3), decimal(5,2)))'
    """
    words = _WORD.findall(text)
    try:
        kind = _read(words)
    except (IndexError, ValueError):
        words = [text]
    if words:
        raise ConnectorError(
            f"Hive's type '{text}' has no counterpart here",
            hint="Read the table through a view without the column, or another table.",
        )
    return kind


def _read(words: list[str]) -> Type:
    """Take a type from the front of the words."""
    name = words.pop(0)
    kind = name.lower()
    if kind in {"array", "map"}:
        _take(words, "<")
        inner = _read(words)
        if kind == "map":
            _take(words, ",")
            made = map_of(inner, _read(words))
        else:
            made = array_of(inner)
        _take(words, ">")
        return made
    if kind == "struct":
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
        if kind == "decimal":
            return decimal_of(*numbers)
        if kind in {"varchar", "char"} and len(numbers) == 1:
            return Type(kind, tuple(numbers))
    if kind not in _TYPES:
        raise ValueError(name)
    return _TYPES[kind]


def _take(words: list[str], *expected: str) -> str:
    word = words.pop(0)
    if word not in expected:
        raise ValueError(word)
    return word
