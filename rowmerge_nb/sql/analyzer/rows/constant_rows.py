"""Rows of constants: the part of VALUES that is data. They become Arrow once, and travel as the rows of a table do."""

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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.rows.constant_columns import ConstantColumn
    from rowmerge_nb.sql.tree.statements import Span


_numbers: Final = itertools.count(1)


@dataclass(frozen=True)
class ConstantRows:
    """Rows of constants, column by column.

    Args:
        names: the columns' names.
        types: their types, to which all constants of a column coerce.
        columns: the constants.
        span_of: gives the place of a constant in the statement, by its row and its column.

    >>> from rowmerge_nb.spi.types import INTEGER
    >>> from rowmerge_nb.sql.analyzer.rows.constant_columns import ConstantColumn
    >>> rows = ConstantRows(("a",), (INTEGER,), (ConstantColumn.of_literals(["1", "NULL"]),), lambda row, column: None)
    >>> rows.table().to_pydict()
    {'a': [1, None]}
    """

    names: tuple[str, ...]
    types: tuple[Type, ...]
    columns: tuple[ConstantColumn, ...]
    span_of: Callable[[int, int], Span | None] = field(compare=False)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.columns[0].count

    def table(self) -> pa.Table:
        """Return the rows.

        Raises:
            ExecutionError: INVALID_CAST_ARGUMENT for a number with more digits than the common type of its column has room for.
        """
        arrays = [self._values(index) for index in range(len(self.columns))]
        return pa.Table.from_arrays(arrays, names=list(self.names))

    def first(self, most: int) -> list[list[Constant]]:
        """Return the rows as constants, where they are few and each fits the type of its column; otherwise none."""
        if self.count > most:
            return []
        try:
            columns = [python_values(array) for array in self.table().columns]
        except ExecutionError:
            return []
        return [
            [Constant(kind, _plain(value)) for kind, value in zip(self.types, row, strict=True)]
            for row in zip(*columns, strict=True)
        ]

    def _values(self, index: int) -> pa.Array:
        kind = self.types[index]
        try:
            return self.columns[index].values(kind)
        except UnfitConstant as unfit:
            span = self.span_of(unfit.index, index)
            found = ExecutionError(
                f"Cannot cast {_written(unfit.type)} '{unfit.text}' to {_written(kind)}", code="INVALID_CAST_ARGUMENT", step="run"
            )
            if span is not None:
                found.at(span)
            raise found from None


def _plain(value: Any) -> str | None:
    """Write a value without the quotes of a literal."""
    return (
        None
        if value is None
        else str(value).lower()
        if isinstance(value, bool)
        else value.hex()
        if isinstance(value, bytes)
        else str(value)
    )


def _written(kind: Type) -> str:
    """Write a number's type as errors of casts do."""
    return f"DECIMAL({', '.join(map(str, kind.parameters))})" if kind.base == "decimal" else kind.base.upper()


def bound(rows: ConstantRows) -> TableBinding:
    """Return what a statement that reads these rows is bound to.

    >>> from rowmerge_nb.spi.types import INTEGER
    >>> from rowmerge_nb.sql.analyzer.rows.constant_columns import ConstantColumn
    >>> bound(ConstantRows(("a",), (INTEGER,), (ConstantColumn.of_literals(["1"]),), lambda row, column: None)).row_count
    1
    """
    number = next(_numbers)
    columns: Sequence[ColumnMetadata] = [ColumnMetadata(n, kind) for n, kind in zip(rows.names, rows.types, strict=True)]
    return TableBinding(
        display="VALUES",
        catalog="",
        name=(f"VALUES {number}",),
        columns=tuple(columns),
        view=f"rowmerge_values_{number}_view",
        row_count=rows.count,
        rows=rows,
    )
