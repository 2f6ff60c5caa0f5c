"""Gives JSON_OBJECT and JSON_ARRAY their meaning: their types, and the order of members."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.types import BOOLEAN, UNKNOWN, VARCHAR
from rowmerge_nb.sql.analyzer.expressions.json_calls import output_type, read_as_json
from rowmerge_nb.sql.tree import json_expressions as j
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.cast_rules import can_cast
from rowmerge_nb.sql.typed.json_call_types import Constructed
from rowmerge_nb.sql.typed.type_rules import is_numeric, is_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.analyzer.expressions.calls import CallAnalyzer

_LARGEST_SCALE: Final = 6
"""Java writes decimals with more digits behind the point in two ways, which depends on their value."""
_BUCKETS: Final = 16
_FULL: Final = 12
"""A hash table of Java begins with this many buckets, and grows when it has more entries than this."""


def json_constructor(analyzer: CallAnalyzer, node: j.JsonConstructor) -> e.Typed:
    """Analyze JSON_OBJECT or JSON_ARRAY.

    Raises:
        AnalysisError: with Trino's words where Trino refuses the call, with NOT_SUPPORTED where only this engine does.
    """
    keys: list[e.Typed] = []
    values: list[e.Typed] = []
    read: list[bool] = []
    for index, given in enumerate(node.values):
        if node.keys:
            key = analyzer.analyze(node.keys[index])
            if not is_text(key.type):
                analyzer.context.error(
                    "INVALID_FUNCTION_ARGUMENT", f"Invalid type of JSON object key: {key.type}", node.keys[index].error_span
                )
            literal = isinstance(key, e.Constant) and key.type.base == "varchar"
            keys.append(replace(key, type=VARCHAR) if literal else analyzer.coerce(key, VARCHAR))
        # What these give is JSON already, and no text to be quoted.
        nested = isinstance(given.value, j.JsonConstructor) or (
            isinstance(given.value, j.JsonLookup) and given.value.name == "JSON_QUERY"
        )
        read.append(given.format is not None or nested)
        values.append(_value(analyzer, node, given, read=read[-1]))
    kind = output_type(analyzer, node)
    order = _order(analyzer, node, keys)
    if any(read) and any(isinstance(part, e.Subquery) for value in (*keys, *values) for part in e.walk(value)):
        analyzer.refuse(f"{node.name} over a subquery is not supported by this engine", node)
    made = Constructed(len(keys), tuple(read), tuple(order), node.keeps_null, node.unique)
    return e.Apply(kind, "written", (*keys, *values), e.Written(node.name, made))


def _value(analyzer: CallAnalyzer, node: j.JsonConstructor, given: j.JsonInput, *, read: bool) -> e.Typed:
    """Analyze a value: numbers, booleans and text are themselves, what is JSON is read, everything else becomes text."""
    if read:
        if node.unique:
            said = "WITH UNIQUE KEYS behavior is not supported for JSON_OBJECT function when input expression has FORMAT"
            analyzer.context.error("NOT_SUPPORTED", said, node.error_span)
        return read_as_json(analyzer, given, f"value passed to {node.name} function")
    value = analyzer.analyze(given.value)
    said = f"Unsupported type of value passed to {node.name} function: {value.type}"
    if value.type.base == "varbinary":
        analyzer.context.error("NOT_SUPPORTED", said, given.value.error_span)
    if value.type.base == "decimal" and value.type.parameters[1] > _LARGEST_SCALE:
        analyzer.refuse(f"{node.name} with a value of type {value.type} is not supported by this engine", given.value)
    if is_text(value.type) or is_numeric(value.type) or value.type == BOOLEAN:
        return value
    if not can_cast(value.type, VARCHAR):
        analyzer.context.error("NOT_SUPPORTED", said, node.error_span)
    return e.Constant(VARCHAR, None) if value.type == UNKNOWN else e.Apply(VARCHAR, "cast", (value,))


def _order(analyzer: CallAnalyzer, node: j.JsonConstructor, keys: list[e.Typed]) -> list[int]:
    """The order in which the members of an object are written: that of a hash table, as in Trino."""
    if len(keys) < 2:
        return list(range(len(keys)))
    names = [key.value for key in keys if isinstance(key, e.Constant) and key.value is not None]
    if len(names) < len(keys):
        said = "JSON_OBJECT with several keys that are not all literals is not supported by this engine"
        analyzer.refuse(f"{said}: their order follows from their hashes", node)
    if not node.keeps_null and len(names) > _FULL:
        said = f"JSON_OBJECT with ABSENT ON NULL and more than {_FULL} members is not supported by this engine"
        analyzer.refuse(f"{said}: their order follows from how many are NULL", node)
    return hash_order(names)


def hash_order(names: Sequence[str]) -> list[int]:
    """Return the indexes of names in the order in which a hash table of Java has them.

    >>> hash_order(["b", "key", "a"])
    [2, 0, 1]
    """
    buckets = _BUCKETS
    while len(set(names)) > buckets * _FULL // _BUCKETS:
        buckets *= 2
    return sorted(range(len(names)), key=lambda index: _hash(names[index]) & (buckets - 1))


def _hash(name: str) -> int:
    found = 0
    units = name.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & 0xFFFFFFFF
    return found ^ (found >> 16)
