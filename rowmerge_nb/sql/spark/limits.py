"""ORDER BY, OFFSET, LIMIT and WITH TIES in Spark SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.sql.spark.printer import sort_keys
from rowmerge_nb.sql.typed.expressions import Constant

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.typed.expressions import Sort
    from rowmerge_nb.sql.typed.queries import Ordered, Selected

_MOST_COUNTED: Final = 2**31 - 1
"""Spark counts rows in an int."""


def tail(keys: tuple[Sort, ...], query: Selected | Ordered) -> str:
    keys = tuple(key for key in keys if not isinstance(key.value, Constant))
    text = f" ORDER BY {sort_keys(keys)}" if keys else ""
    # A limit above the int range retains all rows, and an offset above it none.
    limit = query.limit if query.offset <= _MOST_COUNTED else 0
    text += f" LIMIT {limit}" if limit is not None and limit <= _MOST_COUNTED else ""
    return text + (f" OFFSET {query.offset}" if 0 < query.offset <= _MOST_COUNTED else "")


def with_ties(
    text: str,
    columns: str,
    keys: tuple[Sort, ...],
    query: Selected | Ordered,
    new_name: Callable[[str], str],
) -> str:
    """Write WITH TIES, which Spark lacks: the first rows of ``text``, and those with the keys of
    the last one.
    """
    rank, number = backquoted(new_name("rank")), backquoted(new_name("number"))
    order, offset = f"OVER (ORDER BY {sort_keys(keys)})", query.offset
    ranked = f"SELECT *, rank() {order} AS {rank}, row_number() {order} AS {number} FROM ({text})"
    most = (query.limit or 0) + offset
    return (
        f"SELECT {columns} FROM ({ranked}) WHERE {rank} <= {most} AND {number} > {offset} ORDER BY"
        f" {number}"
    )
