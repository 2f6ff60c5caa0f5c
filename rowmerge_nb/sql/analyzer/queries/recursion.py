"""WITH RECURSIVE: Trino's rules on recursive references, and the expansion into steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.sql.analyzer.queries.named_queries import NamedQueries, check_columns
from rowmerge_nb.sql.analyzer.queries.relation import QueryResult
from rowmerge_nb.sql.session_properties import MOST_STEPS, RECURSION
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.readings import outer_columns
from rowmerge_nb.sql.typed.type_rules import can_coerce, instant

if TYPE_CHECKING:
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.tree.statements import Span

_INVALID: Final = "INVALID_RECURSIVE_REFERENCE"
_OUTSIDE: Final = "recursive reference outside of FROM clause of the step relation of recursion"


@dataclass(frozen=True)
class Recursion:
    """A recursive query ``anchor UNION [ALL] step``; the step names it once."""

    anchor: s.QueryBody
    step: s.QueryBody
    distinct: bool


def recursion_of(context: Context, entry: s.NamedQuery) -> Recursion | None:
    if not entry.columns:
        context.error(
            "MISSING_COLUMN_ALIASES", "missing column aliases in recursive WITH query", entry.span
        )
    nested = next(
        (part for part in _parts(entry.query) if isinstance(part, s.QueryNode) and part.recursive),
        None,
    )
    if nested is not None:
        context.error("NESTED_RECURSIVE", "nested recursive WITH query", nested.span)
    name, query = entry.name.value, entry.query
    union = query.body
    recursion = None
    if isinstance(union, s.SetOperation) and union.operator == "UNION":
        recursion = _shaped(context, union, name)
    if recursion is None:
        own = next(_references(query, name), None)
        if own is not None:
            context.error(_INVALID, "recursive reference not allowed in this context", own.span)
        return None
    if query.named_queries:
        context.refuse("immediate WITH clause in recursive query", query.span)
    if query.order_by:
        context.refuse("immediate ORDER BY clause in recursive query", query.order_by[0].span)
    if query.offset is not None:
        context.refuse("immediate OFFSET clause in recursive query", query.span)
    if query.limit is not None:
        context.error(
            "INVALID_LIMIT_CLAUSE",
            "immediate FETCH FIRST / LIMIT clause in recursive query",
            _limit(query),
        )
    return recursion


def recursive_rows(
    context: Context,
    entry: s.NamedQuery,
    recursion: Recursion,
    visible_queries: NamedQueries,
    analyze: Callable[[s.QueryBody, NamedQueries], QueryResult],
) -> QueryResult:
    """Return the rows of the anchor and of all steps.

    As in Trino, ``max_recursion_depth`` steps run even without rows, and the next one must have
    none. EXPLAIN shows one node, since a step's values would be repeated for every later step.
    """
    anchor = analyze(recursion.anchor, visible_queries)
    check_columns(context, entry, len(anchor.fields))
    column_types = [field.type for field in anchor.fields]
    levels = [anchor]
    most = int(context.tables.settings().get(RECURSION, MOST_STEPS))
    for _ in range(most + 1):
        before = NamedQueries(
            visible_queries, {entry.name.value: (0, analyzed(entry, levels[-1]))}, 1
        )
        rows = analyze(recursion.step, before)
        _check_step(context, recursion.step, rows, column_types)
        step = rows.coerced_to(column_types)
        levels.append(replace(step, tree=q.Stepped(step.tree)))
    if any(outer_columns(level.tree) for level in levels):
        context.refuse(
            "A recursive query cannot read columns of a query around it in this engine",
            entry.span,
            "Join what it gives with that query.",
        )
    limit = (
        f"Recursion depth limit exceeded ({most}). Use 'max_recursion_depth' session property to"
        " modify the limit."
    )
    levels[-1] = replace(levels[-1], tree=q.Failing(levels[-1].tree, "NOT_SUPPORTED", limit))
    if recursion.distinct:
        column_types = [instant(column_type) for column_type in column_types]
        levels = [level.coerced_to(column_types) for level in levels]
    symbols = [context.symbols.new(field.symbol) for field in anchor.fields]
    fields = tuple(
        replace(field, symbol=symbol, type=column_type, qualifier=())
        for field, symbol, column_type in zip(anchor.fields, symbols, column_types, strict=True)
    )
    columns = tuple(e.Column(field.type, field.symbol) for field in fields)
    return QueryResult(
        fields, q.Recursive(tuple(level.tree for level in levels), columns, recursion.distinct)
    )


@dataclass(frozen=True)
class AnalyzedQuery(s.QueryBody):
    result: QueryResult

    def renamed(self, context: Context) -> QueryResult:
        result = self.result
        fields = tuple(
            replace(field, symbol=context.symbols.new(field.symbol)) for field in result.fields
        )
        pairs = zip(fields, result.fields, strict=True)
        columns = tuple(
            (e.Column(new.type, new.symbol), e.Column(old.type, old.symbol)) for new, old in pairs
        )
        return replace(result, fields=fields, tree=q.Coerced(result.tree, columns))


def analyzed(entry: s.NamedQuery, result: QueryResult) -> s.NamedQuery:
    span = entry.query.span
    return replace(entry, query=s.QueryNode(span, (), AnalyzedQuery(span, result), (), None, None))


def _check_step(
    context: Context, node: s.QueryBody, result: QueryResult, column_types: Sequence[Type]
) -> None:
    if len(result.fields) != len(column_types):
        context.error(
            "TYPE_MISMATCH",
            "base and step relations of recursion have different number of fields:"
            f" {len(column_types)}, {len(result.fields)}",
            node.span,
        )
    for number, (field, column_type) in enumerate(zip(result.fields, column_types, strict=True), 1):
        if not can_coerce(field.type, column_type):
            context.error(
                "TYPE_MISMATCH",
                f"recursion step relation output type ({field.type}) is not coercible to recursion"
                f" base relation output type ({column_type}) at column {number}",
                node.span,
            )


def _shaped(context: Context, union: s.SetOperation, name: str) -> Recursion | None:
    early = next(_references(union.left, name), None)
    if early is not None:
        context.error(
            _INVALID, "WITH table name is referenced in the base relation of recursion", early.span
        )
    own = list(_references(union.right, name))
    if len(own) > 1:
        context.error(
            _INVALID, "multiple recursive references in the step relation of recursion", own[1].span
        )
    if not own:
        return None
    inner: s.QueryBody = union.right
    while isinstance(inner, s.QueryNode):
        if inner.limit is not None:
            context.error(
                "INVALID_LIMIT_CLAUSE",
                "FETCH FIRST / LIMIT clause in the step relation of recursion",
                _limit(inner),
            )
        inner = inner.body
    if not isinstance(inner, s.Select) or next(_references(inner.relation, name), None) is None:
        context.error(_INVALID, _OUTSIDE, own[0].span)
    for part in _parts(inner.relation):
        _check_side(context, part, name)
    return Recursion(union.left, union.right, union.distinct)


def _check_side(context: Context, part: s.Node, name: str) -> None:
    """Refuse the name on a side whose rows an outer join or EXCEPT can remove."""
    if isinstance(part, s.JoinRelation):
        is_left_refused = part.kind in {"RIGHT", "FULL"}
        is_right_refused = part.kind in {
            "LEFT",
            "FULL",
        }
        operation = f"source of {part.kind} join"
    elif isinstance(part, s.SetOperation) and part.operator == "EXCEPT":
        is_left_refused, is_right_refused = not part.distinct, True
        operation = f"relation of EXCEPT {'DISTINCT' if part.distinct else 'ALL'}"
    else:
        return
    for is_refused, side, word in (
        (is_left_refused, part.left, "left"),
        (is_right_refused, part.right, "right"),
    ):
        own = next(_references(side, name), None)
        if is_refused and own is not None:
            context.error(_INVALID, f"recursive reference in {word} {operation}", own.span)


def _limit(query: s.QueryNode) -> Span:
    return query.fetch or query.span


def _references(node: Any, name: str) -> Iterator[s.Node]:
    for part in _parts(node, name):
        if isinstance(part, s.Table | s.TableBody) and [word.value for word in part.name.parts] == [
            name
        ]:
            yield part


def _parts(node: Any, name: str = "") -> Iterator[s.Node]:
    if isinstance(node, tuple):
        for part in node:
            yield from _parts(part, name)
    elif isinstance(node, s.Node):
        if isinstance(node, s.QueryNode) and any(
            entry.name.value == name for entry in node.named_queries
        ):
            return
        yield node
        for field in node.__dataclass_fields__:
            yield from _parts(getattr(node, field), name)
