"""Notices about conversions that surprise: numbers as text, times without a zone, dates as text."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.words import code
from rowmerge_nb.sql.analyzer.expressions.dataframe_values import dataframe_column
from rowmerge_nb.sql.analyzer.expressions.date_texts import SORTED, date_operands, layouts_of
from rowmerge_nb.sql.parser.column_names import column_in_sql
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed.type_rules import is_float, is_text
from rowmerge_nb.sql.typed.zones import session_zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.scope import ScopeField
    from rowmerge_nb.sql.tree.statements import Span
    from rowmerge_nb.sql.typed.expressions import Typed

_EXAMPLE: Final = 417.0
_NAIVE: Final = "timestamp"
_ZONED: Final = "timestamp with time zone"
_UTC: Final = "UTC"


def note_double_text(
    context: Context, node: s.Cast, value: Typed, target: Type, fields: Iterable[ScopeField]
) -> None:
    """Add a notice if a statement that stores rows casts a double to text, which has an exponent."""
    if not (context.stores and is_float(value.type) and is_text(target)):
        return
    number, is_whole = _first_number(context, value, fields)
    operand = node.value.span.of(context.text)
    inner = "bigint" if is_whole else "decimal(18, 2)"
    remedy = code(f"CAST(CAST({operand} AS {inner}) AS {target})")
    _note_once(
        context,
        f"{code(node.span.of(context.text))} writes {number!r} as '{double_text(number)}', as Trino"
        f" does. For {'whole numbers' if is_whole else 'two decimals'} write {remedy}.",
        node.span,
    )


def double_text(number: float) -> str:
    """Return a double as Trino writes it.

    >>> double_text(417.0), double_text(-0.05), double_text(5.0), double_text(1e300)
    ('4.17E2', '-5.0E-2', '5.0E0', '1.0E300')
    """
    digits, _, exponent = f"{Decimal(repr(number)).normalize():E}".partition("E")
    return f"{digits}{'' if '.' in digits else '.0'}E{int(exponent)}"


def _first_number(
    context: Context, value: Typed, fields: Iterable[ScopeField]
) -> tuple[float, bool]:
    column = dataframe_column(context, value, fields)
    if column is not None:
        numbers = column.cast(pa.float64()).drop_null()
        numbers = numbers.filter(pc.is_finite(numbers))
        if len(numbers):
            is_whole = pc.all(pc.equal(pc.floor(numbers), numbers)).as_py()
            return numbers[0].as_py(), is_whole
    return _EXAMPLE, True


def note_date_text(
    context: Context,
    node: s.Expression,
    operands: Sequence[tuple[s.Expression, Typed]],
    fields: Iterable[ScopeField],
) -> None:
    """Add a notice if texts that are dates are compared, and neither their order nor their layouts
    are those of dates.
    """
    if not all(is_text(value.type) for _, value in operands):
        return
    dates = date_operands(context, operands, fields)
    columns = [part for part, _ in operands if not isinstance(part, s.Literal)]
    if dates is None or not columns:
        return
    is_order = isinstance(node, s.Between) or (
        isinstance(node, s.Binary) and node.operator not in {"=", "<>"}
    )
    fits = all(layouts_of([literal.value, dates.example]) for literal in dates.literals)
    if fits and (dates.layouts[0] in SORTED or not is_order):
        return
    text = node.span.of(context.text)
    _note_once(
        context,
        f"{code(text)} compares texts such as {dates.example} character by character, not as dates."
        f" For dates write {code(dates.as_dates(context.text, node.span, columns))}."
        f"{dates.other_pattern}",
        node.span,
    )


def note_session_zone(context: Context, nodes: Iterable[tuple[s.Expression, Type]]) -> None:
    """Add a notice if a comparison takes a timestamp without a zone for one in UTC."""
    sides = list(nodes)
    zoned = next((node for node, sql_type in sides if sql_type.base == _ZONED), None)
    for node, sql_type in sides:
        if zoned is not None and sql_type.base == _NAIVE and isinstance(node, s.Name):
            other = code(zoned.span.of(context.text))
            _note_utc(context, node.span, node.span.of(context.text), other)


def note_stored_zone(
    context: Context, span: Span, text: str, types: tuple[Type, Type], column: str
) -> None:
    """Add a notice if a column with zones gets values without: ``types`` are the value's and the
    column's.
    """
    if (types[0].base, types[1].base) == (_NAIVE, _ZONED):
        _note_utc(context, span, text, f"the column {code(column_in_sql(column))}")


def _note_utc(context: Context, span: Span, text: str, other: str) -> None:
    # A zone that the user has chosen is no surprise.
    if session_zone() != _UTC:
        return
    remedy = code(f"with_timezone({text}, 'Europe/Berlin')")
    _note_once(
        context,
        f"{code(text)} has no time zone: beside {other}, which has one, it is taken as UTC. For the"
        f" clock of another zone write {remedy}.",
        span,
    )


def _note_once(context: Context, message: str, span: Span) -> None:
    if all(notice.message != message for notice in context.notices):
        context.notice(message, span)
