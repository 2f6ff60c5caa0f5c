"""Trino's blocks to Arrow arrays, by their buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.words import plural
from rowmerge_nb.connectors.trino.host.block_building import (
    _SHORT_DECIMAL,
    _SHORT_TIMESTAMP,
    _SHORT_TIMESTAMP_TZ,
    _ZONE_BITS,
)
from rowmerge_nb.connectors.trino.host.versions import package_private
from rowmerge_nb.spi.uuids import uuid_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from rowmerge_nb.connectors.trino.host.block_building import ChannelType
    from rowmerge_nb.connectors.trino.host.jvm import JavaObject
    from rowmerge_nb.connectors.trino.host.versions import SpiVersion

_PICOS_OF_MICRO: Final = 1_000_000


class BlockReader:
    """Reads blocks and pages of one version of the SPI."""

    def __init__(self, version: SpiVersion) -> None:
        self._version = version
        self._readers: dict[str, Callable[[JavaObject, int, ChannelType], pa.Array]] = {
            "boolean": self._booleans,
            **dict.fromkeys(
                ("tinyint", "smallint", "integer", "bigint", "real", "double", "date"),
                self._numbers,
            ),
            "decimal": self._decimals,
            **dict.fromkeys(("varchar", "varbinary", "json"), self._texts),
            "char": self._padded_texts,
            "time": self._times,
            "timestamp": self._timestamps,
            "timestamp with time zone": self._instants,
            "uuid": self._uuids,
            "array": self._arrays,
            "map": self._maps,
            "row": self._rows,
            "unknown": self._nulls,
        }

    def batch(
        self, page: JavaObject, types: Sequence[ChannelType], names: Sequence[str]
    ) -> pa.RecordBatch:
        if not types:
            # A batch without columns has no number of rows in Arrow's format; the header has it.
            return pa.RecordBatch.from_arrays([], names=[])
        count = int(page.getChannelCount())
        if count != len(types):
            raise ConnectorError(
                f"A page of the plugin has {plural(count, 'block')}, and"
                f" {plural(len(types), 'column')} were requested",
                code="GENERIC_INTERNAL_ERROR",
                hint="Return one block for each requested column, in the order of the request.",
            )
        columns = [self.array(page.getBlock(i), channel) for i, channel in enumerate(types)]
        return pa.RecordBatch.from_arrays(columns, names=list(names))

    def array(self, block: JavaObject, channel: ChannelType) -> pa.Array:
        count = int(block.getPositionCount())
        read = self._readers.get(channel.sql.base)
        if read is None:
            raise ConnectorError(
                f"Type {channel.sql} cannot be read from a plugin",
                hint="Select other columns.",
            )
        if not count:
            return pa.nulls(0, channel.sql.arrow)
        form = str(block.getClass().getSimpleName())
        expected = self._block_name(channel)
        if form not in ("RunLengthEncodedBlock", "DictionaryBlock", expected):
            raise ConnectorError(
                f"A page of the plugin has {form} for a column of {channel.sql}, whose block is"
                f" {expected}",
                code="GENERIC_INTERNAL_ERROR",
                hint=f"Build the block with a block builder of {channel.sql}.",
            )
        if form == "RunLengthEncodedBlock":
            value = self.array(block.getValue(), channel)
            return value.take(pa.array(np.zeros(count, np.int64)))
        if form == "DictionaryBlock":
            return self._dictionary(block, count, channel)
        return read(
            block if self._version.has_validity_bitmaps else _compact(block), count, channel
        )

    def _block_name(self, channel: ChannelType) -> str:
        return str(channel.java.getValueBlockType().getSimpleName())

    def _dictionary(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        offset = int(package_private(block, "getRawIdsOffset"))
        identifiers = package_private(block, "getRawIds")
        dictionary = block.getDictionary()
        if dictionary.getPositionCount() > count:
            return self.array(dictionary.copyPositions(identifiers, offset, count), channel)
        index = _copy(identifiers, offset, offset + count)
        return self.array(dictionary, channel).take(pa.array(index))

    def _booleans(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        values = np.packbits(_values(block, count) != 0, bitorder="little")
        return self._from_values(block, count, channel, values)

    def _numbers(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        return self._from_values(block, count, channel, _values(block, count))

    def _decimals(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        if channel.sql.parameters[0] <= _SHORT_DECIMAL:
            low = _values(block, count)
            pairs = np.stack([low, low >> 63], axis=1)
        else:
            pairs = _values(block, count, 2)[:, ::-1]
        return self._from_values(block, count, channel, pairs)

    def _times(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        micros, picos = np.divmod(_values(block, count), _PICOS_OF_MICRO)
        return self._from_micros(block, count, channel, micros, picos)

    def _timestamps(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        if channel.sql.parameters[0] <= _SHORT_TIMESTAMP:
            return self._numbers(block, count, channel)
        micros, picos = self._twelve_bytes(block, count)
        return self._from_micros(block, count, channel, micros, picos)

    def _instants(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        if channel.sql.parameters[0] <= _SHORT_TIMESTAMP_TZ:
            millis = _values(block, count) >> _ZONE_BITS
            return self._from_values(block, count, channel, millis * 1000)
        packed, picos_of_milli = self._twelve_bytes(block, count)
        micros, picos = np.divmod(picos_of_milli, _PICOS_OF_MICRO)
        instants = (packed >> _ZONE_BITS) * 1000 + micros
        return self._from_micros(block, count, channel, instants, picos)

    def _uuids(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        raw = pa.py_buffer(np.ascontiguousarray(_values(block, count, 2)))
        valid = self._valid(block, count)
        return uuid_texts(pa.Array.from_buffers(pa.binary(16), count, [valid, raw]))

    def _texts(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        base = int(package_private(block, "getRawArrayBase", "arrayOffset"))
        offsets = _copy(
            package_private(block, "getRawOffsets", "getOffsets", "offsets"), base, base + count + 1
        )
        first, last = int(offsets[0]), int(offsets[-1])
        raw = package_private(block, "getRawSlice", "slice")
        data = self._slice_bytes(raw, first, last)
        buffers = [
            self._valid(block, count),
            pa.py_buffer(offsets - offsets[0]),
            pa.py_buffer(data),
        ]
        return pa.Array.from_buffers(channel.sql.arrow, count, buffers)

    def _slice_bytes(self, raw: JavaObject, first: int, last: int) -> NDArray[Any]:
        start = int(raw.byteArrayOffset())
        return _copy(raw.byteArray(), start + first, start + last)

    def _padded_texts(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        # Trino's blocks hold values of char without trailing spaces.
        texts = self._texts(block, count, channel)
        return pc.utf8_rpad(texts, channel.sql.parameters[0], " ")

    def _arrays(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        offsets, first, length = _offsets(block, count)
        (element,) = channel.parameters()
        elements = package_private(block, "getRawElementBlock").getRegion(first, length)
        return pa.Array.from_buffers(
            channel.sql.arrow,
            count,
            [self._valid(block, count), pa.py_buffer(offsets)],
            children=[self.array(elements, element)],
        )

    def _maps(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        offsets, first, length = _offsets(block, count)
        blocks = [package_private(block, f"getRaw{part}Block") for part in ("Key", "Value")]
        keys, values = (
            self.array(each.getRegion(first, length), parameter)
            for each, parameter in zip(blocks, channel.parameters(), strict=True)
        )
        entry = channel.sql.arrow.field(0).type
        entries = pa.StructArray.from_arrays([keys, values], fields=list(entry))
        return pa.Array.from_buffers(
            channel.sql.arrow,
            count,
            [self._valid(block, count), pa.py_buffer(offsets)],
            children=[entries],
        )

    def _rows(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        # Row blocks of older versions always start at position 0.
        base = int(block.getOffsetBase()) if hasattr(block, "getOffsetBase") else 0
        children = [
            self.array(field.getRegion(base, count), parameter)
            for field, parameter in zip(
                package_private(block, "getRawFieldBlocks"), channel.parameters(), strict=True
            )
        ]
        return pa.Array.from_buffers(
            channel.sql.arrow, count, [self._valid(block, count)], children=children
        )

    def _nulls(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        return pa.nulls(count)

    def _twelve_bytes(
        self, block: JavaObject, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        values = _values(block, count, 3)
        first = np.ascontiguousarray(values[:, :2]).view(np.int64).reshape(count)
        return first, values[:, 2]

    def _from_micros(
        self,
        block: JavaObject,
        count: int,
        channel: ChannelType,
        micros: NDArray[np.int64],
        picos: NDArray[Any],
    ) -> pa.Array:
        array = self._from_values(block, count, channel, micros)
        if picos.any() and (picos[np.asarray(array.is_valid())]).any():
            raise ConnectorError(
                f"A value of {channel.sql} has more than six digits of fractional seconds",
                hint="Pages here hold microseconds. Use a table with a precision of at most 6.",
            )
        return array

    def _from_values(
        self, block: JavaObject, count: int, channel: ChannelType, values: NDArray[Any]
    ) -> pa.Array:
        buffer = pa.py_buffer(np.ascontiguousarray(values))
        return pa.Array.from_buffers(channel.sql.arrow, count, [self._valid(block, count), buffer])

    def _valid(self, block: JavaObject, count: int) -> pa.Buffer | None:
        bits = self._version.read_validity(block, count)
        return None if bits is None else pa.py_buffer(bits)


def _compact(block: JavaObject) -> JavaObject:
    """Return a block whose values start at position 0: older versions hide the offset."""
    return block.copyRegion(0, block.getPositionCount())


def _copy(java_array: JavaObject, start: int, end: int) -> NDArray[Any]:
    if start == 0 and end == len(java_array):
        return np.array(java_array)
    return np.array(java_array[start:end])


def _values(block: JavaObject, count: int, width: int = 1) -> NDArray[Any]:
    """Return the values of a block of fixed width; ``width`` is the number of array elements each."""
    names = (
        ("getRawValuesOffset", "arrayOffset") if width == 1 else ("getRawOffset", "positionOffset")
    )
    offset = int(package_private(block, *names)) * width
    values = _copy(package_private(block, "getRawValues", "values"), offset, offset + count * width)
    return values if width == 1 else values.reshape(count, width)


def _offsets(block: JavaObject, count: int) -> tuple[NDArray[np.int32], int, int]:
    """Return offsets that start with 0, and the range of the children."""
    base = int(package_private(block, "getOffsetBase"))
    offsets = _copy(package_private(block, "getRawOffsets", "getOffsets"), base, base + count + 1)
    first = int(offsets[0])
    return offsets - offsets[0], first, int(offsets[-1]) - first
