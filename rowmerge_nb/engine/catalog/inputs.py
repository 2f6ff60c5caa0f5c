"""Validation of the engine's arguments."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import ParseError, RowMergeError
from rowmerge_nb.sql.constants import half_character
from rowmerge_nb.sql.tree.statements import Span

if TYPE_CHECKING:
    from collections.abc import Sequence


def statement_text(sql: object) -> str:
    """Return a statement's text; INVALID_ARGUMENTS for other types, SYNTAX_ERROR for lone
    surrogates, which stores cannot hold.
    """
    if not isinstance(sql, str):
        raise RowMergeError.invalid(
            f"A statement is a text; this is of type {type(sql).__name__}",
            hint='Give its SQL: engine.run("SELECT 1").',
        )
    if (half := half_character(sql)) is not None:
        span = Span.within(sql, half.start(), half.end())
        raise ParseError(
            f"The text has a lone surrogate, U+{ord(half[0]):04X}, which is half a character",
            hint="Remove it, or write the whole character.",
        ).at(span)
    return sql


def names_of(
    value: Sequence[str] | str | None,
    argument: str,
    form: str = "the name of a column, or a list of such names",
) -> tuple[str, ...]:
    """Return names as a tuple; INVALID_ARGUMENTS for other types.

    >>> names_of("id", "primary_key"), names_of(["a", "b"], "not_null"), names_of(None, "not_null")
    (('id',), ('a', 'b'), ())
    """
    if value is None or isinstance(value, str):
        return (value,) if value else ()
    names = tuple(checked(value, argument, Iterable, form))
    return tuple(checked(name, argument, str, form) for name in names)


def user_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return os.environ.get("USER", "user")
