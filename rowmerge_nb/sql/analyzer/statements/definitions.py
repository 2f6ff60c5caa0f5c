"""Analyzes statements on views and schemas, TRUNCATE, and SHOW."""

# Context.error never returns.

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rowmerge_nb.base.names import quoted_text
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorViewDefinition
from rowmerge_nb.spi.types import BOOLEAN, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.context import dotted
from rowmerge_nb.sql.analyzer.queries.query import QueryAnalyzer
from rowmerge_nb.sql.analyzer.statements.updatable_views import check_option_of
from rowmerge_nb.sql.constants import property_text
from rowmerge_nb.sql.functions.signatures import listed_functions
from rowmerge_nb.sql.missing_catalog import unknown_catalog
from rowmerge_nb.sql.parser.column_names import column_in_sql, name_in_sql
from rowmerge_nb.sql.parser.statement_reader import parse_query
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree.formatted_queries import formatted_query
from rowmerge_nb.sql.typed.type_rules import parts_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.queries.relation import QueryResult


def query_columns(
    context: Context, aliases: Sequence[st.Identifier], result: QueryResult
) -> tuple[ColumnMetadata, ...]:
    span = context.statement_span()
    if aliases and len(aliases) != len(result.fields):
        context.error(
            "MISMATCHED_COLUMN_ALIASES",
            f"Column alias list has {len(aliases)} entries but relation has {len(result.fields)}"
            " columns",
            aliases[0].span,
        )
    names: set[str] = set()
    columns = []
    for number, field in enumerate(result.fields):
        name = aliases[number].text if aliases else field.name
        if name is None:
            context.error(
                "MISSING_COLUMN_NAME",
                f"Column name not specified at position {number + 1}",
                span,
                "Write AS and a name.",
            )
        if name.lower() in names:
            name_span = aliases[number].span if aliases else span
            context.error(
                "DUPLICATE_COLUMN_NAME",
                f"Column name '{name.lower()}' specified more than once",
                name_span,
            )
        if UNKNOWN in parts_of(field.type):
            context.error(
                "COLUMN_TYPE_UNKNOWN",
                f"Column type is unknown{f' at position {number + 1}' if aliases else f': {name}'}",
                span,
                "Write CAST(NULL AS type).",
            )
        names.add(name.lower())
        columns.append(ColumnMetadata(name, field.type))
    return tuple(columns)


# -- views


def create_view(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.CreateView)
    functions = statement.query.tree.functions
    if functions:
        context.refuse(
            "Views cannot contain inline functions",
            functions[0].span,
            "Write what they compute into the view's query.",
        )
    span = context.statement_span(statement.name.span)
    name = context.place(statement.name, span)
    qualified = name_in_sql(name)
    table = context.lookup(statement.name)
    if table is not None and table.dataframe is None:
        context.error(
            "TABLE_ALREADY_EXISTS",
            f"Table already exists: '{qualified}'",
            span,
            "A view needs a different name.",
        )
    context.bindings.clear()
    if not statement.replace and context.view(statement.name, span) is not None:
        context.error(
            "TABLE_ALREADY_EXISTS",
            f"View already exists: '{qualified}'",
            span,
            "Write CREATE OR REPLACE VIEW to replace it.",
        )
    context.creates = qualified
    columns = query_columns(context, (), QueryAnalyzer(context).query(statement.query.tree))
    sql = statement.query_span.of(statement.text)
    view = ConnectorViewDefinition(
        SchemaTableName(*name[1:]),
        sql,
        *context.tables.default(),
        columns,
        statement.comment,
        statement.invoker,
        statement.check_option,
    )
    if view.check_option is not None:
        check_option_of(context, a.ViewBinding(name, view), span)
    return definition(context, "CREATE VIEW", name, view=view)


def drop_view(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.DropView)
    span = context.statement_span(statement.name.span)
    view = context.known_view(statement.name)
    if view is None:
        table = context.known_table(statement.name)
        if table is not None and table.dataframe is None:
            message = f"View '{table.qualified}' does not exist, but a table with that name exists."
            context.error(
                "GENERIC_USER_ERROR", f"{message} Did you mean DROP TABLE {table.qualified}?", span
            )
        if not statement.if_exists:
            name = dotted(context.completed(statement.name))
            context.error(
                "GENERIC_USER_ERROR",
                f"View '{name}' does not exist",
                span,
                "Write DROP VIEW IF EXISTS if it may be missing.",
            )
        return definition(context, "DROP VIEW", context.completed(statement.name), skipped=True)
    return definition(context, "DROP VIEW", view.name)


_OTHER_NAME: Final = "Choose another name, or drop the object with this name."


def rename_view(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.RenameView)
    span = context.statement_span(statement.name.span)
    view = context.known_view(statement.name)
    if view is None:
        name = dotted(context.completed(statement.name))
        message = f"View '{name}' does not exist"
        if _is_table(context.known_table(statement.name)):
            message += (
                f", but a table with that name exists. Did you mean ALTER TABLE {name} RENAME TO"
                " ...?"
            )
        context.error("TABLE_NOT_FOUND", message, span, "SHOW TABLES lists views too.")
    aimed = context.statement_span(statement.to.span)
    target = context.renamed(statement.to, aimed)
    qualified = name_in_sql(target)
    if context.known_view(statement.to) is not None:
        context.error(
            "GENERIC_USER_ERROR", f"Target view '{qualified}' already exists", aimed, _OTHER_NAME
        )
    if _is_table(context.known_table(statement.to)):
        message = f"Target view '{qualified}' does not exist, but a table with that name exists."
        context.error("TABLE_ALREADY_EXISTS", message, aimed, _OTHER_NAME)
    if target[0] != view.name[0]:
        message = "View rename across catalogs is not supported"
        hint = "CREATE VIEW makes one there."
        context.refuse(message, aimed, hint)
    renamed = replace(view.definition, name=SchemaTableName(*target[1:]))
    return definition(context, "ALTER VIEW", view.name, view=renamed)


def _is_table(table: a.TableBinding | None) -> bool:
    return table is not None and table.dataframe is None


# -- schemas


def create_schema(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.CreateSchema)
    catalog, schema = _schema(context, statement.name)
    for name, name_span in statement.property_spans.items():
        context.error(
            "INVALID_SCHEMA_PROPERTY",
            f"Catalog '{catalog}' schema property '{name}' does not exist",
            name_span,
            "Remove it: schemas have no properties here.",
        )
    exists = context.tables.has_schema(catalog, schema) and schema in context.tables.schemas(
        catalog
    )
    if exists and not statement.if_not_exists:
        span = context.statement_span(statement.name.span)
        context.error(
            "SCHEMA_ALREADY_EXISTS",
            f"Schema '{catalog}.{schema}' already exists",
            span,
            "Write IF NOT EXISTS, or choose another name.",
        )
    return definition(context, "CREATE SCHEMA", (catalog, schema), skipped=exists)


def drop_schema(context: Context, statement: st.Statement) -> a.Analysis:
    """Analyze DROP SCHEMA; with contents, it needs CASCADE and a store that drops all at once."""
    assert isinstance(statement, st.DropSchema)
    span = context.statement_span(statement.name.span)
    catalog, schema = completed_schema(context, statement.name)
    exists = is_known_schema(context, catalog, schema)
    if not exists and not statement.if_exists:
        context.error(
            "SCHEMA_NOT_FOUND",
            f"Schema '{catalog}.{schema}' does not exist",
            span,
            "Write DROP SCHEMA IF EXISTS if it may be missing.",
        )
    cascades = statement.cascade and exists and context.tables.store(catalog).cascades_schemas
    if exists and statement.cascade and not cascades:
        context.refuse(
            "This connector does not support dropping schemas with CASCADE option",
            span,
            "Drop its tables and views one at a time.",
        )
    if exists and not cascades and (relations := context.tables.relations(catalog, schema)):
        context.error(
            "SCHEMA_NOT_EMPTY",
            f"Cannot drop non-empty schema '{schema}'",
            span,
            f"It holds: {', '.join(relations)}.",
        )
    return definition(
        context, "DROP SCHEMA", (catalog, schema), skipped=not exists, cascades=cascades
    )


def truncate(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.Truncate)
    span = context.statement_span(statement.target.span)
    context.refuse_view(statement.target, "Cannot truncate a view")
    target = context.target(statement.target, span)
    context.refuse_frame(target, "it cannot be emptied", span)
    return definition(context, "TRUNCATE TABLE", target.name, target=target)


def definition(
    context: Context, statement_kind: str, name: tuple[str, ...], **more: Any
) -> a.DefinitionAnalysis:
    return a.DefinitionAnalysis(
        context.text,
        tuple(context.bindings.values()),
        tuple(context.notices),
        statement_kind,
        name,
        **more,
    )


def _schema(context: Context, name: st.TableName | None) -> tuple[str, str]:
    catalog, schema = completed_schema(context, name)
    if catalog not in context.tables.catalogs():
        raise unknown_catalog(catalog, context.tables.catalogs()).at(
            context.statement_span(name.span if name is not None else None)
        )
    return catalog, schema


def is_known_schema(context: Context, catalog: str, schema: str) -> bool:
    return catalog in context.tables.catalogs() and context.tables.has_schema(catalog, schema)


def known_schema(context: Context, catalog: str, schema: str, span: st.Span) -> None:
    if not is_known_schema(context, catalog, schema):
        context.error(
            "SCHEMA_NOT_FOUND",
            f"Schema '{catalog}.{schema}' does not exist",
            span,
            f"SHOW SCHEMAS FROM {column_in_sql(catalog)} lists them.",
        )


def completed_schema(context: Context, name: st.TableName | None) -> tuple[str, str]:
    span = context.statement_span(name.span if name is not None else None)
    values = [part.value for part in name.parts] if name is not None else []
    if len(values) > 2:
        context.error("SYNTAX_ERROR", f"Too many parts in schema name: {'.'.join(values)}", span)
    default = context.tables.default()
    catalog, schema = (*default[: 2 - len(values)], *values)
    return catalog, schema


# -- SHOW


def show(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.Show)
    names, rows = _listed(context, statement)
    if statement.like is not None:
        pattern = _pattern(context, statement.like.value, statement.escape)
        rows = [row for row in rows if row[0] is not None and pattern.fullmatch(row[0])]
    statement_kind = f"SHOW {statement.kind}"
    columns = tuple((name, BOOLEAN if name == "Deterministic" else VARCHAR) for name in names)
    return listing(context, statement_kind, columns, rows)


def listing(
    context: Context,
    statement_kind: str,
    columns: Sequence[tuple[str, Type]],
    rows: Iterable[tuple[Any, ...]],
) -> a.ListingAnalysis:
    notices = tuple(context.notices)
    return a.ListingAnalysis(context.text, (), notices, statement_kind, tuple(columns), tuple(rows))


_FUNCTION_COLUMNS: Final = (
    "Function",
    "Return Type",
    "Argument Types",
    "Function Type",
    "Deterministic",
    "Description",
)
_Listing: TypeAlias = tuple[tuple[str, ...], list[tuple[Any, ...]]]
"""The names of columns, and rows."""


def _listed(context: Context, statement: st.Show) -> _Listing:
    tables, name = context.tables, statement.name
    span = context.statement_span(name.span if name is not None else None)
    if statement.kind == "CATALOGS":
        return ("Catalog",), [(catalog,) for catalog in tables.catalogs()]
    if statement.kind == "FUNCTIONS":
        if name is not None and len(name.parts) > 2:
            context.error(
                "SYNTAX_ERROR",
                f"Too many parts in schema name: {'.'.join(part.value for part in name.parts)}",
                span,
            )
        # Schemas have no functions of their own.
        return _FUNCTION_COLUMNS, listed_functions() if name is None else []
    if statement.kind == "SCHEMAS":
        parts = [part.value for part in name.parts] if name is not None else []
        catalog = parts[0] if parts else tables.default()[0]
        if catalog not in tables.catalogs():
            raise unknown_catalog(catalog, tables.catalogs()).at(span)
        return ("Schema",), [(schema,) for schema in tables.schemas(catalog)]
    if statement.kind == "TABLES":
        catalog, schema = _schema(context, name)
        if not tables.has_schema(catalog, schema):
            context.error(
                "SCHEMA_NOT_FOUND",
                f"Schema '{schema}' does not exist",
                span,
                f"SHOW SCHEMAS FROM {column_in_sql(catalog)} lists them.",
            )
        return ("Table",), [(table,) for table in tables.relations(catalog, schema)]
    if statement.kind == "CREATE SCHEMA":
        catalog, schema = completed_schema(context, name)
        known_schema(context, catalog, schema, span)
        return ("Create Schema",), [
            (f"CREATE SCHEMA {column_in_sql(catalog)}.{column_in_sql(schema)}",)
        ]
    assert name is not None
    return _listed_relation(context, statement.kind, name, span)


def _listed_relation(
    context: Context, statement_kind: str, name: st.TableName, span: st.Span
) -> _Listing:
    if statement_kind == "BRANCHES":
        context.refuse_view(name, "Branches of views are not supported")
        table = context.target(name, span)
        branches = context.tables.branches(table) if context.keeps_branches(table) else ()
        return ("Branch",), [(branch,) for branch in branches]
    view = context.view(name, span) if statement_kind == "COLUMNS" else context.known_view(name)
    if statement_kind == "COLUMNS":
        columns = view.definition.columns if view is not None else context.table(name, span).columns
        return ("Column", "Type", "Extra", "Comment"), [
            (c.name, str(c.type), "", c.comment or "") for c in columns
        ]
    if statement_kind == "CREATE VIEW":
        return ("Create View",), [(_view_text(context, name, view),)]
    if view is not None:
        context.refuse(
            f"Relation '{view.qualified}' is a view, not a table", span, "Write SHOW CREATE VIEW."
        )
    return ("Create Table",), [(_table_text(context, name),)]


def _view_text(context: Context, name: st.TableName, view: a.ViewBinding | None) -> str:
    span = context.statement_span(name.span)
    if view is None:
        qualified = dotted(context.completed(name))
        if context.known_table(name) is not None:
            context.refuse(
                f"Relation '{qualified}' is a table, not a view", span, "Write SHOW CREATE TABLE."
            )
        context.error(
            "TABLE_NOT_FOUND",
            f"View '{qualified}' does not exist",
            span,
            "SHOW TABLES lists views too.",
        )
    definition = view.definition
    security = "INVOKER" if definition.run_as_invoker else "DEFINER"
    query = formatted_query(parse_query(definition.original_sql), definition.original_sql)
    option = f"\nWITH {definition.check_option} CHECK OPTION" if definition.check_option else ""
    return (
        f"CREATE VIEW {name_in_sql(view.name)}{_comment(' ', definition.comment)} SECURITY {security}"
        f" AS\n{query}{option}"
    )


def _table_text(context: Context, name: st.TableName) -> str:
    table = context.target(name, context.statement_span(name.span))
    if table.metadata is None and len(table.name) == 1:
        context.refuse(
            f"'{table.display}' is {table.kind}; no statement creates it",
            context.statement_span(),
            "DESCRIBE shows its columns and their types.",
        )
    columns = ",\n".join(
        f"   {column_in_sql(c.name)}"
        f" {_type(c.type)}{_default(c.default)}{'' if c.nullable else ' NOT NULL'}{_comment(' ', c.comment)}"
        for c in table.columns
    )
    # Tables of information_schema have only columns.
    table_properties = table.metadata.properties if table.metadata is not None else {}
    comment = None if table.metadata is None else table.metadata.comment
    property_lines = [
        f"   {key} = {property_text(value)}"
        for key, value in table_properties.items()
        if value not in (None, ())
    ]
    properties = "\nWITH (\n" + ",\n".join(property_lines) + "\n)" if property_lines else ""
    return (
        f"CREATE TABLE {name_in_sql(table.name)}"
        f" (\n{columns}\n){_comment(chr(10), comment)}{properties}"
    )


def _type(sql_type: Type) -> str:
    parts = tuple(
        _type(part) if isinstance(part, Type) else str(part) for part in sql_type.parameters
    )
    if sql_type.base == "row":
        fields = (
            f"{column_in_sql(name)} {part}" if name else part
            for name, part in zip(sql_type.fields, parts, strict=True)
        )
        return f"ROW({', '.join(fields)})"
    return (
        f"{sql_type.base}({', '.join(parts)})"
        if sql_type.base in {"array", "map", "decimal"}
        else str(sql_type)
    )


def _default(default: str | None) -> str:
    return "" if default is None else f" DEFAULT {default}"


def _comment(before: str, comment: str | None) -> str:
    return "" if comment is None else f"{before}COMMENT {quoted_text(comment)}"


def _pattern(context: Context, like: str, escape: Any) -> re.Pattern[str]:
    mark = escape.value if escape is not None else None
    if mark is not None and len(mark) != 1:
        context.error(
            "INVALID_FUNCTION_ARGUMENT", "Escape string must be a single character", escape.span
        )
    parts: list[str] = []
    characters: Iterable[str] = iter(like)
    for character in characters:
        if character == mark:
            following = next(iter(characters), "")
            if following not in {"%", "_", mark}:
                context.error(
                    "INVALID_FUNCTION_ARGUMENT",
                    "Escape character must be followed by '%', '_' or the escape character itself",
                    escape.span,
                )
            parts.append(re.escape(following))
        else:
            parts.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    return re.compile("".join(parts), re.DOTALL)
