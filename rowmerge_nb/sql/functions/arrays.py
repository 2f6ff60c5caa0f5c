"""Arrays, and functions with lambdas."""

from __future__ import annotations

from typing import Final

ROWS: Final = r"""
cardinality(array(E)) E -> bigint | CAST(size({0}) AS BIGINT) | CAST(len({0}) AS BIGINT)
cardinality(hyperloglog) -> bigint ! sketches do not exist here
cardinality(setdigest) -> bigint ! sketches do not exist here
array_first(array(E)) E -> E | get({0}, 0) | {0}[1]
array_last(array(E)) E -> E | get({0}, size({0}) - 1) | {0}[-1]
element_at(array(E), bigint) E -> E | IF({1} = 0, {fail:INVALID_FUNCTION_ARGUMENT:SQL array indices start at 1}, try_element_at({0}, {int:1})) | {element}
~contains(array(real), real) -> boolean | {contains number}
~contains(array(double), double) -> boolean | {contains number}
~contains(array(unknown), unknown) -> boolean | CAST(NULL AS BOOLEAN)
contains(array(T), T) T:comparable -> boolean | array_contains({0}, {1}) | CASE WHEN {both} THEN CASE WHEN list_contains({0}, {1}) THEN true WHEN NOT {has null} THEN false END END
contains(varchar, ipaddress) -> boolean ! the type ipaddress does not exist here
~array_position(array(real), real) -> bigint | IF(isnan({1}), IF({0} IS NULL, NULL, 0L), array_position({0}, {1}))
~array_position(array(double), double) -> bigint | IF(isnan({1}), IF({0} IS NULL, NULL, 0L), array_position({0}, {1}))
array_position(array(T), T) T:comparable -> bigint | array_position({0}, {1}) | CASE WHEN {both} THEN CAST(coalesce(list_position({0}, {1}), 0) AS BIGINT) END
~array_remove(array(real), real) -> array(real) | IF(isnan({1}), {0}, array_remove({0}, {1}))
~array_remove(array(double), double) -> array(double) | IF(isnan({1}), {0}, array_remove({0}, {1}))
array_remove(array(E), E) E:comparable -> array(E) | array_remove({0}, {1})
array_sort(array(E)) E:orderable -> array(E) | array_sort({0}) | list_sort({0}, 'ASC', 'NULLS LAST')
array_sort(array(T), function(T,T,integer)) T -> array(T) | array_sort({0}, {1 names} -> CASE WHEN {1 body} IN (-1, 0, 1) THEN {1 body} ELSE {fail:INVALID_FUNCTION_ARGUMENT:Lambda comparator must return either -1, 0, or 1} END)
~array_distinct(array(real)) -> array(real) | transform(array_distinct({0}), {first zero of 0})
~array_distinct(array(double)) -> array(double) | transform(array_distinct({0}), {first zero of 0})
array_distinct(array(E)) E:comparable -> array(E) | array_distinct({0})
array_join(array(varchar), varchar) -> varchar | array_join({0}, {1}) | CASE WHEN {both} THEN coalesce(array_to_string({0}, {1}), '') END
array_join(array(varchar), varchar, varchar) -> varchar | array_join({0}, {1}, {2})
~array_max(array(real)) -> real | {greatest number}
~array_max(array(double)) -> double | {greatest number}
array_max(array(T)) T:orderable -> T | IF(exists({0}, x -> x IS NULL), NULL, array_max({0})) | CASE WHEN NOT {has null} THEN list_max({0}) END
array_min(array(T)) T:orderable -> T | IF(exists({0}, x -> x IS NULL), NULL, array_min({0})) | CASE WHEN NOT {has null} THEN list_min({0}) END
~array_union(array(real), array(real)) -> array(real) | transform(array_union({0}, {1}), {first zero of both})
~array_union(array(double), array(double)) -> array(double) | transform(array_union({0}, {1}), {first zero of both})
array_union(array(E), array(E)) E:comparable -> array(E) | array_union({0}, {1})
array_intersect(array(E), array(E)) E:comparable -> array(E) | IF(size({0}) < size({1}), array_intersect({1}, {0}), array_intersect({0}, {1}))
~array_except(array(real), array(real)) -> array(real) | IF(size({1}) = 0, {0}, transform(array_except({0}, {1}), {first zero of 0}))
~array_except(array(double), array(double)) -> array(double) | IF(size({1}) = 0, {0}, transform(array_except({0}, {1}), {first zero of 0}))
array_except(array(E), array(E)) E:comparable -> array(E) | IF(size({1}) = 0, {0}, array_except({0}, {1}))
array_histogram(array(T)) T:comparable -> map(T,bigint) | map_from_entries(transform(array_distinct(filter({0}, x -> x IS NOT NULL)), x -> named_struct('k', x, 'n', CAST(size(filter({0}, y -> y = x)) AS BIGINT))))
arrays_overlap(array(E), array(E)) E:comparable -> boolean | arrays_overlap({0}, {1})
flatten(array(array(E))) E -> array(E) | flatten(filter({0}, x -> x IS NOT NULL))
ngrams(array(T), integer) T -> array(array(T)) | CASE WHEN {1} <= 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:N must be positive} WHEN size({0}) <= {1} THEN array({0}) ELSE transform(sequence(1, size({0}) - {int:1} + 1), i -> slice({0}, i, {int:1})) END
combinations(array(T), integer) T -> array(array(T)) | CASE WHEN {1} < 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:combination size must not be negative: $1} WHEN {1} > 5 THEN {fail:INVALID_FUNCTION_ARGUMENT:combination size must not exceed 5: $1} WHEN {1} > size({0}) THEN slice(array({0}), 1, 0) WHEN {combined elements} > 100000 THEN {fail:INVALID_FUNCTION_ARGUMENT:combinations exceed max size} {combined} END
contains_sequence(array(T), array(T)) T:comparable -> boolean | IF(size({1}) > size({0}), false, exists(sequence(0, size({0}) - size({1})), i -> slice({0}, i + 1, size({1})) <=> {1}))
sequence(bigint, bigint) -> array(bigint) | IF({far}, {too many}, sequence({0}, IF({far}, {0}, {1})))
sequence(bigint, bigint, bigint) -> array(bigint) | CASE WHEN {2} = 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:step must not be zero} WHEN ({2} > 0 AND {1} < {0}) OR ({2} < 0 AND {1} > {0}) THEN {wrong way} WHEN {far in steps} THEN {too many} ELSE sequence({0}, IF({2} = 0 OR {far in steps}, {0}, {1}), {2}) END
sequence(date, date) -> array(date) | IF(abs(datediff({1}, {0})) >= 10000, {too many}, sequence({0}, IF(abs(datediff({1}, {0})) >= 10000, {0}, {1})))
sequence(date, date, interval day to second) -> array(date) | CASE WHEN {step millis} % 86400000 <> 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:sequence step must be a day interval if start and end values are dates} {stepped} WHEN abs(datediff({1}, {0}) * 86400000BD / {step millis}) >= 10000 THEN {too many} ELSE sequence({0}, IF({2} = {2} * 0 OR abs(datediff({1}, {0}) * 86400000BD / {step millis}) >= 10000, {0}, {1}), {2}) END
sequence(date, date, interval year to month) -> array(date) | {months in sequence}
sequence(timestamp(6), timestamp(6), interval day to second) -> array of moments | CASE {stepped} WHEN abs((unix_micros(CAST({1} AS TIMESTAMP)) - CAST(unix_micros(CAST({0} AS TIMESTAMP)) AS DECIMAL(20,0))) / (1000 * {step millis})) >= 10000 THEN {too many} ELSE sequence({0}, IF({2} = {2} * 0 OR abs((unix_micros(CAST({1} AS TIMESTAMP)) - CAST(unix_micros(CAST({0} AS TIMESTAMP)) AS DECIMAL(20,0))) / (1000 * {step millis})) >= 10000, {0}, {1}), {2}) END
sequence(timestamp(6), timestamp(6), interval year to month) -> array of moments | {months in sequence}
repeat(T, bigint) T -> array(T) | CASE WHEN {1} > 10000 THEN {fail:INVALID_FUNCTION_ARGUMENT:count argument of repeat function must be less than or equal to 10000} WHEN {1} < 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:count argument of repeat function must be greater than or equal to 0} ELSE array_repeat({0}, {int:1}) END
reverse(array(E)) E -> array(E) | reverse({0}) | list_reverse({0})
shuffle(array(E)) E -> array(E) | shuffle({0})
slice(array(E), bigint, bigint) E -> array(E) | CASE WHEN {2} < 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:length must be greater than or equal to 0} WHEN {1} = 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:SQL array indices start at 1} WHEN {1} < -size({0}) AND {2} IS NOT NULL THEN slice({0}, 1, 0) ELSE slice({0}, {int:1}, {int:2}) END | {sliced}
trim_array(array(E), bigint) E -> array(E) | CASE WHEN {1} < 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:size must not be negative: $1} WHEN {1} > size({0}) THEN {too long} ELSE slice({0}, 1, size({0}) - {int:1}) END
zip(array(T1), array(T2)) T1, T2 -> array(row(T1,T2)) | zip_with({0}, {1}, (x, y) -> named_struct('field0', x, 'field1', y))
zip(array(T1), array(T2), array(T3)) T1, T2, T3 -> array(row(T1,T2,T3)) | transform({fields 3}, i -> named_struct('field0', get({0}, i), 'field1', get({1}, i), 'field2', get({2}, i)))
zip(array(T1), array(T2), array(T3), array(T4)) T1, T2, T3, T4 -> array(row(T1,T2,T3,T4)) | transform({fields 4}, i -> named_struct('field0', get({0}, i), 'field1', get({1}, i), 'field2', get({2}, i), 'field3', get({3}, i)))
zip(array(T1), array(T2), array(T3), array(T4), array(T5)) T1, T2, T3, T4, T5 -> array(row(T1,T2,T3,T4,T5)) | transform({fields 5}, i -> named_struct('field0', get({0}, i), 'field1', get({1}, i), 'field2', get({2}, i), 'field3', get({3}, i), 'field4', get({4}, i)))
transform(array(T), function(T,U)) T, U -> array(U) | transform({0}, {1}) | list_transform({0}, {1})
filter(array(T), function(T,boolean)) T -> array(T) | filter({0}, {1}) | list_filter({0}, {1})
reduce(array(T), S, function(S,T,S), function(S,R)) T, S, R -> R | reduce({0}, {1}, {2}, {3})
any_match(array(T), function(T,boolean)) T -> boolean | exists({0}, {1}) | {any match}
all_match(array(T), function(T,boolean)) T -> boolean | forall({0}, {1}) | {all match}
none_match(array(T), function(T,boolean)) T -> boolean | (NOT exists({0}, {1})) | (NOT {any match})
zip_with(array(T), array(U), function(T,U,R)) T, U, R -> array(R) | zip_with({0}, {1}, {2})
dot_product(array(double), array(double)) -> double | {over pairs} s + p.x * p.y) END
euclidean_distance(array(double), array(double)) -> double | {over pairs} s + (p.x - p.y) * (p.x - p.y), s -> sqrt(s)) END
cosine_similarity(array(double), array(double)) -> double | {cosine}
cosine_distance(array(double), array(double)) -> double | (1D - {cosine})
"""


def _fields_of(arrays: int) -> str:
    longest = ", ".join(f"size({{{i}}})" for i in range(arrays))
    absent = " OR ".join(f"{{{i}}} IS NULL" for i in range(arrays))
    return (
        f"IF({absent}, NULL, filter(sequence(0, greatest({longest})), i -> i <"
        f" greatest({longest})))"
    )


_MOST_COMBINED: Final = 5


def _combined(count: int, upto: str) -> str:
    """Write combinations of elements up to a position, ordered by the last one first."""
    if count == 0:
        return "array(slice({0}, 1, 0))"
    position = f"place{count}"
    others = (
        f"transform({_combined(count - 1, f'{position} - 1')}, others -> concat(others,"
        f" array(get({{0}}, {position} - 1))))"
    )
    return (
        f"flatten(transform(sequence({count}, greatest({count}, {upto})), {position} -> {others}))"
    )


def _combined_elements() -> str:
    factors = (
        f"IF({{1}} > {i}, (size({{0}}) - {i}) / {i + 1}BD, 1)" for i in range(_MOST_COMBINED)
    )
    return f"CAST({{1}} AS DOUBLE) * {' * '.join(factors)}"


FRAGMENTS: Final = {
    "over pairs": "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN size({0}) <> size({1}) THEN {unlike lengths} ELSE aggregate({paired}, 0D, (s, p) ->",
    "months in sequence": "CASE {stepped} WHEN abs(months_between({1}, {0}) / {step months}) >= 10000 THEN {too many} ELSE sequence({0}, IF({2} = {2} * 0 OR abs(months_between({1}, {0}) / {step months}) >= 10000, {0}, {1}), {2}) END",
    "combined": " ".join(
        f"WHEN {{1}} = {i} THEN {_combined(i, 'size({0})')}" for i in range(_MOST_COMBINED + 1)
    ),
    "combined elements": _combined_elements(),
    # NaN equals nothing in Trino, and itself in Spark.
    "contains number": (
        "IF(isnan({1}), IF(exists({0}, x -> x IS NULL), NULL, IF({0} IS NULL, NULL, false)),"
        " array_contains({0}, {1}))"
    ),
    # NaN is the smallest number here in Trino, and the greatest in Spark.
    "greatest number": (
        "IF(exists({0}, x -> x IS NULL), NULL, coalesce(array_max(filter({0}, x -> NOT isnan(x))),"
        " array_max({0})))"
    ),
    "unlike lengths": "{fail:INVALID_FUNCTION_ARGUMENT:The arguments must have the same length}",
    # Trino reads NULL as zero here.
    "paired": (
        "zip_with({0}, {1}, (x, y) -> named_struct('x', coalesce(x, 0D), 'y', coalesce(y, 0D)))"
    ),
    "cosine": (
        "CASE WHEN {0} IS NULL OR {1} IS NULL THEN NULL WHEN size({0}) <> size({1}) THEN {unlike"
        " lengths} WHEN exists({0}, x -> x IS NULL) OR exists({1}, x -> x IS NULL) THEN NULL ELSE"
        " aggregate({paired}, named_struct('x', 0D, 'y', 0D, 'xy', 0D), (s, p) -> named_struct('x',"
        " s.x + p.x * p.x, 'y', s.y + p.y * p.y, 'xy', s.xy + p.x * p.y), s -> CASE WHEN s.x = 0 OR"
        " s.y = 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:Vector magnitude cannot be zero} WHEN s.x *"
        " s.y = 0 THEN s.xy * {inf} ELSE s.xy / sqrt(s.x * s.y) END) END"
    ),
    # Spark merges 0.0 and -0.0; Trino retains the first one.
    "first zero of 0": "x -> IF(x = 0, filter({0}, y -> y = 0)[0], x)",
    "first zero of both": "x -> IF(x = 0, filter(concat({0}, {1}), y -> y = 0)[0], x)",
    "step millis": (
        "CAST((extract(DAY FROM {2}) * 86400L + extract(HOUR FROM {2}) * 3600 + extract(MINUTE FROM"
        " {2}) * 60 + extract(SECOND FROM {2})) * 1000 AS BIGINT)"
    ),
    "step months": "(extract(YEAR FROM {2}) * 12 + extract(MONTH FROM {2}))",
    "stepped": (
        "WHEN {2} = {2} * 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:step must not be zero} "
        "WHEN ({2} > {2} * 0 AND {1} < {0}) OR ({2} < {2} * 0 AND {1} > {0}) THEN {wrong way}"
    ),
    # Spark computes constants in advance, even without rows, so too long an array must not be
    # built.
    "far": "abs(CAST({1} AS DECIMAL(20,0)) - {0}) >= 10000",
    "far in steps": "abs((CAST({1} AS DECIMAL(20,0)) - {0}) / {2}) >= 10000",
    "too many": (
        "{fail:INVALID_FUNCTION_ARGUMENT:result of sequence function must not have more than 10000"
        " entries}"
    ),
    "wrong way": (
        "{fail:INVALID_FUNCTION_ARGUMENT:sequence stop value should be greater than or equal to"
        " start value if step is greater than zero otherwise stop should be less than or equal to"
        " start}"
    ),
    "too long": (
        "{fail:INVALID_FUNCTION_ARGUMENT:size must not exceed array cardinality $(size($0)): $1}"
    ),
    "fields 3": _fields_of(3),
    "fields 4": _fields_of(4),
    "fields 5": _fields_of(5),
}
"""Parts that several templates share, as ``{name}``."""

DUCKDB_FRAGMENTS: Final = {
    "both": "{0} IS NOT NULL AND {1} IS NOT NULL",
    "has null": "list_count({0}) < len({0})",
    "element": (
        "CASE WHEN {1} = 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:SQL array indices start at 1} ELSE"
        " {0}[{1}] END"
    ),
    "sliced": (
        "CASE WHEN {2} < 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:length must be greater than or"
        " equal to 0} WHEN {1} = 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:SQL array indices start at"
        " 1} WHEN {0} IS NULL OR {1} IS NULL OR {2} IS NULL THEN NULL WHEN {2} = 0 OR {1} <"
        " -len({0}) OR {1} > len({0}) THEN list_filter({0}, lambda element_: false) ELSE"
        " list_slice({0}, CASE WHEN {1} < 0 THEN len({0}) + 1 ELSE 0 END + {1}, CASE WHEN {1} < 0"
        " THEN len({0}) + 1 ELSE 0 END + {1} + least({2}, len({0})) - 1) END"
    ),
    "truths": "list_transform({0}, {1})",
    "any match": (
        "CASE WHEN list_contains({truths}, true) THEN true WHEN list_count({truths}) ="
        " len({truths}) THEN false END"
    ),
    "all match": (
        "CASE WHEN list_contains({truths}, false) THEN false WHEN list_count({truths}) ="
        " len({truths}) THEN true END"
    ),
}
"""Shared parts of DuckDB SQL templates."""
