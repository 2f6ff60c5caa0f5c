"""Rows of VALUES that have to be computed: rows of one form are computed by one SELECT over their constants, which are data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from rowmerge_nb.names import backquoted
from rowmerge_nb.spi.types import BIGINT, VARCHAR
from rowmerge_nb.sql.analyzer.constant_columns import ConstantColumn, constant_of
from rowmerge_nb.sql.analyzer.constant_rows import ConstantRows
from rowmerge_nb.sql.analyzer.values import LiteralRows, constant_rows
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.types import is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.expressions import ExpressionAnalyzer
    from rowmerge_nb.sql.analyzer.scope import ScopeField
    from rowmerge_nb.sql.analyzer.values import Part, WrittenRow
    from rowmerge_nb.sql.tree import syntax as s
    from rowmerge_nb.sql.tree.statements import Span

FEW_ROWS: Final = 64
"""So many rows are printed one by one, which lets an error at run time find its place."""
MOST_FORMS: Final = 1_000
"""Each form is a SELECT of its own, and Spark plans all of them."""
_ROW: Final = "$row"
_TAKES_COLUMNS: Final = frozenset(
    {"cast", "arithmetic", "concat", "array", "row", "coalesce", "=", "<>", "<", "<=", ">", ">=", "and", "or", "not", "is null"}
)
"""Operations that mean the same of a column as of a constant, and are written alike."""


@dataclass
class _Rows:
    """The rows of one form: the first of them, and per row its number among all rows and its constants."""

    first: tuple[e.Typed, ...]
    written: WrittenRow
    numbers: list[int] = field(default_factory=list)
    constants: list[list[e.Constant]] = field(default_factory=list)


def computed_rows(
    context: Context, analyzer: ExpressionAnalyzer, node: s.Values, parts: Sequence[Part], fields: Sequence[ScopeField]
) -> tuple[str, tuple[str, ...]]:
    """Return the Spark SQL text of rows some of which are computed, in their order, and the views that it reads.

    Args:
        context: the statement's state.
        analyzer: coerces values.
        node: VALUES as it was written.
        parts: its rows.
        fields: its columns.

    Raises:
        AnalysisError: NOT_SUPPORTED where the rows have too many different forms.
    """
    kinds = [f.type for f in fields]
    plain: list[tuple[npt.NDArray[np.int64], Part]] = []
    forms: dict[tuple[e.Typed, ...], _Rows] = {}
    number = 0
    for part in parts:
        if isinstance(part, LiteralRows) or part.columns is not None:
            plain.append((np.arange(number, number + part.count), part))
        else:
            cells = tuple(analyzer.coerce(cell, kind) for cell, kind in zip(part.cells, kinds, strict=True))
            form, constants = _form(cells)
            rows = forms.setdefault(form, _Rows(cells, part))
            rows.numbers.append(number)
            rows.constants.append(constants)
        number += part.count
    if len(forms) > MOST_FORMS:
        context.error(
            "NOT_SUPPORTED",
            f"The rows of VALUES hold expressions of {len(forms)} different forms; {MOST_FORMS} can be computed at once",
            node.span,
            "Write literals, or split the statement; an expression that differs in its literals alone is one form.",
        )
    known = set(context.bindings)
    selects = [_computed(context, form, rows, fields) for form, rows in forms.items()]
    if plain:
        selects.append(_plain(context, plain, fields))
    names = ", ".join(backquoted(f.symbol) for f in fields)
    views = tuple(table.view for name, table in context.bindings.items() if name not in known)
    return f"SELECT {names} FROM ({_united(selects)}) ORDER BY {backquoted(_ROW)}", views


def _united(selects: Sequence[str]) -> str:
    """Put UNION ALL between queries, in halves of halves: Spark's parser goes as deep as they stand in one another."""
    if len(selects) == 1:
        return selects[0]
    middle = len(selects) // 2
    return f"({_united(selects[:middle])}) UNION ALL ({_united(selects[middle:])})"


def _plain(context: Context, parts: Sequence[tuple[npt.NDArray[np.int64], Part]], fields: Sequence[ScopeField]) -> str:
    rows = constant_rows([part for _, part in parts], fields)
    assert rows is not None
    numbers = np.concatenate([numbers for numbers, _ in parts])
    values = [backquoted(name) for name in rows.names]
    return _select(context, rows.names, rows.types, rows.columns, numbers, values, rows.span_of)


def _computed(context: Context, form: Sequence[e.Typed], rows: _Rows, fields: Sequence[ScopeField]) -> str:
    if len(rows.numbers) == 1:
        return _alone(context, rows, fields)
    columns = [
        ConstantColumn.of_constants([constants[index] for constants in rows.constants]) for index in range(len(rows.constants[0]))
    ]
    values = [f"{print_spark(cell)} AS {backquoted(f.symbol)}" for cell, f in zip(form, fields, strict=True)]
    names, kinds = [_parameter(index) for index in range(len(columns))], [constant.type for constant in rows.constants[0]]
    return _select(context, names, kinds, columns, np.array(rows.numbers), values, _nowhere)


def _alone(context: Context, rows: _Rows, fields: Sequence[ScopeField]) -> str:
    """Write the only row of its form, whose errors find their places."""
    placed = [replace(cell, origin=context.origin(node.span)) for cell, node in zip(rows.first, rows.written.nodes, strict=True)]
    values = [f"{print_spark(cell)} AS {backquoted(f.symbol)}" for cell, f in zip(placed, fields, strict=True)]
    return f"SELECT {', '.join(values)}, {rows.numbers[0]}L AS {backquoted(_ROW)}"


def _nowhere(_row: int, _column: int) -> None:
    """The place of a constant that always fits its type."""


def _select(
    context: Context,
    names: Sequence[str],
    kinds: Sequence[Type],
    columns: Sequence[ConstantColumn],
    numbers: npt.NDArray[np.int64],
    values: Sequence[str],
    span_of: Callable[[int, int], Span | None],
) -> str:
    """Write the SELECT over constants and the rows' numbers."""
    data = ConstantRows((*names, _ROW), (*kinds, BIGINT), (*columns, ConstantColumn.of_integers(numbers)), span_of)
    return f"SELECT {', '.join(values)}, {backquoted(_ROW)} FROM ({context.bind(data).query(data.names)})"


# -- forms --------------------------------------------------------------------------------------------------------------


def _form(cells: Sequence[e.Typed]) -> tuple[tuple[e.Typed, ...], list[e.Constant]]:
    """Return the cells of a row with columns in the place of constants, and the constants."""
    constants: list[e.Constant] = []
    return tuple(_taken_out(cell, constants) for cell in cells), constants


def _taken_out(node: e.Typed, constants: list[e.Constant], *, is_measured: bool = True) -> e.Typed:
    """Take the constants out of an expression.

    Args:
        node: the expression.
        constants: takes them.
        is_measured: the length of a text's type matters; else texts of all lengths make one form.
    """
    constant = constant_of(node)
    if constant is not None:
        kind = VARCHAR if is_text(node.type) and not is_measured else node.type
        constants.append(e.Constant(kind, constant.value))
        return e.Column(kind, _parameter(len(constants) - 1))
    if not isinstance(node, e.Apply) or node.name not in _TAKES_COLUMNS:
        return node
    measured = node.name == "cast" and is_text(node.type)
    return replace(node, arguments=tuple(_taken_out(inner, constants, is_measured=measured) for inner in node.arguments))


def _parameter(index: int) -> str:
    # Symbols never begin with $, so that this hides no column of a query around.
    return f"$c{index}"
