"""Computed rows of VALUES; rows of one form are computed together, over their constants as data."""

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
"""Up to this number, rows are computed one by one, so that run-time errors have exact places."""
MOST_FORMS: Final = 1_000
"""Each form is a query that the engine plans."""
_TAKES_COLUMNS: Final = frozenset(
    {
        "cast",
        "arithmetic",
        "concat",
        "array",
        "row",
        "coalesce",
        "=",
        "<>",
        "<",
        "<=",
        ">",
        ">=",
        "and",
        "or",
        "not",
        "is null",
    }
)
"""Operations that apply to columns as they do to constants."""


@dataclass
class _Rows:
    first: tuple[e.Typed, ...]
    source_row: WrittenRow
    numbers: list[int] = field(default_factory=list)
    constants: list[list[e.Constant]] = field(default_factory=list)


def computed_rows(
    context: Context,
    analyzer: ExpressionAnalyzer,
    node: s.Values,
    parts: Sequence[Part],
    fields: Sequence[ScopeField],
) -> tuple[q.Form, ...]:
    """Return the forms of numbered rows; AnalysisError NOT_SUPPORTED for too many forms."""
    column_types = [f.type for f in fields]
    plain: list[tuple[npt.NDArray[np.int64], Part]] = []
    forms: dict[tuple[e.Typed, ...], _Rows] = {}
    number = 0
    for part in parts:
        if isinstance(part, LiteralRows) or part.columns is not None:
            plain.append((np.arange(number, number + part.count), part))
        else:
            cells = tuple(
                analyzer.coerce(cell, column_type)
                for cell, column_type in zip(part.cells, column_types, strict=True)
            )
            form, constants = _form(cells)
            rows = forms.setdefault(form, _Rows(cells, part))
            rows.numbers.append(number)
            rows.constants.append(constants)
        number += part.count
    if len(forms) > MOST_FORMS:
        context.refuse(
            f"The rows of VALUES hold expressions of {len(forms)} different forms; {MOST_FORMS} can"
            " be computed at once",
            node.span,
            "Write literals, or split the statement; expressions that differ only in"
            " literals count as one form.",
        )
    row_forms = [_computed(context, form, rows) for form, rows in forms.items()]
    if plain:
        row_forms.append(_plain(context, plain, fields))
    return tuple(row_forms)


def _plain(
    context: Context,
    parts: Sequence[tuple[npt.NDArray[np.int64], Part]],
    fields: Sequence[ScopeField],
) -> q.Form:
    rows = constant_rows([part for _, part in parts], fields)
    assert rows is not None
    numbers = np.concatenate([numbers for numbers, _ in parts])
    values = tuple(
        e.Column(sql_type, name) for name, sql_type in zip(rows.names, rows.types, strict=True)
    )
    return _form_of(context, values, rows.columns, numbers, values, rows.span_of)


def _computed(context: Context, form: tuple[e.Typed, ...], rows: _Rows) -> q.Form:
    if len(rows.numbers) == 1:
        # Errors of a single row have exact places.
        cells = zip(rows.first, rows.source_row.nodes, strict=True)
        return q.Form(
            tuple(replace(cell, origin=context.origin(node.span)) for cell, node in cells),
            number=rows.numbers[0],
        )
    columns = [
        ConstantColumn.of_constants([constants[index] for constants in rows.constants])
        for index in range(len(rows.constants[0]))
    ]
    constants = tuple(
        e.Column(constant.type, _parameter(index))
        for index, constant in enumerate(rows.constants[0])
    )
    return _form_of(context, constants, columns, np.array(rows.numbers), form, _nowhere)


def _nowhere(_row: int, _column: int) -> None: ...


def _form_of(
    context: Context,
    constants: tuple[e.Column, ...],
    columns: Sequence[ConstantColumn],
    numbers: npt.NDArray[np.int64],
    values: tuple[e.Typed, ...],
    span_of: Callable[[int, int], Span | None],
) -> q.Form:
    names, types = [column.symbol for column in constants], [column.type for column in constants]
    data = ConstantRows(
        (*names, q.ROW_NUMBER),
        (*types, BIGINT),
        (*columns, ConstantColumn.of_integers(numbers)),
        span_of,
    )
    return q.Form(values, context.bind(data).view, (*constants, e.Column(BIGINT, q.ROW_NUMBER)))


# -- forms


def _form(cells: Sequence[e.Typed]) -> tuple[tuple[e.Typed, ...], list[e.Constant]]:
    constants: list[e.Constant] = []
    return tuple(_extracted(cell, constants) for cell in cells), constants


def _extracted(node: e.Typed, constants: list[e.Constant], *, is_measured: bool = True) -> e.Typed:
    """Return an expression with columns instead of constants; without ``is_measured``, lengths of
    texts do not matter.
    """
    constant = constant_of(node)
    if constant is not None:
        sql_type = VARCHAR if is_text(node.type) and not is_measured else node.type
        constants.append(e.Constant(sql_type, constant.value))
        return e.Column(sql_type, _parameter(len(constants) - 1))
    if not isinstance(node, e.Apply) or node.name not in _TAKES_COLUMNS:
        return node
    measured = node.name == "cast" and is_text(node.type)
    return replace(
        node,
        arguments=tuple(
            _extracted(inner, constants, is_measured=measured) for inner in node.arguments
        ),
    )


def _parameter(index: int) -> str:
    # Symbols never begin with $, so this hides no outer column.
    return f"$c{index}"
