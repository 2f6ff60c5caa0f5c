"""The value of an expression of the statement model for one row, in plain Python."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any, Final

from proof.statements.model import Call, Cast, Column, InSubquery, Literal, ScalarSubquery
from proof.statements.operations import OPERATIONS

if TYPE_CHECKING:
    from proof.statements.model import Expression, Scenario, Table
    from rowmerge_nb.spi.types import Type

__all__ = ["Environment", "OutOfRangeError", "coerce", "evaluate", "rows_in_scope"]

Environment = Mapping[tuple[str, str], Any]
"""The values in scope, by relation and column."""

_INTEGERS: Final = {"integer": 1 << 31, "bigint": 1 << 63}
_EXACT: Final = Context(prec=76, rounding=ROUND_HALF_UP)


class OutOfRangeError(Exception):
    """A value does not fit the type that it is assigned or cast to."""


def rows_in_scope(table: Table) -> list[dict[tuple[str, str], Any]]:
    """Return a table's rows as environments, under the table's own name."""
    return [
        {(table.name, name): value for name, value in zip(table.names, row, strict=True)}
        for row in table.rows
    ]


def evaluate(expression: Expression, row: Environment, scenario: Scenario) -> Any:
    """Return the value of an expression.

    Args:
        expression: the expression.
        row: the values of the columns in scope.
        scenario: the tables that subqueries read, as they were before the statement.

    Raises:
        OutOfRangeError: a CAST does not fit.
    """
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Column):
        return row[expression.relation, expression.name]
    if isinstance(expression, Call):
        return OPERATIONS[expression.name](
            *(evaluate(argument, row, scenario) for argument in expression.arguments)
        )
    if isinstance(expression, Cast):
        return coerce(evaluate(expression.argument, row, scenario), expression.type)
    if isinstance(expression, InSubquery):
        return _in_subquery(expression, row, scenario)
    return _scalar(expression, row, scenario)


def _values(table: Table, column: str) -> list[Any]:
    position = table.names.index(column)
    return [row[position] for row in table.rows]


def _in_subquery(expression: InSubquery, row: Environment, scenario: Scenario) -> bool | None:
    values = _values(scenario.table(expression.table), expression.column)
    value = evaluate(expression.argument, row, scenario)
    # IN over no rows is FALSE, for NULL too.
    is_in = OPERATIONS["IN"](value, *values) if values else False
    return OPERATIONS["NOT"](is_in) if expression.negated else is_in


def _scalar(expression: ScalarSubquery, row: Environment, scenario: Scenario) -> Any:
    table = scenario.table(expression.table)
    values = _values(table, expression.column)
    if expression.outer is not None:
        outer = evaluate(expression.outer, row, scenario)
        keys = _values(table, expression.key)
        values = [
            value
            for value, key in zip(values, keys, strict=True)
            if OPERATIONS["="](key, outer) is True
        ]
    return aggregate(expression.function, values)


def aggregate(function: str, values: list[Any]) -> Any:
    """Return ``max``, ``min`` or ``count`` of values, ignoring NULLs.

    >>> aggregate("max", [1, None, 3]), aggregate("count", [None]), aggregate("min", [])
    (3, 0, None)
    """
    non_null = [value for value in values if value is not None]
    if function == "count":
        return len(non_null)
    return (max if function == "max" else min)(non_null, default=None)


def coerce(value: Any, sql_type: Type) -> Any:
    """Convert a value to a type as an assignment does; decimals are rounded half away from zero.

    Raises:
        OutOfRangeError: it does not fit.

    >>> from rowmerge_nb.spi.types import INTEGER, decimal_of
    >>> coerce(Decimal("-2.5"), INTEGER), coerce(7, decimal_of(5, 2))
    (-3, Decimal('7.00'))
    """
    if value is None:
        return None
    if sql_type.base in _INTEGERS:
        number = (
            int(_EXACT.quantize(value, Decimal(1))) if isinstance(value, Decimal) else int(value)
        )
        if not -_INTEGERS[sql_type.base] <= number < _INTEGERS[sql_type.base]:
            raise OutOfRangeError(f"{value} does not fit {sql_type}")
        return number
    if sql_type.base == "decimal":
        precision, scale = sql_type.parameters
        exact = _EXACT.quantize(_EXACT.create_decimal(value), Decimal(1).scaleb(-scale))
        if abs(exact) >= Decimal(1).scaleb(precision - scale):
            raise OutOfRangeError(f"{value} does not fit {sql_type}")
        # Zero has no sign in SQL.
        return abs(exact) if exact == 0 else exact
    if sql_type.base == "double":
        return float(value)
    if sql_type.base == "varchar":
        return _text(value)
    if sql_type.base == "date" and isinstance(value, datetime):
        return value.date()
    if sql_type.base == "timestamp" and not isinstance(value, datetime):
        return datetime.combine(value, time.min)
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, date):
        return value.isoformat()
    return format(value, "f") if isinstance(value, Decimal) else str(value)
