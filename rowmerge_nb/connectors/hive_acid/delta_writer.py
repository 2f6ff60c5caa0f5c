"""Writing: sinks that write deltas into hidden folders, and the step that gives their files the names that readers look for."""

from __future__ import annotations

import json
import shutil
import uuid
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.buckets import buckets_of
from rowmerge_nb.connectors.hive_acid.handles import HiveInsertTableHandle, HiveMergeTableHandle, hive_table
from rowmerge_nb.connectors.hive_acid.layout_names import (
    STATEMENT_LIMIT,
    VERSION_FILE,
    bucket_file,
    buckets_in,
    delta_directory,
    normalized_buckets,
)
from rowmerge_nb.connectors.hive_acid.metastore.metastore import partition_name
from rowmerge_nb.connectors.hive_acid.orc.orc_reading import RowKeys, read_rows
from rowmerge_nb.connectors.hive_acid.orc.writing import AcidFileWriter, told, write_deletes
from rowmerge_nb.connectors.hive_acid.orc_values import group_by_partition
from rowmerge_nb.connectors.hive_acid.placing import PlacedFolder, make_folder, place
from rowmerge_nb.spi.handles import own
from rowmerge_nb.spi.merge_sink import ConnectorMergeSink
from rowmerge_nb.spi.output import Written
from rowmerge_nb.spi.page import row_ids_of, split_page
from rowmerge_nb.spi.page_sink import ConnectorPageSink, ConnectorPageSinkProvider

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.connectors.hive_acid.handles import HiveTableHandle, HiveWrite
    from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable
    from rowmerge_nb.spi.handles import (
        ConnectorInsertTableHandle,
        ConnectorMergeTableHandle,
        ConnectorSession,
        ConnectorTransactionHandle,
    )
    from rowmerge_nb.spi.page import Page


@dataclass(frozen=True)
class StagedFile:
    """A file that waits to become part of a table.

    Args:
        kind: ``"delta"`` or ``"delete_delta"``.
        partition: name of its partition.
        bucket: its bucket.
        statement: the number that its rows carry; of delete events, which carry none of their own, 0.
        path: where it is, below the table's folder.
        rows: how many rows it has.
    """

    kind: str
    partition: str
    bucket: int
    statement: int
    path: str
    rows: int


class HivePageSink(ConnectorPageSink):
    """Writes rows into one file per partition and bucket.

    Args:
        table: the table.
        write: the transaction's write id and folder.
        statement: the number that tells row ids of writers apart which write into one bucket of one partition.
    """

    def __init__(self, table: HiveTable, write: HiveWrite, statement: int) -> None:
        self._table = table
        self._write_id, self._codec = write.write_id, write.codec
        self._folder = f"{write.folder}/{uuid.uuid4().hex[:12]}"
        self._statement = statement % STATEMENT_LIMIT
        self._writers: dict[tuple[str, int], AcidFileWriter] = {}

    @property
    def folder(self) -> Path:
        """The hidden folder of this attempt."""
        return Path(self._table.location) / self._folder

    def append_page(self, page: Page) -> None:
        """Write the rows of a page."""
        width = len(self._table.data_columns)
        data = page.select(list(range(width)))
        for partition, bucket, rows in _destinations(self._table, page, self._buckets(page)):
            writer = self._writers.get((partition, bucket))
            if writer is None:
                path = self.folder / partition / "delta" / bucket_file(bucket)
                columns, root = self._table.data_columns, self.folder.parent
                writer = AcidFileWriter(path, columns, self._write_id, bucket, self._statement, self._codec, root)
                self._writers[partition, bucket] = writer
            writer.append(data if rows is None else data.take(pa.array(rows)))

    def finish(self) -> list[bytes]:
        """Close the files and name them."""
        staged = []
        for (partition, bucket), writer in self._writers.items():
            writer.close()
            path = str(writer.path.relative_to(self._table.location))
            staged.append(StagedFile("delta", partition, bucket, self._statement, path, writer.rows))
        return _fragments(staged)

    def abort(self) -> None:
        """Remove what this attempt has written."""
        for writer in self._writers.values():
            writer.abort()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _buckets(self, page: Page) -> npt.NDArray[np.int64]:
        table = self._table
        if table.bucket_count is None:
            return np.zeros(page.num_rows, np.int64)
        names = [column.name for column in table.columns]
        indexes = [names.index(name) for name in table.bucketed_by]
        types = [table.columns[index].type for index in indexes]
        columns = [page.column(index) for index in indexes]
        return buckets_of(columns, types, table.bucket_count, table.bucketing_version).astype(np.int64)


class HiveMergeSink(ConnectorMergeSink):
    """Writes what is inserted through a page sink, and gathers what is deleted until it can be sorted.

    Args:
        table: the table.
        write: the transaction's write id and folder.
        writer: which of the statement's writers this is.
        placed: a layout brings all rows of a place to one writer, so that its number does not matter; None where the table says so.
    """

    def __init__(self, table: HiveTable, write: HiveWrite, writer: int, *, placed: bool | None = None) -> None:
        self._table = table
        self._write_id, self._codec = write.write_id, write.codec
        if placed is None:
            placed = bool(table.partitioned_by) or table.bucket_count is not None
        self._inserts = HivePageSink(table, write, 0 if placed else writer)
        self._deletes: dict[tuple[str, int], list[RowKeys]] = defaultdict(list)

    def store_merged_rows(self, page: Page) -> None:
        """Take a page of inserted and deleted rows."""
        parts = split_page(page, len(self._table.columns))
        if parts.deletions is not None:
            ids = row_ids_of(parts.deletions)
            write_ids, buckets, numbers = (ids.field(i).to_numpy(zero_copy_only=False) for i in range(3))
            keys = RowKeys(write_ids, normalized_buckets(buckets), numbers)
            for partition, bucket, rows in _destinations(self._table, parts.deletions, buckets_in(buckets)):
                self._deletes[partition, bucket].append(keys if rows is None else keys.take(rows))
        if parts.insertions is not None:
            self._inserts.append_page(parts.insertions)

    def finish(self) -> list[bytes]:
        """Write the delete events and name all files; again if it is called again."""
        staged = []
        for (partition, bucket), several in self._deletes.items():
            keys = RowKeys.concat(several)
            path = self._inserts.folder / partition / "delete_delta" / bucket_file(bucket)
            root = self._inserts.folder.parent
            rows = write_deletes(path, self._table.data_columns, self._write_id, keys, self._codec, root)
            name = str(path.relative_to(self._table.location))
            staged.append(StagedFile("delete_delta", partition, bucket, 0, name, rows))
        return [*_fragments(staged), *self._inserts.finish()]

    def abort(self) -> None:
        """Remove what this attempt has written."""
        self._deletes.clear()
        self._inserts.abort()


class HivePageSinkProvider(ConnectorPageSinkProvider):
    """Makes sinks."""

    def create_page_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
    ) -> HivePageSink:
        """Make a sink for an INSERT."""
        insert_handle = own(insert_handle, HiveInsertTableHandle)
        return HivePageSink(insert_handle.table_handle.table, insert_handle.write, session.writer or 0)

    def create_merge_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
    ) -> HiveMergeSink:
        """Make a sink for a MERGE."""
        merge_handle = own(merge_handle, HiveMergeTableHandle)
        return HiveMergeSink(hive_table(merge_handle.get_table_handle()).table, merge_handle.write, session.writer or 0)


def _destinations(
    table: HiveTable, page: Page, buckets: npt.NDArray[np.int64]
) -> Iterator[tuple[str, int, npt.NDArray[np.int64] | None]]:
    """Yield partitions and buckets of a page, and the rows of each in their order; None for all rows."""
    first = len(table.data_columns)
    columns = [page.column(first + i) for i in range(len(table.partitioned_by))]
    if not columns and (buckets == buckets[0]).all():
        yield "", int(buckets[0]), None
        return
    partitions, codes = group_by_partition(columns, page.num_rows)
    destinations = codes << 16 | buckets
    order = np.argsort(destinations, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(destinations[order]) != 0]))
    for rows in np.split(order, starts[1:]):
        code, bucket = divmod(int(destinations[rows[0]]), 1 << 16)
        yield partition_name(table.partitioned_by, partitions[code]), bucket, rows


def _fragments(staged: Sequence[StagedFile]) -> list[bytes]:
    return [json.dumps([asdict(file) for file in staged]).encode()] if staged else []


# -- the driver's part ----------------------------------------------------------------------------------------------


def staged_files(fragments: Collection[bytes]) -> list[StagedFile]:
    """Read fragments.

    >>> staged_files([b'[{"kind": "delta", "partition": "", "bucket": 0, "statement": 0, "path": "_tmp/x", "rows": 1}]'])[0].rows
    1
    """
    return [StagedFile(**file) for fragment in fragments for file in json.loads(fragment)]


def publish(
    handle: HiveTableHandle, write: HiveWrite, files: Sequence[StagedFile], record: list[PlacedFolder], partitions: list[Path]
) -> list[Written]:
    """Move files to where readers look for them; under a write id that does not count yet, so that no reader sees them.

    Directories are made within the statement's own folder, and moved as a whole.

    Args:
        handle: the table.
        write: the transaction's write id, and how files are compressed.
        files: what the fragments name.
        record: takes the directories that are moved.
        partitions: takes the folders of partitions that are made.

    Returns:
        the files under their new names.

    Raises:
        ConnectorError: a file is gone, there are more files of one place than numbers for them, or a directory of this write id is there.
    """
    root, table = Path(handle.table.location), handle.table
    sources: dict[Path, list[tuple[Path, StagedFile]]] = defaultdict(list)
    taken: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for file in files:
        numbers = taken[file.partition, file.kind, file.bucket]
        statement = _free_number(numbers, file, table)
        numbers.add(statement)
        source = root / file.path
        if not source.is_file():
            raise ConnectorError(
                f"File '{source}', which a task has written for table '{table.name}', is gone",
                code="HIVE_FILE_NOT_FOUND",
                hint="Workers and notebook must see the same warehouse directory; then run it again.",
            )
        if file.kind == "delta" and statement != file.statement:
            source = _renumbered(source, table, write, file.bucket, statement)
        directory = root / file.partition / delta_directory(file.kind, write.write_id, write.write_id, statement)
        sources[directory].append((source, file))
    written = []
    for directory, several in sources.items():
        whole = root / write.folder / "whole" / directory.relative_to(root)
        with told(directory):
            make_folder(whole, root / write.folder)
            (whole / VERSION_FILE).write_text("2", encoding="utf-8")
            for source, file in several:
                target = whole / bucket_file(file.bucket)
                source.rename(target)
                name = (directory / target.name).relative_to(root).as_posix()
                written.append(Written(f"{file.kind} file", name, file.rows, target.stat().st_size))
            _make_partition(directory.parent, root, partitions)
            _place(whole, directory, table, write.write_id, record)
    return written


def _make_partition(folder: Path, root: Path, partitions: list[Path]) -> None:
    """Make the folders of a partition; those that are new are recorded before."""
    new_folders = [path for path in (folder, *folder.parents) if path.is_relative_to(root) and not path.exists()]
    partitions += reversed(new_folders)
    folder.mkdir(parents=True, exist_ok=True)


def _place(whole: Path, directory: Path, table: HiveTable, write_id: int, record: list[PlacedFolder]) -> None:
    """Move a directory of a write id, which no other transaction has: one that exists has rows of another metastore.

    Raises:
        ConnectorError: HIVE_PATH_ALREADY_EXISTS.
    """
    try:
        place(whole, directory, record)
    except FileExistsError as error:
        raise ConnectorError(
            f"'{directory}' exists: another metastore has given out write id {write_id} of table '{table.name}'",
            code="HIVE_PATH_ALREADY_EXISTS",
            hint="A folder is kept by one metastore under one name. Take the table out by unregister_table wherever it is known,"
            " and register the folder once: its write ids are counted anew.",
        ) from error
    except FileNotFoundError:
        # Another statement has made the partition's folder, and has removed it when it was rolled back.
        directory.parent.mkdir(parents=True, exist_ok=True)
        place(whole, directory, record)


def _free_number(taken: set[int], file: StagedFile, table: HiveTable) -> int:
    """Return the statement number of a file, or another one where a file of the same place has it."""
    if file.statement not in taken:
        return file.statement
    if len(taken) >= STATEMENT_LIMIT:
        where = f"partition '{file.partition}'" if file.partition else "the table"
        raise ConnectorError(
            f"The statement has written more than {STATEMENT_LIMIT} files for bucket {file.bucket} of {where}, "
            f"and the row ids of Hive table '{table.name}' can tell no more of them apart",
            hint="Let fewer tasks write: leave the option flow out, or have the table compacted before.",
        )
    number = len(taken)
    while number in taken:
        number = (number + 1) % STATEMENT_LIMIT
    return number


def _renumbered(source: Path, table: HiveTable, write: HiveWrite, bucket: int, statement: int) -> Path:
    """Write a file again under another statement number, because another writer's file has the same row ids."""
    target = source.with_name(f"{source.name}_{statement}")
    writer = AcidFileWriter(target, table.data_columns, write.write_id, bucket, statement, write.codec)
    for _, _, arrays in read_rows(source, list(enumerate(table.data_columns)), None, keys=False):
        writer.append(pa.RecordBatch.from_arrays(arrays, names=[column.name for column in table.data_columns]))
    writer.close()
    return target
