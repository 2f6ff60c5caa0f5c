"""JSON_EXTRACT and its kin: what is at the end of a path, in Spark SQL."""

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
    """Write the Spark SQL of ``json_extract_scalar``, ``json_extract`` or ``json_size``.

    Args:
        function: which one.
        text: the JSON text.
        tokens: the path's parts.
    """
    # A number is an index of an array, and a key of an object too.
    choices = [[f"['{token}']", f"[{int(token)}]"] if token.isdecimal() else [f"['{token}']"] for token in tokens]
    paths = [f"${''.join(steps)}" for steps in itertools.product(*choices)]
    return once(lambda value: _WRITERS[function](value, paths), text)


def _first(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"coalesce({', '.join(parts)})"


def _type(text: str, paths: list[str]) -> str:
    return _first([f"schema_of_variant(try_variant_get(try_parse_json({text}), {text_literal(p)}, 'variant'))" for p in paths])


def _read(text: str, paths: list[str]) -> str:
    return _first([f"get_json_object({text}, {text_literal(path)})" for path in paths])


def _scalar(text: str, paths: list[str]) -> str:
    """Numbers keep the digits that they are written with: as text in the document Spark does not touch them."""
    quoted = _QUOTED_NUMBERS.replace("{0}", text)
    found = _read(quoted, paths)
    # Of a document that is null alone Spark gives the word.
    return once(
        lambda value: f"IF({value} RLIKE '^([\\\\[{{]|null\\\\z)' AND {_type(quoted, paths)} <> 'STRING', NULL, {value})", found
    )


def _value(text: str, paths: list[str]) -> str:
    found = _read(text, paths)
    written = f"substring(to_json(array({found})), 2, char_length(to_json(array({found}))) - 2)"
    whole = f"CASE {_type(text, paths)} WHEN 'VOID' THEN 'null' WHEN 'STRING' THEN {written} ELSE {found} END"
    return escaped(whole, where=text)


def _size(text: str, paths: list[str]) -> str:
    kind, found = _type(text, paths), _read(text, paths)
    return (
        f"CAST(CASE WHEN {kind} LIKE 'ARRAY%' THEN json_array_length({found}) "
        f"WHEN {kind} LIKE 'OBJECT%' THEN size(json_object_keys({found})) WHEN {kind} IS NOT NULL THEN 0 END AS BIGINT)"
    )


_WRITERS: Final = {"json_extract_scalar": _scalar, "json_extract": _value, "json_size": _size}
