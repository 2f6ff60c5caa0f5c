"""Predicates in the database: the part of a `Constraint` that it evaluates as the engine does.

The engine filters again, so a condition may be wider, but must never omit a matching row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi import ColumnDomain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.connectors.jdbc.jdbc_handles import JdbcColumn, JdbcTableHandle

MOST_VALUES: Final = 1_000
"""Longer lists of values become ranges."""
MOST_TERMS: Final = 200
"""The limit of compared columns: databases limit the depth of conditions."""
NOTHING: Final = "1 = 0"
"""The condition of an empty domain."""


@dataclass(frozen=True)
class ColumnTerms:
    """SQL comparisons of a column with values.

    Args:
        literal: formats a value, or returns None.
        equal: the expression for ``IN``; ``""`` if the database's equality is wider.
        ordered: the expression for ``>=`` and ``<=``; ``""`` if the order differs.
        low: formats a lower bound that is not a comparison.
    """

    literal: Callable[[Any], str | None]
    equal: str = ""
    ordered: str = ""
    low: Callable[[Any], str | None] | None = None
    high: Callable[[Any], str | None] | None = None


def predicate_of(
    handle: JdbcTableHandle,
    domains: Mapping[str, ColumnDomain],
    terms: Callable[[JdbcColumn], ColumnTerms | None],
) -> tuple[str, bool]:
    """Return the condition of relevant rows, and whether the primary key finds them."""
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
        column_terms = terms(column)
        part = condition(column_terms, narrow) if column_terms is not None else ""
        if part:
            parts.append(part)
            by_key = by_key or handle.key[:1] == (column.name,)
    return " AND ".join(parts), by_key


def condition(terms: ColumnTerms, domain: ColumnDomain) -> str:
    """Build the condition of one column.

    >>> condition(integer('"id"'), ColumnDomain(low=3))
    '"id" >= 3'
    >>> condition(integer('"id"'), ColumnDomain(values=(7, 3)))
    '"id" IN (3, 7)'
    """
    listed = ""
    if domain.values is not None:
        literals = (
            [terms.literal(value) for value in domain.values]
            if len(domain.values) <= MOST_VALUES
            else [None]
        )
        if terms.equal and None not in literals:
            listed = f"{terms.equal} IN ({', '.join(sorted(filter(None, literals)))})"
            if terms.low is None:
                return listed
        # The range may use an index where the list cannot.
        domain = ColumnDomain(low=min(domain.values), high=max(domain.values))
    parts = [
        _bound(terms, ">=", domain.low, terms.low),
        _bound(terms, "<=", domain.high, terms.high),
        listed,
    ]
    return " AND ".join(part for part in parts if part)


def _bound(
    terms: ColumnTerms, sign: str, value: Any, special: Callable[[Any], str | None] | None
) -> str:
    if value is None:
        return ""
    if special is not None:
        return special(value) or ""
    text = terms.literal(value) if terms.ordered else None
    return f"{terms.ordered} {sign} {text}" if text is not None else ""


def _narrowed(domain: ColumnDomain) -> ColumnDomain:
    """Remove NULL, which matches nothing, and NaN, which databases treat differently."""
    low, high = (None if _is_nan(limit) else limit for limit in (domain.low, domain.high))
    if domain.values is None or any(map(_is_nan, domain.values)):
        return ColumnDomain(low=low, high=high)
    values = {value for value in domain.values if value is not None}
    values = {
        value
        for value in values
        if (low is None or value >= low) and (high is None or value <= high)
    }
    return ColumnDomain(values=tuple(values))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def integer(name: str) -> ColumnTerms:
    return ColumnTerms(
        lambda value: str(int(value)) if isinstance(value, int) else None, name, name
    )
