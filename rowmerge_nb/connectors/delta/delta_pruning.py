"""The files that may have rows for a constraint, by the statistics in the log."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from rowmerge_nb.spi import ColumnDomain, Constraint

_TRUNCATED: Final = dt.timedelta(milliseconds=1)
"""Others may truncate the bounds of timestamps to milliseconds."""


def may_matter(actions: pa.Table, constraint: Constraint) -> list[bool]:
    """Return whether each file may have rows that satisfy a constraint.

    >>> from rowmerge_nb.spi import ColumnDomain, Constraint
    >>> actions = pa.table({"min": [{"k": 1}, {"k": 5}], "max": [{"k": 3}, {"k": None}]})
    >>> may_matter(actions, Constraint({"k": ColumnDomain(low=4)}))
    [False, True]
    """
    relevant = [True] * actions.num_rows
    for name, domain in constraint.domains.items():
        lows, highs = _field(actions, "min", name), _field(actions, "max", name)
        if lows is None or highs is None:
            values = _field(actions, "partition", name)
            for index, value in enumerate(values or ()):
                # NULL is never relevant.
                if value is None or not _overlaps(domain, value, value):
                    relevant[index] = False
            continue
        for index, (low, high) in enumerate(zip(lows, highs, strict=True)):
            if low is not None and high is not None and not _overlaps(domain, low, high):
                relevant[index] = False
    return relevant


def _field(actions: pa.Table, column: str, name: str) -> list[Any] | None:
    if column not in actions.column_names:
        return None
    values = actions.column(column).combine_chunks()
    index = values.type.get_field_index(name)
    if index < 0 or pa.types.is_nested(values.type.field(index).type):
        return None
    # Python cannot represent all dates.
    with suppress(OverflowError, ValueError):
        return list(values.field(index).to_pylist())
    return None


def _overlaps(domain: ColumnDomain, low: Any, high: Any) -> bool:
    if isinstance(high, dt.datetime):
        with suppress(OverflowError):
            high += _TRUNCATED
    return domain.overlaps(low, high)
