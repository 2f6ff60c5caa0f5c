"""What a DataFrame's columns hold, for hints and notices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed.expressions import Column, Typed
from rowmerge_nb.sql.typed.type_rules import is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.scope import ScopeField

_DATE: Final = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})")
_MONTHS: Final = 12
_SAMPLES: Final = 20


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


def date_layouts(
    context: Context,
    operands: Sequence[tuple[s.Expression, Typed]],
    fields: Iterable[ScopeField],
) -> tuple[str, tuple[str, ...]]:
    """Return a date such as 31/12/2026 among the texts, and its layouts for ``date_parse``.

    The texts are the literals and the first values of columns. There are two layouts if the day may
    be first or second, and none unless each text is such a date.
    """
    texts: list[str] = []
    fields = list(fields)
    for node, value in operands:
        if isinstance(node, s.Literal) and node.kind == "string":
            texts.append(node.value)
        elif is_text(value.type):
            column = dataframe_column(context, value, fields)
            texts += [] if column is None else column.drop_null()[:_SAMPLES].to_pylist()
    dates = [match for match in map(_DATE.fullmatch, texts) if match is not None]
    if not dates or len(dates) < len(texts):
        return "", ()
    _, sign, _, year = dates[0].groups()
    first, second = (max(int(date[group]) for date in dates) for group in (1, 3))
    orders = [("%d", "%m")] if second <= _MONTHS else []
    orders += [("%m", "%d")] if first <= _MONTHS else []
    full_year = "%Y" if len(year) > len("26") else "%y"
    return dates[0][0], tuple(sign.join([*order, full_year]) for order in orders)


def date_parse_calls(operand: str, layouts: Sequence[str]) -> str:
    """Return the calls that make dates of texts.

    >>> date_parse_calls("due", ["%d.%m.%Y"])
    "date_parse(due, '%d.%m.%Y')"
    """
    return " or ".join(f"date_parse({operand}, '{layout}')" for layout in layouts)
