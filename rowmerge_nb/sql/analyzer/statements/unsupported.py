"""ANALYZE and renaming of schemas, which no store supports; as in Trino, missing names come first."""

# Context.error never returns.

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from rowmerge_nb.sql.analyzer.statements.definitions import (
    completed_schema,
    is_known_schema,
    known_schema,
)
from rowmerge_nb.sql.tree import statements as st

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.context import Context


def analyze_table(context: Context, statement: st.Statement) -> NoReturn:
    assert isinstance(statement, st.AnalyzeTable)
    span = context.statement_span(statement.name.span)
    context.refuse_view(statement.name, "Analyzing views is not supported")
    target = context.target(statement.name, span)
    for name, name_span in statement.property_spans.items():
        context.error(
            "INVALID_ANALYZE_PROPERTY",
            f"Catalog '{target.catalog}' analyze property '{name}' does not exist",
            name_span,
            "Remove it.",
        )
    context.refuse("This connector does not support analyze", span, "Omit the statement.")


def rename_schema(context: Context, statement: st.Statement) -> NoReturn:
    assert isinstance(statement, st.RenameSchema)
    span = context.statement_span(statement.name.span)
    catalog, schema = completed_schema(context, statement.name)
    known_schema(context, catalog, schema, span)
    aimed = context.statement_span(statement.to.span)
    if is_known_schema(context, catalog, statement.to.value):
        context.error(
            "SCHEMA_ALREADY_EXISTS",
            f"Target schema '{catalog}.{statement.to.value}' already exists",
            aimed,
            "Choose another name.",
        )
    context.refuse(
        "This connector does not support renaming schemas",
        aimed,
        "Write CREATE SCHEMA with the new name, and ALTER TABLE ... RENAME TO for each of its"
        " tables.",
    )
