"""Maps."""

from __future__ import annotations

from typing import Final

__all__ = ["ROWS"]

ROWS: Final = r"""
cardinality(map(K,V)) -> bigint | IF({0} IS NULL, NULL, CAST(size({0}) AS BIGINT))
element_at(map(K,V), K) -> V | try_element_at({0}, {1})
map(array(K), array(V)) -> map(K,V) | map_from_arrays({0}, {1})
map() -> map(unknown,unknown) | map()
map_keys(map(K,V)) -> array(K) | map_keys({0})
map_values(map(K,V)) -> array(V) | map_values({0})
map_concat(map(K,V), map(K,V)...) -> map(K,V) | reduce(array({*}), CAST(map() AS {type}), (acc, m) -> map_concat(map_filter(acc, (k, v) -> NOT map_contains_key(m, k)), m))
map_filter(map(K,V), lambda) -> map(K,V) | map_filter({0}, {1})
transform_values(map(K,V), lambda) -> map of lambda result | transform_values({0}, {1})
"""
