"""Rows of VALUES that have to be computed: rows of one form are computed together, over their constants, which are data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from rowmerge_nb.spi.types import BIGINT, VARCHAR
from rowmerge_nb.sql.analyzer.rows.constant_columns import ConstantColumn, constant_of
from rowmerge_nb.sql.analyzer.rows.constant_rows import ConstantRows
from rowmerge_nb.sql.analyzer.rows.values_rows import LiteralRows, constant_rows
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.type_rules import is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
    from rowmerge_nb.sql.analyzer.rows.values_rows import Part, WrittenRow
    from rowmerge_nb.sql.analyzer.scope import ScopeField
    from rowmerge_nb.sql.tree import syntax as s
    from rowmerge_nb.sql.tree.statements import Span

FEW_ROWS: Final = 64
"""Up to this number, rows are computed one by one, so that an error at run time finds its place."""
MOST_FORMS: Final = 1_000
"""Each form is a query of its own, and the engine plans all of them."""
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
) -> tuple[q.Form, ...]:
    """Return the forms of rows some of which are computed. The rows are numbered in their order.

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
    found = [_computed(context, form, rows) for form, rows in forms.items()]
    if plain:
        found.append(_plain(context, plain, fields))
    return tuple(found)


def _plain(context: Context, parts: Sequence[tuple[npt.NDArray[np.int64], Part]], fields: Sequence[ScopeField]) -> q.Form:
    rows = constant_rows([part for _, part in parts], fields)
    assert rows is not None
    numbers = np.concatenate([numbers for numbers, _ in parts])
    values = tuple(e.Column(kind, name) for name, kind in zip(rows.names, rows.types, strict=True))
    return _form_of(context, values, rows.columns, numbers, values, rows.span_of)


def _computed(context: Context, form: tuple[e.Typed, ...], rows: _Rows) -> q.Form:
    if len(rows.numbers) == 1:
        # The errors of a row that is alone find their places.
        placed = zip(rows.first, rows.written.nodes, strict=True)
        return q.Form(tuple(replace(cell, origin=context.origin(node.span)) for cell, node in placed), number=rows.numbers[0])
    columns = [
        ConstantColumn.of_constants([constants[index] for constants in rows.constants]) for index in range(len(rows.constants[0]))
    ]
    constants = tuple(e.Column(constant.type, _parameter(index)) for index, constant in enumerate(rows.constants[0]))
    return _form_of(context, constants, columns, np.array(rows.numbers), form, _nowhere)


def _nowhere(_row: int, _column: int) -> None:
    """The place of a constant that always fits its type."""


def _form_of(
    context: Context,
    constants: tuple[e.Column, ...],
    columns: Sequence[ConstantColumn],
    numbers: npt.NDArray[np.int64],
    values: tuple[e.Typed, ...],
    span_of: Callable[[int, int], Span | None],
) -> q.Form:
    """Return values over constants, which become data together with the numbers of their rows."""
    names, kinds = [column.symbol for column in constants], [column.type for column in constants]
    data = ConstantRows((*names, q.ROW_NUMBER), (*kinds, BIGINT), (*columns, ConstantColumn.of_integers(numbers)), span_of)
    return q.Form(values, context.bind(data).view, (*constants, e.Column(BIGINT, q.ROW_NUMBER)))


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
