"""JSON_EXTRACT and its kin: Trino's paths, and what is at the end of one in Spark SQL."""

from __future__ import annotations

import itertools
from typing import Final

from rowmerge_nb.sql.typed.expressions import once, text_literal

__all__ = ["JsonPathError", "at_path", "path_tokens"]

_NUMBER: Final = r"-?(?:0|[1-9][0-9]*+)(?:\\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9.eE+-])"
_QUOTED_NUMBERS: Final = rf"""regexp_replace({{0}}, '\\G((?:[^"0-9-]++|"(?:[^"\\\\]++|\\\\.)*+")*+)({_NUMBER})', '$1"$2"')"""


class JsonPathError(ValueError):
    """The text is no path for Trino."""


def path_tokens(path: str) -> list[str]:
    """Split a path into its keys and indexes.

    Raises:
        JsonPathError: Trino refuses the path.

    >>> path_tokens('$.store["book list"][0]')
    ['store', 'book list', '0']
    """
    if not path.startswith("$"):
        raise JsonPathError(path)
    tokens, offset = [], 1
    while offset < len(path):
        if path[offset] == "." or (path[offset] == "[" and path[offset + 1 : offset + 2] != '"'):
            bracket = path[offset] == "["
            end = offset + 1
            while end < len(path) and (path[end].isalnum() or path[end] == "_" or (path[end] == ":" and not bracket)):
                end += 1
            tokens.append(path[offset + 1 : end])
            offset = _closed(path, end) if bracket else end
            if not tokens[-1]:
                raise JsonPathError(path)
        elif path[offset] == "[":
            token, end = _quoted(path, offset + 2)
            tokens.append(token)
            offset = _closed(path, end)
        else:
            raise JsonPathError(path)
    return tokens


def _closed(path: str, offset: int) -> int:
    if path[offset : offset + 1] != "]":
        raise JsonPathError(path)
    return offset + 1


def _quoted(path: str, offset: int) -> tuple[str, int]:
    token = ""
    while offset < len(path) and path[offset] != '"':
        if path[offset] == "\\":
            offset += 1
            if path[offset : offset + 1] not in {'"', "\\"}:
                raise JsonPathError(path)
        token += path[offset]
        offset += 1
    if offset >= len(path):
        raise JsonPathError(path)
    return token, offset + 1


def at_path(function: str, text: str, tokens: list[str]) -> str | None:
    """Write the Spark SQL of ``json_extract_scalar``, ``json_extract`` or ``json_size``.

    Args:
        function: which one.
        text: the JSON text.
        tokens: the path's parts.

    Returns:
        None if Spark cannot read the path.
    """
    if any(set(token) & set("'?*[]\\\"") or not token for token in tokens):
        return None
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
    return once(lambda value: f"IF({value} RLIKE '^[\\\\[{{]' AND {_type(quoted, paths)} <> 'STRING', NULL, {value})", found)


def _value(text: str, paths: list[str]) -> str:
    found = _read(text, paths)
    written = f"substring(to_json(array({found})), 2, char_length(to_json(array({found}))) - 2)"
    return f"CASE {_type(text, paths)} WHEN 'VOID' THEN 'null' WHEN 'STRING' THEN {written} ELSE {found} END"


def _size(text: str, paths: list[str]) -> str:
    kind, found = _type(text, paths), _read(text, paths)
    return (
        f"CAST(CASE WHEN {kind} LIKE 'ARRAY%' THEN json_array_length({found}) "
        f"WHEN {kind} LIKE 'OBJECT%' THEN size(json_object_keys({found})) WHEN {kind} IS NOT NULL THEN 0 END AS BIGINT)"
    )


_WRITERS: Final = {"json_extract_scalar": _scalar, "json_extract": _value, "json_size": _size}
