"""Checks that the rows of an INSERT fit the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.sql.analyzer.expressions.conversion_notices import note_stored_zone
from rowmerge_nb.sql.analyzer.statements.misfits import Misfit
from rowmerge_nb.sql.parser.column_names import column_in_sql, column_list
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed.expressions import Column
from rowmerge_nb.sql.typed.type_rules import is_assignable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.sql.analyzer import analysis as a
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.scope import ScopeField
    from rowmerge_nb.sql.tree import statements as st


def check_inserted(
    context: Context,
    statement: st.Insert,
    target: a.TableBinding,
    columns: Sequence[ColumnMetadata],
    fields: Sequence[ScopeField],
) -> None:
    column_types = [column.type for column in columns]
    actual = [field.type for field in fields]
    if len(column_types) != len(actual) or not all(
        is_assignable(t, k) for k, t in zip(column_types, actual, strict=True)
    ):
        type_lists = [", ".join(map(str, types)) for types in (column_types, actual)]
        context.error(
            "TYPE_MISMATCH",
            f"Insert query has mismatched column types: Table: [{type_lists[0]}], Query:"
            f" [{type_lists[1]}]",
            context.statement_span(statement.query.tree.span),
            _insert_hint(
                columns,
                fields,
                target,
                _first_texts(context, statement.query.tree),
                star=_has_star(statement.query.tree),
            ),
        )
    for column, field in zip(columns, fields, strict=False):
        if field.table and field.name:
            types = (field.type, column.type)
            text, span = column_in_sql(field.name), statement.query.tree.span
            note_stored_zone(context, span, text, types, column.name)


def _insert_hint(
    columns: Sequence[ColumnMetadata],
    fields: Sequence[ScopeField],
    target: a.TableBinding,
    texts: Sequence[str],
    *,
    star: bool,
) -> str:
    actual = [field.type for field in fields]
    if len(actual) == 1 and actual[0].base == "row" and len(columns) > 1:
        return "Remove the parentheses around the values of SELECT: they form one row."
    if len(columns) == len(actual):
        index = next(
            index
            for index, column in enumerate(columns)
            if not is_assignable(column.type, actual[index])
        )
        column, field = columns[index], fields[index]
        text = texts[index] if len(texts) == len(columns) else column_in_sql(field.name or "")
        value = Column(field.type, field.symbol)
        text = text if texts or field.name else ""
        return Misfit(column.name, column.type, value, text, star).hint()
    names = column_list(column.name for column in columns[: len(actual)])
    if len(actual) < len(columns):
        return f"Name the columns that get values: INSERT INTO {target.display} ({names})."
    return f"There are {len(columns)} columns and {len(actual)} values; remove values."


def _has_star(query: s.Node) -> bool:
    body = query.body if isinstance(query, s.QueryNode) else query
    return isinstance(body, s.TableBody) or (
        isinstance(body, s.Select)
        and not all(isinstance(item, s.SelectItem) for item in body.items)
    )


def _first_texts(context: Context, query: s.Node) -> list[str]:
    if isinstance(query, s.QueryNode):
        query = query.body
    values: Sequence[s.Node] = ()
    if isinstance(query, s.Values) and len(query.rows) == 1:
        row = query.rows[0]
        values = row.items if isinstance(row, s.RowConstructor) else query.rows
    elif isinstance(query, s.Select):
        values = [item.value for item in query.items if isinstance(item, s.SelectItem)]
        if len(values) < len(query.items):
            return []
    return [value.span.of(context.text) for value in values]
