"""Analyzes statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import ExplainType
from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.types import Type
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.context import Context
from rowmerge_nb.sql.analyzer.queries.query import QueryAnalyzer
from rowmerge_nb.sql.analyzer.rows.constant_rows import ConstantRows
from rowmerge_nb.sql.analyzer.rows.stored_rows import StoredRows
from rowmerge_nb.sql.analyzer.statements.alterations import alter_table, comment_on
from rowmerge_nb.sql.analyzer.statements.assigned_values import filled_rows, has_defaults
from rowmerge_nb.sql.analyzer.statements.call import call
from rowmerge_nb.sql.analyzer.statements.column_defaults import default_value
from rowmerge_nb.sql.analyzer.statements.conflicts import analyze_conflict
from rowmerge_nb.sql.analyzer.statements.definitions import (
    create_schema,
    create_view,
    drop_schema,
    drop_view,
    listing,
    rename_view,
    show,
    truncate,
)
from rowmerge_nb.sql.analyzer.statements.inserted_types import check_inserted
from rowmerge_nb.sql.analyzer.statements.merge import analyze_merge
from rowmerge_nb.sql.analyzer.statements.prepared import (
    COLUMN_COLUMNS,
    PARAMETER_COLUMNS,
    column_rows,
    parameter_rows,
    result_columns,
)
from rowmerge_nb.sql.analyzer.statements.returning import inserted_returning
from rowmerge_nb.sql.analyzer.statements.set_session import set_session, set_time_zone
from rowmerge_nb.sql.analyzer.statements.table_definitions import create_table, drop_table
from rowmerge_nb.sql.analyzer.statements.unsupported import analyze_table, rename_schema
from rowmerge_nb.sql.analyzer.statements.updatable_views import ChangedTable, changed_table
from rowmerge_nb.sql.analyzer.statements.update_delete import analyze_delete, analyze_update
from rowmerge_nb.sql.parser.column_names import column_list, nearest_column
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree.depth import room
from rowmerge_nb.sql.typed import queries as q

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.sql.analyzer.scope import ScopeField


def analyze(
    statement: st.Statement,
    tables: a.AnalyzerCatalogs,
    *,
    era: Era = Era.DOCUMENTS,
    dialect: str = "trino",
) -> a.Analysis:
    """Return the meaning of a parsed statement.

    Under ``DOCUMENTS`` an ambiguous name in UPDATE SET means the target's column, with a notice.
    """
    context = Context(statement.text, tables, era)
    context.extended = dialect == "extended"
    context.refusals = []
    context.stores = isinstance(statement, _STORING)
    with room():
        for form in statement.forms:
            context.notice(form.message, form.span)
        analysis = _ANALYZERS[type(statement)](context, statement)
    context.check_refusals()
    return analysis


def _query(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.Query)
    result = QueryAnalyzer(context).query(statement.tree)
    fields = tuple(
        a.Field(f.symbol, f.name or f"_col{i}", f.type, f.qualifier[-1] if f.qualifier else None)
        for i, f in enumerate(result.fields)
    )
    bindings = tuple(context.bindings.values())
    notices = tuple(context.notices)
    origins = tuple(context.origins)
    return a.QueryAnalysis(statement.text, bindings, notices, fields, result.tree, origins=origins)


def _explain(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.Explain)
    try:
        inner = analyze(
            statement.statement,
            context.tables,
            era=context.era,
            dialect="extended" if context.extended else "trino",
        )
    except AnalysisError as error:
        _shift(error, statement)
        raise
    if statement.kind == ExplainType.ANALYZE:
        context.refuse(
            "EXPLAIN ANALYZE is not supported by this engine",
            context.statement_span(),
            "Run the statement: its report has the numbers.",
        )
    if statement.kind == ExplainType.IO:
        context.refuse(
            "EXPLAIN (TYPE IO) is not supported by this engine",
            context.statement_span(),
            "The tables that a statement reads are in its plan: EXPLAIN (TYPE LOGICAL).",
        )
    return a.ExplainAnalysis(statement.text, inner.bindings, inner.notices, statement, inner)


_STORING: Final = (st.Insert, st.Update, st.Merge, st.CreateTable)
_WITH_COLUMNS: Final = (
    st.Query,
    st.Insert,
    st.Update,
    st.Delete,
    st.Merge,
    st.CreateTable,
    st.Explain,
    st.Show,
)
"""Statements whose answer may have columns."""


def _describe_prepared(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.DescribePrepared)
    prepared = statement.prepared
    assert prepared is not None
    try:
        fields, parameter_types = _prepared(context, prepared)
    except AnalysisError as error:
        # The error's place is in the prepared text.
        error.statement = prepared.text
        raise
    statement_kind = f"DESCRIBE {'OUTPUT' if statement.output else 'INPUT'}"
    columns = COLUMN_COLUMNS if statement.output else PARAMETER_COLUMNS
    rows = (
        column_rows(fields) if statement.output else parameter_rows(prepared.text, parameter_types)
    )
    return listing(context, statement_kind, columns, rows)


def _prepared(
    context: Context, statement: st.Statement
) -> tuple[Sequence[ScopeField], dict[int, Type]]:
    parameter_types: dict[int, Type] = {}
    if not isinstance(statement, _WITH_COLUMNS) or (
        isinstance(statement, st.CreateTable) and statement.query is None
    ):
        return (), parameter_types
    inner = Context(statement.text, context.tables, context.era)
    inner.parameters = parameter_types
    inner.refusals = []
    if isinstance(statement, st.Query):
        fields: Sequence[ScopeField] = QueryAnalyzer(inner).query(statement.tree).fields
    else:
        fields = result_columns(_ANALYZERS[type(statement)](inner, statement))
    inner.check_refusals()
    return fields, parameter_types


def _shift(error: AnalysisError, statement: st.Explain) -> None:
    if error.line is None or error.column is None:
        return
    start = statement.text.rindex(statement.statement.text)
    span = st.Span.within(statement.text, start, start)
    if error.about is not None:
        line, column, length = error.about
        error.about = (line + span.line - 1, column + (span.column - 1 if line == 1 else 0), length)
    error.column += span.column - 1 if error.line == 1 else 0
    error.line += span.line - 1


# -- INSERT


def _insert(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.Insert)
    span = context.statement_span(statement.target.span)
    try:
        changed = changed_table(context, statement.target, "Inserting into views is not supported")
    except AnalysisError as error:
        # Trino reads the query before it looks for the table.
        if error.code == "TABLE_NOT_FOUND" and not has_defaults(statement.query.tree):
            QueryAnalyzer(context).query(statement.query.tree)
        raise
    target = changed.table
    context.refuse_frame(target, "it can be read but not changed", span)
    query = statement.query.tree
    if statement.conflict is not None or has_defaults(query):
        fields = QueryAnalyzer(context).query(query).fields if statement.by_name else ()
        columns = _insert_columns(context, statement, changed, fields)
        query = filled_rows(columns, query)
        if statement.conflict is not None:
            if changed.is_view:
                context.refuse(
                    f"{statement.conflict.title} is not supported for views",
                    statement.conflict.span,
                    f"Name the table: {target.qualified}. A row that the view hides can have the"
                    " key too.",
                )
            merge = analyze_conflict(context, statement, statement.conflict, target, columns)
            if merge is not None:
                return merge
    result = QueryAnalyzer(context).query(query)
    columns = _insert_columns(context, statement, changed, result.fields)
    check_inserted(context, statement, changed.visible, changed.labelled(columns), result.fields)
    checks = changed.checks(context, span, subqueries=True)
    filled_names = {column.name for column in columns}
    omitted = {
        c.name: default_value(context, target, c, span)
        for c in target.columns
        if c.name not in filled_names
    }
    returning = inserted_returning(context, statement, changed) if statement.returning else None
    bindings, notices = tuple(context.bindings.values()), tuple(context.notices)
    rows = _constant_rows(context, result.tree)
    return a.InsertAnalysis(
        statement.text,
        bindings,
        notices,
        target,
        result.stored_tree(target.columns, columns, omitted),
        None if rows is None else StoredRows(rows, tuple(columns)),
        returning,
        checks,
        tuple(column.name for column in columns),
        origins=tuple(context.origins),
    )


def _constant_rows(context: Context, query: q.Query) -> ConstantRows | None:
    while isinstance(query, q.Ordered):
        query = query.source
    views = (
        [form.view for form in query.forms]
        if isinstance(query, q.Valued) and not query.is_numbered
        else []
    )
    rows = next((table.rows for table in context.bindings.values() if table.view in views), None)
    return rows if isinstance(rows, ConstantRows) else None


def _insert_columns(
    context: Context, statement: st.Insert, changed: ChangedTable, fields: Sequence[ScopeField]
) -> list[ColumnMetadata]:
    target = changed.visible
    own = [changed.table.columns[index] for index in changed.order]
    names: Sequence[st.Identifier] = statement.columns or ()
    if statement.by_name is not None:
        names = [st.Identifier(field.name or "", statement.by_name) for field in fields]
    elif not names:
        changed.require_list(context, statement.target.span)
        return own
    by_name = {
        column.name.lower(): own_column
        for column, own_column in zip(target.columns, own, strict=True)
    }
    insert_columns: dict[str, ColumnMetadata] = {}
    for name in names:
        column = by_name.get(name.value)
        if column is None:
            changed.refuse_computed(context, name)
            message = f"Insert column name does not exist in target table: {name.value}"
            all_names = [column.name for column in target.columns]
            hint = (
                nearest_column(name.value, all_names)
                or f"{target.display} has the columns {column_list(all_names)}."
            )
            context.error("COLUMN_NOT_FOUND", message, context.statement_span(name.span), hint)
        if name.value in insert_columns:
            context.error(
                "DUPLICATE_COLUMN_NAME",
                f"Insert column name is specified more than once: {name.value}",
                context.statement_span(name.span),
            )
        insert_columns[name.value] = column
    return list(insert_columns.values())


_ANALYZERS: Final[dict[type[st.Statement], Callable[[Context, st.Statement], a.Analysis]]] = {
    st.Merge: analyze_merge,
    st.Query: _query,
    st.Insert: _insert,
    st.CreateTable: create_table,
    st.DropTable: drop_table,
    st.CreateView: create_view,
    st.DropView: drop_view,
    st.RenameView: rename_view,
    st.CreateSchema: create_schema,
    st.DropSchema: drop_schema,
    st.Truncate: truncate,
    st.SetTimeZone: set_time_zone,
    st.SetSession: set_session,
    st.AlterTable: alter_table,
    st.CommentOn: comment_on,
    st.CallStatement: call,
    st.Show: show,
    st.AnalyzeTable: analyze_table,
    st.RenameSchema: rename_schema,
    st.Explain: _explain,
    st.DescribePrepared: _describe_prepared,
    st.Update: analyze_update,
    st.Delete: analyze_delete,
}
