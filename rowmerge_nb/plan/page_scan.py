"""The scan of the one table whose pages a query reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.words import plural
from rowmerge_nb.plan.plan_nodes import Symbol, TableScan
from rowmerge_nb.spi.page_source import Constraint
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowmerge_nb.plan.plan_nodes import Source
    from rowmerge_nb.sql.analyzer.analysis import TableBinding
    from rowmerge_nb.sql.typed.expressions import Column


def table_of_pages(source: Source) -> TableBinding:
    """Return the one table that a query reads; otherwise raise UnprintableError."""
    views = list(source.reads.views)
    tables = [table for table in source.tables if table.view in views]
    if len(tables) != 1 or len(views) != 1:
        raise UnprintableError(
            "a query that reads no table"
            if not tables
            else f"a query with {plural(len(views), 'scan')} of tables"
        )
    [table] = tables
    check_pages(table)
    return table


def check_pages(table: TableBinding) -> None:
    if table.rows is not None:
        raise UnprintableError("rows of VALUES")
    if table.dataframe is not None and not table.has_rows_at_hand:
        raise UnprintableError(f"'{table.display}', a DataFrame of Spark")


def page_scan(
    source: Source,
    table: TableBinding,
    columns: Iterable[tuple[Column, str]],
    constraint: Constraint | None = None,
) -> TableScan:
    """Return the scan of a query's table, or raise UnprintableError for a column without SQL
    type.
    """
    handles = {column.name: column for column in table.readable}
    pairs = list(columns)
    refused_columns = [name for _, name in pairs if name in table.refused_columns]
    if refused_columns:
        raise UnprintableError(f"column '{refused_columns[0]}', whose values have no SQL type")
    return TableScan(
        id=source.id,
        outputs=tuple(Symbol(column.symbol, column.type) for column, _ in pairs)
        or (Symbol("$some", table.readable[0].type),),
        table=table,
        columns=tuple(handles[name] for _, name in pairs) or table.readable[:1],
        constraint=constraint or Constraint(),
    )
