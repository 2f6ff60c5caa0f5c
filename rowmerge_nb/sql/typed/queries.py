"""The typed tree of queries: what was analyzed, before it became text of an engine. EXPLAIN plans it as Trino would.

It is made of what the analyzer has at hand anyway, and nothing is computed for it: a statement that nobody has explained pays for
references only. Columns are `rowmerge_nb.sql.typed.expressions.Column`, by their symbols.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

from rowmerge_nb.sql.typed.expressions import Sort, Subquery, Typed, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowmerge_nb.sql.typed.expressions import Column


@dataclass(frozen=True)
class Scanned:
    """A table.

    Args:
        name: its full name.
        columns: its columns, each with the name that the table has for it.
        rows: how many rows it has at most, asked when it matters; None where that is not known.
    """

    name: str
    columns: tuple[tuple[Column, str], ...]
    rows: Callable[[], int | None]


@dataclass(frozen=True)
class Valued:
    """VALUES.

    Args:
        columns: the columns.
        count: how many rows there are.
        first: gives the texts of some of the first rows, at most as many as it is asked for, or their values.
    """

    columns: tuple[Column, ...]
    count: int
    first: Callable[[int], Sequence[Sequence[Typed | str]]]


@dataclass(frozen=True)
class Unnested:
    """UNNEST; its items may be about columns of what stands to its left.

    Args:
        items: what is unnested.
        columns: the columns that come out, the ordinality as the last one.
        groups: how many columns each item gives.
    """

    items: tuple[Typed, ...]
    columns: tuple[Column, ...]
    groups: tuple[int, ...]
    ordinality: bool


@dataclass(frozen=True)
class Generated:
    """A call of a table function."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Joined:
    """A join.

    Args:
        kind: CROSS, INNER, LEFT, RIGHT or FULL.
        left: what stands on its left.
        right: what stands on its right.
        condition: its condition; None without one.
        shared: the columns of USING, each with its value over both sides' columns.
        lateral: the right side reads columns of the left one.
    """

    kind: str
    left: Query
    right: Query
    condition: Typed | None = None
    shared: tuple[tuple[Column, Typed], ...] = ()
    lateral: bool = False


@dataclass(frozen=True)
class Selected:
    """A SELECT with its ORDER BY and LIMIT.

    Args:
        source: what stands in FROM; None without it.
        where: the condition of WHERE.
        outputs: the SELECT list: each column with its value.
        keys: what is grouped by; None without GROUP BY.
        sets: of GROUPING SETS, ROLLUP and CUBE the numbers of the keys in each set; None without them.
        having: the condition of HAVING.
        distinct: SELECT DISTINCT.
        order_by: what is sorted by, over columns of FROM or of the SELECT list.
        limit: at most so many rows; None for all.
        offset: so many rows are left out before.
        ties: rows that are equal to the last one by the keys come out as well (FETCH FIRST WITH TIES).
    """

    source: Query | None
    where: Typed | None
    outputs: tuple[tuple[Column, Typed], ...]
    keys: tuple[Typed, ...] | None = None
    sets: tuple[tuple[int, ...], ...] | None = None
    having: Typed | None = None
    distinct: bool = False
    order_by: tuple[Sort, ...] = ()
    limit: int | None = None
    offset: int = 0
    ties: bool = False


@dataclass(frozen=True)
class SetOperated:
    """UNION, INTERSECT or EXCEPT."""

    operator: str
    distinct: bool
    left: Query
    right: Query
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Ordered:
    """ORDER BY and LIMIT of a query that is no SELECT; see `Selected`."""

    source: Query
    order_by: tuple[Sort, ...]
    limit: int | None
    offset: int
    ties: bool = False


@dataclass(frozen=True)
class Coerced:
    """A query whose columns get other types, or other symbols.

    Args:
        source: the query.
        columns: its columns as they come out, each with its value.
    """

    source: Query
    columns: tuple[tuple[Column, Typed], ...]


Query: TypeAlias = Scanned | Valued | Unnested | Generated | Joined | Selected | SetOperated | Ordered | Coerced
_NODES = (Scanned, Valued, Unnested, Generated, Joined, Selected, SetOperated, Ordered, Coerced, Sort)


def subqueries(query: Query) -> Iterator[Subquery]:
    """Yield the subqueries in a query's expressions, and those in the queries that it is made of and in theirs."""
    waiting: list[object] = [query]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Typed):
            found = [inner for inner in walk(part) if isinstance(inner, Subquery)]
            yield from found
            waiting.extend(inner.query for inner in found)
        elif isinstance(part, tuple):
            waiting.extend(part)
        elif isinstance(part, _NODES):
            waiting.extend(getattr(part, field.name) for field in fields(part))
