"""Reading of splits in tasks."""

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
    from rowmerge_nb.spi.handles import (
        ColumnHandle,
        ConnectorSession,
        ConnectorTableHandle,
        ConnectorTransactionHandle,
    )
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.page_source import ConnectorPageSource, ConnectorPageSourceProvider

POSITION: Final = "$position"


@dataclass(frozen=True)
class ScanPass:
    """Reads the splits whose numbers arrive.

    Args:
        schema: the output channels in Spark's types; the last is the position, unique over all
            splits.
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
        return all(getattr(split, "is_repeatable", False) for split in self.splits)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self.marked(
            number for batch in batches for number in batch.column(0).to_pylist()
        )

    def marked(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of numbered splits; errors are text for Spark, for stages without records."""
        try:
            yield from self.read(numbers)
        except RowMergeError as error:
            # Spark preserves only the text of an error; the driver parses the mark in it.
            raise RuntimeError(
                "\n".join(
                    [
                        f"[[{error.code}]] {' '.join(error.message.split())}",
                        *map(as_text, error.raised),
                    ]
                )
            ) from error

    def read(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        for number in numbers:
            yield from self._read(number)

    def share(self, task: int, tasks: int) -> range:
        """Return one task's splits: a contiguous range, because neighbors share files and deletes."""
        count = len(self.splits)
        return range(count * task // tasks, count * (task + 1) // tasks)

    def pages(self) -> list[pa.RecordBatch]:
        return list(self.read(range(len(self.splits))))

    def rows(self) -> pa.Table:
        pages = self.pages()
        # Spark cannot read a nested column (possibly the row id) without chunks, so there is at
        # least one page.
        return pa.Table.from_batches(
            pages or [pa.RecordBatch.from_pylist([], schema=self.schema)], schema=self.schema
        )

    def _read(self, number: int) -> Iterator[pa.RecordBatch]:
        step, page_count = "create_page_source", 0
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
                page_count += 1
                self._check_types(page)
                arrays = [
                    conform(page.column(i), self.schema.field(i).type)
                    for i in range(len(self.columns))
                ]
                arrays.append(pa.array(positions + position))
                yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        except Exception as error:
            code, text, hint = "GENERIC_INTERNAL_ERROR", error_text(error), None
            if isinstance(error, RowMergeError):
                code, text, hint = error.code, error.message, error.hint
            ours = ExecutionError(f"{step} failed: {text}", code=code, step=step, hint=hint)
            raised = raised_by(
                error, step, caller="split", number=number, call=page_count + 1, handle=self.table
            )
            ours.raised = (raised,) if raised is not None else ()
            raise ours from error
        finally:
            if source is not None:
                source.close()

    def _check_types(self, page: Page) -> None:
        """Check that channels have the types of their handles: a cast could corrupt row ids."""
        for index, column in enumerate(self.columns):
            actual, expected = page.column(index).type, column.type.arrow
            if not is_of_kind(actual, expected):
                raise ExecutionError(
                    f"channel {index} ('{column.name}') has values of type {actual},"
                    f" but its handle has {column.type}",
                    step="get_next_page",
                )

    def _pages(self, source: ConnectorPageSource) -> Iterator[Page]:
        while (page := source.get_next_page()) is not None:
            yield page_of(page, len(self.columns), type(source).__name__)


@dataclass(frozen=True)
class CellPass:
    """Yields pages that were read elsewhere, and arrive as numbered Arrow streams."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for cell in batch.column(1):
                with pa.ipc.open_stream(cell.as_buffer()) as stream:
                    yield from stream


def cell_of(page: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, page.schema) as writer:
        writer.write_batch(page)
    return bytes(sink.getvalue())


def _numbered(pages: Iterable[Page]) -> Iterator[tuple[Page, npt.NDArray[np.int64]]]:
    start = 0
    for page in pages:
        yield page, np.arange(start, start + page.num_rows)
        start += page.num_rows
