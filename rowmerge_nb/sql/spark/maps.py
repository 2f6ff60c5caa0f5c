"""Maps, which Spark neither groups nor compares, as sorted arrays of entries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.sql.spark.text import once
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import has_map

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.spi.types import Type


def as_entries(text: str, sql_type: Type) -> str:
    """Write a value with sorted entries instead of maps; NULL equals NULL, and NaN NaN, as in
    Trino's groups.
    """
    if sql_type.base != "map":
        return _within(text, sql_type, as_entries)
    entries = f"map_entries({text})"
    key, value = sql_type.parameters
    if has_map(key) or has_map(value):
        pair = (
            f"named_struct('key', {as_entries('`$entry`.key', key)}, 'value',"
            f" {as_entries('`$entry`.value', value)})"
        )
        entries = f"transform({entries}, `$entry` -> {pair})"
    return f"sort_array({entries})"


def as_maps(text: str, sql_type: Type) -> str:
    """Restore the maps of `as_entries`."""
    if sql_type.base != "map":
        return _within(text, sql_type, as_maps)
    key, value = sql_type.parameters
    if has_map(key) or has_map(value):
        pair = (
            f"named_struct('key', {as_maps('`$entry`.key', key)}, 'value',"
            f" {as_maps('`$entry`.value', value)})"
        )
        text = f"transform({text}, `$entry` -> {pair})"
    return f"map_from_entries({text})"


def _within(text: str, sql_type: Type, write: Callable[[str, Type], str]) -> str:
    if not has_map(sql_type):
        return text
    if sql_type.base == "array":
        return f"transform({text}, `$element` -> {write('`$element`', sql_type.parameters[0])})"
    names = [name or f"field{index}" for index, name in enumerate(sql_type.fields)]

    def fields(row: str) -> str:
        values = (
            write(f"{row}.{backquoted(name)}", part)
            for name, part in zip(names, sql_type.parameters, strict=True)
        )
        pairs = ", ".join(
            f"{e.text_literal(name)}, {value}" for name, value in zip(names, values, strict=True)
        )
        return f"IF({row} IS NULL, NULL, named_struct({pairs}))"

    return once(fields, text)
