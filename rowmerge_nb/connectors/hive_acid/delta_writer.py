"""Sinks that write deltas into hidden folders, and their publication."""

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
from rowmerge_nb.connectors.hive_acid.hive_handles import (
    HiveInsertTableHandle,
    HiveMergeTableHandle,
    hive_table,
)
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
from rowmerge_nb.connectors.hive_acid.orc.writing import AcidFileWriter, disk_errors, write_deletes
from rowmerge_nb.connectors.hive_acid.orc_values import group_by_partition
from rowmerge_nb.connectors.hive_acid.placing import PlacedFolder, make_folder, place
from rowmerge_nb.spi import (
    ConnectorInsertTableHandle,
    ConnectorMergeSink,
    ConnectorMergeTableHandle,
    ConnectorPageSink,
    ConnectorPageSinkProvider,
    ConnectorSession,
    ConnectorTransactionHandle,
    Page,
    Written,
    own,
    row_ids_of,
    split_page,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.connectors.hive_acid.hive_handles import HiveTableHandle, HiveWrite
    from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable


@dataclass(frozen=True)
class StagedFile:
    """A written file that is not part of the table yet."""

    kind: str
    partition: str
    bucket: int
    statement: int
    path: str
    rows: int


class HivePageSink(ConnectorPageSink):
    """Writes rows into one file per partition and bucket; ``statement`` distinguishes row ids of
    its writers.
    """

    def __init__(self, table: HiveTable, write: HiveWrite, statement: int) -> None:
        self._table = table
        self._write_id, self._codec = write.write_id, write.codec
        self._folder = f"{write.folder}/{uuid.uuid4().hex[:12]}"
        self._statement = statement % STATEMENT_LIMIT
        self._writers: dict[tuple[str, int], AcidFileWriter] = {}

    @property
    def folder(self) -> Path:
        return Path(self._table.location) / self._folder

    def append_page(self, page: Page) -> None:
        width = len(self._table.data_columns)
        data = page.select(list(range(width)))
        for partition, bucket, rows in _destinations(self._table, page, self._buckets(page)):
            writer = self._writers.get((partition, bucket))
            if writer is None:
                path = self.folder / partition / "delta" / bucket_file(bucket)
                columns, root = self._table.data_columns, self.folder.parent
                writer = AcidFileWriter(
                    path, columns, self._write_id, bucket, self._statement, self._codec, root
                )
                self._writers[partition, bucket] = writer
            writer.append(data if rows is None else data.take(pa.array(rows)))

    def finish(self) -> list[bytes]:
        staged = []
        for (partition, bucket), writer in self._writers.items():
            writer.close()
            path = str(writer.path.relative_to(self._table.location))
            staged.append(
                StagedFile("delta", partition, bucket, self._statement, path, writer.rows)
            )
        return _fragments(staged)

    def abort(self) -> None:
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
        return buckets_of(columns, types, table.bucket_count, table.bucketing_version).astype(
            np.int64
        )


class HiveMergeSink(ConnectorMergeSink):
    """Writes insertions through a page sink, and collects deletions because delete events must be
    sorted.

    Args:
        is_placed: whether all rows of a bucket go to one writer, so that its index does not matter.
    """

    def __init__(
        self, table: HiveTable, write: HiveWrite, writer: int, *, is_placed: bool | None = None
    ) -> None:
        self._table = table
        self._write_id, self._codec = write.write_id, write.codec
        if is_placed is None:
            is_placed = bool(table.partitioned_by) or table.bucket_count is not None
        self._inserts = HivePageSink(table, write, 0 if is_placed else writer)
        self._deletes: dict[tuple[str, int], list[RowKeys]] = defaultdict(list)

    def store_merged_rows(self, page: Page) -> None:
        parts = split_page(page, len(self._table.columns))
        if parts.deletions is not None:
            ids = row_ids_of(parts.deletions)
            write_ids, buckets, numbers = (
                ids.field(i).to_numpy(zero_copy_only=False) for i in range(3)
            )
            keys = RowKeys(write_ids, normalized_buckets(buckets), numbers)
            for partition, bucket, rows in _destinations(
                self._table, parts.deletions, buckets_in(buckets)
            ):
                self._deletes[partition, bucket].append(keys if rows is None else keys.take(rows))
        if parts.insertions is not None:
            self._inserts.append_page(parts.insertions)

    def finish(self) -> list[bytes]:
        staged = []
        for (partition, bucket), batches in self._deletes.items():
            keys = RowKeys.concat(batches)
            path = self._inserts.folder / partition / "delete_delta" / bucket_file(bucket)
            root = self._inserts.folder.parent
            rows = write_deletes(
                path, self._table.data_columns, self._write_id, keys, self._codec, root
            )
            name = str(path.relative_to(self._table.location))
            staged.append(StagedFile("delete_delta", partition, bucket, 0, name, rows))
        return [*_fragments(staged), *self._inserts.finish()]

    def abort(self) -> None:
        self._deletes.clear()
        self._inserts.abort()


class HivePageSinkProvider(ConnectorPageSinkProvider):
    def create_page_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
    ) -> HivePageSink:
        insert_handle = own(insert_handle, HiveInsertTableHandle)
        return HivePageSink(
            insert_handle.table_handle.table, insert_handle.write, session.writer or 0
        )

    def create_merge_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
    ) -> HiveMergeSink:
        merge_handle = own(merge_handle, HiveMergeTableHandle)
        return HiveMergeSink(
            hive_table(merge_handle.get_table_handle()).table,
            merge_handle.write,
            session.writer or 0,
        )


def _destinations(
    table: HiveTable, page: Page, buckets: npt.NDArray[np.int64]
) -> Iterator[tuple[str, int, npt.NDArray[np.int64] | None]]:
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


# -- the driver's part


def staged_files(fragments: Collection[bytes]) -> list[StagedFile]:
    """Parse fragments.

    >>> staged_files([b'[{"kind": "delta", "partition": "", "bucket": 0, "statement": 0, "path": "_tmp/x", "rows": 1}]'])[0].rows
    1
    """
    return [StagedFile(**file) for fragment in fragments for file in json.loads(fragment)]


def publish(
    handle: HiveTableHandle,
    write: HiveWrite,
    files: Sequence[StagedFile],
    record: list[PlacedFolder],
    partitions: list[Path],
) -> list[Written]:
    """Move files to where readers look, under a write id that is not visible yet."""
    root, table = Path(handle.table.location), handle.table
    sources: dict[Path, list[tuple[Path, StagedFile]]] = defaultdict(list)
    used_numbers: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for file in files:
        numbers = used_numbers[file.partition, file.kind, file.bucket]
        statement = _free_number(numbers, file, table)
        numbers.add(statement)
        source = root / file.path
        if not source.is_file():
            raise ConnectorError(
                f"File '{source}', which a task wrote for table '{table.name}', is missing",
                code="HIVE_FILE_NOT_FOUND",
                hint=(
                    "Workers and notebook must share the warehouse directory. Then"
                    " run the statement again."
                ),
            )
        if file.kind == "delta" and statement != file.statement:
            source = _renumbered(source, table, write, file.bucket, statement)
        directory = (
            root
            / file.partition
            / delta_directory(file.kind, write.write_id, write.write_id, statement)
        )
        sources[directory].append((source, file))
    outputs = []
    for directory, staged in sources.items():
        whole = root / write.folder / "whole" / directory.relative_to(root)
        with disk_errors(directory):
            make_folder(whole, root / write.folder)
            (whole / VERSION_FILE).write_text("2", encoding="utf-8")
            for source, file in staged:
                target = whole / bucket_file(file.bucket)
                source.rename(target)
                name = (directory / target.name).relative_to(root).as_posix()
                outputs.append(Written(f"{file.kind} file", name, file.rows, target.stat().st_size))
            _make_partition(directory.parent, root, partitions)
            _place(whole, directory, table, write.write_id, record)
    return outputs


def _make_partition(folder: Path, root: Path, partitions: list[Path]) -> None:
    new_folders = [
        path
        for path in (folder, *folder.parents)
        if path.is_relative_to(root) and not path.exists()
    ]
    partitions += reversed(new_folders)
    folder.mkdir(parents=True, exist_ok=True)


def _place(
    whole: Path, directory: Path, table: HiveTable, write_id: int, record: list[PlacedFolder]
) -> None:
    """Move a directory to its final name. An existing one has rows of another metastore."""
    try:
        place(whole, directory, record)
    except FileExistsError as error:
        raise ConnectorError(
            f"'{directory}' exists: another metastore has assigned write id {write_id}"
            f" of table '{table.name}'",
            code="HIVE_PATH_ALREADY_EXISTS",
            hint=(
                "Register a folder in one metastore and under one name. Call"
                " unregister_table in every metastore that has it, and register the folder"
                " once: its write ids are counted again."
            ),
        ) from error
    except FileNotFoundError:
        # Another statement made the partition's folder and removed it when it was rolled back.
        directory.parent.mkdir(parents=True, exist_ok=True)
        place(whole, directory, record)


def _free_number(used_numbers: set[int], file: StagedFile, table: HiveTable) -> int:
    if file.statement not in used_numbers:
        return file.statement
    if len(used_numbers) >= STATEMENT_LIMIT:
        where = f"partition '{file.partition}'" if file.partition else "the table"
        raise ConnectorError(
            f"The statement has written more than {STATEMENT_LIMIT} files for bucket"
            f" {file.bucket} of {where}, and the row ids of Hive table '{table.name}' cannot"
            " distinguish more",
            hint=("Let fewer tasks write: omit the option flow, or compact the table first."),
        )
    number = len(used_numbers)
    while number in used_numbers:
        number = (number + 1) % STATEMENT_LIMIT
    return number


def _renumbered(
    source: Path, table: HiveTable, write: HiveWrite, bucket: int, statement: int
) -> Path:
    target = source.with_name(f"{source.name}_{statement}")
    writer = AcidFileWriter(
        target, table.data_columns, write.write_id, bucket, statement, write.codec
    )
    for _, _, arrays in read_rows(source, list(enumerate(table.data_columns)), None, keys=False):
        writer.append(
            pa.RecordBatch.from_arrays(arrays, names=[column.name for column in table.data_columns])
        )
    writer.close()
    return target
