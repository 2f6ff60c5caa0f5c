"""Functions that only make sense with OVER; ``{rows}`` marks where the window is written."""

from __future__ import annotations

from typing import Final

__all__ = ["ROWS"]

ROWS: Final = r"""
row_number() -> bigint | CAST(row_number(){rows} AS BIGINT)
rank() -> bigint | CAST(rank(){rows} AS BIGINT)
dense_rank() -> bigint | CAST(dense_rank(){rows} AS BIGINT)
percent_rank() -> double | percent_rank(){rows}
cume_dist() -> double | cume_dist(){rows}
ntile(bigint) -> bigint | CAST(ntile({0}){rows} AS BIGINT)
lag(T) -> T | lag({0}){rows}
lag(T, bigint) -> T | lag({0}, CAST({1} AS INT)){rows}
lag(T, bigint, T) -> T | lag({0}, CAST({1} AS INT), {2}){rows}
lead(T) -> T | lead({0}){rows}
lead(T, bigint) -> T | lead({0}, CAST({1} AS INT)){rows}
lead(T, bigint, T) -> T | lead({0}, CAST({1} AS INT), {2}){rows}
first_value(T) -> T | first_value({0}){rows}
last_value(T) -> T | last_value({0}){rows}
nth_value(T, bigint) -> T | nth_value({0}, CAST({1} AS INT)){rows}
"""
