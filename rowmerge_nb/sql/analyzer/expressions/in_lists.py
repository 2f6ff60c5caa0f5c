"""IN over a long list of constants: the list is data, in which values are looked up."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn

import pyarrow.compute as pc

from rowmerge_nb.spi.types import BOOLEAN, UNKNOWN, Type
from rowmerge_nb.sql.analyzer.rows.constant_columns import (
    ConstantColumn,
    constant_of,
    literal_constant,
)
from rowmerge_nb.sql.analyzer.rows.constant_rows import ConstantRows
from rowmerge_nb.sql.analyzer.rows.values_rows import literal_columns
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed.constant_set import ConstantSet
from rowmerge_nb.sql.typed.type_rules import common_type, instant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.sql.analyzer.expressions.expression import ExpressionAnalyzer
    from rowmerge_nb.sql.tree.statements import Span

_SHORT: Final = 64
"""Lists of up to this length are written value by value."""
_LONGEST: Final = 5_000
"""The maximum length of lists that cannot be looked up."""
_LOOKED_UP: Final = frozenset(
    {
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "decimal",
        "double",
        "varchar",
        "uuid",
        "varbinary",
        "date",
        "timestamp",
    }
)
_VALUE: Final = "v"


def long_list(analyzer: ExpressionAnalyzer, node: s.InList) -> e.Typed | None:
    if len(node.items) <= _SHORT and not any(isinstance(item, s.Literals) for item in node.items):
        return None
    value = analyzer.analyze(node.value)
    items = [
        (
            literal_columns(analyzer.context, item)[0]
            if isinstance(item, s.Literals)
            else analyzer.analyze(item)
        )
        for item in node.items
    ]
    common = instant(_common(analyzer, node, value, items))
    constants, computed = _partitioned(items)
    if not constants:
        return e.Apply(BOOLEAN, "in", analyzer.comparable((value, *computed), common), node.negated)
    column = ConstantColumn.joined(constants)
    if common.base not in _LOOKED_UP:
        return _value_by_value(analyzer, node, value, items, common)
    value_to_find, *others = analyzer.comparable((value, *computed), common)
    constant_set = _set(node, column, common)
    if not others:
        return e.Apply(BOOLEAN, "in set", (value_to_find,), (constant_set, node.negated))
    # The list is the union of two lists.
    both = (
        e.Apply(BOOLEAN, "in set", (value_to_find,), (constant_set, False)),
        e.Apply(BOOLEAN, "in", (value_to_find, *others), False),
    )
    either = e.Apply(BOOLEAN, "or", both)
    return e.Apply(BOOLEAN, "not", (either,)) if node.negated else either


def _partitioned(
    items: Sequence[ConstantColumn | e.Typed],
) -> tuple[list[ConstantColumn], list[e.Typed]]:
    columns, constants, computed = [], [], []
    for item in items:
        if isinstance(item, ConstantColumn):
            columns.append(item)
            continue
        constant = constant_of(item)
        if constant is None:
            computed.append(item)
        else:
            constants.append(constant)
    return [*columns, *([ConstantColumn.of_constants(constants)] if constants else [])], computed


def _set(node: s.InList, column: ConstantColumn, common: Type) -> ConstantSet:
    rows = ConstantRows((_VALUE,), (common,), (column,), lambda _row, _column: node.error_span)
    values = pc.unique(rows.table().column(0).combine_chunks())
    return ConstantSet(common, values.drop_null(), bool(values.null_count))


def _value_by_value(
    analyzer: ExpressionAnalyzer,
    node: s.InList,
    value: e.Typed,
    items: Sequence[ConstantColumn | e.Typed],
    common: Type,
) -> e.Typed:
    parts: list[e.Typed] = [value]
    for item, item_node in zip(items, node.items, strict=True):
        if isinstance(item, ConstantColumn) and isinstance(item_node, s.Literals):
            parts += map(literal_constant, item_node.run.texts)
        elif not isinstance(item, ConstantColumn):
            parts.append(item)
    if len(parts) > _LONGEST:
        analyzer.context.refuse(
            f"IN over a list of {len(parts) - 1} values of type {common} is not"
            f" supported by this engine: the maximum is {_LONGEST}",
            node.error_span,
            "Cast the value, for instance to varchar, or write IN (VALUES ...).",
        )
    return e.Apply(BOOLEAN, "in", analyzer.comparable(parts, common), node.negated)


# -- types


def _common(
    analyzer: ExpressionAnalyzer,
    node: s.InList,
    value: e.Typed,
    items: Sequence[ConstantColumn | e.Typed],
) -> Type:
    common: Type | None = value.type
    for item in items:
        common = (
            common_type(common, item.type) if common is not None and item.type is not None else None
        )
    return common if common is not None else _refuse(analyzer, node, value, items)


def _refuse(
    analyzer: ExpressionAnalyzer,
    node: s.InList,
    value: e.Typed,
    items: Sequence[ConstantColumn | e.Typed],
) -> NoReturn:
    typed_items: list[tuple[Type, Callable[[], Span]]] = [
        (value.type, lambda: node.value.error_span)
    ]
    for item, item_node in zip(items, node.items, strict=True):
        if isinstance(item_node, s.Literals):
            run = item_node.run
            typed_items += [
                (literal_constant(text).type, partial(run.span_of, index))
                for index, text in enumerate(run.texts)
            ]
        elif isinstance(item, e.Typed):
            typed_items.append((item.type, partial(_span, item_node)))
    common = UNKNOWN
    for item_type, index in typed_items:
        wider = common_type(common, item_type)
        if wider is None:
            listed = ", ".join(dict.fromkeys(str(item_type) for item_type, _ in typed_items))
            analyzer.no_common_type("IN value and list items", common, item_type, listed, index())
        common = wider
    raise AssertionError(node)


def _span(node: s.Expression) -> Span:
    return node.error_span
