"""Queries that tasks compute on pages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.next_steps import Refusal
from rowmerge_nb.plan.page_execution import without_refusal
from rowmerge_nb.plan.page_scan import page_scan, table_of_pages
from rowmerge_nb.plan.plan_nodes import (
    AnsweredQuery,
    CheckConstraints,
    PageRows,
    Project,
    Source,
    Symbol,
)
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import PagePrinter, is_null
from rowmerge_nb.sql.typed.expressions import (
    Aggregate,
    Apply,
    Column,
    Constant,
    Typed,
    Windowed,
    references,
    replaced,
    walk,
)
from rowmerge_nb.sql.typed.queries import Coerced, Scanned, Selected

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.plan.plan_nodes import PlanNode
    from rowmerge_nb.sql.typed.queries import Query


def reads_table(source: Source) -> bool:
    return any(table.view in source.reads.views and table.rows is None for table in source.tables)


def page_rows(nodes: Sequence[PlanNode]) -> PageRows:
    """Return the rows of an INSERT, from the nodes below the writer; UnprintableError if only Spark
    can.
    """
    source = nodes[-1]
    assert isinstance(source, Source | AnsweredQuery)
    if any(isinstance(node, Project) for node in nodes):
        raise UnprintableError("RETURNING")
    for check in (
        check for node in nodes if isinstance(node, CheckConstraints) for check in node.checks
    ):
        _check_printable(without_refusal(check.value)[0], condition=False)
    if isinstance(source, AnsweredQuery):
        values = tuple(Column(symbol.type, symbol.name) for symbol in source.outputs)
        return PageRows(source, None, values, _refusals(source.query))
    return page_source(source)


def page_source(source: Source) -> PageRows:
    """Return the rows of a query; UnprintableError if only Spark can."""
    table = table_of_pages(source)
    rows = _rows_of(source.tree)
    values = tuple(_value(rows, symbol) for symbol in source.outputs)
    columns = [pair for pair in rows.table.columns if pair[0].symbol in _read_by(rows, values)]
    scan = page_scan(source, table, columns or rows.table.columns[:1])
    return PageRows(scan, rows.where, values, _refusals(source))


@dataclass(frozen=True)
class _Rows:
    table: Scanned
    values: Mapping[str, Typed]
    where: Typed | None = None


def _rows_of(query: Query | None) -> _Rows:
    if isinstance(query, Scanned):
        return _Rows(query, {column.symbol: column for column, _ in query.columns})
    if isinstance(query, Coerced):
        rows = _rows_of(query.source)
        return replace(
            rows, values={column.symbol: _over(rows, value) for column, value in query.columns}
        )
    if isinstance(query, Selected) and _is_plain(query):
        rows = _rows_of(query.source)
        if query.where is not None and rows.where is not None:
            raise UnprintableError("two conditions, one on the rows of the other")
        where = rows.where if query.where is None else _over(rows, query.where, condition=True)
        return replace(
            rows,
            values={column.symbol: _over(rows, value) for column, value in query.outputs},
            where=where,
        )
    raise UnprintableError("more than conditions and values of one table")


def _is_plain(query: Selected) -> bool:
    grouped = (
        query.keys is not None
        or query.sets is not None
        or query.having is not None
        or query.distinct
    )
    cut = query.order_by or query.limit is not None or query.offset
    return (
        not grouped and not cut and not any(_is_of_many_rows(value) for _, value in query.outputs)
    )


def _is_of_many_rows(value: Typed) -> bool:
    return any(isinstance(part, Aggregate | Windowed) for part in walk(value))


def _over(rows: _Rows, value: Typed, *, condition: bool = False) -> Typed:
    """Return an expression over a query's columns as one over the table's."""
    tree, _ = without_refusal(value)
    if isinstance(tree, Column) and tree.symbol in rows.values:
        # The value keeps the place where it was written.
        return rows.values[tree.symbol]
    columns = [part for part in walk(tree) if isinstance(part, Column)]
    if not all(column.symbol in rows.values for column in columns):
        raise UnprintableError("a column of another query")
    values = [rows.values[column.symbol] for column in columns]
    origin = tree.origin
    if _is_converted_column(tree):
        # What is stored is the value as it was written, in the type of a column.
        origin = values[0].origin or origin
    elif not all(isinstance(value, Column | Constant) for value in values):
        raise UnprintableError("a value of a value")
    result = replace(replaced(tree, list(zip(columns, values, strict=True))), origin=origin)
    _check_printable(result, condition=condition)
    return result


def _is_converted_column(tree: Typed) -> bool:
    while isinstance(tree, Apply) and len(tree.arguments) == 1:
        tree = tree.arguments[0]
    return isinstance(tree, Column)


def _check_printable(tree: Typed, *, condition: bool) -> None:
    printer = PagePrinter()
    printer.text(tree, condition=condition)
    if printer.subqueries:
        raise UnprintableError("a subquery")


def _value(rows: _Rows, symbol: Symbol) -> Typed:
    value = rows.values[symbol.name]
    if value.type.arrow != symbol.type.arrow and not is_null(value):
        raise UnprintableError(f"{value.type} as {symbol.type}")
    return value


def _refusals(source: Source) -> tuple[Refusal | None, ...]:
    values = source.tree.columns if isinstance(source.tree, Coerced) else ()
    refusals = {column.symbol: without_refusal(value)[1] for column, value in values}
    return tuple(refusals.get(symbol.name) for symbol in source.outputs)


def _read_by(rows: _Rows, values: Sequence[Typed]) -> frozenset[str]:
    trees = (*values, rows.where) if rows.where is not None else values
    return frozenset(symbol for tree in trees for symbol in references(tree))
