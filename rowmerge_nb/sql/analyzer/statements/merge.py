"""Analyzes MERGE in Trino's order: target, source, ON, then the clauses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.base.names import quoted_where_needed
from rowmerge_nb.base.words import join, plural
from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.spi.types import UNKNOWN
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.expressions.calls import ExpressionSite
from rowmerge_nb.sql.analyzer.expressions.conversion_notices import note_stored_zone
from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
from rowmerge_nb.sql.analyzer.queries.query import QueryAnalyzer
from rowmerge_nb.sql.analyzer.scope import Scope, ScopeField
from rowmerge_nb.sql.analyzer.statements.assigned_values import assigned_value, refusing
from rowmerge_nb.sql.analyzer.statements.column_defaults import default_value
from rowmerge_nb.sql.analyzer.statements.evolved_types import (
    evolved_type,
    new_type,
    type_at,
    type_changes,
    type_losses,
)
from rowmerge_nb.sql.analyzer.statements.fields_by_name import (
    FieldMismatchError,
    MissingFields,
    with_fields_of,
)
from rowmerge_nb.sql.analyzer.statements.misfits import Misfit
from rowmerge_nb.sql.analyzer.statements.returning import analyze_returning, typed
from rowmerge_nb.sql.analyzer.statements.terms import typed_condition
from rowmerge_nb.sql.analyzer.statements.updatable_views import (
    ChangedTable,
    both,
    changed_table,
)
from rowmerge_nb.sql.parser.column_names import column_in_sql, column_list, nearest_column
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.domains import conjuncts, key_column, same_values
from rowmerge_nb.sql.typed.type_rules import is_assignable, is_float, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rowmerge_nb.spi.handles import ColumnHandle
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.queries.relation import RelationResult

_ON: Final = "The MERGE predicate must evaluate to a boolean: actual type {}"
_CONDITION: Final = "WHERE clause predicate must evaluate to a boolean: actual type {}"


def analyze_merge(context: Context, statement: st.Statement) -> a.MergeAnalysis:
    assert isinstance(statement, st.Merge)
    return _MergeAnalyzer(context, statement).analyze()


class _MergeAnalyzer:
    def __init__(self, context: Context, statement: st.Merge) -> None:
        self.context = context
        self.statement = statement
        self.changed = self._target()
        self.target = self.changed.table
        self.named_queries = QueryAnalyzer(context).visible(
            statement.named_queries, recursive=statement.recursive
        )
        name = statement.target_alias
        self.qualifier = (
            (name.value,) if name else tuple(part.value for part in statement.target.parts)
        )
        self.base = self._fields(self.target.columns)
        self.fields = self.changed.named(self.base)
        """The same fields under the names that the statement can use."""
        self.order = list(self.changed.order)
        self.view_condition = self.changed.condition(self.base)
        self.hidden_fields = tuple(
            replace(field, is_hidden=True) for field in self._fields(self.target.hidden_columns)
        )
        self.computed = self.changed.computed_fields(self.base)
        self.visible = (*self.fields, *self.computed, *self.hidden_fields)

    def analyze(self) -> a.MergeAnalysis:
        statement, context = self.statement, self.context
        relation = QueryAnalyzer(context, named_queries=self.named_queries).relation(
            statement.source
        )
        source = self.source = self._source(relation)
        offered = tuple(field for field in relation.fields if not field.is_hidden)
        self.offered = offered
        added = () if statement.evolution is None else self._evolve(statement.evolution, offered)
        # Columns that the statement adds are assigned and returned; no expression can read them.
        both = (*self.visible, *relation.fields)
        on = self._on(both)
        checks = replace(self.changed, table=self.target).checks(
            context, context.statement_span(statement.target.span)
        )
        clauses = tuple(
            (
                self._by_source(clause, both)
                if clause.by_source
                else self._clause(clause, both, offered)
                if clause.matched
                else self._unmatched(clause, both, offered)
            )
            for clause in statement.clauses
        )
        returning = self._returning(relation) if statement.returning else None
        condition = self.changed.with_where(
            self.view_condition, typed_condition(context, statement.on, on, "in the ON condition")
        )
        return a.MergeAnalysis(
            statement.text,
            tuple(context.bindings.values()),
            tuple(context.notices),
            self.target,
            (statement.target_alias or statement.target.parts[-1]).text,
            tuple(as_field(f) for f in self.base),
            clauses,
            source,
            condition,
            *self._equalities(condition.tree, relation),
            added=added,
            type_changes=self._type_changes(),
            returning=returning,
            checks=checks,
            hidden_fields=tuple(map(as_field, self.hidden_fields)),
            origins=tuple(context.origins),
        )

    def _on(self, both: tuple[ScopeField, ...]) -> e.Typed:
        on = self.statement.on
        analyzer = ExpressionAnalyzer(
            self.context,
            Scope(both, barrier=True),
            ExpressionSite("MERGE ON clause"),
            named_queries=self.named_queries,
        )
        condition = analyzer.boolean(on, _ON)
        analyzer.check_reflected(condition, on, "the ON of MERGE")
        return condition

    def _returning(self, relation: RelationResult) -> a.Returning:
        return analyze_returning(
            self.context,
            self.statement.returning,
            self.fields,
            () if self.statement.prefers_target else relation.fields,
            self.named_queries,
            self.statement.versions,
            self.changed if self.changed.is_view else None,
        )

    def _fields(self, columns: Sequence[ColumnMetadata | ColumnHandle]) -> tuple[ScopeField, ...]:
        return tuple(
            ScopeField(
                self.context.symbols.new(c.name), c.name, c.type, self.qualifier, target=True
            )
            for c in columns
        )

    def _target(self) -> ChangedTable:
        name = self.statement.target
        changed = changed_table(self.context, name, "Merging into views is not supported")
        self.context.refuse_frame(
            changed.table, "it can be a source but not the target of MERGE", name.span
        )
        if changed.is_view and self.statement.evolution is not None:
            self.context.refuse(
                "WITH SCHEMA EVOLUTION is not supported for views",
                self.statement.evolution,
                f"Name the table: {changed.table.qualified}.",
            )
        return changed

    def _source(self, relation: RelationResult) -> a.MergeSource:
        node = self.statement.source
        alias = self._alias(node)
        fields = tuple(as_field(field) for field in relation.fields if field.refusal is None)
        return a.MergeSource(
            fields, node.span.shown(self.context.text), alias, relation.tree, relation.binding
        )

    def _alias(self, node: s.Relation) -> str | None:
        if isinstance(node, s.Aliased):
            return node.alias.text
        return node.name.parts[-1].text if isinstance(node, s.Table) else None

    # -- schema evolution

    def _evolve(self, span: st.Span, source: tuple[ScopeField, ...]) -> tuple[ColumnMetadata, ...]:
        """Add the source's columns that the clauses use to the target: all of them for ``*``, as in
        Spark and Delta.
        """
        context, target = self.context, self.target
        store = context.tables.store(target.catalog)
        if not store.evolves_tables:
            context.refuse(
                f"Catalog '{target.catalog}' cannot add columns in a MERGE: its store does not"
                " commit columns and rows together",
                span,
                "Add the columns by ALTER TABLE ... ADD COLUMN, and remove WITH SCHEMA EVOLUTION.",
            )
        assigned_names = self._assigned_names()
        retyped = self._retyped(source) if store.evolves_types else {}
        known_names = {column.name.lower() for column in target.columns}
        new: dict[str, ColumnMetadata] = {}
        for field in source:
            name = (field.name or "").lower()
            assignment = assigned_names.get(name, assigned_names.get("*"))
            if not name or name in known_names or assignment is None:
                continue
            if name in new:
                context.error(
                    "AMBIGUOUS_NAME",
                    f"Column '{name}' is ambiguous in the source",
                    assignment,
                    "Give one of them another name: USING (SELECT ... AS ...).",
                )
            context.check_read((field,), assignment)
            if UNKNOWN in parts_of(field.type):
                context.error(
                    "COLUMN_TYPE_UNKNOWN",
                    f"Column '{name}' of the source has no type, so it cannot be added"
                    f" to {target.display}",
                    assignment,
                    "Write CAST(NULL AS type).",
                )
            new[name] = ColumnMetadata(str(field.name), new_type(field.type))
        if new or retyped:
            changes = (*retyped.values(), *new.values())
            self.target = context.evolved(target, changes, span)
        count = len(target.columns)
        added = self.target.columns[count:]
        self.base = (
            *(
                replace(field, type=column.type)
                for field, column in zip(self.base, self.target.columns, strict=False)
            ),
            *self._fields(added),
        )
        self.fields = self.base
        self.visible = (*self.base[:count], *self.hidden_fields)
        return added

    def _retyped(self, source: tuple[ScopeField, ...]) -> dict[str, ColumnMetadata]:
        source_types = {field.name.lower(): field.type for field in source if field.name}
        names = {
            column.name.lower()
            for clause in self.statement.clauses
            for column in self.target.columns
            if not clause.by_source and self._takes(clause, column.name.lower(), source)
        }
        types: dict[str, Type] = {}
        for column in self.target.columns:
            name = column.name.lower()
            types[name] = (
                evolved_type(column.type, source_types[name]) if name in names else column.type
            )
            for assigned_type in self._assigned_fields(name, source):
                types[name] = evolved_type(types[name], assigned_type)
        return {
            name: replace(column, type=types[name])
            for column in self.target.columns
            if types[name := column.name.lower()] != column.type
        }

    def _assigned_fields(self, name: str, source: tuple[ScopeField, ...]) -> Iterator[Type]:
        """Yield for each ``SET c.f = s.c.f`` of a column a row with that field alone."""
        for clause in self.statement.clauses:
            for column, value in zip(clause.columns, clause.values, strict=False):
                if clause.by_source or column.value != name or not isinstance(value, s.FieldValues):
                    continue
                for path, node in value.fields:
                    labels = [label.value for label in path]
                    if not isinstance(node, s.Name) or labels != [
                        part.value for part in node.parts[-len(path) :]
                    ]:
                        continue
                    whole = replace(node, parts=node.parts[: -len(path)])
                    field = self._same_column(column, whole, source)
                    if field is not None and (part := type_at(labels, field.type)) is not None:
                        yield part

    def _type_changes(self) -> tuple[tuple[str, str, str], ...]:
        before = self.changed.table.columns
        return tuple(
            change
            for old, new in zip(before, self.target.columns, strict=False)
            for change in type_changes(quoted_where_needed(new.name), old.type, new.type)
        )

    def _takes(self, clause: st.MergeClause, name: str, source: tuple[ScopeField, ...]) -> bool:
        if clause.star is not None:
            by_name = clause.matching is not st.StarMatching.POSITIONS
            return by_name and [(field.name or "").lower() for field in source].count(name) == 1
        return any(
            column.value == name and self._same_column(column, value, source) is not None
            for column, value in zip(clause.columns, clause.values, strict=False)
        )

    def _same_column(
        self, column: st.Identifier, value: s.Expression, source: tuple[ScopeField, ...]
    ) -> ScopeField | None:
        if not isinstance(value, s.Name) or len(value.parts) < 2:
            return None
        parts = [part.value for part in value.parts]
        if parts[-1] != column.value or any(field.matches(parts) for field in self.fields):
            return None
        return next((field for field in source if field.matches(parts)), None)

    def _assigned_names(self) -> dict[str, st.Span]:
        clauses = [clause for clause in self.statement.clauses if not clause.by_source]
        stars = [("*", clause.star) for clause in clauses if clause.star is not None]
        return dict(
            [
                *stars,
                *((column.value, column.span) for clause in clauses for column in clause.columns),
            ]
        )

    # -- clauses

    def _by_source(self, clause: st.MergeClause, both: tuple[ScopeField, ...]) -> a.ClauseAnalysis:
        try:
            return self._clause(clause, self.visible, ())
        except AnalysisError as error:
            if error.code == "COLUMN_NOT_FOUND" and self._is_right(clause, both):
                error.hint = (
                    "WHEN NOT MATCHED BY SOURCE applies to rows without a source row;"
                    " it sees only the target's columns."
                )
            raise

    def _unmatched(
        self, clause: st.MergeClause, both: tuple[ScopeField, ...], source: tuple[ScopeField, ...]
    ) -> a.ClauseAnalysis:
        try:
            return self._clause(clause, both, source)
        except AnalysisError as error:
            if error.code == "AMBIGUOUS_NAME" and (names := _ambiguous_names(clause, both)):
                all_names = f", for all {len(names)} such names of this clause" if names[1:] else ""
                error.hint = (
                    f"NOT MATCHED sees only the source's row. Write {', '.join(names)}{all_names}."
                )
            raise

    def _is_right(self, clause: st.MergeClause, fields: tuple[ScopeField, ...]) -> bool:
        try:
            self._clause(clause, fields, ())
        except AnalysisError:
            return False
        return True

    def _clause(
        self, clause: st.MergeClause, fields: tuple[ScopeField, ...], source: tuple[ScopeField, ...]
    ) -> a.ClauseAnalysis:
        indexes = self._columns(clause, source)
        scope = Scope(fields)
        condition = self._condition(clause, scope)
        assigned = (
            self._assigned(clause, scope, source, indexes)
            if clause.star is None
            else self._positioned(clause.star, source)
            if clause.matching is st.StarMatching.POSITIONS
            else self._starred(clause.star, source, indexes, clause.operation)
        )
        if clause.operation is Operation.INSERT:
            self._check_defaults(clause, indexes)
        values = self._stored(clause, indexes, assigned)
        text = clause.span.shown(self.context.text)
        origin = self.context.origin(clause.span)
        return a.ClauseAnalysis(
            clause.number,
            clause.matched,
            clause.operation,
            condition,
            values,
            text,
            origin,
            clause.by_source,
            tuple(indexes),
            clause.head.shown(self.context.text),
        )

    def _assigned(
        self,
        clause: st.MergeClause,
        scope: Scope,
        source: tuple[ScopeField, ...],
        indexes: Sequence[int],
    ) -> list[tuple[e.Typed, st.Span]]:
        word = {Operation.UPDATE: "SET", Operation.INSERT: "INSERT VALUES"}.get(
            clause.operation, ""
        )
        site = ExpressionSite(f"MERGE {word}".strip())
        columns = [self.base[index] for index in indexes]
        assigned = [
            (
                assigned_value(
                    ExpressionAnalyzer(
                        self.context,
                        scope,
                        site,
                        prefers_target=prefers,
                        named_queries=self.named_queries,
                    ),
                    self.target,
                    column,
                    value,
                ),
                value.span,
            )
            for prefers, value, column in zip(
                self._preferences(clause), clause.values, columns, strict=True
            )
        ]
        if self.statement.evolution is None or not clause.columns:
            return assigned
        return [
            (
                (
                    value
                    if self._same_column(name, node, source) is None
                    else self._with_fields(value, column, span, clause.operation)
                ),
                span,
            )
            for (value, span), name, node, column in zip(
                assigned, clause.columns, clause.values, columns, strict=True
            )
        ]

    def _check_defaults(self, clause: st.MergeClause, indexes: Sequence[int]) -> None:
        omitted = [
            column
            for index, column in enumerate(self.target.columns)
            if index not in indexes and (column.insert_default or "NULL").upper() != "NULL"
        ]
        if not omitted:
            return
        names = join([column.name for column in omitted])
        defaults = join([f"{column.name} {column.insert_default}" for column in omitted])
        self.context.notice(
            f"{names} of a new row will be NULL: a MERGE does not use the defaults of"
            f" a database, nor does Trino ({defaults}). To store them, write them as values of"
            " the clause.",
            clause.head,
        )

    def _condition(self, clause: st.MergeClause, scope: Scope) -> a.TypedExpression | None:
        view_condition = self.view_condition if clause.by_source else None
        words = f"in the condition of clause {clause.number}"
        if clause.condition is None and clause.error is None:
            if view_condition is None:
                return None
            condition = typed(self.context, view_condition, clause.head, words)
            return replace(condition, text=self.changed.where)
        tree = view_condition
        if clause.condition is not None:
            prefers = self._prefers if self.statement.prefers_target else None
            analyzer = ExpressionAnalyzer(
                self.context,
                scope,
                ExpressionSite("WHEN condition of MERGE"),
                prefers_target=prefers,
                named_queries=self.named_queries,
            )
            tree = analyzer.boolean(clause.condition, _CONDITION)
            if clause.error is None:
                condition = typed_condition(self.context, clause.condition, tree, words)
                return self.changed.with_where(view_condition, condition)
            tree = both(view_condition, tree)
        head = clause.head.shown(self.context.text)
        message = clause.error or f"A row has reached the clause {head}"
        failure = refusing(tree, message, "CONSTRAINT_VIOLATION")
        span = clause.span if clause.condition is None else clause.condition.span
        return typed(self.context, failure, span, words)

    def _prefers(self, name: str) -> bool:
        return any(field.name == name for field in (*self.fields, *self.computed))

    def _preferences(self, clause: st.MergeClause) -> list[Callable[[str], bool] | None]:
        """Return for each value which ambiguous names are the target's, as in Trino's documentation."""
        if self.statement.prefers_target:
            return [self._prefers] * len(clause.values)
        if clause.operation is Operation.UPDATE and self.context.era is Era.DOCUMENTS:
            return [column.value.__eq__ for column in clause.columns]
        return [None] * len(clause.values)

    def _positioned(
        self, star: st.Span, source: tuple[ScopeField, ...]
    ) -> list[tuple[e.Typed, st.Span]]:
        if len(source) != len(self.order):
            self.context.error(
                "MISMATCHED_COLUMN_COUNT",
                f"{self.target.display} has {plural(len(self.order), 'column')}, and the source"
                f" {plural(len(source), 'column')}",
                star,
                "Without a list, columns are taken in their order; write the columns, or BY NAME.",
            )
        self.context.check_read(source, star)
        return [(e.Column(field.type, field.symbol), star) for field in source]

    def _starred(
        self,
        star: st.Span,
        source: tuple[ScopeField, ...],
        indexes: Sequence[int],
        operation: Operation,
    ) -> list[tuple[e.Typed, st.Span]]:
        values: list[tuple[e.Typed, st.Span]] = []
        for field in (self.fields[index] for index in indexes):
            matching = [
                f
                for f in source
                if f.name is not None
                and field.name is not None
                and f.name.lower() == field.name.lower()
            ]
            if len(matching) != 1:
                name = str(field.name).lower()
                code = "AMBIGUOUS_NAME" if matching else "COLUMN_NOT_FOUND"
                problem = (
                    "is ambiguous in the source"
                    if matching
                    else "of the target cannot be found in the source"
                )
                hint = (
                    f"* takes every column of {self.target.display} from the source by its name;"
                    " the source has: "
                )
                hint += f"{', '.join(f.name for f in source if f.name)}."
                self.context.error(code, f"Column '{name}' {problem}", star, hint)
            self.context.check_read(matching, star)
            value = e.Column(matching[0].type, matching[0].symbol)
            values.append((self._with_fields(value, field, star, operation), star))
        target_names = {str(field.name).lower() for field in self.fields}
        ignored = [f.name for f in source if f.name and f.name.lower() not in target_names]
        if ignored:
            self.context.notice(
                f"* ignores columns that {self.target.display} does not have: {', '.join(ignored)}",
                star,
            )
        return values

    def _with_fields(
        self, value: e.Typed, field: ScopeField, span: st.Span, operation: Operation
    ) -> e.Typed:
        """Return a source's value with the fields of a column, matched by name; fields that it lacks are
        kept.
        """
        missing = None
        if self.statement.evolution is not None:
            updates = operation is Operation.UPDATE
            missing = MissingFields(e.Column(field.type, field.symbol) if updates else None)
        try:
            return with_fields_of(
                value, field.type, str(field.name), self.context.symbols.new, missing
            )
        except FieldMismatchError as mismatch:
            self._refuse_fields(mismatch, span)

    def _refuse_fields(self, mismatch: FieldMismatchError, star: st.Span) -> NoReturn:
        if self.statement.evolution is not None:
            self.context.refuse(
                f"WITH SCHEMA EVOLUTION cannot add the field. {mismatch}",
                star,
                "Add the field by ALTER TABLE ... ADD COLUMN, or CAST the value to the column's"
                " type.",
            )
        self.context.error(
            "TYPE_MISMATCH",
            str(mismatch),
            star,
            "Fields are matched by name. CAST the value in the source to the column's type, or"
            " write the columns: UPDATE SET column = value.",
        )

    def _columns(self, clause: st.MergeClause, source: tuple[ScopeField, ...]) -> list[int]:
        if clause.operation in {Operation.DELETE, Operation.NONE}:
            return []
        if clause.defaults:
            return []
        if clause.star is not None:
            if clause.matching is st.StarMatching.POSITIONS:
                self.changed.require_list(self.context, clause.star)
                return list(self.order)
            if clause.matching is st.StarMatching.EXISTING:
                return self._named_columns(clause.star, source)
            if self.statement.evolution is None:
                return list(self.order)
            # Columns that the source lacks are unchanged, or NULL in new rows.
            names = {field.name.lower() for field in source if field.name is not None}
            return [
                index
                for index, field in enumerate(self.fields)
                if (field.name or "").lower() in names
            ]
        columns = clause.columns
        if not columns:
            self.changed.require_list(self.context, clause.span)
            self._check_count(clause, len(self.order))
            return list(self.order)
        by_name = {
            field.name.lower(): index
            for index, field in enumerate(self.fields)
            if field.name is not None
        }
        indexes: dict[int, None] = {}
        for column in columns:
            index = by_name.get(column.value)
            if index is None:
                self.changed.refuse_computed(self.context, column)
                self._unknown_column(column, [c.name for c in self.target.columns])
            if index in indexes:
                self.context.error(
                    "DUPLICATE_COLUMN_NAME",
                    f"Merge column name is specified more than once: {column.value}",
                    self.context.statement_span(column.span),
                )
            indexes[index] = None
        self._check_count(clause, len(columns))
        return list(indexes)

    def _named_columns(self, star: st.Span, source: tuple[ScopeField, ...]) -> list[int]:
        names = {field.name.lower() for field in source if field.name is not None}
        indexes = [i for i, field in enumerate(self.fields) if (field.name or "").lower() in names]
        taken_names = {str(self.fields[index].name).lower() for index in indexes}
        unknown = sorted(names - taken_names)
        if unknown:
            self.context.error(
                "COLUMN_NOT_FOUND",
                f"Column '{unknown[0]}' of the source cannot be found in {self.target.display}",
                star,
                "Select the target's columns in the source, or write the columns.",
            )
        return indexes

    def _check_count(self, clause: st.MergeClause, count: int) -> None:
        values = len(clause.values)
        if values == count:
            return
        message = f"INSERT has {plural(count, 'column')} but {plural(values, 'value')}"
        hint = (
            "Every column needs one value."
            if clause.columns
            else f"Without a list INSERT fills all columns of {self.target.display}."
        )
        first, last = clause.values[0].span, clause.values[-1].span
        self.context.error("MISMATCHED_COLUMN_COUNT", message, replace(first, end=last.end), hint)

    def _unknown_column(self, column: st.Identifier, names: list[str]) -> NoReturn:
        hint = (
            nearest_column(column.value, names)
            or f"{self.target.display} has the columns {column_list(names)}."
        )
        if self.statement.evolution is not None:
            hint = (
                "WITH SCHEMA EVOLUTION adds columns that the source has under the same name."
                f" {hint}"
            )
        self.context.error(
            "COLUMN_NOT_FOUND",
            f"Merge column name does not exist in target table: {column.value}",
            self.context.statement_span(column.span),
            hint,
        )

    def _stored(
        self, clause: st.MergeClause, indexes: list[int], assigned: list[tuple[e.Typed, st.Span]]
    ) -> tuple[a.TypedExpression | None, ...]:
        assigned_values = [value for value, _ in assigned]
        column_types = [self.fields[index].type for index in indexes]
        if not all(
            is_assignable(value.type, column_type)
            for column_type, value in zip(column_types, assigned_values, strict=True)
        ):
            table = ", ".join(map(str, column_types))
            actual = ", ".join(str(value.type) for value in assigned_values)
            wrong = first_unfit(column_types, assigned_values)
            field, (value, span) = self.fields[indexes[wrong]], assigned[wrong]
            is_star = clause.star is not None
            text = self._starred_text(value) if is_star else span.of(self.context.text)
            misfit = Misfit(field.name or "", field.type, value, text, is_star)
            self.context.error(
                "TYPE_MISMATCH",
                f"MERGE table column types don't match for MERGE case {clause.number}, SET"
                f" expressions: Table: [{table}], Expressions: [{actual}]",
                replace(
                    clause.span,
                    end=clause.span.start + len("WHEN"),
                    about=span,
                ),
                misfit.hint(self.source),
            )
        values: list[a.TypedExpression | None] = [None] * len(self.fields)
        for index, (value, span) in zip(indexes, assigned, strict=True):
            self._note_loss(self.fields[index], value)
            column_type = self.fields[index].type
            words = f"in the value for column '{self.fields[index].name}' of clause {clause.number}"
            if isinstance(value, e.Column):
                text = (
                    self._starred_text(value)
                    if clause.star is not None
                    else span.of(self.context.text)
                )
                types = (value.type, column_type)
                note_stored_zone(self.context, span, text, types, str(self.fields[index].name))
            values[index] = typed(
                self.context, self.context.stored(value, column_type), span, words
            )
        if clause.star is not None:
            # Reports show the source's column instead of the star.
            alias = self._alias(self.statement.source)
            names = {f.symbol: f.name for f in self.offered}
            for index in indexes:
                expression, name = values[index], self.fields[index].name
                if clause.matching is st.StarMatching.POSITIONS:
                    name = names[self.offered[index].symbol]
                values[index] = expression and replace(
                    expression, text=f"{alias}.{name}" if alias else str(name)
                )
        if clause.operation is Operation.INSERT:
            self._default(clause, values)
        return tuple(values)

    def _note_loss(self, field: ScopeField, value: e.Typed) -> None:
        if self.statement.evolution is None or isinstance(value, e.Constant):
            return
        path = quoted_where_needed(field.name or "")
        for part, column_type, value_type, verb in type_losses(path, field.type, value.type):
            self.context.notice(
                f"{part} keeps the type {column_type}: values of {value_type} are {verb}. WITH SCHEMA"
                " EVOLUTION does not change it to their type.",
                self.statement.evolution,
            )

    def _starred_text(self, value: e.Typed) -> str:
        """Return a value of ``*`` as a list of columns would have it; "" for a row of fields."""
        names = {field.symbol: field.name or "" for field in self.offered}
        if not isinstance(value, e.Column) or value.symbol not in names:
            return ""
        alias, name = self._alias(self.statement.source), column_in_sql(names[value.symbol])
        return f"{alias}.{name}" if alias else name

    def _default(self, clause: st.MergeClause, values: list[a.TypedExpression | None]) -> None:
        span = self.context.statement_span(self.statement.target.span)
        for index, column in enumerate(self.target.columns):
            if values[index] is None and column.default is not None:
                value = default_value(self.context, self.target, column, span)
                words = f"in the default of column '{column.name}' of clause {clause.number}"
                values[index] = a.TypedExpression(
                    self.context.placed(value, clause.span, words), column.default
                )

    # -- ON

    def _equalities(
        self, on: e.Typed, relation: RelationResult
    ) -> tuple[tuple[tuple[e.Typed, e.Typed], ...], tuple[tuple[str, str], ...]]:
        target, source = (
            {f.symbol for f in fields}
            for fields in ((*self.fields, *self.hidden_fields), relation.fields)
        )
        pairs, columns = [], []
        for part in conjuncts(on):
            if not (
                isinstance(part, e.Apply)
                and part.name == "="
                and not is_float(part.arguments[0].type)
            ):
                continue
            if any(
                isinstance(inner, e.Subquery) for inner in e.walk(part)
            ) or not e.is_deterministic(part):
                continue
            target_side, source_side = part.arguments
            reads = [e.references(side) for side in (target_side, source_side)]
            if reads[0] and reads[1] and reads[0] <= source and reads[1] <= target:
                target_side, source_side = source_side, target_side
            elif not (reads[0] and reads[1] and reads[0] <= target and reads[1] <= source):
                continue
            # An error in a key is reported as an error of the condition.
            pairs.append(
                (replace(target_side, origin=on.origin), replace(source_side, origin=on.origin))
            )
            plain = [key_column(side) for side in (target_side, source_side)]
            if (
                plain[0] is not None
                and plain[1] is not None
                and same_values(plain[0].type, plain[1].type)
            ):
                columns.append((plain[0].symbol, plain[1].symbol))
        return tuple(pairs), tuple(columns)


def first_unfit(column_types: Sequence[Type], values: Sequence[e.Typed]) -> int:
    return next(
        i
        for i, (column_type, value) in enumerate(zip(column_types, values, strict=True))
        if not is_assignable(value.type, column_type)
    )


def as_field(field: ScopeField) -> a.Field:
    return a.Field(
        field.symbol, field.name, field.type, field.qualifier[-1] if field.qualifier else None
    )


def _ambiguous_names(clause: st.MergeClause, fields: Sequence[ScopeField]) -> list[str]:
    """Return the clause's bare names that both sides have, as columns of the source."""
    names: dict[str, str] = {}
    for node in s.walk((clause.condition, clause.values)):
        if not isinstance(node, s.Name) or len(node.parts) > 1:
            continue
        same = [f for f in fields if f.name and f.name.lower() == node.parts[0].value]
        source = [field for field in same if not field.target and field.qualifier]
        if len(source) == 1 and len(same) > 1:
            name, qualifier = str(source[0].name), source[0].qualifier[-1]
            names[node.parts[0].value] = column_in_sql(name, qualifier)
    return list(names.values())
