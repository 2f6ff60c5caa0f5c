"""Rows selected by source row number or column values: the arguments of `Result.why` and
`Result.near`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from operator import index
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from rowmerge_nb.trace.page_samples import PageSample

SOURCE_ROW: Final = "source_row"


def picked(
    row: Any, source_row: Any, columns: Mapping[str, Any], column_names: Iterable[str]
) -> tuple[int | None, Mapping[str, Any]]:
    """Return the requested source row number, or None, and the requested column values.

    ``row`` is the positional argument: a source row number, or a mapping of column values.
    ``column_names`` are the rows' columns.
    """
    if isinstance(row, Mapping):
        row, columns = None, {**row, **columns}
    elif row is not None and source_row is not None:
        raise RowMergeError.invalid(
            f"The source row is named twice: {row!r} and {source_row!r}",
            hint="Give one of them.",
        )
    if source_row is not None and SOURCE_ROW in {name.lower() for name in column_names}:
        raise RowMergeError(
            f"source_row = {source_row!r} may mean the number of a source row, or the column of"
            " that name",
            code="AMBIGUOUS_NAME",
            hint=(
                f"Write ({source_row!r}) for the number, ({{'{SOURCE_ROW}': {source_row!r}}}) for"
                " the column."
            ),
        )
    number = source_row if row is None else row
    checked(
        number,
        "source_row",
        _is_row,
        "the number of a row of the source, from 0, or values by columns",
    )
    return None if number is None else index(number), columns


def _is_row(value: Any) -> bool:
    return value is None or (
        hasattr(value, "__index__") and not isinstance(value, bool) and index(value) >= 0
    )


def check_columns(columns: Iterable[str], sides: Iterable[Mapping[str, Any] | None]) -> None:
    """Check that each column exists in one of the rows, ignoring case, or raise
    INVALID_ARGUMENTS.
    """
    names = {name.lower(): name for side in sides for name in side or {}}
    if unknown := [name for name in columns if name.lower() not in names]:
        raise RowMergeError.invalid(
            f"Neither side has a column '{unknown[0]}'",
            hint=did_you_mean(unknown[0], list(names))
            or f"There are: {', '.join(sorted(names.values()))}.",
        )


def has_values(
    side: Mapping[str, Any], columns: Mapping[str, Any], *, padded: bool = False
) -> bool:
    """Return whether a row has all values; ``padded`` ignores trailing blanks, as in char columns.

    >>> has_values({"Id": 7, "name": "Ed"}, {"id": "7"}), has_values({"Id": 7}, {"name": "Ed"})
    (True, False)
    >>> has_values({"c": "ab   "}, {"c": "ab"}), has_values({"c": "ab   "}, {"c": "ab"}, padded=True)
    (False, True)
    """
    values = {name.lower(): value for name, value in side.items()}
    return all(
        name.lower() in values and _same(values[name.lower()], value, padded)
        for name, value in columns.items()
    )


def rows_like(
    pages: PageSample, number: int | None, columns: Mapping[str, Any], *, padded: bool = False
) -> npt.NDArray[np.bool_]:
    """Return a mask of the sample's rows with this source row number, and with these values on one
    side.
    """
    import numpy as np

    witness = pages.witness
    assert witness is not None
    alike = np.ones(witness.num_rows, bool)
    if number is not None:
        alike &= _equals(witness.column("source_row"), number)
    if not columns:
        return alike
    either = np.zeros(witness.num_rows, bool)
    for side in {"source", "target"} & set(witness.schema.names):
        either |= _side_has(witness.column(side), columns, padded)
    return alike & either


def _equals(numbers: pa.Array, number: int) -> npt.NDArray[np.bool_]:
    valid = numbers.is_valid().to_numpy(zero_copy_only=False)
    equal: npt.NDArray[np.bool_] = valid & (
        numbers.fill_null(0).to_numpy(zero_copy_only=False) == number
    )
    return equal


def _side_has(
    rows: pa.StructArray, columns: Mapping[str, Any], padded: bool
) -> npt.NDArray[np.bool_]:
    import numpy as np

    from rowmerge_nb.spi.values import python_values

    indices = {field.name.lower(): index for index, field in enumerate(rows.type)}
    has: npt.NDArray[np.bool_] = rows.is_valid().to_numpy(zero_copy_only=False)
    for name, expected in columns.items():
        if name.lower() not in indices:
            return np.zeros(len(rows), bool)
        candidates = np.flatnonzero(has)
        values = python_values(rows.field(indices[name.lower()]).take(candidates))
        has = np.zeros(len(rows), bool)
        has[candidates] = [_same(value, expected, padded) for value in values]
    return has


def any_has_values(
    rows: Iterable[Mapping[str, Any] | None], columns: Mapping[str, Any], *, padded: bool = False
) -> bool:
    return any(has_values(row, columns, padded=padded) for row in rows if row)


def _same(value: Any, expected: Any, padded: bool) -> bool:
    if padded and isinstance(value, str) and isinstance(expected, str):
        return value.rstrip(" ") == expected.rstrip(" ")
    with suppress(Exception):
        # The comparison of foreign objects may raise.
        if bool(value == expected):
            return True
    return value is not None and expected is not None and str(value) == str(expected)


def in_words(source_row: int | None, columns: Mapping[str, Any]) -> str:
    """Return the request in words.

    >>> in_words(3, {"name": "Ed"})
    "source row 3 and name = 'Ed'"
    """
    parts = [f"source row {source_row}"] if source_row is not None else []
    return " and ".join([*parts, *(f"{name} = {value!r}" for name, value in columns.items())])
