"""The connector, the entry point of the contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi.handles import ConnectorTableVersion, ConnectorTransactionHandle
from rowmerge_nb.spi.layout import ConnectorNodePartitioningProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rowmerge_nb.spi.metadata import ConnectorMetadata
    from rowmerge_nb.spi.page_sink import ConnectorPageSinkProvider
    from rowmerge_nb.spi.page_source import ConnectorPageSourceProvider, ConnectorSplitManager
    from rowmerge_nb.spi.procedures import Procedure, TableProcedure

T = TypeVar("T")


def always(value: T) -> Callable[[Any], T]:
    """Build a getter of a fixed value.

    >>> class Shop:
    ...     get_table_properties = always({"shelf": "where it is"})
    >>> Shop().get_table_properties()
    {'shelf': 'where it is'}
    """
    return lambda _: value


@dataclass(frozen=True)
class Orphan:
    """A leftover of a statement whose process died: invisible to readers, and never to be
    completed.

    Args:
        name: its name in the store: a path, a table.
        modified: time of the last write in seconds since 1970, if known.
        statement: the statement's query id, or ``""``.
        process: the statement's process, ``host:pid``, or ``""``.

    >>> Orphan("/data/_tmp_1", bytes=4096, process="desk:4711").statement
    ''
    """

    name: str
    bytes: int | None = None
    modified: float | None = None
    statement: str = ""
    process: str = ""


class Connector(ABC):
    """A store that the engine can read and change.

    It stays on the driver; its providers are pickled to tasks.

    A connector that commits in its finish calls sets ``commits_in_finish`` and inherits ``commit``.
    """

    name: str = "connector"
    """The type of store in reports: ``"memory"``, ``"hive"``, ..."""

    commits_in_finish: bool = False
    """Whether finish calls, and DDL calls such as ``drop_table``, take effect at once.

    The engine then makes such a call in a separate thread without interrupts, and never for a
    rehearsal.
    """

    starts_slowly: bool = False
    """Whether the first call takes seconds, so that several replays share a connector."""

    checked_after_commit: bool = True
    """The default of the option ``check``: read a small table after a statement and compare its
    rows. False in the tested built-in stores.
    """

    commits_in_thread: bool = False
    """Whether ``commit`` may be called in another thread than the calls before it, so that the
    engine can abandon one that hangs.
    """

    @abstractmethod
    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> ConnectorMetadata:
        """Return the metadata of one transaction."""

    @abstractmethod
    def get_split_manager(self) -> ConnectorSplitManager:
        """Return the split manager."""

    @abstractmethod
    def get_page_source_provider(self) -> ConnectorPageSourceProvider:
        """Return the provider that opens page sources in tasks."""

    def get_page_sink_provider(self) -> ConnectorPageSinkProvider:
        """Return the provider that creates sinks in tasks; raises ConnectorError NOT_SUPPORTED by
        default.
        """
        raise ConnectorError(
            f"This connector does not support modifying table rows ({type(self).__name__} has no"
            " get_page_sink_provider)"
        )

    def get_node_partitioning_provider(self) -> ConnectorNodePartitioningProvider:
        """Return the provider of bucket functions."""
        return ConnectorNodePartitioningProvider()

    def get_table_properties(self) -> Mapping[str, Any]:
        """Return one-line descriptions of the properties of ``CREATE TABLE ... WITH``, by name."""
        return {}

    def get_procedures(self) -> Sequence[Procedure]:
        """Return the procedures for ``CALL``."""
        return ()

    def get_table_procedures(self) -> Sequence[TableProcedure]:
        """Return the procedures for ``ALTER TABLE ... EXECUTE``."""
        return ()

    def get_source_lines(self, file: str, function: str, line: int) -> tuple[tuple[int, str], ...]:
        """Return a line of the connector's code in another language, and its neighbors, by number.

        The engine calls it on the driver, for lines of a stack whose text it does not have.
        """
        return ()

    def watch_processes(self, *, changes: bool) -> Callable[[], ConnectorError | None]:
        """Return a function that returns the error of a process that tasks need and that has
        ended, or None.

        The engine calls it about ten times a second while tasks run, and cancels them if it returns
        an error. By default it returns None.

        Args:
            changes: the statement changes a table of this connector.
        """
        return lambda: None

    @property
    def shared_directory(self) -> Path | None:
        """The directory that driver and tasks must both see, if any.

        On a cluster, the engine keeps a file named ``.rowmerge_nb-mark-...`` in it during a
        statement, which every worker checks. The store must ignore such files.
        """
        return None

    def begin_transaction(self) -> ConnectorTransactionHandle:
        """Begin the transaction of one statement."""
        return ConnectorTransactionHandle()

    def begin_explicit_transaction(self) -> ConnectorTransactionHandle:
        """Begin the transaction of START TRANSACTION: its statements only read, and see one
        version.

        The default suits handles that name a version, since the engine requests each handle once.
        Otherwise reads and ``commit`` may raise TRANSACTION_CONFLICT.
        """
        return self.begin_transaction()

    def refused_in_transaction(self, catalog: str, kind: str) -> ConnectorError:
        """Return the error of a writing statement within START TRANSACTION; ``kind`` is its first
        words: ``"CREATE TABLE"``.
        """
        return ConnectorError(
            f"Catalog only supports writes using autocommit: {catalog}",
            code="AUTOCOMMIT_WRITE_CONFLICT",
        )

    def commit(
        self, transaction_handle: ConnectorTransactionHandle
    ) -> ConnectorTableVersion | None:
        """Commit the transaction.

        Returns:
            The new version of the changed table; None without versions or changed rows.

        Raises:
            RowMergeError: nothing was changed; `rollback` follows. With ``changed=None`` the
                outcome is unknown: the transaction has ended, and its files stay. Errors after the
                change took effect must not be raised.
        """
        return None

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """Undo everything in the transaction, and remove the leftovers of its tasks.

        A change stays if its commit took effect, even if that call was interrupted.
        """

    def abandon(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """End a transaction whose change is stored, or may be, without undoing anything.

        Called instead of ``commit`` and ``rollback``, for instance after the answer of a finish
        call was lost.
        """

    def orphans(self) -> Sequence[Orphan]:
        """List the leftovers of statements whose processes died, excluding statements that may
        still be running.
        """
        return ()

    def remove_orphans(self) -> Sequence[Orphan]:
        """Remove the leftovers that `orphans` lists, and return them."""
        return ()

    def orphan_problems(self) -> Sequence[str]:
        """Return sentences: why this thread's last `orphans` or `remove_orphans` skipped parts of
        the store.
        """
        return ()

    def close(self) -> None:
        """Free the connector's resources when its engine is closed."""
