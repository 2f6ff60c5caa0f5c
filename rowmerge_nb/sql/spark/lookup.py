"""Looking a value up in a long list, in Spark SQL: the list is one literal, an array of buckets, of which one is searched.

Spark has no set among its values; its IN over a list of a hundred thousand literals takes it minutes to plan.
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
"""So many values share a bucket, on average."""
_SHORT_DECIMAL: Final = 18
_LIST: Final = "\0"
"""Stands for the list while the text around it is made."""


def looked_up(text: str, known: ConstantSet) -> str:
    """Write whether a value is in a list, NULL where that is unknown.

    Args:
        text: what is looked for, of the type of the list's values.
        known: the list.

    >>> from rowmerge_nb.spi.types import INTEGER
    >>> from rowmerge_nb.sql.typed.constant_set import ConstantSet
    >>> looked_up("`a`", ConstantSet(INTEGER, pa.array([1, 2], pa.int32()), False))
    "array_contains(get(from_json('[[1,2]]', 'ARRAY<ARRAY<BIGINT>>', map('mode', 'FAILFAST')), CAST(pmod(CAST(`a` AS BIGINT), 1L) AS INT)), CAST(`a` AS BIGINT))"
    """
    keys, numbers = _keys(known.values, known.type)
    count = max(len(keys) // _IN_A_BUCKET, 1)
    kind = _KINDS.get(keys.type, "STRING")
    buckets = _buckets(keys, numbers % count, count)
    table = f"from_json({text_literal(buckets)}, 'ARRAY<ARRAY<{kind}>>', map('mode', 'FAILFAST'))"

    def written(key: str) -> str:
        return f"array_contains(get({_LIST}, {_bucket(key, kind, count)}), {key})"

    found = once(written, _key(text, known.type)).replace(_LIST, table)
    return f"({found} OR CAST(NULL AS BOOLEAN))" if known.has_null else found


_KINDS: Final = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE"}


def _key(text: str, kind: Type) -> str:
    """Write the value in the form in which it is looked up: a bigint, a double or a text."""
    if is_integer(kind):
        return f"CAST({text} AS BIGINT)"
    if is_float(kind):
        return f"CAST({text} AS DOUBLE)"
    if kind.base == "date":
        return f"CAST(unix_date({text}) AS BIGINT)"
    if kind.base == "timestamp":
        return micros(text, kind)
    if kind.base == "varbinary":
        return f"hex({text})"
    if kind.base == "decimal":
        precision, scale = kind.parameters
        if precision > _SHORT_DECIMAL:
            return f"CAST({text} AS STRING)"
        return (
            f"CAST({text} * CAST('1{'0' * scale}' AS DECIMAL({scale + 1},0)) AS BIGINT)" if scale else f"CAST({text} AS BIGINT)"
        )
    return text


def _keys(values: pa.Array, kind: Type) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Return values as they are looked up, and the numbers that find their buckets."""
    if is_float(kind):
        keys = values.cast(pa.float64())
        doubles = keys.to_numpy()
        inside = np.abs(doubles) < 2.0**63
        return keys, np.where(inside, np.trunc(np.where(inside, doubles, 0)), 0).astype(np.int64)
    if is_integer(kind) or kind.base in {"date", "timestamp"}:
        keys = values.cast(pa.int32()) if kind.base == "date" else values
        keys = keys.cast(pa.int64())
        return keys, keys.to_numpy()
    if kind.base == "decimal" and kind.parameters[0] <= _SHORT_DECIMAL:
        # The digits without the point are what a decimal is kept as: the first of the two words of a value.
        words = np.frombuffer(values.buffers()[1], np.int64)[2 * values.offset :]
        keys = pa.array(words[: 2 * len(values) : 2])
        return keys, keys.to_numpy()
    if kind.base == "varbinary":
        keys = pa.array([value.hex().upper() for value in values.to_pylist()], pa.string())
    elif kind.base == "decimal":
        keys = pa.array([f"{value:f}" for value in values.to_pylist()], pa.string())
    else:
        keys = pc.cast(values, pa.string())
    return keys, np.fromiter((zlib.crc32(key.encode()) for key in keys.to_pylist()), np.int64, len(keys))


def _bucket(key: str, kind: str, count: int) -> str:
    """Write the number of the bucket in which a value would be."""
    if kind == "STRING":
        return f"CAST(pmod(crc32(CAST({key} AS BINARY)), {count}L) AS INT)"
    if kind == "DOUBLE":
        return f"CAST(coalesce(pmod(try_cast({key} AS BIGINT), {count}L), 0L) AS INT)"
    return f"CAST(pmod({key}, {count}L) AS INT)"


def _buckets(keys: pa.Array, numbers: npt.NDArray[np.int64], count: int) -> str:
    """Write an array of numbers as JSON."""
    order = np.argsort(numbers, kind="stable")
    ends = np.searchsorted(numbers[order], np.arange(count + 1))
    sorted_keys = keys.take(pa.array(order)).to_pylist()
    buckets = [sorted_keys[start:end] for start, end in itertools.pairwise(ends)]
    return json.dumps(buckets, separators=(",", ":"))
