"""Analyzes MERGE, in Trino's order: target, source, ON, then per clause its columns, its condition and its values."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.sql import analysis as a
from rowmerge_nb.sql import expressions as e
from rowmerge_nb.sql import statements as st
from rowmerge_nb.sql import syntax as s
from rowmerge_nb.sql.call_analyzer import Place
from rowmerge_nb.sql.expression_analyzer import ExpressionAnalyzer
from rowmerge_nb.sql.queries import QueryAnalyzer
from rowmerge_nb.sql.scope import Scope, ScopeField
from rowmerge_nb.sql.spark import print_spark
from rowmerge_nb.sql.types import common_type, is_float

if TYPE_CHECKING:
    from rowmerge_nb.sql.context import Context
    from rowmerge_nb.sql.relations import RelationResult

__all__ = ["analyze_merge", "as_field", "typed"]

_ON: Final = "The MERGE predicate must evaluate to a boolean: actual type {}"
_CONDITION: Final = "WHERE clause predicate must evaluate to a boolean: actual type {}"


def analyze_merge(context: Context, statement: st.Statement) -> a.MergeAnalysis:
    """Analyze a MERGE.

    Raises:
        AnalysisError: the first error in Trino's order of checks.
    """
    assert isinstance(statement, st.Merge)
    return _MergeAnalyzer(context, statement).analyze()


def typed(context: Context, value: e.Typed, node: s.Expression) -> a.TypedExpression:
    """Give the finished form of an analyzed expression."""
    text = node.span.of(context.text)
    return a.TypedExpression(
        value.type, print_spark(value), text, node.span, e.references(value), e.is_deterministic(value), value
    )


class _MergeAnalyzer:
    def __init__(self, context: Context, statement: st.Merge) -> None:
        self.context = context
        self.statement = statement
        self.target = self._target()
        name = statement.target_alias
        qualifier = (name.value,) if name else tuple(part.value for part in statement.target.parts)
        self.fields = tuple(
            ScopeField(context.symbols.new(c.name), c.name, c.type, qualifier, target=True) for c in self.target.columns
        )

    def analyze(self) -> a.MergeAnalysis:
        statement, context = self.statement, self.context
        relation = QueryAnalyzer(context).relation(statement.source)
        source = self._source(relation)
        both = (*self.fields, *relation.fields)
        on_analyzer = ExpressionAnalyzer(context, Scope(both, barrier=True), Place("MERGE ON clause"))
        on = on_analyzer.boolean(statement.on, _ON)
        clauses = tuple(self._clause(clause, both) for clause in statement.clauses)
        alias = statement.target_alias.text if statement.target_alias else statement.target.parts[-1].text
        return a.MergeAnalysis(
            statement.text,
            tuple(context.bindings.values()),
            tuple(context.notices),
            self.target,
            alias,
            tuple(as_field(f) for f in self.fields),
            clauses,
            source,
            typed(context, on, statement.on),
            self._equalities(on, relation),
        )

    def _target(self) -> a.TableBinding:
        place = self.context.statement_span()
        target = self.context.table(self.statement.target, place)
        if target.dataframe is not None:
            said = f"'{target.display}' is a DataFrame of the notebook; it can be a source but not the target of MERGE"
            self.context.error("NOT_SUPPORTED", said, self.statement.target.span, "Register it as a table first.")
        return target

    def _source(self, relation: RelationResult) -> a.Source:
        node = self.statement.source
        alias = node.alias.text if isinstance(node, s.Aliased) else None
        if alias is None and isinstance(node, s.Table):
            alias = node.name.parts[-1].text
        spark = None
        if relation.binding is None:
            spark = f"SELECT {', '.join(e.quote(f.symbol) for f in relation.fields)} FROM {relation.text}"
        fields = tuple(as_field(f) for f in relation.fields)
        text = node.span.of(self.context.text)
        return a.Source(fields, text, alias, spark, relation.binding, relation.deterministic)

    # -- clauses --------------------------------------------------------------------------------------------------

    def _clause(self, clause: st.MergeClause, fields: tuple[ScopeField, ...]) -> a.ClauseAnalysis:
        indexes = self._columns(clause)
        word = {Operation.UPDATE: "SET", Operation.INSERT: "INSERT VALUES"}.get(clause.operation, "")
        condition = None
        if clause.condition is not None:
            analyzer = ExpressionAnalyzer(self.context, Scope(fields), Place("WHEN condition of MERGE"))
            condition = typed(self.context, analyzer.boolean(clause.condition, _CONDITION), clause.condition)
        # In the documents' own statement SET purchases = purchases + 100.0 means the target's purchases.
        prefer = clause.operation is Operation.UPDATE and self.context.era is Era.DOCUMENTS
        place = Place(f"MERGE {word}".strip())
        analyzed = [
            ExpressionAnalyzer(self.context, Scope(fields), place, prefer_target=prefer).analyze(value) for value in clause.values
        ]
        values = self._stored(clause, indexes, analyzed)
        text = clause.span.of(self.context.text)
        return a.ClauseAnalysis(clause.number, clause.matched, clause.operation, condition, values, text, clause.span)

    def _columns(self, clause: st.MergeClause) -> list[int]:
        """Which table columns the clause assigns, in the order of its values."""
        if clause.operation is Operation.DELETE:
            return []
        columns = clause.columns
        count = len(columns) if columns else len(self.fields)
        if count != len(clause.values):
            self._miscounted(clause, count)
        if not columns:
            return list(range(len(self.fields)))
        names = [field.name.lower() for field in self.fields if field.name is not None]
        indexes: list[int] = []
        for column in columns:
            if column.value not in names:
                self._unknown_column(column, names)
            if names.index(column.value) in indexes:
                said = f"Merge column name is specified more than once: {column.value}"
                self.context.error("DUPLICATE_COLUMN_NAME", said, self.context.statement_span())
            indexes.append(names.index(column.value))
        return indexes

    def _miscounted(self, clause: st.MergeClause, count: int) -> None:
        values = len(clause.values)
        said = f"INSERT has {count} column{'s' * (count != 1)} but {values} value{'s' * (values != 1)}"
        hint = (
            "Every column needs one value."
            if clause.columns
            else f"Without a list INSERT fills all columns of {self.target.display}."
        )
        first, last = clause.values[0].span, clause.values[-1].span
        self.context.error("MISMATCHED_COLUMN_COUNT", said, replace(first, end=last.end), hint)

    def _unknown_column(self, column: st.Identifier, names: list[str]) -> None:
        near = difflib.get_close_matches(column.value, names, n=1, cutoff=0.5)
        hint = f"Did you mean '{near[0]}'?" if near else f"{self.target.display} has the columns {', '.join(names)}."
        said = f"Merge column name does not exist in target table: {column.value}"
        self.context.error("COLUMN_NOT_FOUND", said, self.context.statement_span(), hint)

    def _stored(self, clause: st.MergeClause, indexes: list[int], values: list[e.Typed]) -> tuple[a.TypedExpression | None, ...]:
        kinds = [self.fields[index].type for index in indexes]
        if not all(common_type(kind, value.type) is not None for kind, value in zip(kinds, values, strict=True)):
            table, actual = ", ".join(map(str, kinds)), ", ".join(str(value.type) for value in values)
            said = (
                f"MERGE table column types don't match for MERGE case {clause.number}, SET expressions: "
                f"Table: [{table}], Expressions: [{actual}]"
            )
            self.context.error(
                "TYPE_MISMATCH", said, replace(clause.span, end=clause.span.start + len("WHEN")), self._unfit(indexes, values)
            )
        stored: list[a.TypedExpression | None] = [None] * len(self.fields)
        for index, value, node in zip(indexes, values, clause.values, strict=True):
            kind = self.fields[index].type
            assigned = value if value.type == kind else e.Apply(kind, "cast", (value,), "store")
            stored[index] = typed(self.context, assigned, node)
        return tuple(stored)

    def _unfit(self, indexes: list[int], values: list[e.Typed]) -> str:
        unfit = [
            f"column {self.fields[index].name} is {self.fields[index].type}, its value is {value.type}"
            for index, value in zip(indexes, values, strict=True)
            if common_type(self.fields[index].type, value.type) is None
        ]
        return f"These do not fit: {'; '.join(unfit)}."

    # -- ON -------------------------------------------------------------------------------------------------------

    def _equalities(self, on: e.Typed, relation: RelationResult) -> tuple[tuple[str, str], ...]:
        """The equalities that ON demands between a value of the target's row and one of the source's."""
        target, source = ({f.symbol for f in fields} for fields in (self.fields, relation.fields))
        pairs = []
        for part in _conjuncts(on):
            if not (isinstance(part, e.Apply) and part.name == "=" and not is_float(part.arguments[0].type)):
                continue
            if any(isinstance(inner, e.Subquery) for inner in e.walk(part)) or not e.is_deterministic(part):
                continue
            left, right = part.arguments
            reads = [e.references(side) for side in (left, right)]
            if reads[0] and reads[1] and reads[0] <= target and reads[1] <= source:
                pairs.append((print_spark(left), print_spark(right)))
            elif reads[0] and reads[1] and reads[0] <= source and reads[1] <= target:
                pairs.append((print_spark(right), print_spark(left)))
        return tuple(pairs)


def _conjuncts(node: e.Typed) -> list[e.Typed]:
    if isinstance(node, e.Apply) and node.name == "and":
        return [part for argument in node.arguments for part in _conjuncts(argument)]
    if isinstance(node, e.Apply) and node.name == "=" and all(isinstance(a, e.Apply) and a.name == "row" for a in node.arguments):
        # (a, b) = (c, d) demands that the fields are equal one by one.
        pairs = zip(*(e.children(argument) for argument in node.arguments), strict=True)
        return [part for left, right in pairs for part in _conjuncts(e.Apply(node.type, "=", (left, right)))]
    return [node]


def as_field(field: ScopeField) -> a.Field:
    """Give a column of a scope the form that the planner gets."""
    return a.Field(field.symbol, field.name, field.type, field.qualifier[-1] if field.qualifier else None)
