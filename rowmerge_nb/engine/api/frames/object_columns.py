"""Columns of Python objects as Arrow arrays: Arrow infers the type, and values that it would change
silently are rejected.

The cost is a pass over the values' classes (some 30 ns a value), and a Python loop over lists, rows
and timestamps only, whose parts Arrow truncates, merges or drops without an error.
"""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.engine.api.frames.frame_values import RefusedValueError, exact_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.spi.types import Type

_FAMILIES: Final[tuple[tuple[tuple[type, ...], str], ...]] = (
    ((bool, np.bool_), "boolean"),
    ((int, float, Decimal, np.integer, np.floating), "number"),
    ((str,), "text"),
    ((bytes, bytearray, memoryview), "bytes"),
    ((dt.datetime,), "timestamp"),
    ((dt.date,), "date"),
    ((dt.time,), "time"),
    ((dt.timedelta,), "duration"),
    ((uuid.UUID,), "uuid"),
    ((dict,), "row"),
    ((list, tuple, set, frozenset, np.ndarray), "array"),
)
_ABSENT: Final = frozenset({"NoneType", "NaTType", "NAType"})
"""The classes of values that mean NULL, besides NaN."""
_FAILURES: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)


def exact_objects(values: Sequence[Any], *, pandas: bool) -> tuple[Type, pa.ChunkedArray]:
    """Return the SQL type of Python objects in a list or NumPy array, and their values in its Arrow
    type.

    With ``pandas``, NaN means NULL.
    """

    def convert(some: Sequence[Any]) -> tuple[Type, pa.ChunkedArray]:
        array = _inferred(some, pandas=pandas)
        return exact_values(
            array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
        )

    try:
        return convert(values)
    except RefusedValueError:
        raise
    except _FAILURES as error:
        row = _first_refused(values, convert)
        if row is None:
            raise
        raise RefusedValueError(
            row, values[row], _reason(error, values[: row + 1], convert)
        ) from error


def _first_refused(values: Sequence[Any], convert: Callable[[Sequence[Any]], object]) -> int | None:
    """Return the last row of the shortest failing prefix, which costs time only after a failure."""

    def fails(count: int) -> bool:
        try:
            convert(values[:count])
        except (RefusedValueError, *_FAILURES):
            return True
        return False

    sound, failing = 0, 1
    while failing < len(values) and not fails(failing):
        sound, failing = failing, min(2 * failing, len(values))
    if failing >= len(values) and not fails(len(values)):
        return None
    while failing - sound > 1:
        middle = (sound + failing) // 2
        sound, failing = (sound, middle) if fails(middle) else (middle, failing)
    return failing - 1


def _reason(
    error: Exception, values: Sequence[Any], convert: Callable[[Sequence[Any]], object]
) -> str:
    try:
        convert(values)
    except (RefusedValueError, *_FAILURES) as conversion_error:
        error = conversion_error
    if isinstance(error, UnicodeError):
        return "it has half of a surrogate pair, which UTF-8 text cannot hold"
    if isinstance(error, OverflowError):
        return "it is beyond the 64 bits of bigint"
    if isinstance(error, pa.ArrowNotImplementedError) and str(error) == "extension":
        return "Arrow infers no type for UUIDs within arrays and rows; give them as texts"
    return " ".join(map(str, error.args))


def _inferred(values: Sequence[Any], *, pandas: bool) -> pa.Array | pa.ChunkedArray:
    families = _families(values)
    if families == {"date", "timestamp"}:
        values = [_at_midnight(value) for value in values]
        families = {"timestamp"}
    _check(values, families)
    array = pa.array(values, from_pandas=pandas)
    _check_inside(values, array.type)
    return array


def _at_midnight(value: Any) -> Any:
    return dt.datetime.combine(value, dt.time()) if type(value) is dt.date else value


def _families(values: Sequence[Any]) -> set[str]:
    classes = set(map(type, values))
    families = {_family(one) for one in classes if one.__name__ not in _ABSENT}
    if (
        len(families) > 1
        and "number" in families
        and all(issubclass(one, float | np.floating) for one in classes if _family(one) == "number")
    ):
        # pandas uses NaN for NULL in columns of any type.
        numbers = (value for value in values if isinstance(value, float | np.floating))
        if all(number != number for number in numbers):  # noqa: PLR0124 - it is NaN
            families.discard("number")
    return families


def _family(one: type) -> str:
    return next((name for classes, name in _FAMILIES if issubclass(one, classes)), one.__name__)


def _check(values: Sequence[Any], families: set[str]) -> None:
    if len(families) > 1:
        raise TypeError(f"the column has values of several types: {', '.join(sorted(families))}")
    if families <= {"timestamp", "time"} and families:
        _check_zones(values, next(iter(families)))
    if families <= {"timestamp", "duration"}:
        finer = next(
            (
                value
                for value in values
                if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0)
            ),
            None,
        )
        if families and finer is not None and finer == finer:  # noqa: PLR0124 - NaT has nanoseconds that are NaN
            raise TypeError("it has nanoseconds, but SQL values have microseconds here")


def _check_zones(values: Sequence[Any], family: str) -> None:
    zoned = {
        getattr(value, "tzinfo", None) is not None
        for value in values
        if type(value).__name__ not in _ABSENT
    }
    if family == "time" and True in zoned:
        raise TypeError(
            "it has a time zone, and no SQL type here holds a time of day with a time zone"
        )
    if len(zoned) > 1:
        raise TypeError("some timestamps of the column have a time zone, and some do not")


def _check_inside(values: Sequence[Any], arrow_type: pa.DataType) -> None:
    if pa.types.is_struct(arrow_type):
        rows = [value for value in values if isinstance(value, dict)]
        for field in arrow_type:
            _check_parts([row.get(field.name) for row in rows], field.type)
    elif pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        lists = [
            value
            for value in values
            if isinstance(value, list | tuple | set | frozenset | np.ndarray)
        ]
        if all(isinstance(value, np.ndarray) and value.dtype != object for value in lists):
            return
        _check_parts(list(chain.from_iterable(lists)), arrow_type.value_type)


def _check_parts(values: Sequence[Any], arrow_type: pa.DataType) -> None:
    _check(values, _families(values))
    _check_inside(values, arrow_type)
