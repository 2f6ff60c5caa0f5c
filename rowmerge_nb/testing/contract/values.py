"""Values of every SQL type that the checks write and read back."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi.types import Type, parse_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["TYPES", "awkward_values", "numbered_value"]

TEXTS: Final = ("plain", "it's", 'a "quoted" word', "a/b=c%", "ünï ☃", "007", "x  y")
"""Texts that are hard to quote, to escape, or to tell from numbers."""

_MOMENT: Final = dt.datetime(2024, 2, 29, 12, 30)  # noqa: DTZ001 - timestamps have no zone

AWKWARD: Final[Mapping[str, tuple[Any, ...]]] = {
    "boolean": (True, False),
    "tinyint": (-128, 127, 0),
    "smallint": (-32768, 32767),
    "integer": (-(2**31), 2**31 - 1),
    "bigint": (-(2**63), 2**63 - 1, 2**53 + 1),
    "real": (1.5, float("inf")),
    "double": (0.1, 1e300, float("-inf")),
    "decimal(5,2)": (Decimal("-999.99"), Decimal("0.10")),
    "decimal(38,0)": (Decimal(10**38 - 1), Decimal(-1)),
    "decimal(38,10)": (Decimal("-1234567890123456789012345678.0123456789"),),
    "varchar": (*TEXTS, "\n"),
    "varchar(20)": ("12", "x "),
    "char(4)": ("ab  ", "1   "),
    "varbinary": (b"\x00\xff", b"a"),
    "date": (dt.date(1969, 12, 31), dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    "time(6)": (dt.time(23, 59, 59, 999999), dt.time(0)),
    "timestamp(3)": (_MOMENT.replace(microsecond=123_000), dt.datetime(2262, 4, 11)),  # noqa: DTZ001
    "timestamp(6)": (_MOMENT.replace(microsecond=1), _MOMENT),
    "timestamp(6) with time zone": (_MOMENT.replace(microsecond=7, tzinfo=dt.UTC),),
    "uuid": ("12345678-1234-5678-9abc-def012345678",),
    "json": ('{"a": [1, null]}', "12", '"12"'),
    "array(integer)": ([1, None, 3], []),
    "map(varchar, bigint)": ([("a", 1), ("b", None)], []),
    "row(a integer, b varchar)": ({"a": 1, "b": "x"}, {"a": None, "b": None}),
}
"""Per type values at its edges, among them those that stores like to change."""

TYPES: Final = tuple(AWKWARD)
"""All types that a connector is tried with unless it names those it has."""

_NUMBERED: Final[Mapping[str, Callable[[int], Any]]] = {
    "boolean": lambda n: n % 2 == 0,
    "tinyint": int,
    "smallint": int,
    "integer": int,
    "bigint": int,
    "real": lambda n: n + 0.5,
    "double": lambda n: n + 0.25,
    "decimal": Decimal,
    "varchar": lambda n: f"{TEXTS[n % len(TEXTS)]}{n // len(TEXTS) or ''}",
    "char": lambda n: f"c{n}",
    "varbinary": lambda n: f"b{n}".encode(),
    "date": lambda n: dt.date(2024, 1, 1) + dt.timedelta(days=n),
    "time": lambda n: dt.time(n % 24, n % 60),
    "timestamp": lambda n: _MOMENT + dt.timedelta(hours=n),
    "timestamp with time zone": lambda n: _MOMENT.replace(tzinfo=dt.UTC) + dt.timedelta(hours=n),
    "uuid": lambda n: str(uuid.UUID(int=n)),
    "json": lambda n: f'{{"n": {n}}}',
}


def awkward_values(type_name: str) -> tuple[Any, ...]:
    """Give values of a type that are easily damaged, none of them NULL.

    >>> awkward_values("tinyint")
    (-128, 127, 0)
    """
    if type_name in AWKWARD:
        return AWKWARD[type_name]
    kind = parse_type(type_name)
    return tuple(numbered_value(kind, number) for number in range(3))


def numbered_value(kind: Type, number: int) -> Any:
    """Give one of a type's values by its number; of the types that keys can have, another one for every number from 0 to 100.

    Raises:
        NotImplementedError: the type has no numbered values; arrays, maps and rows.

    >>> numbered_value(parse_type("varchar"), 1), numbered_value(parse_type("bigint"), 7)
    ("it's", 7)
    """
    if kind.base not in _NUMBERED:
        msg = f"Values of type {kind} cannot be numbered; choose another type for this column of the contract's table"
        raise NotImplementedError(msg)
    return _NUMBERED[kind.base](number)
