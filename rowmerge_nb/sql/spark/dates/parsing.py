"""Parsing by pattern: a regular expression splits the text, and fields are checked like Joda's."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.spark.casts.moment_casts import with_zone
from rowmerge_nb.sql.spark.casts.text_casts import canonical_zone, is_too_far, is_zone
from rowmerge_nb.sql.spark.text import groups, once
from rowmerge_nb.sql.typed.expressions import text_literal
from rowmerge_nb.sql.typed.zones import session_zone

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.functions.date_patterns import PatternToken

_CODE: Final = "INVALID_FUNCTION_ARGUMENT"

_MONTHS: Final = (
    "January February March April May June July August September October November December"
)
_DAYS: Final = (
    "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|Mon|Tue|Wed|Thu|Fri|Sat|Sun"
)
_OFFSET: Final = r"(?:Z|[+-]\d\d(?::?\d\d)?)"
_REGION: Final = r"[A-Za-z][A-Za-z0-9_+/-]*"

_RANGES: Final = {
    "hour": ("hourOfDay", 0, "23"),
    "clock hour": ("clockhourOfDay", 1, "24"),
    "hour of halfday": ("hourOfHalfday", 0, "11"),
    "clock hour of halfday": ("clockhourOfHalfday", 1, "12"),
    "minute": ("minuteOfHour", 0, "59"),
    "second": ("secondOfMinute", 0, "59"),
}


_NAMES: Final = {"month": _MONTHS.split(), "weekday": _DAYS.split("|")[7:]}
_PARTS: Final = {
    "era": "era",
    "century": "century",
    **dict.fromkeys(("year", "short year"), "year"),
    "week year": "week year",
    **dict.fromkeys(("month", "month name", "short month name"), "month"),
    "week": "week",
    "day of year": "day of year",
    "day": "day",
    **dict.fromkeys(("day of week", "day name", "short day name"), "weekday"),
}
"""The part of a date that a field sets; larger parts precede smaller ones, in Joda's order."""
_LARGEST_FIRST: Final = tuple(dict.fromkeys(_PARTS.values()))
_YEARS: Final = _LARGEST_FIRST[:4]
_DIRECT: Final = (("year", "month", "day"), ("year", "day of year"))
"""Prefixes of these parts form a date directly."""
_OF_DAYS: Final = frozenset({*_RANGES, "fraction", "halfday"})


def _expression(token: PatternToken) -> str:
    if token.field == "literal":
        # Escaped one by one: \Q..\E would end at an \E of the text.
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
    # Joda is greedy and does not backtrack.
    return rf"{sign}\d{{1,{token.most}}}+"


def malformed(tokens: tuple[str, ...], text: str) -> str:
    """Write the message for a malformed text, with the position up to which the regular expressions
    ``tokens`` match.
    """
    prefix = ""
    for part in reversed(tokens):
        prefix = f"(?:{part}{prefix})?"
    good = f"length(regexp_extract({text}, {text_literal('^' + prefix)}, 0))"
    sample = (
        f"IF(length({text}) > {good} + 35, concat(substring({text}, 1, {good} + 32), '...'),"
        f" {text})"
    )
    where = (
        f"CASE WHEN {good} = 0 THEN '' WHEN {good} >= length({text}) THEN ' is too short' "
        f"ELSE concat(' is malformed at \"', substring({sample}, {good} + 1), '\"') END"
    )
    return f"concat('Invalid format: \"', {sample}, '\"', {where})"


class _Fields:
    """The fields of a pattern, as Spark SQL over the text."""

    def __init__(self, tokens: tuple[PatternToken, ...], text: str) -> None:
        self.whole = text
        self.group_texts: list[str] = []
        """Spark SQL of the regular expression's groups."""
        self.parts = tuple(_expression(token) for token in tokens)
        groups = [
            f"({part})" if token.field != "literal" else part
            for token, part in zip(tokens, self.parts, strict=True)
        ]
        self.regex = text_literal(rf"^{''.join(groups)}\z")
        self.numbered_tokens = list(
            enumerate((token for token in tokens if token.field != "literal"), start=1)
        )
        # The last one of repeated fields counts.
        self.positions = {token.field: (number, token) for number, token in self.numbered_tokens}

    def __contains__(self, field: str) -> bool:
        return field in self.positions

    def text(self, field: str) -> str:
        return self.group_texts[self.positions[field][0] - 1]

    def number(self, field: str, default: str) -> str:
        return f"CAST({self.text(field)} AS INT)" if field in self else default


def parsing(
    tokens: tuple[PatternToken, ...],
    text: str,
    fail: Callable[..., str],
    *,
    pivot: int,
    zoned: bool,
) -> str:
    """Parse a text by a pattern.

    Args:
        pivot: two-digit years are up to 50 years before it, and less than 50 after it.
        zoned: return a timestamp with the text's zone (UTC by default) instead of a wall clock.
    """
    fields = _Fields(tokens, text)

    def write(group_texts: list[str]) -> str:
        fields.group_texts = group_texts
        return _checked(fields, fail, pivot, zoned=zoned)

    error = fail(_CODE, malformed(fields.parts, text))
    count = sum(token.field != "literal" for token in tokens)
    value = groups(text, fields.regex, count, write)
    return (
        f"CASE WHEN {text} IS NULL THEN NULL WHEN NOT {text} RLIKE {fields.regex} THEN {error} ELSE"
        f" {value} END"
    )


def _checked(fields: _Fields, fail: Callable[..., str], pivot: int, *, zoned: bool) -> str:
    day = _day(fields, fail, pivot)
    checks: list[tuple[str, tuple[str, ...]]] = []
    hour, half = _hour(fields)
    minute, second = fields.number("minute", "0"), fields.number("second", "0")
    millis = (
        f"CAST(rpad(substring({fields.text('fraction')}, 1, 3), 3, '0') AS INT)"
        if "fraction" in fields
        else "0"
    )
    clock = (
        f"timestamp_millis(unix_date({day}) * 86400000L + ((({hour} + {half}) * 60 + {minute}) * 60"
        f" + {second}) * 1000L + {millis})"
    )
    moment = _zoned(fields, clock) if zoned else f"CAST({clock} AS TIMESTAMP_NTZ)"
    for field in _RANGES:
        if field in fields:
            name, low, high = _RANGES[field]
            checks.append(_out_of_range(fields, fields.number(field, ""), name, str(low), high))
    failures = [(condition, (_CODE, *message)) for condition, message in checks] + (
        _zone_checks(fields) if zoned else []
    )
    checked = "".join(f"WHEN {condition} THEN {fail(*failure)} " for condition, failure in failures)
    return f"CASE {checked}ELSE {moment} END" if checked else moment


def _out_of_range(
    fields: _Fields, number: str, name: str, low: str, high: str
) -> tuple[str, tuple[str, ...]]:
    number_text = f"CAST({number} AS STRING)"
    message_part = text_literal(f" for {name} must be in the range [{low},")
    message = (
        "'Cannot parse \"'",
        fields.whole,
        "'\": Value '",
        number_text,
        message_part,
        f"CAST({high} AS STRING)",
        "']'",
    )
    return f"{number} NOT BETWEEN {low} AND {high}", message


def _day(fields: _Fields, fail: Callable[..., str], pivot: int) -> str:
    numbered_tokens = sorted(
        (item for item in fields.numbered_tokens if item[1].field in _PARTS), key=_rank
    )
    steps = [
        (_part((number, token)), _value(token, fields.group_texts[number - 1], pivot))
        for number, token in numbered_tokens
    ]
    if steps and steps[0][0] not in _YEARS:
        # Joda starts with a leap year if the largest part is smaller than a year.
        steps.insert(0, ("year", "2000"))
    parts = tuple(part for part, _ in steps)
    direct = any(parts == some[: len(parts)] for some in _DIRECT)
    date = "DATE'1970-01-01'"
    for part, value in steps:
        date = once(
            lambda d, part=part, value=value: _checked_step(fields, fail, part, value, d), date
        )
    if direct:
        return date
    # A smaller part may have changed a larger one: all are set again.
    timed = not _OF_DAYS.isdisjoint(fields.positions)
    for index, (part, value) in enumerate(steps):
        floor = not timed and index == len(steps) - 1
        date = once(
            lambda d, part=part, value=value, floor=floor: _step(part, value, d, floor=floor), date
        )
    return date


def _part(numbered_token: tuple[int, PatternToken]) -> str:
    return _PARTS[numbered_token[1].field]


def _rank(numbered_token: tuple[int, PatternToken]) -> int:
    """Return a part's order; a year and a week year are equal."""
    part = _part(numbered_token)
    return _LARGEST_FIRST.index("year" if part == "week year" else part)


def _value(token: PatternToken, text: str, pivot: int) -> str:
    part = _PARTS[token.field]
    if not token.is_number and part in _NAMES:
        shorts = ", ".join(f"'{name[:3].lower()}'" for name in _NAMES[part])
        return f"CAST(array_position(array({shorts}), lower(substring({text}, 1, 3))) AS INT)"
    if token.field != "short year":
        return f"CAST({text} AS INT)"
    number, low = f"CAST({text} AS INT)", pivot - 50
    short = f"{low} + pmod({number} - {low % 100}, 100)"
    return short if token.strict else f"IF({text} RLIKE '^[0-9][0-9]$', {short}, {number})"


def _checked_step(
    fields: _Fields, fail: Callable[..., str], part: str, value: str, date: str
) -> str:
    most = {
        "month": ("monthOfYear", "12"),
        "week": (
            "weekOfWeekyear",
            f"weekofyear(make_date(CAST(extract(YEAROFWEEK FROM {date}) AS INT), 12, 28))",
        ),
        "day of year": ("dayOfYear", f"dayofyear(make_date(year({date}), 12, 31))"),
        "day": ("dayOfMonth", f"day(last_day({date}))"),
        "weekday": ("dayOfWeek", "7"),
    }.get(part)
    step = _step(part, value, date, floor=True)
    if most is None:
        return step
    condition, message = _out_of_range(fields, value, most[0], "1", most[1])
    return f"IF({condition}, {fail(_CODE, *message)}, {step})"


def _step(part: str, value: str, date: str, *, floor: bool) -> str:
    """Write a date with one part set; ``floor`` resets smaller ones."""
    fourth = f"make_date({value}, 1, 4)"
    days_in_week_year = (
        f"least(weekofyear({date}), weekofyear(make_date({value}, 12, 28))) * 7 - 7 +"
        f" weekday({date})"
    )
    moved = {
        "era": date,
        "century": f"add_months({date}, ({value} - year({date}) div 100) * 1200)",
        "year": f"add_months({date}, ({value} - year({date})) * 12)",
        "week year": f"date_add({fourth}, {days_in_week_year} - weekday({fourth}))",
        "month": f"add_months({date}, {value} - month({date}))",
        "week": f"date_add({date}, ({value} - weekofyear({date})) * 7)",
        "day of year": f"date_add({date}, {value} - dayofyear({date}))",
        "day": f"date_add({date}, {value} - day({date}))",
        "weekday": f"date_add({date}, {value} - 1 - weekday({date}))",
    }
    floored = {
        "era": "DATE'0001-01-01'",
        "century": f"make_date({value} * 100, 1, 1)",
        "year": f"make_date({value}, 1, 1)",
        "week year": f"date_sub({fourth}, weekday({fourth}))",
        "month": f"make_date(year({date}), {value}, 1)",
        "week": f"date_add({date}, ({value} - weekofyear({date})) * 7 - weekday({date}))",
    }
    return (floored if floor and part in floored else moved)[part]


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
        zone = text_literal(session_zone())
        return with_zone(f"to_utc_timestamp({clock}, {zone})", zone)
    zone = fields.text(field)
    # Every parser of zones requires a colon between hours and minutes.
    zone = (
        f"regexp_replace(regexp_replace({zone}, '^([+-][0-9][0-9])([0-9][0-9])$', '$1:$2'),"
        " '^([+-][0-9][0-9])$', '$1:00')"
    )
    return with_zone(f"to_utc_timestamp({clock}, {zone})", canonical_zone(zone))


def _zone_checks(fields: _Fields) -> list[tuple[str, tuple[str, ...]]]:
    checks: list[tuple[str, tuple[str, ...]]] = []
    if "zone" in fields:
        zone = fields.text("zone")
        rest = f"substring({fields.whole}, instr({fields.whole}, {zone}))"
        message = ("'Invalid format: \"'", fields.whole, "'\" is malformed at \"'", rest, "'\"'")
        checks.append((f"NOT {is_zone(zone)}", (_CODE, *message)))
    if "offset" in fields:
        offset = canonical_zone(fields.text("offset"))
        checks.append(
            (is_too_far(offset), ("NOT_SUPPORTED", "'Time zone not supported: '", offset))
        )
    return checks


def two_digit_pivot() -> int:
    """Return Joda's current pivot for two-digit years."""
    return dt.datetime.now(dt.UTC).year - 30
