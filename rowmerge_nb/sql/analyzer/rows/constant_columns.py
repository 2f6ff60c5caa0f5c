"""Columns of constants as data: the type that Trino gives to all of a column's literals, and their values as an Arrow array.

Nothing here is done literal by literal in Python, apart from what has a text form that Arrow does not read; of that each text once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.spi.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, UNKNOWN, Type, decimal_of
from rowmerge_nb.sql.analyzer.expressions.typed_literals import decimal_literal, typed_literal
from rowmerge_nb.sql.typed.clocks import instants_of
from rowmerge_nb.sql.typed.expressions import Apply, Constant
from rowmerge_nb.sql.typed.type_rules import MAX_PRECISION, common_type, is_exact, is_zoned, varchar_of
from rowmerge_nb.sql.typed.zones import session_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from rowmerge_nb.sql.typed.expressions import Typed

_LARGEST_INTEGER: Final = 2**31 - 1


@dataclass
class BadLiteral(Exception):
    """A literal that is none: its place among those of its column, Trino's message, and where in its text it begins."""

    index: int
    message: str
    offset: int = 0


@dataclass
class UnfitConstant(Exception):
    """A constant that the type of its column cannot hold: its place in the column, its type, and its digits."""

    index: int
    type: Type
    text: str


@dataclass(frozen=True)
class _Part:
    """The constants of a column that are of one kind: their rows, and their texts in the form that typed constants have."""

    kind: Type
    rows: npt.NDArray[np.int64]
    texts: pa.StringArray


@dataclass(frozen=True)
class ConstantColumn:
    """A column of constants.

    Args:
        count: how many rows there are.
        parts: the constants by kind; what is in none of them is NULL.
        types: the types that the constants have, each once.

    >>> column = ConstantColumn.of_literals(["1", "NULL", "2.50"])
    >>> str(column.type), column.values(column.type).to_pylist()
    ('decimal(12,2)', [Decimal('1.00'), None, Decimal('2.50')])
    """

    count: int
    parts: tuple[_Part, ...]
    types: frozenset[Type]

    @property
    def type(self) -> Type | None:
        """The type to which all constants coerce; None if there is none."""
        found: Type | None = UNKNOWN
        for kind in self.types:
            found = common_type(found, kind) if found is not None else None
        return found

    @classmethod
    def of_literals(cls, texts: Sequence[str]) -> ConstantColumn:
        """Make a column of literals as they were written.

        Raises:
            BadLiteral: the first of them that is none.
        """
        return _of_literals(texts)

    @classmethod
    def of_constants(cls, cells: Sequence[Constant]) -> ConstantColumn:
        """Make a column of typed constants, which `constant_of` gave."""
        kinds: dict[str, list[int]] = {}
        for row, cell in enumerate(cells):
            if cell.value is not None:
                kinds.setdefault(cell.type.base, []).append(row)
        parts = (
            _Part(cells[rows[0]].type, np.array(rows, np.int64), pa.array([cells[row].value for row in rows], pa.string()))
            for rows in kinds.values()
        )
        return cls(len(cells), tuple(parts), frozenset(cell.type for cell in cells))

    @classmethod
    def of_integers(cls, numbers: npt.NDArray[np.int64]) -> ConstantColumn:
        """Make a column of bigint."""
        part = _Part(BIGINT, np.arange(len(numbers)), pa.array(numbers).cast(pa.string()))
        return cls(len(numbers), (part,), frozenset([BIGINT]))

    @classmethod
    def joined(cls, columns: Sequence[ConstantColumn]) -> ConstantColumn:
        """Put columns one below the other."""
        if len(columns) == 1:
            return columns[0]
        starts = np.cumsum([0, *(column.count for column in columns)])
        parts = [
            _Part(part.kind, part.rows + start, part.texts)
            for column, start in zip(columns, starts, strict=False)
            for part in column.parts
        ]
        return cls(int(starts[-1]), tuple(parts), frozenset().union(*(column.types for column in columns)))

    def values(self, kind: Type) -> pa.Array:
        """Return the values as the type to which all constants coerce.

        Raises:
            UnfitConstant: a number has more digits than the common type of all numbers has room for.
        """
        found = [_cast(part, kind) for part in self.parts]
        rows = [part.rows for part in self.parts]
        filled = sum(map(len, rows))
        if filled < self.count:
            missing = np.ones(self.count, bool)
            for some in rows:
                missing[some] = False
            found.append(pa.nulls(self.count - filled, kind.arrow))
            rows.append(np.flatnonzero(missing))
        if len(found) == 1:
            return found[0]
        order = np.empty(self.count, np.int64)
        order[np.concatenate(rows)] = np.arange(self.count)
        return pa.concat_arrays(found).take(pa.array(order))


def literal_constant(text: str) -> Constant:
    """Return the typed constant of one literal as it was written, which must be one.

    >>> literal_constant("-1.50").value, str(literal_constant("DATE '2024-02-29'").type)
    ('-1.50', 'date')
    """
    word = text.upper()
    if word == "NULL":
        return Constant(UNKNOWN, None)
    if word in {"TRUE", "FALSE"}:
        return Constant(BOOLEAN, word.lower())
    if text.endswith("'"):
        name, value = _named_value(text)
        found = Constant(varchar_of(len(value)), value) if not name else _named_constant(name, value)
    elif "E" in word:
        found = Constant(DOUBLE, text.lstrip("+").replace("_", ""))
    else:
        digits = text.lstrip("+").replace("_", "")
        found = decimal_literal(digits) if "." in digits else Constant(_integer_type(int(digits)), str(int(digits)))
    assert found is not None, text
    return found


def _named_value(text: str) -> tuple[str, str]:
    """Return the word before a quoted text, and the text without quotes."""
    start = text.index("'")
    return text[:start].strip().lower(), text[start + 1 : -1].replace("''", "'")


def _named_constant(name: str, value: str) -> Constant | None:
    """Return the constant of a literal with the name of its type, or of bytes; None if it is none."""
    return Constant(Type("varbinary"), value.upper()) if name == "x" else typed_literal(name, value)


def _integer_type(number: int) -> Type:
    return INTEGER if ~_LARGEST_INTEGER <= number <= _LARGEST_INTEGER else BIGINT


# -- typed constants ----------------------------------------------------------------------------------------------------


def constant_of(cell: Typed) -> Constant | None:
    """Return a typed expression as a constant that can be data: a literal, with or without a sign; None if it is something else."""
    if isinstance(cell, Constant):
        return cell if cell.type.base in _READERS and not is_zoned(cell.type) else None
    if isinstance(cell, Apply) and cell.name == "negate":
        inner = constant_of(cell.arguments[0])
        if inner is not None and inner.value is not None and inner.type.base in _NUMBERS and inner.value[0] in "0123456789.":
            return Constant(cell.type, f"-{inner.value}")
    return None


# -- literals -----------------------------------------------------------------------------------------------------------

_OTHER, _NUMBER, _TEXT, _NULL, _BOOLEAN = range(5)


def _classes() -> npt.NDArray[np.int8]:
    found = np.zeros(256, np.int8)
    for characters, kind in ((b"0123456789.+-", _NUMBER), (b"'", _TEXT), (b"nN", _NULL), (b"tTfF", _BOOLEAN)):
        found[list(characters)] = kind
    return found


_CLASS_OF: Final = _classes()


def _of_literals(texts: Sequence[str]) -> ConstantColumn:
    written = pa.array(texts, pa.string())
    offsets = np.frombuffer(written.buffers()[1], np.int32)[: len(written) + 1]
    characters = np.frombuffer(written.buffers()[2], np.uint8)
    classes = _CLASS_OF[characters[offsets[:-1]]]
    quoted = characters[offsets[1:] - 1] == ord("'")
    classes[quoted & (classes != _TEXT)] = _OTHER
    parts: list[_Part] = []
    types: set[Type] = set()
    bad: list[BadLiteral] = []
    for kind in np.unique(classes).tolist():
        rows = np.flatnonzero(classes == kind)
        chosen = written if len(rows) == len(written) else written.take(pa.array(rows))
        try:
            some, found = _READ[kind](rows, chosen)
        except BadLiteral as literal:
            bad.append(literal)
            continue
        parts += some
        types |= found
    if bad:
        raise min(bad, key=lambda literal: literal.index)
    return ConstantColumn(len(written), tuple(parts), frozenset(types))


def _nulls(_rows: npt.NDArray[np.int64], _texts: pa.StringArray) -> tuple[list[_Part], set[Type]]:
    return [], {UNKNOWN}


def _booleans(rows: npt.NDArray[np.int64], texts: pa.StringArray) -> tuple[list[_Part], set[Type]]:
    return [_Part(BOOLEAN, rows, pc.utf8_lower(texts))], {BOOLEAN}


def _strings(rows: npt.NDArray[np.int64], texts: pa.StringArray) -> tuple[list[_Part], set[Type]]:
    inner = pc.replace_substring(pc.utf8_slice_codeunits(texts, 1, -1), "''", "'")
    # The longest decides, whatever the others are.
    kind = varchar_of(pc.max(pc.utf8_length(inner)).as_py())
    return [_Part(kind, rows, inner)], {kind}


def _numbers(rows: npt.NDArray[np.int64], texts: pa.StringArray) -> tuple[list[_Part], set[Type]]:
    plain = pc.replace_substring(pc.utf8_ltrim(texts, "+"), "_", "")
    floating = pc.match_substring_regex(plain, "[eE]").to_numpy(zero_copy_only=False)
    pointed = pc.match_substring(plain, ".").to_numpy(zero_copy_only=False) & ~floating
    parts: list[_Part] = []
    types: set[Type] = set()
    for chosen, read in ((~floating & ~pointed, _integers), (pointed, _decimals), (floating, _doubles)):
        indexes = np.flatnonzero(chosen)
        if len(indexes):
            some = plain if len(indexes) == len(plain) else plain.take(pa.array(indexes))
            kind, found = read(rows[indexes], some, texts if some is plain else texts.take(pa.array(indexes)))
            parts.append(_Part(kind, rows[indexes], some))
            types |= found
    return parts, types


def _integers(_rows: npt.NDArray[np.int64], texts: pa.StringArray, _written: pa.StringArray) -> tuple[Type, set[Type]]:
    values = pc.cast(texts, pa.int64()).to_numpy()
    small = (values >= ~_LARGEST_INTEGER) & (values <= _LARGEST_INTEGER)
    return BIGINT, {kind for kind, there in ((INTEGER, small.any()), (BIGINT, not small.all())) if there}


def _decimals(rows: npt.NDArray[np.int64], texts: pa.StringArray, written: pa.StringArray) -> tuple[Type, set[Type]]:
    digits = pc.utf8_ltrim(pc.utf8_ltrim(texts, "-"), "0")
    whole = pc.find_substring(digits, ".").to_numpy()
    scales = pc.utf8_length(digits).to_numpy() - whole - 1
    precisions = np.maximum(whole + scales, 1)
    if (precisions > MAX_PRECISION).any():
        first = int(np.argmax(precisions > MAX_PRECISION))
        text = written[first].as_py()
        digits_alone = text.lstrip("+-")
        raise BadLiteral(
            int(rows[first]), f"Invalid decimal literal: {digits_alone.replace('_', '')}", len(text) - len(digits_alone)
        )
    pairs = np.unique(precisions.astype(np.int64) * 64 + scales)
    types = {decimal_of(int(pair) // 64, int(pair) % 64) for pair in pairs}
    return next(iter(types)), types


def _doubles(_rows: npt.NDArray[np.int64], _texts: pa.StringArray, _written: pa.StringArray) -> tuple[Type, set[Type]]:
    return DOUBLE, {DOUBLE}


def _typed(rows: npt.NDArray[np.int64], texts: pa.StringArray) -> tuple[list[_Part], set[Type]]:
    """Literals with the name of their type, and those of bytes: each text is read once."""
    known = texts.dictionary_encode()
    constants: list[Constant] = []
    for index, text in enumerate(known.dictionary.to_pylist()):
        name, value = _named_value(text)
        found = _named_constant(name, value)
        if found is None:
            first = int(np.argmax(known.indices.to_numpy() == index))
            raise BadLiteral(int(rows[first]), f"'{value}' is not a valid {name.upper()} literal")
        constants.append(found)
    column = ConstantColumn.of_constants(constants)
    inside = known.indices.to_numpy()
    parts = []
    for part in column.parts:
        index_in_part = np.full(len(constants), -1)
        index_in_part[part.rows] = np.arange(len(part.rows))
        indexes = index_in_part[inside]
        parts.append(_Part(part.kind, rows[indexes >= 0], part.texts.take(pa.array(indexes[indexes >= 0]))))
    return parts, set(column.types)


_READ: Final[dict[int, Callable[[npt.NDArray[np.int64], pa.StringArray], tuple[list[_Part], set[Type]]]]] = {
    _OTHER: _typed,
    _NUMBER: _numbers,
    _TEXT: _strings,
    _NULL: _nulls,
    _BOOLEAN: _booleans,
}


# -- values -------------------------------------------------------------------------------------------------------------

_NUMBERS: Final = frozenset({"tinyint", "smallint", "integer", "bigint", "decimal", "double"})


def _cast(part: _Part, kind: Type) -> pa.Array:
    if is_exact(part.kind) and kind.base == "decimal":
        return _as_decimals(part, kind)
    if part.kind.base in _NUMBERS:
        return pc.cast(part.texts, kind.arrow)
    values = _READERS[part.kind.base](part.texts)
    if part.kind.base in {"date", "timestamp"} and kind.base == "timestamp with time zone":
        return instants_of(pc.cast(values, pa.timestamp("us")), session_zone())
    return values.cast(kind.arrow)


def _as_decimals(part: _Part, kind: Type) -> pa.Array:
    try:
        return pc.cast(part.texts, kind.arrow)
    except pa.ArrowInvalid:
        for index, text in enumerate(part.texts):
            try:
                pc.cast(text, kind.arrow)
            except pa.ArrowInvalid:
                raise UnfitConstant(int(part.rows[index]), _exact_type(text.as_py()), text.as_py()) from None
        raise


def _exact_type(digits: str) -> Type:
    if "." not in digits:
        return _integer_type(int(digits))
    found = decimal_literal(digits)
    assert found is not None
    return found.type


def _listed(texts: pa.StringArray, read: Callable[[str], object], kind: pa.DataType) -> pa.Array:
    return pa.array(map(read, texts.to_pylist()), kind, size=len(texts))


def _times(texts: pa.StringArray) -> pa.Array:
    day = pa.array(["1970-01-01 "] * len(texts))
    moments = pc.cast(pc.binary_join_element_wise(day, texts, ""), pa.timestamp("us"))
    return moments.cast(pa.int64()).cast(pa.time64("us"))


_READERS: Final[dict[str, Callable[[pa.StringArray], pa.Array]]] = {
    **{kind: lambda texts: texts for kind in ("varchar", "uuid", "unknown")},
    **{kind: lambda texts: pc.cast(texts, pa.int64()) for kind in ("tinyint", "smallint", "integer", "bigint")},
    "decimal": lambda texts: texts,
    "double": lambda texts: pc.cast(texts, pa.float64()),
    "boolean": lambda texts: pc.equal(texts, "true"),
    "varbinary": lambda texts: _listed(texts, bytes.fromhex, pa.binary()),
    "date": lambda texts: pc.cast(texts, pa.date32()),
    "time": _times,
    "timestamp": lambda texts: pc.cast(texts, pa.timestamp("us")),
    "timestamp with time zone": lambda texts: pc.assume_timezone(pc.cast(texts, pa.timestamp("us")), "UTC"),
}
"""How the texts of constants that can be data become values."""
