"""The plan nodes that only queries have, under Trino's names.

Scans, filters, projections and joins are those of `plan_nodes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from rowmerge_nb.plan.explained_expressions import printed, printed_order, printed_window
from rowmerge_nb.plan.plan_nodes import PlanNode
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from collections.abc import Iterable

SHOWN_ROWS: Final = 10
"""Number of rows of VALUES that are printed."""
Descriptor: TypeAlias = "tuple[tuple[str, str], ...]"
"""The arguments of a node as Trino prints them."""
Rows: TypeAlias = Callable[[int], Sequence[Sequence[e.Typed | str]]]


def names_of(columns: Iterable[e.Column]) -> str:
    """Return symbols as Trino lists them: ``[id, name]``."""
    return f"[{', '.join(column.symbol for column in columns)}]"


def _typed(columns: Iterable[e.Column]) -> str:
    return f"[{', '.join(f'{column.symbol}:{column.type}' for column in columns)}]"


def _values(keys: Sequence[e.Sort]) -> tuple[e.Typed, ...]:
    return tuple(key.value for key in keys)


@dataclass(frozen=True, kw_only=True)
class QueryPlanNode(PlanNode):
    @property
    def name(self) -> str:
        return type(self).__name__.removesuffix("Node")

    @property
    def descriptor(self) -> Descriptor:
        return ()

    @property
    def details(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, kw_only=True)
class ValuesNode(QueryPlanNode):
    """Rows written in the statement.

    Args:
        first: returns up to this many of the first rows.
    """

    meaning: ClassVar[str] = "Rows that are written in the statement."
    count: int
    first: Rows = field(compare=False, repr=False)
    columns: tuple[e.Column, ...]

    @property
    def details(self) -> tuple[str, ...]:
        names = {symbol.name for symbol in self.outputs}
        indexes = [index for index, column in enumerate(self.columns) if column.symbol in names]
        if not indexes:
            return ()
        rows = self.first(SHOWN_ROWS)
        lines = [
            f"({', '.join(v if isinstance(v := row[i], str) else printed(v) for i in indexes)})"
            for row in rows
        ]
        if rest := self.count - len(lines):
            lines.append(f"... {rest} more rows" if lines else f"{self.count} rows")
        return tuple(lines)


@dataclass(frozen=True, kw_only=True)
class TableFunctionProcessorNode(QueryPlanNode):
    meaning: ClassVar[str] = "Produces the rows of a table function."
    function: str

    @property
    def descriptor(self) -> Descriptor:
        return (("name", self.function),)


@dataclass(frozen=True, kw_only=True)
class RecursionStepNode(QueryPlanNode):
    meaning: ClassVar[str] = "The rows of the previous step, computed again."
    level: int

    @property
    def descriptor(self) -> Descriptor:
        """The number of the step; 0 is the anchor."""
        return (("level", str(self.level)),)


@dataclass(frozen=True, kw_only=True)
class UnnestNode(QueryPlanNode):
    """Elements of arrays and entries of maps as rows, beside the columns of their rows.

    Args:
        type: INNER, LEFT, RIGHT or FULL; ``""`` for UNNEST alone.
    """

    meaning: ClassVar[str] = (
        "Makes a row of each element of an array, beside the columns of the array's row."
    )
    source: PlanNode
    items: tuple[e.Column, ...]
    columns: tuple[e.Column, ...]
    type: str

    @property
    def name(self) -> str:
        """The name with the join: ``CrossJoin Unnest``."""
        return (
            f"{'Cross' if self.type == 'INNER' else self.type.title()}Join Unnest"
            if self.type
            else "Unnest"
        )

    @property
    def expressions(self) -> tuple[e.Typed, ...]:
        return self.items

    @property
    def descriptor(self) -> Descriptor:
        own = {column.symbol for column in self.columns}
        others = [
            e.Column(symbol.type, symbol.name) for symbol in self.outputs if symbol.name not in own
        ]
        return (
            *((("replicate", _typed(others)),) if others else ()),
            ("unnest", _typed(self.items)),
        )


@dataclass(frozen=True, kw_only=True)
class GroupIdNode(QueryPlanNode):
    """Every row once per grouping set, with NULL for keys outside of the set.

    Args:
        keys: each key with its column below.
    """

    meaning: ClassVar[str] = "Repeats every row for each grouping set."
    source: PlanNode
    keys: tuple[tuple[e.Column, e.Column], ...]
    sets: tuple[tuple[e.Column, ...], ...]
    arguments: tuple[e.Column, ...]

    @property
    def expressions(self) -> tuple[e.Typed, ...]:
        return (*(key for _, key in self.keys), *self.arguments)

    @property
    def descriptor(self) -> Descriptor:
        return (("symbols", f"[{', '.join(names_of(columns) for columns in self.sets)}]"),)

    @property
    def details(self) -> tuple[str, ...]:
        return tuple(f"{column.symbol} := {key.symbol}" for column, key in self.keys)


@dataclass(frozen=True, kw_only=True)
class AggregateNode(QueryPlanNode):
    meaning: ClassVar[str] = "Makes one row of each group."
    source: PlanNode
    keys: tuple[e.Column, ...]
    calls: tuple[tuple[e.Column, e.Aggregate], ...] = ()

    @property
    def expressions(self) -> tuple[e.Typed, ...]:
        return (*self.keys, *(call for _, call in self.calls))

    @property
    def descriptor(self) -> Descriptor:
        return (("keys", names_of(self.keys)),) if self.keys else ()

    @property
    def details(self) -> tuple[str, ...]:
        """The aggregates; Trino calls the condition of FILTER a mask."""
        return tuple(
            f"{column.symbol} := {printed(replace(call, filter=None))}"
            + (f" (mask = {printed(call.filter)})" if call.filter is not None else "")
            for column, call in self.calls
        )


@dataclass(frozen=True, kw_only=True)
class WindowNode(QueryPlanNode):
    meaning: ClassVar[str] = "Computes functions over the rows around each row."
    source: PlanNode
    partition_by: tuple[e.Column, ...]
    order_by: tuple[e.Sort, ...]
    calls: tuple[tuple[e.Column, e.Windowed], ...]

    @property
    def expressions(self) -> tuple[e.Typed, ...]:
        return (*self.partition_by, *_values(self.order_by), *(call for _, call in self.calls))

    @property
    def descriptor(self) -> Descriptor:
        partition = (("partitionBy", names_of(self.partition_by)),) if self.partition_by else ()
        return (
            *partition,
            *((("orderBy", printed_order(self.order_by)),) if self.order_by else ()),
        )

    @property
    def details(self) -> tuple[str, ...]:
        return tuple(f"{column.symbol} := {printed_window(call)}" for column, call in self.calls)


@dataclass(frozen=True, kw_only=True)
class ApplyNode(QueryPlanNode):
    """Whether a query has rows (EXISTS), or has a value among its rows (IN).

    Args:
        key: the column of the query that is compared with it.
    """

    meaning: ClassVar[str] = (
        "Checks for each row whether a query has rows, or has a value among its rows."
    )
    source: PlanNode
    query: PlanNode
    correlation: tuple[e.Column, ...]
    column: e.Column
    value: e.Column | None
    key: e.Column | None

    @property
    def is_semi_join(self) -> bool:
        """An IN without correlation."""
        return self.value is not None and not self.correlation

    @property
    def name(self) -> str:
        """The name as Trino prints it: an IN without correlation is a SemiJoin."""
        return "SemiJoin" if self.is_semi_join else "Apply"

    @property
    def sources(self) -> tuple[PlanNode, ...]:
        return (self.source, self.query)

    @property
    def expressions(self) -> tuple[e.Typed, ...]:
        return (
            *self.correlation,
            *(column for column in (self.value, self.key) if column is not None),
        )

    @property
    def descriptor(self) -> Descriptor:
        if self.is_semi_join and self.value is not None and self.key is not None:
            return (("criteria", f"{self.value.symbol} = {self.key.symbol}"),)
        return (("correlation", names_of(self.correlation)),)

    @property
    def details(self) -> tuple[str, ...]:
        """The question; a SemiJoin has it in its criteria."""
        if self.value is None or self.key is None:
            return (f"{self.column.symbol} := EXISTS",)
        return (
            ()
            if self.is_semi_join
            else (f"{self.column.symbol} := {self.value.symbol} IN {self.key.symbol}",)
        )


@dataclass(frozen=True, kw_only=True)
class CorrelatedJoinNode(QueryPlanNode):
    meaning: ClassVar[str] = "Runs a query for each row, with columns of that row."
    source: PlanNode
    query: PlanNode
    correlation: tuple[e.Column, ...]

    @property
    def sources(self) -> tuple[PlanNode, ...]:
        return (self.source, self.query)

    @property
    def expressions(self) -> tuple[e.Typed, ...]:
        return self.correlation

    @property
    def descriptor(self) -> Descriptor:
        return (("correlation", names_of(self.correlation)),)


@dataclass(frozen=True, kw_only=True)
class EnforceSingleRowNode(QueryPlanNode):
    """The one row of a query, an error with several; NULL without a row.

    Args:
        keys: there is one row for each value of these, and none for others.
    """

    meaning: ClassVar[str] = (
        "Fails if the query has several rows; makes a row of NULL if it has none."
    )
    source: PlanNode
    keys: tuple[e.Column, ...] = ()

    @property
    def expressions(self) -> tuple[e.Typed, ...]:
        return self.keys

    @property
    def descriptor(self) -> Descriptor:
        return (("keys", names_of(self.keys)),) if self.keys else ()


@dataclass(frozen=True, kw_only=True)
class SortNode(QueryPlanNode):
    meaning: ClassVar[str] = "Puts rows in order."
    source: PlanNode
    order_by: tuple[e.Sort, ...]

    @property
    def expressions(self) -> tuple[e.Typed, ...]:
        return _values(self.order_by)

    @property
    def descriptor(self) -> Descriptor:
        return (("orderBy", printed_order(self.order_by)),)


@dataclass(frozen=True, kw_only=True)
class LimitNode(QueryPlanNode):
    meaning: ClassVar[str] = "Keeps a number of rows."
    source: PlanNode
    count: int

    @property
    def descriptor(self) -> Descriptor:
        return (("count", str(self.count)),)


@dataclass(frozen=True, kw_only=True)
class OffsetNode(LimitNode):
    meaning: ClassVar[str] = "Skips a number of rows."


@dataclass(frozen=True, kw_only=True)
class TopNNode(LimitNode):
    meaning: ClassVar[str] = "Keeps the first rows of an order."
    order_by: tuple[e.Sort, ...]

    @property
    def expressions(self) -> tuple[e.Typed, ...]:
        return _values(self.order_by)

    @property
    def descriptor(self) -> Descriptor:
        return (("count", str(self.count)), ("orderBy", printed_order(self.order_by)))


@dataclass(frozen=True, kw_only=True)
class SetOperationNode(QueryPlanNode):
    """UNION, INTERSECT or EXCEPT.

    Args:
        is_all: repeated rows stay. A UNION without ALL has an Aggregate above it.
        inputs: the columns of each, in the order of the outputs.
    """

    meaning: ClassVar[str] = "Combines the rows of several queries."
    operator: str
    is_all: bool
    parts: tuple[PlanNode, ...]
    inputs: tuple[tuple[e.Column, ...], ...]

    @property
    def name(self) -> str:
        return self.operator.title()

    @property
    def sources(self) -> tuple[PlanNode, ...]:
        return self.parts

    @property
    def expressions(self) -> tuple[e.Typed, ...]:
        return tuple(column for columns in self.inputs for column in columns)

    @property
    def descriptor(self) -> Descriptor:
        """``ALL`` of INTERSECT and EXCEPT."""
        return (("", "ALL"),) if self.is_all and self.operator != "UNION" else ()

    @property
    def details(self) -> tuple[str, ...]:
        return tuple(
            f"{symbol.name} := [{', '.join(columns[index].symbol for columns in self.inputs)}]"
            for index, symbol in enumerate(self.outputs)
        )
