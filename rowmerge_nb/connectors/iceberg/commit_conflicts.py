"""The change of a statement to a table, and its conflicts with concurrent commits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.table.snapshots import Operation

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.iceberg.planning import (
    Content,
    content_of,
    file_keys,
    known_snapshot,
    may_delete_from,
    partition_of,
)
from rowmerge_nb.connectors.iceberg.version_three import key_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import ManifestEntry
    from pyiceberg.table import Table

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle


@dataclass
class Change:
    """The changes of a statement to a table.

    Args:
        deletes: position delete files to add, one per data file.
        read: the live files at the start of the statement; None for INSERT.
        scans: the predicates of the statement's scans.
        serializable: whether commits of rows that match `scans` are conflicts too.
        compacts: whether the rows stay the same.
    """

    handle: IcebergTableHandle
    data: list[DataFile] = field(default_factory=list)
    deletes: list[DataFile] = field(default_factory=list)
    deleted_from: set[str] = field(default_factory=set)
    removed: Content = field(default_factory=Content)
    read: Content | None = None
    scans: Sequence[BooleanExpression] = ()
    serializable: bool = True
    compacts: bool = False

    @property
    def operation(self) -> Operation:
        if self.compacts:
            return Operation.REPLACE
        if not self.deletes and not self.removed.data:
            return Operation.APPEND
        return Operation.OVERWRITE if self.data else Operation.DELETE


def conflict(name: object, what: str) -> NoReturn:
    raise ConnectorError(
        f"Iceberg table '{name}' was changed while the statement ran: {what}",
        code="TRANSACTION_CONFLICT",
        hint="Nothing was changed by this statement. Run it again.",
    )


def check(change: Change, table: Table) -> None:
    """Raise TRANSACTION_CONFLICT if commits since the statement began are incompatible with a
    change.
    """
    handle, metadata = change.handle, table.metadata
    if str(metadata.table_uuid) != handle.identity:
        conflict(handle.name, "it was dropped, and another table has its name")
    if metadata.current_schema_id != handle.schema_id:
        conflict(handle.name, "its columns were altered")
    if change.read is not None and metadata.format_version != handle.format_version:
        # Version 3 has no position delete files, and version 2 no deletion vectors.
        conflict(handle.name, "it was upgraded to another format version")
    if metadata.default_spec_id != handle.spec_id:
        conflict(handle.name, "its partitioning was altered")
    head = metadata.current_snapshot_id
    if change.read is None or head == handle.snapshot:
        return
    if _was_put_back(handle, table):
        conflict(handle.name, "it was rolled back to an earlier snapshot")
    now = content_of(table, head)
    live = file_keys(now.data)
    missing = sorted(change.deleted_from - live)
    if missing:
        conflict(
            handle.name,
            f"data file '{missing[0]}', rows of which were to be deleted, was removed by another"
            " commit",
        )
    read_keys = change.read.keys
    new_deletes = [entry for entry in now.deletes if key_of(entry.data_file) not in read_keys]
    partitions = {
        partition_of(e.data_file) for e in now.data if e.data_file.file_path in change.deleted_from
    }
    for entry in new_deletes:
        path = _collision(entry, change, partitions)
        if path is not None:
            conflict(handle.name, f"another commit deleted rows of data file '{path}' too")
    if change.serializable:
        _check_serializable(change, table, live, file_keys(new_deletes))


def check_head(handle: IcebergTableHandle, table: Table) -> None:
    """Raise TRANSACTION_CONFLICT if another snapshot is current than the statement's."""
    if table.metadata.current_snapshot_id != handle.snapshot:
        conflict(
            handle.name,
            f"snapshot {handle.snapshot} was current, but now"
            f" {table.metadata.current_snapshot_id} is",
        )


def _was_put_back(handle: IcebergTableHandle, table: Table) -> bool:
    """Return whether the statement's snapshot is no longer an ancestor of the current one, so that
    deleted rows may be back.
    """
    current = table.metadata.current_snapshot_id
    while current is not None and current != handle.snapshot:
        snapshot = table.metadata.snapshot_by_id(current)
        if snapshot is None:
            return False
        current = snapshot.parent_snapshot_id
    return current != handle.snapshot


def _collision(entry: ManifestEntry, change: Change, partitions: set[Any]) -> str | None:
    file = entry.data_file
    if file.content == DataFileContent.EQUALITY_DELETES:
        everywhere = not len(file.partition)
        return (
            min(change.deleted_from, default=None)
            if everywhere or partition_of(file) in partitions
            else None
        )
    if partition_of(file) not in partitions:
        return None
    return next((path for path in sorted(change.deleted_from) if may_delete_from(file, path)), None)


def _check_serializable(change: Change, table: Table, live: set[str], deletes: set[str]) -> None:
    from pyiceberg.expressions import AlwaysTrue

    handle, started = change.handle, change.handle.snapshot
    before = change.read.keys if change.read is not None else frozenset()
    removed = set() if _only_rewrites(change, table) else before - live
    for scan in change.scans or [AlwaysTrue()]:
        current = content_of(table, table.metadata.current_snapshot_id, scan)
        for entry in current.data:
            if entry.data_file.file_path not in before and not _is_rewrite(entry, table):
                conflict(
                    handle.name, "another commit added rows that the statement would have read"
                )
        for entry in current.deletes:
            if key_of(entry.data_file) in deletes and not _is_rewrite(entry, table):
                conflict(handle.name, "another commit deleted rows that the statement read")
        # The files of an expired snapshot cannot be filtered: all of them count.
        is_retained = known_snapshot(table.metadata, started) is not None
        files_read = (
            content_of(table, started, scan).data
            if is_retained
            else (change.read.data if change.read is not None else [])
        )
        if any(entry.data_file.file_path in removed for entry in files_read):
            conflict(handle.name, "another commit removed data files that the statement read")


def _is_rewrite(entry: ManifestEntry, table: Table) -> bool:
    """Return whether the commit of a file changes no rows, as compaction."""
    snapshot = known_snapshot(table.metadata, entry.snapshot_id)
    return (
        snapshot is not None
        and snapshot.summary is not None
        and snapshot.summary.operation == Operation.REPLACE
    )


def _only_rewrites(change: Change, table: Table) -> bool:
    """Return whether no later commit removed rows; False for an incomplete history."""
    snapshot = table.metadata.current_snapshot()
    while snapshot is not None and snapshot.snapshot_id != change.handle.snapshot:
        if snapshot.summary is None or snapshot.summary.operation not in {
            Operation.REPLACE,
            Operation.APPEND,
        }:
            return False
        snapshot = known_snapshot(table.metadata, snapshot.parent_snapshot_id)
    return snapshot is not None
