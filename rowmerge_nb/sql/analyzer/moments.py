"""Functions of dates, times and timestamps that a row of the table of functions cannot describe.

What they give depends on a unit (``date_trunc``), a pattern (``format_datetime``) or the zone that a value carries. Every one of
them is made out of analyzed arguments; what is not refused here or made here, the table of functions decides.
"""

# All makers of calls have one signature, and so have all writers of Spark SQL, whether they need all of it or not.
# ruff: noqa: ARG001

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BIGINT, DATE, UNKNOWN, VARCHAR, Type
from rowmerge_nb.sql.analyzer.moment_zones import ZONE_MAKERS, offset_minutes, offset_name, written, zone_argument
from rowmerge_nb.sql.spark.casts.moments import from_micros, instant_of, local, micros, rounded, with_zone, zone_of
from rowmerge_nb.sql.spark.casts.text import canonical_zone as written_zone
from rowmerge_nb.sql.spark.casts.text import shown_moment
from rowmerge_nb.sql.spark.dates.parsing import malformed, parsing, two_digit_pivot
from rowmerge_nb.sql.spark.dates.patterns import PatternError, Token, formatting, joda_tokens, mysql_tokens
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.types import can_coerce, common_type, is_numeric, is_text, is_zoned, precision_of, zoned

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from rowmerge_nb.sql.analyzer.calls import CallAnalyzer
    from rowmerge_nb.sql.tree.syntax import Expression

    Maker: TypeAlias = Callable[[CallAnalyzer, list[e.Typed], Expression], e.Typed | None]

__all__ = ["Maker", "moment_function"]

_WITH_ZONE: Final = "timestamp with time zone"
_MOMENTS: Final = frozenset({"timestamp", _WITH_ZONE})
_CODE: Final = "INVALID_FUNCTION_ARGUMENT"
_MILLISECONDS: Final = Type("timestamp", (3,))
_ZONED_MILLISECONDS: Final = zoned(Type(_WITH_ZONE, (3,)))
_MICROS: Final = {
    "millisecond": 1000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_CLOCK_UNITS: Final = ("millisecond", "second", "minute", "hour")
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_UNITS: Final = (*_MICROS, *_MONTHS)
_DAY_MICROS: Final = 86_400_000_000


def moment_function(analyzer: CallAnalyzer, name: str, values: Sequence[e.Typed], node: Expression) -> e.Typed | None:
    """Make the call of a function of moments, or give None where the table of functions decides.

    Args:
        analyzer: knows the statement, for errors.
        name: the function.
        values: its analyzed arguments.
        node: the call, for places.
    """
    maker = _MAKERS.get(name)
    return maker(analyzer, list(values), node) if maker is not None else None


def _is_moment(value: e.Typed) -> bool:
    return value.type.base in _MOMENTS


def _on_clock(analyzer: CallAnalyzer, values: list[e.Typed], name: str, node: Expression) -> e.Typed | None:
    """Functions that look at the wall clock alone: of a timestamp with time zone at that of its zone."""
    if not any(value.type.base == _WITH_ZONE for value in values):
        return None
    clocks = [
        e.Apply(Type("timestamp", value.type.parameters), "cast", (value,)) if value.type.base == _WITH_ZONE else value
        for value in values
    ]
    return analyzer.function(name, clocks, node)


def _clock_function(name: str) -> Maker:
    return lambda analyzer, values, node: _on_clock(analyzer, values, name, node)


# -- units ------------------------------------------------------------------------------------------------------------


def _units(kind: Type) -> tuple[str, ...]:
    if kind == DATE:
        return ("day", "week", "month", "quarter", "year")
    return _CLOCK_UNITS if kind.base == "time" else _UNITS


def _by_unit(kind: Type, unit: e.Typed, write: Callable[..., str]) -> Callable[..., str]:
    """Write a function of a unit: of a known unit its one formula, of another one a choice among all."""
    units = _units(kind)

    def chosen(fail: Callable[..., str], name: str, *texts: str) -> str:
        type_name = {"date": "DATE", "time": "TIME"}.get(kind.base, "TIMESTAMP")
        bad = fail(_CODE, "'\\''", name, e.text_literal(f"' is not a valid {type_name} field"))
        nulls = " OR ".join(f"{text} IS NULL" for text in (name, *texts))
        if isinstance(unit, e.Constant):
            known = (unit.value or "").lower()
            if known in units:
                return write(known, fail, *texts)
            return f"IF({nulls}, NULL, {bad})"
        cases = " ".join(f"WHEN '{u}' THEN {write(u, fail, *texts)}" for u in units)
        return f"CASE WHEN {nulls} THEN NULL ELSE CASE lower({name}) {cases} ELSE {bad} END END"

    return chosen


def _fits_unit(value: e.Typed) -> bool:
    return is_text(value.type) or value.type == UNKNOWN


def _is_dated(value: e.Typed) -> bool:
    return value.type.base in _MOMENTS or value.type.base in {"date", "time"}


def _date_trunc(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 2 or not _fits_unit(values[0]) or not _is_dated(values[1]):
        return None
    unit, value = values
    kind = value.type

    def write(name: str, fail: Callable[..., str], text: str) -> str:
        if kind.base == "time":
            number = micros(text, kind)
            return from_micros(f"{number} - {number} % {_MICROS[name]}L", kind)
        if kind == DATE:
            return text if name == "day" else f"trunc({text}, '{name.upper()}')"
        clock = local(text, kind)
        cut = f"date_trunc('{name.upper()}', {clock})"
        if kind.base == "timestamp":
            return f"CAST({cut} AS TIMESTAMP_NTZ)"
        if not is_zoned(kind):
            return f"CAST({cut} AS TIMESTAMP)"
        if name in _CLOCK_UNITS:
            # Within an hour that a clock shows twice, the instant stays in the one that it is in.
            moved = f"{micros(instant_of(text, kind), Type(_WITH_ZONE))} - pmod({micros(clock, _MILLISECONDS)}, {_MICROS[name]}L)"
            return with_zone(f"timestamp_micros({moved})", zone_of(text, kind))
        return with_zone(f"to_utc_timestamp(CAST({cut} AS TIMESTAMP), {zone_of(text, kind)})", zone_of(text, kind))

    return written(kind, "date_trunc", _by_unit(kind, unit, write), unit, value, key=unit)


def _date_add(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 3 or not _fits_unit(values[0]) or not can_coerce(values[1].type, BIGINT) or not _is_dated(values[2]):
        return None
    unit, value = values[0], values[2]
    kind = value.type

    def write(name: str, fail: Callable[..., str], number: str, text: str) -> str:
        return _moved(name, number, text, kind)

    amount = analyzer.coerce(values[1], BIGINT)
    return written(kind, "date_add", _by_unit(kind, unit, write), unit, amount, value, key=unit)


def _moved(unit: str, number: str, text: str, kind: Type) -> str:
    if kind.base == "time":
        shift = f"({number} % {_DAY_MICROS // _MICROS[unit]}L) * {_MICROS[unit]}L"
        return from_micros(rounded(f"({micros(text, kind)} + {shift})", precision_of(kind)), kind)
    months = f"make_ym_interval(0, CAST({number} * {_MONTHS.get(unit, 1)} AS INT))"
    if kind == DATE:
        days = {"day": 1, "week": 7}
        return f"date_add({text}, CAST({number} * {days[unit]} AS INT))" if unit in days else f"CAST({text} + {months} AS DATE)"
    if unit in _CLOCK_UNITS or (unit in _MICROS and not is_zoned(kind)):
        plain = Type(kind.base)
        shift = f"({micros(instant_of(text, kind), plain)} + {number} * {_MICROS[unit]}L)"
        moved = from_micros(rounded(shift, precision_of(kind)) if unit == "millisecond" else shift, plain)
    elif is_zoned(kind):
        clock = local(text, kind)
        step = months if unit in _MONTHS else f"make_dt_interval(CAST({number} * {_MICROS[unit] // _DAY_MICROS} AS INT))"
        moved = f"to_utc_timestamp(CAST({clock} + {step} AS TIMESTAMP), {zone_of(text, kind)})"
    else:
        moved = f"({text} + {months})"
    return with_zone(moved, zone_of(text, kind)) if is_zoned(kind) else moved


def _date_diff(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 3 or not _fits_unit(values[0]) or not (_is_dated(values[1]) or _is_dated(values[2])):
        return None
    unit = values[0]
    common = common_type(values[1].type, values[2].type)
    if common is None:
        return None
    first, second = (analyzer.coerce(value, common) for value in values[1:])

    def write(name: str, fail: Callable[..., str], a: str, b: str) -> str:
        return _difference(name, a, b, common)

    return written(BIGINT, "date_diff", _by_unit(common, unit, write), unit, first, second, key=unit)


def _difference(unit: str, first: str, second: str, kind: Type) -> str:
    if kind.base == "time":
        return f"(({micros(second, kind)} - {micros(first, kind)}) div {_MICROS[unit]})"
    if kind == DATE:
        a, b = f"CAST({first} AS TIMESTAMP_NTZ)", f"CAST({second} AS TIMESTAMP_NTZ)"
    elif is_zoned(kind) and kind.parameters[0] <= 3 and unit not in _CLOCK_UNITS:
        # Both by the clock of the first one's zone; Trino does so up to milliseconds, and takes UTC for finer types.
        zone = zone_of(first, kind)
        a, b = (f"CAST(from_utc_timestamp({instant_of(t, kind)}, {zone}) AS TIMESTAMP_NTZ)" for t in (first, second))
    elif kind.base == "timestamp":
        a, b = first, second
    else:
        a, b = (f"CAST({instant_of(text, kind)} AS TIMESTAMP_NTZ)" for text in (first, second))
    if unit in _MICROS:
        left, right = (f"unix_millis(CAST({text} AS TIMESTAMP))" for text in (b, a))
        return f"(({left} - {right}) div {_MICROS[unit] // 1000})"
    a, b = (f"date_trunc('MILLISECOND', {text})" for text in (a, b))
    low, high = f"least({a}, {b})", f"greatest({a}, {b})"
    apart = f"((year({high}) - year({low})) * 12 + month({high}) - month({low}))"
    whole = f"({apart} - IF({low} + make_ym_interval(0, {apart}) > {high}, 1, 0))"
    # NULL where one of them is: least and greatest pass over NULL.
    sign = f"CASE WHEN {a} <= {b} THEN 1 WHEN {a} > {b} THEN -1 END"
    return f"CAST({sign} * ({whole} div {_MONTHS[unit]}) AS BIGINT)"


# -- patterns ---------------------------------------------------------------------------------------------------------


def _tokens(
    analyzer: CallAnalyzer, read: Callable[[str], tuple[Token, ...]], pattern: e.Typed, node: Expression
) -> tuple[Token, ...]:
    if not isinstance(pattern, e.Constant) or pattern.value is None:
        analyzer.refuse("A date pattern that is not a literal is not supported by this engine", node)
    try:
        return read(pattern.value)
    except PatternError as error:
        analyzer.context.error(_CODE, str(error), node.place)


def _format(read: Callable[[str], tuple[Token, ...]], name: str) -> Maker:
    def make(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
        if len(values) != 2 or values[0].type.base not in {"date", *_MOMENTS} or not is_text(values[1].type):
            return None
        tokens = _tokens(analyzer, read, values[1], node)
        value = analyzer.coerce(values[0], _MILLISECONDS) if values[0].type == DATE else values[0]
        kind = value.type
        if is_zoned(kind) and any(token.field == "zone name" for token in tokens):
            analyzer.refuse("Names of time zones (z) in a pattern are not supported by this engine: write ZZZ", node)

        def write(fail: Callable[..., str], text: str) -> str:
            clock = local(text, kind)
            if kind.parameters[0] > 3:
                clock = from_micros(rounded(micros(clock, _MILLISECONDS), 3), _MILLISECONDS)
            return formatting(tokens, clock, zone_of(text, kind), offset_minutes(text, kind))

        return written(VARCHAR, name, write, value, key=tokens)

    return make


def _parse(read: Callable[[str], tuple[Token, ...]], name: str, kind: Type) -> Maker:
    def make(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
        if len(values) != 2 or not all(is_text(value.type) for value in values):
            return None
        tokens = _tokens(analyzer, read, values[1], node)
        pivot = 2020 if name == "date_parse" else two_digit_pivot()

        def write(fail: Callable[..., str], text: str) -> str:
            return parsing(tokens, text, fail, pivot=pivot, zoned=is_zoned(kind))

        return written(kind, name, write, values[0], key=tokens)

    return make


# -- ISO 8601 and Unix time -------------------------------------------------------------------------------------------

_ISO_DATE: Final = (r"[+-]?\d{1,9}", r"-\d{1,2}", r"-\d{1,2}")
_ISO_CLOCK: Final = ("T", r"\d{1,2}", r":\d{1,2}", r":\d{1,2}", r"[.,]\d{1,9}")
_ISO: Final = (
    r"^([+-]?\d{1,9})(?:-(\d{1,2})(?:-(\d{1,2}))?)?"
    r"(?:T(?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2}))?)?(?:[.,](\d{1,9}))?)?(Z|[+-]\d{2}(?::?\d{2})?)?)?$"
)


_ISO_DAY: Final = "^[0-9]+(-[0-9][0-9]?)?(-[0-9][0-9]?)?"


def _iso_refusal(text: str) -> str:
    """Say what is wrong with a text: a day or a month that there is not, or where it stops being ISO 8601."""
    parts = f"split(regexp_extract({text}, '{_ISO_DAY}', 0), '-')"
    year, month, day = (f"CAST(get({parts}, {i}) AS INT)" for i in range(3))
    first = f"try_to_date(concat(lpad({year}, 4, '0'), '-', {month}, '-01'), 'yyyy-M-dd')"

    def wrong(value: str, name: str, most: str) -> str:
        said = f"CAST({value} AS STRING), ' for {name} must be in the range [1,', {most}"
        return f"concat('Cannot parse \"', {text}, '\": Value ', {said}, ']')"

    month_wrong = wrong(month, "monthOfYear", "'12'")
    day_wrong = wrong(day, "dayOfMonth", f"CAST(day(last_day({first})) AS STRING)")
    return (
        f"CASE WHEN {month} NOT BETWEEN 1 AND 12 THEN {month_wrong} WHEN {day} NOT BETWEEN 1 AND day(last_day({first})) "
        f"THEN {day_wrong} ELSE {malformed((*_ISO_DATE, *_ISO_CLOCK), text)} END"
    )


def _or(text: str, default: str) -> str:
    return f"coalesce(nullif({text}, ''), '{default}')"


def _iso_timestamp(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 1 or not is_text(values[0].type):
        return None

    def write(fail: Callable[..., str], text: str) -> str:
        def made(found: list[str]) -> str:
            year, month, day, hour, minute, second, fraction, offset = found
            date = f"concat_ws('-', lpad({year}, 4, '0'), {_or(month, '1')}, {_or(day, '1')})"
            clock = f"concat_ws(':', {_or(hour, '0')}, {_or(minute, '0')}, {_or(second, '0')})"
            zone = f"regexp_replace(regexp_replace({_or(offset, 'UTC')}, '^([+-]..):?(..)$', '$1:$2'), '^([+-]..)$', '$1:00')"
            millis = f"make_dt_interval(0, 0, 0, CAST(substring(rpad({fraction}, 3, '0'), 1, 3) AS DECIMAL(18,6)) / 1000)"
            return with_zone(f"(try_cast(concat({date}, ' ', {clock}, ' ', {zone}) AS TIMESTAMP) + {millis})", written_zone(zone))

        regex = e.text_literal(_ISO)
        good = f"IF({text} RLIKE {regex}, {e.groups(text, regex, 8, made)}, NULL)"
        return f"coalesce({good}, IF({text} IS NULL, NULL, {fail(_CODE, _iso_refusal(text))}))"

    return written(_ZONED_MILLISECONDS, "from_iso8601_timestamp", write, values[0])


def _iso_date(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 1 or not is_text(values[0].type):
        return None

    def write(fail: Callable[..., str], text: str) -> str:
        parts = f"split({text}, '-')"
        day = f"concat_ws('-', lpad({parts}[0], 4, '0'), coalesce(get({parts}, 1), '01'), coalesce(get({parts}, 2), '01'))"
        good = f"IF({text} RLIKE '{_ISO_DAY}', try_cast({day} AS DATE), NULL)"
        bad = fail(_CODE, _iso_refusal(text))
        return f"CASE WHEN {text} IS NULL THEN NULL WHEN {good} IS NULL THEN {bad} ELSE {good} END"

    return written(DATE, "from_iso8601_date", write, values[0])


def _to_iso8601(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if len(values) != 1 or not _is_moment(values[0]):
        return None
    kind = values[0].type
    if kind.parameters[0] > 6:
        return None

    def write(fail: Callable[..., str], text: str) -> str:
        shown = f"replace({shown_moment(local(text, kind), Type('timestamp', kind.parameters))}, ' ', 'T')"
        if kind.base == "timestamp":
            return shown
        if not is_zoned(kind):
            return f"concat({shown}, 'Z')"
        offset = offset_minutes(text, kind)
        hours = f"format_string('%02d:%02d', abs({offset}) div 60, abs({offset}) % 60)"
        return f"concat({shown}, CASE WHEN {offset} = 0 THEN 'Z' WHEN {offset} < 0 THEN concat('-', {hours}) ELSE concat('+', {hours}) END)"

    return written(VARCHAR, "to_iso8601", write, values[0])


def _from_unixtime(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    if not values or not is_numeric(values[0].type) or not can_coerce(values[0].type, Type("double")):
        return None
    seconds = analyzer.coerce(values[0], Type("double"))

    def moment(text: str) -> str:
        return f"timestamp_millis(CAST(floor({text} * 1000 + 0.5D) AS BIGINT))"

    if len(values) == 1:
        return written(Type(_WITH_ZONE, (3,)), "from_unixtime", lambda _, text: moment(text), seconds)
    if len(values) == 2 and is_text(values[1].type):
        zone = zone_argument(analyzer, values[1], node)
        return written(_ZONED_MILLISECONDS, "from_unixtime", lambda _, text, name: with_zone(moment(text), name), seconds, zone)
    if len(values) == 3 and all(can_coerce(value.type, BIGINT) for value in values[1:]):
        hours, minutes = (analyzer.coerce(value, BIGINT) for value in values[1:])

        def write(fail: Callable[..., str], text: str, hour: str, minute: str) -> str:
            return with_zone(moment(text), offset_name(fail, f"CAST({hour} * 60 + {minute} AS INT)"))

        return written(_ZONED_MILLISECONDS, "from_unixtime", write, seconds, hours, minutes)
    return None


def _nanoseconds(analyzer: CallAnalyzer, values: list[e.Typed], node: Expression) -> e.Typed | None:
    analyzer.refuse("Nanoseconds are not supported by this engine: its timestamps have microseconds", node)


_CLOCK_FUNCTIONS: Final = (
    *("year", "quarter", "month", "week", "week_of_year", "day", "day_of_month", "day_of_week", "dow", "day_of_year", "doy"),
    *("year_of_week", "yow", "hour", "minute", "second", "millisecond", "last_day_of_month", "date"),
)

_MAKERS: Final[dict[str, Maker]] = {
    **ZONE_MAKERS,
    **{name: _clock_function(name) for name in _CLOCK_FUNCTIONS},
    "date_trunc": _date_trunc,
    "date_add": _date_add,
    "date_diff": _date_diff,
    "date_format": _format(mysql_tokens, "date_format"),
    "format_datetime": _format(joda_tokens, "format_datetime"),
    "date_parse": _parse(mysql_tokens, "date_parse", _MILLISECONDS),
    "parse_datetime": _parse(joda_tokens, "parse_datetime", _ZONED_MILLISECONDS),
    "from_iso8601_timestamp": _iso_timestamp,
    "from_iso8601_date": _iso_date,
    "to_iso8601": _to_iso8601,
    "from_unixtime": _from_unixtime,
    "from_unixtime_nanos": _nanoseconds,
    "from_iso8601_timestamp_nanos": _nanoseconds,
}
