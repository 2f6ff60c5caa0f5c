"""Statistics of a new file, as the log has them."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import parquet as pq

_COLUMNS: Final = 32
"""Delta's default number of columns with statistics."""
_LONGEST: Final = 32
"""The longest text that is a bound; Delta truncates longer ones, we leave them out."""


class FileStatistics:
    """Counts and bounds of the rows of a file, from its footer.

    >>> from pyarrow import parquet as pq
    >>> rows, footers = pa.table({"k": [2, 1], "s": ["x", None]}), []
    >>> statistics = FileStatistics()
    >>> with pq.ParquetWriter(pa.BufferOutputStream(), rows.schema, metadata_collector=footers) as file:
    ...     statistics.look_at(rows)
    ...     file.write_table(rows)
    >>> json.loads(statistics.as_json(footers[0], rows.schema))["minValues"]
    {'k': 1, 's': 'x'}
    """

    def __init__(self) -> None:
        self._with_nan: set[str] = set()

    def look_at(self, rows: pa.Table) -> None:
        """Note what a footer does not have: the columns with NaN."""
        for name, values in zip(rows.column_names[:_COLUMNS], rows.columns, strict=False):
            if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
                self._with_nan.add(name)

    def as_json(self, footer: pq.FileMetaData, schema: pa.Schema) -> str:
        columns = [
            (column.name, _column_statistics(footer, leaf), column.type)
            for leaf, column in _flat_columns(schema)
        ]
        bounds = {
            name: limits
            for name, statistics, arrow_type in columns
            if _has_bounds(arrow_type)
            and name not in self._with_nan
            and (limits := _bounds(statistics)) is not None
        }
        return json.dumps(
            {
                "numRecords": footer.num_rows,
                "minValues": {name: _text(low) for name, (low, _) in bounds.items()},
                "maxValues": {name: _text(high) for name, (_, high) in bounds.items()},
                "nullCount": {
                    name: sum(group.null_count for group in statistics)
                    for name, statistics, _ in columns
                },
            }
        )


def _flat_columns(schema: pa.Schema) -> Iterator[tuple[int, pa.Field]]:
    """Yield the columns that are not nested, with their numbers among the leaves of a file."""
    leaf = 0
    for number, column in enumerate(schema):
        if number < _COLUMNS and not pa.types.is_nested(column.type):
            yield leaf, column
        leaf += _leaves(column.type)


def _leaves(arrow_type: pa.DataType) -> int:
    if not pa.types.is_nested(arrow_type):
        return 1
    return sum(_leaves(arrow_type.field(index).type) for index in range(arrow_type.num_fields))


def _column_statistics(footer: pq.FileMetaData, leaf: int) -> list[pq.Statistics]:
    return [
        footer.row_group(group).column(leaf).statistics for group in range(footer.num_row_groups)
    ]


def _bounds(statistics: list[pq.Statistics]) -> tuple[Any, Any] | None:
    with_values = [group for group in statistics if group.num_values]
    if not with_values or not all(group.has_min_max for group in with_values):
        return None
    try:
        low = min(group.min for group in with_values)
        high = max(group.max for group in with_values)
    except (OverflowError, ValueError):
        # Python has no dates after the year 9999.
        return None
    for limit in (low, high):
        if isinstance(limit, str) and len(limit) > _LONGEST:
            return None
        if limit in {float("inf"), float("-inf")}:
            return None
    return low, high


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
