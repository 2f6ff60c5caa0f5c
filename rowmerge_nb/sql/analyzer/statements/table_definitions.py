"""Analyzes CREATE TABLE and DROP TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import AnalysisError, RowMergeError
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.types import NUMBER, Type
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.context import dotted
from rowmerge_nb.sql.analyzer.queries.query import QueryAnalyzer
from rowmerge_nb.sql.analyzer.statements.alterations import (
    constants_of,
    defined_column,
    refuse_comment,
)
from rowmerge_nb.sql.analyzer.statements.definitions import query_columns
from rowmerge_nb.sql.parser.column_names import name_in_sql, nearest_table
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_DAY,
    INTERVAL_YEAR,
    instant,
    parts_of,
    too_precise,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.sql.analyzer.context import Context

_FINEST: Final = 6
"""The precision of seconds in pages."""

_WITH_COMMENT: Final = "creating tables with column comment"


def create_table(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.CreateTable)
    span = context.statement_span(statement.name.span)
    if statement.replace and statement.if_not_exists:
        context.error(
            "SYNTAX_ERROR",
            "'OR REPLACE' and 'IF NOT EXISTS' clauses can not be used together",
            span,
            "Remove one of them.",
        )
    name = context.place(statement.name, span)
    exists, replaced = _existing(context, statement, name, span)
    properties = constants_of(statement.properties)
    tree = None
    columns: tuple[ColumnMetadata, ...] = ()
    if statement.query is not None:
        columns, tree = _queried(context, name[0], statement, statement.query)
        if len(statement.name.parts) == 1:
            _notice_twin(context, name[2], span)
    elif not exists:
        columns, inherited = _Columns(context, name[0]).of(statement.columns)
        properties = {**inherited, **properties}
        # Tables behind LIKE are not read.
        context.bindings.clear()
    refuse_comment(context, name[0], statement.comment, "creating tables with table comment")
    comment = None if statement.comment is None else statement.comment.text
    table = SchemaTableName(name[1], name[2])
    return a.CreateTableAnalysis(
        statement.text,
        tuple(context.bindings.values()),
        tuple(context.notices),
        name,
        ConnectorTableMetadata(table, columns, properties, comment),
        exists,
        tree,
        statement.property_spans,
        replaced,
        origins=tuple(context.origins),
    )


def _notice_twin(context: Context, name: str, span: st.Span) -> None:
    if any(
        binding.dataframe is not None and binding.name[-1].lower() == name.lower()
        for binding in context.bindings.values()
    ):
        context.notice(
            f"Table and DataFrame now have the same name; from now on, {name} means"
            f" the table. To distinguish them, write CREATE TABLE {name.rstrip('_')}_table AS"
            " ....",
            span,
        )


def _existing(
    context: Context, statement: st.CreateTable, name: tuple[str, str, str], span: st.Span
) -> tuple[bool, a.TableBinding | None]:
    """Return whether the name is taken, if IF NOT EXISTS allows it, and the table to replace."""
    existing, view = context.lookup(statement.name), context.view(statement.name, span)
    exists = view is not None or (existing is not None and existing.dataframe is None)
    context.bindings.clear()
    replaced = existing if statement.replace and view is None and exists else None
    if statement.replace and not context.tables.store(name[0]).replaces_tables:
        message = "This connector does not support replacing tables"
        hint = "Write DROP TABLE IF EXISTS before it."
        context.refuse_later(AnalysisError.unsupported(message, hint=hint).at(span))
    if statement.replace:
        exists = view is not None
    if exists and not statement.if_not_exists:
        message = (
            f"{'Table' if statement.query is None else 'Destination table'} '{name_in_sql(name)}'"
            " already exists"
        )
        first = (
            "CREATE OR REPLACE TABLE"
            if context.tables.store(name[0]).replaces_tables
            else "DROP TABLE before it"
        )
        hint = (
            f"Write {first}, or CREATE TABLE IF NOT EXISTS."
            if view is None
            else "It is a view: a table needs a different name."
        )
        context.error("TABLE_ALREADY_EXISTS", message, span, hint)
    return exists, replaced


class _Columns:
    def __init__(self, context: Context, catalog: str) -> None:
        self._context = context
        self._catalog = catalog
        self._columns: dict[str, ColumnMetadata] = {}
        self._inherited: Mapping[str, Any] | None = None

    def of(
        self, elements: Sequence[st.ColumnDefinition | st.LikeTable]
    ) -> tuple[tuple[ColumnMetadata, ...], Mapping[str, Any]]:
        for element in elements:
            if isinstance(element, st.LikeTable):
                self._add_like(element)
            else:
                refuse_comment(self._context, self._catalog, element.comment, _WITH_COMMENT)
                self._add(defined_column(self._context, self._catalog, element), element.name.span)
        return tuple(self._columns.values()), self._inherited or {}

    def _add(self, column: ColumnMetadata, span: st.Span) -> None:
        name = column.name.lower()
        if name in self._columns:
            self._context.error(
                "DUPLICATE_COLUMN_NAME",
                f"Column name '{column.name}' specified more than once",
                span,
            )
        _check_carried(self._context, name, column.type, span)
        self._columns[name] = column

    def _add_like(self, like: st.LikeTable) -> None:
        context, name, span = self._context, like.name, self._context.statement_span(like.name.span)
        table = self._like(name, span)
        if like.including:
            self._inherit(table, span)
        for column in table.columns:
            if column.comment is not None:
                refuse_comment(
                    context, self._catalog, st.Comment(column.comment, name.span), _WITH_COMMENT
                )
            if (
                column.default is not None
                and not context.tables.store(self._catalog).stores_defaults
            ):
                context.refuse(
                    f"Catalog '{self._catalog}' does not support default value for column name"
                    f" '{column.name}'",
                    name.span,
                    "Write the columns instead of LIKE, without the default.",
                )
            self._add(column, like.span)

    def _like(self, name: st.TableName, span: st.Span) -> a.TableBinding:
        context, parts = self._context, tuple(part.value for part in name.parts)
        hint = nearest_table(parts[-1], context.tables.candidates(parts))
        try:
            table = context.lookup(name)
        except RowMergeError as error:
            if error.code == "CATALOG_NOT_FOUND":
                context.error(
                    "CATALOG_NOT_FOUND",
                    f"LIKE table catalog '{parts[0]}' not found",
                    span,
                    f"There are: {', '.join(context.tables.catalogs())}.",
                )
            if error.code != "SCHEMA_NOT_FOUND":
                raise
            table = None
        if table is None:
            full_name = ".".join((*context.tables.default()[: 3 - len(parts)], *parts))
            context.error("TABLE_NOT_FOUND", f"LIKE table '{full_name}' does not exist", span, hint)
        return table

    def _inherit(self, table: a.TableBinding, span: st.Span) -> None:
        if table.metadata is None or table.catalog != self._catalog:
            self._context.error(
                "NOT_SUPPORTED",
                "CREATE TABLE LIKE table INCLUDING PROPERTIES across catalogs is not supported",
                span,
                "Remove INCLUDING PROPERTIES, and write the properties after WITH.",
            )
        if self._inherited is not None:
            self._context.error(
                "NOT_SUPPORTED", "Only one LIKE clause can specify INCLUDING PROPERTIES", span
            )
        self._inherited = table.metadata.properties


def _queried(
    context: Context, catalog: str, statement: st.CreateTable, query: st.Query
) -> tuple[tuple[ColumnMetadata, ...], q.Query]:
    result = QueryAnalyzer(context).query(query.tree)
    query_fields = query_columns(context, statement.column_aliases, result)
    keeps = context.tables.store(catalog).keeps_sizes
    columns = tuple(
        ColumnMetadata(column.name, _stored_type(column.type, keeps_sizes=keeps))
        for column in query_fields
    )
    for column in columns:
        _check_carried(context, column.name, column.type, context.statement_span())
    rows = result.coerced_to([instant(field.type) for field in result.fields])
    pairs = zip(rows.fields, columns, strict=True)
    tree = q.Coerced(
        rows.tree, tuple((e.Column(f.type, c.name), e.Column(f.type, f.symbol)) for f, c in pairs)
    )
    return columns, tree if statement.with_data else q.Ordered(tree, (), 0, 0)


_INSTEAD: Final = {
    INTERVAL_DAY: "Store the seconds of the interval as a bigint.",
    INTERVAL_YEAR: "Store the months of the interval as an integer.",
    NUMBER: "Write decimal(38, 10), or another decimal that holds the values.",
}
"""Types without columns here, and what to store."""


def _check_carried(context: Context, name: str, sql_type: Type, span: st.Span) -> None:
    fine = too_precise(sql_type)
    if fine is not None:
        context.refuse(
            f"Unsupported column type: {sql_type} of column '{name}': values have"
            f" microseconds here; {fine} is more precise",
            span,
            f"Write {fine.base} with a precision of at most 6.",
        )
    hint = next((_INSTEAD[part] for part in parts_of(sql_type) if part in _INSTEAD), None)
    if hint is not None:
        context.refuse(f"Unsupported column type: {sql_type} of column '{name}'", span, hint)


def _stored_type(sql_type: Type, *, keeps_sizes: bool) -> Type:
    if sql_type.base == "varchar":
        return sql_type if keeps_sizes else Type("varchar")
    if sql_type.base in {"timestamp", "timestamp with time zone", "time"}:
        return Type(
            sql_type.base, (min(sql_type.parameters[0], _FINEST) if keeps_sizes else _FINEST,)
        )
    if sql_type.base in {"array", "map", "row"}:
        return Type(
            sql_type.base,
            tuple(_stored_type(part, keeps_sizes=keeps_sizes) for part in sql_type.parameters),
            sql_type.fields,
        )
    return sql_type


def drop_table(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.DropTable)
    span = context.statement_span(statement.name.span)
    view = context.known_view(statement.name)
    if view is not None:
        message = f"Table '{view.qualified}' does not exist, but a view with that name exists."
        context.error(
            "GENERIC_USER_ERROR", f"{message} Did you mean DROP VIEW {view.qualified}?", span
        )
    target = context.known_table(statement.name)
    if target is not None and target.dataframe is not None:
        if len(target.name) > 1:
            context.refuse(
                f"'{target.display}' is {target.kind}; it cannot be dropped",
                span,
                "It is not in a store: remove the statement.",
            )
        target = None
    if target is None and not statement.if_exists:
        qualified = dotted(context.completed(statement.name))
        parts = [part.value for part in statement.name.parts]
        hint = nearest_table(parts[-1], context.tables.candidates(parts))
        context.error("TABLE_NOT_FOUND", f"Table '{qualified}' does not exist", span, hint)
    return a.DropTableAnalysis(statement.text, (), tuple(context.notices), target)
