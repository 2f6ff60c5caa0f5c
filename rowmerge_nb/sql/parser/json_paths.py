"""Reads the paths of JSON_EXTRACT and its kin."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["JsonPathError", "is_supported", "path_tokens"]


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
    tokens, place = [], 1
    while place < len(path):
        if path[place] == "." or (path[place] == "[" and path[place + 1 : place + 2] != '"'):
            bracket = path[place] == "["
            end = place + 1
            while end < len(path) and (path[end].isalnum() or path[end] == "_" or (path[end] == ":" and not bracket)):
                end += 1
            tokens.append(path[place + 1 : end])
            place = _closed(path, end) if bracket else end
            if not tokens[-1]:
                raise JsonPathError(path)
        elif path[place] == "[":
            token, end = _quoted(path, place + 2)
            tokens.append(token)
            place = _closed(path, end)
        else:
            raise JsonPathError(path)
    return tokens


def _closed(path: str, place: int) -> int:
    if path[place : place + 1] != "]":
        raise JsonPathError(path)
    return place + 1


def _quoted(path: str, place: int) -> tuple[str, int]:
    token = ""
    while place < len(path) and path[place] != '"':
        if path[place] == "\\":
            place += 1
            if path[place : place + 1] not in {'"', "\\"}:
                raise JsonPathError(path)
        token += path[place]
        place += 1
    if place >= len(path):
        raise JsonPathError(path)
    return token, place + 1


def is_supported(tokens: Iterable[str]) -> bool:
    """Can this engine follow a path of these parts?

    >>> is_supported(["store", "0"]), is_supported(["*"])
    (True, False)
    """
    return all(token and not set(token) & set("'?*[]\\\"") for token in tokens)
