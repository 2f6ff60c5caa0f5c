"""Aggregates as DuckDB SQL that has Trino's meaning, and the types by which DuckDB groups and sorts as Trino does.

DuckDB adds whole numbers and decimals without an overflow on the way, where Trino ends in an error. It also orders NaN and -0.0 in its own way.
So an aggregate looks at the values that it has seen. If the two engines could differ on these values, it raises an error, and Spark answers instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.names import quoted
from rowmerge_nb.spi.types import Type, decimal_of
from rowmerge_nb.sql.duckdb.decimals import decimal_quotient
from rowmerge_nb.sql.duckdb.duckdb_text import UnprintableError, duckdb_type, failure, text_literal
from rowmerge_nb.sql.typed.type_rules import is_float, is_zoned, parts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb.sql.typed.expressions import Aggregate, Column

_ORDERED: Final = frozenset(
    {
        *("boolean", "tinyint", "smallint", "integer", "bigint", "decimal", "varchar", "char", "uuid", "varbinary"),
        *("date", "time", "timestamp", "timestamp with time zone"),
    }
)
"""Types whose values DuckDB groups and orders as Trino does, whatever the values are."""
DOUBT: Final = "DOUBT"
"""The code of an error that no user sees: the values are such that the engines may differ."""
_MOST_BIGINT: Final = 2**63 - 1
_EXACT_DOUBLE: Final = 2**53
_MOST_DIGITS: Final = 36
"""Sums of this many digits can be divided, doubled and rounded within a HUGEINT."""
_SHORT: Final = 24
"""No table has as many rows as a sum of decimals with this many digits needs to become too long."""


def aggregate_text(call: Aggregate) -> str:
    """Return an aggregate over columns as DuckDB SQL.

    Raises:
        UnprintableError: DuckDB has no form of it that is known to mean the same.

    >>> from rowmerge_nb.spi.types import BIGINT
    >>> from rowmerge_nb.sql.typed.expressions import Aggregate, Column
    >>> aggregate_text(Aggregate(BIGINT, "count", (Column(BIGINT, "id"),), distinct=True))
    'count(DISTINCT "id")'
    """
    writer = _WRITERS.get((call.name, len(call.arguments)))
    if writer is None or call.order_by:
        raise UnprintableError(f"the aggregate {call.name}")
    return writer(_Call(call), *(argument.type for argument in call.arguments))


def check_grouped(kind: Type) -> None:
    """Raise an error unless DuckDB makes the same groups of values of a type as Trino, and shows the same value of each.

    Raises:
        UnprintableError: it may not.
    """
    if kind.base not in _ORDERED or is_zoned(kind):
        raise UnprintableError(f"groups of {kind}")


def guarded_key(key: Column) -> str:
    """Return a number by which rows are grouped, which is an error if the engines may differ on what it equals, or on which of equals is shown.

    >>> from rowmerge_nb.spi.types import DOUBLE
    >>> from rowmerge_nb.sql.typed.expressions import Column
    >>> guarded_key(Column(DOUBLE, "x")).startswith('CASE WHEN isnan("x") OR ("x" = 0 AND signbit("x")) THEN ')
    True
    """
    column = quoted(key.symbol)
    return f"CASE WHEN {_is_odd(column)} THEN {failure(DOUBT, text_literal('groups of such values'))} ELSE {column} END"


def _is_odd(column: str) -> str:
    return f"isnan({column}) OR ({column} = 0 AND signbit({column}))"


def check_sorted(kind: Type) -> None:
    """Raise an error unless DuckDB has the order of values of a type that Trino has; NaN is the largest number for both.

    Raises:
        UnprintableError: it may not.
    """
    if (kind.base not in _ORDERED and not is_float(kind)) or is_zoned(kind):
        raise UnprintableError(f"an order of {kind}")


def check_carried(kind: Type) -> None:
    """Raise an error unless values of a type come out of DuckDB as they went in.

    Raises:
        UnprintableError: they may not.
    """
    for part in parts_of(kind):
        if part.base not in {"array", "map", "row", "json", "unknown"}:
            duckdb_type(part)


class _Call:
    """Writes the functions of DuckDB that one aggregate needs, with its DISTINCT and FILTER."""

    def __init__(self, call: Aggregate) -> None:
        self.call = call
        self.columns = [_column_text(argument) for argument in call.arguments]
        self.filter = "" if call.filter is None else f" FILTER (WHERE {_column_text(call.filter)})"

    def text(self, function: str, argument: str | None = None) -> str:
        distinct = "DISTINCT " if self.call.distinct else ""
        return f"{function}({distinct}{self.columns[0] if argument is None else argument}){self.filter}"

    def guarded(self, doubt: str, value: str) -> str:
        """Return a value, which is an error if there is a doubt that Trino has the same one; ``""`` is no doubt."""
        return (
            value
            if not doubt
            else f"CASE WHEN {doubt} THEN {failure(DOUBT, text_literal(f'{self.call.name} of such values'))} ELSE {value} END"
        )

    def largest(self, kind: str) -> str:
        """Return what no sum of the values exceeds on the way, whatever their order is."""
        low, high = self.text("min"), self.text("max")
        return f"CAST(greatest(abs(CAST({high} AS {kind})), abs(CAST({low} AS {kind}))) AS DOUBLE) * {self.text('count')}"


def _column_text(node: object) -> str:
    column: Column = node  # type: ignore[assignment]
    return quoted(column.symbol)


def _count_rows(call: _Call) -> str:
    return f"count(*){call.filter}"


def _count(call: _Call, kind: Type) -> str:
    if call.call.distinct:
        check_grouped(kind)
    return call.text("count")


def _approx_distinct(call: _Call, kind: Type) -> str:
    check_grouped(kind)
    return f"count(DISTINCT {call.columns[0]}){call.filter}"


def _count_if(call: _Call, _: Type) -> str:
    return call.text("count", f"CASE WHEN {call.columns[0]} THEN true END")


def _extreme(call: _Call, kind: Type) -> str:
    value = call.text(call.call.name)
    if not is_float(kind):
        check_grouped(kind)
        return value
    column = call.columns[0]
    return call.guarded(call.text("bool_or", _is_odd(column)), value)


def _sum(call: _Call, kind: Type) -> str:
    value = call.text("sum")
    if kind.base == "bigint":
        return call.guarded(f"{call.largest('HUGEINT')} >= {_MOST_BIGINT}", f"CAST({value} AS BIGINT)")
    if kind.base == "decimal":
        return call.guarded(_is_long(call, kind), f"CAST({value} AS {duckdb_type(call.call.type)})")
    return _of_floats(call, kind, "sum")


def _avg(call: _Call, kind: Type) -> str:
    if kind.base == "bigint":
        quotient = f"CAST({call.text('sum')} AS DOUBLE) / {call.text('count')}"
        return call.guarded(f"{call.largest('HUGEINT')} >= {_EXACT_DOUBLE}", quotient)
    if kind.base == "decimal":
        summed, count = decimal_of(_MOST_DIGITS, kind.parameters[1]), decimal_of(19, 0)
        parts = (f"CAST({call.text('sum')} AS {duckdb_type(decimal_of(38, kind.parameters[1]))})", call.text("count"))
        quotient = decimal_quotient(*parts, (summed, count), call.call.type, "NULL")
        return call.guarded(_is_long(call, kind), quotient)
    return _of_floats(call, kind, "avg")


def _of_floats(call: _Call, kind: Type, function: str) -> str:
    if not is_float(kind) or call.call.distinct:
        raise UnprintableError(f"{call.call.name} of {'distinct ' if call.call.distinct else ''}{kind}")
    value = call.text(function, f"CAST({call.columns[0]} AS DOUBLE)")
    return f"CAST({value} AS {duckdb_type(kind)})"


def _is_long(call: _Call, kind: Type) -> str:
    if kind.parameters[0] <= _SHORT:
        return ""
    digits = _MOST_DIGITS - kind.parameters[1]
    return f"{call.largest(duckdb_type(kind))} >= CAST('1e{digits}' AS DOUBLE)"


def _all_or_any(call: _Call, _: Type) -> str:
    return call.text("bool_or" if call.call.name == "bool_or" else "bool_and")


_WRITERS: Final[dict[tuple[str, int], Callable[..., str]]] = {
    ("count", 0): _count_rows,
    ("count", 1): _count,
    ("count_if", 1): _count_if,
    ("approx_distinct", 1): _approx_distinct,
    ("sum", 1): _sum,
    ("avg", 1): _avg,
    **{(name, 1): _extreme for name in ("min", "max")},
    **{(name, 1): _all_or_any for name in ("bool_and", "bool_or", "every")},
}
