"""Functions that only make sense with OVER; ``OVER_`` marks where the window is written."""

from __future__ import annotations

from typing import Final

__all__ = ["ROWS"]

ROWS: Final = r"""
row_number() -> bigint | CAST(row_number() OVER_ AS BIGINT)
rank() -> bigint | CAST(rank() OVER_ AS BIGINT)
dense_rank() -> bigint | CAST(dense_rank() OVER_ AS BIGINT)
percent_rank() -> double | percent_rank() OVER_
cume_dist() -> double | cume_dist() OVER_
ntile(bigint) -> bigint | CAST(ntile({0}) OVER_ AS BIGINT)
lag(T) -> T | lag({0}) OVER_
lag(T, bigint) -> T | lag({0}, CAST({1} AS INT)) OVER_
lag(T, bigint, T) -> T | lag({0}, CAST({1} AS INT), {2}) OVER_
lead(T) -> T | lead({0}) OVER_
lead(T, bigint) -> T | lead({0}, CAST({1} AS INT)) OVER_
lead(T, bigint, T) -> T | lead({0}, CAST({1} AS INT), {2}) OVER_
first_value(T) -> T | first_value({0}) OVER_
last_value(T) -> T | last_value({0}) OVER_
nth_value(T, bigint) -> T | nth_value({0}, CAST({1} AS INT)) OVER_
"""
