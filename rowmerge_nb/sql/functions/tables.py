"""All tables of functions together, by subject: nothing but data.

A row reads ``name(argument types) -> result type | Spark SQL``; `rowmerge_nb.sql.functions.overloads` says what the marks mean.
"""

from __future__ import annotations

from typing import Final

from rowmerge_nb.sql.functions import aggregates, arrays, binary, datetime, json, maps, math, regexp, strings, windows

__all__ = ["AGGREGATES", "FORMS", "FRAGMENTS", "SCALARS", "SUBJECTS", "WINDOWS"]

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

SCALARS: Final = "".join(SUBJECTS.values())
AGGREGATES: Final = aggregates.ROWS
WINDOWS: Final = windows.ROWS
FRAGMENTS: Final = {
    name: part
    for module in (math, strings, regexp, binary, json, datetime, arrays, maps, aggregates)
    for name, part in module.FRAGMENTS.items()
}
"""Parts that templates of several signatures share; ``{name}`` in a template stands for them."""

FORMS: Final = {
    "coalesce": "coalesce(value, value, ...): the first that is not NULL",
    "concat": "concat(value, value, ...)",
    "greatest": "greatest(value, value, ...)",
    "grouping": "grouping(column, ...) -> bigint",
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
"""What is written as a function and is none of a table: the analyzer knows each by itself."""
