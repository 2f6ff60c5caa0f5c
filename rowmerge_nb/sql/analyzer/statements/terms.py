"""The parts of a condition that have their own truth value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.statements.returning import typed
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.context import Context

MOST_TERMS: Final = 20
"""A condition with more parts is shown as a whole: every part is computed for every row shown."""
MOST_LEVELS: Final = 8


def typed_condition(
    context: Context, node: s.Expression, tree: e.Typed, words: str
) -> a.TypedExpression:
    expression = typed(context, tree, node.span, words)
    whole = a.ConditionTerm(tree, expression.text)
    parts = _term(context, node, tree, MOST_LEVELS)
    return a.TypedExpression(
        expression.tree, expression.text, parts if len(list(parts.walk())) <= MOST_TERMS else whole
    )


def _term(context: Context, node: s.Expression, tree: e.Typed, levels: int) -> a.ConditionTerm:
    nodes: tuple[s.Expression, ...] = ()
    operator = ""
    if isinstance(node, s.Logical):
        nodes, operator = node.terms, node.operator.upper()
    elif isinstance(node, s.Not):
        nodes, operator = (node.operand,), "NOT"
    text = node.span.shown(context.text)
    if not (
        0 < len(nodes) <= MOST_TERMS
        and levels
        and isinstance(tree, e.Apply)
        and len(tree.arguments) == len(nodes)
    ):
        return a.ConditionTerm(tree, text)
    terms = tuple(
        _term(context, part, subtree, levels - 1)
        for part, subtree in zip(nodes, tree.arguments, strict=True)
    )
    return a.ConditionTerm(tree, text, operator, terms)
