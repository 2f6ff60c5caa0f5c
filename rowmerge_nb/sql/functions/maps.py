"""Maps."""

from __future__ import annotations

from typing import Final

ROWS: Final = r"""
cardinality(map(K,V)) K, V -> bigint | CAST(size({0}) AS BIGINT) | CAST(cardinality({0}) AS BIGINT)
element_at(map(K,V), K) K, V -> V | try_element_at({0}, {1}) | {0}[{1}]
map(array(K), array(V)) K:comparable, V -> map(K,V) | CASE WHEN size({0}) <> size({1}) THEN {fail:INVALID_FUNCTION_ARGUMENT:Key and value arrays must be the same length} WHEN exists({0}, k -> k IS NULL) THEN {fail:INVALID_FUNCTION_ARGUMENT:map key cannot be null} WHEN size(array_distinct({certain keys})) < size({0}) THEN {equal keys} ELSE map_from_arrays({0}, {1}) END
map() -> map(unknown,unknown) | map()
map_entries(map(K,V)) K, V -> array(row(K,V)) | transform(map_entries({0}), e -> named_struct('field0', e.key, 'field1', e.value))
map_from_entries(array(row(K,V))) K:comparable, V -> map(K,V) | {entries checked} WHEN size(array_distinct({entry keys})) < size({0}) THEN {equal entry keys} ELSE map_from_entries({0}) END
multimap_from_entries(array(row(K,V))) K:comparable, V -> map(K,array(V)) | {entries checked} WHEN size({0}) = 0 THEN CAST(map() AS {type}) ELSE {values of entries} END
map_keys(map(K,V)) K, V -> array(K) | map_keys({0}) | map_keys({0})
map_values(map(K,V)) K, V -> array(V) | map_values({0}) | map_values({0})
map_concat(map(K,V)...) K, V -> map(K,V) | reduce(array({*}), CAST(map() AS {type}), (acc, m) -> map_concat(m, map_filter(acc, (k, v) -> NOT map_contains_key(m, k))))
map_filter(map(K,V), function(K,V,boolean)) K, V -> map(K,V) | map_filter({0}, {1})
map_zip_with(map(K,V1), map(K,V2), function(K,V1,V2,V3)) K, V1, V2, V3 -> map(K,V3) | map_zip_with({0}, {1}, {2})
transform_keys(map(K1,V), function(K1,V,K2)) K1, K2, V -> map(K2,V) | transform_keys({0}, {1})
transform_values(map(K,V1), function(K,V1,V2)) K, V1, V2 -> map(K,V2) | transform_values({0}, {1})
cosine_similarity(map(varchar,double), map(varchar,double)) -> double | transform(array({length 0} * {length 1}), n -> IF(n = 0, CAST('NaN' AS DOUBLE), {shared} / n))[0]
"""

FIRST_VALUE: Final = "get(`$entries`, get(`$places`, g.p).i).v"
ALL_VALUES: Final = "transform(slice(`$places`, g.p + 1, g.q - g.p), e -> get(`$entries`, e.i).v)"
COUNT: Final = "CAST(g.q - g.p AS BIGINT)"


def grouped(entries: str, value: str) -> str:
    """Write the map that groups entries by key, in order of occurrence; sorting avoids quadratic
    time.
    """
    # The entries of a key are at g.p up to g.q.
    places = "sort_array(transform(`$entries`, (e, i) -> named_struct('k', e.k, 'i', i)))"
    begins = (
        "filter(sequence(0, size(`$places`) - 1), j -> j = 0 OR NOT (get(`$places`, j).k <=>"
        " get(`$places`, j - 1).k))"
    )
    groups = (
        "sort_array(zip_with(`$begins`, concat(slice(`$begins`, 2, size(`$begins`)),"
        " array(size(`$places`))), (p, q) -> named_struct('i', get(`$places`, p).i, 'p', p, 'q',"
        " q)))"
    )
    whole = (
        f"map_from_entries(transform({groups}, g -> named_struct('key', get(`$places`, g.p).k,"
        f" 'value', {value})))"
    )
    for name, text in (("begins", begins), ("places", places), ("entries", entries)):
        whole = f"transform(array({text}), `${name}` -> {whole})[0]"
    return whole


FRAGMENTS: Final = {
    "entries checked": "CASE WHEN exists({0}, e -> e IS NULL) THEN {fail:INVALID_FUNCTION_ARGUMENT:map entry cannot be null} WHEN exists({entry keys}, k -> k IS NULL) THEN {fail:INVALID_FUNCTION_ARGUMENT:map key cannot be null}",
    # Added in the order of the entries, as in Trino, for the last digits.
    "shared": (
        "aggregate(map_entries({0}), 0D, (s, e) -> s + coalesce(e.value * try_element_at({1},"
        " e.key), 0D))"
    ),
    **{
        f"length {index}": f"sqrt(aggregate(map_values({{{index}}}), 0D, (s, v) -> s + v * v))"
        for index in range(2)
    },
    "values of entries": grouped(
        "transform({0}, e -> named_struct('k', e.field0, 'v', e.field1))", ALL_VALUES
    ),
    "equal keys": (
        "{fail:INVALID_FUNCTION_ARGUMENT:Duplicate map keys ($key(filter($0, (k, i) ->"
        " array_position($0, k) <= i)[0])) are not allowed}"
    ),
    "entry keys": "transform({0}, e -> e.field0)",
    "equal entry keys": (
        "{fail:INVALID_FUNCTION_ARGUMENT:Duplicate map keys ($key(filter(transform($0, e ->"
        " e.field0), (k, i) -> array_position(transform($0, e -> e.field0), k) <= i)[0])) are not"
        " allowed}"
    ),
}
"""Parts that several templates share, as ``{name}``."""
