"""Source queries that DuckDB answers before Spark's job begins."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.plan.page_execution import without_refusal
from rowmerge_nb.plan.page_query import page_query
from rowmerge_nb.plan.plan_nodes import AnsweredQuery
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.spi.metadata import ColumnMetadata, TableStatistics
from rowmerge_nb.sql.analyzer.analysis import TableBinding
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.typed.queries import Coerced
from rowmerge_nb.sql.typed.readings import row_bound

if TYPE_CHECKING:
    import pyarrow as pa

    from rowmerge_nb.plan.page_query import PagedQuery
    from rowmerge_nb.plan.plan_nodes import Source


def answered_query(source: Source) -> AnsweredQuery:
    """Return the scan of an answer that is yet to be computed, or raise UnprintableError."""
    tree = source.tree
    # What refuses NULL is a matter of the tasks that write.
    if isinstance(tree, Coerced):
        tree = replace(
            tree,
            columns=tuple((column, without_refusal(value)[0]) for column, value in tree.columns),
        )
    paged = page_query(replace(source, tree=tree))
    types = {column.symbol: column.type for column in paged.columns}
    for symbol in source.outputs:
        if types[symbol.name].arrow != symbol.type.arrow:
            raise UnprintableError(f"{types[symbol.name]} as {symbol.type}")
    return answer_scan(source, paged)


def answer_scan(source: Source, paged: PagedQuery, rows: pa.Table | None = None) -> AnsweredQuery:
    """Return the scan of a query's answer.

    Its columns are ``c0``, ``c1``, ...; ``rows`` is None before it is computed.
    """
    columns = {
        column.symbol: ColumnHandle(f"c{index}", column.type)
        for index, column in enumerate(paged.columns)
    }
    table = TableBinding(
        display="the query",
        catalog="",
        name=("the query",),
        columns=tuple(ColumnMetadata(column.name, column.type) for column in columns.values()),
        view=f"answer_{source.id}",
        dataframe=rows,
        row_count=None if rows is None else rows.num_rows,
        statistics=lambda: TableStatistics(row_bound(source.tree)),
        is_read_by_tasks=lambda: True,
    )
    return AnsweredQuery(
        id=source.id,
        outputs=source.outputs,
        table=table,
        columns=tuple(columns[symbol.name] for symbol in source.outputs),
        query=source,
        paged=paged,
    )
