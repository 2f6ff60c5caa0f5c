"""Analyzes ALTER TABLE and COMMENT."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.spi.alterations import (
    AddColumn,
    AddField,
    ColumnPosition,
    CreateBranch,
    DropBranch,
    DropColumn,
    DropDefault,
    DropField,
    DropNotNull,
    FastForwardBranch,
    RenameColumn,
    RenameField,
    RenameTable,
    SetColumnComment,
    SetColumnType,
    SetDefault,
    SetFieldType,
    SetProperties,
    SetTableComment,
)
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.types import Type
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.context import dotted
from rowmerge_nb.sql.analyzer.statements import altered_fields as fields
from rowmerge_nb.sql.analyzer.statements.column_defaults import default_text
from rowmerge_nb.sql.analyzer.statements.definitions import definition
from rowmerge_nb.sql.analyzer.statements.table_procedures import table_execute
from rowmerge_nb.sql.parser.column_names import name_in_sql, nearest_column, nearest_table
from rowmerge_nb.sql.tree import statements as st

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.spi.alterations import Alteration
    from rowmerge_nb.sql.analyzer.context import Context

_OF_FIELDS: Final = {
    AddField: "adding fields",
    DropField: "dropping fields",
    RenameField: "renaming fields",
    SetFieldType: "setting field types",
}

_OTHER_COLUMN: Final = (
    "Choose another name, or remove the column that has it with ALTER TABLE ... DROP COLUMN."
)


def alter_table(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.AlterTable)
    if isinstance(statement.action, st.TableExecute):
        return table_execute(context, statement, statement.action)
    span = context.statement_span(statement.name.span)
    sets = statement.action if isinstance(statement.action, st.SetPropertiesAction) else None
    if sets is not None:
        # Trino checks the values before it looks for the table.
        constants_of(sets.properties)
    if isinstance(statement.action, st.RenameTableAction):
        _refuse_renaming(context, statement.name, span)
    message = (
        "Altering views is not supported"
        if sets is None
        else "Cannot set properties to a view in ALTER TABLE"
    )
    context.refuse_view(statement.name, message)
    table = context.known_table(statement.name)
    if table is None and statement.if_exists:
        name = context.completed(statement.name)
        return a.DefinitionAnalysis(
            context.text, (), tuple(context.notices), "ALTER TABLE", name, skipped=True
        )
    target = context.target(statement.name, span)
    context.refuse_frame(target, "it cannot be altered", span)
    if isinstance(statement.action, st.BranchAction) and not context.keeps_branches(target):
        return _without_branches(context, target, statement.action, span)
    alteration = _Alterations(context, target).of(statement.action)
    doing = next(
        (
            words
            for alteration_type, words in _OF_FIELDS.items()
            if isinstance(alteration, alteration_type)
        ),
        None,
    )
    if doing is not None and not context.tables.store(target.catalog).alters_fields:
        context.refuse(
            f"This connector does not support {doing}",
            None,
            "ALTER COLUMN ... SET DATA TYPE may give the whole column another type.",
        )
    return definition(
        context,
        "ALTER TABLE",
        target.name,
        skipped=alteration is None,
        target=target,
        alteration=alteration,
        property_spans={} if sets is None else sets.spans,
    )


def _refuse_renaming(context: Context, name: st.TableName, span: st.Span) -> None:
    view = context.known_view(name)
    if view is not None:
        message = f"Table '{view.qualified}' does not exist, but a view with that name exists."
        context.error(
            "GENERIC_USER_ERROR",
            f"{message} Did you mean ALTER VIEW {view.qualified} RENAME TO ...?",
            span,
        )


def comment_on(context: Context, statement: st.Statement) -> a.Analysis:
    assert isinstance(statement, st.CommentOn)
    span = context.statement_span(statement.name.span)
    view = context.known_view(statement.name)
    if view is not None and statement.kind != "TABLE":
        return _comment_on_view(context, statement, view)
    target = context.known_table(statement.name)
    if target is None or view is not None or statement.kind == "VIEW":
        _refuse_comment_on(context, statement, view, target)
    context.refuse_frame(target, "it has no comments", span)
    alteration: Alteration
    if statement.column is None:
        alteration, feature = SetTableComment(statement.comment), "setting table comments"
    else:
        name = _commented_column(context, statement.column, target.columns).name
        alteration, feature = SetColumnComment(name, statement.comment), "setting column comments"
    if not context.tables.store(target.catalog).stores_comments:
        context.refuse(
            f"This connector does not support {feature}",
            span,
            "Only tables of stores that keep comments have any.",
        )
    return definition(context, "COMMENT", target.name, target=target, alteration=alteration)


def _comment_on_view(context: Context, statement: st.CommentOn, view: a.ViewBinding) -> a.Analysis:
    definition = view.definition
    if statement.column is None:
        definition = replace(definition, comment=statement.comment)
    else:
        column = _commented_column(context, statement.column, definition.columns)
        changed = replace(column, comment=statement.comment)
        definition = replace(
            definition,
            columns=tuple(changed if other is column else other for other in definition.columns),
        )
    return a.DefinitionAnalysis(
        context.text, (), tuple(context.notices), "COMMENT", view.name, view=definition
    )


def _commented_column(
    context: Context, name: st.Identifier, columns: Sequence[ColumnMetadata]
) -> ColumnMetadata:
    by_name = {column.name.lower(): column for column in columns}
    if name.value not in by_name:
        hint = nearest_column(name.text, [column.name for column in columns])
        context.error(
            "COLUMN_NOT_FOUND",
            f"Column does not exist: {name.value}",
            context.statement_span(name.span),
            hint,
        )
    return by_name[name.value]


def _refuse_comment_on(
    context: Context,
    statement: st.CommentOn,
    view: a.ViewBinding | None,
    target: a.TableBinding | None,
) -> NoReturn:
    span = context.statement_span(statement.name.span)
    name = dotted(context.completed(statement.name))
    hint = None
    if view is not None:
        message = (
            f"Table '{name}' does not exist, but a view with that name exists. Did you mean COMMENT"
            f" ON VIEW {name} IS ...?"
        )
    elif statement.kind == "VIEW" and target is not None and target.dataframe is None:
        message = (
            f"View '{name}' does not exist, but a table with that name exists. Did you mean COMMENT"
            f" ON TABLE {name} IS ...?"
        )
    else:
        message = (
            f"View '{name}' does not exist"
            if statement.kind == "VIEW"
            else f"Table does not exist: {name}"
        )
        parts = [part.value for part in statement.name.parts]
        hint = nearest_table(parts[-1], context.tables.candidates(parts))
    context.error("TABLE_NOT_FOUND", message, span, hint)


def defined_column(context: Context, catalog: str, column: st.ColumnDefinition) -> ColumnMetadata:
    comment = None if column.comment is None else column.comment.text
    sql_type = defined_type(column.type)
    default = default_text(context, catalog, column.name, sql_type, column.default)
    return ColumnMetadata(column.name.text, sql_type, column.nullable, default, comment)


def defined_type(sql_type: Type | AnalysisError) -> Type:
    if isinstance(sql_type, AnalysisError):
        raise sql_type
    return sql_type


def constants_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    wrong = next((value for value in properties.values() if isinstance(value, AnalysisError)), None)
    if wrong is not None:
        raise wrong
    return dict(properties)


def refuse_comment(context: Context, catalog: str, comment: st.Comment | None, what: str) -> None:
    """Raise an error for a comment that the store would lose."""
    if comment is not None and not context.tables.store(catalog).stores_comments:
        context.refuse(f"This connector does not support {what}", comment.span, "Remove COMMENT.")


def _without_branches(
    context: Context, target: a.TableBinding, action: st.BranchAction, span: st.Span | None
) -> a.Analysis:
    """Answer as Trino for a store without branches, which has not even `main`."""
    change = action.change
    hint = (
        "Tables of Iceberg have branches."
        if context.extended
        else "No connector of Trino has branches. For branches of Iceberg tables, use"
        " --dialect extended."
    )
    match change:
        case CreateBranch():
            absent = change.origin
        case DropBranch():
            absent = None if change.if_exists else change.name
        case FastForwardBranch():
            absent = None if change.name == change.destination else change.name
    if absent is not None:
        context.error("BRANCH_NOT_FOUND", f"Branch '{absent}' does not exist", span, hint)
    if isinstance(change, CreateBranch):
        context.refuse("This connector does not support creating branches", None, hint)
    return definition(context, "ALTER TABLE", target.name, skipped=True, target=target)


class _Alterations:
    def __init__(self, context: Context, target: a.TableBinding) -> None:
        self._context = context
        self._target = target
        self._columns = {column.name.lower(): column for column in target.columns}

    def of(self, action: object) -> Alteration | None:
        match action:
            case st.AddColumnAction():
                return self._added(action)
            case st.DropColumnAction():
                return self._dropped(action)
            case st.RenameColumnAction():
                return self._renamed(action)
            case st.SetColumnTypeAction():
                return self._retyped(action)
            case st.DropNotNullAction():
                return self._nullable(action)
            case st.SetDefaultAction():
                return self._defaulted(action)
            case st.DropDefaultAction():
                return self._without_default(action)
            case st.RenameTableAction():
                return self._moved(action)
            case st.BranchAction():
                return action.change
            case st.SetPropertiesAction():
                return SetProperties(constants_of(action.properties))
        raise TypeError(action)

    def _error(self, code: str, message: str, name: st.Identifier, hint: str | None) -> NoReturn:
        self._context.error(code, message, self._context.statement_span(name.span), hint)

    def _column(self, name: st.Identifier) -> str:
        column = self._columns.get(name.value)
        if column is None:
            hint = nearest_column(name.text, [column.name for column in self._target.columns])
            self._error("COLUMN_NOT_FOUND", f"Column '{name.value}' does not exist", name, hint)
        return column.name

    def _retyped(self, action: st.SetColumnTypeAction) -> SetColumnType | SetFieldType:
        if not action.fields:
            return SetColumnType(self._column(action.name), defined_type(action.type))
        names = [part.value for part in (action.name, *action.fields)]
        if names[0] not in self._columns:
            self._refuse("COLUMN_NOT_FOUND", f"Column '{'.'.join(names)}' does not exist")
        return fields.retyped(
            self._refuse, self._columns[names[0]], names, defined_type(action.type)
        )

    def _refuse(self, code: str, message: str, *, has_position: bool = True) -> NoReturn:
        """Raise an error; Trino locates it at the whole statement, or nowhere."""
        hint = (
            "Choose another name."
            if code == "COLUMN_ALREADY_EXISTS"
            else "DESCRIBE shows the columns, and the fields of rows."
        )
        self._context.error(
            code, message, self._context.statement_span() if has_position else None, hint
        )

    def _whole(self, name: st.Identifier) -> ColumnMetadata:
        column = self._columns.get(name.value)
        if column is None:
            self._refuse("COLUMN_NOT_FOUND", f"Column '{name.value}' does not exist")
        return column

    def _added(self, action: st.AddColumnAction) -> AddColumn | AddField | None:
        if action.within:
            column, names = self._whole(action.within[0]), [part.value for part in action.within]
            if action.position != "LAST":
                self._refuse(
                    "NOT_SUPPORTED",
                    "Specifying column position is not supported for nested columns",
                )
            new, field_type = action.column.name.value, defined_type(action.column.type)
            return fields.added(
                self._refuse, column, names, new, field_type, if_not_exists=action.if_not_exists
            )
        name = action.column.name
        defined_type(action.column.type)
        if name.value in self._columns:
            if action.if_not_exists:
                return None
            self._error(
                "COLUMN_ALREADY_EXISTS",
                f"Column '{name.value}' already exists",
                name,
                _OTHER_COLUMN,
            )
        after = "" if action.after is None else self._column(action.after)
        refuse_comment(
            self._context,
            self._target.catalog,
            action.column.comment,
            "adding columns with comments",
        )
        return AddColumn(
            defined_column(self._context, self._target.catalog, action.column),
            ColumnPosition(action.position),
            after,
        )

    def _dropped(self, action: st.DropColumnAction) -> DropColumn | DropField | None:
        if action.fields and (action.name.value in self._columns or not action.if_exists):
            names = [part.text for part in action.fields]
            return fields.dropped(
                self._refuse, self._whole(action.name), names, if_exists=action.if_exists
            )
        if action.if_exists and action.name.value not in self._columns:
            return None
        column = self._column(action.name)
        if len(self._columns) == 1:
            self._error(
                "NOT_SUPPORTED",
                "Cannot drop the only column in a table",
                action.name,
                "DROP TABLE drops the table.",
            )
        return DropColumn(column)

    def _renamed(self, action: st.RenameColumnAction) -> RenameColumn | RenameField | None:
        if action.fields and (action.name.value in self._columns or not action.if_exists):
            names = [part.value for part in (action.name, *action.fields)]
            whole = self._whole(action.name)
            return fields.renamed(
                self._refuse, whole, names, action.to.value, if_exists=action.if_exists
            )
        if action.if_exists and action.name.value not in self._columns:
            return None
        column = self._column(action.name)
        if action.to.value in self._columns and action.to.value != action.name.value:
            self._error(
                "COLUMN_ALREADY_EXISTS",
                f"Column '{action.to.value}' already exists",
                action.to,
                _OTHER_COLUMN,
            )
        return RenameColumn(column, action.to.text)

    def _nullable(self, action: st.DropNotNullAction) -> DropNotNull:
        column = self._column(action.name)
        if self._columns[action.name.value].nullable:
            self._error(
                "NOT_SUPPORTED",
                "Column is already nullable",
                action.name,
                "Remove the statement.",
            )
        return DropNotNull(column)

    def _defaulted(self, action: st.SetDefaultAction) -> SetDefault:
        column = self._column(action.name)
        column_type = self._columns[action.name.value].type
        default = default_text(
            self._context, self._target.catalog, action.name, column_type, action.default
        )
        return SetDefault(column, default or "NULL")

    def _without_default(self, action: st.DropDefaultAction) -> DropDefault:
        column = self._column(action.name)
        if self._columns[action.name.value].default is None:
            self._error(
                "GENERIC_USER_ERROR",
                f"Column '{action.name.value}' does not have a default value",
                action.name,
                "Remove the statement.",
            )
        return DropDefault(column)

    def _moved(self, action: st.RenameTableAction) -> RenameTable:
        context, span = self._context, self._context.statement_span(action.to.span)
        name = context.renamed(action.to, span)
        qualified = name_in_sql(name)
        if name[0] != self._target.catalog:
            context.refuse(
                "Table rename across catalogs is not supported",
                span,
                "CREATE TABLE AS copies a table.",
            )
        if context.view(action.to, span) is not None:
            context.error(
                "GENERIC_USER_ERROR",
                f"Target table '{qualified}' does not exist, but a view with that name exists.",
                span,
            )
        there = context.lookup(action.to)
        if there is not None and there.dataframe is None:
            context.error(
                "TABLE_ALREADY_EXISTS",
                f"Target table '{qualified}' already exists",
                span,
                "Choose another name, or drop the object with this name.",
            )
        return RenameTable(SchemaTableName(*name[1:]))
