"""Keys first: whether a piece of a file has a row that matters is seen by the values of few columns, before the others are read.

What is left out must not depend on the columns that are asked for: the rows of a scan are numbered, and a second scan must number them alike.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowmerge_nb.spi.page_source import ColumnDomain
    from rowmerge_nb.spi.types import Type

FEW_VALUES: Final = 16
"""Of more values than this almost every piece of a file has one, and its keys would be read twice for nothing."""
_EXACT: Final = frozenset({"tinyint", "smallint", "integer", "bigint", "date", "decimal", "varchar"})
"""Types whose values are equal if and only if Arrow finds them equal: not so -0.0 and 0.0, or texts that are padded."""


def is_selective(domain: ColumnDomain, kind: Type) -> bool:
    """Return whether it pays to look for the values of a domain before other columns are read.

    Args:
        domain: what a column's value must satisfy.
        kind: the column's type.

    >>> from rowmerge_nb.spi import ColumnDomain, parse_type
    >>> is_selective(ColumnDomain((7, 8)), parse_type("bigint")), is_selective(ColumnDomain((0.0,)), parse_type("double"))
    (True, False)
    """
    return domain.values is not None and len(domain.values) <= FEW_VALUES and kind.base in _EXACT


def has_match(columns: Iterable[tuple[pa.Array, ColumnDomain]]) -> bool:
    """Return whether a row has in each of some columns a value of its domain, which lists them.

    Args:
        columns: columns of the same rows, in the types of the table, each with what its value must satisfy.

    Returns:
        True also where values cannot be compared with a column's: then the engine, which looks at every row, has the last word.

    >>> from rowmerge_nb.spi import ColumnDomain
    >>> numbers, letters = pa.array([1, None, 3]), pa.array(["a", "b", "c"])
    >>> has_match([(numbers, ColumnDomain((3, 4)))]), has_match([(numbers, ColumnDomain((2,)))])
    (True, False)
    >>> has_match([(numbers, ColumnDomain((3,))), (letters, ColumnDomain(("a",)))]), has_match([(numbers, ColumnDomain(("x",)))])
    (False, True)
    """
    found = [_is_in(column, domain) for column, domain in columns]
    compared = [mask for mask in found if mask is not None]
    return not compared or bool(pc.any(reduce(pc.and_, compared)).as_py())


def _is_in(column: pa.Array, domain: ColumnDomain) -> pa.BooleanArray | None:
    try:
        wanted = pa.array(domain.values, type=column.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return pc.is_in(column, value_set=wanted)
