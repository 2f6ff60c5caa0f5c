"""SQL types of Hive tables, their values in ORC files, and partition values in folder names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import AnalysisError, ConnectorError, ExecutionError
from rowmerge_nb.connectors.hive_acid.layout_names import DEFAULT_PARTITION
from rowmerge_nb.spi import ColumnMetadata, Type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt


_PLAIN: Final = frozenset(
    {
        "boolean",
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double",
        "decimal",
        "varchar",
        "char",
        "varbinary",
        "date",
    }
)
_PARTITION: Final = _PLAIN - {"real", "double", "varbinary"}
_LONGEST: Final = {"varchar": 65535, "char": 255}
_MOST_PRECISION: Final = 6
_SECOND: Final = 1_000_000
_MILLISECOND: Final = 1_000
_FOUR_DIGITS: Final = re.compile(r"\d{4}-")
_NANOSECONDS_END: Final = (1 << 63) // 1000
"""The largest timestamp in microseconds that fits into 64-bit nanoseconds, which the ORC reader
uses.
"""


def check_column_type(name: str, sql_type: Type) -> None:
    if sql_type.base in {"array", "map", "row"}:
        for inner in sql_type.parameters:
            check_column_type(name, inner)
        if sql_type.base == "row" and None in sql_type.fields:
            raise AnalysisError.unsupported(
                f"Column '{name}' has a field without a name, which Hive does not"
                f" support: {sql_type}",
                hint="Name all fields: row(x integer, y varchar).",
            )
        return
    longest = _LONGEST.get(sql_type.base)
    if longest is not None and sql_type.parameters and sql_type.parameters[0] > longest:
        name_of = sql_type.base.upper()
        more = f", {name_of}" if sql_type.base == "varchar" else ""
        raise AnalysisError.unsupported(
            f"Unsupported Hive type: {sql_type}. Supported {name_of} types:"
            f" {name_of}(<={longest}){more}. (column '{name}')",
            hint="Use varchar without a length.",
        )
    if sql_type.base in _PLAIN or (
        sql_type.base == "timestamp"
        and (not sql_type.parameters or sql_type.parameters[0] <= _MOST_PRECISION)
    ):
        return
    raise AnalysisError.unsupported(
        f"Unsupported Hive type: {sql_type} (column '{name}')",
        hint=(
            "CAST it to a type of Hive: numbers, varchar, char, varbinary, date, timestamp(6) at"
            " most."
        ),
    )


def check_partition_type(name: str, sql_type: Type) -> None:
    if sql_type.base not in _PARTITION | {"timestamp"}:
        raise AnalysisError.unsupported(
            f"Unsupported partition column type: column '{name}' is {sql_type}",
            hint="Partition by columns of integers, booleans, decimals, text, dates or timestamps.",
        )


# -- files


def from_file(array: pa.Array, sql_type: Type) -> pa.Array:
    """Convert a file's array to the column's type, or raise ValueError: fields by position, char
    padded, timestamps in microseconds.

    >>> from rowmerge_nb.spi.types import parse_type
    >>> from_file(pa.array(["x"]), parse_type("char(3)")).to_pylist()
    ['x  ']
    """
    return _rebuilt(array, sql_type, sql_type.arrow, _leaf_from_file)


def to_file(array: pa.Array, name: str, sql_type: Type) -> pa.Array:
    """Convert a channel for a file.

    Raises:
        ExecutionError: NOT_SUPPORTED for a timestamp that would not be read back unchanged.
    """

    def leaf(values: pa.Array, of: Type, target: pa.DataType) -> pa.Array:
        if of.base == "timestamp":
            _check_timestamps(values, name)
        return pc.utf8_rtrim(values, " ") if of.base == "char" else values.cast(target)

    return _rebuilt(array, sql_type, file_type(sql_type), leaf)


def file_type(sql_type: Type) -> pa.DataType:
    return _mapped(sql_type.arrow, str.lower)


def bounded_texts(columns: Sequence[ColumnMetadata], first: int) -> list[tuple[int, Type]]:
    """Return types with a length, nested ones included, by number in a file.

    >>> from rowmerge_nb.spi.metadata import ColumnMetadata
    >>> from rowmerge_nb.spi.types import parse_type
    >>> columns = [ColumnMetadata("a", parse_type("row(x array(char(2)), y integer)")), ColumnMetadata("b", parse_type("varchar(9)"))]
    >>> [(number, str(text_type)) for number, text_type in bounded_texts(columns, 7)]
    [(9, 'char(2)'), (11, 'varchar(9)')]
    """
    numbered_types: list[tuple[int, Type]] = []

    def visit(sql_type: Type, number: int) -> int:
        if sql_type.base == "char" or (sql_type.base == "varchar" and sql_type.parameters):
            numbered_types.append((number, sql_type))
        number += 1
        for inner in sql_type.parameters if sql_type.base in {"array", "map", "row"} else ():
            number = visit(inner, number)
        return number

    for column in columns:
        first = visit(column.type, first)
    return numbered_types


def _mapped(
    sql_type: pa.DataType,
    rename: Callable[[str], str] = str,
    leaf: Callable[[pa.DataType], pa.DataType] = lambda sql_type: sql_type,
) -> pa.DataType:
    def inner(part: pa.DataType) -> pa.DataType:
        return _mapped(part, rename, leaf)

    if pa.types.is_struct(sql_type):
        return pa.struct([(rename(field.name), inner(field.type)) for field in sql_type])
    if pa.types.is_map(sql_type):
        return pa.map_(inner(sql_type.key_type), inner(sql_type.item_type))
    if pa.types.is_list(sql_type):
        return pa.list_(inner(sql_type.value_type))
    return leaf(sql_type)


def _leaf_from_file(values: pa.Array, sql_type: Type, target: pa.DataType) -> pa.Array:
    if sql_type.base == "char":
        return pc.utf8_rpad(values.cast(target), sql_type.parameters[0])
    if sql_type.base == "timestamp":
        return values.cast(target, safe=False)
    return values.cast(target)


def _rebuilt(
    array: pa.Array,
    sql_type: Type,
    target: pa.DataType,
    leaf: Callable[[pa.Array, Type, pa.DataType], pa.Array],
) -> pa.Array:
    if sql_type.base not in {"array", "map", "row"}:
        return leaf(array, sql_type, target)
    missing = pc.is_null(array)
    if sql_type.base == "row":
        if not pa.types.is_struct(array.type):
            raise ValueError(f"{array.type} is not {sql_type}")
        # Fields must be NULL if their row is: otherwise Arrow's ORC writer mixes rows up.
        inside = array.flatten()
        fields = [
            (
                _rebuilt(inside[i], inner, target.field(i).type, leaf)
                if i < array.type.num_fields
                else pa.nulls(len(array), target.field(i).type)
            )
            for i, inner in enumerate(sql_type.parameters)
        ]
        return pa.StructArray.from_arrays(fields, fields=list(target), mask=missing)
    if not (
        pa.types.is_map(array.type) if sql_type.base == "map" else pa.types.is_list(array.type)
    ):
        raise ValueError(f"{array.type} is not {sql_type}")
    ends = array.offsets.to_numpy()
    there = pc.invert(missing).to_numpy(zero_copy_only=False)
    offsets = pa.array(
        np.concatenate([[0], np.cumsum(np.where(there, np.diff(ends), 0))]), pa.int32()
    )
    elements = pa.array(np.repeat(there, np.diff(ends)))
    columns = [array.keys, array.items] if sql_type.base == "map" else [array.values]
    inside = [column.slice(ends[0], ends[-1] - ends[0]).filter(elements) for column in columns]
    if sql_type.base == "map":
        keys = _rebuilt(inside[0], sql_type.parameters[0], target.key_type, leaf)
        items = _rebuilt(inside[1], sql_type.parameters[1], target.item_type, leaf)
        return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=missing)
    values = _rebuilt(inside[0], sql_type.parameters[0], target.value_type, leaf)
    return pa.ListArray.from_arrays(offsets, values, type=target, mask=missing)


def lowered(sql_type: Type) -> Type:
    inner = tuple(lowered(part) if isinstance(part, Type) else part for part in sql_type.parameters)
    return Type(
        sql_type.base, inner, tuple(name.lower() if name else name for name in sql_type.fields)
    )


def with_numbers(array: pa.Array, sql_type: Type) -> pa.Array:
    def leaf(values: pa.Array, of: Type, target: pa.DataType) -> pa.Array:
        return (
            values.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
            if of.base == "timestamp"
            else values.cast(target)
        )

    target = _mapped(
        sql_type.arrow, leaf=lambda of: pa.int64() if pa.types.is_timestamp(of) else of
    )
    return _rebuilt(array, sql_type, target, leaf)


def has_early_fractions(array: pa.Array) -> bool:
    """Return whether an array holds a timestamp before 1970 with a fraction.

    >>> has_early_fractions(pa.array([[0, None], [-1_500_000]], pa.list_(pa.timestamp("us"))))
    True
    """
    sql_type = array.type
    if pa.types.is_struct(sql_type):
        return any(map(has_early_fractions, array.flatten()))
    if pa.types.is_map(sql_type):
        return has_early_fractions(array.keys) or has_early_fractions(array.items)
    if pa.types.is_list(sql_type):
        return has_early_fractions(array.flatten())
    if not pa.types.is_timestamp(sql_type):
        return False
    micros = _micros(array)
    return bool(((micros < 0) & (micros % _SECOND != 0)).any())


def _micros(values: pa.Array) -> npt.NDArray[np.int64]:
    micros: npt.NDArray[np.int64] = (
        pc.drop_null(values)
        .cast(pa.timestamp("us"))
        .cast(pa.int64())
        .to_numpy(zero_copy_only=False)
    )
    return micros


def _check_timestamps(values: pa.Array, name: str) -> None:
    micros = _micros(values)
    # Before 1970, writers and readers disagree on the last second and on fractions below a
    # millisecond.
    rest = micros % _SECOND
    early = (micros < 0) & ((micros > -_SECOND) | ((rest > 0) & (rest < _MILLISECOND)))
    bad = micros[early | (micros >= _NANOSECONDS_END) | (micros < -_NANOSECONDS_END)]
    if bad.size:
        display_value = np.datetime64(int(bad[0]), "us").item()
        raise ExecutionError(
            f"Timestamp {display_value} of column '{name}' cannot be written to an ORC"
            " file in a form that every engine reads",
            code="NOT_SUPPORTED",
            step="append_page",
            hint=(
                "Timestamps must be between 1677-09-21 and 2262-04-11. Before 1970,"
                " they must be whole milliseconds, and not within the last second."
            ),
        )


# -- partitions


def group_by_partition(
    columns: Sequence[pa.Array], rows: int
) -> tuple[list[tuple[str | None, ...]], npt.NDArray[np.int64]]:
    """Return a page's distinct partition values as texts, and each row's index among them.

    >>> group_by_partition([pa.array(["x", None, "x"]), pa.array([1, 1, 1])], 3)
    ([('x', '1'), (None, '1')], array([0, 1, 0]))
    """
    codes = np.zeros(rows, np.int64)
    texts: list[list[str | None]] = []
    for column in columns:
        encoded = _texts(column).dictionary_encode(null_encoding="encode")
        values = encoded.dictionary.to_pylist()
        codes = codes * len(values) + encoded.indices.to_numpy(zero_copy_only=False).astype(
            np.int64
        )
        texts.append(values)
    distinct, inverse = np.unique(codes, return_inverse=True)
    partitions: list[tuple[str | None, ...]] = []
    for code in distinct.tolist():
        parts: list[str | None] = []
        for values in reversed(texts):
            code, digit = divmod(code, len(values))  # noqa: PLW2901 - digit by digit
            parts.append(values[digit])
        partitions.append(tuple(reversed(parts)))
    for column, values in zip(columns, texts, strict=True):
        _check_texts(column.type, values)
    return partitions, inverse.reshape(-1)


def _check_texts(sql_type: pa.DataType, texts: Sequence[str | None]) -> None:
    for text in texts:
        if text in {"", DEFAULT_PARTITION}:
            msg = f"Hive cannot distinguish the partition value {text!r} from NULL"
        elif text is not None and pa.types.is_temporal(sql_type) and not _FOUR_DIGITS.match(text):
            msg = (
                f"Hive does not read the partition value {text!r}: its year does not have"
                " four digits"
            )
        else:
            continue
        raise ExecutionError(
            msg,
            code="HIVE_INVALID_PARTITION_VALUE",
            step="append_page",
            hint="Write NULL, or another value.",
        )


def _texts(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    if pa.types.is_timestamp(column.type):
        # As Java prints them: no trailing zeros, but at least one digit.
        return pc.replace_substring_regex(texts, r"(\.\d+?)0+$", r"\1")
    return texts


def partition_value(text: str | None, column: ColumnMetadata, table: Any) -> pa.Scalar:
    if text is None:
        return pa.scalar(None, column.type.arrow)
    try:
        value = pa.array([text]).cast(column.type.arrow)
    except (pa.ArrowInvalid, UnicodeEncodeError):
        # UnicodeEncodeError: the folder's name is not valid text.
        raise ConnectorError(
            f"Invalid partition value {text!r} for {column.type} partition key: {column.name}"
            f" (table '{table}')",
            code="HIVE_INVALID_PARTITION_VALUE",
            hint="Correct the folder's name, or the column's type in register_table.",
        ) from None
    return (
        pc.utf8_rpad(value, column.type.parameters[0]) if column.type.base == "char" else value
    )[0]
