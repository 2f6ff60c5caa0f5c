"""What the engine's façade is handed, and by whom."""

from __future__ import annotations

import getpass
import os
import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.errors import ParseError, RowMergeError
from rowmerge_nb.sql.tree.statements import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["names_of", "statement_text", "user_name"]

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def statement_text(sql: object) -> str:
    """Take the text of a statement; INVALID_ARGUMENTS for anything else, SYNTAX_ERROR for half a character, which no store could keep."""
    if not isinstance(sql, str):
        msg = f"A statement is a text; this is of type {type(sql).__name__}"
        raise RowMergeError(msg, code="INVALID_ARGUMENTS")
    if not sql.isascii() and (half := _SURROGATE.search(sql)) is not None:
        span = Span.within(sql, half.start(), half.end())
        msg = f"The text has a lone surrogate, U+{ord(half[0]):04X}, which is half a character"
        raise ParseError(msg, hint="Take it out, or write the whole character.").at(span)
    return sql


def names_of(value: Sequence[str] | str | None) -> tuple[str, ...]:
    """Take one name or several."""
    return (value,) if isinstance(value, str) else tuple(value or ())


def user_name() -> str:
    """Give the name of who works here."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return os.environ.get("USER", "user")
