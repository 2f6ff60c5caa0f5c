"""Checks that the rows of an INSERT fit the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.sql.analyzer.column_names import column_in_sql, column_list
from rowmerge_nb.sql.typed.type_rules import is_assignable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.types import Type
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
            _insert_hint(columns, actual, target),
        )


def _insert_hint(
    columns: Sequence[ColumnMetadata], actual: Sequence[Type], target: a.TableBinding
) -> str:
    if len(actual) == 1 and actual[0].base == "row" and len(columns) > 1:
        return "Remove the parentheses around the values of SELECT: they form one row."
    if len(columns) == len(actual):
        column, value = next(
            (column, value)
            for column, value in zip(columns, actual, strict=True)
            if not is_assignable(column.type, value)
        )
        return (
            f"Column {column_in_sql(column.name)} has the type {column.type}, and its value {value}: write"
            f" CAST(... AS {column.type})."
        )
    names = column_list(column.name for column in columns[: len(actual)])
    if len(actual) < len(columns):
        return f"Name the columns that get values: INSERT INTO {target.display} ({names})."
    return f"There are {len(columns)} columns and {len(actual)} values; remove values."
