"""Names of methods of the contract as Trino's connectors have them, in Java."""

from __future__ import annotations


def java_name(method: str) -> str:
    """Return the name of a method in Java.

    >>> java_name("store_merged_rows"), java_name("commit")
    ('storeMergedRows', 'commit')
    """
    first, *others = method.split("_")
    return first + "".join(word.capitalize() for word in others)
