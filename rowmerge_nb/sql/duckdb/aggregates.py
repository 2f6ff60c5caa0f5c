"""Aggregates as DuckDB SQL, and checks of types.

DuckDB does not detect intermediate overflows, and orders NaN and -0.0 differently. If the engines
could differ on the values of a group, an aggregate raises an error, and Spark answers instead.
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
        *(
            "boolean",
            "tinyint",
            "smallint",
            "integer",
            "bigint",
            "decimal",
            "varchar",
            "char",
            "uuid",
            "varbinary",
        ),
        *("date", "time", "timestamp", "timestamp with time zone"),
    }
)
"""Types whose values DuckDB groups and orders like Trino."""
DOUBT: Final = "DOUBT"
"""The code of an internal error: the engines may differ on these values."""
_MOST_BIGINT: Final = 2**63 - 1
_EXACT_DOUBLE: Final = 2**53
_MOST_DIGITS: Final = 36
"""Sums with this many digits can be divided, doubled and rounded within a HUGEINT."""
_SHORT: Final = 24
"""A sum of decimals with this many digits cannot overflow with a realistic number of rows."""


_DIGESTED: Final = 1260
"""Up to this many values, ``approx_percentile`` depends on Trino's digest."""


def aggregate_text(call: Aggregate) -> str:
    """Return an aggregate over columns, or raise UnprintableError."""
    writer = _WRITERS.get((call.name, len(call.arguments)))
    if writer is None or call.order_by:
        raise UnprintableError(f"the aggregate {call.name}")
    return writer(_Call(call), *(argument.type for argument in call.arguments))


def check_grouped(sql_type: Type) -> None:
    """Raise UnprintableError unless DuckDB groups a type like Trino."""
    if sql_type.base not in _ORDERED or is_zoned(sql_type):
        raise UnprintableError(f"groups of {sql_type}")


def guarded_key(key: Column) -> str:
    """Return a key that raises an error for values that the engines may group differently.

    >>> from rowmerge_nb.spi.types import DOUBLE
    >>> from rowmerge_nb.sql.typed.expressions import Column
    >>> guarded_key(Column(DOUBLE, "x")).startswith('CASE WHEN isnan("x") OR ("x" = 0 AND signbit("x")) THEN ')
    True
    """
    column = quoted(key.symbol)
    return (
        f"CASE WHEN {_is_odd(column)} THEN {failure(DOUBT, text_literal('groups of such values'))}"
        f" ELSE {column} END"
    )


def _is_odd(column: str) -> str:
    return f"isnan({column}) OR ({column} = 0 AND signbit({column}))"


def check_sorted(sql_type: Type) -> None:
    """Raise UnprintableError unless DuckDB orders a type like Trino, NaN apart."""
    if (sql_type.base not in _ORDERED and not is_float(sql_type)) or is_zoned(sql_type):
        raise UnprintableError(f"an order of {sql_type}")


def check_carried(sql_type: Type) -> None:
    """Raise UnprintableError unless values pass through DuckDB unchanged."""
    for part in parts_of(sql_type):
        if part.base not in {"array", "map", "row", "json", "unknown"}:
            duckdb_type(part)


class _Call:
    def __init__(self, call: Aggregate) -> None:
        self.call = call
        self.columns = [_column_text(argument) for argument in call.arguments]
        self.filter = "" if call.filter is None else f" FILTER (WHERE {_column_text(call.filter)})"

    def text(self, function: str, argument: str | None = None) -> str:
        distinct = "DISTINCT " if self.call.distinct else ""
        return f"{function}({distinct}{self.columns[0] if argument is None else argument}){self.filter}"

    def guarded(self, doubt: str, value: str) -> str:
        return (
            value
            if not doubt
            else (
                f"CASE WHEN {doubt} THEN"
                f" {failure(DOUBT, text_literal(f'{self.call.name} of such values'))} ELSE"
                f" {value} END"
            )
        )

    def largest(self, sql_type: str) -> str:
        low, high = self.text("min"), self.text("max")
        return (
            f"CAST(greatest(abs(CAST({high} AS {sql_type})), abs(CAST({low} AS {sql_type}))) AS"
            f" DOUBLE) * {self.text('count')}"
        )


def _column_text(node: object) -> str:
    column: Column = node  # type: ignore[assignment]
    return quoted(column.symbol)


def _count_rows(call: _Call) -> str:
    return f"count(*){call.filter}"


def _count(call: _Call, sql_type: Type) -> str:
    if call.call.distinct:
        check_grouped(sql_type)
    return call.text("count")


def _approx_distinct(call: _Call, sql_type: Type) -> str:
    check_grouped(sql_type)
    return f"count(DISTINCT {call.columns[0]}){call.filter}"


def _count_if(call: _Call, _: Type) -> str:
    return call.text("count", f"CASE WHEN {call.columns[0]} THEN true END")


def _extreme(call: _Call, sql_type: Type) -> str:
    value = call.text(call.call.name)
    if not is_float(sql_type):
        check_grouped(sql_type)
        return value
    column = call.columns[0]
    return call.guarded(call.text("bool_or", _is_odd(column)), value)


def _sum(call: _Call, sql_type: Type) -> str:
    value = call.text("sum")
    if sql_type.base == "bigint":
        return call.guarded(
            f"{call.largest('HUGEINT')} >= {_MOST_BIGINT}", f"CAST({value} AS BIGINT)"
        )
    if sql_type.base == "decimal":
        return call.guarded(
            _is_long(call, sql_type), f"CAST({value} AS {duckdb_type(call.call.type)})"
        )
    return _of_floats(call, sql_type, "sum")


def _avg(call: _Call, sql_type: Type) -> str:
    if sql_type.base == "bigint":
        quotient = f"CAST({call.text('sum')} AS DOUBLE) / {call.text('count')}"
        return call.guarded(f"{call.largest('HUGEINT')} >= {_EXACT_DOUBLE}", quotient)
    if sql_type.base == "decimal":
        summed, count = decimal_of(_MOST_DIGITS, sql_type.parameters[1]), decimal_of(19, 0)
        parts = (
            f"CAST({call.text('sum')} AS {duckdb_type(decimal_of(38, sql_type.parameters[1]))})",
            call.text("count"),
        )
        quotient = decimal_quotient(*parts, (summed, count), call.call.type, "NULL")
        return call.guarded(_is_long(call, sql_type), quotient)
    return _of_floats(call, sql_type, "avg")


def _of_floats(call: _Call, sql_type: Type, function: str) -> str:
    if not is_float(sql_type) or call.call.distinct:
        raise UnprintableError(
            f"{call.call.name} of {'distinct ' if call.call.distinct else ''}{sql_type}"
        )
    value = call.text(function, f"CAST({call.columns[0]} AS DOUBLE)")
    return f"CAST({value} AS {duckdb_type(sql_type)})"


def _percentile(call: _Call, sql_type: Type, share_type: Type) -> str:
    """Return the exact percentile of many values; Spark computes Trino's digest of few."""
    if call.call.distinct or share_type.base == "array":
        raise UnprintableError("approx_percentile of distinct values, or of several percentages")
    value, share = call.columns
    count, last = call.text("count"), call.text("max", share)
    doubts = [
        f"{count} <= {_DIGESTED}",
        f"count(*){call.filter} <> {call.text('count', share)}",
        f"{call.text('min', share)} IS DISTINCT FROM {last}",
        f"NOT {last} BETWEEN 0 AND 1",
    ]
    if is_float(sql_type):
        doubts.append(call.text("bool_or", f"{_is_odd(value)} OR isinf({value})"))
    else:
        size = f"greatest(abs(CAST({call.text('max')} AS HUGEINT)), abs(CAST({call.text('min')} AS HUGEINT)))"
        doubts.append(f"{size} > {_EXACT_DOUBLE}")
    index = f"CAST(least(floor({last} * {count}), {count} - 1) AS BIGINT) + 1"
    ordered = f"list_sort({call.text('list')}, 'ASC', 'NULLS LAST')"
    return call.guarded(
        f"{count} > 0 AND ({' OR '.join(doubts)})",
        f"CASE WHEN {count} > 0 THEN {ordered}[{index}] END",
    )


def _is_long(call: _Call, sql_type: Type) -> str:
    if sql_type.parameters[0] <= _SHORT:
        return ""
    digits = _MOST_DIGITS - sql_type.parameters[1]
    return f"{call.largest(duckdb_type(sql_type))} >= CAST('1e{digits}' AS DOUBLE)"


def _all_or_any(call: _Call, _: Type) -> str:
    return call.text("bool_or" if call.call.name == "bool_or" else "bool_and")


_WRITERS: Final[dict[tuple[str, int], Callable[..., str]]] = {
    ("count", 0): _count_rows,
    ("count", 1): _count,
    ("count_if", 1): _count_if,
    ("approx_distinct", 1): _approx_distinct,
    ("approx_percentile", 2): _percentile,
    ("sum", 1): _sum,
    ("avg", 1): _avg,
    **{(name, 1): _extreme for name in ("min", "max")},
    **{(name, 1): _all_or_any for name in ("bool_and", "bool_or", "every")},
}
