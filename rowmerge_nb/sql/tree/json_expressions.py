"""Syntax trees of JSON_EXISTS, JSON_VALUE, JSON_QUERY, JSON_OBJECT and JSON_ARRAY."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from rowmerge_nb.sql.tree.statements import Identifier


@dataclass(frozen=True)
class JsonInput:
    """A value parsed as JSON; ``format`` is JSON, UTF8, UTF16 or UTF32."""

    value: s.Expression
    format: str | None = None


@dataclass(frozen=True)
class JsonBehavior:
    """ON EMPTY or ON ERROR: the keyword (NULL, ERROR, DEFAULT, EMPTY ARRAY ...), and the default."""

    word: str
    default: s.Expression | None = None


@dataclass(frozen=True)
class JsonLookup(s.Expression):
    """JSON_EXISTS, JSON_VALUE or JSON_QUERY.

    Args:
        returning: the result type; ``output_format`` is its FORMAT.
        wrapper: WITHOUT, CONDITIONAL or UNCONDITIONAL.
    """

    name: str
    input: JsonInput
    path: s.Expression
    path_name: Identifier | None = None
    passing: tuple[tuple[JsonInput, Identifier], ...] = ()
    returning: s.TypeName | None = None
    output_format: str | None = None
    wrapper: str = "WITHOUT"
    quotes: str | None = None
    on_empty: JsonBehavior | None = None
    on_error: JsonBehavior | None = None


@dataclass(frozen=True)
class JsonConstructor(s.Expression):
    """JSON_OBJECT or JSON_ARRAY (``name``); ``keys`` is empty for an array."""

    name: str
    keys: tuple[s.Expression, ...]
    values: tuple[JsonInput, ...]
    keeps_null: bool
    unique: bool = False
    returning: s.TypeName | None = None
    output_format: str | None = None
