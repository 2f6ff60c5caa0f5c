"""Reading a split in a task: the requested columns of its row groups, without deleted rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from rowmerge_nb.connectors.iceberg.deletes import deleted_positions, equality_deletes
from rowmerge_nb.connectors.iceberg.files import modified, open_file, reading
from rowmerge_nb.connectors.iceberg.iceberg_handles import (
    LINEAGE,
    ROW_ID,
    SOURCE_ROW_ID_TYPE,
    IcebergColumn,
    IcebergHiddenColumn,
    IcebergRowIdColumn,
    IcebergSplit,
    iceberg_table,
)
from rowmerge_nb.connectors.iceberg.projection import FileField, constant, find_fields
from rowmerge_nb.connectors.iceberg.pruning import may_matter
from rowmerge_nb.connectors.iceberg.servers import local_path
from rowmerge_nb.connectors.shared.disk import require_texts
from rowmerge_nb.connectors.shared.encoding import repeating_texts
from rowmerge_nb.connectors.shared.file_positions import (
    alive_mask,
    empty_page,
    middle_of,
    row_ids,
)
from rowmerge_nb.connectors.shared.late import has_match, is_selective
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
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergField, IcebergTableHandle

PAGE_ROWS: Final = 65_536


class IcebergPageSourceProvider(ConnectorPageSourceProvider):
    def create_page_source(
        self,
        transaction_handle: ConnectorTransactionHandle,
        session: ConnectorSession,
        split: ConnectorSplit,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> PagesSource:
        split = own(split, IcebergSplit)
        return PagesSource(read_split(split, iceberg_table(table_handle), columns))


def read_split(
    split: IcebergSplit, table: IcebergTableHandle, columns: Sequence[ColumnHandle]
) -> Iterator[Page]:
    equality = equality_deletes(split, table)
    compared = {field.id: field for deletes in equality for field in deletes.fields}
    with reading(table.name, split.path), open_file(table.io, split.path) as source:
        # Remote row groups are fetched in few large pieces.
        is_remote = local_path(split.path) is None
        file = pq.ParquetFile(source, pre_buffer=is_remote)
        deleted = deleted_positions(split, table, file.metadata.num_rows)
        fields = [column.field for column in columns if isinstance(column, IcebergColumn)]
        if any(column.identifies_new_rows for column in columns) and ROW_ID not in fields:
            fields.append(ROW_ID)
        fields += [field for field in compared.values() if field.id not in {f.id for f in fields}]
        decisive = [field for field in table.fields if field.id in split.domains]
        mapping = table.properties.get("schema.name-mapping.default")
        file_fields = {
            f.field.id: f for f in find_fields(fields, file.schema_arrow, mapping, split.path)
        }
        dictionaries = repeating_texts(file, {f.name for f in file_fields.values()})
        if dictionaries:
            file = pq.ParquetFile(
                source, metadata=file.metadata, read_dictionary=dictionaries, pre_buffer=is_remote
            )
        deciding = {
            f.field.id: f for f in find_fields(decisive, file.schema_arrow, mapping, split.path)
        }
        channels = [_channel(column, file_fields, split, table) for column in columns]
        names = [column.name for column in columns]
        for first, rows, batch in _batches(
            file, split, file_fields, deciding, deleted_all=_is_all(deleted, file)
        ):
            arrays = [channel(batch, first, rows) for channel in channels]
            page = pa.RecordBatch.from_arrays(arrays, names=names) if arrays else empty_page(rows)
            alive = alive_mask(deleted, first, rows)
            for deletes in equality:
                values = [
                    _values(file_fields[field.id], split)(batch, first, rows)
                    for field in deletes.fields
                ]
                mask = deletes.mask(values)
                alive = mask if alive is None else pc.and_(alive, mask)
            page = page if alive is None else page.filter(alive)
            if page.num_rows:
                yield page


def _batches(
    file: pq.ParquetFile,
    split: IcebergSplit,
    file_fields: dict[int, FileField],
    deciding: dict[int, FileField],
    *,
    deleted_all: bool,
) -> Iterator[tuple[int, int, Any]]:
    """Yield batches of the split's row groups: position of the first row, number of rows, and the
    columns.
    """
    if deleted_all:
        return
    names = [f.name for f in file_fields.values() if f.name is not None]
    first = 0
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        here, first = first, first + group.num_rows
        if not split.start <= middle_of(group) < split.end or not may_matter(
            group, deciding, split.domains
        ):
            continue
        if not _has_rows(file, number, deciding, split):
            continue
        if not names:
            for start in range(0, group.num_rows, PAGE_ROWS):
                yield here + start, min(PAGE_ROWS, group.num_rows - start), None
            continue
        for batch in file.iter_batches(PAGE_ROWS, row_groups=[number], columns=names):
            yield here, batch.num_rows, batch
            here += batch.num_rows


def _has_rows(
    file: pq.ParquetFile, group: int, deciding: dict[int, FileField], split: IcebergSplit
) -> bool:
    few = [
        f
        for f in deciding.values()
        if f.name is not None and is_selective(split.domains[f.field.id], f.field.type)
    ]
    if not few:
        return True
    channels = [(_values(field, split), split.domains[field.field.id]) for field in few]
    batches = file.iter_batches(
        PAGE_ROWS, row_groups=[group], columns=[field.name for field in few]
    )
    return any(
        has_match((values(batch, 0, batch.num_rows), domain) for values, domain in channels)
        for batch in batches
    )


def _is_all(deleted: npt.NDArray[np.int64], file: pq.ParquetFile) -> bool:
    return bool(len(deleted)) and len(deleted) == file.metadata.num_rows


def _hidden_value(column: str, split: IcebergSplit, table: IcebergTableHandle) -> Any:
    match column:
        case "$path":
            return split.path
        case "$partition":
            return split.partition
        case _:
            return modified(table.io, split.path)


def _channel(
    column: ColumnHandle,
    file_fields: dict[int, FileField],
    split: IcebergSplit,
    table: IcebergTableHandle,
) -> Callable[[Any, int, int], pa.Array]:
    if isinstance(column, IcebergRowIdColumn):
        return _row_id(file_fields[ROW_ID.id] if column.identifies_new_rows else None, split)
    if isinstance(column, IcebergHiddenColumn):
        value = pa.scalar(_hidden_value(column.name, split, table), column.type.arrow)
        return lambda _batch, _first, rows: pa.repeat(value, rows)
    if not isinstance(column, IcebergColumn):
        raise TypeError(f"{column!r} is not a column of this connector")
    return _values(file_fields[column.field.id], split)


def _row_id(source: FileField | None, split: IcebergSplit) -> Callable[[Any, int, int], pa.Array]:
    if source is None:
        return lambda _batch, first, rows: row_ids(split.file, first, rows)
    source_ids = _lineage(source, split)

    def values(batch: Any, first: int, rows: int) -> pa.Array:
        parts = [*row_ids(split.file, first, rows).flatten(), source_ids(batch, first, rows)]
        return pa.StructArray.from_arrays(parts, fields=list(SOURCE_ROW_ID_TYPE.arrow))

    return values


def _lineage(file_field: FileField, split: IcebergSplit) -> Callable[[Any, int, int], pa.Array]:
    """Return the values of a column of row lineage: those of the file, else those of its entry."""

    def values(batch: Any, first: int, rows: int) -> pa.Array:
        if split.first_row_id is None:
            implied = pa.nulls(rows, pa.int64())
        elif file_field.field == ROW_ID:
            implied = pa.array(np.arange(first, first + rows) + split.first_row_id)
        else:
            implied = pa.repeat(pa.scalar(split.sequence_number, pa.int64()), rows)
        if file_field.name is None:
            return implied
        return pc.coalesce(batch.column(file_field.name), implied)

    return values


def _values(file_field: FileField, split: IcebergSplit) -> Callable[[Any, int, int], pa.Array]:
    field: IcebergField = file_field.field
    if field in LINEAGE:
        return _lineage(file_field, split)
    if file_field.name is None:
        value = split.constants.get(field.id, field.default)
        return lambda _batch, _first, rows: constant(field, value, rows)
    name = file_field.name
    return lambda batch, _first, rows: file_field.values(require_texts(batch.column(name)), rows)
