"""Aggregate functions."""

from __future__ import annotations

from typing import Final

__all__ = ["ROWS"]

ROWS: Final = r"""
count() -> bigint | count(1)
count(T) -> bigint | count({0})
sum(tinyint) -> bigint | sum(CAST({0} AS BIGINT))
sum(smallint) -> bigint | sum(CAST({0} AS BIGINT))
sum(integer) -> bigint | sum(CAST({0} AS BIGINT))
sum(bigint) -> bigint | sum({0})
sum(decimal(p,s)) -> sum | sum({0})
sum(real) -> real | CAST(sum({0}) AS FLOAT)
sum(double) -> double | sum({0})
avg(bigint) -> double | avg({0})
avg(decimal(p,s)) -> first | avg({0})
avg(real) -> real | CAST(avg({0}) AS FLOAT)
avg(double) -> double | avg({0})
min(T) -> T | min({0})
max(T) -> T | max({0})
any_value(T) -> T | any_value({0}, true)
arbitrary(T) -> T | any_value({0}, true)
array_agg(T) -> array(T) | array_agg({0})
count_if(boolean) -> bigint | count_if({0})
bool_and(boolean) -> boolean | bool_and({0})
bool_or(boolean) -> boolean | bool_or({0})
every(boolean) -> boolean | bool_and({0})
max_by(T, U) -> T | max_by({0}, {1})
min_by(T, U) -> T | min_by({0}, {1})
stddev(double) -> double | stddev_samp({0})
stddev_samp(double) -> double | stddev_samp({0})
stddev_pop(double) -> double | stddev_pop({0})
variance(double) -> double | var_samp({0})
var_samp(double) -> double | var_samp({0})
var_pop(double) -> double | var_pop({0})
approx_distinct(T) -> bigint | count(DISTINCT {0})
"""
