"""How tasks come by their sinks: each is told which of the statement's writers it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rowmerge_nb.spi.handles import ConnectorSession, ConnectorTransactionHandle
    from rowmerge_nb.spi.merge_sink import ConnectorMergeSink
    from rowmerge_nb.spi.page_sink import ConnectorPageSink

__all__ = ["PageSinkFactory", "SinkFactory", "task_partition"]


@dataclass(frozen=True)
class SinkFactory:
    """Makes the merge sink of a task."""

    provider: Any
    transaction: ConnectorTransactionHandle
    session: ConnectorSession
    handle: Any

    def __call__(self) -> ConnectorMergeSink:
        """Make a sink."""
        session = replace(self.session, writer=task_partition())
        sink: ConnectorMergeSink = self.provider.create_merge_sink(self.transaction, session, self.handle)
        return sink


@dataclass(frozen=True)
class PageSinkFactory:
    """Makes the page sink of a task."""

    provider: Any
    transaction: ConnectorTransactionHandle
    session: ConnectorSession
    handle: Any

    def __call__(self) -> ConnectorPageSink:
        """Make a sink."""
        session = replace(self.session, writer=task_partition())
        sink: ConnectorPageSink = self.provider.create_page_sink(self.transaction, session, self.handle)
        return sink


def task_partition() -> int:
    """Give the number of the partition that this task works on; 0 outside of a task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.partitionId() if context is not None else 0
