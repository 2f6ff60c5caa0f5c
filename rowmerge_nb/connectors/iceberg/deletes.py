"""Deleted rows of a data file: position delete files, deletion vectors and equality delete files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.connectors.iceberg.deletion_vectors import blob_positions, vector_positions
from rowmerge_nb.connectors.iceberg.files import open_file, reading
from rowmerge_nb.connectors.iceberg.projection import find_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.connectors.iceberg.iceberg_handles import (
        DeleteFile,
        IcebergField,
        IcebergSplit,
        IcebergTableHandle,
    )

    Positions = npt.NDArray[np.int64]

_BATCH: Final = 1 << 20


def deleted_positions(split: IcebergSplit, table: IcebergTableHandle, rows: int) -> Positions:
    """Return the deleted positions of a split's file, ascending and distinct."""
    parts = [np.zeros(0, np.int64)]
    for delete in split.deletes:
        if delete.content == "equality":
            continue
        with reading(table.name, delete.path), open_file(table.io, delete.path) as file:
            if delete.vector is not None:
                offset, size = delete.vector
                file.seek(offset)
                parts.append(blob_positions(file.read(size), delete.path, rows))
            elif delete.content == "vector":
                parts.append(vector_positions(file.read(), split.path, delete.path, rows))
            else:
                parts += _positions(file, delete, split.path, rows)
    return ascending(np.concatenate(parts))


def _positions(file: object, delete: DeleteFile, path: str, rows: int) -> Iterator[Positions]:
    """Yield positions by batch, since a tiny file can repeat one position without end."""
    names = ["pos"] if delete.whole else ["file_path", "pos"]
    batches = pq.ParquetFile(file, read_dictionary=names[:-1]).iter_batches(_BATCH, columns=names)
    for batch in batches:
        matching = (
            batch
            if delete.whole
            else batch.filter(pc.equal(batch.column("file_path").cast(pa.string()), path))
        )
        positions: Positions = ascending(
            matching.column("pos").to_numpy(zero_copy_only=False).astype(np.int64)
        )
        yield positions[positions < rows]


class EqualityDeletes:
    """Deletes of rows whose columns equal those of a row in a delete file; NULL equals NULL."""

    def __init__(self, fields: Sequence[IcebergField], rows: Sequence[pa.Array]) -> None:
        self.fields = tuple(fields)
        self._rows = rows

    def mask(self, columns: Sequence[pa.Array]) -> pa.Array:
        count = len(self._rows[0])
        codes = np.zeros(count + len(columns[0]), np.int64)
        for deleted, values in zip(self._rows, columns, strict=True):
            # Both sides are numbered together, so that equal numbers mean equal values.
            encoded = pa.concat_arrays([deleted, values]).dictionary_encode(null_encoding="encode")
            numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            _, codes = np.unique(
                codes * (len(encoded.dictionary) + 1) + numbers, return_inverse=True
            )
        return pa.array(~np.isin(codes[count:], codes[:count]))


def equality_deletes(split: IcebergSplit, table: IcebergTableHandle) -> list[EqualityDeletes]:
    return [_equality(delete, table) for delete in split.deletes if delete.content == "equality"]


def _equality(delete: DeleteFile, table: IcebergTableHandle) -> EqualityDeletes:
    with reading(table.name, delete.path), open_file(table.io, delete.path) as source:
        file = pq.ParquetFile(source)
        fields = find_fields(
            delete.fields,
            file.schema_arrow,
            table.properties.get("schema.name-mapping.default"),
            delete.path,
        )
        rows = file.read(columns=[f.name for f in fields if f.name is not None])
        arrays = [
            f.values(
                _whole(rows.column(f.name)) if f.name is not None else None, file.metadata.num_rows
            )
            for f in fields
        ]
    return EqualityDeletes(delete.fields, arrays)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    chunks: Iterable[pa.Array] = column.chunks
    return pa.concat_arrays(chunks) if column.num_chunks else pa.nulls(0, column.type)
