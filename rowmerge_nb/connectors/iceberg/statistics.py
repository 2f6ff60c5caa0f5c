"""What the manifests of a snapshot tell of its columns: NULLs, sizes and bounds of whole files, deleted rows among them."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi.metadata import ColumnStatistics

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema

    from rowmerge_nb.connectors.iceberg.handles import Field

_EPOCH: Final = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a timestamp without a zone
_SHOWN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "decimal": lambda value: value,
    "date": lambda days: _EPOCH.date() + dt.timedelta(days=days),
    "timestamp": lambda micros: _EPOCH + dt.timedelta(microseconds=micros),
}
"""The kinds of columns of which bounds are told, and what makes a value of a bound."""
_SIZED: Final = ("string", "binary")


def column_statistics(files: Sequence[DataFile], fields: Iterable[Field], schema: Schema) -> dict[str, ColumnStatistics]:
    """Give what the data files of a snapshot tell of its columns, by their names.

    Args:
        files: the data files.
        fields: the columns.
        schema: the table's schema.
    """
    return {field.name: _column(files, field, schema) for field in fields}


def _column(files: Sequence[DataFile], field: Field, schema: Schema) -> ColumnStatistics:
    rows = sum(file.record_count for file in files)
    nulls = _total(files, field, "null_value_counts")
    return ColumnStatistics(
        nulls_fraction=None if nulls is None or not rows else nulls / rows,
        data_size=_total(files, field, "column_sizes") if field.kind in _SIZED else None,
        low_value=_bound(files, field, schema, "lower_bounds", min),
        high_value=_bound(files, field, schema, "upper_bounds", max),
    )


def _total(files: Sequence[DataFile], field: Field, name: str) -> int | None:
    """Give a sum of all files; None where one of them does not tell, as one of a time before the column was there."""
    found: list[int] = [(getattr(file, name) or {}).get(field.id, -1) for file in files]
    return None if not found or min(found) < 0 else sum(found)


def _bound(files: Sequence[DataFile], field: Field, schema: Schema, name: str, choose: Callable[[list[Any]], Any]) -> Any:
    """Give the bound of all files; None where a file with values tells none."""
    from pyiceberg.conversions import from_bytes

    if field.kind not in _SHOWN:
        return None
    kind: Any = schema.find_field(field.id).field_type
    found: list[Any] = []
    for file in files:
        known = (getattr(file, name) or {}).get(field.id)
        if known is None:
            if (file.null_value_counts or {}).get(field.id) == file.record_count:
                continue
            return None
        found.append(from_bytes(kind, known))
    if not found or any(isinstance(value, float) and math.isnan(value) for value in found):
        return None
    try:
        return _SHOWN[field.kind](choose(found))
    except OverflowError:
        # Python has no such date.
        return None
