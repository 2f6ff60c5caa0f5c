"""A process with Java that builds blocks of Arrow columns, describes them, and reads them back."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowmerge_nb.connectors.trino.host.abandoned_calls import AbandonedCalls
from rowmerge_nb.connectors.trino.host.block_building import ChannelType
from rowmerge_nb.connectors.trino.host.constraints import tuple_domain
from rowmerge_nb.connectors.trino.host.jvm import java_class, java_text, start_java
from rowmerge_nb.connectors.trino.host.spi_versions import (
    block_builder,
    block_reader,
    spi_version,
)
from rowmerge_nb.connectors.trino.host_channel import (
    ChannelClosedError,
    HostChannel,
    pack_batch,
    unpack_batch,
)
from rowmerge_nb.spi.types import parse_type

if TYPE_CHECKING:
    from rowmerge_nb.connectors.trino.host.block_building import BlockBuilder
    from rowmerge_nb.connectors.trino.host.block_reading import BlockReader
    from rowmerge_nb.connectors.trino.host.versions import SpiVersion


def main() -> None:
    """Serve requests until the other side closes."""
    engine, java_home, number = sys.argv[1:]
    start_java(java_home, engine)
    version = spi_version(engine)
    channel = HostChannel(socket.socket(fileno=int(number)))
    while True:
        try:
            header, payload = channel.receive()
        except ChannelClosedError:
            os._exit(0)
        try:
            result, batch = _answer(version, header, unpack_batch(payload))
            channel.send(result, pack_batch(batch))
        except Exception:  # noqa: BLE001 - the test reads it
            channel.send({"error": traceback.format_exc()})


def _answer(version: SpiVersion, header: dict[str, Any], batch: Any) -> tuple[dict[str, Any], Any]:
    if header["form"] == "sleep":
        return {"seconds": _interrupted_sleep()}, batch
    types = java_class("io.trino.type.InternalTypeManager").TESTING_TYPE_MANAGER
    if header["form"] == "picoseconds":
        return {}, block_reader(version).batch(*_picoseconds(version, types, batch))
    channels = [
        ChannelType(parse_type(text), types.fromSqlType(java_text(text)))
        for text in header["types"]
    ]
    builder, reader = block_builder(version), block_reader(version)
    if "domain" in header:
        return _domain(header["domain"], channels[0], builder, reader)
    page = builder.page(batch, channels)
    for block in (page.getBlock(i) for i in range(len(channels))):
        _describe(block)
    form = header["form"]
    if form == "time":
        return _times(builder, reader, batch, channels), batch
    page = _FORMS[form](page)
    described = [
        [
            None if block.isNull(i) else _text(_value(channel.java, block, i))
            for i in range(block.getPositionCount())
        ]
        for channel, block in zip(
            channels, (page.getBlock(i) for i in range(len(channels))), strict=True
        )
    ]
    classes = [str(page.getBlock(i).getClass().getSimpleName()) for i in range(len(channels))]
    names = [f"c{i}" for i in range(len(channels))]
    return {"values": described, "classes": classes}, reader.batch(page, channels, names)


def _domain(
    domain: dict[str, Any], channel: ChannelType, builder: BlockBuilder, reader: BlockReader
) -> tuple[dict[str, Any], Any]:
    """Build the TupleDomain of a domain, and return the bounds of its ranges as a batch."""
    import jpype

    handle = java_class("java.lang.String")("c")
    built = tuple_domain({"c": domain}, {"c": (handle, channel.java)}, builder)
    if built.isNone():
        return {"none": True}, pa.record_batch({"c0": pa.nulls(0)})
    values = built.getDomains().get().get(handle)
    spans = list(values.getValues().getRanges().getOrderedRanges())
    bounds = [
        bound.get()
        for span in spans
        for bound in (span.getLowValue(), span.getHighValue())
        if bound.isPresent()
    ]
    utils = java_class("io.trino.spi.type.TypeUtils")
    values_builder = channel.java.createBlockBuilder(None, max(len(bounds), 1))
    for bound in bounds:
        utils.writeNativeValue(channel.java, values_builder, bound)
    page = java_class("io.trino.spi.Page")(
        jpype.JArray(java_class("io.trino.spi.block.Block"))([values_builder.build()])
    )
    ends = [[bool(span.isLowUnbounded()), bool(span.isHighUnbounded())] for span in spans]
    described = {"nulls": bool(values.isNullAllowed()), "unbounded": ends}
    return described, reader.batch(page, [channel], ["c0"])


def _interrupted_sleep() -> float:
    """Sleep in Java for a minute while the other side of a connection closes; return the time."""
    here, there = socket.socketpair()
    thread = java_class("java.lang.Thread")
    threading.Timer(0.5, there.close).start()
    start = time.monotonic()
    with AbandonedCalls().watched(here, thread.currentThread().interrupt):
        try:
            thread.sleep(60_000)
        except java_class("java.lang.InterruptedException"):
            return time.monotonic() - start
    raise AssertionError("The sleep ended by itself")


def _value(java_type: Any, block: Any, position: int) -> Any:
    try:
        return java_type.getObjectValue(block, position)
    except TypeError:
        session = java_class("io.trino.testing.TestingConnectorSession").SESSION
        return java_type.getObjectValue(session, block, position)


def _text(value: Any) -> str:
    return str(java_class("java.lang.String").valueOf(value))


def _picoseconds(version: SpiVersion, types: Any, batch: Any) -> Any:
    """A page of timestamp(12) whose picoseconds are the numbers of the batch, NULL if negative."""
    import jpype

    column = batch.column(0)
    values = np.zeros((len(column), 3), np.int32)
    values[:, 2] = column.to_numpy()
    valid = np.packbits(values[:, 2] >= 0, bitorder="little")
    block = java_class("io.trino.spi.block.Fixed12Block")(
        len(column),
        version.null_argument(valid, len(column)),
        jpype.JArray(jpype.JInt)(values.reshape(-1)),
    )
    text = "timestamp(12)"
    page = java_class("io.trino.spi.Page")(
        len(column), jpype.JArray(java_class("io.trino.spi.block.Block"))([block])
    )
    return page, [ChannelType(parse_type(text), types.fromSqlType(java_text(text)))], ["c0"]


def _describe(block: Any) -> None:
    """Use the block like Trino: an invalid block fails here."""
    count = block.getPositionCount()
    block.getRegionSizeInBytes(0, count)
    block.copyRegion(0, count)
    if hasattr(block, "copyWithAppendedNull"):
        block.copyWithAppendedNull()


def _positions(page: Any, positions: list[int]) -> Any:
    import jpype

    return jpype.JArray(jpype.JInt)(np.asarray(positions, np.int32)), 0, len(positions)


def _dictionary(page: Any) -> Any:
    count = page.getPositionCount()
    return page.getPositions(*_positions(page, [i for i in range(count) for _ in range(3)][::-1]))


def _sparse(page: Any) -> Any:
    return page.getPositions(*_positions(page, [page.getPositionCount() - 1, 0]))


def _run_length(page: Any) -> Any:
    import jpype

    run_length = java_class("io.trino.spi.block.RunLengthEncodedBlock")

    def repeat(block: Any) -> Any:
        try:
            return run_length.create(block, 4)
        except TypeError:
            return run_length(block, 4)

    blocks = [repeat(page.getBlock(i).getRegion(1, 1)) for i in range(page.getChannelCount())]
    return java_class("io.trino.spi.Page")(
        4, jpype.JArray(java_class("io.trino.spi.block.Block"))(blocks)
    )


_FORMS: dict[str, Any] = {
    "plain": lambda page: page,
    "region": lambda page: page.getRegion(1, page.getPositionCount() - 2),
    "dictionary": _dictionary,
    "sparse": _sparse,
    "run length": _run_length,
}


def _times(builder: Any, reader: Any, batch: Any, channels: Any) -> dict[str, Any]:
    building, reading = [], []
    names = [str(i) for i in range(len(channels))]
    for _ in range(60):
        start = time.perf_counter()
        page = builder.page(batch, channels)
        middle = time.perf_counter()
        reader.batch(page, channels, names)
        building.append(middle - start)
        reading.append(time.perf_counter() - middle)
    return {
        "build": float(np.median(building[20:]) * 1000),
        "read": float(np.median(reading[20:]) * 1000),
    }


if __name__ == "__main__":
    main()
