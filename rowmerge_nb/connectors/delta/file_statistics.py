"""Statistics of a new file, as the log has them."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

_COLUMNS: Final = 32
"""Delta's default number of columns with statistics."""
_LONGEST: Final = 32
"""The longest text that is a bound; Delta truncates longer ones, we leave them out."""


class FileStatistics:
    """Counts and bounds of the rows of a file.

    >>> statistics = FileStatistics()
    >>> statistics.add(pa.table({"k": [2, 1], "s": ["x", None]}))
    >>> json.loads(statistics.as_json())["minValues"], statistics.rows
    ({'k': 1, 's': 'x'}, 2)
    """

    def __init__(self) -> None:
        self.rows = 0
        self._nulls: dict[str, int] = {}
        self._low: dict[str, Any] = {}
        self._high: dict[str, Any] = {}
        self._unbounded: set[str] = set()

    def add(self, rows: pa.Table) -> None:
        self.rows += rows.num_rows
        for name in rows.column_names[:_COLUMNS]:
            values = rows.column(name)
            if pa.types.is_nested(values.type):
                continue
            self._nulls[name] = self._nulls.get(name, 0) + values.null_count
            if not _has_bounds(values.type):
                continue
            self._add_bounds(name, values)

    def _add_bounds(self, name: str, values: pa.ChunkedArray) -> None:
        if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
            self._unbounded.add(name)
        if name in self._unbounded:
            return
        try:
            bounds = pc.min_max(values).as_py()
        except (OverflowError, ValueError):
            # Python has no dates after the year 9999.
            self._unbounded.add(name)
            return
        low, high = bounds["min"], bounds["max"]
        if low is not None:
            self._low[name] = min(self._low.get(name, low), low)
            self._high[name] = max(self._high.get(name, high), high)

    def as_json(self) -> str:
        bounded = [
            name
            for name in self._low
            if name not in self._unbounded
            and all(
                not isinstance(limit, str) or len(limit) <= _LONGEST
                for limit in (self._low[name], self._high[name])
            )
            and all(
                limit not in {float("inf"), float("-inf")}
                for limit in (self._low[name], self._high[name])
            )
        ]
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": {name: _text(self._low[name]) for name in bounded},
                "maxValues": {name: _text(self._high[name]) for name in bounded},
                "nullCount": self._nulls,
            }
        )


def _has_bounds(arrow_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(arrow_type)
        or pa.types.is_floating(arrow_type)
        or pa.types.is_string(arrow_type)
        or pa.types.is_date(arrow_type)
        or pa.types.is_timestamp(arrow_type)
    )


def _text(limit: Any) -> Any:
    if isinstance(limit, dt.datetime):
        text = limit.replace(tzinfo=None).isoformat(timespec="microseconds")
        return text if limit.tzinfo is None else f"{text}Z"
    return limit.isoformat() if isinstance(limit, dt.date) else limit
