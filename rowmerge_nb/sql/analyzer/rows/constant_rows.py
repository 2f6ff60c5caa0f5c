"""The rows of VALUES that are data, converted to Arrow once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ExecutionError
from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.sql.analyzer.analysis import TableBinding
from rowmerge_nb.sql.analyzer.rows.constant_columns import UnfitConstant
from rowmerge_nb.sql.typed.expressions import Constant
from rowmerge_nb.sql.typed.type_rules import cast_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.rows.constant_columns import ConstantColumn
    from rowmerge_nb.sql.tree.statements import Span


_numbers: Final = itertools.count(1)


@dataclass(frozen=True)
class ConstantRows:
    """Rows of constants; ``span_of`` returns the place of a constant by row and column."""

    names: tuple[str, ...]
    types: tuple[Type, ...]
    columns: tuple[ConstantColumn, ...]
    span_of: Callable[[int, int], Span | None] = field(compare=False)

    @property
    def count(self) -> int:
        return self.columns[0].count

    def table(self) -> pa.Table:
        arrays = [self._values(index) for index in range(len(self.columns))]
        return pa.Table.from_arrays(arrays, names=list(self.names))

    def first(self, most: int) -> list[list[Constant]]:
        if self.count > most:
            return []
        try:
            columns = [python_values(array) for array in self.table().columns]
        except ExecutionError:
            return []
        return [
            [
                Constant(sql_type, _plain(value))
                for sql_type, value in zip(self.types, row, strict=True)
            ]
            for row in zip(*columns, strict=True)
        ]

    def _values(self, index: int) -> pa.Array:
        sql_type = self.types[index]
        try:
            return self.columns[index].values(sql_type)
        except UnfitConstant as unfit:
            span = self.span_of(unfit.index, index)
            error = ExecutionError(
                f"Cannot cast {cast_name(unfit.type)} '{unfit.text}' to {cast_name(sql_type)}",
                code="NUMERIC_VALUE_OUT_OF_RANGE",
                step="run",
            )
            if span is not None:
                error.at(span)
            raise error from None


def _plain(value: Any) -> str | None:
    return (
        None
        if value is None
        else (
            str(value).lower()
            if isinstance(value, bool)
            else value.hex()
            if isinstance(value, bytes)
            else str(value)
        )
    )


def bound(rows: ConstantRows) -> TableBinding:
    number = next(_numbers)
    columns: Sequence[ColumnMetadata] = [
        ColumnMetadata(n, sql_type) for n, sql_type in zip(rows.names, rows.types, strict=True)
    ]
    return TableBinding(
        display="VALUES",
        catalog="",
        name=(f"VALUES {number}",),
        columns=tuple(columns),
        view=f"rowmerge_values_{number}_view",
        row_count=rows.count,
        rows=rows,
    )
