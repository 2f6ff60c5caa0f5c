"""The nodes that EXPLAIN shows of a query, under the names that Trino prints.

DuckDB executes them over the pages of one table (`rowmerge_nb.plan.page_query`). Other queries Spark plans by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rowmerge_nb.sql.typed.expressions import Aggregate, Column, Sort, Typed, Windowed


@dataclass(frozen=True)
class QueryNode:
    """Base of the nodes of a query.

    Args:
        outputs: the columns that come out.
    """

    outputs: tuple[Column, ...]

    @property
    def sources(self) -> tuple[QueryNode, ...]:
        """The nodes whose rows it takes."""
        source = getattr(self, "source", None)
        return () if source is None else (source,)

    def over(self, *sources: QueryNode) -> QueryNode:
        """Return the same node over other sources."""
        changed: Any = replace(self, source=sources[0]) if sources else self  # type: ignore[call-arg]
        return changed  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Scan(QueryNode):
    """Reads a table; ``names`` are what the table calls the outputs."""

    table: str
    names: tuple[str, ...]
    rows: Callable[[], int | None]


@dataclass(frozen=True)
class ValueRows(QueryNode):
    """Rows that stand in the statement."""

    count: int
    first: Callable[[int], Sequence[Sequence[Typed | str]]]
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class TableFunction(QueryNode):
    """A table function's rows."""

    name: str


@dataclass(frozen=True)
class Filtered(QueryNode):
    """Rows for which a condition is true."""

    source: QueryNode
    predicate: Typed


@dataclass(frozen=True)
class Projected(QueryNode):
    """Computed columns; the assignments are all of the outputs, those that only go through included."""

    source: QueryNode
    assignments: tuple[tuple[Column, Typed], ...]


@dataclass(frozen=True)
class GroupId(QueryNode):
    """Every row once per grouping set."""

    source: QueryNode
    keys: tuple[tuple[Column, Column], ...]
    sets: tuple[tuple[Column, ...], ...]
    number: Column


@dataclass(frozen=True)
class Aggregation(QueryNode):
    """Groups, with aggregates over them."""

    source: QueryNode
    keys: tuple[Column, ...]
    calls: tuple[tuple[Column, Aggregate], ...]


@dataclass(frozen=True)
class WindowRows(QueryNode):
    """Functions over one window."""

    source: QueryNode
    partition_by: tuple[Column, ...]
    order_by: tuple[Sort, ...]
    calls: tuple[tuple[Column, Windowed], ...]


@dataclass(frozen=True)
class JoinedRows(QueryNode):
    """A join: equalities of columns, and what else is asked for."""

    kind: str
    left: QueryNode
    right: QueryNode
    criteria: tuple[tuple[Column, Column], ...] = ()
    condition: Typed | None = None

    @property
    def sources(self) -> tuple[QueryNode, ...]:
        """The left side, the right side."""
        return (self.left, self.right)

    def over(self, *sources: QueryNode) -> QueryNode:
        """Return the same join over other sides."""
        return replace(self, left=sources[0], right=sources[1])


@dataclass(frozen=True)
class SemiJoined(QueryNode):
    """Whether a value is among those of a query."""

    source: QueryNode
    filtering: QueryNode
    value: Column
    key: Column
    found: Column

    @property
    def sources(self) -> tuple[QueryNode, ...]:
        """The rows, and the query."""
        return (self.source, self.filtering)

    def over(self, *sources: QueryNode) -> QueryNode:
        """Return the same node over other sources."""
        return replace(self, source=sources[0], filtering=sources[1])


@dataclass(frozen=True)
class Correlated(QueryNode):
    """A query that is asked once for every row, with columns of that row."""

    source: QueryNode
    query: QueryNode
    correlation: tuple[Column, ...]
    kind: str

    @property
    def sources(self) -> tuple[QueryNode, ...]:
        """The rows, and the query."""
        return (self.source, self.query)

    def over(self, *sources: QueryNode) -> QueryNode:
        """Return the same node over other sources."""
        return replace(self, source=sources[0], query=sources[1])


@dataclass(frozen=True)
class SingleRow(QueryNode):
    """One row: a NULL one if there is none, an error if there are several."""

    source: QueryNode


@dataclass(frozen=True)
class UnnestedRows(QueryNode):
    """Arrays and maps as rows, beside the columns of their rows; ``made`` are the columns that are made, the ordinality as the last."""

    source: QueryNode
    items: tuple[Column, ...]
    made: tuple[Column, ...]
    kind: str
    ordinality: bool


@dataclass(frozen=True)
class Sorted(QueryNode):
    """Rows in an order."""

    source: QueryNode
    order_by: tuple[Sort, ...]


@dataclass(frozen=True)
class Cut(QueryNode):
    """Some of the rows: the first of an order, any, or those behind an offset."""

    source: QueryNode
    count: int
    order_by: tuple[Sort, ...] = ()
    offset: bool = False


@dataclass(frozen=True)
class SetOperation(QueryNode):
    """The rows of several queries; ``inputs`` are the columns of each, in the order of the outputs."""

    name: str
    parts: tuple[QueryNode, ...]
    inputs: tuple[tuple[Column, ...], ...]

    @property
    def sources(self) -> tuple[QueryNode, ...]:
        """The queries."""
        return self.parts

    def over(self, *sources: QueryNode) -> QueryNode:
        """Return the same operation over other queries."""
        return replace(self, parts=sources)


def projection(source: QueryNode, assignments: Iterable[tuple[Column, Typed]]) -> Projected:
    """Compute columns over a node."""
    made = tuple(assignments)
    return Projected(tuple(column for column, _ in made), source, made)
