"""Casts to and from json, whose values are texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.spi.types import DOUBLE, VARCHAR, Type
from rowmerge_nb.sql.expressions import fail, quote, text_literal
from rowmerge_nb.sql.types import is_float, is_integer, is_numeric, is_text, spark_type

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["from_json", "to_json"]


def to_json(text: str, kind: Type, shown: Callable[[str, Type], str]) -> str:
    """Write the cast of a value to json.

    Args:
        text: the value.
        kind: its type.
        shown: writes the cast of a value to varchar.

    >>> from rowmerge_nb.spi.types import INTEGER
    >>> to_json("`a`", INTEGER, lambda text, kind: f"CAST({text} AS STRING)")
    'CAST(`a` AS STRING)'
    """
    if kind.base in {"json", "unknown"}:
        return text if kind.base == "json" else "CAST(NULL AS STRING)"
    if is_float(kind):
        written = f"CAST({text} AS STRING)"
        return f"IF(isnan({text}) OR abs({text}) = CAST('Infinity' AS DOUBLE), concat('\"', {written}, '\"'), {written})"
    if is_numeric(kind) or kind.base == "boolean":
        return f"CAST({text} AS STRING)"
    if kind.base == "array":
        inner = to_json("e", kind.parameters[0], shown)
        return f"concat('[', array_join(transform({text}, e -> coalesce({inner}, 'null')), ','), ']')"
    if kind.base == "map":
        key, value = kind.parameters
        pair = f"concat({_quoted(_key('k', key, shown))}, ':', coalesce({to_json('v', value, shown)}, 'null'))"
        # Keys come in order.
        pairs = f"map_values(map_from_entries(array_sort(map_entries(transform_values({text}, (k, v) -> {pair})))))"
        return f"concat('{{', array_join({pairs}, ','), '}}')"
    if kind.base == "row":
        return _row(text, kind, shown)
    return _quoted(text if is_text(kind) else shown(text, kind))


def _key(text: str, kind: Type, shown: Callable[[str, Type], str]) -> str:
    return text if is_text(kind) else shown(text, kind)


def _quoted(text: str) -> str:
    return f"IF({text} IS NULL, NULL, substring(to_json(array({text})), 2, char_length(to_json(array({text}))) - 2))"


def _row(text: str, kind: Type, shown: Callable[[str, Type], str]) -> str:
    """Fields by name; those without one have the empty name, several of them too."""
    parts = []
    for index, (name, part) in enumerate(zip(kind.fields, kind.parameters, strict=True)):
        value = to_json(f"{text}.{quote(name or f'field{index}')}", part, shown)
        escaped = (name or "").replace("\\", "\\\\").replace('"', '\\"')
        written = text_literal(f'"{escaped}":')
        parts.append(f"{written}, coalesce({value}, 'null')")
    fields = ", ',', ".join(parts)
    return f"IF({text} IS NULL, NULL, concat('{{', {fields}, '}}'))"


def from_json(text: str, kind: Type, cast: Callable[[str, Type, Type], str], *, safe: bool) -> str | None:
    """Write the cast of a json value to another type.

    Args:
        text: the value.
        kind: the type wanted.
        cast: writes casts between other types.
        safe: NULL where the cast fails.

    Returns:
        None if this engine cannot cast json to the type as Trino does.
    """
    read = f"from_json(concat('{{\"v\":', {text}, '}}'), 'v VARIANT').v"
    if kind.base == "array":
        elements = f"from_json(concat('{{\"v\":', {text}, '}}'), 'v ARRAY<VARIANT>').v"
        inner = _from_variant("e", kind.parameters[0], cast, safe=safe)
        if inner is None:
            return None
        message = _failure(text, kind, safe=safe)
        return (
            f"CASE WHEN {text} IS NULL OR {text} = 'null' THEN NULL WHEN {text} LIKE '[%' THEN transform({elements}, e -> {inner}) "
            f"ELSE {message} END"
        )
    if kind.base == "map" and kind.parameters[0].base == "varchar":
        entries = f"from_json(concat('{{\"v\":', {text}, '}}'), 'v MAP<STRING, VARIANT>').v"
        inner = _from_variant("e", kind.parameters[1], cast, safe=safe)
        if inner is None:
            return None
        message = _failure(text, kind, safe=safe)
        return (
            f"CASE WHEN {text} IS NULL OR {text} = 'null' THEN NULL WHEN {text} LIKE '{{%' "
            f"THEN transform_values({entries}, (k, e) -> {inner}) ELSE {message} END"
        )
    inner = _from_variant("e", kind, cast, safe=safe)
    return None if inner is None else f"transform(array({read}), e -> {inner})[0]"


def _failure(text: str, kind: Type, *, safe: bool) -> str:
    return "NULL" if safe else fail("INVALID_CAST_ARGUMENT", "'Cannot cast \\''", text, text_literal(f"' to {kind}"))


def _from_variant(value: str, kind: Type, cast: Callable[[str, Type, Type], str], *, safe: bool) -> str | None:
    """A scalar of a document: text is read as CAST from varchar reads it, numbers are rounded, true is 1."""
    text = f"try_variant_get({value}, '$', 'string')"
    form = f"schema_of_variant({value})"
    container = f"{form} LIKE 'OBJECT%' OR {form} LIKE 'ARRAY%'"
    message = _failure(f"to_json({value})", kind, safe=safe)
    if kind.base == "json":
        return f"to_json({value})"
    if kind.base == "varchar":
        whole = cast(text, VARCHAR, kind)
        return f"CASE WHEN {container} THEN {message} WHEN {form} <> 'VOID' THEN {whole} END"
    if kind.base == "boolean":
        number = f"try_variant_get({value}, '$', 'double') <> 0"
        return (
            f"CASE WHEN {container} THEN {message} WHEN {form} = 'BOOLEAN' THEN try_variant_get({value}, '$', 'boolean') "
            f"WHEN {form} = 'STRING' THEN {cast(text, VARCHAR, kind)} WHEN {form} <> 'VOID' THEN {number} END"
        )
    if is_integer(kind) or is_float(kind) or kind.base == "decimal":
        floating = cast(f"try_variant_get({value}, '$', 'double')", DOUBLE, kind)
        one = f"CAST(IF(try_variant_get({value}, '$', 'boolean'), 1, 0) AS {spark_type(kind)})"
        return (
            f"CASE WHEN {container} THEN {message} WHEN {form} = 'BOOLEAN' THEN {one} "
            f"WHEN {form} IN ('STRING', 'BIGINT') OR {form} LIKE 'DECIMAL(%,0)' THEN {cast(text, VARCHAR, kind)} "
            f"WHEN {form} <> 'VOID' THEN {floating} END"
        )
    return None
