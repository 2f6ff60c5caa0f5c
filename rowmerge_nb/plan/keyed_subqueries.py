"""Correlated subqueries as tables of keys: computed once for all rows, then looked up in tasks by
the keys of each row.

``EXISTS (SELECT 1 FROM s WHERE s.k = t.k AND s.v > 1)`` becomes the keys of ``SELECT k FROM s WHERE
v > 1``. A scalar subquery has its value beside the keys; an aggregation is grouped by them. The
values of IN are keys too. Conditions such as ``s.v > t.v`` are evaluated for each pair of a row and
its equal keys, so the columns that they read are beside the keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from rowmerge_nb.plan.join_keys import PageKey, key_of
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import PagePrinter, may_fail
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.domains import conjunction, conjuncts
from rowmerge_nb.sql.typed.readings import is_deterministic, outer_columns, subquery

ZERO_OF_NO_ROWS: Final = frozenset({"approx_distinct", "count", "count_if"})
_NULL_OF_NO_ROWS: Final = frozenset({"avg", "bool_and", "bool_or", "every", "max", "min", "sum"})


@dataclass(frozen=True)
class KeyedSubquery:
    """A correlated subquery, taken apart.

    Args:
        rows: the table of keys, which reads nothing of the row: a column for each key, and that of
            the value if it has one, then those that ``rest`` reads.
        keys: the values of a row to look up, one for each key; of IN, the last one is the value
            that it looks for.
        nulls_meet: for each key, whether NULL equals NULL.
        rest: a condition on the row and the columns of ``rows``; None without one.
        default: the value for keys that do not occur; None for NULL.
    """

    rows: e.Subquery
    keys: tuple[e.Typed, ...]
    nulls_meet: tuple[bool, ...]
    rest: e.Typed | None = None
    default: e.Typed | None = None


def keyed(node: e.Subquery) -> KeyedSubquery:
    """Take a correlated subquery apart, or raise UnprintableError."""
    query = node.query
    if not isinstance(query, q.Selected) or query.source is None or outer_columns(query.source):
        raise UnprintableError("a correlated subquery that is more than a SELECT")
    # EXISTS asks for the first row at most, whatever LIMIT says.
    is_random = not is_deterministic(replace(query, limit=None))
    if is_random or query.keys is not None or query.having or query.offset:
        raise UnprintableError(
            "a correlated subquery with GROUP BY, HAVING, OFFSET, or random values"
        )
    if any(
        isinstance(part, e.Variable)
        for whole in q.parts_of(query)
        if isinstance(whole, e.Typed)
        for part in e.walk(whole)
    ):
        raise UnprintableError("a correlated subquery with a lambda")
    local, keys, rest = _parted(node, query)
    if node.kind == "in":
        keys.append(_member_key(node, query))
    columns = tuple(e.Column(key.source.type, f"$k{index}") for index, key in enumerate(keys))
    outputs = tuple((column, key.source) for column, key in zip(columns, keys, strict=True))
    selected = q.Selected(query.source, local, outputs)
    default = None
    if node.kind == "scalar":
        ((_, value),) = query.outputs if len(query.outputs) == 1 else ((None, None),)
        selected, default = _with_value(selected, query, value, node)
    elif query.limit == 0 or node.aggregates:
        raise UnprintableError("EXISTS of a query whose rows do not depend on WHERE")
    condition = None
    if rest:
        if node.aggregates or node.kind == "in":
            raise UnprintableError(
                "a correlated subquery with IN or an aggregate whose WHERE compares more than"
                " equal keys"
            )
        selected, condition = _with_rest(selected, node, conjunction(rest))
    rows = subquery(node.type, "keyed", selected)
    nulls_meet = tuple(key.nulls_meet for key in keys)
    return KeyedSubquery(rows, tuple(key.target for key in keys), nulls_meet, condition, default)


def _member_key(node: e.Subquery, query: q.Selected) -> PageKey:
    member = query.outputs[0][1]
    if node.aggregates or query.limit is not None:
        raise UnprintableError("a correlated subquery with IN and an aggregate or LIMIT")
    if node.value is None or any(isinstance(part, e.Windowed) for part in e.walk(member)):
        raise UnprintableError("a correlated subquery with IN and windows")
    outer = {column.symbol for column in node.outer}
    computed = (node.value, member)
    if (
        e.references(member) & outer
        or any(may_fail(value) or e.has_subquery(value) for value in computed)
        or any(isinstance(part, e.Variable) for part in e.walk(node.value))
        or not e.is_deterministic(node.value)
    ):
        raise UnprintableError("a correlated subquery with IN of values that may fail or differ")
    PagePrinter().text(node.value, condition=False)
    return PageKey(node, node.value, member, nulls_meet=False)


def _with_rest(selected: q.Selected, node: e.Subquery, rest: e.Typed) -> tuple[q.Selected, e.Typed]:
    """Add the columns that a condition reads to the keys; and return it over the row and these
    columns.
    """
    outer = {column.symbol for column in node.outer}
    inner = [column for column in dict.fromkeys(_columns(rest)) if column.symbol not in outer]
    pairs = [(column, e.Column(column.type, f"$r{index}")) for index, column in enumerate(inner)]
    condition = of_row(e.replaced(rest, pairs))
    if may_fail(condition) or e.has_subquery(condition):
        raise UnprintableError(
            "a correlated subquery whose WHERE has a comparison that may fail or a subquery"
        )
    PagePrinter().text(condition, condition=True)
    outputs = (*selected.outputs, *((column, value) for value, column in pairs))
    return replace(selected, outputs=outputs), replace(condition, origin=node.origin)


def _parted(
    node: e.Subquery, query: q.Selected
) -> tuple[e.Typed | None, list[PageKey], list[e.Typed]]:
    """Return the part of WHERE that reads nothing of the row, the keys, and the other conditions."""
    outer = frozenset(column.symbol for column in node.outer)
    inner = (
        frozenset(
            column.symbol
            for part in q.parts_of(query)
            if isinstance(part, e.Typed)
            for column in _columns(part)
        )
        - outer
    )
    local, keys, rest = [], [], []
    for term in conjuncts(query.where) if query.where is not None else []:
        if not e.references(term) & outer:
            local.append(term)
            continue
        key = key_of(of_row(term), outer, inner, node.origin)
        if key is None or key.may_fail:
            rest.append(term)
        else:
            keys.append(key)
    if not keys:
        raise UnprintableError("a correlated subquery without equal keys in WHERE")
    return conjunction(local) if local else None, keys, rest


def _with_value(
    selected: q.Selected, query: q.Selected, value: e.Typed | None, node: e.Subquery
) -> tuple[q.Selected, e.Typed | None]:
    """Add the value of a scalar subquery to the keys; the second one is the value for keys that do
    not occur.
    """
    if (
        value is None
        or query.limit is not None
        or query.distinct
        or any(isinstance(p, e.Windowed) for p in e.walk(value))
    ):
        raise UnprintableError(
            "a correlated subquery with several columns, DISTINCT, LIMIT or windows"
        )
    if e.references(value) & {column.symbol for column in node.outer}:
        raise UnprintableError("a correlated subquery whose value reads the row")
    if may_fail(value):
        # It is computed for keys that no row has, and for no rows.
        raise UnprintableError("a correlated subquery whose value cannot be computed for every key")
    outputs = (*selected.outputs, (e.Column(value.type, "$value"), value))
    if not node.aggregates:
        return replace(selected, outputs=outputs), None
    aggregates = [part for part in e.walk(value) if isinstance(part, e.Aggregate)]
    unknown = next(
        (a.name for a in aggregates if a.name not in ZERO_OF_NO_ROWS | _NULL_OF_NO_ROWS), None
    )
    if unknown is not None:
        raise UnprintableError(f"a correlated subquery with the aggregate {unknown}")
    default = e.replaced(value, [(part, _of_no_rows(part)) for part in aggregates])
    if not e.is_constant(default):
        raise UnprintableError("a correlated subquery whose value for no rows is not a constant")
    keys = tuple(expression for _, expression in selected.outputs)
    return replace(selected, outputs=outputs, keys=keys), None if e.is_null(default) else default


def _of_no_rows(node: e.Aggregate) -> e.Constant:
    return e.Constant(node.type, "0" if node.name in ZERO_OF_NO_ROWS else None)


def _columns(node: e.Typed) -> list[e.Column]:
    return [part for part in e.walk(node) if isinstance(part, e.Column)]


def of_row(node: e.Typed) -> e.Typed:
    """Return an expression with the columns of the row as the row itself reads them."""
    return e.replaced(node, [(column, replace(column, outer=False)) for column in _columns(node)])
