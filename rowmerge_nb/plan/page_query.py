"""Which queries are answered from the pages of their one table by DuckDB, without Spark, and the SQL for it.

The SQL is printed from the nodes that EXPLAIN shows of a query. Whatever is not known to mean the same in DuckDB is left to Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import quoted
from rowmerge_nb.plan.page_scan import page_scan, table_of_pages
from rowmerge_nb.plan.query.planner import QueryPlanner
from rowmerge_nb.plan.query.query_nodes import (
    Aggregation,
    Correlated,
    Cut,
    Filtered,
    GroupId,
    JoinedRows,
    Projected,
    QueryNode,
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
from rowmerge_nb.plan.query.rules import planned_query
from rowmerge_nb.sql.duckdb.aggregates import aggregate_text, check_carried, check_grouped, check_sorted, guarded_key
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import PagePrinter
from rowmerge_nb.sql.duckdb.ranks import ROW_NUMBER, checked_rank
from rowmerge_nb.sql.typed.domains import constraint_of
from rowmerge_nb.sql.typed.expressions import Column
from rowmerge_nb.sql.typed.queries import Coerced, Ordered, Selected
from rowmerge_nb.sql.typed.readings import is_drawn
from rowmerge_nb.sql.typed.type_rules import is_float

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from rowmerge_nb.plan.plan_nodes import Source, TableScan
    from rowmerge_nb.sql.analyzer.analysis import TableBinding
    from rowmerge_nb.sql.typed.expressions import Sort, Typed

PAGES: Final = "pages"
"""The name of the table that the SQL of a query reads."""
_SOME: Final = "$some"
_WORDS: Final[Mapping[type[QueryNode], str]] = {
    JoinedRows: "a join",
    SemiJoined: "a subquery",
    Correlated: "a correlated subquery",
    SingleRow: "a subquery",
    UnnestedRows: "UNNEST",
    TableFunction: "a table function",
    SetOperation: "a set operation",
    GroupId: "GROUPING SETS",
    ValueRows: "rows of VALUES",
}


@dataclass(frozen=True)
class PagedQuery:
    """A query as DuckDB computes it over the pages of a table.

    Args:
        scan: reads the columns of the table that the query needs, by the symbols that the SQL has for them.
        sql: the query over the table ``pages``; its columns are those of the query, in their order.
        columns: the columns of the query, in their order.
        lists: the long lists of constants that the SQL looks values up in, by the names of their tables.
        ends_early: the first pages may be enough: no group and no order needs all rows.
    """

    scan: TableScan
    sql: str
    columns: tuple[Column, ...] = ()
    lists: Mapping[str, pa.Array] = field(default_factory=dict)
    ends_early: bool = False


def page_query(source: Source) -> PagedQuery:
    """Return how pages answer a query.

    Raises:
        UnprintableError: they cannot be asked for it; the message names what stands against it.
    """
    table = table_of_pages(source)
    if not is_drawn(source.tree):
        raise UnprintableError("a query of this form")
    _check_form(source.tree)
    root, columns = planned_query(source.tree)
    nodes = list(_chain(root))
    scan = nodes[-1]
    assert isinstance(scan, Scan)
    printer = PagePrinter([column.symbol for node in nodes for column in node.outputs])
    texts = _Texts(printer)
    selected = ", ".join(f"{quoted(column.symbol)} AS c{index}" for index, column in enumerate(columns))
    sql = f"SELECT {selected} FROM ({texts.node(root)})"
    if printer.subqueries:
        raise UnprintableError("a subquery")
    whole = any(
        isinstance(node, Aggregation | WindowRows | Sorted) or (isinstance(node, Cut) and node.order_by) for node in nodes
    )
    cut = any(isinstance(node, Cut) and not node.offset for node in nodes)
    where = next((node.predicate for node in nodes if isinstance(node, Filtered) and node.source is scan), None)
    outputs = QueryPlanner(source.tree).plan(source.tree).outputs
    return PagedQuery(_scan(source, table, scan, where), sql, outputs, dict(printer.lists), cut and not whole)


def _check_form(query: object) -> None:
    """Raise an error for what the nodes of a query do not show.

    Raises:
        UnprintableError: the query has one group without an aggregate.
    """
    while isinstance(query, Selected | Ordered | Coerced):
        if isinstance(query, Selected) and query.having is not None and query.keys is None:
            raise UnprintableError("HAVING without GROUP BY")
        query = query.source


def _chain(node: QueryNode) -> Iterator[QueryNode]:
    """Yield the nodes from the root of a query to its scan.

    Raises:
        UnprintableError: a node has no form here.
    """
    while not isinstance(node, Scan):
        if not isinstance(node, Filtered | Projected | Aggregation | WindowRows | Sorted | Cut):
            raise UnprintableError(_WORDS[type(node)])
        yield node
        node = node.source
    yield node


def _scan(source: Source, table: TableBinding, scan: Scan, where: Typed | None) -> TableScan:
    pairs = list(zip(scan.outputs, scan.names, strict=True))
    constraint = None if where is None else constraint_of(where, {column.symbol: name for column, name in pairs})
    return page_scan(source, table, pairs, constraint)


class _Texts:
    """Prints the nodes of one query, each as a SELECT over the node below it."""

    def __init__(self, printer: PagePrinter) -> None:
        self.printer = printer

    def node(self, node: QueryNode) -> str:
        symbols = [column.symbol.lower() for column in node.outputs]
        if len(set(symbols)) < len(symbols):
            raise UnprintableError("columns whose names differ by the case of letters alone")
        for column in node.outputs:
            check_carried(column.type)
        if isinstance(node, Filtered):
            return f"{self._all_of(node)} WHERE {self.printer.text(node.predicate, condition=True)}"
        if isinstance(node, Projected):
            for _, value in node.assignments:
                check_carried(value.type)
            items = (f"{self._value(value)} AS {quoted(column.symbol)}" for column, value in node.assignments)
            return f"SELECT {', '.join(items) or f'true AS {quoted(_SOME)}'} FROM ({self.node(node.source)})"
        if isinstance(node, Aggregation):
            return self._aggregation(node)
        if isinstance(node, WindowRows):
            return self._windows(node)
        if isinstance(node, Sorted):
            return f"{self._all_of(node)} ORDER BY {self._order(node.order_by)}"
        if isinstance(node, Cut):
            order = f" ORDER BY {self._order(node.order_by)}" if node.order_by else ""
            return f"{self._all_of(node)}{order} {'OFFSET' if node.offset else 'LIMIT'} {node.count}"
        return f"SELECT * FROM {PAGES}"

    def _all_of(self, node: Filtered | Sorted | Cut) -> str:
        return f"SELECT * FROM ({self.node(node.source)})"

    def _value(self, value: Typed) -> str:
        return self.printer.text(value, condition=False)

    def _keyed(self, source: QueryNode, keys: Iterable[Column]) -> str:
        """Return the rows of a node; numbers among the keys by which they meet are such that the engines agree on which are equal."""
        guards = []
        for key in dict.fromkeys(keys):
            if is_float(key.type):
                guards.append(f"{guarded_key(key)} AS {quoted(key.symbol)}")
            else:
                check_grouped(key.type)
        text = self.node(source)
        return f"SELECT * REPLACE ({', '.join(guards)}) FROM ({text})" if guards else text

    def _aggregation(self, node: Aggregation) -> str:
        keys = [quoted(key.symbol) for key in node.keys]
        if not node.outputs:
            raise UnprintableError("a group without a column")
        calls = [f"{aggregate_text(call)} AS {quoted(column.symbol)}" for column, call in node.calls]
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join([*keys, *calls])} FROM ({self._keyed(node.source, node.keys)}){grouped}"

    def _windows(self, node: WindowRows) -> str:
        """Return rows with their numbers or ranks: all calls have one window."""
        names = [checked_rank(call) for _, call in node.calls]
        # Rows that are equal by the order share a rank.
        order = [key.value for key in node.order_by if isinstance(key.value, Column)] if set(names) - {ROW_NUMBER} else []
        parts = [f"PARTITION BY {', '.join(quoted(key.symbol) for key in node.partition_by)}"] if node.partition_by else []
        parts += [f"ORDER BY {self._order(node.order_by)}"] if node.order_by else []
        pairs = zip(node.calls, names, strict=True)
        calls = [f"{name}() OVER ({' '.join(parts)}) AS {quoted(column.symbol)}" for (column, _), name in pairs]
        return f"SELECT *, {', '.join(calls)} FROM ({self._keyed(node.source, (*node.partition_by, *order))})"

    def _order(self, keys: Sequence[Sort]) -> str:
        return ", ".join(map(self._key, keys))

    def _key(self, key: Sort) -> str:
        check_sorted(key.value.type)
        direction, nulls = "DESC" if key.descending else "ASC", "FIRST" if key.nulls_first else "LAST"
        return f"{self._value(key.value)} {direction} NULLS {nulls}"
