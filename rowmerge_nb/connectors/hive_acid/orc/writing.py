"""Writing of ORC files for transactional tables."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.layout_names import encode_bucket
from rowmerge_nb.connectors.hive_acid.orc.codecs import OrcCodec
from rowmerge_nb.connectors.hive_acid.orc.exact import ExactWriter
from rowmerge_nb.connectors.hive_acid.orc.orc_reading import RowKeys, reading
from rowmerge_nb.connectors.hive_acid.orc.tail import complete_footer
from rowmerge_nb.connectors.hive_acid.orc_values import (
    bounded_texts,
    file_type,
    has_early_fractions,
    to_file,
)
from rowmerge_nb.connectors.hive_acid.placing import make_folder
from rowmerge_nb.connectors.shared.disk import writing
from rowmerge_nb.spi import ColumnMetadata, Page, Type

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    import numpy.typing as npt


_INSERT, _DELETE = 0, 2
_CUT: Final = 65_536
_FIRST_FIELD: Final = 7
"""The type number of the first column in a file, after the file's struct and its six columns."""
_STRIPE_BYTES: Final = 4 << 20
"""The size of stripes, which tasks read in parallel."""
_SMALL_BYTES: Final = 16 << 10
"""Files of fewer bytes are not compressed: preparing the codec takes longer than the rest."""


def disk_errors(path: Path) -> AbstractContextManager[None]:
    return writing(f"File '{path}' of a Hive table", "HIVE_WRITER_DATA_ERROR")


class _Stream:
    """The target of Arrow's ORC writer, which delays errors of the disk until `check`.

    An error while Arrow closes its writer would end the process.
    """

    def __init__(self, path: Path) -> None:
        self._file = pa.OSFile(str(path), "wb")
        self._error: OSError | None = None

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def write(self, data: bytes) -> int:
        if self._error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self._error = error
        return len(data)

    def flush(self) -> None:
        """Return at once: nothing is buffered."""

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            self._error = self._error or error

    def check(self) -> None:
        if self._error is not None:
            raise self._error


class _EventFile:
    """A file of events, written by Arrow unless it would write a value wrongly.

    The first write holds all events, or at least `_CUT` of them.
    """

    def __init__(
        self,
        path: Path,
        columns: Sequence[ColumnMetadata],
        codec: OrcCodec,
        root: Path | None = None,
    ) -> None:
        self._path = path
        self._codec = codec
        self._columns = columns
        self._stream: _Stream | None = None
        self._writer: Any = None
        self._exact: ExactWriter | None = None
        self._has_events = self._is_closed = False
        with disk_errors(path):
            make_folder(path.parent, root)

    @property
    def unwritten_lengths(self) -> list[tuple[int, Type]]:
        return bounded_texts(self._columns, _FIRST_FIELD) if self._exact is None else []

    def write(self, events: pa.Table) -> None:
        if not self._has_events and events.nbytes < _SMALL_BYTES:
            self._codec = OrcCodec.NONE
        with disk_errors(self._path):
            stream = self._open()
            if self._exact is None and any(map(has_early_fractions, events.column("row").chunks)):
                self._switch_writer(stream)
            (self._exact or self._writer).write(events)
            stream.check()
        self._has_events = True

    def _open(self) -> _Stream:
        from pyarrow import orc

        if self._stream is None:
            # As late as possible: a sink may have more partitions than a process open files.
            self._stream = _Stream(self._path)
            file = pa.PythonFile(self._stream, mode="w")
            self._writer = orc.ORCWriter(
                file, compression=self._codec.arrow, stripe_size=_STRIPE_BYTES
            )
        return self._stream

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            with disk_errors(self._path):
                stream = self._open()
                # A writer has two megabytes of buffers: it goes with its file.
                writer, self._writer = self._writer, None
                (self._exact or writer).close()
                if self._exact is None:
                    stream.close()
                    stream.check()
                else:
                    os.replace(self._other, self._path)  # noqa: PTH105 - a rename that replaces, and says so

    def abandon(self) -> None:
        if self._stream is not None:
            with suppress(ConnectorError):
                self.close()

    @property
    def _other(self) -> Path:
        return self._path.with_name(f"{self._path.name}.exact")

    def _switch_writer(self, stream: _Stream) -> None:
        exact = ExactWriter(self._other, self._columns, _STRIPE_BYTES, self._codec)
        self._writer.close()
        stream.close()
        stream.check()
        self._exact = exact
        if self._has_events:
            with reading(self._path) as file:
                for stripe in range(file.nstripes):
                    exact.write(pa.Table.from_batches([file.read_stripe(stripe)]))


class AcidFileWriter:
    """Writes the rows that a transaction inserts into one bucket."""

    def __init__(
        self,
        path: Path,
        columns: Sequence[ColumnMetadata],
        write_id: int,
        bucket: int,
        statement: int,
        codec: OrcCodec = OrcCodec.GZIP,
        root: Path | None = None,
    ) -> None:
        self.path = path
        self.rows = 0
        self._columns = columns
        self._write_id = write_id
        self._number = encode_bucket(bucket, statement)
        self._waiting: list[Page] = []
        self._file = _EventFile(path, columns, codec, root)

    def append(self, page: Page) -> None:
        arrays = [to_file(page.column(i), c.name, c.type) for i, c in enumerate(self._columns)]
        self._waiting.append(
            pa.RecordBatch.from_arrays(arrays, names=[c.name.lower() for c in self._columns])
        )
        if sum(waiting.num_rows for waiting in self._waiting) >= _CUT:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._file.close()
        key = f"{self._write_id},{self._number}"
        with disk_errors(self.path):
            complete_footer(
                self.path,
                self._file.unwritten_lengths,
                lambda last: _metadata((self.rows, 0, 0), [f"{key},{number}" for number in last]),
            )

    def abort(self) -> None:
        self._file.abandon()

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        rows = pa.StructArray.from_arrays(
            [column.combine_chunks() for column in table.columns], names=table.column_names
        )
        numbers = np.arange(self.rows, self.rows + table.num_rows)
        constant = np.full(table.num_rows, self._write_id, np.int64)
        keys = RowKeys(constant, np.full(table.num_rows, self._number, np.int64), numbers)
        self._file.write(_events(_INSERT, keys, constant, rows))
        self.rows += table.num_rows
        self._waiting.clear()


def write_deletes(
    path: Path,
    columns: Sequence[ColumnMetadata],
    write_id: int | npt.NDArray[np.int64],
    keys: RowKeys,
    codec: OrcCodec = OrcCodec.GZIP,
    root: Path | None = None,
) -> int:
    """Write the delete events of one bucket, sorted and without duplicates; return their number."""
    order = keys.order()
    locations, numbers = keys.locations[order], keys.numbers[order]
    first = np.ones(order.size, bool)
    first[1:] = (locations[1:] != locations[:-1]) | (numbers[1:] != numbers[:-1])
    current = np.broadcast_to(np.asarray(write_id, np.int64), order.shape)[order[first]]
    keys = keys.take(order[first])
    count = keys.numbers.size
    row_type = pa.struct([(column.name.lower(), file_type(column.type)) for column in columns])
    _write_events(
        path,
        _events(_DELETE, keys, current, pa.nulls(count, row_type)),
        columns,
        keys,
        (0, 0, count),
        codec,
        root,
    )
    return count


def write_rows(
    path: Path,
    columns: Sequence[ColumnMetadata],
    keys: RowKeys,
    data: pa.Table,
    codec: OrcCodec = OrcCodec.GZIP,
) -> None:
    """Write rows under their existing keys, sorted."""
    order = keys.order()
    data, keys = data.take(pa.array(order)).combine_chunks(), keys.take(order)
    arrays = [
        to_file(column, c.name, c.type) for column, c in zip(_columns(data), columns, strict=True)
    ]
    rows = pa.StructArray.from_arrays(arrays, names=[c.name.lower() for c in columns])
    _write_events(
        path,
        _events(_INSERT, keys, keys.write_ids, rows),
        columns,
        keys,
        (data.num_rows, 0, 0),
        codec,
    )


def _columns(data: pa.Table) -> list[pa.Array]:
    return [
        pa.concat_arrays(column.chunks) if column.num_chunks else column.combine_chunks()
        for column in data.columns
    ]


def _write_events(
    path: Path,
    events: pa.Table,
    columns: Sequence[ColumnMetadata],
    keys: RowKeys,
    stats: tuple[int, int, int],
    codec: OrcCodec,
    root: Path | None = None,
) -> None:
    file = _EventFile(path, columns, codec, root)
    file.write(events)
    file.close()
    with disk_errors(path):
        complete_footer(
            path,
            file.unwritten_lengths,
            lambda last: _metadata(
                stats, [f"{keys.write_ids[n]},{keys.buckets[n]},{keys.numbers[n]}" for n in last]
            ),
        )


def _metadata(stats: tuple[int, int, int], keys: Sequence[str]) -> dict[str, str]:
    return {
        "hive.acid.version": "2",
        "hive.acid.stats": ",".join(map(str, stats)),
        "hive.acid.key.index": "".join(f"{key};" for key in keys),
    }


def _events(
    operation: int, keys: RowKeys, current: npt.NDArray[np.int64], rows: pa.Array
) -> pa.Table:
    return pa.table(
        {
            "operation": np.full(len(keys.numbers), operation, np.int32),
            "originalTransaction": keys.write_ids,
            "bucket": keys.buckets.astype(np.int32),
            "rowId": keys.numbers,
            "currentTransaction": current,
            "row": rows,
        }
    )
