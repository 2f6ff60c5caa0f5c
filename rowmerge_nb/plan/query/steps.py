"""How the nodes of a query are printed, and where Trino puts exchanges between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Final

from rowmerge_nb.plan.explained_expressions import printed, printed_order, printed_window
from rowmerge_nb.plan.query.query_nodes import (
    Aggregation,
    Correlated,
    Cut,
    Filtered,
    GroupId,
    JoinedRows,
    Projected,
    Scan,
    SemiJoined,
    SetOperation,
    SingleRow,
    Sorted,
    TableFunction,
    UnnestedRows,
    ValueRows,
    WindowRows,
)
from rowmerge_nb.plan.steps import Partitioning, Step, local_exchange, remote_exchange
from rowmerge_nb.sql.typed.expressions import Aggregate, Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.plan.query.query_nodes import QueryNode

SINGLE: Final = "SINGLE"
SOURCE: Final = "SOURCE"
SHOWN_ROWS: Final = 10
"""So many rows of VALUES are printed."""


@dataclass(frozen=True)
class Spread:
    """Steps, and how their rows are spread over tasks.

    Args:
        step: the root.
        scheme: ``SOURCE`` where splits are read, ``SINGLE`` in one task, ``HASH`` by columns, ``ROUND_ROBIN``.
        keys: the columns by which they are spread.
    """

    step: Step
    scheme: str
    keys: tuple[str, ...] = ()

    def under(self, step: Step) -> Spread:
        """Return the same spread with another root."""
        return replace(self, step=step)


def single(spread: Spread, *, exchanges: bool = True) -> Spread:
    """Send all rows to one task."""
    if not exchanges or spread.scheme == SINGLE:
        return replace(spread, scheme=SINGLE, keys=())
    remote = remote_exchange(spread.step, spread.scheme, Partitioning(SINGLE))
    return Spread(remote, SINGLE)


def query_steps(node: QueryNode, *, exchanges: bool, small_rows: int) -> Spread:
    """Print a query's nodes.

    Args:
        node: its root.
        exchanges: put in what Trino puts in for a cluster.
        small_rows: a side of a join of at most so many rows goes to every task.
    """
    return _Printer(exchanges, small_rows).spread(node)


def _layout(columns: Iterable[Column]) -> tuple[tuple[str, str], ...]:
    return tuple((column.symbol, str(column.type)) for column in columns)


def _names(columns: Iterable[Column]) -> str:
    return f"[{', '.join(column.symbol for column in columns)}]"


def _typed(columns: Iterable[Column]) -> str:
    return f"[{', '.join(f'{column.symbol}:{column.type}' for column in columns)}]"


def _computed(node: Projected) -> tuple[str, ...]:
    return tuple(f"{column.symbol} := {printed(value)}" for column, value in node.assignments if column != value)


def _call(call: Aggregate) -> str:
    """Print an aggregate; what it filters by is its mask."""
    mask = f" (mask = {printed(call.filter)})" if call.filter is not None else ""
    return printed(replace(call, filter=None)) + mask


@dataclass(frozen=True)
class _Printer:
    exchanges: bool
    small_rows: int

    def one(self, node: QueryNode) -> Spread:
        """Print a node whose rows are to be in one task."""
        return single(self.spread(node), exchanges=self.exchanges)

    def hashed(self, spread: Spread, keys: Sequence[Column]) -> Spread:
        """Send rows to the task of their keys, unless they are there; in the task to the thread of their keys."""
        symbols = tuple(key.symbol for key in keys)
        if not self.exchanges:
            return spread
        if spread.scheme == SINGLE or (spread.scheme == "HASH" and spread.keys and set(spread.keys) <= set(symbols)):
            return spread
        remote = remote_exchange(spread.step, spread.scheme, Partitioning("HASH", symbols))
        return Spread(local_exchange(remote, "HASH", symbols), "HASH", symbols)

    def everywhere(self, spread: Spread) -> Step:
        """Send all rows to every task."""
        if not self.exchanges:
            return spread.step
        return local_exchange(remote_exchange(spread.step, spread.scheme, Partitioning("BROADCAST")), SINGLE)

    @singledispatchmethod
    def spread(self, node: QueryNode) -> Spread:
        """Print a node and all below it."""
        raise AssertionError(node)

    # -- rows -----------------------------------------------------------------------------------------------------

    @spread.register
    def _(self, node: Scan) -> Spread:
        return Spread(self._scan("TableScan", node), SOURCE)

    def _scan(self, name: str, scan: Scan, outputs: Sequence[Column] | None = None, **more: str | tuple[str, ...]) -> Step:
        """Print a scan with what is computed while it reads."""
        read = tuple(f"{c.symbol} := {n}:{c.type}" for c, n in zip(scan.outputs, scan.names, strict=True))
        return Step(
            name,
            (("table", scan.table), *((key, str(value)) for key, value in more.items() if key != "details")),
            _layout(scan.outputs if outputs is None else outputs),
            (*more.get("details", ()), *read),
        )

    @spread.register
    def _(self, node: ValueRows) -> Spread:
        rows = node.first(SHOWN_ROWS) if node.outputs else ()
        places = [node.columns.index(column) for column in node.outputs]
        lines = [f"({', '.join(v if isinstance(v := row[at], str) else printed(v) for at in places)})" for row in rows]
        hidden = node.count - len(lines)
        if hidden and node.outputs:
            lines.append(f"... {hidden} more rows" if lines else f"{node.count} rows")
        return Spread(Step("Values", (), _layout(node.outputs), tuple(lines)), SINGLE)

    @spread.register
    def _(self, node: TableFunction) -> Spread:
        return Spread(Step("TableFunctionProcessor", (("name", node.name),), _layout(node.outputs)), SINGLE)

    @spread.register
    def _(self, node: UnnestedRows) -> Spread:
        below = self.spread(node.source)
        passed = [column for column in node.outputs if column not in node.made]
        beside = (("replicate", _typed(passed)),) if passed else ()
        empty = isinstance(node.source, ValueRows) and not passed
        kinds = {"INNER": "" if empty else "CrossJoin ", "LEFT": "LeftJoin ", "RIGHT": "RightJoin ", "FULL": "FullJoin "}
        return below.under(
            Step(f"{kinds[node.kind]}Unnest", (*beside, ("unnest", _typed(node.items))), _layout(node.outputs), (), (below.step,))
        )

    # -- filters and projections ----------------------------------------------------------------------------------

    @spread.register
    def _(self, node: Filtered) -> Spread:
        predicate = printed(node.predicate)
        if isinstance(node.source, Scan):
            return Spread(self._scan("ScanFilter", node.source, node.outputs, filterPredicate=predicate), SOURCE)
        below = self.spread(node.source)
        return below.under(Step("Filter", (("filterPredicate", predicate),), _layout(node.outputs), (), (below.step,)))

    @spread.register
    def _(self, node: Projected) -> Spread:
        source, made = node.source, _computed(node)
        if isinstance(source, Scan):
            return Spread(self._scan("ScanProject", source, node.outputs, details=made), SOURCE)
        if isinstance(source, Filtered):
            predicate = printed(source.predicate)
            if isinstance(source.source, Scan):
                scan = self._scan("ScanFilterProject", source.source, node.outputs, filterPredicate=predicate, details=made)
                return Spread(scan, SOURCE)
            below = self.spread(source.source)
            return below.under(
                Step("FilterProject", (("filterPredicate", predicate),), _layout(node.outputs), made, (below.step,))
            )
        below = self.spread(source)
        return below.under(Step("Project", (), _layout(node.outputs), made, (below.step,)))

    # -- groups and windows ---------------------------------------------------------------------------------------

    @spread.register
    def _(self, node: GroupId) -> Spread:
        below = self.spread(node.source)
        symbols = ", ".join(_names(columns) for columns in node.sets)
        details = tuple(f"{column.symbol} := {key.symbol}" for column, key in node.keys)
        return below.under(Step("GroupId", (("symbols", f"[{symbols}]"),), _layout(node.outputs), details, (below.step,)))

    @spread.register
    def _(self, node: Aggregation) -> Spread:
        below = self.spread(node.source)
        keys = (("keys", _names(node.keys)),) if node.keys else ()
        details = tuple(f"{column.symbol} := {_call(call)}" for column, call in node.calls)
        whole = any(call.distinct or call.order_by for _, call in node.calls)
        if not self.exchanges or whole or below.scheme == SINGLE:
            if self.exchanges:
                below = self.hashed(below, node.keys) if node.keys else single(below)
            return below.under(Step("Aggregate", keys, _layout(node.outputs), details, (below.step,)))
        partial = tuple((Column(column.type, f"{column.symbol}_partial"), call) for column, call in node.calls)
        layout = _layout((*node.keys, *(column for column, _ in partial)))
        lines = tuple(f"{column.symbol} := {_call(call)}" for column, call in partial)
        first = below.under(Step("Aggregate", (("type", "PARTIAL"), *keys), layout, lines, (below.step,)))
        first = self.hashed(first, node.keys) if node.keys else Spread(local_exchange(single(first).step, SINGLE), SINGLE)
        details = tuple(
            f"{column.symbol} := {call.name}({made.symbol})"
            for (column, call), (made, _) in zip(node.calls, partial, strict=True)
        )
        return first.under(Step("Aggregate", (("type", "FINAL"), *keys), _layout(node.outputs), details, (first.step,)))

    @spread.register
    def _(self, node: WindowRows) -> Spread:
        below = self.spread(node.source)
        below = self.hashed(below, node.partition_by) if node.partition_by else single(below, exchanges=self.exchanges)
        said = [("partitionBy", _names(node.partition_by))] if node.partition_by else []
        said += [("orderBy", printed_order(node.order_by))] if node.order_by else []
        details = tuple(f"{column.symbol} := {printed_window(call)}" for column, call in node.calls)
        return below.under(Step("Window", tuple(said), _layout(node.outputs), details, (below.step,)))

    # -- joins ----------------------------------------------------------------------------------------------------

    @spread.register
    def _(self, node: JoinedRows) -> Spread:
        left, right = self.spread(node.left), self.spread(node.right)
        criteria = " AND ".join(f"({a.symbol} = {b.symbol})" for a, b in node.criteria)
        said = [("criteria", criteria)] if node.criteria else []
        said += [("filter", printed(node.condition))] if node.condition is not None else []
        kind = node.kind if said or node.kind != "INNER" else "CROSS"
        details: tuple[str, ...] = ()
        if self.exchanges:
            replicated = self._is_replicated(node, kind)
            if replicated:
                sides = (left.step, self.everywhere(right))
                scheme, keys = left.scheme, left.keys
            else:
                spread = [self._partitioned(side, [pair[at] for pair in node.criteria]) for at, side in enumerate((left, right))]
                sides = (spread[0].step, spread[1].step)
                scheme, keys = spread[0].scheme, spread[0].keys
            distribution = "REPLICATED" if replicated else "PARTITIONED"
            details = (f"Distribution: {distribution}",)
            said += [("distribution", distribution)] if kind != "CROSS" else []
        else:
            sides, scheme, keys = (left.step, right.step), left.scheme, left.keys
        return Spread(Step(f"{kind.title()}Join", tuple(said), _layout(node.outputs), details, sides), scheme, keys)

    def _is_replicated(self, node: JoinedRows, kind: str) -> bool:
        """Return whether the right side goes to every task, as Trino does with a small one; rows of a RIGHT join would come more than once."""
        if kind in {"RIGHT", "FULL"}:
            return False
        rows = _most_rows(node.right)
        return not node.criteria or (rows is not None and rows <= self.small_rows)

    def _partitioned(self, side: Spread, keys: Sequence[Column]) -> Spread:
        if not keys:
            return single(side)
        symbols = tuple(key.symbol for key in keys)
        if side.scheme == "HASH" and side.keys == symbols:
            return side
        remote = remote_exchange(side.step, side.scheme, Partitioning("HASH", symbols))
        return Spread(remote, "HASH", symbols)

    @spread.register
    def _(self, node: SemiJoined) -> Spread:
        below, filtering = self.spread(node.source), self.spread(node.filtering)
        details = ("Distribution: REPLICATED",) if self.exchanges else ()
        said = (("criteria", f"{node.value.symbol} = {node.key.symbol}"),)
        sources = (below.step, self.everywhere(filtering))
        return below.under(Step("SemiJoin", said, _layout(node.outputs), details, sources))

    @spread.register
    def _(self, node: Correlated) -> Spread:
        below, query = self.spread(node.source), self.spread(node.query)
        said = (("correlation", _names(node.correlation)),)
        sources = (below.step, self.everywhere(query))
        return below.under(Step("CorrelatedJoin", said, _layout(node.outputs), (), sources))

    @spread.register
    def _(self, node: SingleRow) -> Spread:
        below = self.one(node.source)
        return below.under(Step("EnforceSingleRow", (), _layout(node.outputs), (), (below.step,)))

    # -- order and number -----------------------------------------------------------------------------------------

    @spread.register
    def _(self, node: Sorted) -> Spread:
        below, order, layout = self.spread(node.source), (("orderBy", printed_order(node.order_by)),), _layout(node.outputs)
        if not self.exchanges or below.scheme == SINGLE:
            return below.under(Step("Sort", order, layout, (), (below.step,)))
        spread = remote_exchange(below.step, below.scheme, Partitioning("ROUND_ROBIN"))
        merged = Step("LocalMerge", order, layout, (), (Step("PartialSort", order, layout, (), (spread,)),))
        remote = replace(remote_exchange(merged, "ROUND_ROBIN", Partitioning(SINGLE), "RemoteMerge"), descriptor=order)
        return Spread(remote, SINGLE)

    @spread.register
    def _(self, node: Cut) -> Spread:
        below, layout = self.spread(node.source), _layout(node.outputs)
        name = "Offset" if node.offset else "TopN" if node.order_by else "Limit"
        said = [("count", str(node.count))]
        said += [("orderBy", printed_order(node.order_by))] if node.order_by else []
        if self.exchanges and below.scheme != SINGLE:
            if not node.offset:
                below = below.under(Step(f"{name}Partial", tuple(said), layout, (), (below.step,)))
            below = single(below)
            below = below.under(local_exchange(below.step, SINGLE))
        return below.under(Step(name, tuple(said), layout, (), (below.step,)))

    # -- several queries ------------------------------------------------------------------------------------------

    @spread.register
    def _(self, node: SetOperation) -> Spread:
        name = {"UNION": "Union", "INTERSECT": "Intersect", "EXCEPT": "Except"}[node.name.split()[0]]
        said = (("", "ALL"),) if node.name.endswith("ALL") else ()
        parts = [self.spread(part) for part in node.parts]
        details = tuple(
            f"{column.symbol} := [{', '.join(columns[at].symbol for columns in node.inputs)}]"
            for at, column in enumerate(node.outputs)
        )
        steps = tuple(single(part, exchanges=self.exchanges).step for part in parts)
        return Spread(Step(name, said, _layout(node.outputs), details, steps), SINGLE)


def _most_rows(node: QueryNode) -> int | None:
    """Return an upper bound of a node's rows, where one is known."""
    if isinstance(node, Scan):
        return node.rows()
    if isinstance(node, ValueRows):
        return node.count
    if isinstance(node, Cut) and not node.offset:
        return node.count
    if isinstance(node, SingleRow) or (isinstance(node, Aggregation) and not node.keys):
        return 1
    if isinstance(node, JoinedRows | SetOperation | UnnestedRows | Correlated | TableFunction):
        return None
    return _most_rows(node.sources[0])
