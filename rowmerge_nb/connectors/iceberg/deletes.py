"""Deleted rows of a data file: position delete files, deletion vectors and equality delete files."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet as pq

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.connectors.iceberg.files import open_file, reading
from rowmerge_nb.connectors.iceberg.projection import find_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.connectors.iceberg.handles import (
        DeleteFile,
        Field,
        IcebergSplit,
        IcebergTableHandle,
    )

    Positions = npt.NDArray[np.int64]

_PUFFIN: Final = b"PFA1"
_BATCH: Final = 1 << 20
_VECTOR: Final = bytes.fromhex("d1d33964")


def deleted_positions(split: IcebergSplit, table: IcebergTableHandle, rows: int) -> Positions:
    """Return the deleted positions of a split's file, ascending and distinct."""
    parts = [np.zeros(0, np.int64)]
    for delete in split.deletes:
        if delete.content == "equality":
            continue
        with reading(table.name, delete.path), open_file(table.io, delete.path) as file:
            if delete.content == "vector":
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


def vector_positions(puffin: bytes, path: str, location: str, rows: int = 1 << 62) -> Positions:
    """Return a data file's deletion vector in a Puffin file, or raise ICEBERG_BAD_DATA or
    NOT_SUPPORTED.
    """
    from pyroaring import BitMap64

    if puffin[:4] != _PUFFIN or puffin[-4:] != _PUFFIN:
        raise ConnectorError(
            f"File '{location}' should hold deletion vectors, and is not a Puffin file",
            code="ICEBERG_BAD_DATA",
            hint="Restore the file, or roll the table back.",
        )
    if puffin[-8] & 1:
        raise ConnectorError(
            f"The footer of file '{location}' is compressed, which is not supported",
            hint="Rewrite the table's deletion vectors with another engine.",
        )
    size = int.from_bytes(puffin[-12:-8], "little")
    parts = [np.zeros(0, np.int64)]
    for blob in json.loads(puffin[-12 - size : -12])["blobs"]:
        if (
            blob["type"] != "deletion-vector-v1"
            or blob["properties"].get("referenced-data-file") != path
        ):
            continue
        # Length, magic, the bitmap in Roaring's portable form, checksum.
        start, end = blob["offset"], blob["offset"] + blob["length"]
        if puffin[start + 4 : start + 8] != _VECTOR:
            raise ConnectorError(
                f"File '{location}' holds a deletion vector that does not begin as one should",
                code="ICEBERG_BAD_DATA",
                hint="Restore the file, or roll the table back.",
            )
        bitmap = BitMap64.deserialize(puffin[start + 8 : end - 4])
        # A run of any length takes a few bytes.
        count = bitmap.rank(rows - 1) if rows else 0
        parts.append(np.fromiter(islice(bitmap, count), np.int64, count))
    return np.concatenate(parts)


class EqualityDeletes:
    """Deletes of rows whose columns equal those of a row in a delete file; NULL equals NULL."""

    def __init__(self, fields: Sequence[Field], rows: Sequence[pa.Array]) -> None:
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
