"""The connector: where the engine gets everything else from."""

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
    """Build a getter that returns the same value in all transactions of a connector.

    >>> class Shop:
    ...     get_table_properties = always({"shelf": "where it is"})
    >>> Shop().get_table_properties()
    {'shelf': 'where it is'}
    """
    return lambda _: value


@dataclass(frozen=True)
class Orphan:
    """Something in a store that a statement has left behind whose process died: no reader sees it, and nobody will finish it.

    Args:
        name: what it is, as the store names it: a path, a table.
        bytes: its size; None where the store does not tell.
        modified: when it was last written, in seconds since 1970; None where the store does not tell.
        statement: the query id of the statement; ``""`` where it is not known.
        process: the process that ran the statement, ``host:pid``; ``""`` where it is not known.

    >>> Orphan("/data/_tmp_1", bytes=4096, process="desk:4711").statement
    ''
    """

    name: str
    bytes: int | None = None
    modified: float | None = None
    statement: str = ""
    process: str = ""


class Connector(ABC):
    """A store that the engine can read and change. Lives on the driver; its providers travel to tasks.

    A connector that commits inside its finish calls leaves ``commit`` as it is, and says so by ``commits_in_finish``.
    """

    name: str = "connector"
    """The kind of store, shown in reports: ``"memory"``, ``"hive"``, ..."""

    commits_in_finish: bool = False
    """Whether ``finish_merge`` and its like make the change last, and so do ``drop_table`` and whatever else defines something.

    The engine then lets no interrupt into such a call, makes it in a thread of its own, and never makes it for a rehearsal.
    """

    checked_after_commit: bool = True
    """Whether the rows of a small table are read back after a statement, and compared with what it must have left, unless its user says otherwise.

    The stores that come along are proven, and say False.
    """

    commits_in_thread: bool = False
    """Whether ``commit`` may be called in another thread than everything before it: one that hangs can then be given up."""

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
        """Return the provider that makes sinks in tasks. Raises ConnectorError NOT_SUPPORTED by default."""
        raise ConnectorError(
            f"This connector does not support modifying table rows ({type(self).__name__} has no get_page_sink_provider)"
        )

    def get_node_partitioning_provider(self) -> ConnectorNodePartitioningProvider:
        """Return the provider of bucket functions; by default one that has none."""
        return ConnectorNodePartitioningProvider()

    def get_table_properties(self) -> Mapping[str, Any]:
        """Return the properties that ``CREATE TABLE ... WITH`` accepts: name to one-line description."""
        return {}

    def get_procedures(self) -> Sequence[Procedure]:
        """Return the procedures that ``CALL`` runs; by default there are none."""
        return ()

    def get_table_procedures(self) -> Sequence[TableProcedure]:
        """Return the procedures that ``ALTER TABLE ... EXECUTE`` runs; by default there are none."""
        return ()

    @property
    def shared_directory(self) -> Path | None:
        """The directory that driver and tasks must both see for the store to work; None (the default) where there is none.

        While a statement runs on a cluster the engine keeps a file in it whose name begins with ``.rowmerge_nb-mark-``, and every worker
        process looks whether it sees that. Such files must not be taken for the store's.
        """
        return None

    def begin_transaction(self) -> ConnectorTransactionHandle:
        """Begin a transaction; each statement has its own."""
        return ConnectorTransactionHandle()

    def begin_explicit_transaction(self) -> ConnectorTransactionHandle:
        """Begin the transaction of several statements that START TRANSACTION has begun: they read, and see the rows of one version.

        By default it is one like any other, which is right where table handles name the version: the engine asks for each once. A store whose
        handles do not may raise TRANSACTION_CONFLICT from the reads and from ``commit``.
        """
        return self.begin_transaction()

    def refused_in_transaction(self, catalog: str, kind: str) -> ConnectorError:
        """Return the error of a statement that would write within START TRANSACTION.

        Args:
            catalog: the catalog's name.
            kind: the statement's first words: ``"MERGE"``, ``"CREATE TABLE"``, ...
        """
        return ConnectorError(f"Catalog only supports writes using autocommit: {catalog}", code="AUTOCOMMIT_WRITE_CONFLICT")

    def commit(self, transaction_handle: ConnectorTransactionHandle) -> ConnectorTableVersion | None:
        """Make everything done in the transaction last.

        Returns:
            The version that the changed table has now, by which the engine looks at what the store holds; None where the store keeps
            no versions, or where no rows were changed.

        Raises:
            RowMergeError: nothing was changed; `rollback` follows. One with ``changed=None`` says that nobody knows whether something
                was: then the transaction has ended, and everything that it has written stays. What goes wrong once the change is there
                is not raised.
        """
        return None

    def rollback(self, transaction_handle: ConnectorTransactionHandle) -> None:
        """Undo everything done in the transaction, and remove what tasks have left behind.

        What was committed stays, even if the commit was interrupted before it could say so.
        """

    def orphans(self) -> Sequence[Orphan]:
        """List what statements have left behind whose processes died; nothing of a statement that may be running still."""
        return ()

    def remove_orphans(self) -> Sequence[Orphan]:
        """Remove what `orphans` lists; gives what was removed."""
        return ()

    def orphan_problems(self) -> Sequence[str]:
        """Return which parts of the store the last `orphans` or `remove_orphans` of this thread has left out, and why: a sentence for each."""
        return ()

    def close(self) -> None:
        """Free what the connector holds; called when its engine is closed."""
