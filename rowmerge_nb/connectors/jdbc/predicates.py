"""Predicates in the database: what of a `Constraint` it can judge as the engine does.

A row that the engine would keep must never be left out; one that it would drop may come along, since the engine looks again. Where a database
compares otherwise than the engine (texts by locale, numbers that are kept as others), its condition is made wider or left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi.page_source import ColumnDomain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.connectors.jdbc.handles import Column, JdbcTableHandle

MOST_VALUES: Final = 1_000
"""Longer lists of values become ranges."""
MOST_TERMS: Final = 200
"""So many columns are compared: databases bound how deep a condition may be, and no more are needed to find the rows."""
NOTHING: Final = "1 = 0"
"""The condition of a domain without values."""


@dataclass(frozen=True)
class Terms:
    """How a column is compared with values in SQL.

    Args:
        literal: writes a value; None for one that cannot be written.
        equal: what is compared by ``IN``; ``""`` if the database finds other values equal than the engine does.
        ordered: what is compared by ``>=`` and ``<=``; ``""`` if the database orders otherwise.
        low: writes the smallest value of a range as a condition, where that is more than a comparison with its literal.
        high: likewise the largest one.
    """

    literal: Callable[[Any], str | None]
    equal: str = ""
    ordered: str = ""
    low: Callable[[Any], str | None] | None = None
    high: Callable[[Any], str | None] | None = None


def predicate_of(
    handle: JdbcTableHandle, domains: Mapping[str, ColumnDomain], terms: Callable[[Column], Terms | None]
) -> tuple[str, bool]:
    """Return the condition that rows which matter fulfil, ``""`` if there is none, and whether the primary key leads to them."""
    parts: list[str] = []
    by_key = False
    for column in handle.columns:
        if len(parts) == MOST_TERMS:
            break
        domain = domains.get(column.name)
        if domain is None or column.added:
            continue
        narrow = _narrowed(domain)
        if narrow.values == ():
            return NOTHING, True
        known = terms(column)
        part = condition(known, narrow) if known is not None else ""
        if part:
            parts.append(part)
            by_key = by_key or handle.key[:1] == (column.name,)
    return " AND ".join(parts), by_key


def condition(terms: Terms, domain: ColumnDomain) -> str:
    """Write the condition of one column.

    >>> condition(integer('"id"'), ColumnDomain(low=3))
    '"id" >= 3'
    >>> condition(integer('"id"'), ColumnDomain(values=(7, 3)))
    '"id" IN (3, 7)'
    """
    listed = ""
    if domain.values is not None:
        written = [terms.literal(value) for value in domain.values] if len(domain.values) <= MOST_VALUES else [None]
        if terms.equal and None not in written:
            listed = f"{terms.equal} IN ({', '.join(sorted(filter(None, written)))})"
            if terms.low is None:
                return listed
        # A range of its own kind may find its rows by an index, where the list does not.
        domain = ColumnDomain(low=min(domain.values), high=max(domain.values))
    parts = [_bound(terms, ">=", domain.low, terms.low), _bound(terms, "<=", domain.high, terms.high), listed]
    return " AND ".join(part for part in parts if part)


def _bound(terms: Terms, sign: str, value: Any, special: Callable[[Any], str | None] | None) -> str:
    if value is None:
        return ""
    if special is not None:
        return special(value) or ""
    written = terms.literal(value) if terms.ordered else None
    return f"{terms.ordered} {sign} {written}" if written is not None else ""


def _narrowed(domain: ColumnDomain) -> ColumnDomain:
    """Take NULL out of a domain, which no row of it has, and numbers that are none, of which databases think differently."""
    low, high = (None if _is_nan(bound) else bound for bound in (domain.low, domain.high))
    if domain.values is None or any(map(_is_nan, domain.values)):
        return ColumnDomain(low=low, high=high)
    values = {value for value in domain.values if value is not None}
    values = {value for value in values if (low is None or value >= low) and (high is None or value <= high)}
    return ColumnDomain(values=tuple(values))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def integer(name: str) -> Terms:
    """Return the terms of whole numbers, which all databases compare alike."""
    return Terms(lambda value: str(int(value)) if isinstance(value, int) else None, name, name)
