"""SQL types under Trino's names, and their Arrow types in pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.names import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Type:
    """A SQL type: a base name and parameters.

    Args:
        base: the lower-case name: ``"decimal"``, ``"timestamp with time zone"``, ``"row"``, ...
        parameters: numbers (precision, scale, length) or types (array element, map key and value,
            row fields).
        fields: for ``row``, the field names (None if anonymous). For ``timestamp with time zone``,
            ``("zone",)`` if each value has a zone besides its instant, as expressions may. Columns
            store only the instant, shown in UTC.

    >>> str(Type("decimal", (12, 2)))
    'decimal(12,2)'
    >>> Type("decimal", (12, 2)).arrow
    Decimal128Type(decimal128(12, 2))
    """

    base: str
    parameters: tuple[Any, ...] = ()
    fields: tuple[str | None, ...] = ()

    def __str__(self) -> str:
        if self.base == "row":
            fields = zip(self.fields, self.parameters, strict=True)
            inner = (
                f"{quoted(name)} {field_type}" if name else str(field_type)
                for name, field_type in fields
            )
            return f"row({', '.join(inner)})"
        if self.base == "timestamp with time zone" and self.parameters:
            return f"timestamp({self.parameters[0]}) with time zone"
        if not self.parameters:
            return self.base
        return f"{self.base}({(', ' if self.base == 'map' else ',').join(str(p) for p in self.parameters)})"

    @cached_property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a channel.

        >>> parse_type("row(file varchar, position bigint)").arrow
        StructType(struct<file: string, position: int64>)
        """
        if self.base == "timestamp with time zone" and self.fields:
            return pa.struct([("instant", _ARROW[self.base]), ("zone", pa.string())])
        if self.base in _ARROW:
            return _ARROW[self.base]
        if self.base == "decimal":
            return pa.decimal128(*self.parameters)
        if self.base == "array":
            return pa.list_(self.parameters[0].arrow)
        if self.base == "map":
            key, value = self.parameters
            # Arrow keys need a type; this map is empty, so any will do.
            return pa.map_(BOOLEAN.arrow if key == UNKNOWN else key.arrow, value.arrow)
        if self.base == "row":
            names = [name or f"field{i}" for i, name in enumerate(self.fields)]
            return pa.struct(
                list(zip(names, (field_type.arrow for field_type in self.parameters), strict=True))
            )
        raise TypeError(f"No Arrow type carries {self}")


BOOLEAN: Final = Type("boolean")
TINYINT: Final = Type("tinyint")
SMALLINT: Final = Type("smallint")
INTEGER: Final = Type("integer")
BIGINT: Final = Type("bigint")
REAL: Final = Type("real")
DOUBLE: Final = Type("double")
VARCHAR: Final = Type("varchar")
CHAR: Final = Type("char", (1,))
VARBINARY: Final = Type("varbinary")
DATE: Final = Type("date")
TIME: Final = Type("time", (6,))
TIMESTAMP: Final = Type("timestamp", (6,))
TIMESTAMP_TZ: Final = Type("timestamp with time zone", (6,))
UUID: Final = Type("uuid")
JSON: Final = Type("json")
UNKNOWN: Final = Type("unknown")
NUMBER: Final = Type("number")

_ARROW: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double": pa.float64(),
    "varchar": pa.string(),
    "char": pa.string(),
    "json": pa.string(),
    # A decimal of any length travels as its shortest text.
    "number": pa.string(),
    "uuid": pa.string(),
    "varbinary": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", tz="UTC"),
    "unknown": pa.null(),
    "interval day to second": pa.duration("us"),
    # Spark does not pass Arrow's month intervals on; results have Trino's text, 1-2 for a year and
    # two months.
    "interval year to month": pa.string(),
}

_TAKES: Final = {
    **dict.fromkeys(_ARROW, 0),
    **dict.fromkeys(("varchar", "char", "time", "timestamp", "timestamp with time zone"), 1),
    "decimal": 2,
}
"""The maximum number of numeric parameters per type."""

_WITH_PRECISION: Final = frozenset({"timestamp", "timestamp with time zone", "time"})
_DEFAULT_PRECISION: Final = 3
_MOST_PRECISION: Final = 12
_LONGEST: Final = {"char": 65536, "varchar": 2**31 - 1}
_MOST_DIGITS: Final = 38


def decimal_of(precision: int, scale: int = 0) -> Type:
    """Return decimal(precision, scale); Trino's bare DECIMAL is decimal(38,0)."""
    return Type("decimal", (precision, scale))


_INTEGERS: Final = ("tinyint", "smallint", "integer", "bigint")


def is_number(arrow_type: pa.DataType) -> bool:
    """Return whether the values of an Arrow type are numbers."""
    return bool(
        pa.types.is_integer(arrow_type)
        or pa.types.is_floating(arrow_type)
        or pa.types.is_decimal(arrow_type)
    )


def is_wider(before: Type, after: Type) -> bool:
    """Return whether a number of another type has all values of the first: a wider integer, a double
    for a real, or a decimal of the same scale with more digits.

    >>> is_wider(INTEGER, BIGINT), is_wider(BIGINT, INTEGER), is_wider(INTEGER, DOUBLE)
    (True, False, False)
    >>> is_wider(decimal_of(5, 2), decimal_of(9, 2)), is_wider(decimal_of(5, 2), decimal_of(9, 4))
    (True, False)
    """
    if before.base == after.base == "decimal":
        (digits, scale), (new_digits, new_scale) = before.parameters, after.parameters
        return bool(digits < new_digits and scale == new_scale)
    if before.base in _INTEGERS and after.base in _INTEGERS:
        return _INTEGERS.index(before.base) < _INTEGERS.index(after.base)
    return (before.base, after.base) == ("real", "double")


def array_of(element: Type) -> Type:
    """Return an array type."""
    return Type("array", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return a map type."""
    return Type("map", (key, value))


def row_of(fields: Iterable[tuple[str | None, Type]]) -> Type:
    """Return a row type; a field without a name is anonymous.

    >>> str(row_of([("a", INTEGER), (None, VARCHAR)]))
    'row("a" integer, varchar)'
    """
    pairs = tuple(fields)
    return Type(
        "row", tuple(field_type for _, field_type in pairs), tuple(name for name, _ in pairs)
    )


_TOKEN: Final = re.compile(r'"(?:[^"]|"")*"|\w+|[(),]')
"""Quoted names, words and numbers, and punctuation."""


class TypeRangeError(ValueError):
    """A length, precision or scale is out of its type's range; ``base`` is the type's name."""

    def __init__(self, base: str, message: str) -> None:
        super().__init__(f"{base.upper()} {message}")
        self.base = base


def parse_type(text: str) -> Type:
    """Parse a type as Trino writes it.

    Raises:
        TypeRangeError: a number is out of range.
        ValueError: the text is not a type; the message holds it.

    >>> str(parse_type("map(varchar, array(decimal(12, 2)))"))
    'map(varchar, array(decimal(12,2)))'
    >>> str(parse_type("TIMESTAMP(6) WITH TIME ZONE")), str(parse_type("decimal")), str(parse_type("timestamp"))
    ('timestamp(6) with time zone', 'decimal(38,0)', 'timestamp(3)')
    >>> str(parse_type('row("a b" bigint, interval day to second)'))
    'row("a b" bigint, interval day to second)'
    """
    tokens = _TOKEN.findall(text)
    if _TOKEN.sub("", text).strip():
        raise ValueError(f"{text!r} is not a type")
    return _whole_type(tokens, text)


def _read_type(tokens: list[str], text: str) -> tuple[Type, list[str]]:
    if not tokens or not re.match(r"\w", tokens[0]):
        raise ValueError(f"{text!r} is not a type")
    base, tokens = tokens[0].lower(), tokens[1:]
    qualifier = " ".join(tokens[:3]).lower()
    if base == "interval" and qualifier in {"day to second", "year to month"}:
        return Type(f"interval {qualifier}"), tokens[3:]
    if base == "double" and tokens and tokens[0].lower() == "precision":
        tokens = tokens[1:]
    base = "integer" if base == "int" else base
    arguments: list[list[str]] = []
    if tokens and tokens[0] == "(":
        arguments, tokens = _read_arguments(tokens, text)
    if [t.lower() for t in tokens[:3]] == ["with", "time", "zone"]:
        base, tokens = f"{base} with time zone", tokens[3:]
    return _make_type(base, arguments, text), tokens


def _read_arguments(tokens: list[str], text: str) -> tuple[list[list[str]], list[str]]:
    depth, arguments = 0, [[]]  # type: ignore[var-annotated]
    for index, word in enumerate(tokens):
        depth += (word == "(") - (word == ")")
        if depth == 0:
            return arguments, tokens[index + 1 :]
        if word == "," and depth == 1:
            arguments.append([])
        elif index:
            arguments[-1].append(word)
    raise ValueError(f"{text!r} is not a type: a parenthesis is not closed")


def _make_type(base: str, arguments: list[list[str]], text: str) -> Type:
    if base == "row":
        return row_of(_read_field(argument, text) for argument in arguments)
    if base in {"array", "map"}:
        if len(arguments) != (1 if base == "array" else 2):
            raise ValueError(
                f"{text!r} is not a type: {base} takes {1 if base == 'array' else 2} type arguments"
            )
        return Type(base, tuple(_whole_type(argument, text) for argument in arguments))
    if base not in _TAKES:
        raise ValueError(f"Unknown type: {text}")
    numbers = tuple(_number(argument, text) for argument in arguments)
    if len(numbers) > _TAKES[base]:
        raise ValueError(f"{text!r} is not a type: {base} takes at most {_TAKES[base]} numbers")
    if base == "decimal":
        precision, scale = (*numbers, 0)[:2] if numbers else (38, 0)
        if not 1 <= precision <= 38:
            raise TypeRangeError(base, f"precision must be in range [1, 38]: {precision}")
        if scale > precision:
            raise TypeRangeError(
                base, f"scale must be in range [0, precision ({precision})]: {scale}"
            )
        return decimal_of(precision, scale)
    if base == "char" and not numbers:
        return CHAR
    if base in _LONGEST and numbers and numbers[0] > _LONGEST[base]:
        raise TypeRangeError(base, f"length must be in range [0, {_LONGEST[base]}]: {numbers[0]}")
    if base in _WITH_PRECISION:
        numbers = numbers or (_DEFAULT_PRECISION,)
        if numbers[0] > _MOST_PRECISION:
            raise TypeRangeError(
                base, f"precision must be in range [0, {_MOST_PRECISION}]: {numbers[0]}"
            )
    return Type(base, numbers)


def _number(argument: list[str], text: str) -> int:
    if len(argument) != 1 or not argument[0].isdecimal():
        raise ValueError(f"{text!r} is not a type: {' '.join(argument)!r} is not a number")
    if int(argument[0]) >= 2**63:
        raise ValueError(f"Unknown type: {text}")
    return int(argument[0])


def _whole_type(tokens: list[str], text: str) -> Type:
    sql_type, rest = _read_type(tokens, text)
    if rest:
        raise ValueError(f"{text!r} is not a type: {' '.join(rest)!r} is extra")
    return sql_type


def _read_field(tokens: list[str], text: str) -> tuple[str | None, Type]:
    interval = tokens[0].lower() == "interval" and [word.lower() for word in tokens[2:3]] == ["to"]
    if (
        len(tokens) > 1
        and not interval
        and tokens[1] not in {"(", ","}
        and tokens[1].lower() not in {"with", "precision"}
    ):
        return tokens[0].strip('"'), _whole_type(tokens[1:], text)
    return None, _whole_type(tokens, text)


def from_arrow(arrow_type: pa.DataType) -> Type:
    """Return the SQL type for an Arrow type.

    Raises:
        TypeError: no SQL type fits; the message names the Arrow type.

    >>> str(from_arrow(pa.struct([("file", pa.string()), ("position", pa.int64())])))
    'row("file" varchar, "position" bigint)'
    >>> str(from_arrow(pa.uint32())), str(from_arrow(pa.timestamp("ns"))), str(from_arrow(pa.uuid()))
    ('bigint', 'timestamp(6)', 'uuid')
    """
    for matches, sql_type in _FROM_ARROW:
        if matches(arrow_type):
            return sql_type
    if pa.types.is_decimal(arrow_type):
        return _decimal_type(arrow_type)
    if pa.types.is_timestamp(arrow_type):
        return TIMESTAMP_TZ if arrow_type.tz else TIMESTAMP
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return from_arrow(arrow_type.value_type)
    if pa.types.is_struct(arrow_type) and arrow_type.num_fields:
        # SQL has no empty names: such a field is anonymous.
        return row_of((field.name or None, from_arrow(field.type)) for field in arrow_type)
    if pa.types.is_map(arrow_type):
        return map_of(from_arrow(arrow_type.key_type), from_arrow(arrow_type.item_type))
    if any(matches(arrow_type) for matches in _LISTS):
        return array_of(from_arrow(arrow_type.value_type))
    raise TypeError(f"No SQL type holds Arrow's {arrow_type}")


def _decimal_type(arrow_type: pa.DataType) -> Type:
    precision, scale = (
        (arrow_type.precision, arrow_type.scale)
        if arrow_type.scale >= 0
        else (arrow_type.precision - arrow_type.scale, 0)
    )
    if max(precision, scale) > _MOST_DIGITS:
        raise TypeError(
            f"A decimal has at most {_MOST_DIGITS} digits in SQL, and Arrow's {arrow_type} can have"
            " more"
        )
    return decimal_of(max(precision, scale), scale)


def _extension_name(arrow_type: pa.DataType) -> str:
    return arrow_type.extension_name if isinstance(arrow_type, pa.BaseExtensionType) else ""


_FROM_ARROW: Final = (
    (pa.types.is_boolean, BOOLEAN),
    (pa.types.is_int8, TINYINT),
    (lambda t: pa.types.is_int16(t) or pa.types.is_uint8(t), SMALLINT),
    (lambda t: pa.types.is_int32(t) or pa.types.is_uint16(t), INTEGER),
    (lambda t: pa.types.is_int64(t) or pa.types.is_uint32(t), BIGINT),
    (pa.types.is_uint64, decimal_of(20)),
    (lambda t: pa.types.is_float32(t) or pa.types.is_float16(t), REAL),
    (pa.types.is_float64, DOUBLE),
    (
        lambda t: (
            pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t)
        ),
        VARCHAR,
    ),
    (lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t), VARBINARY),
    (lambda t: pa.types.is_fixed_size_binary(t) or pa.types.is_binary_view(t), VARBINARY),
    (pa.types.is_date, DATE),
    (pa.types.is_time, TIME),
    (pa.types.is_null, UNKNOWN),
    (lambda t: _extension_name(t) == "arrow.uuid", UUID),
    (lambda t: _extension_name(t) == "arrow.json", JSON),
    (lambda t: _extension_name(t) == "arrow.bool8", BOOLEAN),
)

_LISTS: Final = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)
