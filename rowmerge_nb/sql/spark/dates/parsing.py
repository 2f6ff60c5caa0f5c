"""Parsing of dates by pattern: a regular expression takes a text apart, and every field is checked as Joda checks it."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.spark.casts.moments import with_zone
from rowmerge_nb.sql.spark.casts.text import canonical_zone, is_too_far, is_zone
from rowmerge_nb.sql.spark.text import groups
from rowmerge_nb.sql.typed.expressions import text_literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.functions.date_patterns import Token

__all__ = ["malformed", "parsing", "two_digit_pivot"]

_CODE: Final = "INVALID_FUNCTION_ARGUMENT"

_MONTHS: Final = "January February March April May June July August September October November December"
_DAYS: Final = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|Mon|Tue|Wed|Thu|Fri|Sat|Sun"
_OFFSET: Final = r"(?:Z|[+-]\d\d(?::?\d\d)?)"
_REGION: Final = r"[A-Za-z][A-Za-z0-9_+/-]*"

_RANGES: Final = {
    "month": ("monthOfYear", 1, "12"),
    "hour": ("hourOfDay", 0, "23"),
    "clock hour": ("clockhourOfDay", 1, "24"),
    "hour of halfday": ("hourOfHalfday", 0, "11"),
    "clock hour of halfday": ("clockhourOfHalfday", 1, "12"),
    "minute": ("minuteOfHour", 0, "59"),
    "second": ("secondOfMinute", 0, "59"),
    "day of week": ("dayOfWeek", 1, "7"),
}


_OF_WEEKS: Final = frozenset({"week year", "day of week"})
_OF_YEARS: Final = frozenset({"year", "short year", "month", "month name", "short month name", "day", "day of year"})
_DAY_NAMES: Final = ("day name", "short day name")
_WITHIN_YEARS: Final = frozenset(
    {"month", "month name", "short month name", "day", "day of year", "week", "day of week", *_DAY_NAMES}
)


def _expression(token: Token) -> str:
    """The regular expression of a token, without groups."""
    if token.field == "literal":
        # Marked one by one: \Q..\E would end at an \E of the text.
        literal = "".join(f"\\{c}" if c in r"\.[]()*+?^$|{}" else c for c in token.text)
        return f"(?i:{literal})" if any(map(str.isalpha, literal)) else literal
    words = {
        "era": "(?i:AD|BC)",
        "halfday": "(?i:AM|PM)",
        "offset": _OFFSET,
        "zone": _REGION,
        "zone name": "(?i:UTC)",
    }
    if token.field in words:
        return words[token.field]
    if token.field.endswith("month name"):
        return f"(?i:{'|'.join([*_MONTHS.split(), *(name[:3] for name in _MONTHS.split())])})"
    if token.field.endswith("day name"):
        return f"(?i:{_DAYS})"
    if token.field == "short year":
        return r"\d{2}" if token.strict else r"[+-]?\d{1,9}+"
    sign = "[+-]?" if token.field in {"year", "week year"} else ""
    # Joda takes as many digits as it may, and gives none back.
    return rf"{sign}\d{{1,{token.most}}}+"


def malformed(tokens: tuple[str, ...], text: str) -> str:
    """Write the message for a text that does not fit: it names the place up to which the text fitted.

    Args:
        tokens: the regular expressions of the pattern's parts.
        text: Spark SQL of the text.
    """
    prefix = ""
    for part in reversed(tokens):
        prefix = f"(?:{part}{prefix})?"
    good = f"length(regexp_extract({text}, {text_literal('^' + prefix)}, 0))"
    sample = f"IF(length({text}) > {good} + 35, concat(substring({text}, 1, {good} + 32), '...'), {text})"
    where = (
        f"CASE WHEN {good} = 0 THEN '' WHEN {good} >= length({text}) THEN ' is too short' "
        f"ELSE concat(' is malformed at \"', substring({sample}, {good} + 1), '\"') END"
    )
    return f"concat('Invalid format: \"', {sample}, '\"', {where})"


class _Fields:
    """The fields that a pattern reads, each as Spark SQL over the text."""

    def __init__(self, tokens: tuple[Token, ...], text: str) -> None:
        self.whole = text
        self.found: list[str] = []
        """What stands for the groups of the regular expression."""
        self.parts = tuple(_expression(token) for token in tokens)
        groups = [f"({part})" if token.field != "literal" else part for token, part in zip(tokens, self.parts, strict=True)]
        self.regex = text_literal(f"^{''.join(groups)}$")
        self.positions: dict[str, tuple[int, Token]] = {}
        number = 0
        for token in tokens:
            if token.field != "literal":
                number += 1
                self.positions.setdefault(token.field, (number, token))

    def __contains__(self, field: str) -> bool:
        return field in self.positions

    def text(self, field: str) -> str:
        return self.found[self.positions[field][0] - 1]

    def number(self, field: str, default: str) -> str:
        return f"CAST({self.text(field)} AS INT)" if field in self else default


def parsing(tokens: tuple[Token, ...], text: str, fail: Callable[..., str], *, pivot: int, zoned: bool) -> str:
    """Write Spark SQL that parses a text.

    Args:
        tokens: the pattern.
        text: Spark SQL of the text.
        fail: writes a failure: Trino's code and the parts of the message.
        pivot: a year of two digits lies at most 50 years before it, and less than 50 after it.
        zoned: give a timestamp that carries the zone that the text names, UTC where it names none; otherwise a wall clock.
    """
    fields = _Fields(tokens, text)

    def write(found: list[str]) -> str:
        fields.found = found
        return _checked(fields, fail, pivot, zoned=zoned)

    refused = fail(_CODE, malformed(fields.parts, text))
    count = sum(token.field != "literal" for token in tokens)
    value = groups(text, fields.regex, count, write)
    return f"CASE WHEN {text} IS NULL THEN NULL WHEN NOT {text} RLIKE {fields.regex} THEN {refused} ELSE {value} END"


def _checked(fields: _Fields, fail: Callable[..., str], pivot: int, *, zoned: bool) -> str:
    """The value that the fields make, once they are within their ranges."""
    year = _year(fields, pivot)
    day, checks = _day(fields, year)
    hour, half = _hour(fields)
    minute, second = fields.number("minute", "0"), fields.number("second", "0")
    millis = f"CAST(rpad(substring({fields.text('fraction')}, 1, 3), 3, '0') AS INT)" if "fraction" in fields else "0"
    clock = f"timestamp_millis(unix_date({day}) * 86400000L + ((({hour} + {half}) * 60 + {minute}) * 60 + {second}) * 1000L + {millis})"
    moment = _zoned(fields, clock) if zoned else f"CAST({clock} AS TIMESTAMP_NTZ)"
    for field in _RANGES:
        if field in fields:
            name, low, high = _RANGES[field]
            checks.append(_out_of_range(fields, fields.number(field, ""), name, str(low), high))
    failures = [(condition, (_CODE, *message)) for condition, message in checks] + (_zone_checks(fields) if zoned else [])
    checked = "".join(f"WHEN {condition} THEN {fail(*failure)} " for condition, failure in failures)
    return f"CASE {checked}ELSE {moment} END" if checked else moment


def _out_of_range(fields: _Fields, number: str, name: str, low: str, high: str) -> tuple[str, tuple[str, ...]]:
    shown = f"CAST({number} AS STRING)"
    said = text_literal(f" for {name} must be in the range [{low},")
    message = ("'Cannot parse \"'", fields.whole, "'\": Value '", shown, said, f"CAST({high} AS STRING)", "']'")
    return f"{number} NOT BETWEEN {low} AND {high}", message


def _year(fields: _Fields, pivot: int) -> str:
    if "short year" in fields:
        number, text = fields.number("short year", ""), fields.text("short year")
        low = pivot - 50
        short = f"{low} + pmod({number} - {low % 100}, 100)"
        return short if fields.positions["short year"][1].strict else f"IF({text} RLIKE '^[0-9][0-9]$', {short}, {number})"
    if "week year" in fields and "year" not in fields:
        return fields.number("week year", "")
    dated = _WITHIN_YEARS & set(fields.positions)
    # Joda begins with a leap year where the largest part that is given is one of a year.
    return fields.number("year", "2000" if dated else "1970")


def _day(fields: _Fields, year: str) -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
    """The date, and checks of what it is made of. A day of the week moves what the other parts say within its week."""
    date, checks = _dated(fields, year)
    weekday = _weekday(fields)
    if weekday is None or _by_weeks(fields):
        return date, checks
    return f"date_add({date}, {weekday} - 1 - weekday({date}))", checks


def _weekday(fields: _Fields) -> str | None:
    """The number of the day of the week, where one is given."""
    for name in _DAY_NAMES:
        if name in fields:
            shorts = ", ".join(f"'{day.lower()}'" for day in _DAYS.split("|")[7:])
            return f"CAST(array_position(array({shorts}), lower(substring({fields.text(name)}, 1, 3))) AS INT)"
    return fields.number("day of week", "") if "day of week" in fields else None


def _by_weeks(fields: _Fields) -> bool:
    found = set(fields.positions)
    return "week" in found or bool(_OF_WEEKS & found and not _OF_YEARS & found)


def _dated(fields: _Fields, year: str) -> tuple[str, list[tuple[str, tuple[str, ...]]]]:
    if _by_weeks(fields):
        # What is not given is the least that it can be.
        fourth = f"make_date({year}, 1, 4)"
        day, week = _weekday(fields) or "1", fields.number("week", "1")
        checks: list[tuple[str, tuple[str, ...]]] = []
        if "week" in fields:
            checks.append(_out_of_range(fields, week, "weekOfWeekyear", "1", f"weekofyear(make_date({year}, 12, 28))"))
        return f"date_add({fourth}, ({week} - 1) * 7 + {day} - 1 - weekday({fourth}))", checks
    if "day of year" in fields and "day" not in fields:
        number = fields.number("day of year", "")
        last = f"dayofyear(make_date({year}, 12, 31))"
        return f"date_add(make_date({year}, 1, 1), {number} - 1)", [_out_of_range(fields, number, "dayOfYear", "1", last)]
    month = fields.number("month", "1")
    for name in ("month name", "short month name"):
        if name in fields:
            shorts = ", ".join(f"'{month[:3].lower()}'" for month in _MONTHS.split())
            month = f"CAST(array_position(array({shorts}), lower(substring({fields.text(name)}, 1, 3))) AS INT)"
    day = fields.number("day", "1")
    checks = [_out_of_range(fields, month, "monthOfYear", "1", "12")] if "month" in fields else []
    if "day" in fields:
        checks.append(_out_of_range(fields, day, "dayOfMonth", "1", f"day(last_day(make_date({year}, {month}, 1)))"))
    return f"make_date({year}, {month}, {day})", checks


def _hour(fields: _Fields) -> tuple[str, str]:
    if "hour" in fields:
        return fields.number("hour", ""), "0"
    if "clock hour" in fields:
        return f"({fields.number('clock hour', '')} % 24)", "0"
    half = f"IF(upper({fields.text('halfday')}) = 'PM', 12, 0)" if "halfday" in fields else "0"
    if "clock hour of halfday" in fields:
        return f"({fields.number('clock hour of halfday', '')} % 12)", half
    return fields.number("hour of halfday", "0"), half


def _zoned(fields: _Fields, clock: str) -> str:
    field = next((name for name in ("offset", "zone") if name in fields), None)
    if field is None:
        return with_zone(clock, "'UTC'")
    zone = fields.text(field)
    # Only a colon makes of hours and minutes what every reader of zones takes.
    zone = f"regexp_replace(regexp_replace({zone}, '^([+-][0-9][0-9])([0-9][0-9])$', '$1:$2'), '^([+-][0-9][0-9])$', '$1:00')"
    return with_zone(f"to_utc_timestamp({clock}, {zone})", canonical_zone(zone))


def _zone_checks(fields: _Fields) -> list[tuple[str, tuple[str, ...]]]:
    """Zones that there are not, and distances from UTC that none has."""
    checks: list[tuple[str, tuple[str, ...]]] = []
    if "zone" in fields:
        zone = fields.text("zone")
        rest = f"substring({fields.whole}, instr({fields.whole}, {zone}))"
        message = ("'Invalid format: \"'", fields.whole, "'\" is malformed at \"'", rest, "'\"'")
        checks.append((f"NOT {is_zone(zone)}", (_CODE, *message)))
    if "offset" in fields:
        offset = canonical_zone(fields.text("offset"))
        checks.append((is_too_far(offset), ("NOT_SUPPORTED", "'Time zone not supported: '", offset)))
    return checks


def two_digit_pivot() -> int:
    """Give Joda's pivot for years of two digits today."""
    return dt.datetime.now(dt.UTC).year - 30
