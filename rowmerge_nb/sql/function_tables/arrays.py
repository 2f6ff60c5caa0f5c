"""Arrays, with the functions that take a lambda."""

from __future__ import annotations

from typing import Final

__all__ = ["ROWS"]

ROWS: Final = r"""
reverse(array(T)) -> array(T) | reverse({0})
cardinality(array(T)) -> bigint | IF({0} IS NULL, NULL, CAST(size({0}) AS BIGINT))
element_at(array(T), bigint) -> T | CASE WHEN {1} = 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:SQL array indices start at 1} ELSE try_element_at({0}, CAST({1} AS INT)) END
contains(array(T), T) -> boolean | array_contains({0}, {1})
array_sort(array(T)) -> array(T) | array_sort({0})
array_distinct(array(T)) -> array(T) | array_distinct({0})
array_position(array(T), T) -> bigint | array_position({0}, {1})
array_remove(array(T), T) -> array(T) | array_remove({0}, {1})
array_join(array(T), varchar) -> varchar | array_join({0}, {1})
array_join(array(T), varchar, varchar) -> varchar | array_join({0}, {1}, {2})
array_max(array(T)) -> T | IF(exists({0}, x -> x IS NULL), NULL, array_max({0}))
array_min(array(T)) -> T | IF(exists({0}, x -> x IS NULL), NULL, array_min({0}))
array_union(array(T), array(T)) -> array(T) | array_union({0}, {1})
array_intersect(array(T), array(T)) -> array(T) | array_intersect({0}, {1})
array_except(array(T), array(T)) -> array(T) | array_except({0}, {1})
flatten(array(array(T))) -> array(T) | flatten({0})
sequence(bigint, bigint) -> array(bigint) | sequence({0}, {1})
sequence(bigint, bigint, bigint) -> array(bigint) | sequence({0}, {1}, {2})
sequence(date, date) -> array(date) | sequence({0}, {1})
repeat(T, bigint) -> array(T) | array_repeat({0}, CAST({1} AS INT))
slice(array(T), bigint, bigint) -> array(T) | IF({1} < -size({0}), filter({0}, x -> false), slice({0}, CAST({1} AS INT), CAST({2} AS INT)))
transform(array(T), lambda) -> array of lambda result | transform({0}, {1})
filter(array(T), lambda) -> array(T) | filter({0}, {1})
reduce(array(T), R, lambda, lambda) -> lambda result | reduce({0}, {1}, {2}, {3})
any_match(array(T), lambda) -> boolean | exists({0}, {1})
all_match(array(T), lambda) -> boolean | forall({0}, {1})
none_match(array(T), lambda) -> boolean | (NOT exists({0}, {1}))
zip_with(array(T), array(U), lambda) -> array of lambda result | zip_with({0}, {1}, {2})
"""
