"""Reading splits in the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import ExecutionError, RowMergeError, error_text
from rowmerge_nb.engine.tasks.arrow import conform, is_of_kind, page_of
from rowmerge_nb.engine.tasks.call_frames import raised_by
from rowmerge_nb.trace.raised import as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.dynamic_filter import KeyFilter
    from rowmerge_nb.spi.handles import ColumnHandle, ConnectorSession, ConnectorTableHandle, ConnectorTransactionHandle
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.page_source import ConnectorPageSource, ConnectorPageSourceProvider

POSITION: Final = "$position"


@dataclass(frozen=True)
class ScanPass:
    """Reads the splits whose numbers arrive.

    Args:
        splits: all splits of the table.
        columns: the columns to read.
        schema: the channels to give, in Spark's types; the last one is the position, unique over all splits.
        keys: leaves out rows, if given; those that stay have the position that they have in the whole split.
    """

    provider: ConnectorPageSourceProvider
    transaction: ConnectorTransactionHandle
    session: ConnectorSession
    table: ConnectorTableHandle
    splits: Sequence[Any]
    columns: Sequence[ColumnHandle]
    schema: pa.Schema
    keys: KeyFilter | None = None

    @property
    def is_repeatable(self) -> bool:
        """It gives the same rows in the same order whenever it reads."""
        return all(getattr(split, "is_repeatable", False) for split in self.splits)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the splits."""
        yield from self.marked(number for batch in batches for number in batch.column(0).to_pylist())

    def marked(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the splits with these numbers; where no record can travel, an error is one of Spark's own."""
        try:
            yield from self.read(numbers)
        except RowMergeError as error:
            # Spark passes on no more than the text of an error; the mark in it is what the driver reads.
            raise RuntimeError(
                "\n".join([f"[[{error.code}]] {' '.join(error.message.split())}", *map(as_text, error.raised)])
            ) from error

    def read(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the splits with these numbers.

        Raises:
            ExecutionError: the connector cannot read them; with its code, and the call that failed.
        """
        for number in numbers:
            yield from self._read(number)

    def share(self, task: int, tasks: int) -> range:
        """Return the numbers of the splits that one of several tasks reads: neighbours, since those of one file are, and so are its deletes.

        Args:
            task: the task's number.
            tasks: how many there are.
        """
        count = len(self.splits)
        return range(count * task // tasks, count * (task + 1) // tasks)

    def pages(self) -> list[pa.RecordBatch]:
        """Return the pages of all splits, read where this is called."""
        return list(self.read(range(len(self.splits))))

    def rows(self) -> pa.Table:
        """Return the rows of all splits, read where this is called."""
        pages = self.pages()
        # One page at least: Spark cannot take a nested column, as a row id may be, that consists of no pieces at all.
        return pa.Table.from_batches(pages or [pa.RecordBatch.from_pylist([], schema=self.schema)], schema=self.schema)

    def _read(self, number: int) -> Iterator[pa.RecordBatch]:
        step, given = "create_page_source", 0
        source = None
        position = number << 40
        try:
            source = self.provider.create_page_source(
                self.transaction, self.session, self.splits[number], self.table, list(self.columns)
            )
            step = "get_next_page"
            pages = self._pages(source)
            matching = self.keys.pages(pages) if self.keys is not None else _numbered(pages)
            for page, positions in matching:
                given += 1
                self._check_types(page)
                arrays = [conform(page.column(i), self.schema.field(i).type) for i in range(len(self.columns))]
                arrays.append(pa.array(positions + position))
                yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        except Exception as error:
            code, text, hint = "GENERIC_INTERNAL_ERROR", error_text(error), None
            if isinstance(error, RowMergeError):
                code, text, hint = error.code, error.message, error.hint
            ours = ExecutionError(f"{step} failed: {text}", code=code, step=step, hint=hint)
            raised = raised_by(error, step, caller="split", number=number, call=given + 1, handle=self.table)
            ours.raised = (raised,) if raised is not None else ()
            raise ours from error
        finally:
            if source is not None:
                source.close()

    def _check_types(self, page: Page) -> None:
        """Check that channels have values of the kind that their handles say: what a cast would make of others is nobody's row id."""
        for index, column in enumerate(self.columns):
            given, wanted = page.column(index).type, column.type.arrow
            if not is_of_kind(given, wanted):
                raise ExecutionError(
                    f"channel {index} ('{column.name}') has values of type {given}, and its handle says {column.type}",
                    step="get_next_page",
                )

    def _pages(self, source: ConnectorPageSource) -> Iterator[Page]:
        while (page := source.get_next_page()) is not None:
            yield page_of(page, len(self.columns), type(source).__name__)


@dataclass(frozen=True)
class CellPass:
    """Yields pages that were read elsewhere, and arrive as Arrow streams beside their numbers."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the pages."""
        for batch in batches:
            for cell in batch.column(1):
                with pa.ipc.open_stream(cell.as_buffer()) as stream:
                    yield from stream


def cell_of(page: pa.RecordBatch) -> bytes:
    """Return a page as an Arrow stream.

    >>> [cell] = pa.array([cell_of(pa.record_batch({"a": [1, 2]}))])
    >>> batch = pa.record_batch({"id": [0], "cell": pa.array([cell.as_py()])})
    >>> [page.to_pydict() for page in CellPass()([batch])]
    [{'a': [1, 2]}]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, page.schema) as writer:
        writer.write_batch(page)
    return bytes(sink.getvalue())


def _numbered(pages: Iterable[Page]) -> Iterator[tuple[Page, npt.NDArray[np.int64]]]:
    """Yield pages with the positions of their rows, counted over all pages."""
    start = 0
    for page in pages:
        yield page, np.arange(start, start + page.num_rows)
        start += page.num_rows
