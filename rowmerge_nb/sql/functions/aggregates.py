"""Aggregate functions; ``{distinct}`` and ``{rows}`` mark where DISTINCT, FILTER and OVER are written."""

from __future__ import annotations

from typing import Final

__all__ = ["FRAGMENTS", "ROWS"]

ROWS: Final = r"""
count() -> bigint | count(1){rows}
count(T) T -> bigint | count({distinct}{0}){rows}
sum(bigint) -> bigint | sum({distinct}{0}){rows}
sum(decimal(p,s)) -> sum | sum({distinct}{0}){rows}
sum(real) -> real | CAST(sum({distinct}{0}){rows} AS FLOAT)
sum(double) -> double | sum({distinct}{0}){rows}
sum(interval day to second) -> interval day to second | sum({distinct}{0}){rows}
sum(interval year to month) -> interval year to month | sum({distinct}{0}){rows}
avg(interval day to second) -> interval day to second | make_dt_interval(0, 0, 0, CAST(floor(avg({distinct}{milliseconds}){rows} + 0.5D) / 1000 AS DECIMAL(18,6)))
avg(interval year to month) -> interval year to month | make_ym_interval(0, CAST(floor(avg({distinct}extract(YEAR FROM {0}) * 12 + extract(MONTH FROM {0})){rows} + 0.5D) AS INT))
avg(bigint) -> double | avg({distinct}{0}){rows}
avg(decimal(p,s)) -> first | avg({distinct}{0}){rows}
avg(real) -> real | CAST(avg({distinct}{0}){rows} AS FLOAT)
avg(double) -> double | avg({distinct}{0}){rows}
min(E) E:orderable -> E | min({distinct}{0}){rows}
max(E) E:orderable -> E | max({distinct}{0}){rows}
min(E, bigint) E:orderable -> array(E) | {smallest}
max(E, bigint) E:orderable -> array(E) | {greatest}
any_value(T) T -> T | any_value({0}, true){rows}
arbitrary(T) T -> T | any_value({0}, true){rows}
array_agg(T) T -> array(T) | transform(get(filter(array({list}), l -> size(l) > 0), 0), v -> v.v)
listagg(varchar(x), varchar(y)) -> varchar | array_join(transform(get(filter(array({texts}), l -> size(l) > 0), 0), v -> v.v), max({1}){rows})
count_if(boolean) -> bigint | count_if({0}){rows}
bool_and(boolean) -> boolean | bool_and({0}){rows}
bool_or(boolean) -> boolean | bool_or({0}){rows}
every(boolean) -> boolean | bool_and({0}){rows}
bitwise_and_agg(bigint) -> bigint | bit_and({0}){rows}
bitwise_or_agg(bigint) -> bigint | bit_or({0}){rows}
bitwise_xor_agg(bigint) -> bigint | bit_xor({0}){rows}
max_by(V, K) V, K:orderable -> V | max_by({0}, {1}){rows}
min_by(V, K) V, K:orderable -> V | min_by({0}, {1}){rows}
max_by(V, K, bigint) V, K:orderable -> array(V) | {greatest}
min_by(V, K, bigint) V, K:orderable -> array(V) | {smallest}
stddev(double) -> double | stddev_samp({distinct}{0}){rows}
stddev_samp(double) -> double | stddev_samp({distinct}{0}){rows}
stddev_pop(double) -> double | stddev_pop({distinct}{0}){rows}
variance(double) -> double | var_samp({distinct}{0}){rows}
var_samp(double) -> double | var_samp({distinct}{0}){rows}
var_pop(double) -> double | var_pop({distinct}{0}){rows}
approx_distinct(T) T:comparable -> bigint | count(DISTINCT {0}){rows}
"""

FRAGMENTS: Final = {
    # What is written of their first arguments is not in a template: see rowmerge_nb.sql.spark.extremes.
    "smallest": "slice(sort_array({list}, true), 1, n)",
    "greatest": "slice(sort_array({list}, false), 1, n)",
    "list": "collect_list({distinct}named_struct('v', {0})){rows}",
    "texts": "collect_list({distinct}IF({0} IS NULL, NULL, named_struct('v', {0}))){rows}",
}
"""Parts that several templates share; ``{name}`` in a template stands for them."""
