"""Columns of constants as data: the common type of literals, and their values as an Arrow array.

Only literals that Arrow cannot parse are handled in Python, each distinct text once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.spi.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, UNKNOWN, Type, decimal_of
from rowmerge_nb.sql.analyzer.expressions.typed_literals import decimal_literal, typed_literal
from rowmerge_nb.sql.typed.clocks import instants_of
from rowmerge_nb.sql.typed.expressions import Apply, Constant
from rowmerge_nb.sql.typed.type_rules import (
    MAX_PRECISION,
    common_type,
    is_exact,
    is_zoned,
    varchar_of,
)
from rowmerge_nb.sql.typed.zones import session_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from rowmerge_nb.sql.typed.expressions import Typed

_LARGEST_INTEGER: Final = 2**31 - 1


@dataclass
class BadLiteral(Exception):
    """An invalid literal, and the offset of the error."""

    index: int
    message: str
    offset: int = 0


@dataclass
class UnfitConstant(Exception):
    """A constant that its column's type cannot hold."""

    index: int
    type: Type
    text: str


@dataclass(frozen=True)
class _Part:
    sql_type: Type
    rows: npt.NDArray[np.int64]
    texts: pa.StringArray


@dataclass(frozen=True)
class ConstantColumn:
    """A column of constants by type; other rows are NULL."""

    count: int
    parts: tuple[_Part, ...]
    types: frozenset[Type]

    @property
    def type(self) -> Type | None:
        result: Type | None = UNKNOWN
        for sql_type in self.types:
            result = common_type(result, sql_type) if result is not None else None
        return result

    @classmethod
    def of_literals(cls, texts: Sequence[str]) -> ConstantColumn:
        """Build a column of literals; raise BadLiteral for the first invalid one."""
        return _of_literals(texts)

    @classmethod
    def of_constants(cls, cells: Sequence[Constant]) -> ConstantColumn:
        rows_by_base: dict[str, list[int]] = {}
        for row, cell in enumerate(cells):
            if cell.value is not None:
                rows_by_base.setdefault(cell.type.base, []).append(row)
        parts = (
            _Part(
                cells[rows[0]].type,
                np.array(rows, np.int64),
                pa.array([cells[row].value for row in rows], pa.string()),
            )
            for rows in rows_by_base.values()
        )
        return cls(len(cells), tuple(parts), frozenset(cell.type for cell in cells))

    @classmethod
    def of_integers(cls, numbers: npt.NDArray[np.int64]) -> ConstantColumn:
        part = _Part(BIGINT, np.arange(len(numbers)), pa.array(numbers).cast(pa.string()))
        return cls(len(numbers), (part,), frozenset([BIGINT]))

    @classmethod
    def joined(cls, columns: Sequence[ConstantColumn]) -> ConstantColumn:
        if len(columns) == 1:
            return columns[0]
        starts = np.cumsum([0, *(column.count for column in columns)])
        parts = [
            _Part(part.sql_type, part.rows + start, part.texts)
            for column, start in zip(columns, starts, strict=False)
            for part in column.parts
        ]
        return cls(
            int(starts[-1]), tuple(parts), frozenset().union(*(column.types for column in columns))
        )

    def values(self, sql_type: Type) -> pa.Array:
        arrays = [_cast(part, sql_type) for part in self.parts]
        rows = [part.rows for part in self.parts]
        filled_count = sum(map(len, rows))
        if filled_count < self.count:
            missing = np.ones(self.count, bool)
            for some in rows:
                missing[some] = False
            arrays.append(pa.nulls(self.count - filled_count, sql_type.arrow))
            rows.append(np.flatnonzero(missing))
        if len(arrays) == 1:
            return arrays[0]
        order = np.empty(self.count, np.int64)
        order[np.concatenate(rows)] = np.arange(self.count)
        return pa.concat_arrays(arrays).take(pa.array(order))


def literal_constant(text: str) -> Constant:
    word = text.upper()
    if word == "NULL":
        return Constant(UNKNOWN, None)
    if word in {"TRUE", "FALSE"}:
        return Constant(BOOLEAN, word.lower())
    if text.endswith("'"):
        name, value = _named_value(text)
        constant = (
            Constant(varchar_of(len(value)), value) if not name else _named_constant(name, value)
        )
    elif "E" in word:
        constant = Constant(DOUBLE, text.lstrip("+").replace("_", ""))
    else:
        digits = text.lstrip("+").replace("_", "")
        constant = (
            decimal_literal(digits)
            if "." in digits
            else Constant(_integer_type(int(digits)), str(int(digits)))
        )
    assert constant is not None, text
    return constant


def _named_value(text: str) -> tuple[str, str]:
    start = text.index("'")
    return text[:start].strip().lower(), text[start + 1 : -1].replace("''", "'")


def _named_constant(name: str, value: str) -> Constant | None:
    return Constant(Type("varbinary"), value.upper()) if name == "x" else typed_literal(name, value)


def _integer_type(number: int) -> Type:
    return INTEGER if ~_LARGEST_INTEGER <= number <= _LARGEST_INTEGER else BIGINT


# -- typed constants


def constant_of(cell: Typed) -> Constant | None:
    """Return a signed or unsigned literal as a constant that can be data."""
    if isinstance(cell, Constant):
        return cell if cell.type.base in _READERS and not is_zoned(cell.type) else None
    if isinstance(cell, Apply) and cell.name == "negate":
        inner = constant_of(cell.arguments[0])
        if (
            inner is not None
            and inner.value is not None
            and inner.type.base in _NUMBERS
            and inner.value[0] in "0123456789."
        ):
            return Constant(cell.type, f"-{inner.value}")
    return None


# -- literals

_OTHER, _NUMBER, _TEXT, _NULL, _BOOLEAN = range(5)


def _classes() -> npt.NDArray[np.int8]:
    classes = np.zeros(256, np.int8)
    for characters, literal_class in (
        (b"0123456789.+-", _NUMBER),
        (b"'", _TEXT),
        (b"nN", _NULL),
        (b"tTfF", _BOOLEAN),
    ):
        classes[list(characters)] = literal_class
    return classes


_CLASS_OF: Final = _classes()


def _of_literals(texts: Sequence[str]) -> ConstantColumn:
    array = pa.array(texts, pa.string())
    offsets = np.frombuffer(array.buffers()[1], np.int32)[: len(array) + 1]
    characters = np.frombuffer(array.buffers()[2], np.uint8)
    classes = _CLASS_OF[characters[offsets[:-1]]]
    quoted = characters[offsets[1:] - 1] == ord("'")
    classes[quoted & (classes != _TEXT)] = _OTHER
    parts: list[_Part] = []
    types: set[Type] = set()
    bad: list[BadLiteral] = []
    for literal_class in ascending(classes).tolist():
        rows = np.flatnonzero(classes == literal_class)
        subset = array if len(rows) == len(array) else array.take(pa.array(rows))
        try:
            some, part_types = _READ[literal_class](rows, subset)
        except BadLiteral as literal:
            bad.append(literal)
            continue
        parts += some
        types |= part_types
    if bad:
        raise min(bad, key=lambda literal: literal.index)
    return ConstantColumn(len(array), tuple(parts), frozenset(types))


def _nulls(_rows: npt.NDArray[np.int64], _texts: pa.StringArray) -> tuple[list[_Part], set[Type]]:
    return [], {UNKNOWN}


def _booleans(rows: npt.NDArray[np.int64], texts: pa.StringArray) -> tuple[list[_Part], set[Type]]:
    return [_Part(BOOLEAN, rows, pc.utf8_lower(texts))], {BOOLEAN}


def _strings(rows: npt.NDArray[np.int64], texts: pa.StringArray) -> tuple[list[_Part], set[Type]]:
    inner = pc.replace_substring(pc.utf8_slice_codeunits(texts, 1, -1), "''", "'")
    # The longest text decides the type.
    sql_type = varchar_of(pc.max(pc.utf8_length(inner)).as_py())
    return [_Part(sql_type, rows, inner)], {sql_type}


def _numbers(rows: npt.NDArray[np.int64], texts: pa.StringArray) -> tuple[list[_Part], set[Type]]:
    plain = pc.replace_substring(pc.utf8_ltrim(texts, "+"), "_", "")
    floating = pc.match_substring_regex(plain, "[eE]").to_numpy(zero_copy_only=False)
    pointed = pc.match_substring(plain, ".").to_numpy(zero_copy_only=False) & ~floating
    parts: list[_Part] = []
    types: set[Type] = set()
    for mask, read in (
        (~floating & ~pointed, _integers),
        (pointed, _decimals),
        (floating, _doubles),
    ):
        indexes = np.flatnonzero(mask)
        if len(indexes):
            some = plain if len(indexes) == len(plain) else plain.take(pa.array(indexes))
            sql_type, part_types = read(
                rows[indexes], some, texts if some is plain else texts.take(pa.array(indexes))
            )
            parts.append(_Part(sql_type, rows[indexes], some))
            types |= part_types
    return parts, types


def _integers(
    _rows: npt.NDArray[np.int64], texts: pa.StringArray, _originals: pa.StringArray
) -> tuple[Type, set[Type]]:
    values = pc.cast(texts, pa.int64()).to_numpy()
    small = (values >= ~_LARGEST_INTEGER) & (values <= _LARGEST_INTEGER)
    return BIGINT, {
        sql_type for sql_type, there in ((INTEGER, small.any()), (BIGINT, not small.all())) if there
    }


def _decimals(
    rows: npt.NDArray[np.int64], texts: pa.StringArray, originals: pa.StringArray
) -> tuple[Type, set[Type]]:
    digits = pc.utf8_ltrim(pc.utf8_ltrim(texts, "-"), "0")
    whole = pc.find_substring(digits, ".").to_numpy()
    scales = pc.utf8_length(digits).to_numpy() - whole - 1
    precisions = np.maximum(whole + scales, 1)
    if (precisions > MAX_PRECISION).any():
        first = int(np.argmax(precisions > MAX_PRECISION))
        text = originals[first].as_py()
        digits_alone = text.lstrip("+-")
        raise BadLiteral(
            int(rows[first]),
            f"Invalid decimal literal: {digits_alone.replace('_', '')}",
            len(text) - len(digits_alone),
        )
    pairs = ascending(precisions.astype(np.int64) * 64 + scales)
    types = {decimal_of(int(pair) // 64, int(pair) % 64) for pair in pairs}
    return next(iter(types)), types


def _doubles(
    _rows: npt.NDArray[np.int64], _texts: pa.StringArray, _originals: pa.StringArray
) -> tuple[Type, set[Type]]:
    return DOUBLE, {DOUBLE}


def _typed(rows: npt.NDArray[np.int64], texts: pa.StringArray) -> tuple[list[_Part], set[Type]]:
    encoded = texts.dictionary_encode()
    constants: list[Constant] = []
    for index, text in enumerate(encoded.dictionary.to_pylist()):
        name, value = _named_value(text)
        constant = _named_constant(name, value)
        if constant is None:
            first = int(np.argmax(encoded.indices.to_numpy() == index))
            raise BadLiteral(int(rows[first]), f"'{value}' is not a valid {name.upper()} literal")
        constants.append(constant)
    column = ConstantColumn.of_constants(constants)
    inside = encoded.indices.to_numpy()
    parts = []
    for part in column.parts:
        index_in_part = np.full(len(constants), -1)
        index_in_part[part.rows] = np.arange(len(part.rows))
        indexes = index_in_part[inside]
        parts.append(
            _Part(
                part.sql_type, rows[indexes >= 0], part.texts.take(pa.array(indexes[indexes >= 0]))
            )
        )
    return parts, set(column.types)


_READ: Final[
    dict[int, Callable[[npt.NDArray[np.int64], pa.StringArray], tuple[list[_Part], set[Type]]]]
] = {
    _OTHER: _typed,
    _NUMBER: _numbers,
    _TEXT: _strings,
    _NULL: _nulls,
    _BOOLEAN: _booleans,
}


# -- values

_NUMBERS: Final = frozenset({"tinyint", "smallint", "integer", "bigint", "decimal", "double"})


def _cast(part: _Part, sql_type: Type) -> pa.Array:
    if is_exact(part.sql_type) and sql_type.base == "decimal":
        return _as_decimals(part, sql_type)
    if part.sql_type.base in _NUMBERS:
        return pc.cast(part.texts, sql_type.arrow)
    values = _READERS[part.sql_type.base](part.texts)
    if part.sql_type.base in {"date", "timestamp"} and sql_type.base == "timestamp with time zone":
        return instants_of(pc.cast(values, pa.timestamp("us")), session_zone())
    return values.cast(sql_type.arrow)


def _as_decimals(part: _Part, sql_type: Type) -> pa.Array:
    try:
        return pc.cast(part.texts, sql_type.arrow)
    except pa.ArrowInvalid:
        for index, text in enumerate(part.texts):
            try:
                pc.cast(text, sql_type.arrow)
            except pa.ArrowInvalid:
                raise UnfitConstant(
                    int(part.rows[index]), _exact_type(text.as_py()), text.as_py()
                ) from None
        raise


def _exact_type(digits: str) -> Type:
    if "." not in digits:
        return _integer_type(int(digits))
    constant = decimal_literal(digits)
    assert constant is not None
    return constant.type


def _listed(
    texts: pa.StringArray, read: Callable[[str], object], sql_type: pa.DataType
) -> pa.Array:
    return pa.array(map(read, texts.to_pylist()), sql_type, size=len(texts))


def _times(texts: pa.StringArray) -> pa.Array:
    day = pa.array(["1970-01-01 "] * len(texts))
    moments = pc.cast(pc.binary_join_element_wise(day, texts, ""), pa.timestamp("us"))
    return moments.cast(pa.int64()).cast(pa.time64("us"))


_READERS: Final[dict[str, Callable[[pa.StringArray], pa.Array]]] = {
    **{base: lambda texts: texts for base in ("varchar", "uuid", "unknown")},
    **{
        base: lambda texts: pc.cast(texts, pa.int64())
        for base in ("tinyint", "smallint", "integer", "bigint")
    },
    "decimal": lambda texts: texts,
    "double": lambda texts: pc.cast(texts, pa.float64()),
    "boolean": lambda texts: pc.equal(texts, "true"),
    "varbinary": lambda texts: _listed(texts, bytes.fromhex, pa.binary()),
    "date": lambda texts: pc.cast(texts, pa.date32()),
    "time": _times,
    "timestamp": lambda texts: pc.cast(texts, pa.timestamp("us")),
    "timestamp with time zone": lambda texts: pc.assume_timezone(
        pc.cast(texts, pa.timestamp("us")), "UTC"
    ),
}
"""Parsers of constants' texts; the keys are the types that can be data."""
