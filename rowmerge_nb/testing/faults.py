"""A connector around any other: it keeps a diary of the contract's calls, and fails where it is told to.

What travels to tasks is wrapped too, so a fault can strike in a worker, and the diary is a file that driver and workers share.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.spi.connector import Connector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowmerge_nb.spi.connector import Orphan
    from rowmerge_nb.spi.handles import ConnectorTableVersion, ConnectorTransactionHandle
    from rowmerge_nb.spi.layout import ConnectorNodePartitioningProvider
    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.spi.page_sink import ConnectorPageSinkProvider
    from rowmerge_nb.spi.page_source import ConnectorPageSourceProvider, ConnectorSplitManager
    from rowmerge_nb.spi.procedures import Procedure

__all__ = ["UNSET", "Fault", "FaultyConnector"]


class _Unset(Enum):
    """Stands for "nothing"; an enumeration, because its member is itself again in another process."""

    UNSET = 0


UNSET: Final = _Unset.UNSET


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and when.

    Args:
        step: the contract's method that goes wrong: ``begin_merge``, ``store_merged_rows``, ``get_next_page``, ``commit``, ...
        call: which of its calls, counted from 1 over all processes; None for each of them.
        after: the connector does its work before it goes wrong.
        error: makes what is raised out of the message.
        message: the message.
        gives: what the step gives instead of raising.
        exits: the process dies, as a worker does that runs out of memory.

    >>> Fault("finish", call=2).strikes("finish", 2), Fault("finish", call=2).strikes("finish", 3)
    (True, False)
    """

    step: str
    call: int | None = None
    after: bool = False
    error: Callable[[str], BaseException] = OSError
    message: str = "the disk is full"
    gives: Any = UNSET
    exits: bool = False

    def strikes(self, step: str, number: int) -> bool:
        """Tell whether this call is the one that goes wrong."""
        return step == self.step and self.call in {None, number}

    def strike(self) -> Any:
        """Go wrong."""
        if self.exits:
            os._exit(1)
        if self.gives is UNSET:
            raise self.error(self.message)
        return self.gives


@dataclass(frozen=True)
class _Watch:
    """What all wrapped objects share; travels to tasks."""

    diary: str
    fault: Fault | None

    def call(self, step: str, function: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """Note a call, make it, or go wrong."""
        number = self._note(step)
        fault = self.fault if self.fault is not None and self.fault.strikes(step, number) else None
        if fault is not None and not fault.after:
            return fault.strike()
        given = function(*arguments, **more)
        if fault is not None:
            return fault.strike()
        return _Watched(given, self) if step in _MAKERS and given is not None else given

    def _note(self, step: str) -> int:
        """Write a line into the diary; give the number of this call among those of the same step."""
        # One short write to a file opened for appending stays in one piece, whoever else writes.
        with Path(self.diary).open("ab", buffering=0) as file:
            file.write(f"{step}\n".encode())
            end = file.tell()
        with Path(self.diary).open("rb") as file:
            return file.read(end).split(b"\n").count(step.encode())


class _Watched:
    """Passes every call on, by way of the watch; for ``isinstance`` it is what it is wrapped around."""

    def __init__(self, inner: Any, watch: _Watch) -> None:
        self._inner = inner
        self._watch = watch

    def __getattr__(self, name: str) -> Any:
        if name in {"_inner", "_watch"}:
            raise AttributeError(name)
        value = getattr(self._inner, name)
        if not callable(value) or name.startswith("_"):
            return value
        return lambda *arguments, **more: self._watch.call(name, value, *arguments, **more)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._inner)

    def __reduce__(self) -> tuple[Any, ...]:
        return _watched, (self._inner, self._watch)


def _watched(inner: Any, watch: _Watch) -> _Watched:
    return _Watched(inner, watch)


class FaultyConnector(Connector):
    """Any connector, watched, with a fault to come.

    Args:
        connector: the connector; whatever it has beyond the contract is reached through this one.
        fault: what goes wrong; None for nothing. May be assigned anew between statements.

    Attributes:
        fault: as above.

    >>> from rowmerge_nb.connectors.memory.connector import MemoryConnector
    >>> connector = FaultyConnector(MemoryConnector(), Fault("begin_transaction"))
    >>> connector.name
    'memory'
    >>> connector.begin_transaction()
    Traceback (most recent call last):
    OSError: the disk is full
    >>> connector.calls
    ['begin_transaction']
    """

    def __init__(self, connector: Connector, fault: Fault | None = None) -> None:
        self.connector = connector
        self.fault = fault
        folder = tempfile.mkdtemp(prefix="rowmerge_nb-diary-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._diary = Path(folder) / "calls"
        self._diary.touch()

    def __getattr__(self, name: str) -> Any:
        if name == "connector":
            raise AttributeError(name)
        return getattr(self.connector, name)

    @property
    def checked_after_commit(self) -> bool:  # type: ignore[override]
        """What the connector says."""
        return self.connector.checked_after_commit

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the connector that is wrapped."""
        return self.connector.name

    @property
    def calls(self) -> list[str]:
        """The names of all calls so far, in the order in which they were made, those of tasks included."""
        return self._diary.read_text().split()

    def forget(self) -> None:
        """Begin a new diary."""
        self._diary.write_text("")

    def _call(self, step: str, *arguments: Any) -> Any:
        return _Watch(str(self._diary), self.fault).call(step, getattr(self.connector, step), *arguments)

    # -- contract -------------------------------------------------------------------------------------------------

    def begin_transaction(self) -> ConnectorTransactionHandle:
        """Begin a transaction."""
        handle: ConnectorTransactionHandle = self._call("begin_transaction")
        return handle

    @property
    def commits_in_finish(self) -> bool:  # type: ignore[override]
        """As the connector that is wrapped says."""
        return self.connector.commits_in_finish

    @property
    def commits_in_thread(self) -> bool:  # type: ignore[override]
        """As the connector that is wrapped says."""
        return self.connector.commits_in_thread

    def commit(self, transaction_handle: ConnectorTransactionHandle) -> ConnectorTableVersion | None:
        """Commit a transaction."""
        version: ConnectorTableVersion | None = self._call("commit", transaction_handle)
        return version

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """Roll a transaction back."""
        self._call("rollback", transaction_handle)

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> ConnectorMetadata:
        """Give the metadata, wrapped."""
        metadata: ConnectorMetadata = self._call("get_metadata", transaction_handle)
        return metadata

    def get_split_manager(self) -> ConnectorSplitManager:
        """Give the split manager, wrapped."""
        manager: ConnectorSplitManager = self._call("get_split_manager")
        return manager

    def get_page_source_provider(self) -> ConnectorPageSourceProvider:
        """Give the provider of page sources, wrapped."""
        provider: ConnectorPageSourceProvider = self._call("get_page_source_provider")
        return provider

    def get_page_sink_provider(self) -> ConnectorPageSinkProvider:
        """Give the provider of sinks, wrapped."""
        provider: ConnectorPageSinkProvider = self._call("get_page_sink_provider")
        return provider

    def get_node_partitioning_provider(self) -> ConnectorNodePartitioningProvider:
        """Give the provider of bucket functions, wrapped."""
        provider: ConnectorNodePartitioningProvider = self._call("get_node_partitioning_provider")
        return provider

    def get_table_properties(self) -> Mapping[str, Any]:
        """Give the table properties of the connector that is wrapped."""
        return self.connector.get_table_properties()

    @property
    def shared_directory(self) -> Path | None:
        """The directory of the connector that is wrapped."""
        return self.connector.shared_directory

    def get_procedures(self) -> Sequence[Procedure]:
        """Give the procedures of the connector that is wrapped."""
        return self.connector.get_procedures()

    def orphans(self) -> Sequence[Orphan]:
        """List what the connector that is wrapped lists."""
        return self.connector.orphans()

    def remove_orphans(self) -> Sequence[Orphan]:
        """Have the connector that is wrapped remove it."""
        return self.connector.remove_orphans()

    def close(self) -> None:
        """Close the connector that is wrapped."""
        self.connector.close()


_MAKERS: Final = frozenset(
    {
        "get_metadata",
        "get_split_manager",
        "get_page_source_provider",
        "get_page_sink_provider",
        "get_node_partitioning_provider",
        "get_bucket_function",
        "create_page_source",
        "create_page_sink",
        "create_merge_sink",
    }
)
"""Steps whose result is wrapped in its turn."""
