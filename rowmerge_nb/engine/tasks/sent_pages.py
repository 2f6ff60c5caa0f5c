"""Pages between stages of tasks: in files if both stages can read them, otherwise in Spark's
rows.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.temporary_space import needs_temporary_space
from rowmerge_nb.engine.tasks.outcome import RECORD
from rowmerge_nb.engine.tasks.scan import CellPass, cell_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from rowmerge_nb.spi.page import Page

SENT: Final = pa.schema(
    [("writer", pa.int32()), ("$page", pa.binary()), pa.field(RECORD, pa.binary())]
)
"""A writer and the cell of a page, or the record of a task."""


def sent(writer: int, cell: bytes | None, report: bytes | None = None) -> pa.RecordBatch:
    arrays = [
        pa.array([value], field.type)
        for value, field in zip((writer, cell, report), SENT, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SENT)


class SentPages:
    """Sends the pages of one attempt of a task.

    Files are faster than Spark's rows, which are copied and compressed several times.

    Args:
        folder: a folder that all tasks can access; None to send pages as bytes.
    """

    def __init__(self, folder: str | None, schema: pa.Schema) -> None:
        self._schema = schema
        self._path = None if folder is None else f"{folder}/{uuid.uuid4().hex}.arrow"
        self._open = ExitStack()
        self._writer: pa.ipc.RecordBatchFileWriter | None = None
        self._count = 0

    def __enter__(self) -> SentPages:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cell(self, page: Page) -> bytes:
        if self._path is None:
            return cell_of(page)
        with needs_temporary_space():
            if self._writer is None:
                file = self._open.enter_context(pa.OSFile(self._path, "wb"))
                self._writer = self._open.enter_context(pa.ipc.new_file(file, self._schema))
            self._writer.write_batch(page)
        self._count += 1
        return f"{self._count - 1} {self._path}".encode()

    def to_writers(
        self, page: Page, places: npt.NDArray[np.int64], writers: int
    ) -> Iterator[pa.RecordBatch]:
        for writer, rows in parts_of(page, places, writers):
            yield sent(writer, self.cell(rows))

    def close(self) -> None:
        """Complete the file; further calls do nothing."""
        with needs_temporary_space():
            self._open.close()


def parts_of(
    page: Page, numbers: npt.NDArray[np.integer[Any]], count: int
) -> Iterator[tuple[int, Page]]:
    """Yield each of `numbers` with its rows, in their order; all numbers are less than `count`."""
    counts = np.bincount(numbers, minlength=count)
    # A stable sort of 16-bit numbers is a radix sort.
    order = np.argsort(numbers.astype(np.uint16) if count < 1 << 16 else numbers, kind="stable")
    rows = page if counts.max() == page.num_rows else page.take(pa.array(order))
    ends = np.cumsum(counts)
    for number in np.flatnonzero(counts).tolist():
        yield number, rows.slice(int(ends[number] - counts[number]), int(counts[number]))


def received_pages(batches: Iterable[pa.RecordBatch], *, in_files: bool) -> Iterator[Page]:
    """Yield the pages of cells in the second channel; with `in_files`, the cells refer to files."""
    if not in_files:
        yield from CellPass()(batches)
        return
    files: dict[str, pa.ipc.RecordBatchFileReader] = {}
    with ExitStack() as stack:
        for batch in batches:
            for cell in batch.column(1).to_pylist():
                number, _, path = cell.decode().partition(" ")
                if path not in files:
                    mapped = stack.enter_context(pa.memory_map(path))
                    files[path] = stack.enter_context(pa.ipc.open_file(mapped))
                yield files[path].get_batch(int(number))


def without_reports(
    batches: Iterable[pa.RecordBatch], reports: list[bytes]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        records = batch.column(RECORD)
        reports.extend(records.drop_null().to_pylist())
        yield batch.filter(records.is_null())
