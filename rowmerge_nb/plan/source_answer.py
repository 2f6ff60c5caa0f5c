"""Source queries that DuckDB answers before Spark's job begins, and their rows as those of a table."""

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
from rowmerge_nb.sql.typed.row_bounds import most_rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from rowmerge_nb.plan.plan_nodes import Source


def answered_query(source: Source, rows: pa.Table | None = None) -> AnsweredQuery:
    """Return a query as the scan of its answer.

    Args:
        source: the query.
        rows: the answer, whose columns are called ``c0``, ``c1``, ...; None before the query is answered.

    Raises:
        UnprintableError: DuckDB cannot be asked for the query.
    """
    tree = source.tree
    # What refuses NULL is a matter of the tasks that write.
    if isinstance(tree, Coerced):
        tree = replace(tree, columns=tuple((column, without_refusal(value)[0]) for column, value in tree.columns))
    paged = page_query(replace(source, tree=tree))
    columns = {column.symbol: ColumnHandle(f"c{index}", column.type) for index, column in enumerate(paged.columns)}
    for symbol in source.outputs:
        if columns[symbol.name].type.arrow != symbol.type.arrow:
            raise UnprintableError(f"{columns[symbol.name].type} as {symbol.type}")
    table = TableBinding(
        display="the query",
        catalog="",
        name=("the query",),
        columns=tuple(ColumnMetadata(column.name, column.type) for column in columns.values()),
        view=f"answer_{source.id}",
        dataframe=rows,
        row_count=None if rows is None else rows.num_rows,
        statistics=lambda: TableStatistics(most_rows_of(tree)),
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
