"""Adds the files that tasks wrote to the change of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowmerge_nb.connectors.iceberg.fragments import DataFileEntries, DeleteFileEntries
from rowmerge_nb.connectors.iceberg.joined_vectors import write_joined
from rowmerge_nb.connectors.iceberg.planning import Content
from rowmerge_nb.spi import Written

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rowmerge_nb.connectors.iceberg.commit_conflicts import Change
    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle
    from rowmerge_nb.connectors.iceberg.iceberg_metadata import IcebergTransaction, Loaded


def add_files(
    transaction: IcebergTransaction,
    loaded: Loaded,
    change: Change,
    files: Sequence[str],
    described: Iterable[Mapping[str, Any]],
) -> list[Written]:
    """Add data files and position delete files, and return what was written."""
    entries = (
        {entry.data_file.file_path: entry.data_file for entry in loaded.read.data}
        if loaded.read is not None
        else {}
    )
    data_files = DataFileEntries(loaded.table, loaded.schema)
    delete_files = DeleteFileEntries()
    summaries = []
    for file in described:
        if file["kind"] == "vector":
            continue
        transaction.committed_files.add(file["path"])
        if file["kind"] == "data":
            description = "data file"
            change.data.append(data_files.entry(file))
        else:
            description = "position delete file"
            target = files[file["file"]]
            change.deleted_from.add(target)
            change.deletes.append(delete_files.entry(file, entries[target]))
        name = _path_within(change.handle, file["path"])
        summaries.append(Written(description, name, file["rows"], file["bytes"]))
    return summaries


def add_vectors(
    transaction: IcebergTransaction,
    loaded: Loaded,
    change: Change,
    deleted: Mapping[str, Sequence[Any]],
) -> Written:
    """Write the deletion vectors of data files into one file, and add them."""
    vectors = write_joined(
        loaded.table, change.handle, transaction.prefix, loaded.read or Content(), deleted
    )
    transaction.committed_files.add(vectors.location)
    change.deletes += vectors.entries
    change.deleted_from |= deleted.keys()
    change.removed = Content([], list(vectors.replaced))
    name = _path_within(change.handle, vectors.location)
    return Written("deletion vectors", name, vectors.rows, vectors.size)


def _path_within(handle: IcebergTableHandle, path: str) -> str:
    return path.removeprefix(f"{handle.location.rstrip('/')}/")
