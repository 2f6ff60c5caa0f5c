"""Which query of WITH RECURSIVE is recursive: Trino's rules about its shape, and about where its own name may stand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.sql.tree import syntax as s

if TYPE_CHECKING:
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.tree.statements import Span

__all__ = ["RECURSION_DEPTH", "Recursion", "recursion_of"]

RECURSION_DEPTH: Final = 10
"""So many times the step is applied: Trino's ``max_recursion_depth`` where nobody has set it."""
_INVALID: Final = "INVALID_RECURSIVE_REFERENCE"
_OUTSIDE: Final = "recursive reference outside of FROM clause of the step relation of recursion"


@dataclass(frozen=True)
class Recursion:
    """A recursive query: ``anchor UNION [ALL] step``, in which the step names the query itself once."""

    anchor: s.QueryBody
    step: s.QueryBody
    distinct: bool


def recursion_of(context: Context, entry: s.NamedQuery) -> Recursion | None:
    """Give a query of WITH RECURSIVE as a recursion; None for one that does not name itself, which is a query like others.

    Raises:
        AnalysisError: MISSING_COLUMN_ALIASES, NESTED_RECURSIVE, INVALID_RECURSIVE_REFERENCE, INVALID_LIMIT_CLAUSE, NOT_SUPPORTED.
    """
    if not entry.columns:
        context.error("MISSING_COLUMN_ALIASES", "missing column aliases in recursive WITH query", entry.span)
    nested = next((part for part in _parts(entry.query) if isinstance(part, s.QueryNode) and part.recursive), None)
    if nested is not None:
        context.error("NESTED_RECURSIVE", "nested recursive WITH query", nested.span)
    name, query = entry.name.value, entry.query
    union = query.body
    found = None
    if isinstance(union, s.SetOperation) and union.operator == "UNION":
        found = _shaped(context, union, name)
    if found is None:
        own = next(_references(query, name), None)
        if own is not None:
            context.error(_INVALID, "recursive reference not allowed in this context", own.span)
        return None
    if query.named:
        context.error("NOT_SUPPORTED", "immediate WITH clause in recursive query", query.span)
    if query.order_by:
        context.error("NOT_SUPPORTED", "immediate ORDER BY clause in recursive query", query.order_by[0].span)
    if query.offset is not None:
        context.error("NOT_SUPPORTED", "immediate OFFSET clause in recursive query", query.span)
    if query.limit is not None:
        context.error("INVALID_LIMIT_CLAUSE", "immediate FETCH FIRST / LIMIT clause in recursive query", _limit(query))
    return found


def _shaped(context: Context, union: s.SetOperation, name: str) -> Recursion | None:
    """Check where the query's own name stands; None where it does not."""
    early = next(_references(union.left, name), None)
    if early is not None:
        context.error(_INVALID, "WITH table name is referenced in the base relation of recursion", early.span)
    own = list(_references(union.right, name))
    if len(own) > 1:
        context.error(_INVALID, "multiple recursive references in the step relation of recursion", own[1].span)
    if not own:
        return None
    inner: s.QueryBody = union.right
    while isinstance(inner, s.QueryNode):
        if inner.limit is not None:
            said = "FETCH FIRST / LIMIT clause in the step relation of recursion"
            context.error("INVALID_LIMIT_CLAUSE", said, _limit(inner))
        inner = inner.body
    if not isinstance(inner, s.Select) or next(_references(inner.relation, name), None) is None:
        context.error(_INVALID, _OUTSIDE, own[0].span)
    for part in _parts(inner.relation):
        _check_side(context, part, name)
    return Recursion(union.left, union.right, union.distinct)


def _check_side(context: Context, part: s.Node, name: str) -> None:
    """Refuse the query's own name on a side of which rows may be missing in the result, or be taken away from it."""
    if isinstance(part, s.Join):
        left, right = part.kind in {"RIGHT", "FULL"}, part.kind in {"LEFT", "FULL"}
        said = f"source of {part.kind} join"
    elif isinstance(part, s.SetOperation) and part.operator == "EXCEPT":
        left, right = not part.distinct, True
        said = f"relation of EXCEPT {'DISTINCT' if part.distinct else 'ALL'}"
    else:
        return
    for refused, side, word in ((left, part.left, "left"), (right, part.right, "right")):
        own = next(_references(side, name), None)
        if refused and own is not None:
            context.error(_INVALID, f"recursive reference in {word} {said}", own.span)


def _limit(query: s.QueryNode) -> Span:
    return query.fetch or query.span


def _references(node: Any, name: str) -> Iterator[s.Node]:
    """Give the places where a query of WITH is named, those left out at which another one has its name."""
    for part in _parts(node, name):
        if isinstance(part, s.Table | s.TableBody) and [word.value for word in part.name.parts] == [name]:
            yield part


def _parts(node: Any, hidden: str = "") -> Iterator[s.Node]:
    """Give a node and all within it, queries in expressions too, without those that define a query of a name themselves."""
    if isinstance(node, tuple):
        for part in node:
            yield from _parts(part, hidden)
    elif isinstance(node, s.Node):
        if isinstance(node, s.QueryNode) and any(entry.name.value == hidden for entry in node.named):
            return
        yield node
        for field in node.__dataclass_fields__:
            yield from _parts(getattr(node, field), hidden)
