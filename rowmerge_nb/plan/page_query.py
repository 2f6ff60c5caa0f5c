"""Queries that DuckDB answers from the pages of one table, without Spark, and the SQL for them.

The SQL is printed from the query's nodes. Whatever may mean something else in DuckDB is left to
Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import quoted
from rowmerge_nb.plan import query_nodes as n
from rowmerge_nb.plan.page_scan import page_scan, table_of_pages
from rowmerge_nb.plan.plan_nodes import Filter, Join, PlanNode, Project, TableScan
from rowmerge_nb.plan.query_planner import (
    columns_of,
    filtered,
    plan_query_tree,
    pruned,
    with_sources,
)
from rowmerge_nb.sql.duckdb.aggregates import (
    aggregate_text,
    check_carried,
    check_grouped,
    check_sorted,
    guarded_key,
)
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.duckdb.ranks import ROW_NUMBER, checked_rank
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.domains import conjunction, conjuncts, constraint_of
from rowmerge_nb.sql.typed.expressions import Column, references
from rowmerge_nb.sql.typed.type_rules import is_float

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from rowmerge_nb.plan.plan_nodes import Source
    from rowmerge_nb.sql.typed.expressions import Sort, Typed

PAGES: Final = "pages"
"""The name of the table that the SQL of a query reads."""
_WORDS: Final[Mapping[type[PlanNode], str]] = {
    Join: "a join",
    n.ApplyNode: "a subquery",
    n.CorrelatedJoinNode: "a correlated subquery",
    n.UnnestNode: "UNNEST",
    n.TableFunctionProcessorNode: "a table function",
    n.SetOperationNode: "a set operation",
    n.GroupIdNode: "GROUPING SETS",
    n.ValuesNode: "rows of VALUES",
}


@dataclass(frozen=True)
class PagedQuery:
    """A query as DuckDB computes it over the pages of a table.

    Args:
        scan: its scan, which reads only the columns that the SQL uses.
        lists: long lists of constants, by the names of their tables in the SQL.
        ends_early: the first pages may be enough.
    """

    root: PlanNode
    scan: TableScan
    sql: str
    columns: tuple[Column, ...] = ()
    lists: Mapping[str, pa.Array] = field(default_factory=dict)
    ends_early: bool = False


def page_query(source: Source) -> PagedQuery:
    """Return how pages answer a query; UnprintableError with the reason if they cannot."""
    table = table_of_pages(source)
    plan = plan_query_tree(source)
    root = pruned(_pushed(plan.root, []), {column.symbol for column in plan.columns})
    nodes = list(_chain(root))
    scan = nodes[-1]
    assert isinstance(scan, TableScan)
    names = {
        symbol.name: column.name for symbol, column in zip(scan.outputs, scan.columns, strict=True)
    }
    where = next(
        (node.predicate for node in nodes if isinstance(node, Filter) and node.source is scan), None
    )
    pairs = [(column, names[column.symbol]) for column in columns_of(scan)]
    pages = page_scan(source, table, pairs, None if where is None else constraint_of(where, names))
    printer = PagePrinter([symbol.name for node in nodes for symbol in node.outputs])
    selected = ", ".join(
        f"{quoted(column.symbol)} AS c{index}" for index, column in enumerate(plan.columns)
    )
    sql = f"SELECT {selected} FROM ({_Texts(printer).node(root)})"
    if printer.subqueries:
        raise UnprintableError("a subquery")
    whole = any(
        isinstance(node, n.AggregateNode | n.WindowNode | n.SortNode | n.TopNNode) for node in nodes
    )
    ends_early = not whole and any(
        isinstance(node, n.LimitNode) and not isinstance(node, n.OffsetNode) for node in nodes
    )
    root = _over(root, replace(scan, constraint=pages.constraint))
    return PagedQuery(root, pages, sql, q.columns_of(source.tree), dict(printer.lists), ends_early)


def _over(node: PlanNode, scan: TableScan) -> PlanNode:
    return with_sources(node, [_over(node.sources[0], scan)]) if node.sources else scan


def _pushed(node: PlanNode, conditions: list[Typed]) -> PlanNode:
    """Move conditions below groups, numbers, sorts and projections; DuckDB's own optimizer is off.

    The conditions that reach the scan become its constraint.
    """
    if isinstance(node, Filter):
        return _pushed(node.source, [*conjuncts(node.predicate), *conditions])
    unchanged = _unchanged(node)
    below = [
        condition
        for condition in conditions
        if references(condition) and references(condition) <= unchanged
    ]
    rest = [condition for condition in conditions if condition not in below]
    if node.sources:
        node = with_sources(node, [_pushed(node.sources[0], below), *node.sources[1:]])
    return filtered(f"{node.id}f", node, conjunction(rest)) if rest else node


def _unchanged(node: PlanNode) -> frozenset[str]:
    if isinstance(node, Project):
        return frozenset(symbol.name for symbol in node.outputs) - {
            assignment.symbol.name for assignment in node.assignments
        }
    if isinstance(node, n.SortNode):
        return frozenset(symbol.name for symbol in node.outputs)
    keys = (
        node.keys
        if isinstance(node, n.AggregateNode)
        else node.partition_by
        if isinstance(node, n.WindowNode)
        else ()
    )
    return frozenset(key.symbol for key in keys)


def _chain(node: PlanNode) -> Iterator[PlanNode]:
    while not isinstance(node, TableScan):
        if type(node) in _WORDS:
            raise UnprintableError(_WORDS[type(node)])
        yield node
        node = node.sources[0]
    yield node


class _Texts:
    def __init__(self, printer: PagePrinter) -> None:
        self.printer = printer

    def node(self, node: PlanNode) -> str:
        symbols = [symbol.name.lower() for symbol in node.outputs]
        if len(set(symbols)) < len(symbols):
            raise UnprintableError("columns whose names differ by the case of letters alone")
        for symbol in node.outputs:
            check_carried(symbol.type)
        match node:
            case Filter():
                return (
                    f"{self._all_of(node.source)} WHERE"
                    f" {self.printer.text(node.predicate, condition=True)}"
                )
            case Project():
                return self._projection(node)
            case n.AggregateNode():
                return self._aggregation(node)
            case n.WindowNode():
                return self._windows(node)
            case n.SortNode():
                return f"{self._all_of(node.source)} ORDER BY {self._order(node.order_by)}"
            case n.TopNNode():
                return (
                    f"{self._all_of(node.source)} ORDER BY {self._order(node.order_by)} LIMIT"
                    f" {node.count}"
                )
            case n.OffsetNode():
                return f"{self._all_of(node.source)} OFFSET {node.count}"
            case n.LimitNode():
                return f"{self._all_of(node.source)} LIMIT {node.count}"
        return f"SELECT * FROM {PAGES}"

    def _all_of(self, node: PlanNode) -> str:
        return f"SELECT * FROM ({self.node(node)})"

    def _projection(self, node: Project) -> str:
        values = {
            assignment.symbol.name: self._value(assignment.value) for assignment in node.assignments
        }
        names = ((symbol.name, quoted(symbol.name)) for symbol in node.outputs)
        items = (
            f"{values[name]} AS {column}" if name in values else column for name, column in names
        )
        return f"SELECT {', '.join(items)} FROM ({self.node(node.source)})"

    def _value(self, value: Typed) -> str:
        return self.printer.text(value, condition=False)

    def _keyed(self, source: PlanNode, keys: Iterable[Column]) -> str:
        """Return rows whose floating-point keys fail if the engines may disagree on equality."""
        guards = []
        for key in dict.fromkeys(keys):
            if is_float(key.type):
                guards.append(f"{guarded_key(key)} AS {quoted(key.symbol)}")
            else:
                check_grouped(key.type)
        text = self.node(source)
        return f"SELECT * REPLACE ({', '.join(guards)}) FROM ({text})" if guards else text

    def _aggregation(self, node: n.AggregateNode) -> str:
        keys = [quoted(key.symbol) for key in node.keys]
        if not node.outputs:
            raise UnprintableError("a group without a column")
        calls = [
            f"{aggregate_text(call)} AS {quoted(column.symbol)}" for column, call in node.calls
        ]
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        return (
            f"SELECT {', '.join([*keys, *calls])} FROM"
            f" ({self._keyed(node.source, node.keys)}){grouped}"
        )

    def _windows(self, node: n.WindowNode) -> str:
        names = [checked_rank(call) for _, call in node.calls]
        # Rows that are equal by the order share a rank.
        order = (
            [key.value for key in node.order_by if isinstance(key.value, Column)]
            if set(names) - {ROW_NUMBER}
            else []
        )
        parts = (
            [f"PARTITION BY {', '.join(quoted(key.symbol) for key in node.partition_by)}"]
            if node.partition_by
            else []
        )
        parts += [f"ORDER BY {self._order(node.order_by)}"] if node.order_by else []
        pairs = zip(node.calls, names, strict=True)
        calls = [
            f"{name}() OVER ({' '.join(parts)}) AS {quoted(column.symbol)}"
            for (column, _), name in pairs
        ]
        return (
            f"SELECT *, {', '.join(calls)} FROM"
            f" ({self._keyed(node.source, (*node.partition_by, *order))})"
        )

    def _order(self, keys: Sequence[Sort]) -> str:
        return ", ".join(map(self._key, keys))

    def _key(self, key: Sort) -> str:
        check_sorted(key.value.type)
        direction, nulls = (
            "DESC" if key.descending else "ASC",
            ("FIRST" if key.nulls_first else "LAST"),
        )
        text = self._value(key.value)
        ordered = f"{text} {direction} NULLS {nulls}"
        if key.nulls_first and is_float(key.value.type):
            # NaN is the smallest number then; for DuckDB it is always the largest.
            return f"{text} IS NULL DESC, isnan({text}) {'ASC' if key.descending else 'DESC'}, {ordered}"
        return ordered
