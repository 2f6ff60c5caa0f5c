"""SQL names and texts: quoting and suggestions."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable


def quoted(name: str) -> str:
    """Quote a name for standard SQL.

    >>> print(quoted('a"b'))
    "a""b"
    """
    return '"' + name.replace('"', '""') + '"'


def quoted_path(names: Iterable[str]) -> str:
    """Quote the parts of a name for standard SQL.

    >>> print(quoted_path(["shop", "order items"]))
    "shop"."order items"
    """
    return ".".join(map(quoted, names))


def quoted_text(text: str) -> str:
    """Quote a text as an SQL literal.

    >>> quoted_text("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def quoted_where_needed(name: str, reserved: Container[str] = ()) -> str:
    """Quote a name unless it is a plain word outside of ``reserved`` (upper case).

    >>> quoted_where_needed("region"), quoted_where_needed("2nd"), quoted_where_needed("Order", {"ORDER"})
    ('region', '"2nd"', '"Order"')
    """
    return (
        name
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.upper() not in reserved
        else quoted(name)
    )


def backquoted(name: str) -> str:
    """Quote a name for Spark SQL and similar engines.

    >>> backquoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def nearest(name: str, candidates: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the most similar known name, or None below the similarity ``cutoff`` (0 to 1).

    >>> nearest("custmer", ["customer", "address"]), nearest("x", ["customer"])
    ('customer', None)
    """
    matches = difflib.get_close_matches(name, list(candidates), n=1, cutoff=cutoff)
    return matches[0] if matches else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Return a suggestion of the most similar known name, or None.

    >>> did_you_mean("custmer", ["customer", "address"])
    "Did you mean 'customer'?"
    """
    near = nearest(name, candidates)
    return None if near is None else f"Did you mean '{near}'?"


def class_name(handle: object) -> str:
    """Return the name of a handle's class in reports; a connector in another language has an
    attribute ``class_text`` with that of its own handle.

    >>> class_name(3)
    'int'
    """
    return str(getattr(handle, "class_text", "")) or type(handle).__name__
