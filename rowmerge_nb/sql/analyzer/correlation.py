"""Which queries behind LATERAL Trino cannot take apart into a join, and therefore refuses; Spark could run them."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.expressions import Column, Sort, Subquery, Typed, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROWS: Final = 10
"""So many rows of VALUES are looked at: what is read from around it, the first ones usually show."""


def is_separable(query: q.Query, outer: frozenset[str]) -> bool:
    """Return whether a query can be taken apart from the rows around it.

    It cannot where several rows of VALUES, the queries of a set operation, or what OFFSET skips depend on these. Trino refuses more than that.

    Args:
        query: the query.
        outer: the symbols of the columns around it.
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
    return any(column.symbol in outer for column in _columns(query))


def _columns(query: q.Query) -> Iterator[Column]:
    """Yield the columns that a query and those within it name."""
    waiting: list[object] = [query]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Typed):
            for inner in walk(part):
                if isinstance(inner, Column):
                    yield inner
                elif isinstance(inner, Subquery):
                    yield from inner.outer
        elif isinstance(part, q.Valued):
            waiting.extend(part.first(_ROWS))
        elif isinstance(part, tuple | list):
            waiting.extend(part)
        elif isinstance(part, q.Query | Sort):
            waiting.extend(getattr(part, field.name) for field in fields(part))
