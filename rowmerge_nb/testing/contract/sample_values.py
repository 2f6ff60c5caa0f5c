"""Sample values of every SQL type, and their identity."""

from __future__ import annotations

import datetime as dt
import json
import math
import struct
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from rowmerge_nb.spi.types import Type, parse_type
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

Moment = TypeVar("Moment", dt.time, dt.datetime)

TYPES: Final = (
    "boolean",
    "tinyint",
    "smallint",
    "integer",
    "bigint",
    "real",
    "double",
    "decimal(5,2)",
    "decimal(12,2)",
    "decimal(18,18)",
    "decimal(38,0)",
    "decimal(38,10)",
    "varchar",
    "varchar(20)",
    "varchar(1)",
    "char(4)",
    "varbinary",
    "date",
    "time(0)",
    "time(3)",
    "time(6)",
    "timestamp(0)",
    "timestamp(3)",
    "timestamp(6)",
    "timestamp(3) with time zone",
    "timestamp(6) with time zone",
    "uuid",
    "json",
    "array(integer)",
    "array(varchar)",
    "array(decimal(12,2))",
    "array(array(double))",
    "map(varchar, bigint)",
    "map(integer, decimal(5,2))",
    "row(a integer, b varchar)",
    "row(a varchar, b varchar)",
    'row(a decimal(12,2), "B c" array(row(x date, y timestamp(6))))',
    "array(map(varchar, row(a boolean, b varbinary)))",
)
"""All types tried with a connector by default."""

TEXTS: Final = (
    "Plain",
    "it's",
    'a "Quoted" word',
    "a/b=C%",
    "Ünï ☃ 😀",
    "007",
    "x  Y",
    "trailing ",
    " leading",
    "NULL",
    "\\N",
    "",
)
"""Texts that are hard to quote or escape, or that stores may trim, fold, or confuse with numbers or
NULL.
"""

_LETTERS: Final = "".join(
    map(
        chr,
        [
            *range(0x41, 0x5B),
            *range(0x61, 0x7B),
            *range(0x391, 0x3A2),
            *range(0x3B1, 0x3CA),
            *range(0x410, 0x450),
        ],
    )
)
"""Distinct letters, for columns of length one."""

_MOMENT: Final = dt.datetime(2024, 2, 29, 12, 30, 15)  # noqa: DTZ001 - timestamps have no zone
_MICROSECONDS: Final = 6
_FRACTION: Final = 123_457
"""Microseconds with six distinct digits."""
_FULL_DAY: Final = dt.time(23, 59, 59, 999_999)


def awkward_values(type_name: str) -> tuple[Any, ...]:
    """Return values of a type that are easily damaged: limits, fractions, capitals, blanks.

    >>> awkward_values("tinyint")
    (-128, 127, 0, -1)
    >>> [str(value) for value in awkward_values("decimal(3,2)")]
    ['9.99', '-9.99', '0.01', '-0.01', '1.23', '0.00']
    >>> awkward_values("array(tinyint)")
    ([], [None], [-128, None, 127], [-128, 127, 0, -1])
    """
    sql_type = parse_type(type_name)
    return tuple(_EDGES[sql_type.base](sql_type))


def numbered_value(sql_type: Type, number: int) -> Any:
    """Return the value of a type with a number; for sufficiently large types, numbers from 0 to 100
    give distinct values.

    Raises:
        NotImplementedError: the type has no numbered values, as ``unknown``.

    >>> numbered_value(parse_type("varchar"), 1), numbered_value(parse_type("decimal(12,2)"), 7)
    ("it's", Decimal('9.31'))
    """
    if sql_type.base not in _NUMBERED:
        raise NotImplementedError(
            f"Values of type {sql_type} cannot be numbered; choose another type for this column of"
            " the contract's table"
        )
    return _NUMBERED[sql_type.base](sql_type, number)


def read_values(channel: pa.Array | pa.ChunkedArray, sql_type: Type) -> list[Any]:
    """Return the values of a channel as Python objects; JSON in a normal form.

    >>> read_values(pa.array(['{"b": 1.0, "a":null}', None]), parse_type("json"))
    ['{"a":null,"b":1.0}', None]
    """
    values = python_values(channel)
    return (
        [_with_plain_json(value, sql_type) for value in values]
        if "json" in str(sql_type)
        else values
    )


def stored_values(values: Sequence[Any], sql_type: Type) -> list[Any]:
    """Return values in the form in which a column of the type returns them.

    >>> stored_values([Decimal(1), None], parse_type("decimal(12,2)")), stored_values([0.1], parse_type("real"))
    ([Decimal('1.00'), None], [0.10000000149011612])
    """
    return read_values(pa.array(values, sql_type.arrow), sql_type)


def identity(value: Any) -> Hashable:
    """Return a key that is equal for values that count as the same.

    1, 1.0 and true differ, as do 0.0 and -0.0; all NaNs are the same. Equal decimals, timestamps
    with a zone of one instant, and maps with equal entries are the same.

    >>> identity(Decimal("1.0")) == identity(Decimal("1.00")), identity(0.0) == identity(-0.0), identity(1) == identity(True)
    (True, False, False)
    """
    if isinstance(value, float):
        return "float", "nan" if math.isnan(value) else value.hex()
    if isinstance(value, dict):
        return "row", tuple((name, identity(field)) for name, field in value.items())
    if isinstance(value, list | tuple):
        is_map = (
            isinstance(value, list)
            and bool(value)
            and all(isinstance(entry, tuple) for entry in value)
        )
        parts = [identity(part) for part in value]
        return ("map", tuple(sorted(parts, key=repr))) if is_map else ("array", tuple(parts))
    if isinstance(value, dt.datetime):
        return (
            ("instant", value.astimezone(dt.UTC))
            if value.tzinfo is not None
            else ("datetime", value)
        )
    return type(value).__name__, value


def _with_plain_json(value: Any, sql_type: Type) -> Any:
    if value is None:
        return None
    if sql_type.base == "json":
        try:
            return json.dumps(
                json.loads(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True
            )
        except ValueError:
            return value
    if sql_type.base == "array":
        return [_with_plain_json(element, sql_type.parameters[0]) for element in value]
    if sql_type.base == "map":
        return [
            tuple(
                _with_plain_json(part, of)
                for part, of in zip(entry, sql_type.parameters, strict=True)
            )
            for entry in value
        ]
    if sql_type.base == "row":
        fields = zip(value.items(), sql_type.parameters, strict=True)
        return {name: _with_plain_json(field, of) for (name, field), of in fields}
    return value


# -- values at the edges


def _integers(bits: int) -> Callable[[Type], Iterator[int]]:
    return lambda _: iter(
        (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, -1, *((2**53 + 1,) if bits > 53 else ()))
    )


def _single(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])


def _decimal(sql_type: Type, unscaled: int) -> Decimal:
    """Return a decimal by its digits, as text: arithmetic would round 38 digits."""
    return Decimal(f"{unscaled}E-{sql_type.parameters[1]}")


def _decimals(sql_type: Type) -> Iterator[Decimal]:
    precision, _ = sql_type.parameters
    greatest = 10**precision - 1
    digits = int(("1234567890" * 4)[:precision])
    return (_decimal(sql_type, unscaled) for unscaled in (greatest, -greatest, 1, -1, digits, 0))


def _texts(sql_type: Type) -> Iterator[str]:
    longest = sql_type.parameters[0] if sql_type.parameters else 300
    texts = [
        text for text in (*TEXTS, "\t\n\r", " ", "Aa", "aA", "É" * longest) if len(text) <= longest
    ]
    return iter(dict.fromkeys([*texts, *_LETTERS[:2], *_LETTERS[26:28]]) if longest else [""])


def _padded(sql_type: Type) -> Iterator[str]:
    length = sql_type.parameters[0]
    return iter(
        dict.fromkeys(
            text.ljust(length) for text in (*TEXTS, "ab", "AB", " b") if len(text) <= length
        )
    )


def _cut(moment: Moment, precision: int) -> Moment:
    unit = 10 ** (_MICROSECONDS - min(precision, _MICROSECONDS))
    return moment.replace(microsecond=moment.microsecond // unit * unit)


def _times(sql_type: Type) -> Iterator[dt.time]:
    moments = (_FULL_DAY, dt.time(0), dt.time(12, 30, 15, _FRACTION))
    return (_cut(moment, sql_type.parameters[0]) for moment in moments)


def _timestamps(sql_type: Type) -> Iterator[dt.datetime]:
    zone = dt.UTC if sql_type.base.endswith("zone") else None
    moments = (
        _MOMENT.replace(microsecond=_FRACTION),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001
        dt.datetime(2262, 4, 12),  # noqa: DTZ001 - beyond what 64 bits of nanoseconds hold
        dt.datetime(2024, 3, 31, 2, 30),  # noqa: DTZ001 - no such local time in much of Europe
    )
    return (_cut(moment, sql_type.parameters[0]).replace(tzinfo=zone) for moment in moments)


def _some_edges(sql_type: Type) -> list[Any]:
    return list(_EDGES[sql_type.base](sql_type))


def _arrays(sql_type: Type) -> Iterator[list[Any]]:
    edges = _some_edges(sql_type.parameters[0])
    return iter(([], [None], [edges[0], None, edges[min(1, len(edges) - 1)]], edges))


def _maps(sql_type: Type) -> Iterator[list[tuple[Any, Any]]]:
    keys, values = (_some_edges(of) for of in sql_type.parameters)
    keys = list({identity(key): key for key in keys}.values())
    every = [(key, values[index % len(values)]) for index, key in enumerate(keys)]
    return iter(
        (
            [],
            [(keys[0], None)],
            [(keys[0], values[0]), (keys[-1], None)] if len(keys) > 1 else [],
            every,
        )
    )


def _fields(sql_type: Type) -> list[tuple[str, Type]]:
    return [
        (name or f"field{index}", of)
        for index, (name, of) in enumerate(zip(sql_type.fields, sql_type.parameters, strict=True))
    ]


def _rows(sql_type: Type) -> Iterator[dict[str, Any]]:
    edges = {name: _some_edges(of) for name, of in _fields(sql_type)}
    # Fields of one type have different values, so that swapped ones are detected.
    yield {name: values[index % len(values)] for index, (name, values) in enumerate(edges.items())}
    yield {
        name: values[-1 - index % len(values)] for index, (name, values) in enumerate(edges.items())
    }
    yield {name: None if index else values[0] for index, (name, values) in enumerate(edges.items())}
    yield dict.fromkeys(edges)


_EDGES: Final[Mapping[str, Callable[[Type], Iterator[Any]]]] = {
    "boolean": lambda _: iter((True, False)),
    "tinyint": _integers(8),
    "smallint": _integers(16),
    "integer": _integers(32),
    "bigint": _integers(64),
    "real": lambda _: iter(
        (1.5, _single(1 / 3), _single(3.4e38), -0.0, 0.0, math.nan, math.inf, -math.inf)
    ),
    "double": lambda _: iter((0.1, 1 / 3, 1e300, 5e-324, -0.0, 0.0, math.nan, math.inf, -math.inf)),
    "decimal": _decimals,
    "varchar": _texts,
    "char": _padded,
    "varbinary": lambda _: iter((b"\x00\xff", b"a", b"A ", b"", bytes(range(256)))),
    "date": lambda _: iter(
        (dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31))
    ),
    "time": _times,
    "timestamp": _timestamps,
    "timestamp with time zone": _timestamps,
    "uuid": lambda _: iter(
        (
            str(uuid.UUID(int=0)),
            "12345678-1234-5678-9abc-def012345678",
            str(uuid.UUID(int=2**128 - 1)),
        )
    ),
    "json": lambda _: iter(
        ('{"B": [1, null, {"a": "Ünï "}]}', "12", '"12"', "1.50", "null", '""', "[]", "true")
    ),
    "array": _arrays,
    "map": _maps,
    "row": _rows,
}

# -- values by number


def _wrapped(bits: int) -> Callable[[Type, int], int]:
    half = 2 ** (bits - 1)
    return lambda _, number: (number + half) % (2 * half) - half


def _numbered_decimal(sql_type: Type, number: int) -> Decimal:
    # A multiplier without the factors 2 and 5 yields all values, with significant fractions.
    precision, scale = sql_type.parameters
    return _decimal(sql_type, number * (10**scale + 10**scale // 3) % 10**precision)


def _numbered_text(sql_type: Type, number: int) -> str:
    text = f"{TEXTS[number % len(TEXTS)]}{number // len(TEXTS) or ''}"
    fits = not sql_type.parameters or len(text) <= sql_type.parameters[0]
    return text if fits else _LETTERS[number % len(_LETTERS)][: sql_type.parameters[0]]


def _numbered_char(sql_type: Type, number: int) -> str:
    length = sql_type.parameters[0]
    text = f"C{number}"
    return (text if len(text) <= length else _LETTERS[number % len(_LETTERS)][:length]).ljust(
        length
    )


def _numbered_moment(sql_type: Type, number: int) -> dt.datetime:
    moment = _MOMENT + dt.timedelta(hours=number, microseconds=number * _FRACTION)
    return _cut(moment, sql_type.parameters[0]).replace(
        tzinfo=dt.UTC if sql_type.base.endswith("zone") else None
    )


def _numbered_time(sql_type: Type, number: int) -> dt.time:
    return _cut(
        dt.time(number % 24, number % 60, number % 50, number * _FRACTION % 1_000_000),
        sql_type.parameters[0],
    )


def _numbered_map(sql_type: Type, number: int) -> list[tuple[Any, Any]]:
    key, value = sql_type.parameters
    entries = [(numbered_value(key, n), numbered_value(value, n + 1)) for n in (number, number + 1)]
    return entries if identity(entries[0][0]) != identity(entries[1][0]) else entries[:1]


_NUMBERED: Final[Mapping[str, Callable[[Type, int], Any]]] = {
    # No short pattern, so that two columns of this type differ in some row.
    "boolean": lambda _, n: (n + 1) * 2654435761 >> 11 & 1 == 1,
    "tinyint": _wrapped(8),
    "smallint": _wrapped(16),
    "integer": _wrapped(32),
    "bigint": _wrapped(64),
    "real": lambda _, n: _single(n + 1 / 3),
    "double": lambda _, n: n + 1 / 3,
    "decimal": _numbered_decimal,
    "varchar": _numbered_text,
    "char": _numbered_char,
    "varbinary": lambda _, n: f"B{n}".encode(),
    "date": lambda _, n: dt.date(2024, 1, 1) + dt.timedelta(days=n),
    "time": _numbered_time,
    "timestamp": _numbered_moment,
    "timestamp with time zone": _numbered_moment,
    "uuid": lambda _, n: str(uuid.UUID(int=n << 64 | n)),
    "json": lambda _, n: f'{{"N": {n}}}',
    "array": lambda sql_type, n: [
        numbered_value(sql_type.parameters[0], number) for number in (n, n + 1)
    ],
    "map": _numbered_map,
    "row": lambda sql_type, n: {
        name: numbered_value(of, n + 13 * index)
        for index, (name, of) in enumerate(_fields(sql_type))
    },
}
