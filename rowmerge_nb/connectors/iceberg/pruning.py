"""What need not be read: a constraint as pyiceberg's expression for files, and as a look at the statistics of row groups."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.spi.page_source import ColumnDomain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema

    from rowmerge_nb.connectors.iceberg.handles import Field
    from rowmerge_nb.connectors.iceberg.projection import Found
    from rowmerge_nb.spi.page_source import Constraint

_MOST_REAL: Final = float(np.finfo(np.float32).max)
_LISTED: Final = 200
"""So many values are compared one by one (pyiceberg looks at no more); of more only the smallest and the largest count."""


def domains_by_id(constraint: Constraint, fields: tuple[Field, ...]) -> dict[int, ColumnDomain]:
    """Return the domains of a constraint by field id."""
    return {field.id: constraint.domains[field.name] for field in fields if field.name in constraint.domains}


def expression_of(constraint: Constraint, schema: Schema) -> BooleanExpression:
    """Return what a file must be able to satisfy to matter; what pyiceberg cannot compare is left out.

    Args:
        constraint: the constraint.
        schema: the table's schema.
    """
    from pyiceberg.expressions import AlwaysTrue, And
    from pyiceberg.expressions.visitors import bind

    parts: list[BooleanExpression] = []
    for name, domain in constraint.domains.items():
        comparable = ColumnDomain() if _is_beyond(domain, schema, name) else domain
        for part in _parts(name, comparable):
            # A value that has no form in the column's type says nothing here: the engine looks at it again.
            with suppress(Exception):
                bind(schema, part, case_sensitive=True)
                parts.append(part)
    # Of many parts at once it makes a tree that is as deep as their number has digits; one by one it would be as deep as they are many.
    return And(AlwaysTrue(), AlwaysTrue(), *parts)


def _is_beyond(domain: ColumnDomain, schema: Schema, name: str) -> bool:
    """Return whether a domain names numbers beyond the finite ones of a real column: pyiceberg takes infinity for out of its range."""
    from pyiceberg.types import FloatType

    with suppress(TypeError, ValueError):
        bounds = (*(domain.values or ()), domain.low, domain.high)
        is_far = any(bound is not None and not abs(bound) <= _MOST_REAL for bound in bounds)
        return is_far and isinstance(schema.find_type(name), FloatType)
    return False


def _parts(name: str, domain: ColumnDomain) -> list[BooleanExpression]:
    from pyiceberg import expressions

    # Its classes take a name for a term, which their annotations do not say.
    e: Any = expressions
    parts: list[BooleanExpression] = []
    with suppress(TypeError, ValueError):
        low, high = domain.low, domain.high
        if domain.values is not None:
            if not domain.values:
                return [e.AlwaysFalse()]
            if len(domain.values) <= _LISTED:
                parts.append(e.In(name, tuple(domain.values)))
            low = max([min(domain.values)] + ([low] if low is not None else []))
            high = min([max(domain.values)] + ([high] if high is not None else []))
        parts.append(e.NotNull(name))
        if low is not None:
            parts.append(e.GreaterThanOrEqual(name, low))
        if high is not None:
            parts.append(e.LessThanOrEqual(name, high))
    return parts


def may_matter(group: Any, found: Mapping[int, Found], domains: Mapping[int, ColumnDomain]) -> bool:
    """Return whether a row group may have rows that a constraint lets through.

    Args:
        group: the row group's metadata.
        found: where the fields are in the file.
        domains: the constraint, by field id.
    """
    if not domains:
        return True
    statistics = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    for field_id, domain in domains.items():
        field = found.get(field_id)
        column = statistics.get(field.name) if field is not None and field.name is not None else None
        if column is None or not column.is_stats_set:
            continue
        known = column.statistics
        if known.has_null_count and known.null_count == group.num_rows:
            return False
        # Of bounds that Python cannot say, such as dates of years beyond 9999, nothing is known.
        with suppress(pa.ArrowNotImplementedError, OverflowError, ValueError):
            if known.has_min_max and not _overlaps(domain, known.min, known.max):
                return False
    return True


def _overlaps(domain: ColumnDomain, smallest: Any, largest: Any) -> bool:
    with suppress(TypeError):
        if domain.low is not None and largest < domain.low:
            return False
        if domain.high is not None and smallest > domain.high:
            return False
        if domain.values is not None:
            return any(smallest <= value <= largest for value in domain.values)
    return True
