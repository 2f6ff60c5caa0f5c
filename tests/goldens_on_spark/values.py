"""The recorded encoding of values: from JSON to Arrow, and from Arrow back to a text that compares like the values."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from rowmerge_nb.spi.types import Type


def decode(kind: Type, value: Any) -> Any:
    """Return the Python value that pyarrow accepts for a recorded one."""
    if value is None:
        return None
    match kind.base:
        case "real" | "double":
            return float(value)
        case "decimal":
            return Decimal(value)
        case "varbinary":
            return bytes.fromhex(value)
        case "date":
            return dt.date.fromisoformat(value)
        case "time":
            return dt.time.fromisoformat(value)
        case "timestamp":
            return dt.datetime.fromisoformat(value)
        case "timestamp with time zone":
            return dt.datetime.fromisoformat(value.replace(" UTC", "+00:00"))
        case "array":
            return [decode(kind.parameters[0], item) for item in value]
        case "map":
            return [
                (decode(kind.parameters[0], key), decode(kind.parameters[1], item))
                for key, item in value
            ]
        case "row":
            fields = zip(kind.fields, kind.parameters, strict=True)
            return {name: decode(part, value[name]) for name, part in fields}
        case _:
            return value


def encode(kind: Type, value: Any) -> Any:
    """Return a value of Arrow in the recorded encoding, floats by their value and the sign of zero."""
    if value is None:
        return None
    match kind.base:
        case "real":
            return _float(float(np.float32(value)))
        case "double":
            return _float(float(value))
        case "decimal":
            return format(value, "f")
        case "varbinary":
            return value.hex()
        case "date":
            return value.isoformat()
        case "time":
            return value.isoformat("microseconds")
        case "timestamp":
            return value.isoformat(" ", "microseconds")
        case "timestamp with time zone":
            return f"{value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(' ', 'microseconds')} UTC"
        case "array":
            return [encode(kind.parameters[0], item) for item in value]
        case "map":
            pairs = [
                [encode(kind.parameters[0], key), encode(kind.parameters[1], item)]
                for key, item in value
            ]
            return sorted(pairs, key=lambda pair: json.dumps(pair[0]))
        case "row":
            return [
                encode(part, item)
                for part, item in zip(kind.parameters, value.values(), strict=True)
            ]
        case _:
            return value


def _float(value: float) -> str:
    return "NaN" if math.isnan(value) else value.hex()


def to_arrow(kinds: list[tuple[str, Type]], rows: list[list[Any]]) -> pa.RecordBatch:
    """Return recorded rows as a page."""
    columns = [
        pa.array([decode(kind, row[i]) for row in rows], kind.arrow)
        for i, (_, kind) in enumerate(kinds)
    ]
    return pa.RecordBatch.from_arrays(columns, names=[name for name, _ in kinds])


def row_texts(kinds: list[Type], table: pa.Table | pa.RecordBatch) -> list[str]:
    """Return each row as a text; equal rows have equal texts. Sorted, so that lists compare as multisets."""
    columns = [column.to_pylist() for column in table.columns]
    return sorted(
        json.dumps([encode(kind, value) for kind, value in zip(kinds, row, strict=True)])
        for row in zip(*columns, strict=True)
    )
