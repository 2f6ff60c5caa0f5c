"""Lookup in a long list: one literal, an array of buckets.

Spark has no set type, and takes minutes to plan IN over a hundred thousand literals.
"""

from __future__ import annotations

import itertools
import json
import zlib
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.sql.spark.casts.moment_casts import micros
from rowmerge_nb.sql.spark.text import once
from rowmerge_nb.sql.typed.expressions import text_literal
from rowmerge_nb.sql.typed.type_rules import is_float, is_integer

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.typed.constant_set import ConstantSet

_IN_A_BUCKET: Final = 4
"""The average number of values per bucket."""
_SHORT_DECIMAL: Final = 18
_LIST: Final = "\0"
"""A placeholder for the list."""


def looked_up(text: str, constants: ConstantSet) -> str:
    """Write whether a value is in a list."""
    keys, numbers = _keys(constants.values, constants.type)
    count = max(len(keys) // _IN_A_BUCKET, 1)
    key_type = _KEY_TYPES.get(keys.type, "STRING")
    buckets = _buckets(keys, numbers % count, count)
    table = (
        f"from_json({text_literal(buckets)}, 'ARRAY<ARRAY<{key_type}>>', map('mode', 'FAILFAST'))"
    )

    def contains(key: str) -> str:
        return f"array_contains(get({_LIST}, {_bucket(key, key_type, count)}), {key})"

    result = once(contains, _key(text, constants.type)).replace(_LIST, table)
    return f"({result} OR CAST(NULL AS BOOLEAN))" if constants.has_null else result


_KEY_TYPES: Final = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE"}


def _key(text: str, sql_type: Type) -> str:
    if is_integer(sql_type):
        return f"CAST({text} AS BIGINT)"
    if is_float(sql_type):
        return f"CAST({text} AS DOUBLE)"
    if sql_type.base == "date":
        return f"CAST(unix_date({text}) AS BIGINT)"
    if sql_type.base == "timestamp":
        return micros(text, sql_type)
    if sql_type.base == "varbinary":
        return f"hex({text})"
    if sql_type.base == "decimal":
        precision, scale = sql_type.parameters
        if precision > _SHORT_DECIMAL:
            return f"CAST({text} AS STRING)"
        return (
            f"CAST({text} * CAST('1{'0' * scale}' AS DECIMAL({scale + 1},0)) AS BIGINT)"
            if scale
            else f"CAST({text} AS BIGINT)"
        )
    return text


def _keys(values: pa.Array, sql_type: Type) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return the values for lookup, and the numbers that select their buckets."""
    if is_float(sql_type):
        keys = values.cast(pa.float64())
        doubles = keys.to_numpy()
        inside = np.abs(doubles) < 2.0**63
        return keys, np.where(inside, np.trunc(np.where(inside, doubles, 0)), 0).astype(np.int64)
    if is_integer(sql_type) or sql_type.base in {"date", "timestamp"}:
        keys = values.cast(pa.int32()) if sql_type.base == "date" else values
        keys = keys.cast(pa.int64())
        return keys, keys.to_numpy()
    if sql_type.base == "decimal" and sql_type.parameters[0] <= _SHORT_DECIMAL:
        # A decimal's unscaled digits are the first of its two words.
        words = np.frombuffer(values.buffers()[1], np.int64)[2 * values.offset :]
        keys = pa.array(words[: 2 * len(values) : 2])
        return keys, keys.to_numpy()
    if sql_type.base == "varbinary":
        keys = pa.array([value.hex().upper() for value in values.to_pylist()], pa.string())
    elif sql_type.base == "decimal":
        keys = pa.array([f"{value:f}" for value in values.to_pylist()], pa.string())
    else:
        keys = pc.cast(values, pa.string())
    return keys, np.fromiter(
        (zlib.crc32(key.encode()) for key in keys.to_pylist()), np.int64, len(keys)
    )


def _bucket(key: str, key_type: str, count: int) -> str:
    if key_type == "STRING":
        return f"CAST(pmod(crc32(CAST({key} AS BINARY)), {count}L) AS INT)"
    if key_type == "DOUBLE":
        return f"CAST(coalesce(pmod(try_cast({key} AS BIGINT), {count}L), 0L) AS INT)"
    return f"CAST(pmod({key}, {count}L) AS INT)"


def _buckets(keys: pa.Array, numbers: npt.NDArray[np.int64], count: int) -> str:
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(count + 1))
    sorted_keys = keys.take(pa.array(order)).to_pylist()
    buckets = [sorted_keys[start:end] for start, end in itertools.pairwise(ends)]
    return json.dumps(buckets, separators=(",", ":"))
