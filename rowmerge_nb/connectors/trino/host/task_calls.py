"""Calls of tasks: page sources, sinks and bucket functions, made from handles as JSON."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.block_building import ChannelType
from rowmerge_nb.connectors.trino.host.fragments import finished_fragments
from rowmerge_nb.connectors.trino.host.jvm import (
    call_plugin,
    java_class,
    java_list,
    java_text,
)
from rowmerge_nb.connectors.trino.host.spi_versions import block_builder, block_reader
from rowmerge_nb.connectors.trino.host.updatable_calls import delete_rows, update_rows
from rowmerge_nb.connectors.trino.host.versions import SPI, bucket_numbers, completed_bytes
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
        self._builder = block_builder(plugin.version)
        self._reader = block_reader(plugin.version)
        self._numbers = itertools.count(1)
        self._sources: dict[int, tuple[JavaObject, list[ChannelType]]] = {}
        self._changing: set[int] = set()
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
            "delete_rows": self._delete_rows,
            "update_rows": self._update_rows,
            "finish_source": self._finish_source,
            "abort_source": self._abort_source,
        }

    def release(self) -> None:
        """Close the sources and abort the sinks that the task has left open."""
        for number in tuple(self._changing):
            self._abort_source({"source": number}, memoryview(b""))
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
        if request.get("changes_rows"):
            self._changing.add(number)
        return {"source": number, "types": request["types"]}, _NO_BYTES

    def _next_page(self, request: Request, payload: memoryview) -> Answer:
        source, types = _newest(self._sources, request.get("source"), "page source")
        while not source.isFinished():
            page = self._plugin.version.next_page(source)
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

    # The older flow: sources change the rows that they have read

    def _delete_rows(self, request: Request, payload: memoryview) -> Answer:
        source, _ = _newest(self._sources, request.get("source"), "page source")
        batch = unpack_batch(payload)
        delete_rows(source, self._builder.page(batch, self._types(request["types"])))
        return {"rows": batch.num_rows}, _NO_BYTES

    def _update_rows(self, request: Request, payload: memoryview) -> Answer:
        source, _ = _newest(self._sources, request.get("source"), "page source")
        batch = unpack_batch(payload)
        page = self._builder.page(batch, self._types(request["types"]))
        update_rows(source, page, request["channels"])
        return {"rows": batch.num_rows}, _NO_BYTES

    def _finish_source(self, request: Request, payload: memoryview) -> Answer:
        number = request.get("source") or max(self._sources, default=0)
        source, _ = _newest(self._sources, number, "page source")
        fragments = finished_fragments(source)
        self._changing.discard(number)
        lengths, joined = pack_fragments(fragments)
        return {"lengths": lengths}, joined

    def _abort_source(self, request: Request, payload: memoryview) -> Answer:
        number = request.get("source") or max(self._sources, default=0)
        if number in self._changing:
            self._changing.discard(number)
            self._sources[number][0].abort()
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
        return [
            self._handle(request["transaction"]),
            self._session(request),
            self._handle(request["handle"], interface),
            *self._plugin.version.sink_arguments(
                self._optional_handle(request.get("credentials")), int(request.get("number") or 0)
            ),
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
        fragments = finished_fragments(sink)
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
            count = self._plugin.version.bucket_count(provider, transaction, session, partitioning)
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


def _newest(
    entries: dict[int, tuple[JavaObject, list[ChannelType]]], number: int | None, noun: str
) -> tuple[JavaObject, list[ChannelType]]:
    key = number or max(entries, default=0)
    if key not in entries:
        raise ConnectorError(
            f"There is no open {noun} on this connection", code="GENERIC_INTERNAL_ERROR"
        )
    return entries[key]
