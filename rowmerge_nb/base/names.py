"""Names as people write them: quoted where SQL is printed, and the one that was probably meant."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable


def quoted(name: str) -> str:
    """Write a name so that every engine of standard SQL takes it as it is.

    >>> print(quoted('a"b'))
    "a""b"
    """
    return '"' + name.replace('"', '""') + '"'


def quoted_where_needed(name: str, reserved: Container[str] = ()) -> str:
    """Write a name so that it can be read again: in double quotes where it is no plain word.

    Args:
        name: the name.
        reserved: words, in upper case, that are no names.

    >>> quoted_where_needed("region"), quoted_where_needed("2nd"), quoted_where_needed("Order", {"ORDER"})
    ('region', '"2nd"', '"Order"')
    """
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.upper() not in reserved else quoted(name)


def backquoted(name: str) -> str:
    """Write a name for Spark SQL, and for engines that take a name in double quotes for a text.

    >>> backquoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def nearest(wanted: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that is most like a wanted one; None where none is.

    Args:
        wanted: what was written.
        known: what there is.
        cutoff: how alike they have to be, from 0 to 1.

    >>> nearest("custmer", ["customer", "address"]), nearest("x", ["customer"])
    ('customer', None)
    """
    found = difflib.get_close_matches(wanted, list(known), n=1, cutoff=cutoff)
    return found[0] if found else None


def did_you_mean(wanted: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Ask for the known name that is most like a wanted one; None where none is.

    >>> did_you_mean("custmer", ["customer", "address"])
    "Did you mean 'customer'?"
    """
    near = nearest(wanted, known, cutoff)
    return None if near is None else f"Did you mean '{near}'?"
