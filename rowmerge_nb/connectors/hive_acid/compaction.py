"""Compaction: many deltas become one directory with the same rows under the same row ids.

A minor compaction joins deltas, and delete deltas likewise; a major one writes a base without
deleted rows. Directories are written into a hidden folder and moved when all are finished. With
Hive 3's suffix (``_vN``) they become visible when transaction N commits. Without it each is visible
as soon as it is moved, so each must be correct by itself.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowmerge_nb.connectors.hive_acid.layout_names import (
    COMPACTED_FILE,
    VERSION_FILE,
    bucket_file,
    bucket_of_delta_file,
    bucket_of_original,
    delta_directory,
    parse_directory,
)
from rowmerge_nb.connectors.hive_acid.orc.orc_reading import (
    DeletedRows,
    RowKeys,
    read_deletes,
    read_rows,
)
from rowmerge_nb.connectors.hive_acid.orc.writing import write_deletes, write_rows
from rowmerge_nb.connectors.hive_acid.placing import is_within
from rowmerge_nb.connectors.hive_acid.reader import living_rows, partition_splits
from rowmerge_nb.connectors.hive_acid.visible_deltas import (
    ValidWriteIds,
    acid_state,
    data_files,
    visible,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.connectors.hive_acid.layout_names import AcidDirectory
    from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable, Snapshot
    from rowmerge_nb.connectors.hive_acid.orc.codecs import OrcCodec
    from rowmerge_nb.connectors.hive_acid.visible_deltas import AcidState


def write_compaction(
    table: HiveTable, snapshot: Snapshot, folder: Path, suffix: str, codec: OrcCodec, *, major: bool
) -> list[tuple[Path, Path]]:
    """Compact a table up to the first open write id; return the finished directories with their
    final paths.
    """
    ids = snapshot.write_ids
    last = min(ids.open, default=ids.high_watermark + 1) - 1
    last = min(last, ids.high_watermark)
    while not suffix and last in ids.aborted:
        last -= 1
    settled = ValidWriteIds(last, frozenset(), ids.aborted, ids.transactions)
    pairs: list[tuple[Path, Path]] = []
    for name in snapshot.partitions:
        root = Path(table.location) / name
        state = acid_state(root, settled)
        if major:
            directories = _major(table, name, state, settled, folder, codec)
        else:
            directories = _minor(
                table, name, state, _join_all(state) if suffix else _runs(state), folder, codec
            )
        for directory in directories:
            (directory / VERSION_FILE).write_text("2", encoding="utf-8")
            if not suffix and directory.name.startswith("base"):
                (directory / COMPACTED_FILE).write_text(
                    '{"thisFileVersion":"0","dataFormat":"compacted"}', encoding="utf-8"
                )
            pairs.append((directory, root / f"{directory.name}{suffix}"))
    return pairs


def _major(
    table: HiveTable,
    name: str,
    state: AcidState,
    settled: ValidWriteIds,
    folder: Path,
    codec: OrcCodec,
) -> Iterator[Path]:
    if not (state.deltas or state.delete_deltas):
        return
    directory = folder / name / f"base_{settled.high_watermark:07d}"
    directory.mkdir(parents=True)
    by_bucket = defaultdict(list)
    for split in partition_splits(table, name, state):
        bucket = (
            bucket_of_original(split.path.name)
            if split.original
            else bucket_of_delta_file(split.path.name)
        )
        by_bucket[bucket or 0].append(split)
    # Splits of a bucket share delete files.
    deleted = cache(DeletedRows)
    for bucket, splits in by_bucket.items():
        parts = [
            part
            for split in splits
            for part in _rows(
                table, split.path, split.original, deleted(tuple(split.deletes)), split.elsewhere
            )
        ]
        _write(directory / bucket_file(bucket), table, parts, codec)
    yield directory


def _join_all(state: AcidState) -> list[tuple[AcidDirectory, ...]]:
    joined = (*state.deltas, *state.delete_deltas)
    return [joined] if len({(d.lowest, d.highest, d.statement) for d in joined}) > 1 else []


def _runs(state: AcidState) -> list[tuple[AcidDirectory, ...]]:
    """Return runs of deltas of one kind whose range of write ids has no delta of the other kind."""
    runs: list[tuple[AcidDirectory, ...]] = []
    for mine, others in ((state.deltas, state.delete_deltas), (state.delete_deltas, state.deltas)):
        run: tuple[AcidDirectory, ...] = ()
        for directory in mine:
            lowest, highest = _range((*run, directory))
            if any(other.lowest <= highest and lowest <= other.highest for other in others):
                runs.append(run)
                run = ()
            run = (*run, directory)
        runs.append(run)
    return [run for run in runs if len({(d.lowest, d.highest, d.statement) for d in run}) > 1]


def _range(directories: Sequence[AcidDirectory]) -> tuple[int, int]:
    return min(d.lowest for d in directories), max(d.highest for d in directories)


def _minor(
    table: HiveTable,
    name: str,
    state: AcidState,
    groups: Sequence[Sequence[AcidDirectory]],
    folder: Path,
    codec: OrcCodec,
) -> Iterator[Path]:
    for group in groups:
        lowest, highest = _range(group)
        for directory_kind in ("delta", "delete_delta"):
            directories = [directory for directory in group if directory.kind == directory_kind]
            if not directories:
                continue
            directory = folder / name / delta_directory(directory_kind, lowest, highest, None)
            directory.mkdir(parents=True)
            if directory_kind == "delta":
                _join_rows(table, name, state, directories, directory, codec)
            else:
                _join_deletes(table, name, directories, directory, codec)
            yield directory


def _files_by_bucket(
    table: HiveTable, name: str, directories: Sequence[AcidDirectory]
) -> dict[str, list[tuple[AcidDirectory, Path]]]:
    by_bucket = defaultdict(list)
    for source in directories:
        for file in data_files(Path(table.location) / name / source.name):
            by_bucket[bucket_file(bucket_of_delta_file(file.name) or 0)].append((source, file))
    return by_bucket


def _join_rows(
    table: HiveTable,
    name: str,
    state: AcidState,
    directories: Sequence[AcidDirectory],
    target: Path,
    codec: OrcCodec,
) -> None:
    for bucket, files in _files_by_bucket(table, name, directories).items():
        parts = [
            part
            for source, file in files
            for part in _rows(
                table, file, None, DeletedRows(()), state.overlaps.get(source.name, 0)
            )
        ]
        _write(target / bucket, table, parts, codec)


def _join_deletes(
    table: HiveTable, name: str, directories: Sequence[AcidDirectory], target: Path, codec: OrcCodec
) -> None:
    for bucket, files in _files_by_bucket(table, name, directories).items():
        keys, current = read_deletes([file for _, file in files])
        write_deletes(target / bucket, table.data_columns, current, keys, codec)


def _rows(
    table: HiveTable,
    path: Path,
    original: tuple[int, int] | None,
    deleted: DeletedRows,
    elsewhere: int,
) -> Iterator[tuple[RowKeys, pa.Table]]:
    for _, keys, arrays in read_rows(
        path, list(enumerate(table.data_columns)), original, keys=True
    ):
        if keys is None:
            continue
        living = living_rows(keys, deleted, elsewhere)
        data = pa.table(arrays, names=[column.name for column in table.data_columns])
        yield keys.take(np.flatnonzero(living)), data.filter(pa.array(living))


def _write(
    path: Path, table: HiveTable, parts: Sequence[tuple[RowKeys, pa.Table]], codec: OrcCodec
) -> None:
    keys = RowKeys.concat([keys for keys, _ in parts])
    if keys.numbers.size:
        write_rows(
            path, table.data_columns, keys, pa.concat_tables([data for _, data in parts]), codec
        )


def obsolete(table: HiveTable, snapshot: Snapshot) -> Iterator[Path]:
    """Yield directories and files that committed compactions replaced, except behind links."""
    ids = snapshot.write_ids
    for name in snapshot.partitions:
        root = Path(table.location) / name
        if not is_within(root, Path(table.location)):
            continue
        # Listed before the state is read: entries moved here meanwhile are not known to be
        # obsolete.
        entries = [entry for entry in visible(root) if not entry.is_symlink()]
        # A base that even the oldest open transaction sees hides older directories from every
        # reader.
        state = acid_state(root, replace(ids, aborted=frozenset()))
        current = {
            d.name for d in (state.base, *state.deltas, *state.delete_deltas) if d is not None
        }
        limit = min(ids.open, default=ids.high_watermark + 1)
        for entry in entries:
            if entry.is_file():
                superfluous = state.base is not None
            else:
                directory = parse_directory(entry.name)
                superfluous = (
                    directory is not None
                    and directory.highest < limit
                    and ids.is_visible(directory)
                )
            if superfluous and entry.name not in current:
                yield entry
