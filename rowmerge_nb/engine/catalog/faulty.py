"""A connector wrapper that records contract calls and injects faults, also in workers."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import ExecutionError, RowMergeError
from rowmerge_nb.base.words import plural
from rowmerge_nb.engine.tasks.task_faults import Fault, InjectedFault, Watch
from rowmerge_nb.spi.connector import Connector

if TYPE_CHECKING:
    from rowmerge_nb.spi.handles import ConnectorTableVersion, ConnectorTransactionHandle
    from rowmerge_nb.spi.layout import ConnectorNodePartitioningProvider
    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.spi.page_sink import ConnectorPageSinkProvider
    from rowmerge_nb.spi.page_source import ConnectorPageSourceProvider, ConnectorSplitManager


class FaultyConnector(Connector):
    """A connector that delegates to another, with an injected fault, which may be reassigned
    between statements.
    """

    def __init__(self, connector: Connector, fault: Fault | None = None) -> None:
        self.connector = connector
        self.fault = fault
        folder = tempfile.mkdtemp(prefix="rowmerge_nb-diary-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._diary = Path(folder) / "calls"
        self.forget()

    def __getattr__(self, name: str) -> Any:
        if name == "connector":
            raise AttributeError(name)
        return getattr(self.connector, name)

    @property
    def calls(self) -> list[str]:
        """The names of all calls, in order, including those of tasks."""
        return self._diary.read_text().split()

    def forget(self) -> None:
        self._diary.write_text("")
        self._watch.strikes.write_text("")

    @property
    def strikes(self) -> int:
        """How often the fault has occurred since the last `forget`, including in tasks."""
        return len(self._watch.strikes.read_text().split())

    @property
    def _watch(self) -> Watch:
        return Watch(str(self._diary), self.fault)

    def _call(self, step: str, *arguments: Any) -> Any:
        return self._watch.call(step, getattr(self.connector, step), *arguments)

    # -- contract

    def begin_transaction(self) -> ConnectorTransactionHandle:
        handle: ConnectorTransactionHandle = self._call("begin_transaction")
        return handle

    def begin_explicit_transaction(self) -> ConnectorTransactionHandle:
        handle: ConnectorTransactionHandle = self._call("begin_explicit_transaction")
        return handle

    def commit(
        self, transaction_handle: ConnectorTransactionHandle
    ) -> ConnectorTableVersion | None:
        version: ConnectorTableVersion | None = self._call("commit", transaction_handle)
        return version

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        self._call("rollback", transaction_handle)

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> ConnectorMetadata:
        metadata: ConnectorMetadata = self._call("get_metadata", transaction_handle)
        return metadata

    def get_split_manager(self) -> ConnectorSplitManager:
        manager: ConnectorSplitManager = self._call("get_split_manager")
        return manager

    def get_page_source_provider(self) -> ConnectorPageSourceProvider:
        provider: ConnectorPageSourceProvider = self._call("get_page_source_provider")
        return provider

    def get_page_sink_provider(self) -> ConnectorPageSinkProvider:
        provider: ConnectorPageSinkProvider = self._call("get_page_sink_provider")
        return provider

    def get_node_partitioning_provider(self) -> ConnectorNodePartitioningProvider:
        provider: ConnectorNodePartitioningProvider = self._call("get_node_partitioning_provider")
        return provider


def _of_inner(name: str) -> property:
    return property(lambda faulty: getattr(faulty.connector, name))


for _name in vars(Connector).keys() - vars(FaultyConnector).keys():
    if not _name.startswith("_"):
        setattr(FaultyConnector, _name, _of_inner(_name))


def _lost(message: str) -> RowMergeError:
    return ExecutionError(f"The answer was lost: {message}", changed=None)


@dataclass
class StatementFault:
    """One statement's fault, and its effect.

    Only calls of ``catalog`` are counted; ``""`` for all.
    """

    fault: Fault
    catalog: str
    _around: dict[str, FaultyConnector] = field(default_factory=dict)

    def around(self, catalog: str, connector: Connector) -> Connector:
        if self.catalog not in {"", catalog}:
            return connector
        if catalog not in self._around:
            self._around[catalog] = FaultyConnector(connector, self._as_it_strikes(connector))
        return self._around[catalog]

    def _as_it_strikes(self, connector: Connector) -> Fault:
        """Return the fault as a lost answer if it follows a committing call."""
        fault = self.fault
        lasting = (
            fault.step.startswith("finish_")
            if connector.commits_in_finish
            else fault.step == "commit"
        )
        return (
            replace(fault, error=_lost)
            if lasting and fault.after and fault.error is InjectedFault
            else fault
        )

    @property
    def told(self) -> str:
        if strikes := sum(connector.strikes for connector in self._around.values()):
            often = f", {plural(strikes, 'time')}" if strikes > 1 else ""
            return f"Injected fault ({self.fault.text}): {self.fault.what}{often}"
        step = self.fault.step
        calls = sum(connector.calls.count(step) for connector in self._around.values())
        effect = f"was called {plural(calls, 'time')}" if calls else "was not called"
        return f"The fault {self.fault.text} was never triggered: {step} {effect}"
