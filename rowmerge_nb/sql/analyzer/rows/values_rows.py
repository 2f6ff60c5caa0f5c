"""Analyzes VALUES."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from rowmerge_nb.spi.types import UNKNOWN, Type, row_of
from rowmerge_nb.sql.analyzer.rows.constant_columns import (
    BadLiteral,
    ConstantColumn,
    constant_of,
    literal_constant,
)
from rowmerge_nb.sql.analyzer.rows.constant_rows import ConstantRows
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.type_rules import common_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
    from rowmerge_nb.sql.analyzer.scope import ScopeField
    from rowmerge_nb.sql.tree.statements import Span


@dataclass(frozen=True)
class WrittenRow:
    nodes: tuple[s.Expression, ...]
    cells: tuple[e.Typed, ...]

    count = 1

    @property
    def width(self) -> int:
        return len(self.cells)

    @cached_property
    def columns(self) -> tuple[ConstantColumn, ...] | None:
        constants = [constant_of(cell) for cell in self.cells]
        columns = tuple(
            ConstantColumn.of_constants([constant])
            for constant in constants
            if constant is not None
        )
        return columns if len(columns) == len(constants) else None

    def types(self) -> Sequence[Type | None]:
        return [cell.type for cell in self.cells]

    def types_of(self, _row: int) -> list[Type]:
        return [cell.type for cell in self.cells]

    def span_of(self, _row: int, column: int) -> Span:
        return self.nodes[column].span


@dataclass(frozen=True)
class LiteralRows:
    node: s.Literals
    columns: tuple[ConstantColumn, ...]

    @property
    def count(self) -> int:
        return self.columns[0].count

    @property
    def width(self) -> int:
        return len(self.columns)

    def types(self) -> Sequence[Type | None]:
        return [column.type for column in self.columns]

    def types_of(self, row: int) -> list[Type]:
        run = self.node.run
        return [
            literal_constant(text).type
            for text in run.texts[row * run.width : (row + 1) * run.width]
        ]

    def span_of(self, row: int, column: int) -> Span:
        return self.node.run.span_of(row * self.width + column)

    def before(self, row: int) -> LiteralRows:
        run = self.node.run
        return replace(
            self,
            columns=tuple(
                ConstantColumn.of_literals(run.column(c)[:row]) for c in range(run.width)
            ),
        )


Part = WrittenRow | LiteralRows


def values_rows(context: Context, analyzer: ExpressionAnalyzer, node: s.Values) -> list[Part]:
    return [
        (
            LiteralRows(row, literal_columns(context, row))
            if isinstance(row, s.Literals)
            else _written_row(analyzer, row)
        )
        for row in node.rows
    ]


def _written_row(analyzer: ExpressionAnalyzer, row: s.Expression) -> WrittenRow:
    if isinstance(row, s.RowConstructor):
        return WrittenRow(row.items, tuple(map(analyzer.analyze, row.items)))
    value = analyzer.analyze(row)
    if value.type.base != "row":
        return WrittenRow((row,), (value,))
    field_types = value.type.parameters
    return WrittenRow(
        (row,) * len(field_types),
        tuple(
            e.Apply(field_type, "field", (value,), index)
            for index, field_type in enumerate(field_types)
        ),
    )


def literal_columns(context: Context, node: s.Literals) -> tuple[ConstantColumn, ...]:
    run = node.run
    columns: list[ConstantColumn] = []
    bad: list[tuple[int, BadLiteral]] = []
    for index in range(run.width):
        try:
            columns.append(ConstantColumn.of_literals(run.column(index)))
        except BadLiteral as literal:
            bad.append((literal.index * run.width + index, literal))
    if bad:
        index, first = min(bad, key=lambda pair: pair[0])
        span = run.span_of(index)
        begin = span.start + first.offset
        context.error(
            "INVALID_LITERAL",
            first.message,
            replace(span, start=begin, column=span.column + first.offset),
        )
    return tuple(columns)


def common_row(context: Context, node: s.Values, parts: Sequence[Part]) -> list[Type]:
    column_types: list[Type] = [UNKNOWN] * parts[0].width
    for part in parts:
        if part.width != len(column_types):
            context.error(
                "TYPE_MISMATCH",
                f"Values rows have mismatched sizes: {len(column_types)} vs {part.width}",
                node.span,
            )
        both = _common(column_types, part.types())
        if both is None:
            _refuse(context, node, column_types, part)
        column_types = both
    return column_types


def _common(column_types: Sequence[Type], others: Sequence[Type | None]) -> list[Type] | None:
    both = [
        None if other is None else common_type(column_type, other)
        for column_type, other in zip(column_types, others, strict=True)
    ]
    common_types = [column_type for column_type in both if column_type is not None]
    return common_types if len(common_types) == len(both) else None


def _refuse(context: Context, node: s.Values, column_types: list[Type], part: Part) -> NoReturn:
    fitting, unfit = 0, part.count - 1
    while isinstance(part, LiteralRows) and fitting < unfit:
        middle = (fitting + unfit + 1) // 2
        if _common(column_types, part.before(middle).types()) is None:
            unfit = middle - 1
        else:
            fitting = middle
    before = (
        (_common(column_types, part.before(fitting).types()) or column_types)
        if isinstance(part, LiteralRows) and fitting
        else column_types
    )
    first, second = (
        row_of((None, sql_type) for sql_type in types) for types in (before, part.types_of(fitting))
    )
    context.error(
        "TYPE_MISMATCH",
        f"Values rows have mismatched types: {first} vs {second}",
        node.span,
        "Write a row of several values in parentheses: VALUES (1, 'a'), (2, 'b')."
        if len(column_types) == 1
        else "Cast the values of a column to one type: CAST(... AS ...).",
    )


def constant_rows(parts: Sequence[Part], fields: Sequence[ScopeField]) -> ConstantRows | None:
    part_columns = [part.columns for part in parts]
    columns = [part for part in part_columns if part is not None]
    if len(columns) < len(part_columns):
        return None
    starts = np.cumsum([0, *(part.count for part in parts)])

    def span_of(row: int, column: int) -> Span:
        index = int(np.searchsorted(starts, row, "right")) - 1
        return parts[index].span_of(row - int(starts[index]), column)

    joined = tuple(
        ConstantColumn.joined([part[index] for part in columns]) for index in range(len(fields))
    )
    return ConstantRows(
        tuple(f.symbol for f in fields), tuple(f.type for f in fields), joined, span_of
    )
