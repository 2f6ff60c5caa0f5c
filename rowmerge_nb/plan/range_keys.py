"""The range of a join on pages: comparisons of ON that an index can decide if no equality does."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from rowmerge_nb.plan.join_keys import key_sets
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError
from rowmerge_nb.sql.duckdb.printer import PagePrinter, may_fail
from rowmerge_nb.sql.typed.domains import conjuncts
from rowmerge_nb.sql.typed.expressions import (
    Apply,
    Typed,
    has_subquery,
    is_deterministic,
    references,
)
from rowmerge_nb.sql.typed.type_rules import is_float, is_integer

if TYPE_CHECKING:
    from rowmerge_nb.plan.plan_nodes import Join
    from rowmerge_nb.spi.types import Type

RANGE_TOO_LARGE: Final = (
    "ON has no equality of both sides, only a range, and the source is too large for every task"
)

_RANGE_TYPES: Final = frozenset(
    {"decimal", "date", "time", "timestamp", "timestamp with time zone"}
)


@dataclass(frozen=True)
class PageInterval:
    """What a row of one side contributes to a range.

    Two rows match only if the low value of each is at most the high value of the other. Without a
    value, that side of the interval is open.
    """

    low: Typed | None
    high: Typed | None


@dataclass(frozen=True)
class PageRange:
    """One or two comparisons of ON, as intervals that must overlap."""

    target: PageInterval
    source: PageInterval


def page_range(join: Join) -> PageRange | None:
    """Return the range of a join on pages; None if ON has keys, or no range.

    A pair outside the range does not reach the rest of ON. Therefore a comparison behind a
    condition that may fail is not part of the range.
    """
    if key_sets(join):
        return None
    least: list[tuple[Typed | None, Typed | None]] = []
    most: list[tuple[Typed | None, Typed | None]] = []
    for term in conjuncts(join.predicate):
        pair = _compared(term, join)
        if pair is not None:
            is_lower_bound, target, source = pair
            (least if is_lower_bound else most).append((target, source))
        if may_fail(term) or has_subquery(term):
            break
    if not least and not most:
        return None
    # Bounds of the same value make the narrowest range.
    (above, source_low), (below, source_high) = max(
        product(least or [(None, None)], most or [(None, None)]),
        key=lambda pair: pair[0][0] == pair[1][0] or pair[0][1] == pair[1][1],
    )
    return PageRange(PageInterval(below, above), PageInterval(source_low, source_high))


def is_indexed(join: Join) -> bool:
    return bool(key_sets(join)) or page_range(join) is not None


def _compared(term: Typed, join: Join) -> tuple[bool, Typed, Typed] | None:
    """Return whether a comparison is a lower bound of the target's value."""
    if not isinstance(term, Apply) or term.name not in {"<", "<=", ">", ">="}:
        return None
    target, source = (frozenset(symbol.name for symbol in side.outputs) for side in join.sources)
    one, other = term.arguments
    reads = references(one), references(other)
    is_lower_bound = term.name in {">", ">="}
    if reads[0] and reads[1] and reads[0] <= source and reads[1] <= target:
        one, other, is_lower_bound = other, one, not is_lower_bound
    elif not (reads[0] and reads[1] and reads[0] <= target and reads[1] <= source):
        return None
    if has_subquery(term) or not is_deterministic(term):
        return None
    if not _is_range_type(one.type) or one.type.arrow != other.type.arrow:
        return None
    one, other = (
        Apply(side.type, "try", (side,)) if may_fail(side) else side for side in (one, other)
    )
    try:
        for side in (one, other):
            PagePrinter().text(side, condition=False)
    except UnprintableError:
        return None
    return is_lower_bound, one, other


def _is_range_type(sql_type: Type) -> bool:
    return (
        is_integer(sql_type)
        or is_float(sql_type)
        or (sql_type.base in _RANGE_TYPES and not sql_type.fields)
    )
