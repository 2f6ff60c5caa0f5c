"""``approx_percentile`` by Trino's digest.

It merges close values into centroids, means with weights: once up to 1260 values. Beyond, the order
of rows matters, and answers are exact here.
"""

from __future__ import annotations

from typing import Final

from rowmerge_nb.sql.functions.aggregates import bound, not_empty

ROWS: Final = r"""
approx_percentile(bigint, array(double)) -> array(bigint) | {bigint percentiles}
approx_percentile(bigint, double) -> bigint | {bigint percentile}
approx_percentile(bigint, double, array(double)) -> array(bigint) | {weighed bigint percentiles}
approx_percentile(bigint, double, double) -> bigint | {weighed bigint percentile}
approx_percentile(bigint, double, double, double) -> bigint | {bigint quantile}
approx_percentile(double, array(double)) -> array(double) | {double percentiles}
approx_percentile(double, double) -> double | {double percentile}
approx_percentile(double, double, array(double)) -> array(double) | {weighed double percentiles}
approx_percentile(double, double, double) -> double | {weighed double percentile}
approx_percentile(double, double, double, double) -> double | {double quantile}
approx_percentile(real, array(double)) -> array(real) | CAST({double percentiles} AS ARRAY<FLOAT>)
approx_percentile(real, double) -> real | CAST({double percentile} AS FLOAT)
approx_percentile(real, double, array(double)) -> array(real) | CAST({weighed double percentiles} AS ARRAY<FLOAT>)
approx_percentile(real, double, double) -> real | CAST({weighed double percentile} AS FLOAT)
approx_percentile(real, double, double, double) -> real | CAST({double quantile} AS FLOAT)
"""

_CODE: Final = "INVALID_FUNCTION_ARGUMENT"
_LARGEST_BUFFER: Final = 1260
_FINITE: Final = "abs({0}) < CAST('Infinity' AS DOUBLE)"
_SHOWN: Final = "$(IF(isnan($0), 'NaN', IF($0 > 0, 'Infinity', '-Infinity')))"
# The greatest bigint is not a double, but Java casts the double above back to it.
_INEXACT: Final = (
    "IF({0} < 9223372036854775296L, CAST(CAST({0} AS DOUBLE) AS BIGINT) <> {0}, {0} <>"
    " 9223372036854775807L)"
)
_VALUES: Final = {
    "double": (
        f"IF({_FINITE}, CAST({{0}} AS DOUBLE), CAST({{fail:{_CODE}:value must be finite; was"
        f" {_SHOWN}}} AS DOUBLE))"
    ),
    "bigint": (
        f"IF({_INEXACT}, CAST({{fail:{_CODE}:no exact double representation for long: $0}} AS"
        " DOUBLE), CAST({0} AS DOUBLE))"
    ),
}
"""The fields of a row."""
_WEIGHT: Final = (
    f"IF({{1}} >= 1 AND NOT isnan({{1}}), {{1}}, CAST({{fail:{_CODE}:weight must be >= 1, was $1}}"
    " AS DOUBLE))"
)
_OUTSIDE: Final = f"{{fail:{_CODE}:Percentile must be between 0 and 1}}"
_UNKNOWN: Final = f"{{fail:{_CODE}:Percentile cannot be null}}"
_COUNTED: Final = (
    f"CASE WHEN NOT {{1}} > 0 THEN CAST({{fail:{_CODE}:percentile weight must be > 0}} AS DOUBLE)"
    f" WHEN {{3}} > 0 AND {{3}} < 1 THEN {{1}} ELSE CAST({{fail:{_CODE}:Percentile accuracy must be"
    " strictly between 0 and 1} AS DOUBLE) END"
)


def _rows(value: str, weight: str, share_argument: int, last: int) -> str:
    """Write a group's values, weights and shares; rows with NULL are omitted."""
    missing = " OR ".join(f"{{{index}}} IS NULL" for index in range(last + 1))
    return not_empty(
        f"IF({missing}, NULL, named_struct('m', {value}, 'w', {weight}, 'p', {{{share_argument}}}))"
    )


# -- the digest

_FIRST: Final = (
    "named_struct('done', slice(array(named_struct('m', o[0].m, 'w', o[0].w, 'c', 0D)), 1, 0), 'm',"
    " o[0].m, 'w', o[0].w, 'before', 0D, 'room', 0D)"
)
_DONE: Final = "concat(s.done, array(named_struct('m', s.m, 'w', s.w, 'c', s.before + s.w / 2D)))"
_STEP: Final = bound(
    {"v": "s.w + r.w", "q": "least((s.before + v) / n, 1D)"},
    "IF(v <= n * least(s.room, q * (1D - q) / z), named_struct('done', s.done, 'm', s.m + (r.m -"
    " s.m) * r.w / v, 'w', v, 'before', s.before, 'room', s.room), "
    + bound(
        {"b": "s.before + s.w", "f": "b / n"},
        f"named_struct('done', {_DONE}, 'm', r.m, 'w', r.w, 'before', b, 'room', f * (1D - f) / z)",
    )
    + ")",
)
"""One more value, which joins the last centroid or begins a new one."""
_CENTROIDS: Final = bound(
    {"z": "100D / (4D * ln(n / 100D) + 24D)"},
    f"aggregate(slice(o, 2, size(o)), {_FIRST}, (s, r) -> {_STEP}, s -> {_DONE})",
)
"""The centroids in order; ``c`` is the weight below the middle of each."""
_BETWEEN: Final = bound(
    {"a": "k[i]", "b": "k[i + 1]", "d": "t - a.c"},
    "CASE WHEN a.w = 1 AND d < 0.5D THEN a.m WHEN b.w = 1 AND d >= a.w / 2D THEN b.m "
    "WHEN a.w = 1 THEN a.m + (d - 0.5D) / (b.w / 2D) * (b.m - a.m) "
    "ELSE a.m + d / IF(b.w = 1, a.w / 2D, (a.w + b.w) / 2D) * (b.m - a.m) END",
)
"""The interpolation between two centroids."""
_LOW = "o[0].m"
_HIGH = "o[size(o) - 1].m"
_BELOW = "(k[0].w / 2D)"
_ABOVE = "(k[size(k) - 1].w / 2D)"
_OF_DIGEST: Final = bound(
    {"t": "p * n", "i": "size(filter(k, e -> e.c <= t)) - 1"},
    f"CASE WHEN size(k) = 1 THEN k[0].m WHEN t < 1 THEN {_LOW} "
    f"WHEN t < {_BELOW} THEN {_LOW} + (t - 1D) / ({_BELOW} - 1D) * (k[0].m - {_LOW}) "
    f"WHEN t <= n - 1D AND n - t <= {_ABOVE} AND {_ABOVE} > 1 THEN "
    f"{_HIGH} + (n - t - 1D) / ({_ABOVE} - 1D) * (k[size(k) - 1].m - {_HIGH}) "
    f"WHEN t >= n - 1D OR i = size(k) - 1 THEN {_HIGH} ELSE {_BETWEEN} END",
)
_EXACT: Final = (
    "aggregate(o, named_struct('below', 0D, 'm', CAST(NULL AS DOUBLE)), "
    "(s, r) -> IF(s.below > p * n, s, named_struct('below', s.below + r.w, 'm', r.m)), s -> s.m)"
)
"""The least value with more weight at or below it than the share."""
_EXACT_OF_EQUALS: Final = "s[least(CAST(floor(p * n) AS INT), size(s) - 1)]"
"""The same if each value weighs 1. A fold over millions of values takes most of a minute."""


def _answered(rows: str, shares: str, answer: str, *, weighed: bool) -> str:
    """Write an answer over rows ``l``: ``o`` in order, ``n`` their weight.

    Without weights, ``s`` are the values in order, and ``o`` is NULL for many rows.
    """
    if weighed:
        names = {
            "o": "sort_array(transform(l, r -> struct(r.m, r.w)))",
            "n": "aggregate(l, 0D, (s, r) -> s + r.w)",
        }
    else:
        names = {
            "s": "sort_array(transform(l, r -> r.m))",
            "o": f"IF(size(s) > {_LARGEST_BUFFER}, NULL, transform(s, m -> struct(m, 1D AS w)))",
            "n": "CAST(size(l) AS DOUBLE)",
        }
    steps = bound(names, answer)
    return bound({"l": rows}, f"IF(l IS NULL, NULL, {bound({'a': shares}, steps)})")


_IS_LARGE: Final = f"size(l) > {_LARGEST_BUFFER}"
_DIGEST: Final = f"IF({_IS_LARGE}, NULL, {_CENTROIDS})"


def _of_group(*, weighed: bool) -> str:
    return f"IF({_IS_LARGE}, {_EXACT if weighed else _EXACT_OF_EQUALS}, {_OF_DIGEST})"


def _percentile(rows: str, template: str, *, weighed: bool) -> str:
    answer = bound({"k": _DIGEST, "p": "a"}, template.format(_of_group(weighed=weighed)))
    checked = f"IF(a BETWEEN 0 AND 1, {answer}, {_OUTSIDE})"
    return _answered(rows, "element_at(l, -1).p", checked, weighed=weighed)


def _percentiles(rows: str, template: str, *, weighed: bool) -> str:
    each = template.format(_of_group(weighed=weighed))
    checked = (
        f"CASE WHEN p IS NULL THEN {_UNKNOWN} WHEN p BETWEEN 0 AND 1 THEN {each} ELSE"
        f" {_OUTSIDE} END"
    )
    answer = bound({"k": _DIGEST}, f"transform(a, p -> {checked})")
    return _answered(rows, "l[0].p", answer, weighed=weighed)


def _quantile(rows: str, template: str, *, weighed: bool) -> str:
    """Write a percentile by Trino's other digest, exact for small groups."""
    return _answered(
        rows,
        "element_at(l, -1).p",
        f"IF(a BETWEEN 0 AND 1, {bound({'p': 'a'}, template.format(_EXACT))}, {_OUTSIDE})",
        weighed=weighed,
    )


_ROUNDED: Final = bound(
    {"q": "{}"},
    "CASE WHEN abs(q) < 4503599627370496D THEN CAST(floor(q + 0.5D) AS BIGINT) "
    "WHEN q < 9223372036854775807D THEN CAST(q AS BIGINT) ELSE 9223372036854775807L END",
)

FRAGMENTS: Final = {
    f"{weighed}{base} {what}": write(
        _rows(_VALUES[base], weight, fraction, last), template, weighed=weight != "1D"
    )
    for base, template in (("bigint", _ROUNDED), ("double", "{}"))
    for weighed, weight, fraction, last, what, write in (
        ("", "1D", 1, 1, "percentile", _percentile),
        ("", "1D", 1, 1, "percentiles", _percentiles),
        ("weighed ", _WEIGHT, 2, 2, "percentile", _percentile),
        ("weighed ", _WEIGHT, 2, 2, "percentiles", _percentiles),
        ("", _COUNTED, 2, 3, "quantile", _quantile),
    )
}
"""Parts that several templates share, as ``{name}``."""
