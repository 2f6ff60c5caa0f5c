"""Rows of constants on their way into a table: which of them a column cannot hold, found by the error that says so.

Spark, which stores them, tells the value and not where it was written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.sql.typed.type_rules import is_float, is_integer, is_text

if TYPE_CHECKING:
    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.rows.constant_rows import ConstantRows
    from rowmerge_nb.sql.tree.statements import Span


@dataclass(frozen=True)
class StoredRows:
    """Rows of constants that an INSERT stores.

    Args:
        rows: the rows.
        columns: the table's columns into which their columns go.
    """

    rows: ConstantRows
    columns: tuple[ColumnMetadata, ...]

    def span_of(self, code: str, message: str) -> Span | None:
        """Return the place of the first constant that an error can be about; None if it is about none of them.

        Args:
            code: Trino's code of the error.
            message: what it says.
        """
        table = self.rows.table()
        found = []
        for index, (kind, column) in enumerate(zip(self.rows.types, self.columns, strict=True)):
            unfit = _unfit(table.column(index), kind, column, code, message)
            row = -1 if unfit is None else pc.index(unfit, value=True).as_py()
            if row >= 0:
                found.append((row, index))
        return self.rows.span_of(*min(found)) if found else None


def _unfit(values: pa.ChunkedArray, kind: Type, column: ColumnMetadata, code: str, message: str) -> pa.ChunkedArray | None:
    """Return for each value whether the error can be about it; None if it is not about the column."""
    if code == "CONSTRAINT_VIOLATION":
        about = not column.nullable and message.endswith(f"NOT NULL column: {column.name.lower()}")
        return values.is_null() if about else None
    if is_text(kind) and is_text(column.type) and column.type.parameters:
        about = message.endswith(f"when casting from {kind} to {column.type} on INSERT")
        return pc.greater(pc.utf8_length(pc.utf8_rtrim(values, " ")), column.type.parameters[0]) if about else None
    text = _value_in(message, column.type)
    if text is None:
        return None
    rounded = kind.base == "decimal" and is_integer(column.type)
    value = _value(text, kind)
    return None if value is None else pc.equal(_rounded(values) if rounded and "." not in text else values, value)


def _value_in(message: str, kind: Type) -> str | None:
    """Return the number that a column's type cannot hold, as a message has it."""
    name = f"DECIMAL({', '.join(map(str, kind.parameters))})" if kind.base == "decimal" else kind.base.upper()
    pattern = rf"Out of range for {kind.base}: (?P<far>\S+)|Cannot cast (?:[^']* )?'(?P<cast>[^']*)' to {re.escape(name)}"
    match = re.fullmatch(pattern, message)
    return match and (match["far"] or match["cast"])


def _value(text: str, kind: Type) -> Any:
    """Return a number as a value of a column of constants."""
    try:
        if is_integer(kind):
            return int(text)
        return float(text) if is_float(kind) else pa.scalar(Decimal(text)).cast(kind.arrow)
    except (ValueError, ArithmeticError, pa.ArrowException):
        return None


def _rounded(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.round(values, 0, round_mode="half_towards_infinity")
