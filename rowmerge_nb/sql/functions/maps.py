"""Maps."""

from __future__ import annotations

from typing import Final

__all__ = ["FRAGMENTS", "ROWS"]

ROWS: Final = r"""
cardinality(map(K,V)) K, V -> bigint | CAST(size({0}) AS BIGINT)
element_at(map(K,V), K) K:comparable, V -> V | try_element_at({0}, {1})
map(array(K), array(V)) K:comparable, V -> map(K,V) | CASE WHEN size({0}) <> size({1}) THEN {fail:INVALID_FUNCTION_ARGUMENT:Key and value arrays must be the same length} WHEN exists({0}, k -> k IS NULL) THEN {fail:INVALID_FUNCTION_ARGUMENT:map key cannot be null} WHEN size(array_distinct({0})) < size({0}) THEN {equal keys} ELSE map_from_arrays({0}, {1}) END
map() -> map(unknown,unknown) | map()
map_entries(map(K,V)) K, V -> array(row(K,V)) | transform(map_entries({0}), e -> named_struct('field0', e.key, 'field1', e.value))
map_from_entries(array(row(K,V))) K:comparable, V -> map(K,V) | CASE WHEN exists({0}, e -> e IS NULL) THEN {fail:INVALID_FUNCTION_ARGUMENT:map entry cannot be null} WHEN exists({entry keys}, k -> k IS NULL) THEN {fail:INVALID_FUNCTION_ARGUMENT:map key cannot be null} WHEN size(array_distinct({entry keys})) < size({0}) THEN {equal entry keys} ELSE map_from_entries({0}) END
map_keys(map(K,V)) K, V -> array(K) | map_keys({0})
map_values(map(K,V)) K, V -> array(V) | map_values({0})
map_concat(map(K,V), map(K,V)...) K, V -> map(K,V) | reduce(array({*}), CAST(map() AS {type}), (acc, m) -> map_concat(map_filter(acc, (k, v) -> NOT map_contains_key(m, k)), m))
map_filter(map(K,V), function(K,V,boolean)) K, V -> map(K,V) | map_filter({0}, {1})
map_zip_with(map(K,V1), map(K,V2), function(K,V1,V2,V3)) K, V1, V2, V3 -> map(K,V3) | map_zip_with({0}, {1}, {2})
transform_keys(map(K1,V), function(K1,V,K2)) K1, K2, V -> map(K2,V) | transform_keys({0}, {1})
transform_values(map(K,V1), function(K,V1,V2)) K, V1, V2 -> map(K,V2) | transform_values({0}, {1})
"""

FRAGMENTS: Final = {
    "equal keys": (
        "{fail:INVALID_FUNCTION_ARGUMENT:Duplicate map keys ($(filter($0, (k, i) -> array_position($0, k) <= i)[0])) are not allowed}"
    ),
    "entry keys": "transform({0}, e -> e.field0)",
    "equal entry keys": (
        "{fail:INVALID_FUNCTION_ARGUMENT:Duplicate map keys ($(filter(transform($0, e -> e.field0), "
        "(k, i) -> array_position(transform($0, e -> e.field0), k) <= i)[0])) are not allowed}"
    ),
}
"""Parts that several templates share; ``{name}`` in a template stands for them."""
