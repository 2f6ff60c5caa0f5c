"""Which SQL types Hive tables hold, how their values lie in ORC files, and how partition values are written into folder names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import AnalysisError, ConnectorError, ExecutionError
from rowmerge_nb.connectors.hive_acid.layout_names import DEFAULT_PARTITION
from rowmerge_nb.spi.types import Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from rowmerge_nb.spi.metadata import ColumnMetadata

_PLAIN: Final = frozenset(
    {"boolean", "tinyint", "smallint", "integer", "bigint", "real", "double", "decimal", "varchar", "char", "varbinary", "date"}
)
_PARTITION: Final = _PLAIN - {"real", "double", "varbinary"}
_LONGEST: Final = {"varchar": 65535, "char": 255}
_MOST_PRECISION: Final = 6
_SECOND: Final = 1_000_000
_MILLISECOND: Final = 1_000
_FOUR_DIGITS: Final = re.compile(r"\d{4}-")
_NANOSECONDS_END: Final = (1 << 63) // 1000
"""Microseconds that nanoseconds of 64 bits reach to, which is what the reader of ORC files makes of timestamps."""


def check_column_type(name: str, kind: Type) -> None:
    """Refuse a column whose type Hive tables cannot hold.

    Raises:
        AnalysisError: NOT_SUPPORTED with the column and the type.
    """
    if kind.base in {"array", "map", "row"}:
        for inner in kind.parameters:
            check_column_type(name, inner)
        if kind.base == "row" and None in kind.fields:
            raise AnalysisError(
                f"Column '{name}' has a field without a name, which Hive does not know: {kind}",
                code="NOT_SUPPORTED",
                hint="Name all fields: row(x integer, y varchar).",
            )
        return
    longest = _LONGEST.get(kind.base)
    if longest is not None and kind.parameters and kind.parameters[0] > longest:
        name_of = kind.base.upper()
        more = f", {name_of}" if kind.base == "varchar" else ""
        raise AnalysisError(
            f"Unsupported Hive type: {kind}. Supported {name_of} types: {name_of}(<={longest}){more}. (column '{name}')",
            code="NOT_SUPPORTED",
            hint="Take varchar without a length.",
        )
    if kind.base in _PLAIN or (kind.base == "timestamp" and (not kind.parameters or kind.parameters[0] <= _MOST_PRECISION)):
        return
    raise AnalysisError(
        f"Unsupported Hive type: {kind} (column '{name}')",
        code="NOT_SUPPORTED",
        hint="CAST it to a type of Hive: numbers, varchar, char, varbinary, date, timestamp(6) at most.",
    )


def check_partition_type(name: str, kind: Type) -> None:
    """Refuse a partition column whose values are not written into names."""
    if kind.base not in _PARTITION | {"timestamp"}:
        raise AnalysisError(
            f"Unsupported partition column type: column '{name}' is {kind}",
            code="NOT_SUPPORTED",
            hint="Partition by columns of integers, booleans, decimals, text, dates or timestamps.",
        )


# -- files ----------------------------------------------------------------------------------------------------------


def from_file(array: pa.Array, kind: Type) -> pa.Array:
    """Return what a file holds as a channel of its column's type: fields by position, char padded, timestamps in microseconds.

    Raises:
        ValueError: what the file holds is not of this type.

    >>> from rowmerge_nb.spi.types import parse_type
    >>> from_file(pa.array(["x"]), parse_type("char(3)")).to_pylist()
    ['x  ']
    """
    return _rebuilt(array, kind, kind.arrow, _leaf_from_file)


def to_file(array: pa.Array, name: str, kind: Type) -> pa.Array:
    """Return a channel as a file holds it: names of fields in lower case, char without the spaces behind it.

    Raises:
        ExecutionError: NOT_SUPPORTED for a timestamp that would not be read back as it is.
    """

    def leaf(values: pa.Array, of: Type, target: pa.DataType) -> pa.Array:
        if of.base == "timestamp":
            _check_timestamps(values, name)
        return pc.utf8_rtrim(values, " ") if of.base == "char" else values.cast(target)

    return _rebuilt(array, kind, file_type(kind), leaf)


def file_type(kind: Type) -> pa.DataType:
    """Return the Arrow type under which a column is written."""
    return _lowered(kind.arrow)


def bounded_texts(columns: Sequence[ColumnMetadata], first: int) -> list[tuple[int, Type]]:
    """Return the types with a length of their own that columns have or contain, by their numbers in a file.

    Args:
        columns: the columns.
        first: the number of the first column's type; those within it come next, then the second column's.

    >>> from rowmerge_nb.spi.metadata import ColumnMetadata
    >>> from rowmerge_nb.spi.types import parse_type
    >>> columns = [ColumnMetadata("a", parse_type("row(x array(char(2)), y integer)")), ColumnMetadata("b", parse_type("varchar(9)"))]
    >>> [(number, str(kind)) for number, kind in bounded_texts(columns, 7)]
    [(9, 'char(2)'), (11, 'varchar(9)')]
    """
    found: list[tuple[int, Type]] = []

    def visit(kind: Type, number: int) -> int:
        if kind.base == "char" or (kind.base == "varchar" and kind.parameters):
            found.append((number, kind))
        number += 1
        for inner in kind.parameters if kind.base in {"array", "map", "row"} else ():
            number = visit(inner, number)
        return number

    for column in columns:
        first = visit(column.type, first)
    return found


def _lowered(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(field.name.lower(), _lowered(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_lowered(kind.key_type), _lowered(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_lowered(kind.value_type))
    return kind


def _leaf_from_file(values: pa.Array, kind: Type, target: pa.DataType) -> pa.Array:
    if kind.base == "char":
        return pc.utf8_rpad(values.cast(target), kind.parameters[0])
    if kind.base == "timestamp":
        return values.cast(target, safe=False)
    return values.cast(target)


def _rebuilt(
    array: pa.Array, kind: Type, target: pa.DataType, leaf: Callable[[pa.Array, Type, pa.DataType], pa.Array]
) -> pa.Array:
    """Convert an array into another shape of the same type, level by level."""
    if kind.base not in {"array", "map", "row"}:
        return leaf(array, kind, target)
    missing = pc.is_null(array)
    if kind.base == "row":
        if not pa.types.is_struct(array.type):
            raise ValueError(f"{array.type} is not {kind}")
        # Fields must be NULL where their row is: Arrow's writer of ORC files mixes rows up otherwise.
        inside = array.flatten()
        fields = [
            _rebuilt(inside[i], inner, target.field(i).type, leaf)
            if i < array.type.num_fields
            else pa.nulls(len(array), target.field(i).type)
            for i, inner in enumerate(kind.parameters)
        ]
        return pa.StructArray.from_arrays(fields, fields=list(target), mask=missing)
    if not (pa.types.is_map(array.type) if kind.base == "map" else pa.types.is_list(array.type)):
        raise ValueError(f"{array.type} is not {kind}")
    ends = array.offsets.to_numpy()
    there = pc.invert(missing).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(np.where(there, np.diff(ends), 0))]), pa.int32())
    elements = pa.array(np.repeat(there, np.diff(ends)))
    columns = [array.keys, array.items] if kind.base == "map" else [array.values]
    inside = [column.slice(ends[0], ends[-1] - ends[0]).filter(elements) for column in columns]
    if kind.base == "map":
        keys = _rebuilt(inside[0], kind.parameters[0], target.key_type, leaf)
        items = _rebuilt(inside[1], kind.parameters[1], target.item_type, leaf)
        return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=missing)
    values = _rebuilt(inside[0], kind.parameters[0], target.value_type, leaf)
    return pa.ListArray.from_arrays(offsets, values, type=target, mask=missing)


def lowered(kind: Type) -> Type:
    """Return a type with the names of its fields in lower case, as files have them."""
    inner = tuple(lowered(part) if isinstance(part, Type) else part for part in kind.parameters)
    return Type(kind.base, inner, tuple(name.lower() if name else name for name in kind.fields))


def with_numbers(array: pa.Array, kind: Type) -> pa.Array:
    """Return an array with microseconds since 1970 instead of timestamps."""

    def leaf(values: pa.Array, of: Type, target: pa.DataType) -> pa.Array:
        return values.cast(pa.timestamp("us"), safe=False).cast(pa.int64()) if of.base == "timestamp" else values.cast(target)

    return _rebuilt(array, kind, _numbered(kind.arrow), leaf)


def _numbered(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _numbered(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_numbered(kind.key_type), _numbered(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_numbered(kind.value_type))
    return pa.int64() if pa.types.is_timestamp(kind) else kind


def has_early_fractions(array: pa.Array) -> bool:
    """Return whether an array holds, at whatever depth, a timestamp before 1970 that is not a whole second.

    >>> has_early_fractions(pa.array([[0, None], [-1_500_000]], pa.list_(pa.timestamp("us"))))
    True
    """
    kind = array.type
    if pa.types.is_struct(kind):
        return any(map(has_early_fractions, array.flatten()))
    if pa.types.is_map(kind):
        return has_early_fractions(array.keys) or has_early_fractions(array.items)
    if pa.types.is_list(kind):
        return has_early_fractions(array.flatten())
    if not pa.types.is_timestamp(kind):
        return False
    micros = _micros(array)
    return bool(((micros < 0) & (micros % _SECOND != 0)).any())


def _micros(values: pa.Array) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = pc.drop_null(values).cast(pa.timestamp("us")).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return found


def _check_timestamps(values: pa.Array, name: str) -> None:
    micros = _micros(values)
    # Before 1970 writers and readers agree neither about the last second nor about fractions below a millisecond.
    rest = micros % _SECOND
    early = (micros < 0) & ((micros > -_SECOND) | ((rest > 0) & (rest < _MILLISECOND)))
    bad = micros[early | (micros >= _NANOSECONDS_END) | (micros < -_NANOSECONDS_END)]
    if bad.size:
        shown = np.datetime64(int(bad[0]), "us").item()
        raise ExecutionError(
            f"Timestamp {shown} of column '{name}' cannot be written to an ORC file so that every engine reads it back",
            code="NOT_SUPPORTED",
            step="append_page",
            hint="Timestamps lie between 1677-09-21 and 2262-04-11; before 1970 with no fraction below a millisecond, nor within the last second.",
        )


# -- partitions -----------------------------------------------------------------------------------------------------


def group_by_partition(columns: Sequence[pa.Array], rows: int) -> tuple[list[tuple[str | None, ...]], npt.NDArray[np.int64]]:
    """Return the distinct partition values of a page as texts, and for every row which of them it has.

    >>> group_by_partition([pa.array(["x", None, "x"]), pa.array([1, 1, 1])], 3)
    ([('x', '1'), (None, '1')], array([0, 1, 0]))
    """
    codes = np.zeros(rows, np.int64)
    texts: list[list[str | None]] = []
    for column in columns:
        encoded = _texts(column).dictionary_encode(null_encoding="encode")
        values = encoded.dictionary.to_pylist()
        codes = codes * len(values) + encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        texts.append(values)
    distinct, inverse = np.unique(codes, return_inverse=True)
    found: list[tuple[str | None, ...]] = []
    for code in distinct.tolist():
        parts: list[str | None] = []
        for values in reversed(texts):
            code, digit = divmod(code, len(values))  # noqa: PLW2901 - digit by digit
            parts.append(values[digit])
        found.append(tuple(reversed(parts)))
    for column, values in zip(columns, texts, strict=True):
        _check_texts(column.type, values)
    return found, inverse.reshape(-1)


def _check_texts(kind: pa.DataType, texts: Sequence[str | None]) -> None:
    """Refuse partition values whose folders would be read as something else, or not at all, and the table's rows with them."""
    for text in texts:
        if text in {"", DEFAULT_PARTITION}:
            msg = f"Hive cannot tell the partition value {text!r} from NULL"
        elif text is not None and pa.types.is_temporal(kind) and not _FOUR_DIGITS.match(text):
            msg = f"Hive does not read the partition value {text!r}: its year has not four digits"
        else:
            continue
        raise ExecutionError(msg, code="HIVE_INVALID_PARTITION_VALUE", step="append_page", hint="Write NULL, or another value.")


def _texts(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    if pa.types.is_timestamp(column.type):
        # As Java prints them: no zeros at the end, but one digit at least.
        return pc.replace_substring_regex(texts, r"(\.\d+?)0+$", r"\1")
    return texts


def partition_value(text: str | None, column: ColumnMetadata, table: Any) -> pa.Scalar:
    """Return a partition's value out of its name.

    Raises:
        ConnectorError: HIVE_INVALID_PARTITION_VALUE if the text is none of the column's type.
    """
    if text is None:
        return pa.scalar(None, column.type.arrow)
    try:
        value = pa.array([text]).cast(column.type.arrow)
    except (pa.ArrowInvalid, UnicodeEncodeError):
        # The latter: bytes in a folder's name that are no text.
        raise ConnectorError(
            f"Invalid partition value {text!r} for {column.type} partition key: {column.name} (table '{table}')",
            code="HIVE_INVALID_PARTITION_VALUE",
            hint="Correct the folder's name, or the column's type in register_table.",
        ) from None
    return (pc.utf8_rpad(value, column.type.parameters[0]) if column.type.base == "char" else value)[0]
