"""Analyzes JSON_OBJECT and JSON_ARRAY."""

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
"""Above this scale, Java's notation of decimals depends on their value."""
_BUCKETS: Final = 16
_FULL: Final = 12
"""Java's hash tables start with ``_BUCKETS`` buckets and grow above ``_FULL`` entries."""


def json_constructor(analyzer: CallAnalyzer, node: j.JsonConstructor) -> e.Typed:
    keys: list[e.Typed] = []
    values: list[e.Typed] = []
    read: list[bool] = []
    for index, json_input in enumerate(node.values):
        if node.keys:
            key = analyzer.analyze(node.keys[index])
            if not is_text(key.type):
                analyzer.context.error(
                    "INVALID_FUNCTION_ARGUMENT",
                    f"Invalid type of JSON object key: {key.type}",
                    node.keys[index].error_span,
                )
            literal = isinstance(key, e.Constant) and key.type.base == "varchar"
            keys.append(replace(key, type=VARCHAR) if literal else analyzer.coerce(key, VARCHAR))
        # These return JSON, which is not quoted.
        nested = isinstance(json_input.value, j.JsonConstructor) or (
            isinstance(json_input.value, j.JsonLookup) and json_input.value.name == "JSON_QUERY"
        )
        read.append(json_input.format is not None or nested)
        values.append(_value(analyzer, node, json_input, read=read[-1]))
    sql_type = output_type(analyzer, node)
    order = _order(analyzer, node, keys)
    if any(read) and any(
        isinstance(part, e.Subquery) for value in (*keys, *values) for part in e.walk(value)
    ):
        analyzer.refuse(f"{node.name} over a subquery is not supported by this engine", node)
    constructor = Constructed(len(keys), tuple(read), tuple(order), node.keeps_null, node.unique)
    return e.Apply(sql_type, "written", (*keys, *values), e.NamedOperation(node.name, constructor))


def _value(
    analyzer: CallAnalyzer, node: j.JsonConstructor, json_input: j.JsonInput, *, read: bool
) -> e.Typed:
    if read:
        if node.unique:
            message = (
                "WITH UNIQUE KEYS behavior is not supported for JSON_OBJECT function when input"
                " expression has FORMAT"
            )
            analyzer.context.refuse(message, node.error_span)
        return read_as_json(analyzer, json_input, f"value passed to {node.name} function")
    value = analyzer.analyze(json_input.value)
    message = f"Unsupported type of value passed to {node.name} function: {value.type}"
    if value.type.base == "varbinary":
        analyzer.context.refuse(message, json_input.value.error_span)
    if value.type.base == "decimal" and value.type.parameters[1] > _LARGEST_SCALE:
        analyzer.refuse(
            f"{node.name} with a value of type {value.type} is not supported by this engine",
            json_input.value,
        )
    if is_text(value.type) or is_numeric(value.type) or value.type == BOOLEAN:
        return value
    if not can_cast(value.type, VARCHAR):
        analyzer.context.refuse(message, node.error_span)
    return (
        e.Constant(VARCHAR, None) if value.type == UNKNOWN else e.Apply(VARCHAR, "cast", (value,))
    )


def _order(analyzer: CallAnalyzer, node: j.JsonConstructor, keys: list[e.Typed]) -> list[int]:
    if len(keys) < 2:
        return list(range(len(keys)))
    names = [key.value for key in keys if isinstance(key, e.Constant) and key.value is not None]
    if len(names) < len(keys):
        message = (
            "JSON_OBJECT with several keys that are not all literals is not supported by this"
            " engine"
        )
        analyzer.refuse(f"{message}: their order follows from their hashes", node)
    if not node.keeps_null and len(names) > _FULL:
        message = (
            f"JSON_OBJECT with ABSENT ON NULL and more than {_FULL} members is not supported by"
            " this engine"
        )
        analyzer.refuse(f"{message}: their order follows from how many are NULL", node)
    return hash_order(names)


def hash_order(names: Sequence[str]) -> list[int]:
    buckets = _BUCKETS
    while len(set(names)) > buckets * _FULL // _BUCKETS:
        buckets *= 2
    return sorted(range(len(names)), key=lambda index: _hash(names[index]) & (buckets - 1))


def _hash(name: str) -> int:
    code = 0
    units = name.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code ^ (code >> 16)
