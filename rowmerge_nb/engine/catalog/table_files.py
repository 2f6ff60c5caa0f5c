"""The files of a table that a full read reads, and those that a statement reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.spi.connector import Connector
from rowmerge_nb.spi.handles import ConnectorSession, ReadFile, SchemaTableName
from rowmerge_nb.spi.page_source import ConnectorSplitManager, Constraint

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.spi.handles import (
        ConnectorSplit,
        ConnectorTableHandle,
        ConnectorTransactionHandle,
    )


def files_of_table(connector: Connector, name: SchemaTableName) -> dict[str, ReadFile]:
    """Return the files of a full read of a table, by path; empty if the connector reports none."""
    transaction = connector.begin_transaction()
    try:
        session = ConnectorSession("files", is_observation=True)
        handle = connector.get_metadata(transaction).get_table_handle(session, name)
        if handle is None:
            return {}
        manager = connector.get_split_manager()
        return files_of_splits(manager.get_splits(transaction, session, handle, Constraint()))
    finally:
        connector.rollback(transaction)


def files_of_splits(splits: Iterable[ConnectorSplit]) -> dict[str, ReadFile]:
    return {file.path: file for split in splits for file in split.read_files}


class SplitRecorder(ConnectorSplitManager):
    """A connector's split manager that keeps the files of the splits that statements read."""

    def __init__(self, connector: Connector) -> None:
        self._manager = connector.get_split_manager()
        self.files: dict[str, ReadFile] = {}
        connector.__dict__["get_split_manager"] = lambda: self

    def forget(self) -> None:
        self.files = {}

    def get_splits(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        table_handle: ConnectorTableHandle,
        constraint: Constraint,
    ) -> Sequence[ConnectorSplit]:
        splits = self._manager.get_splits(transaction_handle, session, table_handle, constraint)
        if not session.is_observation:
            self.files.update(files_of_splits(splits))
        return splits
