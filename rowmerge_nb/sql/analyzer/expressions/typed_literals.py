"""Literals with a type (``DATE '...'``), checked here so that errors have a place."""

from __future__ import annotations

import datetime as dt
import json
import re
import uuid
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BOOLEAN, DATE, DOUBLE, JSON, REAL, UUID, VARCHAR, Type, decimal_of
from rowmerge_nb.sql.typed.expressions import Constant
from rowmerge_nb.sql.typed.type_rules import (
    INTERVAL_DAY,
    INTERVAL_YEAR,
    MOST_MICROSECONDS,
    RANGES,
    precision_of,
    zoned,
)
from rowmerge_nb.sql.typed.zones import canonical_zone, session_zone, to_utc, zone_info

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.tree.syntax import Interval

_INTEGERS: Final = {**RANGES, "int": RANGES["integer"]}
_TIME: Final = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,12}))?)?")
_TIMESTAMP: Final = re.compile(
    r"([+-]?\d{4,})-(\d{1,2})-(\d{1,2})(?:"
    r" (\d{1,2}:\d{1,2}(?::\d{1,2}(?:\.\d{1,12})?)?)?\s*(\S.*)?)?"
)
_DIGITS: Final = r"((?:\d(?:_?\d)*)?)"
_DECIMAL: Final = re.compile(rf"([+-]?){_DIGITS}(?:\.{_DIGITS})?", re.ASCII)
_FLOAT: Final = re.compile(
    r"[\x00-\x20]*([+-]?(?:NaN|Infinity|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))[fFdD]?[\x00-\x20]*",
    re.ASCII,
)
_NUMBER: Final = re.compile(
    r"[\x00-\x20]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?[\x00-\x20]*"
)
_FAR_DATE: Final = re.compile(r"\s*([+-]?\d{1,9})-(\d{1,2})-(\d{1,2})\s*", re.ASCII)
_YEARS: Final = 400
"""The period of the calendar."""
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - zones are handled apart


def decimal_literal(text: str) -> Constant | None:
    """Return the constant of decimal digits; None above 38 digits.

    >>> str(decimal_literal("0.125").type), str(decimal_literal("-12.50").type)
    ('decimal(3,3)', 'decimal(4,2)')
    """
    match = _DECIMAL.fullmatch(text)
    if match is None or not (match.group(2) or match.group(3)):
        return None
    whole = match.group(2).replace("_", "").lstrip("0")
    fraction = (match.group(3) or "").replace("_", "")
    precision = max(len(whole) + len(fraction), 1)
    if precision > 38:
        return None
    sign = "-" if match.group(1) == "-" else ""
    digits = (whole or "0") + (f".{fraction}" if fraction else "")
    return Constant(decimal_of(precision, len(fraction)), sign + digits)


def typed_literal(type_name: str, value: str) -> Constant | None:
    """Return the constant of ``type_name 'value'``, or None if the text is invalid.

    >>> typed_literal("date", "2024-02-29").value, typed_literal("date", "2024-02-30")
    ('2024-02-29', None)
    """
    try:
        return _READERS[type_name](value)
    except (ValueError, OverflowError):
        return None


def is_number(text: str) -> bool:
    """Return whether a text is a number of any length, in digits or by its word.

    >>> is_number("1e400"), is_number("+Infinity"), is_number("0x10")
    (True, True, False)
    """
    return text in {"NaN", "Infinity", "+Infinity", "-Infinity"} or (
        _NUMBER.fullmatch(text) is not None
    )


def _integer(type_name: str) -> Callable[[str], Constant]:
    def read(value: str) -> Constant:
        match = re.fullmatch(r"[\x00-\x20]*([+-]?\d+)[\x00-\x20]*", value)
        if match is None:
            raise ValueError(value)
        number = int(match[1])
        if not -_INTEGERS[type_name] <= number < _INTEGERS[type_name]:
            raise ValueError(value)
        return Constant(Type("integer" if type_name == "int" else type_name), str(number))

    return read


def _decimal(value: str) -> Constant:
    constant = decimal_literal(value)
    if constant is None:
        raise ValueError(value)
    return constant


def _boolean(value: str) -> Constant:
    word = value.lower()
    if word not in {"true", "false", "t", "f", "1", "0"}:
        raise ValueError(value)
    return Constant(BOOLEAN, "true" if word in {"true", "t", "1"} else "false")


def _date(value: str) -> Constant:
    match = re.fullmatch(r"\s*\+?(\d{1,9})-(\d{1,2})-(\d{1,2})\s*", value)
    if match is None:
        raise ValueError(value)
    return Constant(DATE, dt.date(*(int(part) for part in match.groups())).isoformat())


def _json(value: str) -> Constant:
    def no_number(word: str) -> None:
        raise ValueError(word)

    try:
        json.loads(value, parse_constant=no_number)
    except RecursionError as error:
        raise ValueError(value) from error
    return Constant(JSON, value)


def _uuid(value: str) -> Constant:
    parsed = uuid.UUID(value)
    if str(parsed) != value.lower():
        raise ValueError(value)
    return Constant(UUID, str(parsed))


def _is_rounded_out(type_name: str, value: str) -> bool:
    try:
        _READERS[type_name](value)
    except OverflowError:
        return True
    except ValueError:
        return False
    return False


def far_moment(type_name: str, value: str) -> Type | None:
    """Return the type of a valid DATE or TIMESTAMP literal outside of Python's range, else None.

    >>> str(far_moment("date", "12024-02-29")), far_moment("date", "12023-02-29"), far_moment("date", "2024-02-29")
    ('date', None, None)
    """
    match = (_FAR_DATE if type_name == "date" else _TIMESTAMP).fullmatch(
        value if type_name == "date" else value.rstrip()
    )
    if type_name not in {"date", "timestamp"} or match is None:
        return None
    if dt.MINYEAR <= int(match[1]) <= dt.MAXYEAR and not _is_rounded_out(type_name, value):
        return None
    clock, zone = match.groups()[3:] if type_name == "timestamp" else (None, None)
    try:
        dt.date(_YEARS + int(match[1]) % _YEARS, int(match[2]), int(match[3]))
        _, precision = _clock(clock) if clock else (0, 0)
    except ValueError:
        return None
    if zone and canonical_zone(zone) is None:
        return None
    return (
        DATE
        if type_name == "date"
        else Type("timestamp with time zone" if zone else "timestamp", (precision,))
    )


def _clock(text: str) -> tuple[int, int]:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(text)
    fraction = match.group(4) or ""
    micros = (int(fraction.ljust(12, "0")) + 500_000) // 1_000_000
    return ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros, len(fraction)


def _time(value: str) -> Constant:
    micros, precision = _clock(value.rstrip())
    moment = _EPOCH + dt.timedelta(microseconds=micros % 86_400_000_000)
    return Constant(Type("time", (precision,)), moment.strftime("%H:%M:%S.%f"))


def _timestamp(value: str) -> Constant:
    match = _TIMESTAMP.fullmatch(value.rstrip())
    if match is None:
        raise ValueError(value)
    year, month, day, clock, zone = match.groups()
    micros, precision = _clock(clock) if clock else (0, 0)
    moment = dt.datetime(int(year), int(month), int(day)) + dt.timedelta(microseconds=micros)  # noqa: DTZ001
    sql_type = Type("timestamp", (precision,))
    if not zone:
        return Constant(sql_type, _clock_text(moment))
    name = canonical_zone(zone)
    if name is None:
        raise ValueError(value)
    sql_type = Type("timestamp with time zone", (precision,))
    clock_text = _clock_text(to_utc(moment, name))
    return (
        Constant(sql_type, clock_text)
        if name == "UTC"
        else Constant(zoned(sql_type), f"{clock_text} {name}")
    )


def _clock_text(moment: dt.datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")


def moment_constant(sql_type: Type, moment: dt.datetime) -> Constant:
    """Return a moment as a constant, by the session zone's clock, rounded to the type's precision.

    >>> moment_constant(Type("time", (1,)), dt.datetime(2024, 2, 29, 23, 59, 59, 960000, dt.UTC)).value
    '00:00:00.000000'
    """
    zone = session_zone()
    with_zone = sql_type.base == "timestamp with time zone"
    clock = moment.astimezone(dt.UTC if with_zone else zone_info(zone)).replace(tzinfo=None)
    if sql_type == DATE:
        return Constant(sql_type, clock.date().isoformat())
    step = 10 ** (MOST_MICROSECONDS - precision_of(sql_type))
    micros = (clock - _EPOCH) // dt.timedelta(microseconds=1) + step // 2
    rounded = _EPOCH + dt.timedelta(microseconds=micros - micros % step)
    if with_zone and zone != "UTC":
        return Constant(zoned(sql_type), f"{_clock_text(rounded)} {zone}")
    return Constant(
        sql_type,
        rounded.strftime("%H:%M:%S.%f") if sql_type.base == "time" else _clock_text(rounded),
    )


def _double(sql_type: Type) -> Callable[[str], Constant]:
    def read(value: str) -> Constant:
        match = _FLOAT.fullmatch(value)
        if match is None:
            raise ValueError(value)
        return Constant(sql_type, repr(float(match[1])))

    return read


_READERS: Final[dict[str, Callable[[str], Constant]]] = {
    **{type_name: _integer(type_name) for type_name in _INTEGERS},
    "decimal": _decimal,
    "double": _double(DOUBLE),
    "real": _double(REAL),
    "boolean": _boolean,
    "varchar": lambda value: Constant(VARCHAR, value),
    "char": lambda value: Constant(Type("char", (max(len(value), 1),)), value),
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "varbinary": lambda value: Constant(Type("varbinary"), value.encode().hex().upper()),
    "uuid": _uuid,
    "json": _json,
}

LONGEST_INTERVAL: Final = 100
"""The maximum number of characters."""
_LARGEST: Final = 2**31 - 1
"""The maximum of a single number of an interval, and of all its months."""
_MOST_SECONDS: Final = 2**63 // 10**6
_SECONDS: Final = {"DAY": 86400, "HOUR": 3600, "MINUTE": 60, "SECOND": 1}
_DAY_UNITS: Final = ("DAY", "HOUR", "MINUTE", "SECOND")


def interval_literal(node: Interval) -> Constant | None:
    """Return an interval in seconds or months.

    >>> from rowmerge_nb.sql.parser import statement_reader as parser
    >>> interval_literal(parser.parse("SELECT INTERVAL '1-2' YEAR TO MONTH").tree.body.items[0].value).value
    '14'
    """
    if len(node.value) > LONGEST_INTERVAL or not _units(node):
        return None
    text = node.value[1:] if node.value[:1] in {"+", "-"} else node.value
    sign = "-" if node.negative != node.value.startswith("-") else ""
    if node.first in {"YEAR", "MONTH"}:
        months = _months(text, node)
        return None if months is None else Constant(INTERVAL_YEAR, f"{sign}{months}")
    seconds = _seconds(text, _units(node))
    return None if seconds is None else Constant(INTERVAL_DAY, f"{sign}{seconds}")


def interval_refusal(node: Interval) -> str:
    last = node.last if node.last and node.last != node.first else None
    words = f"{node.first} TO {last}" if last else node.first
    return (
        f"Invalid INTERVAL {words} value: {node.value}"
        if _units(node)
        else f"Invalid interval qualifier: {words}"
    )


def is_long_interval(value: Constant) -> bool:
    """Return whether an interval exceeds Spark's microseconds; Trino counts milliseconds."""
    return value.type == INTERVAL_DAY and abs(Decimal(value.value or 0)) >= _MOST_SECONDS


def _units(node: Interval) -> tuple[str, ...]:
    order = ("YEAR", "MONTH") if node.first in {"YEAR", "MONTH"} else _DAY_UNITS
    last = node.last or node.first
    return order[order.index(node.first) : order.index(last) + 1] if last in order else ()


def _months(text: str, node: Interval) -> int | None:
    match = re.fullmatch(
        r"(\d*)(?:-(\d*))?" if len(_units(node)) > 1 else r"(\d*)()", text, re.ASCII
    )
    if match is None or any(int(part or 0) > _LARGEST for part in match.groups()):
        return None
    months = int(match.group(1) or 0) * (12 if node.first == "YEAR" else 1) + int(
        match.group(2) or 0
    )
    return months if months <= _LARGEST else None


_PARTS: Final = {
    "DAY": r"(?P<DAY>\d+)",
    "HOUR": r"(?P<HOUR>\d+)",
    "MINUTE": r"(?P<MINUTE>\d+)",
    "SECOND": r"(?P<SECOND>\d+)(?:\.(?P<FRACTION>\d*))?",
}


def _seconds(text: str, units: tuple[str, ...]) -> str | None:
    """Return seconds with six decimals, three significant; trailing units are optional."""
    pattern = ""
    for unit in reversed(units):
        separator = "" if unit == units[0] else " " if unit == "HOUR" else ":"
        pattern = (
            f"{separator}{_PARTS[unit]}{pattern}"
            if unit == units[0]
            else f"(?:{separator}{_PARTS[unit]}{pattern})?"
        )
    match = re.fullmatch(pattern, text or "0", re.ASCII)
    if match is None:
        return None
    groups = match.groupdict()
    numbers = [int(groups[unit] or 0) for unit in units]
    if max(numbers) > _LARGEST:
        return None
    total = sum(number * _SECONDS[unit] for unit, number in zip(units, numbers, strict=True))
    return f"{total}.{(groups.get('FRACTION') or '')[:3].ljust(3, '0')}000"
