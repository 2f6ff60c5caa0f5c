"""Facts about a query's tree: reads, determinism, row counts, outer columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.words import KnownRows
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.spi.types import Type


def subquery(
    sql_type: Type,
    name: str,
    query: q.Query,
    value: e.Typed | None = None,
    *,
    origins: range = range(0),
    of: q.Query | None = None,
) -> e.Subquery:
    """Return a query as a value.

    Args:
        of: the query as written, if ``query`` asks something about it.
    """
    return e.Subquery(
        sql_type,
        name,
        query,
        value,
        outer_columns(query),
        is_deterministic(of or query),
        is_single_row(query),
        reads=reads(of or query),
        origins=origins,
    )


def outer_columns(query: q.Query) -> tuple[e.Column, ...]:
    """Return the columns of surrounding queries that a query reads."""
    own_symbols: set[str] = set()
    read: dict[e.Column, None] = {}
    for part in q.parts_of(query):
        if isinstance(part, e.Typed):
            read.update((column, None) for column in e.walk(part) if isinstance(column, e.Column))
        else:
            own_symbols.update(column.symbol for column in _made(part))
    return tuple(
        e.Column(column.type, column.symbol, column.outer)
        for column in read
        if column.symbol not in own_symbols
    )


def _made(part: q.Query | q.Form) -> Iterable[e.Column]:
    match part:
        case q.Form():
            return part.constants
        case q.Joined():
            return (column for column, _ in part.shared)
        case q.Ordered() | q.Stepped() | q.Failing():
            return ()
    return q.columns_of(part)


def is_deterministic(query: q.Query) -> bool:
    """Return whether a query repeats its rows. Sort and group keys do not count."""
    return _repeats(query) and not _has_limit(query)


def is_cut(query: q.Query) -> bool:
    """Return whether a query repeats its rows but for a LIMIT or OFFSET of its own, which may take
    any of them.
    """
    match query:
        case q.Selected():
            return _repeats(query) and _has_limit(query)
        case q.Ordered():
            return is_cut(query.source) or (is_deterministic(query.source) and _has_limit(query))
        case q.Coerced() | q.Stepped() | q.Failing():
            return is_cut(query.source)
    return False


def _has_limit(query: q.Query) -> bool:
    return isinstance(query, q.Selected | q.Ordered) and (
        query.limit is not None or bool(query.offset)
    )


def _repeats(query: q.Query) -> bool:
    """Return whether a query repeats its rows, but for its own LIMIT and OFFSET."""
    match query:
        case q.Scanned():
            return query.is_deterministic
        case q.Valued():
            return all(e.is_deterministic(value) for form in query.forms for value in form.values)
        case q.Unnested():
            return all(map(e.is_deterministic, query.items))
        case q.Joined():
            sides = is_deterministic(query.left) and is_deterministic(query.right)
            return sides and (query.condition is None or e.is_deterministic(query.condition))
        case q.Selected():
            return (query.source is None or is_deterministic(query.source)) and all(
                map(e.is_deterministic, _selecting(query))
            )
        case q.SetOperated():
            return is_deterministic(query.left) and is_deterministic(query.right)
        case q.Recursive():
            return all(map(is_deterministic, query.levels))
        case q.Generated():
            return True
    return is_deterministic(query.source)


def _selecting(query: q.Selected) -> list[e.Typed]:
    conditions = (part for part in (query.where, query.having) if part)
    return [*(value for _, value in query.outputs), *conditions]


def reads(query: q.Query) -> e.Reads:
    match query:
        case q.Scanned():
            return e.Reads((query.view,))
        case q.Valued():
            return _value_reads(query)
        case q.Unnested():
            return sum(map(e.reads, query.items), e.Reads(generates=True))
        case q.Generated():
            return e.Reads(generates=True)
        case q.Joined():
            both = reads(query.left) + reads(query.right)
            return both if query.condition is None else both + e.reads(query.condition)
        case q.Selected():
            parts = [*_selecting(query), *(key.value for key in query.order_by)]
            return sum(
                map(e.reads, parts), e.NOTHING if query.source is None else reads(query.source)
            )
        case q.SetOperated():
            return reads(query.left) + reads(query.right)
        case q.Ordered():
            return sum((e.reads(key.value) for key in query.order_by), reads(query.source))
        case q.Recursive():
            return _level_reads([reads(level) for level in query.levels])
    return reads(query.source)


def _value_reads(query: q.Valued) -> e.Reads:
    inner = sum((e.reads(value) for form in query.forms for value in form.values), e.NOTHING)
    views = tuple(form.view for form in query.forms if form.view)
    is_single = views or query.is_numbered
    return inner + e.Reads(views, 1 if is_single else query.count)


def _level_reads(levels: Sequence[e.Reads]) -> e.Reads:
    views = tuple(view for level in levels for view in level.views)
    return e.Reads(
        views, sum(level.row_factor for level in levels), any(level.generates for level in levels)
    )


def is_single_row(query: q.Query) -> bool:
    """Return whether a query is an aggregation without groups: always one row."""
    match query:
        case q.Selected():
            one_set = query.sets is None or len(query.sets) == 1
            return (
                not query.keys
                and one_set
                and any(e.is_aggregated(value) for _, value in query.outputs)
            )
        case q.Ordered():
            return is_single_row(query.source)
    return isinstance(query, q.Extremes)


def known_rows(query: q.Query) -> KnownRows | None:
    """Return what is known of a query's row count before it runs, or None.

    Tables are asked for their sizes.
    """
    match query:
        case q.Scanned():
            rows = query.rows()
            if rows is None:
                return None
            return KnownRows(rows) if query.is_exact else KnownRows(rows).bound
        case q.Valued():
            return KnownRows(query.count)
        case q.Joined():
            return _join_rows(query.kind, known_rows(query.left), known_rows(query.right))
        case q.Selected():
            return _tail_rows(_select_rows(query), query)
        case q.SetOperated():
            return _set_rows(query)
        case q.Ordered():
            return _tail_rows(known_rows(query.source), query)
        case q.Coerced():
            return known_rows(query.source)
    return None


def row_bound(query: q.Query) -> int | None:
    rows = known_rows(query)
    return None if rows is None else rows.rows


def _select_rows(query: q.Selected) -> KnownRows | None:
    if query.sets is not None:
        rows = KnownRows(1) if query.source is None else known_rows(query.source)
        return rows and KnownRows(max(rows.rows, 1) * len(query.sets)).bound
    values = [*(value for _, value in query.outputs), *(key.value for key in query.order_by)]
    if query.keys == () or (
        not query.keys and (query.having is not None or any(map(e.is_aggregated, values)))
    ):
        return KnownRows(1).bound if query.having is not None else KnownRows(1)
    rows = KnownRows(1) if query.source is None else known_rows(query.source)
    if rows is None:
        return None
    return (
        rows.bound
        if query.where is not None or query.distinct or query.having is not None or query.keys
        else rows
    )


def _tail_rows(rows: KnownRows | None, query: q.Selected | q.Ordered) -> KnownRows | None:
    if query.ties:
        return None if rows is None else rows.bound
    if query.limit is None and not query.offset:
        return rows
    if rows is None:
        return None if query.limit is None else KnownRows(query.limit).bound
    rest = max(rows.rows - query.offset, 0)
    return KnownRows(
        rest if query.limit is None else min(rest, query.limit), rows.exact or rest == 0
    )


def _set_rows(query: q.SetOperated) -> KnownRows | None:
    left, right = known_rows(query.left), known_rows(query.right)
    if query.operator == "EXCEPT":
        return left and left.bound
    if query.operator == "INTERSECT":
        return min(
            (rows.bound for rows in (left, right) if rows is not None),
            key=lambda rows: rows.rows,
            default=None,
        )
    if left is None or right is None:
        return None
    both = KnownRows(left.rows + right.rows, left.exact and right.exact)
    return both.bound if query.distinct else both


def _join_rows(join_kind: str, left: KnownRows | None, right: KnownRows | None) -> KnownRows | None:
    if left is None or right is None:
        return None
    if join_kind == "CROSS":
        return KnownRows(left.rows * right.rows, left.exact and right.exact)
    # A row without a partner comes out instead of the pairs that it might have had.
    most = {
        "INNER": left.rows * right.rows,
        "LEFT": left.rows * max(right.rows, 1),
        "RIGHT": max(left.rows, 1) * right.rows,
        "FULL": max(left.rows * right.rows, left.rows + right.rows),
    }
    return KnownRows(most[join_kind]).bound
