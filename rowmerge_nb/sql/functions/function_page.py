"""Prints docs/functions.md: ``python -m rowmerge_nb.sql.functions.function_page > docs/functions.md``."""

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
    "math": "Powers, roots, exponentials, logarithms and trigonometry come from Java's StrictMath in Spark and from Math in Trino: the "
    "last binary digit may differ. `random` differs by its nature.",
    "strings": "Text is compared and counted by code points. `format` takes what Java's formatter takes, but `%a`, `%h` of text and moments, and `%t` of integers and of moments with a zone. What makes a `char` of more than 65,536 letters is refused, as in Trino.",
    "regexp": "The second argument is the pattern as one of Java's engine: `\\w`, `\\d` and `\\s` are ASCII, `\\b`, the classes of POSIX "
    "(`[[:alpha:]]`) and case are Unicode's, `.` and `$` know `\\n` alone as the end of a line, and characters are whole, as for Trino's engine, Joni. "
    "In a pattern that is no literal classes of POSIX stand within brackets. Under `(?i)` Joni also takes a letter for several (`ß` for `ss`), which is not done here. "
    "A group that need not take part in a match, and may match nothing where it does, is refused: Spark gives empty text for both, Trino NULL for one. "
    "A lambda of `regexp_replace` gets the groups of each match, of a literal pattern that matches no empty text.",
    "binary": "`xxhash64` and `murmur3` are computed in Spark SQL, which has no such hashes of its own: of 100,000 short texts they take 3.6 and 5.3 seconds, "
    "and `sha256` half a second.",
    "json": "A value of type json is its text. `json_extract`, `json_extract_scalar` and `json_size` take literal paths; where a text is "
    "broken behind the value sought, they give NULL, where Trino does not notice. Of equal keys the last counts. "
    "`JSON_EXISTS`, `JSON_VALUE` and `JSON_QUERY` take paths in lax and strict mode: members, `..key`, subscripts (numbers, `last`, `last - 1`, ranges with `to`, "
    "lists), filters with all predicates but `like_regex`, which Trino refuses as well, the methods `abs()`, `ceiling()`, `double()`, `floor()`, `keyvalue()`, "
    "`size()` and `type()`, arithmetic of integers and doubles, and values of PASSING that are booleans, numbers but decimals, varchar or FORMAT JSON. "
    "Other subscripts, decimals that are not compared, `keyvalue()` twice or within a filter, `varbinary` documents, ENCODING UTF16 and UTF32, and "
    "documents, values or defaults that are subqueries are refused. "
    "`JSON_QUERY` writes equal keys of one object as often as they are there, where Trino writes the last value alone; a default is "
    "computed where it is needed, and in Trino for every row. `JSON_OBJECT` has its members in Trino's order, that of a hash table: of "
    "several keys all must be literals. Decimals with more than six decimals are refused by `JSON_OBJECT` and `JSON_ARRAY`.",
    "arrays": "`concat` and `||` join arrays with arrays and with elements. Of 0.0 and -0.0 inside of rows and arrays `array_distinct` and its kin give 0.0. "
    "Steps of months in `sequence` end before the stop; Trino now and then takes one more.",
    "maps": "Maps whose keys hold maps are refused. A key -0.0 is 0.0.",
}
_AGGREGATES: Final = (
    "Sums of floating-point numbers depend on the order of rows, here and there; so do `map_agg`, `map_union` and `array_agg`. Of rows with equal keys "
    "`max_by` and `min_by` take any."
)
_PERCENTILES: Final = (
    "`approx_percentile` gives what Trino's digest gives for a group of up to 1260 values that Trino reads in one split; of more, and with an accuracy, "
    "the exact value, from which Trino's may be off by a percent of the rows. Over windows and of VALUES, Trino's digest is twice as fine: beyond "
    "some 30 values, or with large weights, the middle ones may differ there."
)
_INTRODUCTION: Final = (
    "Expressions mean what they mean in Trino 476. Each function below is written with Trino's signature and the Spark SQL that "
    "has the same meaning; `{0}` is the first argument, `{fail:CODE:message}` Trino's error. Of what is long the beginning is shown; "
    '`rowmerge_nb.sql.functions.overloads.overloads("murmur3")` has all of it. What is not here is refused: with '
    "`FUNCTION_NOT_FOUND` and the nearest name if Trino does not know it, with `NOT_SUPPORTED` and the reason if it does. "
    "What is `yes` in the last column can be computed [in the task that reads the target](speed.md#what-executes-a-row-change), by DuckDB; "
    "what each of them needs for it is said there."
)
_LONGEST: Final = 400
"""The maximum length of Spark SQL on the page."""
_SYNTAX: Final = (
    "`CASE`, `TRY_CAST`, `EXTRACT`, `AT TIME ZONE`, `JSON_EXISTS`, `JSON_VALUE`, `JSON_QUERY`, `JSON_OBJECT`, `JSON_ARRAY`, "
    "`CURRENT_DATE`, `CURRENT_TIMESTAMP`, `LOCALTIME`, `LOCALTIMESTAMP`"
)


def page() -> str:
    """Return the page.

    >>> page().splitlines()[0]
    '# Functions'
    """
    parts = [
        "# Functions",
        "This page is written by `python -m rowmerge_nb.sql.functions.function_page > docs/functions.md`; a test keeps it up to date.",
        _INTRODUCTION,
        f"Forms with a syntax of their own: {_SYNTAX}. Those that are written as functions and decide on types and values in ways of their own:",
        "\n".join(
            ["| function | what it gives |", "| --- | --- |", *(_form(text) for _, text in sorted({**FORMS, **MOMENTS}.items()))]
        ),
    ]
    for subject, rows in SUBJECTS.items():
        parts += [f"## {_TITLES[subject]}", *([_NOTES[subject]] if subject in _NOTES else []), _table(rows_of(rows))]
    parts += [
        "## Aggregates",
        _AGGREGATES,
        _table(rows_of(aggregates.ROWS)),
        _PERCENTILES,
        _table(rows_of(percentiles.ROWS)),
    ]
    parts += ["## Windows", "Every aggregate may stand before OVER too.", _table(rows_of(WINDOWS))]
    parts += ["## Refused", _refused()]
    return "\n\n".join(parts) + "\n"


def _form(text: str) -> str:
    call, _, meaning = text.partition(": ")
    return f"| `{call}` | {meaning} |"


def _table(overloads: Iterable[Overload]) -> str:
    lines = ["| Trino | result | Spark SQL | in tasks |", "| --- | --- | --- | --- |"]
    for overload in overloads:
        equivalent = f"refused: {overload.refusal}" if overload.refusal else _code(overload.spark)
        lines.append(f"| `{overload}` | `{overload.result}` | {equivalent} | {'yes' if overload.duckdb else ''} |")
    return "\n".join(lines)


def _code(text: str) -> str:
    excerpt = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\N{HORIZONTAL ELLIPSIS}"
    escaped = excerpt.replace("|", "\\|")
    return f"`` {escaped} ``" if "`" in text else f"`{escaped}`"


def _refused() -> str:
    by_reason: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        by_reason.setdefault(reason, []).append(name)
    lines = ["| functions of Trino | why not here |", "| --- | --- |"]
    lines += [f"| {', '.join(f'`{name}`' for name in sorted(names))} | {reason} |" for reason, names in by_reason.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
