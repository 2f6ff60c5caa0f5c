"""Sentences about what the differing cells of paired rows have in common."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.words import number, plural
from rowmerge_nb.trace.bags import cell_codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    Mask = npt.NDArray[np.bool_]

_TICKS: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""The ticks of a second, by the unit of a timestamp."""
_QUARTER: Final = 15 * 60 * 1_000_000
"""Time zones differ by quarters of an hour."""
_WIDEST_ZONE: Final = 26 * 60 * 60 * 1_000_000
_MOST_PLACES: Final = 12
_ROUNDINGS: Final = {
    "half_towards_infinity": "rounded to",
    "towards_zero": "cut after",
    "half_to_even": "rounded to",
}
_MOST_ZEROS: Final = 12


def differing_cells(expected: pa.Table, actual: pa.Table) -> Mask:
    rows = expected.num_rows
    mask = np.zeros((rows, expected.num_columns), np.bool_)
    for index, columns in enumerate(zip(expected.columns, actual.columns, strict=True)):
        codes = cell_codes(*columns)
        mask[:, index] = codes[:rows] != codes[rows:]
    return mask


def cell_patterns(expected: pa.Table, actual: pa.Table) -> tuple[str, ...]:
    """Return one sentence for each pattern that explains all differing cells of a column."""
    mask = differing_cells(expected, actual)
    names, rows = expected.column_names, expected.num_rows
    sentences = []
    exchanged = _exchanged_columns(expected, actual, mask)
    if exchanged is not None:
        one, other = exchanged
        count = int((mask[:, one] | mask[:, other]).sum())
        sentences.append(
            f"Columns '{names[one]}' and '{names[other]}' are exchanged{_in(count, rows)}."
        )
    for index, name in enumerate(names):
        differs = mask[:, index]
        if not differs.any() or (exchanged is not None and index in exchanged):
            continue
        words = _of_column(expected.column(index), actual.column(index), differs)
        if words:
            count = int(differs.sum())
            sentences.append(f"Column '{name}' {words}{_in(count, rows)}.")
    return tuple(sentences)


def _in(count: int, rows: int) -> str:
    if rows == 1:
        return ""
    if count == rows:
        return ", in both paired rows" if rows == 2 else f", in all {number(rows)} paired rows"
    return f", in {number(count)} of {number(rows)} paired rows"


def _exchanged_columns(expected: pa.Table, actual: pa.Table, mask: Mask) -> tuple[int, int] | None:
    """Return two columns of one type whose differing cells are those of the other column."""
    types, rows = expected.schema.types, expected.num_rows
    indices = np.flatnonzero(mask.any(axis=0)).tolist()
    for at, one in enumerate(indices):
        for other in indices[at + 1 :]:
            if types[one] != types[other]:
                continue
            differs = mask[:, one] | mask[:, other]
            crossed = [
                cell_codes(expected.column(index), actual.column(partner))
                for index, partner in ((one, other), (other, one))
            ]
            if all(np.array_equal(c[:rows][differs], c[rows:][differs]) for c in crossed):
                return one, other
    return None


def _of_column(expected: pa.ChunkedArray, actual: pa.ChunkedArray, differs: Mask) -> str:
    mask = pa.array(differs)
    cells = _Cells(expected.filter(mask), actual.filter(mask))
    words = next(chain(_of_nulls(cells), _of_values(cells)), "")
    return words or _of_other_rows(expected, actual)


@dataclass(frozen=True)
class _Cells:
    expected: pa.ChunkedArray
    actual: pa.ChunkedArray

    @property
    def are_values(self) -> bool:
        return not self.expected.null_count and not self.actual.null_count

    def all(self, compare: Callable[[Any, Any], Any]) -> bool:
        try:
            return _is_true(compare(self.expected, self.actual))
        except pa.ArrowException:
            return False

    def become(self, change: Callable[[Any], Any]) -> bool:
        return self.all(lambda expected, actual: pc.equal(change(expected), actual))


def _cut(arrow_type: pa.DataType, values: pa.ChunkedArray) -> pa.ChunkedArray:
    return values.cast(arrow_type, safe=False).cast(values.type)


def _is_true(values: Any) -> bool:
    return bool(pc.all(values, skip_nulls=False).as_py())


def _of_nulls(cells: _Cells) -> Iterator[str]:
    expected, actual = cells.expected, cells.actual
    if actual.null_count == len(actual):
        is_text = pa.types.is_string(expected.type) and _is_true(pc.equal(expected, ""))
        yield "is NULL in place of an empty text" if is_text else "is NULL in place of a value"
    if expected.null_count == len(expected):
        values = actual.unique()
        yield (
            f"is {_constant(values[0])} in place of NULL"
            if len(values) == 1
            else "has a value in place of NULL"
        )


def _constant(value: pa.Scalar) -> str:
    plain = value.as_py()
    return (repr(plain) if isinstance(plain, str) else str(plain))[:40]


def _of_values(cells: _Cells) -> Iterator[str]:
    arrow_type = cells.expected.type
    if not cells.are_values or arrow_type != cells.actual.type:
        return
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        yield from _of_texts(cells)
    elif pa.types.is_decimal(arrow_type):
        yield from _of_decimals(cells)
    elif pa.types.is_floating(arrow_type):
        yield from _of_floats(cells)
    elif pa.types.is_integer(arrow_type):
        yield from _of_integers(cells)
    elif pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type):
        yield from _of_moments(cells)


def _of_texts(cells: _Cells) -> Iterator[str]:
    if cells.all(lambda e, a: pc.equal(pc.utf8_lower(e), pc.utf8_lower(a))):
        yield "differs in case only"
    longer = cells.all(lambda e, a: pc.greater(pc.utf8_length(a), pc.utf8_length(e)))
    shorter = cells.all(lambda e, a: pc.less(pc.utf8_length(a), pc.utf8_length(e)))
    if cells.all(lambda e, a: pc.equal(pc.utf8_rtrim(e, " "), pc.utf8_rtrim(a, " "))):
        if longer:
            yield "is padded with blanks"
        yield "has lost its trailing blanks" if shorter else "differs in trailing blanks only"
    if cells.all(lambda e, a: pc.equal(pc.utf8_trim_whitespace(e), pc.utf8_trim_whitespace(a))):
        yield "differs in blanks at its ends only"
    most = pc.max(pc.utf8_length(cells.actual)).as_py()
    if shorter and cells.all(lambda e, a: pc.equal(pc.utf8_slice_codeunits(e, 0, most), a)):
        yield f"is cut after {plural(most, 'character')}"
    if cells.all(lambda e, a: pc.equal(pc.utf8_normalize(e, "NFKC"), pc.utf8_normalize(a, "NFKC"))):
        yield "differs in its Unicode normal form only"


def _of_decimals(cells: _Cells) -> Iterator[str]:
    yield from _of_rounding(cells, cells.expected.type.scale)
    yield from _of_sizes(cells)


def _of_floats(cells: _Cells) -> Iterator[str]:
    if pa.types.is_float64(cells.expected.type) and cells.all(
        lambda e, a: pc.equal(e.cast(pa.float32(), safe=False).cast(pa.float64()), a)
    ):
        yield "is rounded to the digits of a real"
    yield from _of_rounding(cells, _MOST_PLACES)
    yield from _of_sizes(cells)


def _of_rounding(cells: _Cells, places: int) -> Iterator[str]:
    for digits in range(places):
        at = plural(digits, "decimal place")
        for mode, words in _ROUNDINGS.items():
            if cells.become(partial(pc.round, ndigits=digits, round_mode=mode)):
                yield f"is {words} {at}"


def _of_sizes(cells: _Cells) -> Iterator[str]:
    expected, actual = (
        side.cast(pa.float64(), safe=False) for side in (cells.expected, cells.actual)
    )
    if _is_true(pc.equal(pc.negate(expected), actual)):
        yield "has the other sign"
    for zeros in range(1, _MOST_ZEROS + 1):
        factor = float(10**zeros)
        if _is_close(pc.multiply(expected, factor), actual):
            yield f"is {number(10**zeros)} times as large (its decimal point is moved)"
        if _is_close(expected, pc.multiply(actual, factor)):
            yield f"is {number(10**zeros)} times too small (its decimal point is moved)"
    if _is_close(expected, actual):
        yield "differs in its last digits only"
    if len(expected) > 1 and len(apart := pc.unique(pc.subtract(actual, expected))) == 1:
        by = apart[0].as_py()
        yield f"is {'larger' if by > 0 else 'smaller'} by {abs(by):g}"


def _is_close(one: Any, other: Any) -> bool:
    with np.errstate(invalid="ignore"):
        return bool(np.allclose(one.to_numpy(), other.to_numpy(), rtol=1e-12, atol=0))


def _of_integers(cells: _Cells) -> Iterator[str]:
    for bits, arrow_type in ((32, pa.int32()), (16, pa.int16()), (8, pa.int8())):
        if bits < cells.expected.type.bit_width and cells.become(partial(_cut, arrow_type)):
            yield f"is cut to {bits} bits"
    yield from _of_sizes(cells)


def _of_moments(cells: _Cells) -> Iterator[str]:
    if pa.types.is_date(cells.expected.type):
        days = pc.subtract(
            *(side.cast(pa.date32()).cast(pa.int32()) for side in (cells.actual, cells.expected))
        )
        if len(apart := pc.unique(days)) == 1:
            by = apart[0].as_py()
            yield f"is {plural(abs(by), 'day')} too {'late' if by > 0 else 'early'}"
        return
    unit = cells.expected.type.unit
    for coarser, words in (
        ("day", "a day"),
        ("second", "a second"),
        ("millisecond", "a millisecond"),
    ):
        if cells.become(partial(pc.floor_temporal, unit=coarser)):
            yield f"is cut to {words}"
    ticks = pc.subtract(*(side.cast(pa.int64()) for side in (cells.actual, cells.expected)))
    if len(apart := pc.unique(ticks)) == 1:
        by = apart[0].as_py() * 1_000_000 // _TICKS[unit]
        zone = by % _QUARTER == 0 and abs(by) <= _WIDEST_ZONE
        if zone or len(ticks) > 1:
            yield (
                f"is {dt.timedelta(microseconds=abs(by))} too {'late' if by > 0 else 'early'}"
                f"{', which is the difference of two time zones' if zone else ''}"
            )


def _of_other_rows(expected: pa.ChunkedArray, actual: pa.ChunkedArray) -> str:
    rows = len(expected)
    if rows < 2:
        return ""
    codes = cell_codes(expected, actual)
    before, after = codes[:rows], codes[rows:]
    for step, words in ((1, "the row before it"), (-1, "the row after it")):
        inner = slice(1, None) if step == 1 else slice(None, -1)
        # Two rows with exchanged values are not a shift.
        if rows > 2 and np.array_equal(np.roll(before, step)[inner], after[inner]):
            return f"has the value of {words} in the sinks' pages"
    if np.array_equal(np.sort(before), np.sort(after)):
        return "has the values of other rows"
    return ""
