"""Functions and types of other engines, and what Trino has instead."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import Edit, Hint

if TYPE_CHECKING:
    from collections.abc import Iterable

FUNCTIONS: Final = {
    "add_months": "date_add('month', n, x)",
    "age": "date_diff('day', a, b)",
    "any": "contains(array, x)",
    "approx_count_distinct": "approx_distinct(x)",
    "array": "ARRAY[1, 2]",
    "array_contains": "contains(array, x)",
    "array_length": "cardinality(x)",
    "array_size": "cardinality(x)",
    "array_to_string": "array_join(x, ',')",
    "ascii": "codepoint(x)",
    "averageif": "avg(x) FILTER (WHERE condition)",
    "cdate": "CAST(x AS date)",
    "char_length": "length(x)",
    "character_length": "length(x)",
    "charindex": "strpos(text, part)",
    "choose": "element_at(ARRAY[a, b], n)",
    "collect_list": "array_agg(x)",
    "collect_set": "array_agg(DISTINCT x)",
    "columns": "the columns one by one",
    "convert": "CAST(x AS type)",
    "countif": "count_if(condition)",
    "curdate": "current_date",
    "current_database": "current_catalog",
    "database": "current_schema",
    "date_part": "extract(YEAR FROM x)",
    "date_sub": "date_add('day', -1, x)",
    "dateadd": "date_add('day', n, x)",
    "datediff": "date_diff('day', a, b)",
    "datefromparts": "from_iso8601_date(format('%04d-%02d-%02d', 2026, 12, 31))",
    "datename": "date_format(x, '%M')",
    "datepart": "extract(YEAR FROM x)",
    "dateserial": "from_iso8601_date(format('%04d-%02d-%02d', 2026, 12, 31))",
    "datetime": "CAST(x AS timestamp)",
    "datetrunc": "date_trunc('day', x)",
    "dayname": "date_format(x, '%W')",
    "decode": "CASE x WHEN a THEN b ELSE c END",
    "div0": "try(a / b)",
    "edate": "date_add('month', n, x)",
    "eomonth": "last_day_of_month(x)",
    "epoch": "to_unixtime(x)",
    "explode": "CROSS JOIN UNNEST(x) in FROM",
    "flatten": "CROSS JOIN UNNEST(x) in FROM",
    "format_date": "date_format(x, '%Y-%m-%d')",
    "format_timestamp": "date_format(x, '%Y-%m-%d')",
    "from_json": "CAST(json_parse(x) AS row(a bigint))",
    "gen_random_uuid": "uuid()",
    "generate_array": "sequence(1, 10)",
    "generate_series": "sequence(1, 10)",
    "get_json_object": "json_extract_scalar(x, '$.a')",
    "getdate": "current_timestamp",
    "getutcdate": "current_timestamp",
    "group_concat": "array_join(array_agg(x), ', ')",
    "hash": "xxhash64(to_utf8(x))",
    "iff": "if(condition, a, b)",
    "ifnull": "coalesce(a, b)",
    "iif": "if(condition, a, b)",
    "initcap": "upper(substr(x, 1, 1)) || lower(substr(x, 2))",
    "instr": "strpos(text, part)",
    "int": "CAST(x AS integer)",
    "isdate": "TRY_CAST(x AS date) IS NOT NULL",
    "isnull": "x IS NULL, or coalesce(a, b)",
    "isnumeric": "TRY_CAST(x AS double) IS NOT NULL",
    "json_agg": "CAST(array_agg(x) AS json)",
    "last_day": "last_day_of_month(x)",
    "lcase": "lower(x)",
    "left": "substr(x, 1, n)",
    "len": "length(x)",
    "list": "array_agg(x)",
    "list_contains": "contains(array, x)",
    "list_value": "ARRAY[1, 2]",
    "locate": "strpos(text, part)",
    "make_date": "CAST('2026-01-31' AS date)",
    "mean": "avg(x)",
    "median": "approx_percentile(x, 0.5)",
    "mid": "substr(x, 2, 3)",
    "monthname": "date_format(x, '%M')",
    "months_between": "date_diff('month', a, b)",
    "named_struct": "CAST(ROW(1) AS row(a bigint))",
    "newid": "uuid()",
    "nullifzero": "nullif(x, 0)",
    "nvl": "coalesce(a, b)",
    "nvl2": "if(a IS NOT NULL, b, c)",
    "object_construct": "JSON_OBJECT('a' VALUE 1)",
    "parse_date": "date_parse(x, '%Y-%m-%d')",
    "parse_json": "json_parse(x)",
    "parse_timestamp": "date_parse(x, '%Y-%m-%d')",
    "patindex": "regexp_position(x, 'pattern')",
    "percentile_cont": "approx_percentile(x, 0.5)",
    "proper": "upper(substr(x, 1, 1)) || lower(substr(x, 2))",
    "quantile": "approx_percentile(x, 0.5)",
    "range": "sequence(1, 10)",
    "regexp_contains": "regexp_like(x, pattern)",
    "regexp_matches": "regexp_like(x, pattern)",
    "regexp_substr": "regexp_extract(x, pattern)",
    "replicate": "array_join(repeat(x, 3), '')",
    "right": "substr(x, -n)",
    "rlike": "regexp_like(x, pattern)",
    "safe_cast": "TRY_CAST(x AS bigint)",
    "safe_divide": "try(a / b)",
    "sha2": "sha256(to_utf8(x))",
    "size": "cardinality(x)",
    "space": "rpad('', n, ' ')",
    "str_to_date": "date_parse(x, '%Y-%m-%d')",
    "strftime": "date_format(x, '%Y-%m-%d')",
    "string": "CAST(x AS varchar)",
    "string_agg": "array_join(array_agg(x), ', ')",
    "string_to_array": "split(x, ',')",
    "struct": "CAST(ROW(1) AS row(a bigint))",
    "sumif": "sum(x) FILTER (WHERE condition)",
    "sysdate": "current_timestamp",
    "sysdatetime": "current_timestamp",
    "systimestamp": "current_timestamp",
    "textjoin": "array_join(array_agg(x), ', ')",
    "timestampadd": "date_add('day', n, x)",
    "timestampdiff": "date_diff('day', a, b)",
    "to_decimal": "CAST(x AS decimal(18, 2))",
    "to_json": "CAST(x AS json)",
    "to_json_string": "json_format(CAST(x AS json))",
    "to_number": "CAST(x AS decimal(18, 2))",
    "to_timestamp_ntz": "CAST(x AS timestamp)",
    "to_varchar": "CAST(x AS varchar)",
    "to_variant": "CAST(x AS json)",
    "today": "current_date",
    "top": "LIMIT 10 at the end instead of TOP (10)",
    "trunc": "truncate(x), or date_trunc('day', x)",
    "try_convert": "TRY_CAST(x AS type)",
    "try_to_number": "TRY_CAST(x AS decimal(18, 2))",
    "ucase": "upper(x)",
    "unix_timestamp": "to_unixtime(x)",
    "unnest": "CROSS JOIN UNNEST(x) in FROM",
    "uuid_generate_v4": "uuid()",
    "varchar": "CAST(x AS varchar)",
    "wm_concat": "array_join(array_agg(x), ', ')",
    "zeroifnull": "coalesce(x, 0)",
}
"""Names of other engines' functions, in lower case, and expressions of Trino."""

TYPES: Final = {
    "bignumeric": "decimal(38, 9)",
    "bigserial": "bigint",
    "bit": "boolean",
    "blob": "varbinary",
    "bool": "boolean",
    "byte": "tinyint",
    "bytea": "varbinary",
    "bytes": "varbinary",
    "character varying": "varchar",
    "clob": "varchar",
    "datetime": "timestamp",
    "datetime2": "timestamp",
    "double precision": "double",
    "enum": "varchar",
    "float": "double",
    "float4": "real",
    "float64": "double",
    "float8": "double",
    "hugeint": "decimal(38, 0)",
    "image": "varbinary",
    "int2": "smallint",
    "int4": "integer",
    "int64": "bigint",
    "int8": "bigint",
    "jsonb": "json",
    "list": "array(type)",
    "long": "bigint",
    "longtext": "varchar",
    "mediumtext": "varchar",
    "money": "decimal(18, 2)",
    "nchar": "char",
    "ntext": "varchar",
    "number": "decimal(18, 2)",
    "numeric": "decimal(18, 2)",
    "nvarchar": "varchar",
    "object": "json",
    "raw": "varbinary",
    "serial": "bigint",
    "set": "varchar",
    "short": "smallint",
    "smalldatetime": "timestamp",
    "string": "varchar",
    "struct": "row(name type, ...)",
    "super": "json",
    "text": "varchar",
    "timestamp_ltz": "timestamp with time zone",
    "timestamp_ntz": "timestamp",
    "timestamp_tz": "timestamp with time zone",
    "timestamptz": "timestamp with time zone",
    "timetz": "time with time zone",
    "tinytext": "varchar",
    "ubigint": "decimal(20, 0)",
    "uinteger": "bigint",
    "uniqueidentifier": "uuid",
    "varchar2": "varchar",
    "variant": "json",
    "xml": "varchar",
    "year": "smallint",
}
"""Names of other engines' types, in lower case, and types of Trino."""

_LITERALS: Final = {
    "interval": "INTERVAL '1' DAY: the number in quotes, and the unit behind it",
    "e": "the text without E; U&'...' takes characters by number",
    "n": "the text without N: all text is Unicode",
    "r": "the text without r: a backslash is a plain character",
    "b": "X'...' for bytes, in hexadecimal digits",
    "bytes": "X'...' for bytes, in hexadecimal digits",
}
"""What other engines write before a quoted text, in lower case, and the form of Trino."""
_COLUMNS: Final = {
    "rownum": "Write LIMIT 10, or row_number() OVER (ORDER BY x) in a subquery.",
    "all": "Write the columns one by one instead of ALL.",
    "sysdate": "Write current_timestamp.",
    "systimestamp": "Write current_timestamp.",
    "current_datetime": "Write current_timestamp.",
    "getdate": "Write current_timestamp.",
    "rowid": "A row has no number that can be read; write the columns of its key.",
    "level": "Write WITH RECURSIVE, and count the levels in a column.",
    "_rowid_": "A row has no number that can be read; write the columns of its key.",
}
"""Names that other engines read without a table, in lower case, and hints."""
_TABLES: Final = {
    "dual": "Leave FROM dual out: SELECT needs no table.",
    "using dual": "Write USING (VALUES 1) dual (x).",
    "generate_series": "Write UNNEST(sequence(1, 10)) AS s (x).",
    "sqlite_master": "Write SHOW TABLES.",
    "pg_tables": "Write SHOW TABLES.",
    "user_tables": "Write SHOW TABLES.",
    "all_tables": "Write SHOW TABLES.",
}
"""Tables that other engines bring, in lower case, and hints."""
_ARGUMENTS: Final = {
    "map": "Write the keys and the values as arrays: map(ARRAY['a', 'b'], ARRAY[1, 2]).",
    "date_diff": "The unit comes first, as text: date_diff('day', a, b).",
    "date_add": "The unit comes first, as text: date_add('day', 1, x).",
    "date_trunc": "The unit comes first, as text: date_trunc('month', x).",
    "round": "Cast text to a number first: round(CAST(x AS decimal(18, 2)), 2).",
    "sha256": "Hashes are taken of bytes: sha256(to_utf8(x)).",
    "md5": "Hashes are taken of bytes: to_hex(md5(to_utf8(x))).",
    "json_extract_scalar": "Parse the text first: json_extract_scalar(json_parse(x), '$.a').",
}
"""Functions that other engines call with other arguments."""


def function_hint(name: str, others: Iterable[str] = ()) -> str | None:
    """Return what replaces another engine's function, and others of the statement.

    >>> function_hint("NVL", ["count", "GETDATE"])
    'Write coalesce(a, b); for GETDATE, write current_timestamp.'
    """
    text = FUNCTIONS.get(name.lower())
    more = [
        f"; for {other}, write {FUNCTIONS[other.lower()]}"
        for other in others
        if other.lower() in FUNCTIONS
    ]
    return None if text is None else f"Write {text}{''.join(more)}."


_SIZED: Final = frozenset({"char", "decimal", "varchar"})


def trino_type(name: str) -> str:
    """Return Trino's type for another engine's, or the type itself.

    >>> trino_type("NUMBER(10)"), trino_type("date")
    ('decimal(10)', 'date')
    """
    text = TYPES.get(name.partition("(")[0].partition("<")[0].strip().lower(), name)
    sizes = re.search(r"\(\s*\d+(?:\s*,\s*\d+)?\s*\)", name)
    base = text.partition("(")[0]
    return f"{base}{sizes[0]}" if sizes and base in _SIZED else text


def type_hint(name: str) -> Edit | None:
    """Return what replaces another engine's type."""
    word = name.partition("(")[0].partition("<")[0].strip().lower()
    if word in TYPES:
        return Edit(name, trino_type(name), "Write {new}.")
    # Of map(STRING, INT) the part is foreign.
    for part in re.findall(r"\w+", name.lower()):
        if part in TYPES and part != word:
            return Edit(part, TYPES[part])
    return None


def literal_hint(name: str) -> Hint | None:
    """Return what replaces another engine's word before a quoted text."""
    text = _LITERALS.get(name.lower())
    return type_hint(name) if text is None else f"Write {text}."


def column_hint(name: str) -> str | None:
    """Return what replaces a name that another engine knows without a table.

    >>> column_hint("sysdate")
    'Write current_timestamp.'
    """
    return _COLUMNS.get(name.lower())


def table_hint(name: str) -> str | None:
    """Return what replaces a table that another engine brings.

    >>> table_hint("DUAL")
    'Leave FROM dual out: SELECT needs no table.'
    """
    return _TABLES.get(name.lower())


def arguments_hint(name: str) -> str | None:
    """Return how the arguments of a function are written that other engines call otherwise.

    >>> arguments_hint("date_diff")
    "The unit comes first, as text: date_diff('day', a, b)."
    """
    return _ARGUMENTS.get(name.lower())
