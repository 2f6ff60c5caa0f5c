"""Join keys of both sides in one type each, so that equal values are stored alike."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["comparable"]


def comparable(values: pa.Array) -> pa.Array:
    """Return values in the widest type of their family: the width of integers and decimals, and the layout of texts, do not matter.

    >>> comparable(pa.array([1], pa.int8())).type, comparable(pa.array(["a"], pa.large_string())).type
    (DataType(int64), DataType(string))
    """
    sql_type = values.type
    if pa.types.is_dictionary(sql_type):
        return comparable(values.dictionary_decode())
    if pa.types.is_integer(sql_type):
        return values.cast(pa.int64())
    if pa.types.is_decimal(sql_type):
        return values.cast(pa.decimal128(38, sql_type.scale))
    if pa.types.is_large_string(sql_type) or pa.types.is_string_view(sql_type):
        return values.cast(pa.string())
    return values
