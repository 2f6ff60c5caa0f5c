"""Functions and types of other engines, and what Trino has instead."""

from __future__ import annotations

from typing import Final

FUNCTIONS: Final = {
    "add_months": "date_add('month', n, x)",
    "array_size": "cardinality(x)",
    "charindex": "strpos(text, part)",
    "collect_list": "array_agg(x)",
    "collect_set": "array_agg(DISTINCT x)",
    "convert": "CAST(x AS type)",
    "curdate": "current_date",
    "dateadd": "date_add('day', n, x)",
    "datediff": "date_diff('day', a, b)",
    "datepart": "extract(YEAR FROM x)",
    "decode": "CASE x WHEN a THEN b ELSE c END",
    "explode": "CROSS JOIN UNNEST(x) in FROM",
    "getdate": "current_timestamp",
    "group_concat": "array_join(array_agg(x), ', ')",
    "ifnull": "coalesce(a, b)",
    "iff": "if(condition, a, b)",
    "iif": "if(condition, a, b)",
    "instr": "strpos(text, part)",
    "isnull": "x IS NULL, or coalesce(a, b)",
    "last_day": "last_day_of_month(x)",
    "left": "substr(x, 1, n)",
    "len": "length(x)",
    "locate": "strpos(text, part)",
    "nvl": "coalesce(a, b)",
    "nvl2": "if(a IS NOT NULL, b, c)",
    "right": "substr(x, -n)",
    "size": "cardinality(x)",
    "str_to_date": "date_parse(x, '%Y-%m-%d')",
    "string_agg": "array_join(array_agg(x), ', ')",
    "sysdate": "current_timestamp",
    "to_number": "CAST(x AS decimal(18, 2))",
    "to_varchar": "CAST(x AS varchar)",
    "try_convert": "TRY_CAST(x AS type)",
    "ucase": "upper(x)",
    "lcase": "lower(x)",
    "unix_timestamp": "to_unixtime(x)",
}
"""Names of other engines' functions, in lower case, and expressions of Trino."""

TYPES: Final = {
    "bigserial": "bigint",
    "blob": "varbinary",
    "bool": "boolean",
    "bytea": "varbinary",
    "bytes": "varbinary",
    "clob": "varchar",
    "datetime": "timestamp",
    "float": "real or double",
    "float64": "double",
    "int2": "smallint",
    "int4": "integer",
    "int64": "bigint",
    "int8": "bigint",
    "long": "bigint",
    "money": "decimal(18, 2)",
    "number": "decimal(18, 2)",
    "numeric": "decimal(18, 2)",
    "nvarchar": "varchar",
    "serial": "bigint",
    "string": "varchar",
    "struct": "row(name type, ...)",
    "text": "varchar",
    "timestamptz": "timestamp with time zone",
    "varchar2": "varchar",
}
"""Names of other engines' types, in lower case, and types of Trino."""


def function_hint(name: str) -> str | None:
    """Return what replaces another engine's function, or None.

    >>> function_hint("NVL")
    'Write coalesce(a, b).'
    """
    text = FUNCTIONS.get(name.lower())
    return None if text is None else f"Write {text}."


def type_hint(name: str) -> str | None:
    """Return what replaces another engine's type, or None; ``name`` may have arguments.

    >>> type_hint("STRING"), type_hint("nvarchar(20)"), type_hint("bigint")
    ('Write varchar.', 'Write varchar.', None)
    """
    text = TYPES.get(name.partition("(")[0].partition("<")[0].strip().lower())
    return None if text is None else f"Write {text}."
