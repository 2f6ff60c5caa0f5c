"""Predicate pushdown: constraints as pyiceberg expressions for files, and against statistics of row
groups.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.spi import ColumnDomain, Constraint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergField
    from rowmerge_nb.connectors.iceberg.projection import FileField

_MOST_REAL: Final = float(np.finfo(np.float32).max)
_LISTED: Final = 200
"""The maximum number of values that are compared one by one, as in pyiceberg; beyond it, only the
minimum and maximum are used.
"""


def domains_by_id(
    constraint: Constraint, fields: tuple[IcebergField, ...]
) -> dict[int, ColumnDomain]:
    return {
        field.id: constraint.domains[field.name]
        for field in fields
        if field.name in constraint.domains
    }


def expression_of(constraint: Constraint, schema: Schema) -> BooleanExpression:
    """Return the predicate that a file must be able to satisfy, without parts that pyiceberg cannot
    compare.
    """
    from pyiceberg.expressions import AlwaysTrue, And
    from pyiceberg.expressions.visitors import bind

    parts: list[BooleanExpression] = []
    for name, domain in constraint.domains.items():
        comparable = ColumnDomain() if _is_beyond(domain, schema, name) else domain
        for part in _parts(name, comparable):
            # A value that the column's type cannot represent is ignored; the engine filters again.
            with suppress(Exception):
                bind(schema, part, case_sensitive=True)
                parts.append(part)
    # And() of all parts at once builds a balanced tree; nested pairs would exceed the recursion
    # limit.
    return And(AlwaysTrue(), AlwaysTrue(), *parts)


def _is_beyond(domain: ColumnDomain, schema: Schema, name: str) -> bool:
    from pyiceberg.types import FloatType

    with suppress(TypeError, ValueError):
        bounds = (*(domain.values or ()), domain.low, domain.high)
        is_far = any(bound is not None and not abs(bound) <= _MOST_REAL for bound in bounds)
        return is_far and isinstance(schema.find_type(name), FloatType)
    return False


def _parts(name: str, domain: ColumnDomain) -> list[BooleanExpression]:
    from pyiceberg import expressions

    # Its classes accept a name as a term, unlike their annotations.
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


def may_matter(
    group: Any, file_fields: Mapping[int, FileField], domains: Mapping[int, ColumnDomain]
) -> bool:
    """Return whether a row group may have rows that satisfy a constraint."""
    if not domains:
        return True
    statistics = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    for field_id, domain in domains.items():
        field = file_fields.get(field_id)
        column = (
            statistics.get(field.name) if field is not None and field.name is not None else None
        )
        if column is None or not column.is_stats_set:
            continue
        column_statistics = column.statistics
        if column_statistics.has_null_count and column_statistics.null_count == group.num_rows:
            return False
        # Bounds that Python cannot represent, such as dates after year 9999, are ignored.
        with suppress(pa.ArrowNotImplementedError, OverflowError, ValueError):
            if column_statistics.has_min_max and not domain.overlaps(
                column_statistics.min, column_statistics.max
            ):
                return False
    return True
