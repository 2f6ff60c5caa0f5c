"""Notices about comparisons with the literal NULL, which are never true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.arguments import SHOWN_VALUE
from rowmerge_nb.base.words import code
from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.tree.statements import Span


def note_null_comparison(
    context: Context, operator: str, first: s.Expression, second: s.Expression, span: Span
) -> None:
    """Add a notice if one side of a comparison is NULL and the other is no literal."""
    for value, other_side in ((first, second), (second, first)):
        if _is_null(other_side) and not isinstance(value, s.Literal):
            comparison = f"{_text(context, first.span)} {operator} {_text(context, second.span)}"
            test = f"{_text(context, value.span)} IS {'NOT ' if operator == '<>' else ''}NULL"
            context.notice(
                f"{code(comparison)} is never true, not even for NULL. Write {code(test)}.", span
            )


def note_null_in_list(context: Context, node: s.InList) -> None:
    """Add a notice if a list of IN has a NULL: IN does not find it, and NOT IN is never true."""
    if isinstance(node.value, s.Literal) or not any(map(_has_null, node.items)):
        return
    text = _text(context, node.value.span)
    context.notice(
        f"{code(f'{text} NOT IN (…)')} is never true with NULL in its list. Remove NULL, and write"
        f" {code(f'AND {text} IS NOT NULL')}."
        if node.negated
        else f"{code(f'{text} IN (…)')} is not true for NULL, although NULL is in its list. Write"
        f" {code(f'OR {text} IS NULL')}.",
        node.span,
    )


def _text(context: Context, span: Span) -> str:
    text = " ".join(span.of(context.text).split())
    return text if len(text) <= SHOWN_VALUE else f"{text[:SHOWN_VALUE]}…"


def _has_null(item: s.Expression) -> bool:
    if isinstance(item, s.Literals):
        return "NULL" in map(str.upper, item.run.texts)
    return _is_null(item)


def _is_null(node: s.Expression) -> bool:
    return isinstance(node, s.Literal) and node.kind == "null"
