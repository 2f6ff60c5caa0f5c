"""Conversion of Arrow arrays to Trino's blocks by their buffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.jpype_library import jpype
from rowmerge_nb.connectors.trino.host.jvm import java_class
from rowmerge_nb.spi.uuids import uuid_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject
    from rowmerge_nb.connectors.trino.host.versions import SpiVersion
    from rowmerge_nb.spi.types import Type

_BLOCK: Final = "io.trino.spi.block."
_SHORT_DECIMAL: Final = 18
_SHORT_TIMESTAMP: Final = 6
_SHORT_TIMESTAMP_TZ: Final = 3
_ZONE_BITS: Final = 12
_UTC_ZONE: Final = 0
_LARGEST_MILLIS: Final = 2**51
_UUID_CHARACTERS: Final = 36


@dataclass(frozen=True)
class ChannelType:
    """The type of a channel on both sides: ours and Trino's."""

    sql: Type
    java: JavaObject

    def parameters(self) -> list[ChannelType]:
        return [
            ChannelType(sql, java)
            for sql, java in zip(self.sql.parameters, self.java.getTypeParameters(), strict=True)
        ]


class BlockBuilder:
    """Builds blocks and pages for one version of the SPI."""

    def __init__(self, version: SpiVersion) -> None:
        self._version = version
        self._builders: dict[str, Callable[[pa.Array, ChannelType], JavaObject]] = {
            **dict.fromkeys(("boolean", "tinyint"), self._bytes),
            "smallint": self._shorts,
            **dict.fromkeys(("integer", "date", "real"), self._ints),
            **dict.fromkeys(("bigint", "double"), self._longs),
            "decimal": self._decimals,
            **dict.fromkeys(("varchar", "char", "varbinary", "json"), self._bytes_of_any_length),
            "time": self._times,
            "timestamp": self._timestamps,
            "timestamp with time zone": self._instants,
            "uuid": self._uuids,
            "array": self._arrays,
            "map": self._maps,
            "row": self._rows,
            "unknown": self._nulls,
        }

    def page(self, batch: pa.RecordBatch, types: Sequence[ChannelType]) -> JavaObject:
        if batch.num_columns != len(types):
            raise ConnectorError(
                f"A page has {batch.num_columns} columns and {len(types)} types",
                code="GENERIC_INTERNAL_ERROR",
            )
        blocks = [
            self.block(column, channel)
            for column, channel in zip(batch.columns, types, strict=True)
        ]
        return java_class("io.trino.spi.Page")(
            batch.num_rows, jpype.JArray(java_class(f"{_BLOCK}Block"))(blocks)
        )

    def block(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        build = self._builders.get(channel.sql.base)
        if build is None:
            raise ConnectorError(
                f"Type {channel.sql} cannot be passed to a plugin",
                hint="Use a table without columns of this type.",
            )
        return build(array, channel)

    def _bytes(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        values = _numbers(array, pa.int8(), np.int8)
        return self._fixed("ByteArrayBlock", jpype.JByte, array, values)

    def _shorts(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        return self._fixed(
            "ShortArrayBlock", jpype.JShort, array, _numbers(array, pa.int16(), np.int16)
        )

    def _ints(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        values = _numbers(array, channel.sql.arrow, np.int32)
        return self._fixed("IntArrayBlock", jpype.JInt, array, values)

    def _longs(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        values = _numbers(array, channel.sql.arrow, np.int64)
        return self._fixed("LongArrayBlock", jpype.JLong, array, values)

    def _decimals(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        pairs = _numbers(array, channel.sql.arrow, np.dtype((np.int64, 2)))
        if channel.sql.parameters[0] <= _SHORT_DECIMAL:
            return self._fixed("LongArrayBlock", jpype.JLong, array, pairs[:, 0])
        return self._fixed("Int128ArrayBlock", jpype.JLong, array, pairs[:, ::-1])

    def _times(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        micros = _numbers(array, channel.sql.arrow, np.int64)
        return self._fixed("LongArrayBlock", jpype.JLong, array, micros * 1_000_000)

    def _timestamps(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        micros = _numbers(array, channel.sql.arrow, np.int64)
        if channel.sql.parameters[0] <= _SHORT_TIMESTAMP:
            return self._fixed("LongArrayBlock", jpype.JLong, array, micros)
        return self._twelve_bytes(array, micros, np.zeros_like(micros))

    def _instants(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        micros = _numbers(array.fill_null(0), channel.sql.arrow, np.int64)
        millis, rest = np.divmod(micros, 1000)
        if len(millis) and max(-int(millis.min()), int(millis.max())) >= _LARGEST_MILLIS:
            raise ConnectorError(
                f"A value of {channel.sql} is outside the years that Trino stores",
                code="NUMERIC_VALUE_OUT_OF_RANGE",
                hint="Use a value between the years -69387 and 73326.",
            )
        packed = (millis << _ZONE_BITS) | _UTC_ZONE
        if channel.sql.parameters[0] <= _SHORT_TIMESTAMP_TZ:
            return self._fixed("LongArrayBlock", jpype.JLong, array, packed)
        return self._twelve_bytes(array, packed, rest * 1_000_000)

    def _uuids(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        if pc.any(pc.not_equal(pc.binary_length(array), _UUID_CHARACTERS)).as_py():
            raise ConnectorError(
                "A value of type uuid is not a text of 36 characters", code="INVALID_CAST_ARGUMENT"
            )
        pairs = np.frombuffer(uuid_bytes(array).buffers()[1] or b"", np.int64)
        return self._fixed("Int128ArrayBlock", jpype.JLong, array, pairs)

    def _bytes_of_any_length(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        plain = array.cast(channel.sql.arrow)
        if plain.null_count:
            # Trino's NULLs have no bytes; Arrow's may.
            plain = plain.fill_null("" if pa.types.is_string(plain.type) else b"")
        if channel.sql.base == "char":
            plain = pc.utf8_rtrim(plain, " ")
        data, offsets = _bytes_and_offsets(plain)
        return java_class(f"{_BLOCK}VariableWidthBlock")(
            len(array),
            java_class("io.airlift.slice.Slices").wrappedBuffer(java_array(jpype.JByte, data)),
            java_array(jpype.JInt, offsets),
            self._null_argument(array),
        )

    def _arrays(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        offsets, children = children_of(array, [array.values])
        (element,) = channel.parameters()
        return java_class(f"{_BLOCK}ArrayBlock").fromElementBlock(
            len(array),
            self._null_argument(array),
            java_array(jpype.JInt, offsets),
            self.block(children[0], element),
        )

    def _maps(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        offsets, children = children_of(array, [array.keys, array.items])
        blocks = self._blocks(children, channel)
        return java_class(f"{_BLOCK}MapBlock").fromKeyValueBlock(
            self._null_argument(array),
            java_array(jpype.JInt, offsets),
            len(array),
            *blocks,
            channel.java,
        )

    def _rows(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        # flatten() makes the fields of a NULL row NULL, as Trino requires.
        blocks = self._blocks(array.flatten(), channel)
        return java_class(f"{_BLOCK}RowBlock").fromNotNullSuppressedFieldBlocks(
            len(array),
            self._null_argument(array),
            jpype.JArray(java_class(f"{_BLOCK}Block"))(blocks),
        )

    def _blocks(self, children: list[pa.Array], channel: ChannelType) -> list[JavaObject]:
        return [
            self.block(child, parameter)
            for child, parameter in zip(children, channel.parameters(), strict=True)
        ]

    def _nulls(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        return java_class(f"{_BLOCK}RunLengthEncodedBlock").create(channel.java, None, len(array))

    def _fixed(
        self, block: str, java_type: JavaObject, array: pa.Array, values: NDArray[Any]
    ) -> JavaObject:
        return java_class(_BLOCK + block)(
            len(array), self._null_argument(array), java_array(java_type, values)
        )

    def _twelve_bytes(
        self, array: pa.Array, first: NDArray[np.int64], second: NDArray[Any]
    ) -> JavaObject:
        return self._fixed("Fixed12Block", jpype.JInt, array, _fixed12(first, second))

    def _null_argument(self, array: pa.Array) -> JavaObject:
        valid = None
        if array.null_count:
            bits = pc.is_valid(array)
            valid = np.frombuffer(bits.buffers()[1], np.uint8)
        return self._version.null_argument(valid, len(array))


def java_array(java_type: JavaObject, values: NDArray[Any]) -> JavaObject:
    return jpype.JArray(java_type)(np.ascontiguousarray(values).reshape(-1))


def _numbers(array: pa.Array, arrow_type: pa.DataType, dtype: Any) -> NDArray[Any]:
    plain = array.cast(arrow_type)
    numpy_type, data = np.dtype(dtype), plain.buffers()[1]
    shape = (len(plain), *numpy_type.shape)
    if data is None or not len(plain):
        return np.zeros(shape, numpy_type.base)
    values = np.frombuffer(
        data,
        numpy_type.base,
        count=int(np.prod(shape)),
        offset=plain.offset * numpy_type.itemsize,
    )
    return values.reshape(shape)


def _bytes_and_offsets(array: pa.Array) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
    _, offset_data, data = array.buffers()
    if offset_data is None or not len(array):
        return np.zeros(0, np.int8), np.zeros(len(array) + 1, np.int32)
    offsets = np.frombuffer(offset_data, np.int32, count=len(array) + 1, offset=array.offset * 4)
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last or data is None:
        return np.zeros(0, np.int8), offsets - first
    return np.frombuffer(data, np.int8, count=last - first, offset=first), offsets - first


def children_of(
    array: pa.Array, children: list[pa.Array]
) -> tuple[NDArray[np.int32], list[pa.Array]]:
    """Return the offsets of a list or map array, and its children without gaps."""
    if not len(array):
        return np.zeros(1, np.int32), [child.slice(0, 0) for child in children]
    offsets = np.frombuffer(
        array.buffers()[1], np.int32, count=len(array) + 1, offset=array.offset * 4
    )
    if array.null_count:
        lengths = np.diff(offsets)
        entry_counts = np.where(np.asarray(pc.is_valid(array)), lengths, 0)
        if (entry_counts != lengths).any():
            # Trino's NULLs have no entries; Arrow's may.
            compact = np.concatenate([[0], np.cumsum(entry_counts)]).astype(np.int32)
            index = np.arange(compact[-1]) + np.repeat(offsets[:-1] - compact[:-1], entry_counts)
            return compact, [child.take(pa.array(index)) for child in children]
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    return offsets - offsets[0], [child.slice(first, count) for child in children]


def _fixed12(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return 12-byte values: the long as two ints, then the int."""
    values = np.empty((len(first), 3), np.int32)
    values[:, :2] = np.ascontiguousarray(first).view(np.int32).reshape(-1, 2)
    values[:, 2] = second
    return values
