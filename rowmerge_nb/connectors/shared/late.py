"""Late materialization: read selective columns first, to skip pieces of a file without a match.

What is skipped must not depend on the requested columns, since two scans must number rows alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.spi import ColumnDomain, Type

FEW_VALUES: Final = 16
"""The maximum number of values of a selective domain; with more, almost every piece has a match,
and keys are read twice in vain.
"""
_EXACT: Final = frozenset(
    {"tinyint", "smallint", "integer", "bigint", "date", "decimal", "varchar"}
)
"""Types whose equality is Arrow's; not floating point (-0.0 = 0.0) or char (padding)."""


def is_selective(domain: ColumnDomain, sql_type: Type) -> bool:
    """Return whether it pays to read a column with this domain before the others.

    >>> from rowmerge_nb.spi import ColumnDomain, parse_type
    >>> is_selective(ColumnDomain((7, 8)), parse_type("bigint")), is_selective(ColumnDomain((0.0,)), parse_type("double"))
    (True, False)
    """
    return (
        domain.values is not None and len(domain.values) <= FEW_VALUES and sql_type.base in _EXACT
    )


def has_match(columns: Iterable[tuple[pa.Array, ColumnDomain]]) -> bool:
    """Return whether a row matches each column's domain; True also if values cannot be compared,
    since the engine filters again.

    >>> from rowmerge_nb.spi import ColumnDomain
    >>> numbers, letters = pa.array([1, None, 3]), pa.array(["a", "b", "c"])
    >>> has_match([(numbers, ColumnDomain((3, 4)))]), has_match([(numbers, ColumnDomain((2,)))])
    (True, False)
    >>> has_match([(numbers, ColumnDomain((3,))), (letters, ColumnDomain(("a",)))]), has_match([(numbers, ColumnDomain(("x",)))])
    (False, True)
    """
    masks = [_is_in(column, domain) for column, domain in columns]
    compared = [mask for mask in masks if mask is not None]
    return not compared or bool(pc.any(reduce(pc.and_, compared)).as_py())


def _is_in(column: pa.Array, domain: ColumnDomain) -> pa.BooleanArray | None:
    try:
        values = pa.array(domain.values, type=column.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return pc.is_in(column, value_set=values)
