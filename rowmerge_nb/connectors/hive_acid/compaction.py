"""Compaction: many deltas of a table become one directory with the same rows under the same row ids.

A minor one joins deltas, and delete deltas likewise; a major one leaves out what was deleted and makes a base. Both write below a hidden folder
and rename; readers that began before go on with the old directories, which stay until `obsolete` ones are removed.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowmerge_nb.connectors.hive_acid.names import (
    COMPACTED_FILE,
    VERSION_FILE,
    AcidDirectory,
    bucket_file,
    bucket_of_delta_file,
    bucket_of_original,
    parse_directory,
)
from rowmerge_nb.connectors.hive_acid.orc.reading import DeletedRows, RowKeys, read_deletes, read_rows
from rowmerge_nb.connectors.hive_acid.orc.writing import write_deletes, write_rows
from rowmerge_nb.connectors.hive_acid.reader import partition_splits
from rowmerge_nb.connectors.hive_acid.state import ValidWriteIds, acid_state, data_files, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable, Snapshot
    from rowmerge_nb.connectors.hive_acid.orc.codecs import OrcCodec
    from rowmerge_nb.connectors.hive_acid.state import AcidState

__all__ = ["compact", "obsolete"]


def compact(table: HiveTable, snapshot: Snapshot, folder: Path, suffix: str, codec: OrcCodec, *, major: bool) -> list[Path]:
    """Compact a table, partition by partition, up to the first write id that is open.

    Args:
        table: the table.
        snapshot: what of it may be read.
        folder: a hidden folder to write in.
        suffix: ends the names of what is made; without one, a base is named after a write id that counts, and marked as compacted.
        codec: how files are compressed.
        major: make a base.

    Returns:
        The directories that were made.
    """
    ids = snapshot.write_ids
    last = min(ids.open, default=ids.high_watermark + 1) - 1
    last = min(last, ids.high_watermark)
    while not suffix and last in ids.aborted:
        last -= 1
    settled = ValidWriteIds(last, frozenset(), ids.aborted)
    made: list[Path] = []
    for name in snapshot.partitions:
        root = Path(table.location) / name
        state = acid_state(root, settled)
        directories = _major(table, name, state, settled, folder, codec) if major else _minor(table, name, state, folder, codec)
        for directory in directories:
            (directory / VERSION_FILE).write_text("2", encoding="utf-8")
            if not suffix and directory.name.startswith("base"):
                (directory / COMPACTED_FILE).write_text('{"thisFileVersion":"0","dataFormat":"compacted"}', encoding="utf-8")
            target = root / f"{directory.name}{suffix}"
            if not target.exists():
                directory.rename(target)
                made.append(target)
    shutil.rmtree(folder, ignore_errors=True)
    return made


def _major(
    table: HiveTable, name: str, state: AcidState, settled: ValidWriteIds, folder: Path, codec: OrcCodec
) -> Iterator[Path]:
    if not (state.deltas or state.delete_deltas):
        return
    directory = folder / name / f"base_{settled.high_watermark:07d}"
    directory.mkdir(parents=True)
    by_bucket = defaultdict(list)
    for split in partition_splits(table, name, state):
        bucket = bucket_of_original(split.path.name) if split.original else bucket_of_delta_file(split.path.name)
        by_bucket[bucket or 0].append(split)
    for bucket, splits in by_bucket.items():
        parts = [part for split in splits for part in _rows(table, split.path, split.original, DeletedRows(split.deletes))]
        _write(directory / bucket_file(bucket), table, parts, codec)
    yield directory


def _minor(table: HiveTable, name: str, state: AcidState, folder: Path, codec: OrcCodec) -> Iterator[Path]:
    root = Path(table.location) / name
    joined = (*state.deltas, *state.delete_deltas)
    if len({(d.lowest, d.highest, d.statement) for d in joined}) < 2:
        return
    # Both kinds have one range, or the wider one would hide the other.
    lowest, highest = min(d.lowest for d in joined), max(d.highest for d in joined)
    for kind, directories in (("delta", state.deltas), ("delete_delta", state.delete_deltas)):
        if not directories:
            continue
        directory = folder / name / f"{kind}_{lowest:07d}_{highest:07d}"
        directory.mkdir(parents=True)
        by_name = defaultdict(list)
        for source in directories:
            for file in data_files(root / source.name):
                by_name[bucket_file(bucket_of_delta_file(file.name) or 0)].append(file)
        for file_name, files in by_name.items():
            if kind == "delta":
                parts = [part for file in files for part in _rows(table, file, None, DeletedRows(()))]
                _write(directory / file_name, table, parts, codec)
            else:
                keys, current = read_deletes(files)
                write_deletes(directory / file_name, table.data_columns, current, keys, codec)
        yield directory


def _rows(
    table: HiveTable, path: Path, original: tuple[int, int] | None, deleted: DeletedRows
) -> Iterator[tuple[RowKeys, pa.Table]]:
    """Give the rows of a file that are not deleted, with their keys."""
    for _, keys, arrays in read_rows(path, list(enumerate(table.data_columns)), original, keys=True):
        if keys is None:
            continue
        kept = ~deleted.contains(keys) if deleted else np.ones(len(keys.numbers), bool)
        data = pa.table(arrays, names=[column.name for column in table.data_columns])
        yield RowKeys(keys.write_ids[kept], keys.buckets[kept], keys.numbers[kept]), data.filter(pa.array(kept))


def _write(path: Path, table: HiveTable, parts: Sequence[tuple[RowKeys, pa.Table]], codec: OrcCodec) -> None:
    keys = RowKeys.concat([keys for keys, _ in parts])
    if keys.numbers.size:
        write_rows(path, table.data_columns, keys, pa.concat_tables([data for _, data in parts]), codec)


def obsolete(table: HiveTable, snapshot: Snapshot) -> Iterator[Path]:
    """Give what a compaction has made superfluous: directories and files that statements which begin now do not read."""
    ids = snapshot.write_ids
    for name in snapshot.partitions:
        root = Path(table.location) / name
        # Seen by the oldest open transaction too, a compacted base hides what is below it for everyone.
        state = acid_state(root, replace(ids, aborted=frozenset()))
        read = {d.name for d in (state.base, *state.deltas, *state.delete_deltas) if d is not None}
        limit = min(ids.open, default=ids.high_watermark + 1)
        yield from (root / d.name for d in _directories(root) if d.name not in read and d.highest < limit)
        if state.base is not None:
            yield from (entry for entry in visible(root) if entry.is_file())


def _directories(root: Path) -> Iterable[AcidDirectory]:
    found = (parse_directory(entry.name) for entry in visible(root) if entry.is_dir())
    return [directory for directory in found if directory is not None]
