"""The typed tree of queries.

Columns have symbols that are unique in a statement. Nodes are compared by identity.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final, TypeAlias, get_args

from rowmerge_nb.sql.typed.expressions import Sort, Subquery, Typed, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowmerge_nb.sql.typed.expressions import Column

ROW_NUMBER: Final = "$row"
"""The column that numbers rows of VALUES which are computed in several queries.

No symbol begins with ``$``.
"""
Sets: TypeAlias = tuple[tuple[int, ...], ...]
"""The sets of GROUPING SETS, ROLLUP and CUBE: the indexes of the keys in each."""


@dataclass(frozen=True, eq=False)
class Scanned:
    """A table.

    Args:
        rows: returns an upper bound of its rows, or None.
        view: the view that an engine reads; its columns are ``c0``, ``c1``, ...
        is_deterministic: a statement reads the same rows twice.
    """

    name: str
    columns: tuple[tuple[Column, str], ...]
    rows: Callable[[], int | None]
    view: str = ""
    is_exact: bool = False
    is_deterministic: bool = True


@dataclass(frozen=True, eq=False)
class Form:
    """Rows of VALUES that differ only in constants.

    Args:
        values: the values, over ``constants``.
        view: the view of each row's constants; ``""`` for a single row with constants in its
            values.
        constants: the columns of that view.
        number: a single row's number, if rows are numbered. A view has it in its last column,
            `ROW_NUMBER`.
    """

    values: tuple[Typed, ...]
    view: str = ""
    constants: tuple[Column, ...] = ()
    number: int | None = None


@dataclass(frozen=True, eq=False)
class Valued:
    """VALUES.

    Args:
        first: returns texts or values of up to this many of the first rows.
        is_numbered: rows are numbered, because the forms do not keep their order.
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
        columns: the outputs, the ordinality last.
    """

    items: tuple[Typed, ...]
    columns: tuple[Column, ...]
    groups: tuple[int, ...]
    ordinality: bool


@dataclass(frozen=True, eq=False)
class Generated:
    """A call of a table function. The arguments of ``sequence`` are start, stop and step."""

    name: str
    columns: tuple[Column, ...]
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Joined:
    """A join.

    Args:
        shared: the columns of USING with their values over both sides.
        lateral: the right side reads columns of the left one.
        rest: with USING, the other columns.
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
        outputs: the SELECT list. Without one, the query only has rows or has none.
        order_by: ORDER BY, over columns of FROM or of the SELECT list.
        ties: rows that equal the last one by the keys come out too (WITH TIES).
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
    """UNION, INTERSECT or EXCEPT of two sides whose columns have the types of ``columns``."""

    operator: str
    distinct: bool
    left: Query
    right: Query
    columns: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Ordered:
    """ORDER BY and LIMIT of anything but a SELECT; see `Selected`."""

    source: Query
    order_by: tuple[Sort, ...]
    limit: int | None
    offset: int
    ties: bool = False


@dataclass(frozen=True, eq=False)
class Coerced:
    """A query with other types, symbols or order of columns.

    Values to store have casts of their own kind.
    """

    source: Query
    columns: tuple[tuple[Column, Typed], ...]


@dataclass(frozen=True, eq=False)
class Recursive:
    """WITH RECURSIVE, unrolled.

    Args:
        levels: the anchor, and each step, which reads the level before it.
        distinct: each row comes out once.
    """

    levels: tuple[Query, ...]
    columns: tuple[Column, ...]
    distinct: bool


@dataclass(frozen=True, eq=False)
class Stepped:
    """The rows of a step of a recursion, computed before the next step reads them.

    Otherwise an engine could merge the expressions of levels, and they would double from level to
    level.
    """

    source: Query


@dataclass(frozen=True, eq=False)
class Failing:
    """Fails with Trino's code if it has a row."""

    source: Query
    code: str
    message: str


@dataclass(frozen=True, eq=False)
class Extremes:
    """One row about a query of one column: number of rows, of values that are not NULL, minimum,
    maximum.
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
    """Yield all nodes of a query and their expressions, outside in, without queries within
    expressions.

    A shared node comes once per reader.
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
    """Yield all subqueries in a query's expressions, also nested ones."""
    waiting = [query]
    while waiting:
        for part in parts_of(waiting.pop()):
            if isinstance(part, Typed):
                inner_queries = [inner for inner in walk(part) if isinstance(inner, Subquery)]
                yield from inner_queries
                waiting.extend(inner.query for inner in inner_queries)
