"""The most rows that a query can have, by its typed tree and the sizes of its tables."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from rowmerge_nb.sql.typed import queries as q


@singledispatch
def most_rows_of(_: Any) -> int | None:
    """Return an upper bound of the rows of a query; None if none is known.

    >>> three, two = (q.Valued((), count, lambda _: []) for count in (3, 2))
    >>> most_rows_of(q.SetOperated("UNION", False, three, two, ()))
    5
    """
    return None


@most_rows_of.register
def _(query: q.Scanned) -> int | None:
    return query.rows()


@most_rows_of.register
def _(query: q.Valued) -> int | None:
    return query.count


@most_rows_of.register
def _(query: q.Coerced) -> int | None:
    return most_rows_of(query.source)


@most_rows_of.register
def _(query: q.Ordered) -> int | None:
    return _limited(most_rows_of(query.source), query)


@most_rows_of.register
def _(query: q.Selected) -> int | None:
    # A SELECT without FROM has one row, and so has an aggregate of no rows.
    rows = 1 if query.source is None else most_rows_of(query.source)
    sets = 1 if query.sets is None else len(query.sets)
    return _limited(None if rows is None else max(rows, 1) * sets, query)


@most_rows_of.register
def _(query: q.SetOperated) -> int | None:
    left, right = most_rows_of(query.left), most_rows_of(query.right)
    if query.operator == "EXCEPT":
        return left
    if query.operator == "INTERSECT":
        return min((rows for rows in (left, right) if rows is not None), default=None)
    return None if left is None or right is None else left + right


@most_rows_of.register
def _(query: q.Joined) -> int | None:
    # The rows of a lateral side are asked for once for each row of the other side.
    left, right = most_rows_of(query.left), most_rows_of(query.right)
    if left is None or right is None:
        return None
    return max(left, 1) * max(right, 1) + (left + right if query.kind == "FULL" else 0)


def _limited(rows: int | None, query: q.Selected | q.Ordered) -> int | None:
    if query.limit is None or query.ties:
        return rows
    return query.limit if rows is None else min(rows, query.limit)
