"""Writing to a plugin's tables: its sinks in the process of the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowmerge_nb.connectors.trino.host_channel import pack_batch, unpack_fragments
from rowmerge_nb.connectors.trino.host_process import TaskConnection
from rowmerge_nb.connectors.trino.trino_errors import PluginError, add_lost_fields
from rowmerge_nb.connectors.trino.trino_handles import (
    TrinoInsertTableHandle,
    TrinoMergeTableHandle,
    TrinoTableHandle,
    wire_of,
)
from rowmerge_nb.spi.handles import own
from rowmerge_nb.spi.merge_sink import ConnectorMergeSink
from rowmerge_nb.spi.page_sink import ConnectorPageSink, ConnectorPageSinkProvider

if TYPE_CHECKING:
    from rowmerge_nb.connectors.trino.trino_handles import JavaHandle
    from rowmerge_nb.spi.handles import (
        ConnectorInsertTableHandle,
        ConnectorMergeTableHandle,
        ConnectorSession,
        ConnectorTransactionHandle,
    )
    from rowmerge_nb.spi.page import Page


@dataclass(frozen=True)
class TrinoPageSinkProvider(ConnectorPageSinkProvider):
    socket_path: str

    def create_page_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
    ) -> TrinoPageSink:
        handle = own(insert_handle, TrinoInsertTableHandle)
        return TrinoPageSink(
            _HostSink(
                self.socket_path,
                "create_page_sink",
                handle.java,
                **handle.context.wire,
                credentials=wire_of(handle.credentials),
                types=list(handle.types),
                number=session.writer or 0,
            )
        )

    def create_merge_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
    ) -> TrinoMergeSink:
        handle = own(merge_handle, TrinoMergeTableHandle)
        table = own(handle.table_handle, TrinoTableHandle)
        sink = _HostSink(
            self.socket_path,
            "create_merge_sink",
            handle.java,
            **table.context.wire,
            credentials=wire_of(handle.credentials),
            types=list(handle.types),
            number=session.writer or 0,
        )
        return TrinoMergeSink(sink, len(handle.types))


class _HostSink:
    def __init__(self, socket_path: str, create: str, handle: JavaHandle, **arguments: Any) -> None:
        self._connection = TaskConnection(socket_path)
        self._handle = handle
        self._fragments: list[bytes] | None = None
        try:
            self._request(create, handle=handle.wire, **arguments)
        except BaseException:
            self._connection.close()
            raise

    def store(self, call: str, page: Page) -> None:
        self._request(call, pack_batch(page))

    def finish(self) -> list[bytes]:
        """Return the fragments, the same ones in a second call."""
        if self._fragments is None:
            result, payload = self._request("finish")
            self._fragments = unpack_fragments(result["lengths"], payload)
            self._connection.close()
        return self._fragments

    def abort(self) -> None:
        try:
            if self._fragments is None:
                self._connection.request("abort")
        finally:
            self._connection.close()

    def _request(self, call: str, payload: Any = b"", **arguments: Any) -> tuple[Any, memoryview]:
        try:
            return self._connection.request(call, payload, **arguments)
        except PluginError as error:
            add_lost_fields(error, self._handle.losses)
            raise


class TrinoPageSink(ConnectorPageSink):
    def __init__(self, sink: _HostSink) -> None:
        self._sink = sink

    def append_page(self, page: Page) -> None:
        self._sink.store("append_page", page)

    def finish(self) -> list[bytes]:
        return self._sink.finish()

    def abort(self) -> None:
        self._sink.abort()


class TrinoMergeSink(ConnectorMergeSink):
    def __init__(self, sink: _HostSink, channel_count: int) -> None:
        self._sink = sink
        self._channel_count = channel_count

    def store_merged_rows(self, page: Page) -> None:
        self._sink.store("store_merged_rows", with_case_number(page, self._channel_count))

    def finish(self) -> list[bytes]:
        return self._sink.finish()

    def abort(self) -> None:
        self._sink.abort()


def with_case_number(page: Page, channel_count: int) -> Page:
    """Return a page with the channel of case numbers, which the era of the documents lacks.

    >>> page = pa.record_batch({"id": [7], "operation": pa.array([1], pa.int8()), "row_id": [0]})
    >>> with_case_number(page, 4).schema.names
    ['id', 'operation', 'case_number', 'row_id']
    """
    if page.num_columns == channel_count:
        return page
    zeros = pa.array(np.zeros(page.num_rows, np.int32))
    names = [*page.schema.names[:-1], "case_number", page.schema.names[-1]]
    return pa.RecordBatch.from_arrays([*page.columns[:-1], zeros, page.columns[-1]], names=names)
