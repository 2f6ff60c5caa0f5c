"""Checks of expressions that must be constant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.tree.statements import CallArgument

QUERIES: Final = (s.ScalarQuery, s.Exists, s.InQuery, s.Quantified)


def refuse_subqueries(context: Context, value: s.Expression) -> None:
    subquery = next(_subqueries(value), None)
    if subquery is not None:
        context.error(
            "EXPRESSION_NOT_CONSTANT",
            "Constant expression cannot contain a subquery",
            subquery.span,
        )


def refuse_mixed(context: Context, arguments: Sequence[CallArgument]) -> None:
    """Raise INVALID_ARGUMENTS unless all arguments have names, or none has."""
    if len({argument.name is None for argument in arguments}) > 1:
        context.error(
            "INVALID_ARGUMENTS",
            "Named and positional arguments cannot be mixed",
            context.statement_span(),
            "Name all of them, or none.",
        )


def _subqueries(node: Any) -> Iterator[s.Expression]:
    if isinstance(node, QUERIES):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from _subqueries(part)
    elif is_dataclass(node):
        for part in fields(node):
            yield from _subqueries(getattr(node, part.name))
