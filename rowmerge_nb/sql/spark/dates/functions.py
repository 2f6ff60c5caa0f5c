"""Date and time functions in Spark SQL."""

# All writers have one signature.
# ruff: noqa: ARG001

from __future__ import annotations

from calendar import month_name
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import DATE, Type
from rowmerge_nb.sql.functions.date_patterns import ISO_DATE, mysql_tokens
from rowmerge_nb.sql.spark.casts.moment_casts import (
    from_micros,
    instant_of,
    local,
    micros,
    rounded,
    with_zone,
    zone_of,
)
from rowmerge_nb.sql.spark.casts.text_casts import (
    USUAL_DATE,
    canonical_zone,
    is_too_far,
    shown_moment,
    usual,
    usual_moment,
)
from rowmerge_nb.sql.spark.dates.date_formats import formatting
from rowmerge_nb.sql.spark.dates.parsing import malformed, parsing, two_digit_pivot
from rowmerge_nb.sql.spark.dates.zones import ZONES, offset_minutes, offset_name
from rowmerge_nb.sql.spark.text import groups, once
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import (
    UNIT_MICROSECONDS,
    UNIT_MONTHS,
    is_zoned,
    most_units,
    precision_of,
    spark_type,
)
from rowmerge_nb.sql.typed.zones import session_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rowmerge_nb.sql.spark.dates.zones import Writer

_WITH_ZONE: Final = "timestamp with time zone"
_CODE: Final = "INVALID_FUNCTION_ARGUMENT"
_MILLISECONDS: Final = Type("timestamp", (3,))
_CLOCK_UNITS: Final = ("millisecond", "second", "minute", "hour")
_UNITS: Final = (*UNIT_MICROSECONDS, *UNIT_MONTHS)
_SMALL: Final = 100_000
_DAY_MICROS: Final = 86_400_000_000


# -- units


def _units(sql_type: Type) -> tuple[str, ...]:
    if sql_type == DATE:
        return ("day", "week", "month", "quarter", "year")
    return _CLOCK_UNITS if sql_type.base == "time" else _UNITS


def _by_unit(write: Callable[..., str]) -> Writer:
    """Return the writer of a function of a unit: one formula, or a CASE over all units."""

    def chosen(node: e.Apply, fail: Callable[..., str], name: str, *texts: str) -> str:
        unit, sql_type = node.arguments[0], node.arguments[-1].type
        units = _units(sql_type)
        type_name = {"date": "DATE", "time": "TIME"}.get(sql_type.base, "TIMESTAMP")
        bad = fail(
            _CODE, "'\\''", f"lower({name})", e.text_literal(f"' is not a valid {type_name} field")
        )
        nulls = " OR ".join(f"{text} IS NULL" for text in (name, *texts))
        if isinstance(unit, e.Constant):
            unit_name = (unit.value or "").lower()
            return (
                write(unit_name, *texts, sql_type)
                if unit_name in units
                else f"IF({nulls}, CAST(NULL AS {spark_type(node.type)}), {bad})"
            )
        cases = " ".join(f"WHEN '{u}' THEN {write(u, *texts, sql_type)}" for u in units)
        return f"CASE WHEN {nulls} THEN NULL ELSE CASE lower({name}) {cases} ELSE {bad} END END"

    return chosen


def _truncated(name: str, text: str, sql_type: Type) -> str:
    if sql_type.base == "time":
        number = micros(text, sql_type)
        return from_micros(f"{number} - {number} % {UNIT_MICROSECONDS[name]}L", sql_type)
    if sql_type == DATE:
        return text if name == "day" else f"trunc({text}, '{name.upper()}')"
    clock = local(text, sql_type)
    cut = f"date_trunc('{name.upper()}', {clock})"
    if sql_type.base == "timestamp":
        return f"CAST({cut} AS TIMESTAMP_NTZ)"
    if not is_zoned(sql_type):
        return f"CAST({cut} AS TIMESTAMP)"
    if name in _CLOCK_UNITS:
        # Within a repeated hour of the clock, the instant stays in the same repetition.
        moved = (
            f"{micros(instant_of(text, sql_type), Type(_WITH_ZONE))} -"
            f" pmod({micros(clock, _MILLISECONDS)}, {UNIT_MICROSECONDS[name]}L)"
        )
        return with_zone(f"timestamp_micros({moved})", zone_of(text, sql_type))
    return with_zone(
        f"to_utc_timestamp(CAST({cut} AS TIMESTAMP), {zone_of(text, sql_type)})",
        zone_of(text, sql_type),
    )


def _added(node: e.Apply, fail: Callable[..., str], name: str, number: str, text: str) -> str:
    """Write a moment moved by units, whose number must be an integer."""
    moved = _by_unit(_moved)(node, fail, name, number, text)
    sql_type = node.arguments[-1].type
    if sql_type.base == "time" or _is_small(node.arguments[1]):
        return moved
    overflow = fail(_CODE, "'integer overflow'")
    # Spark's own overflow would have the code of a number.
    unit = node.arguments[0]
    if isinstance(unit, e.Constant):
        most = str(most_units((unit.value or "").lower(), sql_type))
    else:
        cases = " ".join(f"WHEN '{u}' THEN {most_units(u, sql_type)}" for u in _units(sql_type))
        most = f"CASE lower({name}) {cases} END"
    far = f"{number} NOT BETWEEN - {most} AND {most} AND {text} IS NOT NULL"
    return f"IF({far}, {overflow}, {moved})"


def _is_small(number: e.Typed) -> bool:
    """Return whether a number is a constant that moves no usual moment out of range."""
    plain = number.arguments[0] if isinstance(number, e.Apply) and number.name == "cast" else number
    return isinstance(plain, e.Constant) and abs(int(plain.value or 0)) <= _SMALL


def _moved(unit: str, number: str, text: str, sql_type: Type) -> str:
    if sql_type.base == "time":
        shift = (
            f"({number} % {_DAY_MICROS // UNIT_MICROSECONDS[unit]}L) * {UNIT_MICROSECONDS[unit]}L"
        )
        return from_micros(
            rounded(f"({micros(text, sql_type)} + {shift})", precision_of(sql_type)), sql_type
        )
    months = f"make_ym_interval(0, CAST({number} * {UNIT_MONTHS.get(unit, 1)} AS INT))"
    if sql_type == DATE:
        days = {"day": 1, "week": 7}
        return (
            f"date_add({text}, CAST({number} * {days[unit]} AS INT))"
            if unit in days
            else f"CAST({text} + {months} AS DATE)"
        )
    if unit in _CLOCK_UNITS or (unit in UNIT_MICROSECONDS and not is_zoned(sql_type)):
        plain = Type(sql_type.base)
        shift = (
            f"({micros(instant_of(text, sql_type), plain)} + {number} * {UNIT_MICROSECONDS[unit]}L)"
        )
        moved = from_micros(
            rounded(shift, precision_of(sql_type)) if unit == "millisecond" else shift, plain
        )
    elif is_zoned(sql_type):
        clock = local(text, sql_type)
        step = (
            months
            if unit in UNIT_MONTHS
            else f"make_dt_interval(CAST({number} * {UNIT_MICROSECONDS[unit] // _DAY_MICROS} AS INT))"
        )
        moved = f"to_utc_timestamp(CAST({clock} + {step} AS TIMESTAMP), {zone_of(text, sql_type)})"
    else:
        moved = f"({text} + {months})"
    return with_zone(moved, zone_of(text, sql_type)) if is_zoned(sql_type) else moved


def _difference(unit: str, first: str, second: str, sql_type: Type) -> str:
    if sql_type.base == "time":
        return f"(({micros(second, sql_type)} - {micros(first, sql_type)}) div {UNIT_MICROSECONDS[unit]})"
    if sql_type == DATE:
        a, b = f"CAST({first} AS TIMESTAMP_NTZ)", f"CAST({second} AS TIMESTAMP_NTZ)"
    elif is_zoned(sql_type) and sql_type.parameters[0] <= 3 and unit not in _CLOCK_UNITS:
        # Both on the clock of the first one's zone; Trino does so up to milliseconds, and uses UTC
        # for finer types.
        zone = zone_of(first, sql_type)
        a, b = (
            f"CAST(from_utc_timestamp({instant_of(t, sql_type)}, {zone}) AS TIMESTAMP_NTZ)"
            for t in (first, second)
        )
    elif sql_type.base == "timestamp":
        a, b = first, second
    else:
        a, b = (f"CAST({instant_of(text, sql_type)} AS TIMESTAMP_NTZ)" for text in (first, second))
    if unit in UNIT_MICROSECONDS:
        left, right = (f"unix_millis(CAST({text} AS TIMESTAMP))" for text in (b, a))
        return f"(({left} - {right}) div {UNIT_MICROSECONDS[unit] // 1000})"
    a, b = (f"date_trunc('MILLISECOND', {text})" for text in (a, b))
    low, high = f"least({a}, {b})", f"greatest({a}, {b})"
    apart = f"((year({high}) - year({low})) * 12 + month({high}) - month({low}))"
    whole = f"({apart} - IF({low} + make_ym_interval(0, {apart}) > {high}, 1, 0))"
    # NULL if either is, since least and greatest skip NULL.
    sign = f"CASE WHEN {a} <= {b} THEN 1 WHEN {a} > {b} THEN -1 END"
    return f"CAST({sign} * ({whole} div {UNIT_MONTHS[unit]}) AS BIGINT)"


# -- patterns


def _formatted(node: e.Apply, fail: Callable[..., str], text: str) -> str:
    sql_type = node.arguments[0].type
    clock = local(text, sql_type)
    if sql_type.parameters[0] > 3:
        clock = from_micros(rounded(micros(clock, _MILLISECONDS), 3), _MILLISECONDS)
    return formatting(
        node.detail.key, clock, zone_of(text, sql_type), offset_minutes(text, sql_type)
    )


def _formatted_exactly(node: e.Apply, fail: Callable[..., str], text: str) -> str:
    return formatting(node.detail.key, local(text, node.arguments[0].type), "'UTC'", "0")


def _parsed(node: e.Apply, fail: Callable[..., str], text: str) -> str:
    pivot = 2020 if node.detail.name == "date_parse" else two_digit_pivot()

    def parsed(value: str) -> str:
        return parsing(node.detail.key, value, fail, pivot=pivot, zoned=is_zoned(node.type))

    if node.detail.name == "date_parse" and node.detail.key == mysql_tokens(ISO_DATE):
        return once(
            lambda value: f"CASE {_iso_date_refused(value, fail)} ELSE {parsed(value)} END", text
        )
    return parsed(text)


def _iso_date_refused(text: str, fail: Callable[..., str]) -> str:
    year, month, day = (
        f"CAST(substring({text}, {begin}, {length}) AS INT)"
        for begin, length in ((1, 4), (6, 2), (9, 2))
    )
    shaped = rf"{text} RLIKE '^[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]\\z'"
    names = f"elt({month}, {', '.join(map(e.text_literal, map(str.upper, month_name[1:])))})"
    last = f"day(last_day(make_date({year}, {month}, 1)))"
    no_month = fail(
        _CODE, "'Invalid value for MonthOfYear (valid values 1 - 12): '", f"CAST({month} AS STRING)"
    )
    no_day = fail(
        _CODE, "'Invalid value for DayOfMonth (valid values 1 - 28/31): '", f"CAST({day} AS STRING)"
    )
    no_leap = fail(
        _CODE,
        r"'Invalid date \'February 29\' as \''",
        f"CAST({year} AS STRING)",
        r"'\' is not a leap year'",
    )
    none = fail(_CODE, r"'Invalid date \''", names, "' '", f"CAST({day} AS STRING)", r"'\''")
    return (
        f"WHEN {shaped} AND ({month} NOT BETWEEN 1 AND 12 OR {day} NOT BETWEEN 1 AND {last}) THEN"
        f" CASE WHEN {month} NOT BETWEEN 1 AND 12 THEN {no_month} WHEN {day} NOT BETWEEN 1 AND 31"
        f" THEN {no_day} WHEN {month} = 2 AND {day} = 29 THEN {no_leap} ELSE {none} END"
    )


# -- ISO 8601 and Unix time

_ISO_DATE: Final = (r"[+-]?\d{1,9}", r"-\d{1,2}", r"-\d{1,2}")
_ISO_CLOCK: Final = ("T", r"\d{1,2}", r":\d{1,2}", r":\d{1,2}", r"[.,]\d{1,9}")
_ISO_DAY: Final = (
    r"([+-]?\d{1,9})(?:-(\d{3})(?!\d)|-W(\d{1,2})(?:-(\d))?|-(\d{1,2})(?:-(\d{1,2}))?)?"
)
_ISO: Final = (
    rf"^(?:{_ISO_DAY})?"
    r"(?:T(?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}))?)?(?:[.,](\d{1,9}))?)?([Zz]|[+-]\d{2}(?::?\d{2})?)?)?\z"
)
"""An ordinal day, a week with an optional day, or a month with an optional day; the last of hours,
minutes, seconds may have a fraction.
"""


_MOST_MILLIS: Final = 2**51
_FARTHEST_YEAR: Final = {"date": 5_000_000, "timestamp": 290_000}
"""The limits of Spark's types."""


def _number(text: str, default: int) -> str:
    return f"coalesce(try_cast({text} AS INT), {default})"


def _iso_day(parts: list[str]) -> tuple[str, list[tuple[str, str, str]]]:
    """Return the date, and the number, name and range of its parts."""
    _, ordinal, week, *_ = parts
    y, o, w, e_, m, d = (
        _number(text, default) for text, default in zip(parts, (1970, 1, 1, 1, 1, 1), strict=True)
    )
    fourth = f"make_date({y}, 1, 4)"
    date = (
        f"CASE WHEN {week} <> '' THEN date_add({fourth}, {w} * 7 + {e_} - 8 - weekday({fourth}))"
        f" WHEN {ordinal} <> '' THEN date_add(make_date({y}, 1, 1), {o} - 1) ELSE make_date({y},"
        f" {m}, {d}) END"
    )
    return date, [
        (m, "monthOfYear", "1 AND 12"),
        (d, "dayOfMonth", f"1 AND day(last_day(make_date({y}, {m}, 1)))"),
        (o, "dayOfYear", f"1 AND dayofyear(make_date({y}, 12, 31))"),
        (w, "weekOfWeekyear", f"1 AND weekofyear(make_date({y}, 12, 28))"),
        (e_, "dayOfWeek", "1 AND 7"),
    ]


def _iso_checked(
    text: str,
    year: str,
    temporal_type: str,
    checks: list[tuple[str, str, str]],
    fail: Callable[..., str],
) -> str:
    far = fail(_CODE, "'Millis overflow: '", f"CAST({_number(year, 0)} * 31556952000L AS STRING)")
    branches = [f"WHEN abs({_number(year, 0)}) > {_FARTHEST_YEAR[temporal_type]} THEN {far}"]
    for number, name, bounds in checks:
        low, high = bounds.split(" AND ")
        message_part = e.text_literal(f" for {name} must be in the range [{low},")
        message_parts = (
            f"CAST({number} AS STRING)",
            message_part,
            f"CAST({high} AS STRING)",
            "']'",
        )
        error = fail(_CODE, "'Cannot parse \"'", text, "'\": Value '", *message_parts)
        branches.append(f"WHEN {number} NOT BETWEEN {bounds} THEN {error}")
    return " ".join(branches)


def _iso_timestamp(node: e.Apply, fail: Callable[..., str], text: str) -> str:
    def build(parts: list[str]) -> str:
        *day, hour, minute, second, fraction, offset = parts
        date, checks = _iso_day(day)
        h, m, s = (_number(part, 0) for part in (hour, minute, second))
        checks += [
            (h, "hourOfDay", "0 AND 23"),
            (m, "minuteOfHour", "0 AND 59"),
            (s, "secondOfMinute", "0 AND 59"),
        ]
        unit = f"CASE WHEN {second} <> '' THEN 1000 WHEN {minute} <> '' THEN 60000 ELSE 3600000 END"
        millis = (
            f"CAST(floor(CAST(concat('0.0', {fraction}) AS DECIMAL(10,10)) * 10 * {unit}) AS"
            " BIGINT)"
        )
        clock = (
            f"timestamp_millis(unix_date({date}) * 86400000L + (({h} * 60 + {m}) * 60 + {s}) *"
            f" 1000L + {millis})"
        )

        def at(zone: str) -> str:
            far = fail("NOT_SUPPORTED", "'Time zone not supported: '", zone)
            moment = once(
                lambda instant: _with_room(instant, fail), f"to_utc_timestamp({clock}, {zone})"
            )
            return f"IF({is_too_far(zone)}, {far}, {with_zone(moment, zone)})"

        zone = canonical_zone(_or(f"upper({offset})", session_zone()))
        return (
            f"CASE {_iso_checked(text, day[0], 'timestamp', checks, fail)} ELSE"
            f" {once(at, zone)} END"
        )

    regex = e.text_literal(_ISO)
    in_utc = "Z?" if session_zone() == "UTC" else "Z"
    moment = with_zone(f"try_cast({text} AS TIMESTAMP)", "'UTC'")
    first = usual(text, usual_moment("T", 3) + in_utc, moment)
    good = f"IF({text} RLIKE {regex} AND {text} <> '', {groups(text, regex, 11, build)}, NULL)"
    return (
        f"coalesce({first}, {good}, IF({text} IS NULL, NULL,"
        f" {fail(_CODE, malformed((*_ISO_DATE, *_ISO_CLOCK), text))}))"
    )


def _or(text: str, default: str) -> str:
    return f"coalesce(nullif({text}, ''), '{default}')"


def _iso_date(node: e.Apply, fail: Callable[..., str], text: str) -> str:
    def build(parts: list[str]) -> str:
        date, checks = _iso_day(parts)
        return f"CASE {_iso_checked(text, parts[0], 'date', checks, fail)} ELSE {date} END"

    regex = e.text_literal(rf"^{_ISO_DAY}\z")
    first = usual(text, USUAL_DATE, f"try_cast({text} AS DATE)")
    good = f"IF({text} RLIKE {regex}, {groups(text, regex, 6, build)}, NULL)"
    return f"coalesce({first}, {good}, IF({text} IS NULL, NULL, {fail(_CODE, malformed(_ISO_DATE, text))}))"


def _to_iso8601(node: e.Apply, fail: Callable[..., str], text: str) -> str:
    sql_type = node.arguments[0].type
    clock_text = (
        f"replace({shown_moment(local(text, sql_type), Type('timestamp', sql_type.parameters))}, '"
        " ', 'T')"
    )
    if sql_type.base == "timestamp":
        return clock_text
    if not is_zoned(sql_type):
        return f"concat({clock_text}, 'Z')"
    offset = offset_minutes(text, sql_type)
    hours = f"format_string('%02d:%02d', abs({offset}) div 60, abs({offset}) % 60)"
    iso_text = (
        f"concat({clock_text}, CASE WHEN {offset} = 0 THEN 'Z' WHEN {offset} < 0 THEN concat('-',"
        f" {hours}) ELSE concat('+', {hours}) END)"
    )
    seconds = (
        f"(({micros(local(text, sql_type), _MILLISECONDS)} -"
        f" {micros(instant_of(text, sql_type), Type(_WITH_ZONE))}) div 1000000)"
    )
    return (
        f"IF({seconds} % 60 <> 0, {fail('INVALID_ARGUMENTS', *_odd_seconds(seconds))}, {iso_text})"
    )


def _odd_seconds(seconds: str) -> tuple[str, ...]:
    offset_text = (
        f"format_string('%02d:%02d:%02d', abs({seconds}) div 3600, abs({seconds}) div 60 % 60,"
        f" abs({seconds}) % 60)"
    )
    return (
        "'Timezone with non-zero seconds offset cannot be rendered as ISO8601: '",
        f"IF({seconds} < 0, '-', '+')",
        offset_text,
    )


def _from_unixtime(node: e.Apply, fail: Callable[..., str], text: str, *zone: str) -> str:
    moment = once(lambda millis: _moment_of(millis, fail), once(_as_long, f"({text} * 1000)"))
    if not zone:
        return moment
    if len(zone) == 1:
        return with_zone(moment, zone[0])
    hours, minutes = zone
    return with_zone(moment, offset_name(fail, f"CAST({hours} * 60 + {minutes} AS INT)"))


def _as_long(number: str) -> str:
    """Write a number rounded as in Java: NaN is 0, and bigint clamps."""
    near = f"CAST(floor({number} + 0.5D) AS BIGINT)"
    far = f"IF({number} > 0, 9223372036854775807, -9223372036854775807 - 1)"
    return (
        f"CASE WHEN isnan({number}) THEN 0 WHEN abs({number}) < 9e18D THEN {near} WHEN {number} IS"
        f" NOT NULL THEN {far} END"
    )


def _with_room(moment: str, fail: Callable[..., str]) -> str:
    """Write a moment, or an error out of the range for a type with a zone."""
    far = fail(_CODE, "'Millis overflow: '", f"CAST(unix_millis({moment}) AS STRING)")
    return (
        f"IF(unix_millis({moment}) BETWEEN -{_MOST_MILLIS} AND {_MOST_MILLIS - 1} OR {moment} IS"
        f" NULL, {moment}, {far})"
    )


def _moment_of(millis: str, fail: Callable[..., str]) -> str:
    """Write the moment of milliseconds, which have 52 bits beside a zone."""
    far = fail(_CODE, "'Millis overflow: '", f"CAST({millis} AS STRING)")
    return (
        f"CASE WHEN {millis} BETWEEN -{_MOST_MILLIS} AND {_MOST_MILLIS - 1} THEN"
        f" timestamp_millis({millis}) WHEN {millis} IS NOT NULL THEN {far} END"
    )


MOMENTS: Final[Mapping[str, Writer]] = {
    **ZONES,
    "date_trunc": _by_unit(_truncated),
    "date_add": _added,
    "date_diff": _by_unit(_difference),
    "date_format": _formatted,
    "format_datetime": _formatted,
    "format moment": _formatted_exactly,
    "date_parse": _parsed,
    "parse_datetime": _parsed,
    "from_iso8601_timestamp": _iso_timestamp,
    "from_iso8601_date": _iso_date,
    "to_iso8601": _to_iso8601,
    "from_unixtime": _from_unixtime,
}
"""Writers by function; arguments: the call, a writer of failures, and the arguments' texts."""
