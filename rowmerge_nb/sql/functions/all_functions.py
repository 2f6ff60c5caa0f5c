"""All tables of functions by subject; see `rowmerge_nb.sql.functions.overloads`."""

from __future__ import annotations

from typing import Final

from rowmerge_nb.sql.functions import (
    aggregates,
    arrays,
    binary,
    datetime,
    maps,
    math,
    percentiles,
    refused,
    regexp,
    strings,
)
from rowmerge_nb.sql.functions import json_functions as json
from rowmerge_nb.sql.functions import window_functions as windows

SUBJECTS: Final = {
    "math": math.ROWS,
    "strings": strings.ROWS,
    "regexp": regexp.ROWS,
    "binary": binary.ROWS,
    "json": json.ROWS,
    "datetime": datetime.ROWS,
    "arrays": arrays.ROWS,
    "maps": maps.ROWS,
}
"""The rows of scalar functions by subject."""

SCALARS: Final = "".join(SUBJECTS.values()) + refused.SCALARS
AGGREGATES: Final = aggregates.ROWS + percentiles.ROWS + refused.AGGREGATES
WINDOWS: Final = windows.ROWS
FRAGMENTS: Final = {
    name: part
    for module in (
        math,
        strings,
        regexp,
        binary,
        json,
        datetime,
        arrays,
        maps,
        aggregates,
        percentiles,
        windows,
    )
    for name, part in module.FRAGMENTS.items()
}
"""Shared parts of Spark SQL templates, as ``{name}``."""
DUCKDB_FRAGMENTS: Final = {
    name: part
    for module in (math, strings, datetime, arrays)
    for name, part in module.DUCKDB_FRAGMENTS.items()
}
"""Shared parts of DuckDB SQL templates."""

SIGNATURES: Final[dict[str, tuple[str, ...]]] = {
    **datetime.SIGNATURES,
    **aggregates.SIGNATURES,
    **regexp.SIGNATURES,
    **dict.fromkeys(
        ("ltrim", "rtrim", "trim"),
        ("char(x)", "char(x), codepoints", "varchar(x)", "varchar(x), codepoints"),
    ),
    "array_join": ("array(E), varchar) E", "array(E), varchar, varchar) E"),
    "mod": (
        *(
            "bigint, bigint",
            "decimal(a_precision,a_scale), decimal(b_precision,b_scale)",
            "double, double",
        ),
        *("integer, integer", "real, real", "smallint, smallint", "tinyint, tinyint"),
    ),
}
"""Signatures in Trino's errors, for functions whose rows differ from Trino's signatures.

Parameters only, followed by Trino's constraints on type variables after the parenthesis.
"""

FORMS: Final = {
    "coalesce": "coalesce(value, value, ...): the first that is not NULL",
    "concat": "concat(value, value, ...)",
    "greatest": "greatest(value, value, ...)",
    "grouping": (
        "grouping(column, ...) -> integer: per column a bit, 1 where it is not in the grouping set"
    ),
    "if": "if(condition, value[, otherwise])",
    "json_extract": "json_extract(json, path) -> json",
    "json_extract_scalar": "json_extract_scalar(json, path) -> varchar",
    "json_size": "json_size(json, path) -> bigint",
    "least": "least(value, value, ...)",
    "now": "now() -> timestamp(3) with time zone",
    "nullif": "nullif(value, other): NULL where they are equal",
    "try": "try(expression): NULL where it fails",
    "typeof": "typeof(value) -> varchar",
}
"""Calls that are in no table; the analyzer has a special form for each."""

MOMENTS: Final = {
    "at_timezone": (
        "at_timezone(timestamp, zone) -> timestamp with time zone: the same instant in a zone"
    ),
    "date_add": "date_add(unit, amount, moment): moved by that number of units",
    "date_diff": "date_diff(unit, moment, moment) -> bigint: the number of whole units between"
    " them",
    "date_format": (
        "date_format(moment, pattern) -> varchar: by a pattern of MySQL's (`%Y-%m-%d`), which must"
        " be a literal"
    ),
    "date_parse": (
        "date_parse(varchar, pattern) -> timestamp(3): by a pattern of MySQL's, which must be a"
        " literal"
    ),
    "date_trunc": "date_trunc(unit, moment): the begin of the unit",
    "format_datetime": (
        "format_datetime(moment, pattern) -> varchar: by a pattern of Joda's (`yyyy-MM-dd`), which"
        " must be a literal"
    ),
    "from_iso8601_date": "from_iso8601_date(varchar) -> date",
    "from_iso8601_timestamp": "from_iso8601_timestamp(varchar) -> timestamp(3) with time zone",
    "from_unixtime": (
        "from_unixtime(double[, zone]) or from_unixtime(double, hours, minutes) -> timestamp(3)"
        " with time zone"
    ),
    "parse_datetime": (
        "parse_datetime(varchar, pattern) -> timestamp(3) with time zone: by a pattern of Joda's,"
        " which must be a literal"
    ),
    "timezone": "timezone(timestamp with time zone) -> varchar: its zone",
    "timezone_hour": (
        "timezone_hour(timestamp with time zone) -> bigint: hours of its distance from UTC"
    ),
    "timezone_minute": (
        "timezone_minute(timestamp with time zone) -> bigint: minutes of its distance from UTC"
    ),
    "with_timezone": (
        "with_timezone(timestamp, zone) -> timestamp with time zone: the wall clock of a zone"
    ),
}
"""Date and time functions with a unit, a pattern or a zone: see
`rowmerge_nb.sql.analyzer.expressions.moment_calls`.
"""

LISTED: Final = """
scalar at_timezone(timestamp(p) with time zone, varchar(x)) -> timestamp(p) with time zone
aggregate checksum(T) -> varbinary
scalar concat(E, array(E)) -> array(E)
scalar concat(array(E)) -> array(E)
scalar concat(array(E), E) -> array(E)
scalar concat(char(x), char(y)) -> char(u)
scalar concat(varbinary) -> varbinary
scalar concat(varchar) -> varchar
scalar current_date() -> date
scalar date_add(varchar(x), bigint, date) -> date
scalar date_add(varchar(x), bigint, time(p)) -> time(p)
scalar date_add(varchar(x), bigint, timestamp(p)) -> timestamp(p)
scalar date_add(varchar(x), bigint, timestamp(p) with time zone) -> timestamp(p) with time zone
scalar date_diff(varchar(x), date, date) -> bigint
scalar date_diff(varchar(x), time(p), time(p)) -> bigint
scalar date_diff(varchar(x), timestamp(p) with time zone, timestamp(p) with time zone) -> bigint
scalar date_diff(varchar(x), timestamp(p), timestamp(p)) -> bigint
scalar date_format(timestamp(p) with time zone, varchar(x)) -> varchar
scalar date_format(timestamp(p), varchar(x)) -> varchar
scalar date_parse(varchar(x), varchar(y)) -> timestamp(3)
scalar date_trunc(varchar(x), date) -> date
scalar date_trunc(varchar(x), time(p)) -> time(p)
scalar date_trunc(varchar(x), timestamp(p)) -> timestamp(p)
scalar date_trunc(varchar(x), timestamp(p) with time zone) -> timestamp(p) with time zone
table exclude_columns(unknown, unknown) -> unknown
scalar format_datetime(timestamp(p) with time zone, varchar(x)) -> varchar
scalar format_datetime(timestamp(p), varchar(x)) -> varchar
scalar from_iso8601_date(varchar(x)) -> date
scalar from_iso8601_timestamp(varchar(x)) -> timestamp(3) with time zone
scalar from_unixtime(double) -> timestamp(3) with time zone
scalar from_unixtime(double, bigint, bigint) -> timestamp(3) with time zone
scalar from_unixtime(double, varchar(x)) -> timestamp(3) with time zone
scalar greatest(E) -> E
scalar least(E) -> E
scalar json_extract(json, jsonpath) -> json
scalar json_extract(varchar(x), jsonpath) -> json
scalar json_extract_scalar(json, jsonpath) -> varchar
scalar json_extract_scalar(varchar(x), jsonpath) -> varchar(x)
scalar json_size(json, jsonpath) -> bigint
scalar json_size(varchar(x), jsonpath) -> bigint
scalar now() -> timestamp(3) with time zone
scalar parse_datetime(varchar(x), varchar(y)) -> timestamp(3) with time zone
scalar timezone(timestamp(p) with time zone) -> varchar
scalar timezone_hour(timestamp(p) with time zone) -> bigint
scalar timezone_minute(timestamp(p) with time zone) -> bigint
scalar typeof(T) -> varchar
scalar with_timezone(timestamp(p), varchar(x)) -> timestamp(p) with time zone
table sequence(bigint, bigint, bigint) -> unknown
"""
"""Rows of SHOW FUNCTIONS for what is in no table, as Trino lists them: the kind, then the signature."""
UNLISTED: Final = frozenset({"format"})
"""Functions that are part of Trino's grammar, so that SHOW FUNCTIONS does not list them."""
