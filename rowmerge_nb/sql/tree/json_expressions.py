"""JSON_EXISTS, JSON_VALUE, JSON_QUERY, JSON_OBJECT and JSON_ARRAY as they were written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from rowmerge_nb.sql.tree.statements import Identifier


@dataclass(frozen=True)
class JsonInput:
    """A value that is read as JSON; ``format`` is JSON, UTF8, UTF16 or UTF32, None where no FORMAT was written."""

    value: s.Expression
    format: str | None = None


@dataclass(frozen=True)
class JsonBehavior:
    """What happens ON EMPTY or ON ERROR: the word (NULL, ERROR, DEFAULT, TRUE, EMPTY ARRAY ...), and the default's value."""

    word: str
    default: s.Expression | None = None


@dataclass(frozen=True)
class JsonLookup(s.Expression):
    """JSON_EXISTS, JSON_VALUE or JSON_QUERY.

    Args:
        name: which one, in capitals.
        input: the document.
        path: the path, a literal.
        path_name: the name of the path, which only JSON_TABLE may give.
        passing: the path's parameters, each with its name.
        returning: the type wanted, and in which format.
        wrapper: WITHOUT, CONDITIONAL or UNCONDITIONAL.
        quotes: KEEP or OMIT.
        on_empty: what an empty result gives.
        on_error: what a failure gives.
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
    """JSON_OBJECT or JSON_ARRAY.

    Args:
        name: which one, in capitals.
        keys: the keys of the object's members; none of an array.
        values: the values.
        keeps_null: NULL ON NULL.
        unique: WITH UNIQUE KEYS.
        returning: the type wanted, and in which format.
    """

    name: str
    keys: tuple[s.Expression, ...]
    values: tuple[JsonInput, ...]
    keeps_null: bool
    unique: bool = False
    returning: s.TypeName | None = None
    output_format: str | None = None
