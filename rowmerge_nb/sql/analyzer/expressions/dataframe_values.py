"""What a DataFrame's columns hold, for hints and notices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.sql.typed.expressions import Column, Typed
from rowmerge_nb.sql.typed.type_rules import is_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.scope import ScopeField

_SAMPLES: Final = 100


def dataframe_column(
    context: Context, value: Typed, fields: Iterable[ScopeField]
) -> pa.ChunkedArray | None:
    """Return the values of a column, or None where they do not come from a DataFrame."""
    field = next(
        (f for f in fields if isinstance(value, Column) and f.symbol == value.symbol), None
    )
    if field is not None:
        for table in context.bindings.values():
            if table.name == field.table and isinstance(table.dataframe, pa.Table):
                return table.dataframe.column(str(field.name))
    return None


def first_texts(context: Context, value: Typed, fields: Iterable[ScopeField]) -> list[str]:
    """Return the first texts of a DataFrame's column, or none."""
    column = dataframe_column(context, value, fields) if is_text(value.type) else None
    return [] if column is None else texts_of(column)


def texts_of(column: pa.ChunkedArray) -> list[str]:
    """Return the first texts of a column that are not NULL."""
    texts: list[str] = column[:_SAMPLES].drop_null().cast(pa.string()).to_pylist()
    return texts
