"""Names as people write them: quoted where SQL is printed, and the one that was probably meant."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["backquoted", "nearest", "quoted"]


def quoted(name: str) -> str:
    """Write a name so that every engine of standard SQL takes it as it is.

    >>> print(quoted('a"b'))
    "a""b"
    """
    return '"' + name.replace('"', '""') + '"'


def backquoted(name: str) -> str:
    """Write a name for Spark SQL, and for engines that take a name in double quotes for a text.

    >>> backquoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def nearest(wanted: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Give the known name that is most like a wanted one; None where none is.

    Args:
        wanted: what was written.
        known: what there is.
        cutoff: how alike they have to be, from 0 to 1.

    >>> nearest("custmer", ["customer", "address"]), nearest("x", ["customer"])
    ('customer', None)
    """
    found = difflib.get_close_matches(wanted, list(known), n=1, cutoff=cutoff)
    return found[0] if found else None
