"""Keys first: whether a piece of a file has a row that matters is seen by the values of few columns, before the others are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from rowmerge_nb.spi.page_source import ColumnDomain
    from rowmerge_nb.spi.types import Type

__all__ = ["has_match", "is_selective"]

FEW_VALUES: Final = 16
"""Of more values than this almost every piece of a file has one, and its keys would be read twice for nothing."""
_EXACT: Final = frozenset({"tinyint", "smallint", "integer", "bigint", "date", "decimal", "varchar"})
"""Types whose values are equal if and only if Arrow finds them equal: not so -0.0 and 0.0, or texts that are padded."""


def is_selective(domain: ColumnDomain, kind: Type) -> bool:
    """Tell whether it pays to look for the values of a domain before other columns are read.

    Args:
        domain: what a column's value must satisfy.
        kind: the column's type.

    >>> from rowmerge_nb.spi import ColumnDomain, parse_type
    >>> is_selective(ColumnDomain((7, 8)), parse_type("bigint")), is_selective(ColumnDomain((0.0,)), parse_type("double"))
    (True, False)
    """
    return domain.values is not None and len(domain.values) <= FEW_VALUES and kind.base in _EXACT


def has_match(column: pa.Array, domain: ColumnDomain) -> bool:
    """Tell whether a column has a value of a domain that lists them.

    Args:
        column: the column, in the type of the table.
        domain: what its value must satisfy.

    Returns:
        True also where the values cannot be compared with the column's: then the engine, which looks at every row, has the last word.

    >>> from rowmerge_nb.spi import ColumnDomain
    >>> column = pa.array([1, None, 3])
    >>> has_match(column, ColumnDomain((3, 4))), has_match(column, ColumnDomain((2,))), has_match(column, ColumnDomain(("x",)))
    (True, False, True)
    """
    try:
        wanted = pa.array(domain.values, type=column.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return True
    return bool(pc.any(pc.is_in(column, value_set=wanted)).as_py())
