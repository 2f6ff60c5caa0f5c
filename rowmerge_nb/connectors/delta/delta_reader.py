"""Reading a split in a task: the requested columns of its row groups."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import parquet as pq

from rowmerge_nb.base.errors import ConnectorError, error_text
from rowmerge_nb.connectors.delta.delta_handles import (
    DataFile,
    DeltaRowIdColumn,
    DeltaSplit,
    DeltaTableHandle,
    delta_table,
)
from rowmerge_nb.connectors.shared.disk import require_texts
from rowmerge_nb.connectors.shared.file_positions import (
    alive_mask,
    empty_page,
    middle_of,
    row_ids,
)
from rowmerge_nb.spi import (
    ColumnHandle,
    ConnectorPageSourceProvider,
    ConnectorSession,
    ConnectorSplit,
    ConnectorTableHandle,
    ConnectorTransactionHandle,
    Page,
    PagesSource,
    own,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGE_ROWS: Final = 65_536


class DeltaPageSourceProvider(ConnectorPageSourceProvider):
    def create_page_source(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        split: ConnectorSplit,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> PagesSource:
        split = own(split, DeltaSplit)
        return PagesSource(
            read_file(
                delta_table(table_handle),
                split.file,
                columns,
                number=split.number,
                within=(split.start, split.end),
            )
        )


def read_file(
    table: DeltaTableHandle,
    file: DataFile,
    columns: Sequence[ColumnHandle],
    *,
    number: int = -1,
    within: tuple[int, int] | None = None,
) -> Iterator[Page]:
    """Yield pages of a file.

    Args:
        within: the range of bytes in which the middle of a row group must be; None for all.
    """
    path = Path(table.location) / unquote(file.path)
    with _reading(table, path):
        source = pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
        file_columns = set(source.schema_arrow.names) - set(table.partition_columns)
        names = [
            column.name
            for column in columns
            if not isinstance(column, DeltaRowIdColumn) and column.name in file_columns
        ]
        first = 0
        for index in range(source.metadata.num_row_groups):
            group = source.metadata.row_group(index)
            start, first = first, first + group.num_rows
            if within is not None and not within[0] <= middle_of(group) < within[1]:
                continue
            for batch in _batches(source, index, names, group.num_rows):
                rows = batch if isinstance(batch, int) else batch.num_rows
                arrays = [
                    row_ids(number, start, rows)
                    if isinstance(column, DeltaRowIdColumn)
                    else _values(column, batch, file, rows)
                    for column in columns
                ]
                page = _page(arrays, [column.name for column in columns], rows)
                alive = alive_mask(file.deleted, start, rows) if file.deleted is not None else None
                yield page if alive is None else page.filter(alive)
                start += rows


def _batches(
    source: pq.ParquetFile, group: int, names: Sequence[str], rows: int
) -> Iterator[Page | int]:
    if names:
        yield from source.iter_batches(PAGE_ROWS, row_groups=[group], columns=list(names))
        return
    for start in range(0, rows, PAGE_ROWS):
        yield min(PAGE_ROWS, rows - start)


def _values(column: ColumnHandle, batch: Page | int, file: DataFile, rows: int) -> pa.Array:
    arrow_type = column.type.arrow
    if column.name in file.partition:
        text = pa.array([file.partition[column.name]], pa.string())
        return pa.repeat(text.cast(arrow_type)[0], rows)
    if isinstance(batch, int) or column.name not in batch.schema.names:
        # The file is older than the column.
        return pa.nulls(rows, arrow_type)
    values = require_texts(batch.column(column.name))
    return values if values.type == arrow_type else values.cast(arrow_type)


def _page(arrays: list[pa.Array], names: list[str], rows: int) -> Page:
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, names=names)
    return empty_page(rows)


@contextmanager
def _reading(table: DeltaTableHandle, path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise ConnectorError(
            f"File '{path}' of Delta table '{table.name}' cannot be read: {error_text(error)}",
            code="DELTA_LAKE_BAD_DATA",
            hint="Restore the file, or the table to a version without it.",
        ) from error
