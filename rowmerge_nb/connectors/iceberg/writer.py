"""Sinks: data files and position delete files under unique names, which only the commit makes
visible.
"""

from __future__ import annotations

import base64
import io
import json
import uuid
import zlib
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.iceberg.deletion_vectors import bitmap_of, positions_of, puffin_of
from rowmerge_nb.connectors.iceberg.file_values import file_schema, for_file
from rowmerge_nb.connectors.iceberg.files import create, remove
from rowmerge_nb.connectors.iceberg.iceberg_handles import (
    PATH_ID,
    POSITION_ID,
    ROW_ID,
    IcebergColumn,
    IcebergInsertTableHandle,
    IcebergMergeTableHandle,
    iceberg_table,
)
from rowmerge_nb.connectors.iceberg.notes import Presence
from rowmerge_nb.connectors.iceberg.partitions import folder_of, groups
from rowmerge_nb.connectors.iceberg.reader import read_split
from rowmerge_nb.connectors.iceberg.sorting import sorted_rows
from rowmerge_nb.connectors.iceberg.version_three import VERSION
from rowmerge_nb.connectors.shared.copy_on_write import CopyOnWriteSink
from rowmerge_nb.connectors.shared.disk import writing
from rowmerge_nb.connectors.shared.encoding import encodings
from rowmerge_nb.connectors.shared.file_positions import FilePositions
from rowmerge_nb.connectors.shared.partitioned_sink import PartitionedSink
from rowmerge_nb.spi import (
    ConnectorInsertTableHandle,
    ConnectorMergeSink,
    ConnectorMergeTableHandle,
    ConnectorPageSinkProvider,
    ConnectorSession,
    ConnectorTransactionHandle,
    Operation,
    Page,
    own,
    row_ids_of,
    rows_with,
    split_page,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    import numpy.typing as npt

    from rowmerge_nb.connectors.iceberg.iceberg_handles import (
        DataFileRef,
        IcebergField,
        IcebergSplit,
        IcebergTableHandle,
    )

GROUP_ROWS: Final = 262_144
GROUP_BYTES: Final = 64 * 1024 * 1024
SORTED_BYTES: Final = 256 * 1024 * 1024
_FILE_BYTES: Final = "536870912"
_DELETES: Final = pa.schema(
    [
        pa.field(
            "file_path",
            pa.dictionary(pa.int8(), pa.string()),
            nullable=False,
            metadata={"PARQUET:field_id": str(PATH_ID)},
        ),
        pa.field(
            "pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(POSITION_ID)}
        ),
    ]
)


def _options(properties: Mapping[str, str]) -> dict[str, Any]:
    codec = properties.get("write.parquet.compression-codec", "zstd")
    level = properties.get("write.parquet.compression-level")
    options: dict[str, Any] = {"compression": "none" if codec == "uncompressed" else codec}
    if level is not None and codec in {"zstd", "gzip", "brotli"}:
        options["compression_level"] = int(level)
    return options


def target_bytes(properties: Mapping[str, str]) -> int:
    return int(properties.get("write.target-file-size-bytes", _FILE_BYTES))


class FileWriter:
    def __init__(
        self,
        table: IcebergTableHandle,
        location: str,
        schema: pa.Schema,
        keys: Sequence[tuple[int, bool, bool]] = (),
    ) -> None:
        self.location = location
        self._keys = keys
        self.rows = 0
        self._table = table
        self._waiting: list[pa.Table] = []
        self._waiting_rows = self._waiting_bytes = 0
        self._footers: list[pq.FileMetaData] = []
        self._schema = schema
        self._writer: pq.ParquetWriter | None = None
        with self._write_errors("ICEBERG_WRITER_OPEN_ERROR"):
            self._stream = create(table.io, location)

    @property
    def size(self) -> int:
        """The number of bytes that are written, or buffered for sorting."""
        return self._waiting_bytes if self._keys else int(self._stream.tell())

    def append(self, rows: pa.Table) -> None:
        """Add rows; they are written once they fill a row group."""
        self.rows += rows.num_rows
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        if self._waiting_rows >= GROUP_ROWS or self._waiting_bytes >= GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows, unless they are to be sorted."""
        if not self._keys:
            with self._aborting():
                self._flush()

    @contextmanager
    def _aborting(self) -> Iterator[None]:
        """Remove the file on any error, so that the library's writer does not retry in its
        destructor.
        """
        try:
            yield
        except BaseException:
            self.abort()
            raise

    def _flush(self) -> None:
        if self._waiting:
            rows = pa.concat_tables(self._waiting)
            if self._keys:
                rows = sorted_rows(rows, self._keys)
            with self._write_errors():
                if self._writer is None:
                    options = _options(self._table.properties)
                    self._writer = pq.ParquetWriter(
                        self._stream,
                        self._schema,
                        **options,
                        **encodings(rows),
                        metadata_collector=self._footers,
                        store_decimal_as_integer=True,
                        # A reader gets plain texts from dictionaries.
                        store_schema=self._schema is not _DELETES,
                    )
                self._writer.write_table(rows, row_group_size=2 * GROUP_ROWS)
        self._waiting.clear()
        self._waiting_rows = self._waiting_bytes = 0

    def close(self) -> dict[str, Any]:
        with self._aborting():
            self._flush()
            assert self._writer is not None, "a file is made for rows"
            with self._write_errors():
                self._writer.close()
                size = int(self._stream.tell())
                self._stream.close()
        buffer = io.BytesIO()
        self._footers[0].write_metadata_file(buffer)
        footer = base64.b64encode(zlib.compress(buffer.getvalue())).decode("ascii")
        return {"path": self.location, "rows": self.rows, "bytes": size, "footer": footer}

    def _write_errors(
        self, code: str = "ICEBERG_WRITER_DATA_ERROR"
    ) -> AbstractContextManager[None]:
        return writing(f"File '{self.location}' of Iceberg table '{self._table.name}'", code)

    def abort(self) -> None:
        self._waiting.clear()
        if self._writer is not None:
            # Otherwise its destructor writes the file's end, and prints the error of a full disk.
            self._writer.is_open = False
        with suppress(OSError, pa.ArrowException):
            self._stream.close()
        remove(self._table.io, self.location)


def vector_of(fragment: Mapping[str, Any]) -> npt.NDArray[np.int64]:
    """Return the deleted positions that a sink has given to the commit."""
    return positions_of(zlib.decompress(base64.b64decode(fragment["bitmap"])))


def footer_of(fragment: Mapping[str, Any]) -> pq.FileMetaData:
    return pq.read_metadata(io.BytesIO(zlib.decompress(base64.b64decode(fragment["footer"]))))


def write_vectors(
    table: IcebergTableHandle, prefix: str, vectors: Mapping[str, npt.NDArray[np.int64]]
) -> tuple[str, int, dict[str, tuple[int, int]]]:
    """Write a Puffin file of the deletion vectors of data files; return its location and size, and
    the offset and size of each vector.
    """
    content, ranges = puffin_of(vectors)
    location = _location(table, prefix, "", "-deletes.puffin")
    what = f"File '{location}' of Iceberg table '{table.name}'"
    with writing(what, "ICEBERG_WRITER_DATA_ERROR"), create(table.io, location) as stream:
        stream.write(content)
    return location, len(content), ranges


def _location(table: IcebergTableHandle, prefix: str, folder: str, suffix: str = ".parquet") -> str:
    name = f"{prefix}-{uuid.uuid4().hex}{suffix}"
    configured = "write.py-location-provider.impl" in table.io
    if (
        not configured
        and table.properties.get("write.object-storage.enabled", "false").lower() != "true"
    ):
        return "/".join(filter(None, [table.data_location, folder, name]))
    from rowmerge_nb.connectors.iceberg.trust import provider_of

    provider = provider_of(table.location, table.properties, table.io)
    return provider.new_data_location(f"{folder}/{name}" if folder else name)


class IcebergPageSink(PartitionedSink[FileWriter]):
    """Writes rows to data files, one open file per partition.

    Args:
        lineage: columns behind the table's, which copied rows have and new rows lack.
    """

    def __init__(
        self,
        table: IcebergTableHandle,
        prefix: str,
        presence: Presence | None = None,
        lineage: tuple[IcebergField, ...] = (),
    ) -> None:
        super().__init__(target_bytes(table.properties), partitioned=bool(table.partitioning))
        self._table = table
        self._prefix = prefix
        self._presence = presence
        self._fields = (*table.fields, *lineage)
        self._schema = file_schema(self._fields)

    def append_page(self, page: Page) -> None:
        for field in self._fields[page.num_columns :]:
            page = page.append_column(field.name, pa.nulls(page.num_rows, field.type.arrow))
        super().append_page(page)
        if (
            self._table.sorted_by
            and sum(writer.size for writer in self._writers.values()) >= SORTED_BYTES
        ):
            # Rows that are to be sorted are in memory.
            for values in list(self._writers):
                self._close(values)

    def _groups(self, page: Page) -> Iterator[tuple[tuple[Any, ...], Page]]:
        return groups(self._table.partitioning, page)

    def _open(self, values: tuple[Any, ...]) -> FileWriter:
        folder = folder_of(self._table.partitioning, values)
        location = _location(self._table, self._prefix, folder)
        return FileWriter(self._table, location, self._schema, self._table.sorted_by)

    def _write(self, file: FileWriter, rows: Page) -> None:
        file.append(for_file(rows, self._schema, self._fields))

    def _entry(self, values: tuple[Any, ...], file: FileWriter) -> dict[str, Any]:
        return {"kind": "data", "partition": list(values), **file.close()}

    def _remove(self, path: str) -> None:
        remove(self._table.io, path)

    def _require_running(self, *, now: bool = False) -> None:
        if self._presence is not None:
            self._presence.require(now=now)


class IcebergMergeSink(ConnectorMergeSink):
    """Writes inserted rows through a page sink, and one sorted delete file per data file.

    In version 3 it writes no delete files, and gives the deleted positions to the commit.
    """

    def __init__(
        self,
        table: IcebergTableHandle,
        files: tuple[DataFileRef, ...],
        prefix: str,
        presence: Presence | None = None,
    ) -> None:
        self._table = table
        self._files = files
        self._prefix = prefix
        self._presence = presence
        # The new rows inherit the number of the commit that updates them.
        self._inserts = IcebergPageSink(table, prefix, presence, table.lineage[:1])
        self._deletes = FilePositions(len(files))
        self._delete_entries: list[dict[str, Any]] = []
        self._vectors: list[dict[str, Any]] = []

    def store_merged_rows(self, page: Page) -> None:
        parts = split_page(page, len(self._table.fields))
        if parts.deletions is not None:
            self._deletes.add(row_ids_of(parts.deletions))
        if parts.insertions is not None:
            self._inserts.append_page(_with_source_ids(page, parts.insertions, self._table))

    def finish(self) -> list[bytes]:
        try:
            for number, positions in self._deletes.by_file():
                self._write_deletes(number, positions)
            self._deletes.clear()
            inserted = self._inserts.finish()
            if self._delete_entries and self._presence is not None:
                self._presence.require(now=True)
        except ConnectorError:
            self.abort()
            raise
        entries = [*self._delete_entries, *self._vectors]
        return [*inserted, *(json.dumps(entry).encode() for entry in entries)]

    def _write_deletes(self, number: int, positions: npt.NDArray[np.int64]) -> None:
        if self._presence is not None:
            self._presence.require()
        if self._table.format_version >= VERSION:
            # One file has one deletion vector, which the commit joins from those of all writers.
            bitmap = base64.b64encode(zlib.compress(bitmap_of(positions), 1)).decode("ascii")
            self._vectors.append({"kind": "vector", "file": number, "bitmap": bitmap})
            return
        path = self._files[number].path
        location = _location(self._table, self._prefix, "", "-deletes.parquet")
        writer = FileWriter(self._table, location, _DELETES)
        # Parquet writes the one value of a dictionary, and not a text for each row.
        numbers = pa.array(np.zeros(len(positions), np.int8))
        paths = pa.DictionaryArray.from_arrays(numbers, [path])
        writer.append(pa.Table.from_arrays([paths, pa.array(positions)], schema=_DELETES))
        self._delete_entries.append({"kind": "deletes", "file": number, **writer.close()})

    def abort(self) -> None:
        self._inserts.abort()
        for entry in self._delete_entries:
            remove(self._table.io, entry["path"])
        self._delete_entries.clear()
        self._vectors.clear()
        self._deletes.clear()


class IcebergPageSinkProvider(ConnectorPageSinkProvider):
    def create_page_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        insert_handle: ConnectorInsertTableHandle,
    ) -> IcebergPageSink:
        insert_handle = own(insert_handle, IcebergInsertTableHandle)
        table = insert_handle.table_handle
        return IcebergPageSink(table, insert_handle.prefix, Presence(table, insert_handle.prefix))

    def create_merge_sink(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        merge_handle: ConnectorMergeTableHandle,
    ) -> IcebergMergeSink | CopyOnWriteSink:
        merge_handle = own(merge_handle, IcebergMergeTableHandle)
        table = iceberg_table(merge_handle.get_table_handle())
        presence = Presence(table, merge_handle.prefix)
        if merge_handle.whole_files is None:
            return IcebergMergeSink(table, merge_handle.files, merge_handle.prefix, presence)
        return CopyOnWriteSink(
            IcebergPageSink(table, merge_handle.prefix, presence, table.lineage),
            len(table.fields),
            len(merge_handle.whole_files),
            partial(_rows_with_ids, merge_handle.whole_files, table),
            partial(_with_source_ids, table=table),
        )


def _with_source_ids(page: Page, insertions: Page, table: IcebergTableHandle) -> Page:
    """Add the ids of row lineage that the insertions of a page keep, NULL for other rows."""
    if not table.lineage:
        return insertions
    operations = Operation.INSERT, Operation.UPDATE_INSERT
    row_ids = row_ids_of(rows_with(page, len(table.fields), operations))
    return insertions.append_column(ROW_ID.name, pc.struct_field(row_ids, [2]))


def _rows_with_ids(
    files: Sequence[IcebergSplit], table: IcebergTableHandle, number: int
) -> Iterator[Page]:
    fields = (*table.fields, *table.lineage)
    columns = [IcebergColumn(field.name, field.type, field) for field in fields]
    return read_split(files[number], table, [*columns, table.row_id])
