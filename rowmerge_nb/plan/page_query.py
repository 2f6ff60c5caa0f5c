"""Queries that DuckDB answers from pages of tables, without Spark, and the SQL for them.

The SQL is printed from the query's nodes. Whatever may mean something else in DuckDB is left to
Spark.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import quoted
from rowmerge_nb.plan import query_nodes as n
from rowmerge_nb.plan.page_decorrelation import decorrelated
from rowmerge_nb.plan.page_joins import check_failures, join_condition, joined
from rowmerge_nb.plan.page_pushdown import pushed
from rowmerge_nb.plan.page_scan import check_pages, page_scan
from rowmerge_nb.plan.plan_nodes import Filter, Join, PlanNode, Project, TableScan
from rowmerge_nb.plan.query_planner import columns_of, plan_query_tree, pruned, with_sources
from rowmerge_nb.spi.types import BOOLEAN
from rowmerge_nb.sql.duckdb.aggregates import (
    aggregate_text,
    check_carried,
    check_grouped,
    check_sorted,
    guarded_key,
)
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError, failure, text_literal
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.duckdb.ranks import ROW_NUMBER, checked_rank
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.domains import constraint_of
from rowmerge_nb.sql.typed.expressions import Apply, Column
from rowmerge_nb.sql.typed.type_rules import is_float
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from rowmerge_nb.plan.plan_nodes import Source
    from rowmerge_nb.spi.page_source import Constraint
    from rowmerge_nb.sql.typed.expressions import Sort, Typed

MOST_SCANS: Final = 32
"""Scans of tables in a query; each has a reading thread and pages in memory."""
_WHOLE: Final = (
    n.AggregateNode,
    n.WindowNode,
    n.SortNode,
    n.TopNNode,
    n.ApplyNode,
    n.EnforceSingleRowNode,
    Join,
)
"""Nodes that read all rows of a table before their first row comes out."""
_WORDS: Final[Mapping[type[PlanNode], str]] = {
    n.CorrelatedJoinNode: "a correlated subquery",
    n.UnnestNode: "UNNEST",
    n.TableFunctionProcessorNode: "a table function",
    n.GroupIdNode: "GROUPING SETS",
    n.ValuesNode: "rows of VALUES",
    n.RecursionStepNode: "WITH RECURSIVE",
}


@dataclass(frozen=True)
class PagedQuery:
    """A query as DuckDB computes it over the pages of its tables.

    Args:
        scans: its scans, which read only the columns that the SQL uses, by the names of their
            tables in the SQL.
        lists: long lists of constants, by the names of their tables in the SQL.
        ends_early: the first pages may be enough.
    """

    root: PlanNode
    scans: Mapping[str, TableScan]
    sql: str
    columns: tuple[Column, ...] = ()
    lists: Mapping[str, pa.Array] = field(default_factory=dict)
    ends_early: bool = False


def page_query(source: Source) -> PagedQuery:
    """Return how pages answer a query; UnprintableError with the reason if they cannot."""
    if not any(table.view in source.reads.views for table in source.tables):
        raise UnprintableError("a query that reads no table")
    plan = plan_query_tree(source)
    root = pruned(
        joined(pushed(decorrelated(plan.root))), {column.symbol for column in plan.columns}
    )
    check_failures(root)
    nodes = list(_below(root))
    count = sum(isinstance(node, TableScan) for node in nodes)
    if count > MOST_SCANS:
        raise UnprintableError(f"a query with {count} scans of tables")
    scans = {scan.id: _scan(source, scan, where) for scan, where in _scans(root)}
    root = _over(root, {key: scan.constraint for key, scan in scans.items()})
    texts = _Texts(PagePrinter([symbol.name for node in nodes for symbol in node.outputs]), scans)
    selected = ", ".join(
        f"{quoted(column.symbol)} AS c{index}" for index, column in enumerate(plan.columns)
    )
    sql = f"SELECT {selected} FROM ({texts.node(root)})"
    if texts.printer.subqueries:
        raise UnprintableError("a subquery")
    whole = any(map(_reads_all, nodes))
    ends_early = not whole and any(
        isinstance(node, n.LimitNode) and not isinstance(node, n.OffsetNode) for node in nodes
    )
    return PagedQuery(
        root,
        {texts.tables[key]: scan for key, scan in scans.items()},
        sql,
        q.columns_of(source.tree),
        dict(texts.printer.lists),
        ends_early,
    )


def _below(node: PlanNode) -> Iterator[PlanNode]:
    if type(node) in _WORDS:
        raise UnprintableError(_WORDS[type(node)])
    yield node
    for source in node.sources:
        yield from _below(source)


def _reads_all(node: PlanNode) -> bool:
    return isinstance(node, _WHOLE) or (
        isinstance(node, n.SetOperationNode) and node.operator != "UNION"
    )


def _scans(node: PlanNode, where: Typed | None = None) -> Iterator[tuple[TableScan, Typed | None]]:
    if isinstance(node, TableScan):
        yield node, where
    for source in node.sources:
        yield from _scans(source, node.predicate if isinstance(node, Filter) else None)


def _scan(source: Source, scan: TableScan, where: Typed | None) -> TableScan:
    check_pages(scan.table)
    names = {
        symbol.name: column.name for symbol, column in zip(scan.outputs, scan.columns, strict=True)
    }
    pairs = [(column, names[column.symbol]) for column in columns_of(scan)]
    constraint = None if where is None else constraint_of(where, names)
    return page_scan(source, scan.table, pairs, constraint)


def _over(node: PlanNode, constraints: Mapping[str, Constraint]) -> PlanNode:
    if isinstance(node, TableScan):
        return replace(node, constraint=constraints[node.id])
    return with_sources(node, [_over(source, constraints) for source in node.sources])


class _Texts:
    def __init__(self, printer: PagePrinter, scans: Iterable[str]) -> None:
        self.printer = printer
        self.tables = {scan: f"pages{index}" for index, scan in enumerate(scans)}

    def node(self, node: PlanNode) -> str:
        symbols = [symbol.name.lower() for symbol in node.outputs]
        if len(set(symbols)) < len(symbols):
            raise UnprintableError("columns whose names differ only in case")
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
            case Join():
                return self._join(node)
            case n.ApplyNode():
                return self._subquery(node)
            case n.EnforceSingleRowNode():
                return self._single_row(node)
            case n.SetOperationNode():
                return self._set_operation(node)
        return f"SELECT * FROM {self.tables[node.id]}"

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

    def _set_operation(self, node: n.SetOperationNode) -> str:
        """Return a set operation; rows that a UNION repeats are grouped above it."""
        is_union = node.operator == "UNION"
        parts = []
        for part, columns in zip(node.parts, node.inputs, strict=True):
            pairs = zip(columns, node.outputs, strict=True)
            items = (f"{quoted(column.symbol)} AS {quoted(out.name)}" for column, out in pairs)
            rows = self.node(part) if is_union else self._keyed(part, columns)
            parts.append(f"(SELECT {', '.join(items)} FROM ({rows}))")
        word = f"{node.operator} ALL" if is_union or node.is_all else node.operator
        return f"SELECT * FROM ({f' {word} '.join(parts)})"

    def _subquery(self, node: n.ApplyNode) -> str:
        if node.correlation:
            raise UnprintableError("a correlated subquery")
        text = f"EXISTS ({self._all_of(node.query)})"
        if node.value is not None and node.key is not None:
            # Trino's semi join finds NaN among values with NaN.
            if is_float(node.value.type):
                raise UnprintableError("IN a query of floating point numbers")
            self._value(Apply(BOOLEAN, "=", (node.value, node.key)))
            keys = f"SELECT {quoted(node.key.symbol)} FROM ({self.node(node.query)})"
            text = f"{quoted(node.value.symbol)} IN ({keys})"
        return f"SELECT *, {text} AS {quoted(node.column.symbol)} FROM ({self.node(node.source)})"

    def _single_row(self, node: n.EnforceSingleRowNode) -> str:
        keys = [quoted(key.symbol) for key in node.keys]
        values = [name for symbol in node.outputs if (name := quoted(symbol.name)) not in keys]
        if not (keys or values):
            raise UnprintableError("a subquery whose value is not read")
        # A row without a key has no row around it.
        several = " AND ".join(["count(*) > 1", *(f"{key} IS NOT NULL" for key in keys)])
        error = failure("SUBQUERY_MULTIPLE_ROWS", text_literal("several rows"))
        items = dict(zip(keys, keys, strict=True)) | {name: f"first({name})" for name in values}
        name, item = next(iter(items.items()))
        items[name] = f"CASE WHEN {several} THEN {error} ELSE {item} END"
        selected = ", ".join(f"{item} AS {name}" for name, item in items.items())
        return f"SELECT {selected} FROM ({self._keyed(node.source, node.keys)}){_group_by(keys)}"

    def _join(self, node: Join) -> str:
        items = [quoted(symbol.name) for symbol in node.outputs] or ["NULL"]
        one, other = (f"({self.node(side)})" for side in node.sources)
        text = f"SELECT {', '.join(items)} FROM {one} {node.type.name} JOIN {other}"
        if node.type is JoinType.CROSS:
            return text
        if not node.equalities:
            return f"{text} ON {self.printer.text(node.predicate, condition=True)}"
        condition = join_condition(node)
        terms = [*itertools.starmap(self._equal_keys, condition.keys)]
        return f"{text} ON {' AND '.join([*terms, *map(self._value, condition.rest)])}"

    def _equal_keys(self, key: Typed, other: Typed) -> str:
        """Return an equality of keys as DuckDB hashes them; NaN equals nothing."""
        text = self._value(Apply(BOOLEAN, "=", (key, other)))
        if not is_float(key.type):
            return text
        value = self._value(key)
        return f"(CASE WHEN NOT isnan({value}) THEN {value} END = {self._value(other)})"

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
        return (
            f"SELECT {', '.join([*keys, *calls])} FROM"
            f" ({self._keyed(node.source, node.keys)}){_group_by(keys)}"
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
        direction = "DESC" if key.descending else "ASC"
        nulls = "FIRST" if key.nulls_first else "LAST"
        text = self._value(key.value)
        ordered = f"{text} {direction} NULLS {nulls}"
        if key.nulls_first and is_float(key.value.type):
            # NaN is the smallest number then; for DuckDB it is always the largest.
            return f"{text} IS NULL DESC, isnan({text}) {'ASC' if key.descending else 'DESC'}, {ordered}"
        return ordered


def _group_by(keys: Sequence[str]) -> str:
    return f" GROUP BY {', '.join(keys)}" if keys else ""
