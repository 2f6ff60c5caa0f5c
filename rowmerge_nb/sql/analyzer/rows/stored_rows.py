"""Locates a constant of an INSERT that its column cannot hold, since Spark's error has only its
value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.sql.typed.type_rules import cast_name, is_float, is_integer, is_text

if TYPE_CHECKING:
    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.rows.constant_rows import ConstantRows
    from rowmerge_nb.sql.tree.statements import Span


@dataclass(frozen=True)
class StoredRows:
    """Constant rows, and the columns that store them."""

    rows: ConstantRows
    columns: tuple[ColumnMetadata, ...]

    def span_of(self, code: str, message: str) -> Span | None:
        table = self.rows.table()
        cells = []
        for index, (sql_type, column) in enumerate(zip(self.rows.types, self.columns, strict=True)):
            unfit = _unfit(table.column(index), sql_type, column, code, message)
            row = -1 if unfit is None else pc.index(unfit, value=True).as_py()
            if row >= 0:
                cells.append((row, index))
        return self.rows.span_of(*min(cells)) if cells else None


def _unfit(
    values: pa.ChunkedArray, sql_type: Type, column: ColumnMetadata, code: str, message: str
) -> pa.ChunkedArray | None:
    """Return per value whether it can have caused the error; None if another column did."""
    if code == "CONSTRAINT_VIOLATION":
        is_about = not column.nullable and message.endswith(
            f"NOT NULL column: {column.name.lower()}"
        )
        return values.is_null() if is_about else None
    if is_text(sql_type) and is_text(column.type) and column.type.parameters:
        is_about = message.endswith(f"when casting from {sql_type} to {column.type} on INSERT")
        return (
            pc.greater(pc.utf8_length(pc.utf8_rtrim(values, " ")), column.type.parameters[0])
            if is_about
            else None
        )
    text = _value_in(message, column.type)
    if text is None:
        return None
    rounded = sql_type.base == "decimal" and is_integer(column.type)
    value = _value(text, sql_type)
    return (
        None
        if value is None
        else pc.equal(_rounded(values) if rounded and "." not in text else values, value)
    )


def _value_in(message: str, sql_type: Type) -> str | None:
    pattern = (
        rf"Out of range for {sql_type.base}: (?P<far>\S+)|Cannot cast (?:[^']* )?'(?P<cast>[^']*)'"
        rf" to {re.escape(cast_name(sql_type))}"
    )
    match = re.fullmatch(pattern, message)
    return match and (match["far"] or match["cast"])


def _value(text: str, sql_type: Type) -> Any:
    try:
        if is_integer(sql_type):
            return int(text)
        return float(text) if is_float(sql_type) else pa.scalar(Decimal(text)).cast(sql_type.arrow)
    except (ValueError, ArithmeticError, pa.ArrowException):
        return None


def _rounded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.round(values, 0, round_mode="half_towards_infinity")
