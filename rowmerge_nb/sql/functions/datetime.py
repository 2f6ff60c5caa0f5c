"""Date and time functions, without those of `rowmerge_nb.sql.analyzer.expressions.moment_calls`."""

from __future__ import annotations

from typing import Final

ROWS: Final = r"""
current_timezone() -> varchar | 'UTC'
current_groups() -> array(varchar) | CAST(array() AS ARRAY<STRING>)
~version() -> varchar | '483'
year(date) -> bigint | CAST(year({0}) AS BIGINT) | CAST(year({0}) AS BIGINT)
year(timestamp(6)) -> bigint | CAST(year({0}) AS BIGINT) | CAST(year({0}) AS BIGINT)
quarter(date) -> bigint | CAST(quarter({0}) AS BIGINT) | CAST(quarter({0}) AS BIGINT)
quarter(timestamp(6)) -> bigint | CAST(quarter({0}) AS BIGINT) | CAST(quarter({0}) AS BIGINT)
month(date) -> bigint | CAST(month({0}) AS BIGINT) | CAST(month({0}) AS BIGINT)
month(timestamp(6)) -> bigint | CAST(month({0}) AS BIGINT) | CAST(month({0}) AS BIGINT)
week(date) -> bigint | CAST(weekofyear({0}) AS BIGINT) | CAST(week({0}) AS BIGINT)
week(timestamp(6)) -> bigint | CAST(weekofyear({0}) AS BIGINT) | CAST(week({0}) AS BIGINT)
week_of_year = week
year_of_week(date) -> bigint | CAST(extract(YEAROFWEEK FROM {0}) AS BIGINT) | CAST(isoyear({0}) AS BIGINT)
year_of_week(timestamp(6)) -> bigint | CAST(extract(YEAROFWEEK FROM {0}) AS BIGINT) | CAST(isoyear({0}) AS BIGINT)
yow = year_of_week
day(date) -> bigint | CAST(day({0}) AS BIGINT) | CAST(day({0}) AS BIGINT)
day(timestamp(6)) -> bigint | CAST(day({0}) AS BIGINT) | CAST(day({0}) AS BIGINT)
day(interval day to second) -> bigint | CAST(extract(DAY FROM {0}) AS BIGINT)
day_of_month = day
day_of_week(date) -> bigint | CAST(weekday({0}) + 1 AS BIGINT) | CAST(isodow({0}) AS BIGINT)
day_of_week(timestamp(6)) -> bigint | CAST(weekday({0}) + 1 AS BIGINT) | CAST(isodow({0}) AS BIGINT)
dow = day_of_week
day_of_year(date) -> bigint | CAST(dayofyear({0}) AS BIGINT) | CAST(dayofyear({0}) AS BIGINT)
day_of_year(timestamp(6)) -> bigint | CAST(dayofyear({0}) AS BIGINT) | CAST(dayofyear({0}) AS BIGINT)
doy = day_of_year
hour(timestamp(6)) -> bigint | CAST(hour({0}) AS BIGINT) | CAST(hour({0}) AS BIGINT)
hour(time(6)) -> bigint | CAST(hour({0}) AS BIGINT) | CAST(hour({0}) AS BIGINT)
minute(timestamp(6)) -> bigint | CAST(minute({0}) AS BIGINT) | CAST(minute({0}) AS BIGINT)
minute(time(6)) -> bigint | CAST(minute({0}) AS BIGINT) | CAST(minute({0}) AS BIGINT)
second(timestamp(6)) -> bigint | CAST(second({0}) AS BIGINT) | CAST(second({0}) AS BIGINT)
second(time(6)) -> bigint | CAST(second({0}) AS BIGINT) | CAST(second({0}) AS BIGINT)
millisecond(timestamp(6)) -> bigint | pmod(unix_millis(CAST({0} AS TIMESTAMP)), 1000L) | (({millis} % 1000 + 1000) % 1000)
millisecond(time(6)) -> bigint | (time_to_micros({0}) div 1000 % 1000L) | (epoch_us({0}) // 1000 % 1000)
year(interval year to month) -> bigint | CAST(extract(YEAR FROM {0}) AS BIGINT)
month(interval year to month) -> bigint | CAST(extract(MONTH FROM {0}) AS BIGINT)
hour(interval day to second) -> bigint | CAST(extract(HOUR FROM {0}) AS BIGINT)
minute(interval day to second) -> bigint | CAST(extract(MINUTE FROM {0}) AS BIGINT)
second(interval day to second) -> bigint | CAST(extract(SECOND FROM {0}) AS BIGINT)
millisecond(interval day to second) -> bigint | CAST(extract(SECOND FROM {0}) * 1000 % 1000 AS BIGINT)
to_milliseconds(interval day to second) -> bigint | {milliseconds}
to_iso8601(date) -> varchar(16) | ltrim('+', CAST({0} AS STRING))
last_day_of_month(date) -> date | last_day({0}) | last_day({0})
last_day_of_month(timestamp(6)) -> date | last_day(CAST({0} AS DATE)) | last_day(CAST({0} AS DATE))
date(date) -> date | {0} | {0}
date(timestamp(6)) -> date | CAST({0} AS DATE) | CAST({0} AS DATE)
to_unixtime(timestamp(6)) -> double | (unix_millis(CAST({0} AS TIMESTAMP)) / 1000D + pmod(unix_micros(CAST({0} AS TIMESTAMP)), 1000) / 1000000D) | (CAST({millis} AS DOUBLE) / 1000.0::DOUBLE + CAST({of a milli} AS DOUBLE) / 1000000.0::DOUBLE)
to_unixtime(timestamp(6) with time zone) -> double | (unix_millis({0}) / 1000D + pmod(unix_micros({0}), 1000) / 1000000D) | (CAST({millis} AS DOUBLE) / 1000.0::DOUBLE + CAST({of a milli} AS DOUBLE) / 1000000.0::DOUBLE)
human_readable_seconds(double) -> varchar | CASE WHEN {0} IS NULL THEN NULL WHEN isnan({0}) OR abs({0}) = CAST('Infinity' AS DOUBLE) THEN {fail:INVALID_FUNCTION_ARGUMENT:Invalid argument found: $0} ELSE {periods} END
parse_duration(varchar(x)) -> interval day to second | IF({0} IS NULL OR {0} RLIKE '^\\s*[0-9]+([.][0-9]+)?\\s*[a-zA-Z]+\\s*$', {duration}, IF({0} = '', {fail:INVALID_FUNCTION_ARGUMENT:duration is empty}, {fail:INVALID_FUNCTION_ARGUMENT:duration is not a valid data duration string: $0}))
"""

FRAGMENTS: Final = {
    "milliseconds": (
        "CAST((extract(DAY FROM {0}) * 86400L + extract(HOUR FROM {0}) * 3600 + extract(MINUTE FROM"
        " {0}) * 60 + extract(SECOND FROM {0})) * 1000 AS BIGINT)"
    ),
    "periods": (
        "transform(array(IF(abs({0}) < 9.2e18D, CAST(floor(abs({0}) + 0.5D) AS BIGINT),"
        " 9223372036854775807L)), s -> IF(s = 0, '0 seconds',"
        " array_join(transform(filter(array(named_struct('n', s div 604800, 'u', 'week'),"
        " named_struct('n', s % 604800 div 86400, 'u', 'day'), named_struct('n', s % 86400 div"
        " 3600, 'u', 'hour'), named_struct('n', s % 3600 div 60, 'u', 'minute'), named_struct('n',"
        " s % 60, 'u', 'second')), p -> p.n > 0), p -> concat(p.n, ' ', p.u, IF(p.n = 1, '',"
        " 's'))), ', ')))[0]"
    ),
    "duration": (
        "make_dt_interval(0, 0, 0, CAST(floor(CAST(regexp_extract({0}, '[0-9.]+', 0) AS DOUBLE) *"
        " CASE regexp_extract({0}, '[a-zA-Z]+', 0) WHEN 'ns' THEN 0.000001D WHEN 'us' THEN 0.001D"
        " WHEN 'ms' THEN 1D WHEN 's' THEN 1000D WHEN 'm' THEN 60000D WHEN 'h' THEN 3600000D WHEN"
        " 'd' THEN 86400000D ELSE {unit} END + 0.5D) AS DECIMAL(18,0)) / 1000)"
    ),
    "unit": (
        "CAST({fail:INVALID_FUNCTION_ARGUMENT:Unknown time unit: $(regexp_extract($0, '[a-zA-Z]+',"
        " 0))} AS DOUBLE)"
    ),
}
"""Parts that several templates share, as ``{name}``."""

DUCKDB_FRAGMENTS: Final = {
    # Rounded down, even before 1970.
    "of a milli": "((epoch_us({0}) % 1000 + 1000) % 1000)",
    "millis": "((epoch_us({0}) - {of a milli}) // 1000)",
}
"""Shared parts of DuckDB SQL templates."""


_STAMPS: Final = ("timestamp(p) with time zone", "timestamp(p)")
_CLOCKS: Final = ("time(p) with time zone", "time(p)")
_MOMENTS: Final = ("date", *_CLOCKS, *_STAMPS)

SIGNATURES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("quarter", "week", "week_of_year", "year_of_week", "yow", "last_day_of_month"),
        ("date", *_STAMPS),
    ),
    **dict.fromkeys(("day_of_week", "dow", "day_of_year", "doy", "to_iso8601"), ("date", *_STAMPS)),
    **dict.fromkeys(("year", "month"), ("date", "interval year to month", *_STAMPS)),
    **dict.fromkeys(("day", "day_of_month"), ("date", "interval day to second", *_STAMPS)),
    **dict.fromkeys(
        ("hour", "minute", "second", "millisecond"), ("interval day to second", *_CLOCKS, *_STAMPS)
    ),
    **dict.fromkeys(("timezone", "timezone_hour", "timezone_minute"), (_CLOCKS[0], _STAMPS[0])),
    "version": ("",),
    "date": (*_STAMPS, "varchar(x)"),
    "to_unixtime": _STAMPS[:1],
    "date_trunc": tuple(f"varchar(x), {sql_type}" for sql_type in _MOMENTS),
    "date_add": tuple(f"varchar(x), bigint, {sql_type}" for sql_type in _MOMENTS),
    "date_diff": tuple(f"varchar(x), {sql_type}, {sql_type}" for sql_type in _MOMENTS),
    **dict.fromkeys(
        ("date_format", "format_datetime"), tuple(f"{sql_type}, varchar(x)" for sql_type in _STAMPS)
    ),
    **dict.fromkeys(("date_parse", "parse_datetime"), ("varchar(x), varchar(y)",)),
    **dict.fromkeys(
        ("from_iso8601_date", "from_iso8601_timestamp", "from_iso8601_timestamp_nanos"),
        ("varchar(x)",),
    ),
    "from_unixtime": ("double", "double, bigint, bigint", "double, varchar(x)"),
    "from_unixtime_nanos": ("bigint", "decimal(p,s)"),
    "at_timezone": tuple(
        f"{_STAMPS[0]}, {zone}" for zone in ("interval day to second", "varchar(x)")
    ),
    "with_timezone": ("timestamp(p), varchar(x)",),
}
"""See `rowmerge_nb.sql.functions.all_functions.SIGNATURES`."""
