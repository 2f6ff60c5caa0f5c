"""The sequence of items at the end of a path of SQL/JSON, in Spark SQL.

An item is a text: of a string the string itself behind a quotation mark (``"abc``), of everything else the JSON text, in which
every string, keys too, has such a mark. So the first character tells what an item is. Spark's functions that take JSON apart
would otherwise give the string "1" and the number 1 alike. A failure is an item as well: its words behind an exclamation mark.
"""

from __future__ import annotations

from typing import Final

from rowmerge_nb.sql.functions.json import escaped
from rowmerge_nb.sql.tree.json_paths import JsonPath, Member, Range, Subscripts
from rowmerge_nb.sql.typed.expressions import text_literal

__all__ = ["json_text", "sequence"]

_STRING: Final = r'"((?:[^"\\\\]++|\\\\.)*+)"'

# Names of columns never begin with $, so the parameters of these lambdas hide none.
_KIND: Final = (
    "CASE substring(`$x`, 1, 1) WHEN '[' THEN 'ARRAY' WHEN '{' THEN 'OBJECT' WHEN '\"' THEN 'STRING' WHEN 'n' THEN 'NULL' "
    "WHEN 't' THEN 'BOOLEAN' WHEN 'f' THEN 'BOOLEAN' ELSE 'NUMBER' END"
)
_ELEMENTS: Final = "transform(from_json(`$x`, 'ARRAY<STRING>'), `$v` -> coalesce(`$v`, 'null'))"
_ENTRIES: Final = "map_entries(from_json(`$x`, 'MAP<STRING, STRING>'))"
_EACH_LAST: Final = (
    f"transform(array({_ENTRIES}), `$m` -> transform(array_distinct(transform(`$m`, `$e` -> `$e`.key)), "
    "`$k` -> coalesce(element_at(filter(`$m`, `$e` -> `$e`.key = `$k`), -1).value, 'null')))[0]"
)


def sequence(text: str, path: JsonPath) -> str:
    """Write the items at the end of a path: an array, with a failure as its only item; NULL where the text is no JSON.

    Args:
        text: the document as Spark SQL, used three times.
        path: the path.
    """
    marked = f"regexp_replace({text}, '{_STRING}', '\"\\\\\\\\\"$1\"')"
    # What follows the first value of a text is not looked at: neither here nor in Trino.
    read = f"IF(try_parse_json({text}) IS NULL, NULL, array(get_json_object({marked}, '$')))"
    # A text of blanks is null.
    items = f"IF({text} RLIKE '^[ \\\\t\\\\r\\\\n]*\\\\z', array('null'), {read})"
    for step in path.steps:
        items = _strict(items, step) if path.strict else _lax(items, step)
    return items


def _lax(items: str, step: Member | Subscripts) -> str:
    elements = f"IF(startswith(`$x`, '['), {_ELEMENTS}, array(`$x`))"
    if isinstance(step, Subscripts):
        return f"flatten(transform({items}, `$x` -> {_chosen(elements, step, strict=False)}))"
    unnested = f"flatten(transform({items}, `$x` -> {elements}))"
    return f"flatten(transform({unnested}, `$x` -> IF(startswith(`$x`, '{{'), {_values(step)}, array())))"


def _strict(items: str, step: Member | Subscripts) -> str:
    wanted, begins = ("ARRAY", "[") if isinstance(step, Subscripts) else ("OBJECT", "{")
    found = _chosen(_ELEMENTS, step, strict=True) if isinstance(step, Subscripts) else _values(step)
    if isinstance(step, Member) and step.key is not None:
        missing = text_literal(f"!structural error: missing member '{step.key}' in JSON object")
        found = f"transform(array({found}), `$f` -> IF(size(`$f`) = 0, array({missing}), `$f`))[0]"
    unfit = f"array(concat('!invalid item type. Expected: {wanted}, actual: ', {_KIND}))"
    each = f"CASE WHEN startswith(`$x`, '!') THEN array(`$x`) WHEN startswith(`$x`, '{begins}') THEN {found} ELSE {unfit} END"
    failures = "filter(`$s`, `$x` -> startswith(`$x`, '!'))"
    # The first failure of a step ends everything: no later step of an earlier item comes before it.
    whole = f"IF(exists(`$s`, `$x` -> startswith(`$x`, '!')), slice({failures}, 1, 1), `$s`)"
    return f"transform(array(flatten(transform({items}, `$x` -> {each}))), `$s` -> {whole})[0]"


def _values(step: Member) -> str:
    if step.key is None:
        return _EACH_LAST
    same = f"filter({_ENTRIES}, `$e` -> `$e`.key = {text_literal(chr(34) + step.key)})"
    return f"transform(slice({same}, -1, 1), `$e` -> coalesce(`$e`.value, 'null'))"


def _chosen(elements: str, step: Subscripts, *, strict: bool) -> str:
    if not step.ranges:
        return elements
    parts = [_slice(part, strict=strict) for part in step.ranges]
    body = parts[0] if len(parts) == 1 else f"concat({', '.join(parts)})"
    empty = "array('!structural error: invalid array subscript for empty array')" if strict else "array()"
    return f"transform(array({elements}), `$a` -> IF(size(`$a`) = 0, {empty}, {body}))[0]"


def _slice(part: Range, *, strict: bool) -> str:
    first, last = _index(part.first), _index(part.last)
    low, high = f"greatest({first}, 0)", f"least({last}, size(`$a`) - 1)"
    inside = f"{first} <= {last} AND {low} <= {high}"
    found = f"slice(`$a`, {low} + 1, {high} - {low} + 1)"
    if not strict:
        return f"IF({inside}, {found}, array())"
    shown = (
        f"concat('!structural error: invalid array subscript: [', CAST({first} AS STRING), ', ', CAST({last} AS STRING), "
        "'] for array of size ', CAST(size(`$a`) AS STRING))"
    )
    return f"IF({first} BETWEEN 0 AND {last} AND {last} < size(`$a`), {found}, array({shown}))"


def _index(offset: tuple[int, bool]) -> str:
    number, from_last = offset
    return f"(size(`$a`) - 1 + ({number}))" if from_last else f"({number})"


def json_text(item: str) -> str:
    """Write the JSON text of an item."""
    string = f"regexp_replace(to_json(array(substring({item}, 2))), '^.|.$', '')"
    unmarked = f"regexp_replace({item}, '\"\\\\\\\\{_STRING}', '\"$1\"')"
    # A number that no double can hold is infinite, and JSON has only text for that.
    whole = (
        f"CASE WHEN startswith({item}, '\"') THEN {string} "
        f"WHEN endswith({item}, 'Infinity') THEN concat('\"', {item}, '\"') ELSE {unmarked} END"
    )
    return escaped(whole, where=item)
