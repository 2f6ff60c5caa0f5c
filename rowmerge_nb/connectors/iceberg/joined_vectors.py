"""The deletion vectors of a statement, joined with the deletes that its data files have already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pyiceberg.manifest import DataFileContent

from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.connectors.iceberg.deletes import deleted_positions
from rowmerge_nb.connectors.iceberg.fragments import vector_entry
from rowmerge_nb.connectors.iceberg.planning import Content, only_path, whole_files
from rowmerge_nb.connectors.iceberg.writer import write_vectors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    from pyiceberg.manifest import DataFile, ManifestEntry
    from pyiceberg.table import Table

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle

    Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class JoinedVectors:
    """A Puffin file, the entries of its vectors, and the entries that these replace."""

    location: str
    size: int
    rows: int
    entries: Sequence[DataFile]
    replaced: Sequence[ManifestEntry]


def write_joined(
    table: Table,
    handle: IcebergTableHandle,
    prefix: str,
    content: Content,
    deleted: Mapping[str, Sequence[Positions]],
) -> JoinedVectors:
    """Write one deletion vector for each data file, with all of its deleted positions.

    A data file has one vector, and readers ignore its position delete files then: the vector has
    their positions. Delete files of that data file only are replaced; others remain for their
    other data files.
    """
    targets = [entry for entry in content.data if entry.data_file.file_path in deleted]
    splits = whole_files(table, handle, Content(targets, content.deletes))
    vectors = {}
    for entry, split in zip(targets, splits, strict=True):
        earlier = deleted_positions(split, handle, entry.data_file.record_count)
        vectors[split.path] = ascending(np.concatenate([*deleted[split.path], earlier]))
    location, size, ranges = write_vectors(handle, prefix, vectors)
    entries = [
        vector_entry(location, size, ranges[file.file_path], len(vectors[file.file_path]), file)
        for file in (entry.data_file for entry in targets)
    ]
    replaced = [
        entry
        for entry in content.deletes
        if entry.data_file.content == DataFileContent.POSITION_DELETES
        and only_path(entry.data_file) in vectors
    ]
    rows = sum(map(len, vectors.values()))
    return JoinedVectors(location, size, rows, entries, replaced)
