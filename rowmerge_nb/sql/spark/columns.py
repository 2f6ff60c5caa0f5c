"""Columns of SELECT lists in Spark SQL."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rowmerge_nb.base.names import backquoted
from rowmerge_nb.spi.types import UNKNOWN
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import (
    entries_type,
    instant,
    parts_of,
    spark_type,
    without_unknown,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


def names(columns: Iterable[e.Column]) -> str:
    return ", ".join(backquoted(column.symbol) for column in columns)


def item(text: str, symbol: str) -> str:
    """Write a value with an alias if needed."""
    return text if text == backquoted(symbol) else f"{text} AS {backquoted(symbol)}"


def restored(column: e.Column, symbol: str) -> str:
    """Write the column ``symbol`` with its maps restored; see `rowmerge_nb.sql.spark.maps`."""
    return item(
        print_spark(e.as_maps(e.Column(entries_type(column.type), symbol), column.type)),
        column.symbol,
    )


def output(column: e.Column, value: e.Typed, *, distinct: bool) -> str:
    """Write a column of a SELECT list; ``distinct`` makes it comparable."""
    symbol = backquoted(column.symbol)
    if value.type == UNKNOWN:
        # A column that is always NULL needs a type. An aggregate is written, since it reduces the
        # rows.
        is_written = any(isinstance(part, e.Aggregate) for part in e.walk(value))
        return f"CAST({print_spark(value) if is_written else 'NULL'} AS BOOLEAN) AS {symbol}"
    origin = value.origin
    # Instants are equal whatever their zones.
    plain = instant(value.type) if distinct else value.type
    if plain != value.type:
        value = e.Apply(plain, "cast", (value,), origin=origin)
    value = replace(e.as_entries(value), origin=origin) if distinct else value
    text = print_spark(value)
    is_computed = not isinstance(value, e.Column)
    if is_computed and any(part == UNKNOWN or part.base == "row" for part in parts_of(value.type)):
        # If a field cannot be NULL, Spark assumes that the row cannot be either.
        text = f"CAST({text} AS {spark_type(without_unknown(value.type))})"
    return item(text, column.symbol)
