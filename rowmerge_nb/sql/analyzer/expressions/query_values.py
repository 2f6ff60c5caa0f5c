"""Analyzes subqueries within expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.spi.types import BOOLEAN, UNKNOWN, Type, row_of
from rowmerge_nb.sql.analyzer.expressions.quantified import EXTREMES_OF, quantified
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.readings import outer_columns
from rowmerge_nb.sql.typed.type_rules import common_type, instant

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
    from rowmerge_nb.sql.analyzer.queries.relation import QueryResult


def _outside_lambda(analyzer: ExpressionAnalyzer, node: s.ScalarQuery | s.Exists) -> None:
    if analyzer.site.judged_whole and analyzer.variables:
        analyzer.context.refuse(f"{analyzer.site.name} cannot contain subqueries", node.error_span)


def scalar_query(analyzer: ExpressionAnalyzer, node: s.ScalarQuery) -> e.Typed:
    _outside_lambda(analyzer, node)
    query = analyzer.subquery(node.query)
    sql_type = (
        query.fields[0].type
        if len(query.fields) == 1
        else row_of((f.name, f.type) for f in query.fields)
    )
    return query.as_subquery(sql_type, "scalar")


def exists(analyzer: ExpressionAnalyzer, node: s.Exists) -> e.Typed:
    _outside_lambda(analyzer, node)
    return analyzer.subquery(node.query).as_subquery(BOOLEAN, "exists")


def in_query(analyzer: ExpressionAnalyzer, node: s.InQuery) -> e.Typed:
    if isinstance(node.value, s.RowConstructor):
        membership = _row_in_query(analyzer, node, node.value)
        return e.Apply(BOOLEAN, "not", (membership,)) if node.negated else membership
    value, query, _ = _against_query(analyzer, node, "A row on the left of IN (query)")
    membership = query.as_subquery(BOOLEAN, "in", value)
    return e.Apply(BOOLEAN, "not", (membership,)) if node.negated else membership


def _row_in_query(analyzer: ExpressionAnalyzer, node: s.InQuery, row: s.RowConstructor) -> e.Typed:
    items, query = [analyzer.analyze(item) for item in row.items], analyzer.subquery(node.query)
    common = _common_row(analyzer, node, row_of((None, item.type) for item in items), query)
    if any(e.has_subquery(item) or not e.is_deterministic(item) for item in items):
        analyzer.refuse(
            "A row with subqueries or random values on the left of IN (query) is not supported"
            " by this engine",
            node,
        )
    kinds = [instant(sql_type) for sql_type in common.parameters]
    values = [analyzer.coerce(item, sql_type) for item, sql_type in zip(items, kinds, strict=True)]
    return query.has_row(
        values,
        alike=not outer_columns(query.tree) and (node.negated or node not in analyzer.row_filters),
    )


def quantified_query(analyzer: ExpressionAnalyzer, node: s.Quantified) -> e.Typed:
    every = node.quantifier == "ALL"
    if node.operator == ("<>" if every else "="):
        membership = s.InQuery(node.span, node.value, node.word, node.query, every)
        analyzer.row_filters += (membership,) if node in analyzer.row_filters else ()
        return in_query(analyzer, membership)
    form = f"{node.operator} {node.quantifier} (query)"
    value, query, sql_type = _against_query(analyzer, node, f"A row on the left of {form}")
    if sql_type.base not in EXTREMES_OF:
        analyzer.refuse(
            f"{form} of values of type {sql_type} is not supported by this engine", node
        )
    return quantified(node.operator, value, query, sql_type, every=every)


def _against_query(
    analyzer: ExpressionAnalyzer, node: s.InQuery | s.Quantified, row: str
) -> tuple[e.Typed, QueryResult, Type]:
    value, query = analyzer.analyze(node.value), analyzer.subquery(node.query)
    row_type = (
        value.type
        if value.type.base == "row" or value.type == UNKNOWN
        else row_of([(None, value.type)])
    )
    common = _common_row(analyzer, node, row_type, query)
    if value.type.base == "row":
        analyzer.refuse(f"{row} is not supported by this engine", node)
    sql_type = instant(common.parameters[0])
    return analyzer.coerce(value, sql_type), query, sql_type


def _common_row(
    analyzer: ExpressionAnalyzer, node: s.Expression, left: Type, query: QueryResult
) -> Type:
    right = row_of((f.name, f.type) for f in query.fields)
    common = common_type(left, right)
    if common is None or (left == UNKNOWN and len(query.fields) != 1):
        analyzer.context.error(
            "TYPE_MISMATCH",
            f"Value expression and result of subquery must be of the same type: {left} vs {right}",
            node.error_span,
        )
    return common
