"""SHOW STATS: what is known of the rows of a table, a view or a query without reading them, in the form that Trino gives it."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi.types import DOUBLE, VARCHAR
from rowmerge_nb.sql.analyzer import analysis as a
from rowmerge_nb.sql.analyzer.queries import QueryAnalyzer
from rowmerge_nb.sql.tree import statements as st
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.sql.typed.estimates import ColumnEstimate, NotEstimatedError, estimated
from rowmerge_nb.sql.typed.expressions import Column
from rowmerge_nb.sql.typed.types import is_integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analyzer.context import Context
    from rowmerge_nb.sql.analyzer.relations import QueryResult, RelationResult

_COLUMNS: Final = (
    ("column_name", VARCHAR),
    ("data_size", DOUBLE),
    ("distinct_values_count", DOUBLE),
    ("nulls_fraction", DOUBLE),
    ("row_count", DOUBLE),
    ("low_value", VARCHAR),
    ("high_value", VARCHAR),
)
_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a timestamp without a zone
_PLAIN: Final = (Decimal("1e-3"), Decimal("1e7"))
"""Between these Java writes a number without a power of ten."""


def show_statistics(context: Context, statement: st.Statement) -> a.Analysis:
    """Analyze SHOW STATS: a row for every column, and one for the rows; what is not known is NULL.

    Args:
        context: the statement's state.
        statement: the statement.
    """
    assert isinstance(statement, st.ShowStats)
    analyzer = QueryAnalyzer(context)
    found: QueryResult | RelationResult
    if statement.query is not None:
        found = analyzer.query(statement.query)
    else:
        assert statement.name is not None
        found = analyzer.relation(s.Table(context.statement_span(statement.name.span), statement.name))
    return a.ListingAnalysis(context.text, (), tuple(context.notices), "SHOW STATS", _COLUMNS, tuple(_rows(context, found)))


def _rows(context: Context, found: QueryResult | RelationResult) -> Sequence[tuple[Any, ...]]:
    try:
        estimate = estimated(found.tree)
    except NotEstimatedError as error:
        context.error(
            "NOT_SUPPORTED",
            f"SHOW STATS of a query with {error} is not supported by this engine",
            context.statement_span(),
            "What is estimated are the rows of one table: SELECT ... FROM a table, WHERE and LIMIT.",
        )
    rows = []
    for index, field in enumerate(found.fields):
        known = estimate.of(Column(field.type, field.symbol))
        size = known.size * estimate.rows * (1 - known.nulls)
        numbers = (_number(size), _number(known.distinct), _number(known.nulls), None)
        rows.append((field.name or f"_col{index}", *numbers, *_bounds(field.type, known)))
    return [*rows, (None, None, None, None, _number(estimate.rows), None, None)]


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _bounds(kind: Type, known: ColumnEstimate) -> tuple[str | None, str | None]:
    return _text(kind, known.low), _text(kind, known.high)


def _text(kind: Type, value: float) -> str | None:
    """Write a bound as Trino does: numbers as Java has them, all of them doubles."""
    if not math.isfinite(value):
        return None
    if is_integer(kind):
        return str(math.floor(value + 0.5))
    if kind.base == "boolean":
        return {0.0: "false", 1.0: "true"}.get(value, _java(repr(value)))
    try:
        if kind.base == "date":
            return str(_EPOCH.date() + dt.timedelta(days=math.floor(value + 0.5)))
        if kind.base == "timestamp":
            return _moment(_EPOCH + dt.timedelta(microseconds=int(value)), min(kind.parameters[0], 6))
    except OverflowError:
        # Python has no such date.
        return None
    if kind.base == "real":
        import numpy as np

        return _java(str(np.float32(value)))
    return _java(repr(value))


def _moment(value: dt.datetime, precision: int) -> str:
    text = value.isoformat(" ", "microseconds")
    return text[: len(text) - 6 + precision] if precision else text[:-7]


def _java(text: str) -> str:
    """Write a number as Java does, which has a digit behind the point always.

    >>> _java("1e+16"), _java("250.0"), _java("0.0001")
    ('1.0E16', '250.0', '1.0E-4')
    """
    number = Decimal(text)
    if number == 0 or _PLAIN[0] <= abs(number) < _PLAIN[1]:
        plain = f"{number:f}"
        return plain if "." in plain else f"{plain}.0"
    sign, digits, _ = number.normalize().as_tuple()
    places = "".join(map(str, digits))
    return f"{'-' * sign}{places[0]}.{places[1:] or '0'}E{number.adjusted()}"
