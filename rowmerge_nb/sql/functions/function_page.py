"""Prints docs/functions.md:
``python -m rowmerge_nb.sql.functions.function_page > docs/functions.md``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from rowmerge_nb.sql.functions import aggregates, percentiles
from rowmerge_nb.sql.functions.all_functions import FORMS, MOMENTS, SUBJECTS, WINDOWS
from rowmerge_nb.sql.functions.overloads import rows_of
from rowmerge_nb.sql.functions.refused import REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowmerge_nb.sql.functions.overloads import Overload

_TITLES: Final = {
    "math": "Numbers",
    "strings": "Text and URLs",
    "regexp": "Regular expressions",
    "binary": "Bytes",
    "json": "JSON",
    "datetime": "Dates and times",
    "arrays": "Arrays",
    "maps": "Maps",
}
_NOTES: Final = {
    "math": (
        "Powers, roots, exponentials, logarithms and trigonometry use Java's StrictMath in Spark"
        " and Math in Trino: the last binary digit may differ. `random` differs by nature."
    ),
    "strings": (
        "Text is compared and counted by code points. `format` accepts everything that Java's"
        " formatter accepts, except `%a`, `%h` of text and moments, and `%t` of integers and of"
        " moments with a zone. A `char` of more than 65,536 letters is refused, as in Trino."
    ),
    "regexp": (
        "The second argument is a pattern of Java's engine with the semantics of Trino's engine,"
        " Joni: `\\w`, `\\d` and `\\s` are ASCII, `\\b`, POSIX classes (`[[:alpha:]]`) and case are"
        " Unicode, `\\n` is the only end of a line for `.` and `$`, and characters are never split."
        " In a pattern that is not a literal, POSIX classes must be within brackets. Under `(?i)`,"
        " Joni also matches one letter with several (`ß` with `ss`), which is not supported. A"
        " group that need not take part in a match, and may match nothing, is refused: Spark"
        " returns empty text in both cases, Trino NULL in one. A lambda of `regexp_replace` gets"
        " the groups of each match; the pattern must be a literal that matches no empty text."
    ),
    "binary": (
        "`murmur3` is computed in Spark SQL, which lacks this hash: 10,000 short values take 0.65"
        " seconds."
    ),
    "json": (
        "A value of type json is its text. `json_extract`, `json_extract_scalar` and `json_size`"
        " take literal paths; if a text is invalid behind the value, they return NULL, where Trino"
        " does not notice. The last of equal keys counts. `JSON_EXISTS`, `JSON_VALUE` and"
        " `JSON_QUERY` take paths in lax and strict mode. Paths have members, `..key`, subscripts"
        " (numbers, `last`, `last - 1`, ranges with `to`, lists), and arithmetic of integers and"
        " doubles. Filters have all predicates except `like_regex`, which Trino refuses as well."
        " Methods are `abs()`, `ceiling()`, `double()`, `floor()`, `keyvalue()`, `size()` and"
        " `type()`. Values of PASSING are booleans, numbers except decimals, varchar or FORMAT JSON."
        " Other subscripts, decimals that are not compared, `keyvalue()` twice or within a filter,"
        " `varbinary` documents, ENCODING UTF16 and UTF32, and documents, values or defaults that"
        " are subqueries are refused. `JSON_QUERY` writes equal keys of one object repeatedly,"
        " where Trino writes only the last value. A default is computed if it is needed; in Trino,"
        " for every row. `JSON_OBJECT` has its members in Trino's order, that of a hash table, so"
        " several keys must all be literals. `JSON_OBJECT` and `JSON_ARRAY` refuse decimals with"
        " more than six decimal places."
    ),
    "arrays": (
        "`concat` and `||` join arrays with arrays and with elements. For 0.0 and -0.0 within rows"
        " and arrays, `array_distinct` and similar functions return 0.0. Steps of months in"
        " `sequence` end before the stop; Trino sometimes takes one more."
    ),
    "maps": "Maps whose keys contain maps are refused. A key -0.0 is 0.0.",
}
_AGGREGATES: Final = (
    "Sums of floating-point numbers depend on the order of rows, as in Trino; so do `map_agg`,"
    " `map_union` and `array_agg`. Among rows with equal keys, `max_by` and `min_by` choose any."
)
_PERCENTILES: Final = (
    "`approx_percentile` returns the result of Trino's digest for a group of up to 1260 values that"
    " Trino reads in one split. For more values, and with an accuracy, it returns the exact value;"
    " Trino's may be off by a percent of the rows. Over windows and VALUES, Trino's digest is twice"
    " as fine: above 30 values or so, or with large weights, the middle ones may differ."
)
_INTRODUCTION: Final = (
    "Expressions mean the same as in Trino 483. Each function below has Trino's signature and its"
    " equivalent in Spark SQL; `{0}` is the first argument, `{fail:CODE:message}` Trino's error."
    ' Long equivalents are truncated; `rowmerge_nb.sql.functions.overloads.overloads("murmur3")`'
    " returns the full text. Other functions are refused: with `FUNCTION_NOT_FOUND` and the nearest"
    " name if Trino lacks them too, with `NOT_SUPPORTED` and the reason otherwise. `yes` in the"
    " last column means that DuckDB can compute the function [in the task that reads the"
    " target](speed.md#what-executes-a-row-change); that section has the requirements."
)
_LONGEST: Final = 400
"""The maximum length of Spark SQL on the page."""
_SYNTAX: Final = (
    "`CASE`, `TRY_CAST`, `EXTRACT`, `AT TIME ZONE`, `JSON_EXISTS`, `JSON_VALUE`, `JSON_QUERY`,"
    " `JSON_OBJECT`, `JSON_ARRAY`, `CURRENT_DATE`, `CURRENT_TIMESTAMP`, `LOCALTIME`,"
    " `LOCALTIMESTAMP`"
)


def page() -> str:
    """Return the page.

    >>> page().splitlines()[0]
    '# Functions'
    """
    parts = [
        "# Functions",
        (
            "This page is generated by `python -m rowmerge_nb.sql.functions.function_page >"
            " docs/functions.md`; a test keeps it up to date."
        ),
        _INTRODUCTION,
        (
            f"Forms with their own syntax: {_SYNTAX}. Functions with their own rules for types and"
            " values:"
        ),
        "\n".join(
            [
                "| function | result |",
                "| --- | --- |",
                *(_form(text) for _, text in sorted({**FORMS, **MOMENTS}.items())),
            ]
        ),
    ]
    for subject, rows in SUBJECTS.items():
        parts += [
            f"## {_TITLES[subject]}",
            *([_NOTES[subject]] if subject in _NOTES else []),
            _table(rows_of(rows)),
        ]
    parts += [
        "## Aggregates",
        _AGGREGATES,
        _table(rows_of(aggregates.ROWS)),
        _PERCENTILES,
        _table(rows_of(percentiles.ROWS)),
    ]
    parts += ["## Windows", "Every aggregate may also have OVER.", _table(rows_of(WINDOWS))]
    parts += ["## Refused", _refused()]
    return "\n\n".join(parts) + "\n"


def _form(text: str) -> str:
    call, _, meaning = text.partition(": ")
    return f"| `{call}` | {meaning} |"


def _table(overloads: Iterable[Overload]) -> str:
    lines = ["| Trino | result | Spark SQL | in tasks |", "| --- | --- | --- | --- |"]
    for overload in overloads:
        equivalent = f"refused: {overload.refusal}" if overload.refusal else _code(overload.spark)
        lines.append(
            f"| `{overload}` | `{overload.result}` | {equivalent} |"
            f" {'yes' if overload.duckdb else ''} |"
        )
    return "\n".join(lines)


def _code(text: str) -> str:
    excerpt = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\N{HORIZONTAL ELLIPSIS}"
    escaped = excerpt.replace("|", "\\|")
    return f"`` {escaped} ``" if "`" in text else f"`{escaped}`"


def _refused() -> str:
    by_reason: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        by_reason.setdefault(reason, []).append(name)
    lines = ["| functions of Trino | reason |", "| --- | --- |"]
    lines += [
        f"| {', '.join(f'`{name}`' for name in sorted(names))} | {reason} |"
        for reason, names in by_reason.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
