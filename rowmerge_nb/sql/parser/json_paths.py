"""Parses the paths of JSON_EXTRACT, JSON_EXTRACT_SCALAR and JSON_SIZE."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class JsonPathError(ValueError):
    """Trino refuses the path."""


def path_tokens(path: str) -> list[str]:
    """Split a path into keys and indexes.

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
            while end < len(path) and (
                path[end].isalnum() or path[end] == "_" or (path[end] == ":" and not bracket)
            ):
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


def is_supported(tokens: Iterable[str]) -> bool:
    """Return whether this engine supports a path.

    >>> is_supported(["store", "0"]), is_supported(["*"])
    (True, False)
    """
    return all(token and not set(token) & set("'?*[]\\\"") for token in tokens)
