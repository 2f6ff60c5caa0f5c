"""Functions that require OVER: ``{rows}`` is the window, ``{partition}`` the same without order and
frame.
"""

from __future__ import annotations

from typing import Final

ROWS: Final = r"""
row_number() -> bigint | CAST(row_number(){rows} AS BIGINT)
rank() -> bigint | CAST(rank(){rows} AS BIGINT)
dense_rank() -> bigint | CAST(dense_rank(){rows} AS BIGINT)
percent_rank() -> double | percent_rank(){rows}
cume_dist() -> double | cume_dist(){rows}
ntile(bigint) -> bigint | IF({0} > 0, IF({row number} <= {longer buckets} * ({row count} div {0} + 1), ({row number} - 1) div ({row count} div {0} + 1), ({row number} - 1 - {longer buckets}) div ({row count} div {0})) + 1, IF({0} IS NULL, NULL, {fail:INVALID_FUNCTION_ARGUMENT:Buckets must be greater than 0}))
lag(T) T -> T | lag({0}){rows}
lag(T, bigint) T -> T | {offset checked} lag({0}, CAST(coalesce({1}, 0) AS INT)){rows} END
lag(T, bigint, T) T -> T | {offset checked} lag({0}, CAST(coalesce({1}, 0) AS INT), {2}){rows} END
lead(T) T -> T | lead({0}){rows}
lead(T, bigint) T -> T | {offset checked} lead({0}, CAST(coalesce({1}, 0) AS INT)){rows} END
lead(T, bigint, T) T -> T | {offset checked} lead({0}, CAST(coalesce({1}, 0) AS INT), {2}){rows} END
first_value(T) T -> T | first_value({0}){rows}
last_value(T) T -> T | last_value({0}){rows}
nth_value(T, bigint) T -> T | CASE WHEN {1} IS NULL THEN NULL WHEN {1} < 1 THEN {fail:INVALID_FUNCTION_ARGUMENT:Offset must be at least 1} ELSE nth_value({0}, CAST(greatest({1}, 1) AS INT)){rows} END
"""

FRAGMENTS: Final = {
    "offset checked": "CASE WHEN {1} IS NULL THEN {fail:INVALID_FUNCTION_ARGUMENT:Offset must not be null} WHEN {1} < 0 THEN {fail:INVALID_FUNCTION_ARGUMENT:Offset must be at least 0} ELSE",
    "row number": "CAST(row_number(){rows} AS BIGINT)",
    "row count": "count(1){partition}",
    "longer buckets": "({row count} % {0})",
}
"""Shared parts; the first buckets are longer by one row."""
