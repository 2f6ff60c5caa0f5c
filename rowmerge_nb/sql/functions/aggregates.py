"""Aggregate functions; ``{distinct}`` and ``{rows}`` become DISTINCT, FILTER and OVER."""

from __future__ import annotations

from typing import Final

from rowmerge_nb.sql.functions.hashes import checksum
from rowmerge_nb.sql.functions.maps import ALL_VALUES, COUNT, FIRST_VALUE, grouped

ROWS: Final = r"""
count() -> bigint | count(1){rows}
count(T) T -> bigint | count({distinct}{0}){rows}
sum(bigint) -> bigint | sum({distinct}{0}){rows}
sum(decimal(p,s)) -> sum | sum({distinct}{0}){rows}
sum(real) -> real | CAST(sum({distinct}{0}){rows} AS FLOAT)
sum(double) -> double | sum({distinct}{0}){rows}
sum(interval day to second) -> interval day to second | sum({distinct}{0}){rows}
sum(interval year to month) -> interval year to month | sum({distinct}{0}){rows}
sum(number) -> number ! number has casts, equality and no other operation here
avg(interval day to second) -> interval day to second | make_dt_interval(0, 0, 0, CAST(floor(avg({distinct}{milliseconds}){rows} + 0.5D) / 1000 AS DECIMAL(18,6)))
avg(interval year to month) -> interval year to month | make_ym_interval(0, CAST(floor(avg({distinct}extract(YEAR FROM {0}) * 12 + extract(MONTH FROM {0})){rows} + 0.5D) AS INT))
avg(bigint) -> double | avg({distinct}{0}){rows}
avg(decimal(p,s)) -> first | avg({distinct}{0}){rows}
avg(real) -> real | CAST(avg({distinct}{0}){rows} AS FLOAT)
avg(double) -> double | avg({distinct}{0}){rows}
avg(number) -> number ! number has casts, equality and no other operation here
min(T) T:orderable -> T | min({distinct}{0}){rows}
max(T) T:orderable -> T | max({distinct}{0}){rows}
min(E, bigint) E:orderable -> array(E) | {smallest}
max(E, bigint) E:orderable -> array(E) | {greatest}
any_value(T) T -> T | any_value({0}, true){rows}
arbitrary = any_value
array_agg(T) T -> array(T) | transform(get(filter(array({list}), l -> size(l) > 0), 0), v -> v.v)
listagg(varchar(x), varchar(y)) -> varchar | transform(array(named_struct('l', {texts}, 's', max({1}){rows})), g -> {joined} {fail:EXCEEDED_FUNCTION_MEMORY_LIMIT:Concatenated string has the length in bytes larger than the maximum output length 1048576} END)[0]
~listagg(varchar(x), varchar(y), varchar(z), boolean) -> varchar | transform(array(named_struct('l', {texts}, 's', max({1}){rows}, 'e', max({2}){rows}, 'c', bool_and({3}){rows})), g -> {joined} {truncated} END)[0]
count_if(boolean) -> bigint | count_if({0}){rows}
bool_and(boolean) -> boolean | bool_and({0}){rows}
bool_or(boolean) -> boolean | bool_or({0}){rows}
every = bool_and
bitwise_and_agg(bigint) -> bigint | bit_and({0}){rows}
bitwise_or_agg(bigint) -> bigint | bit_or({0}){rows}
bitwise_xor_agg(bigint) -> bigint | bit_xor({0}){rows}
max_by(V, K) V, K:orderable -> V | max_by({0}, {1}){rows}
min_by(V, K) V, K:orderable -> V | min_by({0}, {1}){rows}
max_by(V, K, bigint) V, K:orderable -> array(V) | {greatest}
min_by(V, K, bigint) V, K:orderable -> array(V) | {smallest}
stddev(bigint) -> double | sqrt({sample variance})
stddev(double) -> double | sqrt({sample variance})
stddev_samp = stddev
stddev_pop(bigint) -> double | sqrt({variance of all})
stddev_pop(double) -> double | sqrt({variance of all})
variance(bigint) -> double | {sample variance}
variance(double) -> double | {sample variance}
var_samp = variance
var_pop(bigint) -> double | {variance of all}
var_pop(double) -> double | {variance of all}
covar_samp(real, real) -> real | CAST(covar_samp({distinct}{1}, {0}){rows} AS FLOAT)
covar_samp(double, double) -> double | covar_samp({distinct}{1}, {0}){rows}
covar_pop(real, real) -> real | CAST(covar_pop({distinct}{1}, {0}){rows} AS FLOAT)
covar_pop(double, double) -> double | covar_pop({distinct}{1}, {0}){rows}
corr(real, real) -> real | CAST({correlation} AS FLOAT)
corr(double, double) -> double | {correlation}
regr_slope(real, real) -> real | CAST({slope} AS FLOAT)
regr_slope(double, double) -> double | {slope}
regr_intercept(real, real) -> real | CAST({intercept} AS FLOAT)
regr_intercept(double, double) -> double | {intercept}
skewness(bigint) -> double | {skewness}
skewness(double) -> double | {skewness}
kurtosis(bigint) -> double | {kurtosis}
kurtosis(double) -> double | {kurtosis}
geometric_mean(bigint) -> double | {geometric mean}
geometric_mean(real) -> real | CAST({geometric mean} AS FLOAT)
geometric_mean(double) -> double | {geometric mean}
~checksum(boolean) -> varbinary | {checksum of a boolean}
~checksum(tinyint) -> varbinary | {checksum of a number}
~checksum(smallint) -> varbinary | {checksum of a number}
~checksum(integer) -> varbinary | {checksum of a number}
~checksum(bigint) -> varbinary | {checksum of a number}
~checksum(real) -> varbinary | {checksum of a real}
~checksum(double) -> varbinary | {checksum of a double}
~checksum(varchar(x)) -> varbinary | {checksum of a text}
~checksum(char(x)) -> varbinary | {checksum of a char}
~checksum(varbinary) -> varbinary | {checksum of bytes}
~checksum(date) -> varbinary | {checksum of a date}
~checksum(timestamp(6)) -> varbinary | {checksum of a timestamp}
checksum(T) T:comparable -> varbinary ! its hash of such values is not computed here; of booleans, integers, real, double, texts, bytes, dates and timestamps it is
histogram(T) T:comparable -> map(T,bigint) | {map of counts}
map_agg(K, V) K:comparable, V -> map(K,V) | {map of first}
multimap_agg(K, V) K:comparable, V -> map(K,array(V)) | {map of all}
map_union(map(K,V)) K:comparable, V -> map(K,V) | {map of maps}
reduce_agg(T, S, function(S,T,S), function(S,S,S)) T, S -> S | IF(count({0}){rows} = 0, NULL, aggregate(collect_list({0}){rows}, (any_value(IF({0} IS NULL, NULL, named_struct('s', {1})), true){rows}).s, {2}))
approx_distinct(T) T:comparable -> bigint | count(DISTINCT {0}){rows}
~approx_distinct(boolean, double) -> bigint | count(DISTINCT {0}){rows}
approx_distinct(T, double) T:comparable -> bigint | IF(any_value(IF({0} IS NULL, NULL, {1}), true){rows} NOT BETWEEN 0.0040625D AND 0.26D, {fail:INVALID_FUNCTION_ARGUMENT:Max standard error must be in [0.0040625, 0.26]: $(any_value($1))}, count(DISTINCT {0}){rows})
"""


def not_empty(entry: str) -> str:
    """Write the entries that are not NULL, or NULL without any."""
    return f"get(filter(array(collect_list({{distinct}}{entry}){{rows}}), l -> size(l) > 0), 0)"


def _folded(entry: str, begin: str, step: str, result: str) -> str:
    """Write a fold over a group's rows in Trino's order, for equal last digits."""
    return f"aggregate({not_empty(entry)}, named_struct({begin}), (s, r) -> {step}, s -> {result})"


_PAIR: Final = (
    "IF({0} IS NULL OR {1} IS NULL, NULL, named_struct('y', CAST({0} AS DOUBLE), 'x', CAST({1} AS"
    " DOUBLE)))"
)
_NONE: Final = "'n', 0D, 'my', 0D, 'mx', 0D, 'c', 0D, 'sy', 0D, 'sx', 0D"


def bound(names: dict[str, str], body: str) -> str:
    """Bind names to values in order."""
    for name, value in reversed(names.items()):
        body = f"transform(array({value}), {name} -> {body})[0]"
    return body


# Repeated sums take less time than lambdas that name them.
_COUNT: Final = "(s.n + 1D)"
_MEAN_Y: Final = f"(s.my + (r.y - s.my) / {_COUNT})"
_MEAN_X: Final = f"(s.mx + (r.x - s.mx) / {_COUNT})"
_PAIR_STEP: Final = (
    f"named_struct('n', {_COUNT}, 'my', {_MEAN_Y}, 'mx', {_MEAN_X}, 'c', s.c + (r.x - s.mx) * (r.y"
    f" - {_MEAN_Y}), 'sy', s.sy + (r.y - s.my) * (r.y - {_MEAN_Y}), 'sx', s.sx + (r.x - s.mx) *"
    f" (r.x - {_MEAN_X}))"
)
_VALUE: Final = "IF({0} IS NULL, NULL, named_struct('x', CAST({0} AS DOUBLE)))"
_SHIFT: Final = f"((r.x - s.m1) / {_COUNT})"
_GROWTH: Final = f"((r.x - s.m1) * {_SHIFT} * s.n)"
_MOMENT_STEP: Final = (
    f"named_struct('n', {_COUNT}, 'm1', s.m1 + {_SHIFT}, 'm2', s.m2 + {_GROWTH}, 'm3', s.m3 +"
    f" {_GROWTH} * {_SHIFT} * ({_COUNT} - 2D) - 3D * {_SHIFT} * s.m2, 'm4', s.m4 + {_GROWTH} *"
    f" ({_SHIFT} * {_SHIFT}) * ({_COUNT} * {_COUNT} - 3D * {_COUNT} + 3D) + 6D * ({_SHIFT} *"
    f" {_SHIFT}) * s.m2 - 4D * {_SHIFT} * s.m3)"
)


def _of_pairs(result: str) -> str:
    return _folded(_PAIR, _NONE, _PAIR_STEP, result)


def _of_moments(result: str) -> str:
    return _folded(_VALUE, "'n', 0D, 'm1', 0D, 'm2', 0D, 'm3', 0D, 'm4', 0D", _MOMENT_STEP, result)


def _if_finite(text: str) -> str:
    return f"transform(array({text}), q -> IF(abs(q) < CAST('Infinity' AS DOUBLE), q, NULL))[0]"


def _divisor(text: str) -> str:
    return f"coalesce(nullif({text}, 0D), CAST('NaN' AS DOUBLE))"


_KEY_AND_VALUE: Final = "IF({0} IS NULL, NULL, named_struct('k', {0}, 'v', {1}))"

_ROOM: Final = 1_048_576
"""The maximum size of LISTAGG's text in bytes."""

_AS_MANY_AS_FIT: Final = (
    "aggregate(g.l, named_struct('n', 0, 'b', 0, 'full', false), (s, r) -> "
    + bound(
        {"b": "s.b + octet_length(r.v) + IF(s.n > 0, octet_length(g.s), 0)"},
        f"IF(s.full OR b > {_ROOM}, named_struct('n', s.n, 'b', s.b, 'full', true),"
        " named_struct('n', s.n + 1, 'b', b, 'full', false))",
    )
    + ", s -> s.n)"
)

FRAGMENTS: Final = {
    # rowmerge_nb.sql.spark.extremes adds their first arguments.
    "smallest": "slice(sort_array({list}, true), 1, n)",
    "greatest": "slice(sort_array({list}, false), 1, n)",
    # Spark's own variances differ in the last digits.
    "sample variance": "covar_samp({distinct}{0}, {0}){rows}",
    "variance of all": "covar_pop({distinct}{0}, {0}){rows}",
    "correlation": _of_pairs(
        _if_finite("IF(s.sx = 0 OR s.sy = 0, NULL, s.c / sqrt(s.sx) / sqrt(s.sy))")
    ),
    "slope": _of_pairs(_if_finite("IF(s.sx = 0, NULL, s.c / s.sx)")),
    "intercept": _of_pairs(_if_finite("IF(s.sx = 0, NULL, s.my - s.c / s.sx * s.mx)")),
    "skewness": _of_moments(
        f"CASE WHEN s.n >= 3 THEN sqrt(s.n) * s.m3 / {_divisor('power(s.m2, 1.5D)')} END"
    ),
    "kurtosis": _of_moments(
        "CASE WHEN s.n >= 4 THEN ((s.n - 1D) * s.n * (s.n + 1D)) / ((s.n - 2D) * (s.n - 3D)) *"
        f" s.m4 / {_divisor('s.m2 * s.m2')} - 3D * ((s.n - 1D) * (s.n - 1D)) / ((s.n - 2D) * (s.n -"
        " 3D)) END"
    ),
    "geometric mean": (
        "exp(sum({distinct}{logarithm}){rows} / nullif(count({distinct}{0}){rows}, 0))"
    ),
    "logarithm": (
        "CASE WHEN {0} > 0 THEN ln({0}) WHEN {0} = 0 THEN CAST('-Infinity' AS DOUBLE) WHEN {0} IS"
        " NOT NULL THEN CAST('NaN' AS DOUBLE) END"
    ),
    "checksum of a boolean": checksum("CAST({0} AS BIGINT)"),
    "checksum of a number": checksum("CAST({0} AS BIGINT)"),
    # -0.0 is 0.0.
    "checksum of a real": checksum("IF({0} = 0, 0L, {bits 32} | {sign bit of 32})"),
    "checksum of a double": checksum("IF({0} = 0, 0L, {bits 64} | {sign bit})"),
    "checksum of a text": checksum("{0}"),
    "checksum of a char": checksum("rtrim({0})"),
    "checksum of bytes": checksum("{0}"),
    "checksum of a date": checksum("CAST(unix_date({0}) AS BIGINT)"),
    "checksum of a timestamp": checksum("unix_micros(CAST({0} AS TIMESTAMP))"),
    "map of counts": grouped(not_empty("IF({0} IS NULL, NULL, named_struct('k', {0}))"), COUNT),
    "map of first": grouped(not_empty(_KEY_AND_VALUE), FIRST_VALUE),
    "map of all": grouped(not_empty(_KEY_AND_VALUE), ALL_VALUES),
    "map of maps": (
        "IF(count({0}){rows} = 0, NULL, "
        + grouped(
            "flatten(transform(collect_list({distinct}{0}){rows}, m -> transform(map_entries(m), e"
            " -> named_struct('k', e.key, 'v', e.value))))",
            FIRST_VALUE,
        )
        + ")"
    ),
    "list": "collect_list({distinct}named_struct('v', {0})){rows}",
    "texts": "collect_list({distinct}IF({0} IS NULL, NULL, named_struct('v', {0}))){rows}",
    # The texts g.l of a group, separated by g.s, unless they are too long.
    "joined": (
        "CASE WHEN size(g.l) > 0 AND aggregate(g.l, 0L, (n, r) -> n + octet_length(r.v)) +"
        f" octet_length(g.s) * (size(g.l) - 1L) <= {_ROOM} THEN array_join(transform(g.l, r ->"
        " r.v), g.s) WHEN size(g.l) > 0 THEN"
    ),
    "truncated": bound(
        {"n": _AS_MANY_AS_FIT},
        "concat(array_join(transform(slice(g.l, 1, n), r -> r.v), g.s), IF(n > 0, g.s, ''), g.e,"
        " IF(g.c, concat('(', size(g.l) - n, ')'), ''))",
    ),
}
"""Parts that several templates share, as ``{name}``."""

SIGNATURES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            *("kurtosis", "skewness", "stddev", "stddev_pop", "stddev_samp"),
            *("var_pop", "var_samp", "variance"),
        ),
        ("bigint", "double"),
    ),
    "approx_distinct": (
        *(
            "boolean",
            "boolean, double",
            "T) T:comparable",
            "T, double) T:comparable",
            "unknown",
            "unknown, double",
        ),
    ),
}
"""See `rowmerge_nb.sql.functions.all_functions.SIGNATURES`."""
