"""Conditions as a trace keeps them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.typed.expressions import Apply, Column, Constant, children, references
from rowmerge_nb.trace.clause_record import Term

if TYPE_CHECKING:
    from rowmerge_nb.engine.statements.row_change import Named
    from rowmerge_nb.sql.analyzer.analysis import ConditionTerm
    from rowmerge_nb.sql.typed.expressions import Typed

_STRICT: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "arithmetic"})


def term_of(term: ConditionTerm, target: Named, source: Named) -> Term:
    names = {
        symbol.name: (side, name)
        for side, columns in (("target", target), ("source", source))
        for name, symbol in columns
    }
    parts = tuple(term_of(part, target, source) for part in term.terms)
    read = (
        ()
        if parts
        else tuple(sorted(names[symbol] for symbol in references(term.tree) if symbol in names))
    )
    return Term(
        term.text,
        term.operator,
        parts,
        read,
        strict=not parts and _is_strict(term.tree),
        has_difference=not parts and _has_difference(term.tree),
    )


def _has_difference(tree: Typed) -> bool:
    return (isinstance(tree, Apply) and tree.name == "<>") or any(
        map(_has_difference, children(tree))
    )


def _is_strict(tree: Typed) -> bool:
    if isinstance(tree, Column):
        return True
    if isinstance(tree, Constant):
        return tree.value is not None
    strict = isinstance(tree, Apply) and (
        tree.name in _STRICT or (tree.name == "cast" and tree.detail != "try")
    )
    return strict and all(map(_is_strict, children(tree)))
