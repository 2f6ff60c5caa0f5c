"""A memory connector that fails where it is told to; its classes travel to tasks by value."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

from rowmerge_nb.connectors.memory import MemoryConnector, MemoryMetadata
from rowmerge_nb.connectors.memory_io import MemoryMergeSink, MemoryPageSinkProvider, MemoryPageSourceProvider
from rowmerge_nb.errors import ConnectorError
from rowmerge_nb.spi import ConnectorTableLayout

cloudpickle.register_pickle_by_value(sys.modules[__name__])


class FaultySink(MemoryMergeSink):
    """Stores pages, keeps a diary of its calls in a folder, and fails at one of them."""

    def __init__(self, column_count: int, fault: str, diary: str) -> None:
        super().__init__(column_count)
        self.fault = fault
        self.diary = diary
        self.note("create")

    def note(self, what: str) -> None:
        with (Path(self.diary) / f"{what}-{os.getpid()}-{id(self)}").open("a") as file:
            file.write("x")

    def store_merged_rows(self, page: Any) -> None:
        super().store_merged_rows(page)
        self.note("store")
        if self.fault == "store_merged_rows":
            raise OSError("the disk is full")
        if self.fault == "die once" and not (Path(self.diary) / "died").exists():
            (Path(self.diary) / "died").touch()
            os._exit(1)

    def finish(self) -> list[bytes]:
        self.note("finish")
        if self.fault == "finish":
            raise OSError("the network is gone")
        if self.fault == "fragment":
            return ["text"]  # type: ignore[list-item]
        if self.fault == "nothing":
            return None  # type: ignore[return-value]
        return super().finish()

    def abort(self) -> None:
        self.note("abort")
        super().abort()


class FaultyReader(MemoryPageSourceProvider):
    def create_page_source(self, *arguments: Any) -> Any:
        raise ConnectorError("The ORC file is cut short", code="HIVE_BAD_DATA")


class FaultyProvider(MemoryPageSinkProvider):
    def __init__(self, fault: str, diary: str) -> None:
        self.fault = fault
        self.diary = diary

    def create_merge_sink(self, transaction_handle: Any, session: Any, merge_handle: Any) -> FaultySink:
        if self.fault == "create_merge_sink":
            raise PermissionError("no place to write")
        return FaultySink(len(merge_handle.get_table_handle().metadata.columns), self.fault, self.diary)


class FaultyMetadata(MemoryMetadata):
    fault = ""

    def begin_merge(self, *arguments: Any, **more: Any) -> Any:
        if self.fault == "begin_merge":
            raise RuntimeError("the metastore does not answer")
        return None if self.fault == "no handle" else super().begin_merge(*arguments, **more)

    def row_count(self, session: Any, table_handle: Any) -> int | None:
        if self.fault == "row_count" and table_handle.version > 1:
            raise OSError("the statistics are gone")
        return super().row_count(session, table_handle)

    def get_insert_layout(self, session: Any, table_handle: Any) -> Any:
        if self.fault == "get_insert_layout":
            raise KeyError("address")
        return ConnectorTableLayout(("nope",)) if self.fault == "layout" else super().get_insert_layout(session, table_handle)

    def finish_merge(self, *arguments: Any) -> None:
        super().finish_merge(*arguments)
        if self.fault == "finish_merge":
            raise RuntimeError("the metastore does not answer")


class FaultyConnector(MemoryConnector):
    """Fails at ``fault``: the name of a contract method, or ``die once``, ``fragment``."""

    name = "faulty"

    def __init__(self, fault: str, diary: Path) -> None:
        super().__init__()
        self.fault = fault
        self.diary = diary

    def get_metadata(self, transaction_handle: Any) -> FaultyMetadata:
        metadata = FaultyMetadata(self, self._transactions[transaction_handle.number])
        metadata.fault = self.fault
        return metadata

    def get_page_source_provider(self) -> MemoryPageSourceProvider:
        return FaultyReader() if self.fault == "create_page_source" else super().get_page_source_provider()

    def get_page_sink_provider(self) -> FaultyProvider:
        return FaultyProvider(self.fault, str(self.diary))

    def commit(self, transaction_handle: Any) -> None:
        if self.fault == "commit" and self._transactions[transaction_handle.number].tables:
            raise RuntimeError("the journal is gone")
        super().commit(transaction_handle)
