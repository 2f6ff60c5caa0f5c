"""Dates, times, timestamps and intervals."""

from __future__ import annotations

from typing import Final

__all__ = ["FRAGMENTS", "ROWS"]

ROWS: Final = r"""
now() -> timestamp(6) with time zone | current_timestamp()
year(date) -> bigint | CAST(year({0}) AS BIGINT)
year(timestamp(6)) -> bigint | CAST(year({0}) AS BIGINT)
year(timestamp(6) with time zone) -> bigint | CAST(year({0}) AS BIGINT)
quarter(date) -> bigint | CAST(quarter({0}) AS BIGINT)
quarter(timestamp(6)) -> bigint | CAST(quarter({0}) AS BIGINT)
month(date) -> bigint | CAST(month({0}) AS BIGINT)
month(timestamp(6)) -> bigint | CAST(month({0}) AS BIGINT)
week(date) -> bigint | CAST(weekofyear({0}) AS BIGINT)
week(timestamp(6)) -> bigint | CAST(weekofyear({0}) AS BIGINT)
week_of_year(date) -> bigint | CAST(weekofyear({0}) AS BIGINT)
week_of_year(timestamp(6)) -> bigint | CAST(weekofyear({0}) AS BIGINT)
year_of_week(date) -> bigint | CAST(extract(YEAROFWEEK FROM {0}) AS BIGINT)
year_of_week(timestamp(6)) -> bigint | CAST(extract(YEAROFWEEK FROM {0}) AS BIGINT)
yow(date) -> bigint | CAST(extract(YEAROFWEEK FROM {0}) AS BIGINT)
yow(timestamp(6)) -> bigint | CAST(extract(YEAROFWEEK FROM {0}) AS BIGINT)
day(date) -> bigint | CAST(day({0}) AS BIGINT)
day(timestamp(6)) -> bigint | CAST(day({0}) AS BIGINT)
day_of_month(date) -> bigint | CAST(day({0}) AS BIGINT)
day_of_month(timestamp(6)) -> bigint | CAST(day({0}) AS BIGINT)
day_of_week(date) -> bigint | CAST(weekday({0}) + 1 AS BIGINT)
day_of_week(timestamp(6)) -> bigint | CAST(weekday({0}) + 1 AS BIGINT)
dow(date) -> bigint | CAST(weekday({0}) + 1 AS BIGINT)
dow(timestamp(6)) -> bigint | CAST(weekday({0}) + 1 AS BIGINT)
day_of_year(date) -> bigint | CAST(dayofyear({0}) AS BIGINT)
day_of_year(timestamp(6)) -> bigint | CAST(dayofyear({0}) AS BIGINT)
doy(date) -> bigint | CAST(dayofyear({0}) AS BIGINT)
doy(timestamp(6)) -> bigint | CAST(dayofyear({0}) AS BIGINT)
hour(timestamp(6)) -> bigint | CAST(hour({0}) AS BIGINT)
hour(timestamp(6) with time zone) -> bigint | CAST(hour({0}) AS BIGINT)
minute(timestamp(6)) -> bigint | CAST(minute({0}) AS BIGINT)
minute(timestamp(6) with time zone) -> bigint | CAST(minute({0}) AS BIGINT)
second(timestamp(6)) -> bigint | CAST(second({0}) AS BIGINT)
second(timestamp(6) with time zone) -> bigint | CAST(second({0}) AS BIGINT)
millisecond(timestamp(6)) -> bigint | CAST(floor(extract(SECOND FROM {0}) * 1000) % 1000 AS BIGINT)
date_trunc(varchar, date) -> last | IF(lower({0}) IN ('day', 'week', 'month', 'quarter', 'year'), CAST(date_trunc({0}, {1}) AS DATE), {fail:INVALID_FUNCTION_ARGUMENT:'$0' is not a valid DATE field})
date_trunc(varchar, timestamp(6)) -> last | IF(lower({0}) IN ('millisecond', 'second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'), CAST(date_trunc({0}, {1}) AS {type}), {fail:INVALID_FUNCTION_ARGUMENT:'$0' is not a valid TIMESTAMP field})
date_trunc(varchar, timestamp(6) with time zone) -> last | IF(lower({0}) IN ('millisecond', 'second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year'), CAST(date_trunc({0}, {1}) AS {type}), {fail:INVALID_FUNCTION_ARGUMENT:'$0' is not a valid TIMESTAMP field})
date_add(varchar, bigint, date) -> last | CASE lower({0}) WHEN 'day' THEN date_add({2}, CAST({1} AS INT)) WHEN 'week' THEN date_add({2}, CAST({1} * 7 AS INT)) WHEN 'month' THEN add_months({2}, CAST({1} AS INT)) WHEN 'quarter' THEN add_months({2}, CAST({1} * 3 AS INT)) WHEN 'year' THEN add_months({2}, CAST({1} * 12 AS INT)) ELSE {fail:INVALID_FUNCTION_ARGUMENT:'$0' is not a valid DATE field} END
date_add(varchar, bigint, timestamp(6)) -> last | {moved}
date_add(varchar, bigint, timestamp(6) with time zone) -> last | {moved}
date_diff(varchar, timestamp(6), timestamp(6)) -> bigint | {between}
date_diff(varchar, timestamp(6) with time zone, timestamp(6) with time zone) -> bigint | {between}
format_datetime(timestamp(6), varchar) -> varchar | date_format({0 to milliseconds}, {1})
format_datetime(timestamp(6) with time zone, varchar) -> varchar | date_format({0 to milliseconds}, {1})
date_format(timestamp(6), varchar) -> varchar | date_format({0 to milliseconds}, {1})
date_format(timestamp(6) with time zone, varchar) -> varchar | date_format({0 to milliseconds}, {1})
date_parse(varchar, varchar) -> timestamp(3) | to_timestamp_ntz({0}, {1})
parse_datetime(varchar, varchar) -> timestamp(3) with time zone | to_timestamp({0}, {1})
to_iso8601(date) -> varchar | CAST({0} AS STRING)
to_iso8601(timestamp(6)) -> varchar | date_format({0}, "yyyy-MM-dd'T'HH:mm:ss.SSSSSS")
last_day_of_month(date) -> date | last_day({0})
last_day_of_month(timestamp(6)) -> date | last_day(CAST({0} AS DATE))
date(date) -> date | {0}
date(timestamp(6)) -> date | CAST({0} AS DATE)
to_unixtime(timestamp(6)) -> double | CAST(unix_micros(CAST({0} AS TIMESTAMP)) AS DOUBLE) / 1000000D
from_unixtime(double) -> timestamp(3) with time zone | timestamp_micros(CAST(round({0} * 1000) * 1000 AS BIGINT))
from_iso8601_date(varchar) -> date | CAST({0} AS DATE)
"""

FRAGMENTS: Final = {
    "moved": (
        "CASE lower({0}) WHEN 'millisecond' THEN {2} + make_dt_interval(0, 0, 0, CAST({1} AS DECIMAL(18,6)) / 1000) "
        "WHEN 'second' THEN {2} + make_dt_interval(0, 0, 0, {1}) WHEN 'minute' THEN {2} + make_dt_interval(0, 0, CAST({1} AS INT)) "
        "WHEN 'hour' THEN {2} + make_dt_interval(0, CAST({1} AS INT)) WHEN 'day' THEN {2} + make_dt_interval(CAST({1} AS INT)) "
        "WHEN 'week' THEN {2} + make_dt_interval(CAST({1} * 7 AS INT)) WHEN 'month' THEN {2} + make_ym_interval(0, CAST({1} AS INT)) "
        "WHEN 'quarter' THEN {2} + make_ym_interval(0, CAST({1} * 3 AS INT)) WHEN 'year' THEN {2} + make_ym_interval(CAST({1} AS INT)) "
        "ELSE {fail:INVALID_FUNCTION_ARGUMENT:'$0' is not a valid TIMESTAMP field} END"
    ),
    "between": (
        "CASE lower({0}) WHEN 'millisecond' THEN {micros} div 1000 WHEN 'second' THEN {micros} div 1000000 "
        "WHEN 'minute' THEN {micros} div 60000000 WHEN 'hour' THEN {micros} div 3600000000 WHEN 'day' THEN {micros} div 86400000000 "
        "WHEN 'week' THEN {micros} div 604800000000 WHEN 'month' THEN {months} div 1 WHEN 'quarter' THEN {months} div 3 "
        "WHEN 'year' THEN {months} div 12 ELSE {fail:INVALID_FUNCTION_ARGUMENT:'$0' is not a valid TIMESTAMP field} END"
    ),
    "micros": "(unix_micros(CAST({2} AS TIMESTAMP)) - unix_micros(CAST({1} AS TIMESTAMP)))",
    "months": (
        "({apart} + CASE WHEN {1} <= {2} AND {1} + make_ym_interval(0, {apart}) > {2} THEN -1 "
        "WHEN {1} > {2} AND {1} + make_ym_interval(0, {apart}) < {2} THEN 1 ELSE 0 END)"
    ),
    "apart": "((year({2}) - year({1})) * 12 + month({2}) - month({1}))",
    "0 to milliseconds": "CAST(timestamp_micros(CAST(round(unix_micros(CAST({0} AS TIMESTAMP)) / 1000) * 1000 AS BIGINT)) AS TIMESTAMP_NTZ)",
}
"""Parts that templates of several signatures share; ``{name}`` in a template stands for them."""
