"""Calls of tasks: page sources, sinks and bucket functions, made from handles as JSON."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.block_building import BlockBuilder, ChannelType
from rowmerge_nb.connectors.trino.host.block_reading import BlockReader
from rowmerge_nb.connectors.trino.host.handle_json import SPI
from rowmerge_nb.connectors.trino.host.jpype_library import jpype
from rowmerge_nb.connectors.trino.host.jvm import (
    call_plugin,
    java_class,
    java_list,
    java_text,
)
from rowmerge_nb.connectors.trino.host.versions import bucket_numbers, completed_bytes
from rowmerge_nb.connectors.trino.host_channel import pack_batch, pack_fragments, unpack_batch
from rowmerge_nb.spi.types import parse_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject
    from rowmerge_nb.connectors.trino.host.plugin_loading import LoadedPlugin
    from rowmerge_nb.connectors.trino.host.sessions import Sessions

Request = dict[str, Any]
Answer = tuple[Any, "bytes | pa.Buffer"]
_NO_BYTES: Final = b""


class TaskCalls:
    """Answers the calls of one connection of a task.

    A connection has at most a few sinks and sources; a call without a number means the newest.
    """

    def __init__(self, plugin: LoadedPlugin, sessions: Sessions) -> None:
        self._plugin = plugin
        self._sessions = sessions
        self._builder = BlockBuilder(plugin.version)
        self._reader = BlockReader(plugin.version)
        self._numbers = itertools.count(1)
        self._sources: dict[int, tuple[JavaObject, list[ChannelType]]] = {}
        self._sinks: dict[int, tuple[JavaObject, list[ChannelType]]] = {}
        self._buckets: dict[int, tuple[JavaObject, list[ChannelType]]] = {}
        self.calls: dict[str, Callable[[Request, memoryview], Answer]] = {
            "open_scan": self._open_scan,
            "next_page": self._next_page,
            "close": self._close,
            "create_merge_sink": self._create_merge_sink,
            "store_merged_rows": self._store_merged_rows,
            "create_page_sink": self._create_page_sink,
            "append_page": self._append_page,
            "finish": self._finish,
            "abort": self._abort,
            "bucket_function": self._bucket_function,
            "buckets": self._bucket_numbers,
        }

    def release(self) -> None:
        """Close the sources and abort the sinks that the task has left open."""
        for source, _ in self._sources.values():
            source.close()
        for sink, _ in self._sinks.values():
            sink.abort()
        self._sources, self._sinks = {}, {}

    # Reads

    def _open_scan(self, request: Request, payload: memoryview) -> Answer:
        columns = [self._handle(column) for column in request["columns"]]
        source = self._plugin.version.create_page_source(
            self._plugin.connector,
            self._handle(request["transaction"]),
            self._session(request),
            self._handle(request["split"]),
            self._handle(request["table"], "ConnectorTableHandle"),
            self._optional_handle(request.get("credentials")),
            java_list(columns),
        )
        number = next(self._numbers)
        self._sources[number] = source, self._types(request["types"])
        return {"source": number, "types": request["types"]}, _NO_BYTES

    def _next_page(self, request: Request, payload: memoryview) -> Answer:
        source, types = _newest(self._sources, request.get("source"), "page source")
        while not source.isFinished():
            page = source.getNextSourcePage()
            if page is None:
                source.isBlocked().get()
                continue
            rows = int(page.getPositionCount())
            if not rows:
                continue
            names = [f"c{index}" for index in range(len(types))]
            batch = self._reader.batch(page, types, names)
            return {"rows": rows}, pack_batch(batch)
        return {"end": True}, _NO_BYTES

    def _close(self, request: Request, payload: memoryview) -> Answer:
        number = request.get("source") or max(self._sources, default=0)
        if number in self._sources:
            self._sources.pop(number)[0].close()
        return None, _NO_BYTES

    # Writes

    def _create_merge_sink(self, request: Request, payload: memoryview) -> Answer:
        provider = call_plugin(self._plugin.connector, "getPageSinkProvider")
        arguments = self._sink_arguments(request, "ConnectorMergeTableHandle")
        sink = call_plugin(provider, "createMergeSink", *arguments)
        return self._register_sink(sink, request)

    def _create_page_sink(self, request: Request, payload: memoryview) -> Answer:
        interface = request["handle"]["interface"].removeprefix(SPI)
        provider = call_plugin(self._plugin.connector, "getPageSinkProvider")
        sink = call_plugin(provider, "createPageSink", *self._sink_arguments(request, interface))
        return self._register_sink(sink, request)

    def _sink_arguments(self, request: Request, interface: str) -> list[JavaObject]:
        identifier = int(request.get("number") or 0)
        sink_id = jpype.JProxy(
            f"{SPI}ConnectorPageSinkId", dict={"getId": lambda: jpype.JLong(identifier)}
        )
        return [
            self._handle(request["transaction"]),
            self._session(request),
            self._handle(request["handle"], interface),
            *self._plugin.version.credential_arguments(
                self._optional_handle(request.get("credentials"))
            ),
            sink_id,
        ]

    def _register_sink(self, sink: JavaObject, request: Request) -> Answer:
        number = next(self._numbers)
        self._sinks[number] = sink, self._types(request["types"])
        return {"sink": number, "class": str(sink.getClass().getName())}, _NO_BYTES

    def _store_merged_rows(self, request: Request, payload: memoryview) -> Answer:
        sink, types = _newest(self._sinks, request.get("sink"), "sink")
        batch = unpack_batch(payload)
        sink.storeMergedRows(self._builder.page(batch, types))
        return {"rows": batch.num_rows}, _NO_BYTES

    def _append_page(self, request: Request, payload: memoryview) -> Answer:
        sink, types = _newest(self._sinks, request.get("sink"), "sink")
        batch = unpack_batch(payload)
        call_plugin(sink, "appendPage", self._builder.page(batch, types)).get()
        return {"rows": batch.num_rows}, _NO_BYTES

    def _finish(self, request: Request, payload: memoryview) -> Answer:
        number = request.get("sink") or max(self._sinks, default=0)
        sink, _ = _newest(self._sinks, number, "sink")
        fragments = _fragments(sink)
        del self._sinks[number]
        lengths, joined = pack_fragments(fragments)
        return {"lengths": lengths, "completed_bytes": completed_bytes(sink)}, joined

    def _abort(self, request: Request, payload: memoryview) -> Answer:
        number = request.get("sink") or max(self._sinks, default=0)
        if number in self._sinks:
            self._sinks.pop(number)[0].abort()
        return None, _NO_BYTES

    # Partitioning

    def _bucket_function(self, request: Request, payload: memoryview) -> Answer:
        provider = call_plugin(self._plugin.connector, "getNodePartitioningProvider")
        transaction, session = self._handle(request["transaction"]), self._session(request)
        partitioning = self._handle(request["partitioning"])
        types = self._types(request["types"])
        count = request.get("count")
        if count is None:
            mapping = call_plugin(
                provider, "getBucketNodeMapping", transaction, session, partitioning
            )
            node_map = mapping.orElse(None)
            count = None if node_map is None else int(node_map.getBucketCount())
        if count is None:
            raise ConnectorError(
                "The plugin leaves the number of buckets to the engine",
                code="GENERIC_INTERNAL_ERROR",
                hint="Pass the number of buckets.",
            )
        java_types = java_list([each.java for each in types])
        function = call_plugin(
            provider, "getBucketFunction", transaction, session, partitioning, java_types, count
        )
        number = next(self._numbers)
        self._buckets[number] = function, types
        return {"function": number, "count": count}, _NO_BYTES

    def _bucket_numbers(self, request: Request, payload: memoryview) -> Answer:
        function, types = _newest(self._buckets, request.get("function"), "bucket function")
        batch = unpack_batch(payload)
        page = self._builder.page(batch, types)
        numbers = bucket_numbers(function, page, batch.num_rows)
        return None, pack_batch(pa.record_batch({"bucket": pa.array(numbers, pa.int32())}))

    # What several calls need

    def _handle(self, handle: dict[str, Any], interface: str | None = None) -> JavaObject:
        name = handle["interface"].removeprefix(SPI)
        target = self._plugin.handles.read(name, handle["json"])
        return java_class(SPI + (interface or name)) @ target

    def _optional_handle(self, handle: dict[str, Any] | None) -> JavaObject | None:
        return None if handle is None else self._handle(handle)

    def _session(self, request: Request) -> JavaObject:
        return self._sessions.session(request.get("session") or {})

    def _types(self, texts: Sequence[str]) -> list[ChannelType]:
        return [
            ChannelType(parse_type(text), self._plugin.types.fromSqlType(java_text(text)))
            for text in texts
        ]


def _fragments(sink: JavaObject) -> list[bytes]:
    """Call the sink's finish, and return its fragments.

    Raises:
        ConnectorError: the plugin returns null instead of a future, fragments or a fragment.
    """
    future = call_plugin(sink, "finish")
    fragments = future.get()
    if fragments is None or any(fragment is None for fragment in fragments):
        raise ConnectorError(
            f"{sink.getClass().getName()}.finish returned"
            f" {'a null fragment' if fragments is not None else 'a future of null'}",
            code="GENERIC_INTERNAL_ERROR",
            hint="Return the fragments as slices, or an empty list.",
        )
    return [np.array(fragment.getBytes()).tobytes() for fragment in fragments]


def _newest(
    entries: dict[int, tuple[JavaObject, list[ChannelType]]], number: int | None, noun: str
) -> tuple[JavaObject, list[ChannelType]]:
    key = number or max(entries, default=0)
    if key not in entries:
        raise ConnectorError(
            f"There is no open {noun} on this connection", code="GENERIC_INTERNAL_ERROR"
        )
    return entries[key]
