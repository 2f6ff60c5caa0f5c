"""The typed tree of queries: all that a query means. Printers make text of it, and EXPLAIN plans it as Trino would.

Columns are `rowmerge_nb.sql.typed.expressions.Column`, by their symbols, which are unique in a statement. What a tree reads and how many
rows it has is in `rowmerge_nb.sql.typed.readings`. Two nodes are equal only if they are the same object.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

from rowmerge_nb.sql.typed.expressions import Sort, Subquery, Typed, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowmerge_nb.sql.typed.expressions import Column

ROW_NUMBER: Final = "$row"
"""The column that numbers rows of VALUES which are computed in several queries. No symbol begins with ``$``."""
Sets: TypeAlias = tuple[tuple[int, ...], ...]
"""The sets of GROUPING SETS, ROLLUP and CUBE: the indexes of the keys in each."""


@dataclass(frozen=True, eq=False)
class Scanned:
    """A table.

    Args:
        name: its full name.
        columns: its columns, each with the name that the table has for it.
        rows: returns the largest number of rows it can have, or None if that is not known.
        view: the view by which an engine reads the table. Its columns are ``c0``, ``c1``, ... in the order of ``columns``.
        is_exact: ``rows`` returns the exact number.
        is_deterministic: reading the table twice within the statement returns the same rows.
    """

    name: str
    columns: tuple[tuple[Column, str], ...]
    rows: Callable[[], int | None]
    view: str = ""
    is_exact: bool = False
    is_deterministic: bool = True


@dataclass(frozen=True, eq=False)
class Form:
    """Rows of VALUES that differ in constants alone.

    Args:
        values: the values of the columns, over ``constants``.
        view: the view that has the constants of each row; ``""`` for a single row that has them in its values.
        constants: the columns of that view.
        number: the number of a single row among all rows, if rows are numbered. A view has it in its last column, `ROW_NUMBER`.
    """

    values: tuple[Typed, ...]
    view: str = ""
    constants: tuple[Column, ...] = ()
    number: int | None = None


@dataclass(frozen=True, eq=False)
class Valued:
    """VALUES.

    Args:
        columns: the columns.
        count: how many rows there are.
        first: returns the texts or the values of some of the first rows, at most as many as requested.
        forms: the rows, which together make up all rows.
        is_numbered: the rows are numbered, because the forms do not have them in their order.
    """

    columns: tuple[Column, ...]
    count: int
    first: Callable[[int], Sequence[Sequence[Typed | str]]]
    forms: tuple[Form, ...] = ()
    is_numbered: bool = False


@dataclass(frozen=True, eq=False)
class Unnested:
    """UNNEST; its items may read columns of the relation to its left.

    Args:
        items: the arrays and maps.
        columns: the columns that come out, the ordinality as the last one.
        groups: how many columns come from each item.
    """

    items: tuple[Typed, ...]
    columns: tuple[Column, ...]
    groups: tuple[int, ...]
    ordinality: bool


@dataclass(frozen=True, eq=False)
class Generated:
    """A call of a table function.

    Args:
        name: the function.
        columns: the columns that come out.
        arguments: of ``sequence`` its start, its stop and its step.
    """

    name: str
    columns: tuple[Column, ...]
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Joined:
    """A join.

    Args:
        kind: CROSS, INNER, LEFT, RIGHT or FULL.
        left: the relation on its left.
        right: the relation on its right.
        condition: its condition; None without one.
        shared: the columns of USING, each with its value over the columns of both sides.
        lateral: the right side reads columns of the left one.
        rest: of a join with USING the other columns of both sides.
    """

    kind: str
    left: Query
    right: Query
    condition: Typed | None = None
    shared: tuple[tuple[Column, Typed], ...] = ()
    lateral: bool = False
    rest: tuple[Column, ...] = ()


@dataclass(frozen=True, eq=False)
class Selected:
    """A SELECT with its ORDER BY and LIMIT.

    Args:
        source: the relation of FROM; None without FROM.
        where: the condition of WHERE.
        outputs: the SELECT list: each column with its value. Without one, the query only has rows or has none.
        keys: the keys of GROUP BY; None without GROUP BY.
        sets: the sets of keys; None without GROUPING SETS, ROLLUP and CUBE.
        having: the condition of HAVING.
        distinct: SELECT DISTINCT.
        order_by: the keys of ORDER BY, over columns of FROM or of the SELECT list.
        limit: the largest number of rows; None for all.
        offset: the number of rows that are skipped before.
        ties: rows that are equal to the last one by the keys come out as well (FETCH FIRST WITH TIES).
    """

    source: Query | None
    where: Typed | None
    outputs: tuple[tuple[Column, Typed], ...]
    keys: tuple[Typed, ...] | None = None
    sets: Sets | None = None
    having: Typed | None = None
    distinct: bool = False
    order_by: tuple[Sort, ...] = ()
    limit: int | None = None
    offset: int = 0
    ties: bool = False


@dataclass(frozen=True, eq=False)
class SetOperated:
    """UNION, INTERSECT or EXCEPT; the columns of both sides have the types of ``columns``."""

    operator: str
    distinct: bool
    left: Query
    right: Query
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Ordered:
    """ORDER BY and LIMIT of a query that is no SELECT; see `Selected`."""

    source: Query
    order_by: tuple[Sort, ...]
    limit: int | None
    offset: int
    ties: bool = False


@dataclass(frozen=True, eq=False)
class Coerced:
    """A query whose columns get other types, other symbols, or another order.

    Args:
        source: the query.
        columns: its columns as they come out, each with its value. A value that is stored has a cast of its own kind.
    """

    source: Query
    columns: tuple[tuple[Column, Typed], ...]


@dataclass(frozen=True, eq=False)
class Recursive:
    """A recursive query of WITH, unrolled.

    Args:
        levels: the rows of the anchor and those of each step, which reads the level before it.
        columns: the columns that come out.
        distinct: each row comes out once.
    """

    levels: tuple[Query, ...]
    columns: tuple[Column, ...]
    distinct: bool


@dataclass(frozen=True, eq=False)
class Stepped:
    """The rows of one step of a recursion, which are computed before anything is made of them.

    Otherwise an engine could put the expressions of each level into those of the next one, and they would double from level to level.
    """

    source: Query


@dataclass(frozen=True, eq=False)
class Failing:
    """A query that fails if it has a row.

    Args:
        source: the query.
        code: Trino's code of the error.
        message: the message of the error.
    """

    source: Query
    code: str
    message: str


@dataclass(frozen=True, eq=False)
class Extremes:
    """One row about the values of a query of one column: their number, how many are not NULL, the least and the greatest one.

    Args:
        source: the query.
        columns: the one column that comes out, a row of these four.
    """

    source: Query
    columns: tuple[Column, ...]


Query: TypeAlias = (
    Scanned
    | Valued
    | Unnested
    | Generated
    | Joined
    | Selected
    | SetOperated
    | Ordered
    | Coerced
    | Recursive
    | Stepped
    | Failing
    | Extremes
)
_NODES: Final = (*get_args(Query), Form)


def columns_of(query: Query) -> tuple[Column, ...]:
    """Return the columns that come out of a query, in their order.

    >>> from rowmerge_nb.spi.types import BIGINT
    >>> from rowmerge_nb.sql.typed.expressions import Column
    >>> columns_of(Scanned("t", ((Column(BIGINT, "id_1"), "id"),), lambda: None))[0].symbol
    'id_1'
    """
    match query:
        case Scanned() | Coerced():
            return tuple(column for column, _ in query.columns)
        case Selected():
            return tuple(column for column, _ in query.outputs)
        case Joined():
            if query.shared:
                return (*(column for column, _ in query.shared), *query.rest)
            return (*columns_of(query.left), *columns_of(query.right))
        case Ordered() | Stepped() | Failing():
            return columns_of(query.source)
    return query.columns


def parts_of(query: Query) -> Iterator[Query | Form | Typed]:
    """Yield all nodes of a query and the expressions in them, outside in. Queries within expressions are not entered.

    A node that several others read comes once for each of them.
    """
    waiting: list[object] = [query]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Typed):
            yield part
        elif isinstance(part, tuple):
            waiting.extend(reversed(part))
        elif isinstance(part, Sort):
            waiting.append(part.value)
        elif isinstance(part, _NODES):
            yield part
            waiting.extend(getattr(part, field.name) for field in reversed(fields(part)))


def subqueries(query: Query) -> Iterator[Subquery]:
    """Yield the subqueries in a query's expressions, and those in the queries that it is made of and in theirs."""
    waiting = [query]
    while waiting:
        for part in parts_of(waiting.pop()):
            if isinstance(part, Typed):
                found = [inner for inner in walk(part) if isinstance(inner, Subquery)]
                yield from found
                waiting.extend(inner.query for inner in found)
