"""Bounds of single columns in a condition, by which a connector can skip data.

Only certain bounds count: comparisons with constants, of types whose values compare alike
everywhere. The engine still applies the whole condition.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from rowmerge_nb.spi.page_source import ColumnDomain, Constraint
from rowmerge_nb.spi.types import BOOLEAN
from rowmerge_nb.sql.typed import expressions as e
from rowmerge_nb.sql.typed import queries as q
from rowmerge_nb.sql.typed.type_rules import RANGES, is_integer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.spi.types import Type

_MICROSECONDS: Final = 6
MOST_VALUES: Final = 1_000
"""The values of a longer list say no more than the smallest and the largest of them."""
_PYTHON_VALUES: Final = frozenset({"decimal", "varchar", "date", "timestamp"})
_MIRRORED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def constraint_of(condition: e.Typed | None, columns: Mapping[str, str]) -> Constraint:
    """Return the bounds that a condition sets to columns of a table; ``columns`` maps symbols to
    names.
    """
    domains: dict[str, ColumnDomain] = {}
    for part in conjuncts(condition) if condition is not None else ():
        symbol_domain = _domain(part)
        if symbol_domain is not None and symbol_domain[0] in columns:
            name = columns[symbol_domain[0]]
            domains[name] = (
                intersect(domains[name], symbol_domain[1]) if name in domains else symbol_domain[1]
            )
    return Constraint(domains)


def exact_constraint(condition: e.Typed | None, columns: Mapping[str, str]) -> Constraint | None:
    """Return the constraint that exactly the rows of a condition satisfy."""
    domains: dict[str, ColumnDomain] = {}
    for part in conjuncts(condition) if condition is not None else ():
        column_domain = _exact_domain(part)
        if column_domain is None or column_domain[0] not in columns:
            return None
        name = columns[column_domain[0]]
        domains[name] = (
            intersect(domains[name], column_domain[1]) if name in domains else column_domain[1]
        )
    return Constraint(domains)


def _exact_domain(part: e.Typed) -> tuple[str, ColumnDomain] | None:
    """Return the domain of a condition on one column if no other value satisfies it."""
    column_domain = _domain(part)
    if column_domain is None or not isinstance(part, e.Apply):
        return column_domain
    if part.name == "in set":
        return column_domain if column_domain[1].values is not None else None
    comparison = _comparison(part)
    if comparison is None:
        return column_domain
    column, value, operator = comparison
    if operator not in {"<", ">"} or is_integer(column.type):
        return column_domain
    # A bound of the domain belongs to it, and the constant does not.
    step = _step(column.type)
    if step is None:
        return None
    try:
        return column.symbol, (
            ColumnDomain(high=value - step) if operator == "<" else ColumnDomain(low=value + step)
        )
    except (ArithmeticError, ValueError):
        return None


def _step(sql_type: Type) -> Any:
    """Return the distance between neighboring values of a type, or None."""
    if sql_type.base == "date":
        return dt.timedelta(days=1)
    if sql_type.base == "decimal":
        return Decimal(1).scaleb(-sql_type.parameters[1])
    if _is_timestamp(sql_type):
        return dt.timedelta(microseconds=10 ** (_MICROSECONDS - sql_type.parameters[0]))
    return None


def domain_of_column(query: q.Query, symbol: str, sql_type: Type) -> ColumnDomain | None:
    """Return the values of a query's column, to be compared with one of type ``sql_type``; None
    unless all are constants.

    >>> from rowmerge_nb.spi.types import BIGINT
    >>> rows = [[e.Constant(BIGINT, "5")], [e.Constant(BIGINT, "2")]]
    >>> domain_of_column(q.Valued((e.Column(BIGINT, "id$1"),), 2, lambda most: rows), "id$1", BIGINT)
    ColumnDomain(values=(5, 2), low=None, high=None)
    """
    cells = _cells(query, symbol)
    values = (
        None if cells is None else {_value(cell): None for cell in cells if not e.is_null(cell)}
    )
    if values is None or None in values:
        return None
    return ColumnDomain(tuple(value for value in values if _fitting(value, sql_type) is not None))


def _cells(query: q.Query | None, symbol: str) -> list[e.Typed] | None:
    if isinstance(query, q.Valued):
        index = next((i for i, column in enumerate(query.columns) if column.symbol == symbol), None)
        rows = query.first(query.count) if index is not None and query.count <= MOST_VALUES else ()
        cells = [row[index] for row in rows if index is not None]
        return (
            [cell for cell in cells if not isinstance(cell, str)]
            if 0 < len(cells) == query.count
            else None
        )
    if isinstance(query, q.Selected):
        value = next((value for column, value in query.outputs if column.symbol == symbol), None)
        if isinstance(value, e.Column) and not value.outer:
            return _cells(query.source, value.symbol)
        return [value] if value is not None else None
    return None


def conjuncts(node: e.Typed) -> list[e.Typed]:
    """Return the parts of AND. ``(a, b) = (c, d)`` has one per field."""
    if isinstance(node, e.Apply) and node.name == "and":
        return [part for argument in node.arguments for part in conjuncts(argument)]
    if (
        isinstance(node, e.Apply)
        and node.name == "="
        and all(isinstance(a, e.Apply) and a.name == "row" for a in node.arguments)
    ):
        pairs = zip(*(e.children(argument) for argument in node.arguments), strict=True)
        return [
            part
            for left, right in pairs
            for part in conjuncts(e.Apply(node.type, "=", (left, right)))
        ]
    return [node]


def conjunction(terms: Sequence[e.Typed]) -> e.Typed:
    return terms[0] if len(terms) == 1 else e.Apply(BOOLEAN, "and", tuple(terms))


def intersect(one: ColumnDomain, other: ColumnDomain) -> ColumnDomain:
    """Return the domain of the values in both.

    >>> intersect(ColumnDomain(low=1, high=9), ColumnDomain(values=(0, 5, 12)))
    ColumnDomain(values=(5,), low=1, high=9)
    """
    lows = [bound for bound in (one.low, other.low) if bound is not None]
    highs = [bound for bound in (one.high, other.high) if bound is not None]
    both = ColumnDomain(None, max(lows, default=None), min(highs, default=None))
    sets = [domain.values for domain in (one, other) if domain.values is not None]
    if not sets:
        return both
    other_sets = [frozenset(others) for others in sets[1:]]
    values = (value for value in sets[0] if all(value in others for others in other_sets))
    within = (
        v
        for v in values
        if (both.low is None or v >= both.low) and (both.high is None or v <= both.high)
    )
    return replace(both, values=tuple(within))


def same_values(one: Type, other: Type) -> bool:
    """Return whether two types store equal values alike, except for the width of integers and the
    length of text.

    >>> from rowmerge_nb.spi.types import parse_type
    >>> same_values(parse_type("integer"), parse_type("bigint")), same_values(parse_type("date"), parse_type("timestamp(6)"))
    (True, False)
    """
    if is_integer(one) and is_integer(other):
        return True
    if one.base == other.base == "decimal":
        return bool(one.parameters[1] == other.parameters[1])
    return one.base == other.base and (one.base == "varchar" or one == other)


def compares_by_value(sql_type: Type) -> bool:
    """Not numbers with NaN, padded text, or zones."""
    return (
        is_integer(sql_type)
        or sql_type.base in {"decimal", "varchar", "date", "boolean"}
        or _is_timestamp(sql_type)
    )


def plain_column(node: e.Typed) -> e.Column | None:
    """Return the column below lossless casts, or None."""
    column = _column_below_casts(node)
    return column if column is not None and compares_by_value(column.type) else None


def key_column(node: e.Typed) -> e.Column | None:
    """Return the column below lossless casts if it can be a join key, or None.

    This includes types whose values are stored alike only within one type. `same_values` compares
    both sides.
    """
    column = _column_below_casts(node)
    return (
        column
        if column is not None and (compares_by_value(column.type) or _is_stored_alike(column.type))
        else None
    )


def _column_below_casts(node: e.Typed) -> e.Column | None:
    while (
        isinstance(node, e.Apply)
        and node.name == "cast"
        and _keeps_all(node.arguments[0].type, node.type)
    ):
        node = node.arguments[0]
    return node if isinstance(node, e.Column) and not node.outer else None


def _is_stored_alike(sql_type: Type) -> bool:
    # A zone of a value's own is no part of the instant that is compared.
    return sql_type.base in {"char", "uuid", "varbinary", "time"} or (
        sql_type.base == "timestamp with time zone" and not sql_type.fields
    )


def described(constraint: Constraint) -> str:
    """Return a constraint in words.

    >>> described(Constraint({"id": ColumnDomain(low=1, high=9), "region": ColumnDomain(values=("EU",))}))
    "id from 1 to 9, region in ('EU')"
    """
    return ", ".join(f"{name} {_in_words(domain)}" for name, domain in constraint.domains.items())


def _in_words(domain: ColumnDomain) -> str:
    if domain.values is not None:
        return f"in ({', '.join(map(_literal, domain.values))})"
    bounds = [("from", domain.low), ("to", domain.high)]
    return " ".join(f"{word} {_literal(bound)}" for word, bound in bounds if bound is not None)


def _literal(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def _domain(part: e.Typed) -> tuple[str, ColumnDomain] | None:
    if isinstance(part, e.Column) and part.type.base == "boolean" and not part.outer:
        return part.symbol, ColumnDomain((True,))
    if not isinstance(part, e.Apply):
        return None
    if part.name == "in set":
        return _listed(part)
    if part.name == "in" and not part.detail:
        column = plain_column(part.arguments[0])
        values = [_value(item) for item in part.arguments[1:]]
        if column is None or None in values:
            return None
        return column.symbol, ColumnDomain(
            tuple(v for v in values if _fitting(v, column.type) is not None)
        )
    comparison = _comparison(part)
    if comparison is None:
        return None
    column, value, operator = comparison
    domain = _compared(operator, value, column.type)
    return (column.symbol, domain) if domain is not None else None


def _comparison(part: e.Apply) -> tuple[e.Column, Any, str] | None:
    if part.name not in _MIRRORED:
        return None
    left, right = part.arguments
    column, value, operator = plain_column(left), _value(right), part.name
    if column is None:
        column, value, operator = plain_column(right), _value(left), _MIRRORED[part.name]
    return None if column is None or value is None else (column, value, operator)


def _listed(part: e.Apply) -> tuple[str, ColumnDomain] | None:
    constants, negated = part.detail
    column = plain_column(part.arguments[0])
    if (
        column is None
        or negated
        or not (is_integer(constants.type) or constants.type.base in _PYTHON_VALUES)
    ):
        return None
    if len(constants.values) > MOST_VALUES:
        bounds = pc.min_max(constants.values)
        low, high = (_fitting(bounds[name].as_py(), column.type) for name in ("min", "max"))
        return column.symbol, ColumnDomain(low=low, high=high)
    return column.symbol, ColumnDomain(
        tuple(v for v in constants.values.to_pylist() if _fitting(v, column.type) is not None)
    )


def _compared(operator: str, value: Any, sql_type: Type) -> ColumnDomain | None:
    """Return the domain of a comparison.

    If the column cannot hold the constant, only ``=`` has one.
    """
    fitting = _fitting(value, sql_type)
    if operator == "=":
        return ColumnDomain(() if fitting is None else (fitting,))
    if fitting is None:
        return None
    if is_integer(sql_type) and operator in {"<", ">"}:
        fitting = _fitting(value - 1 if operator == "<" else value + 1, sql_type)
        if fitting is None:
            return ColumnDomain(())
    return ColumnDomain(high=fitting) if operator in {"<", "<="} else ColumnDomain(low=fitting)


def _fitting(value: Any, sql_type: Type) -> Any:
    if is_integer(sql_type):
        end = RANGES[sql_type.base]
        return int(value) if value == int(value) and -end <= value < end else None
    if sql_type.base == "decimal":
        precision, scale = sql_type.parameters
        scaled = Decimal(value).scaleb(scale)
        return Decimal(value) if scaled == int(scaled) and abs(scaled) < 10**precision else None
    if _is_timestamp(sql_type) and isinstance(value, dt.datetime):
        return value if value.microsecond % 10 ** (6 - sql_type.parameters[0]) == 0 else None
    return value


def _value(node: e.Typed) -> Any:
    """Return the value of a constant, unless a cast may change it."""
    if isinstance(node, e.Apply) and node.name == "cast" and node.detail is None:
        inner = node.arguments[0].type
        return _value(node.arguments[0]) if _keeps_all(inner, node.type) else None
    if (
        isinstance(node, e.Apply)
        and node.name == "negate"
        and (is_integer(node.type) or node.type.base == "decimal")
    ):
        value = _value(node.arguments[0])
        return -value if value is not None else None
    if not isinstance(node, e.Constant) or node.value is None:
        return None
    sql_type, text = node.type, node.value
    if is_integer(sql_type):
        return int(text)
    if sql_type.base == "decimal":
        return Decimal(text)
    if sql_type.base == "varchar":
        return text
    if sql_type.base == "boolean":
        return text == "true"
    try:
        if sql_type.base == "date":
            return dt.date.fromisoformat(text)
        return dt.datetime.fromisoformat(text) if _is_timestamp(sql_type) else None
    except ValueError:
        # A year that Python's dates do not have.
        return None


def _is_timestamp(sql_type: Type) -> bool:
    return sql_type.base == "timestamp" and bool(sql_type.parameters[0] <= _MICROSECONDS)


def _keeps_all(source: Type, target: Type) -> bool:
    if source == target:
        return True
    if is_integer(source) and is_integer(target):
        return RANGES[source.base] <= RANGES[target.base]
    if is_integer(source) and target.base == "decimal":
        return bool(10 ** (target.parameters[0] - target.parameters[1]) > RANGES[source.base])
    if source.base == target.base == "decimal":
        (precision, scale), (wider, finer) = source.parameters, target.parameters
        return bool(finer >= scale and wider - finer >= precision - scale)
    if source.base == target.base == "varchar":
        return not target.parameters or bool(
            source.parameters and source.parameters[0] <= target.parameters[0]
        )
    return (
        _is_timestamp(source)
        and _is_timestamp(target)
        and bool(source.parameters[0] <= target.parameters[0])
    )
