"""JSON_EXTRACT, JSON_EXTRACT_SCALAR and JSON_SIZE."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.functions.json_functions import escaped
from rowmerge_nb.sql.spark.text import once
from rowmerge_nb.sql.typed.expressions import text_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

_NUMBER: Final = r"-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9.eE+-])"
_QUOTED_NUMBERS: Final = rf"""regexp_replace({{0}}, '\\G((?:[^"0-9-]++|"(?:[^"\\\\]++|\\\\.)*+")*+)({_NUMBER})', '$1"$2"')"""


def at_path(function: str, text: str, tokens: Sequence[str]) -> str:
    # A number is an index of an array or a key of an object.
    choices = [
        [f"['{token}']", f"[{int(token)}]"] if token.isdecimal() else [f"['{token}']"]
        for token in tokens
    ]
    paths = [f"${''.join(steps)}" for steps in itertools.product(*choices)]
    return once(lambda value: _WRITERS[function](value, paths), text)


def _first(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"coalesce({', '.join(parts)})"


def _type(text: str, paths: list[str]) -> str:
    return _first(
        [
            f"schema_of_variant(try_variant_get(try_parse_json({text}), {text_literal(p)},"
            " 'variant'))"
            for p in paths
        ]
    )


def _read(text: str, paths: list[str]) -> str:
    return _first([f"get_json_object({text}, {text_literal(path)})" for path in paths])


def _scalar(text: str, paths: list[str]) -> str:
    """Write a scalar; numbers become text first, to retain their digits."""
    quoted = _QUOTED_NUMBERS.replace("{0}", text)
    result = _read(quoted, paths)
    # Spark returns the word for a document that is null.
    return once(
        lambda value: (
            f"IF({value} RLIKE '^([\\\\[{{]|null\\\\z)' AND {_type(quoted, paths)} <> 'STRING',"
            f" NULL, {value})"
        ),
        result,
    )


def _value(text: str, paths: list[str]) -> str:
    result = _read(text, paths)
    json_string = (
        f"substring(to_json(array({result})), 2, char_length(to_json(array({result}))) - 2)"
    )
    whole = (
        f"CASE {_type(text, paths)} WHEN 'VOID' THEN 'null' WHEN 'STRING' THEN {json_string} ELSE"
        f" {result} END"
    )
    return escaped(whole, where=text)


def _size(text: str, paths: list[str]) -> str:
    schema_type, result = _type(text, paths), _read(text, paths)
    return (
        f"CAST(CASE WHEN {schema_type} LIKE 'ARRAY%' THEN json_array_length({result}) WHEN"
        f" {schema_type} LIKE 'OBJECT%' THEN size(json_object_keys({result})) WHEN {schema_type} IS"
        " NOT NULL THEN 0 END AS BIGINT)"
    )


_WRITERS: Final = {"json_extract_scalar": _scalar, "json_extract": _value, "json_size": _size}
