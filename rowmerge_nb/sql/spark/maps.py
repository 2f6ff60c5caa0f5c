"""Maps as Spark groups, tells apart and looks up no maps: as arrays of their entries, sorted by their keys, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.sql.spark.text import once
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import has_map

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.spi.types import Type


def as_entries(text: str, kind: Type) -> str:
    """Write a value with arrays of sorted entries in place of its maps: equal for equal values, and for no others.

    NULL equals NULL in it, and NaN equals NaN, as where Trino makes groups.

    Args:
        text: the value.
        kind: its type.

    >>> from rowmerge_nb.spi.types import BIGINT, VARCHAR, Type
    >>> as_entries("`m`", Type("map", (VARCHAR, BIGINT)))
    'sort_array(map_entries(`m`))'
    >>> as_entries("`b`", BIGINT)
    '`b`'
    """
    if kind.base != "map":
        return _within(text, kind, as_entries)
    entries = f"map_entries({text})"
    key, value = kind.parameters
    if has_map(key) or has_map(value):
        pair = f"named_struct('key', {as_entries('`$entry`.key', key)}, 'value', {as_entries('`$entry`.value', value)})"
        entries = f"transform({entries}, `$entry` -> {pair})"
    return f"sort_array({entries})"


def as_maps(text: str, kind: Type) -> str:
    """Write the value that `as_entries` has written so.

    Args:
        text: what was written.
        kind: the type of the value.

    >>> from rowmerge_nb.spi.types import BIGINT, VARCHAR, Type
    >>> as_maps("`m`", Type("map", (VARCHAR, BIGINT)))
    'map_from_entries(`m`)'
    """
    if kind.base != "map":
        return _within(text, kind, as_maps)
    key, value = kind.parameters
    if has_map(key) or has_map(value):
        pair = f"named_struct('key', {as_maps('`$entry`.key', key)}, 'value', {as_maps('`$entry`.value', value)})"
        text = f"transform({text}, `$entry` -> {pair})"
    return f"map_from_entries({text})"


def _within(text: str, kind: Type, write: Callable[[str, Type], str]) -> str:
    if not has_map(kind):
        return text
    if kind.base == "array":
        return f"transform({text}, `$element` -> {write('`$element`', kind.parameters[0])})"
    names = [name or f"field{index}" for index, name in enumerate(kind.fields)]

    def fields(row: str) -> str:
        written = (write(f"{row}.{backquoted(name)}", part) for name, part in zip(names, kind.parameters, strict=True))
        pairs = ", ".join(f"{e.text_literal(name)}, {value}" for name, value in zip(names, written, strict=True))
        return f"IF({row} IS NULL, NULL, named_struct({pairs}))"

    return once(fields, text)
