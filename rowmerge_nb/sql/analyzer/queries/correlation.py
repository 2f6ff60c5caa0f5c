"""Lateral queries that Trino cannot decorrelate and therefore refuses."""

from __future__ import annotations

from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.readings import outer_columns


def is_separable(query: q.Query, outer: frozenset[str]) -> bool:
    """Return whether Trino can decorrelate a query.

    It cannot if rows of VALUES, a set operation, or the rows that OFFSET skips depend on ``outer``
    symbols.
    """
    match query:
        case q.Valued():
            return query.count == 1 or not _reads(query, outer)
        case q.SetOperated():
            return not _reads(query, outer)
        case q.Joined():
            return is_separable(query.left, outer) and is_separable(query.right, outer)
        case q.Selected() | q.Ordered() if query.offset:
            return not _reads(query, outer)
        case q.Selected() | q.Ordered() | q.Coerced():
            return query.source is None or is_separable(query.source, outer)
    return True


def _reads(query: q.Query, outer: frozenset[str]) -> bool:
    return any(column.symbol in outer for column in outer_columns(query))
