"""Blocks of versions with the older flow, such as Trino 380.

Their rows have fields for rows that are not NULL only, and values of twelve bytes are in two arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.connectors.trino.host.block_building import BlockBuilder, children_of, java_array
from rowmerge_nb.connectors.trino.host.block_reading import BlockReader
from rowmerge_nb.connectors.trino.host.jpype_library import jpype
from rowmerge_nb.connectors.trino.host.jvm import java_class
from rowmerge_nb.connectors.trino.host.versions import package_private

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rowmerge_nb.connectors.trino.host.block_building import ChannelType
    from rowmerge_nb.connectors.trino.host.jvm import JavaObject

_BLOCK: Final = "io.trino.spi.block."


class OlderBlockBuilder(BlockBuilder):
    def _maps(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        offsets, children = children_of(array, [array.keys, array.items])
        blocks = self._blocks(children, channel)
        return java_class(f"{_BLOCK}MapBlock").fromKeyValueBlock(
            self._null_argument(array), java_array(jpype.JInt, offsets), *blocks, channel.java
        )

    def _rows(self, array: pa.Array, channel: ChannelType) -> JavaObject:
        rows = array.drop_null() if array.null_count else array
        blocks = self._blocks(rows.flatten(), channel)
        return java_class(f"{_BLOCK}RowBlock").fromFieldBlocks(
            len(array),
            self._null_argument(array),
            jpype.JArray(java_class(f"{_BLOCK}Block"))(blocks),
        )

    def _twelve_bytes(
        self, array: pa.Array, first: NDArray[np.int64], second: NDArray[Any]
    ) -> JavaObject:
        return java_class(f"{_BLOCK}Int96ArrayBlock")(
            len(array),
            self._null_argument(array),
            java_array(jpype.JLong, first),
            java_array(jpype.JInt, second.astype(np.int32)),
        )


class OlderBlockReader(BlockReader):
    def array(self, block: JavaObject, channel: ChannelType) -> pa.Array:
        loaded = block.getLoadedBlock()
        return super().array(loaded.copyRegion(0, loaded.getPositionCount()), channel)

    def _block_name(self, channel: ChannelType) -> str:
        builder = channel.java.createBlockBuilder(None, 1)
        return str(builder.getClass().getSimpleName()).removesuffix("Builder")

    def _slice_bytes(self, raw: JavaObject, first: int, last: int) -> NDArray[Any]:
        # Their slices may be of memory outside of Java's arrays.
        return np.array(raw.getBytes(first, last - first))

    def _rows(self, block: JavaObject, count: int, channel: ChannelType) -> pa.Array:
        offsets = package_private(block, "getFieldBlockOffsets")
        base = int(package_private(block, "getOffsetBase"))
        starts = (
            np.arange(base, base + count + 1)
            if offsets is None
            else np.array(offsets)[base : base + count + 1]
        )
        first, length = int(starts[0]), int(starts[-1] - starts[0])
        index = pa.array(starts[:-1] - first, mask=starts[1:] == starts[:-1])
        children = [
            self.array(field.getRegion(first, length), parameter).take(index)
            for field, parameter in zip(
                package_private(block, "getRawFieldBlocks"), channel.parameters(), strict=True
            )
        ]
        return pa.Array.from_buffers(
            channel.sql.arrow, count, [self._valid(block, count)], children=children
        )

    def _twelve_bytes(
        self, block: JavaObject, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        offset = int(package_private(block, "positionOffset"))
        first, second = (
            np.array(package_private(block, name))[offset : offset + count]
            for name in ("high", "low")
        )
        return first, second
