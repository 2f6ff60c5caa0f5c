"""All tables of functions together, by subject: nothing but data.

A row reads ``name(argument types) -> result type | Spark SQL``; `rowmerge_nb.sql.functions.overloads` says what the marks mean.
"""

from __future__ import annotations

from typing import Final

from rowmerge_nb.sql.functions import aggregates, arrays, binary, datetime, json, maps, math, regexp, strings, windows

__all__ = ["AGGREGATES", "FRAGMENTS", "SCALARS", "SUBJECTS", "WINDOWS"]

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
