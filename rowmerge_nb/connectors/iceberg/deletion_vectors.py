"""Deletion vectors: the deleted positions of one data file, as a blob of a Puffin file."""

from __future__ import annotations

import json
import zlib
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rowmerge_nb.base.errors import ConnectorError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Positions = npt.NDArray[np.int64]

_PUFFIN: Final = b"PFA1"
_BLOB: Final = "deletion-vector-v1"
_VECTOR: Final = bytes.fromhex("d1d33964")
_RESTORE: Final = "Restore the file, or roll the table back."


def bitmap_of(positions: Positions) -> bytes:
    """Return positions in the portable form of 64-bit roaring bitmaps."""
    from array import array

    from pyroaring import BitMap64

    numbers = array("Q", np.ascontiguousarray(positions, np.uint64).tobytes())
    bitmap = BitMap64(numbers)
    bitmap.run_optimize()
    serialized: bytes = bitmap.serialize()
    return serialized


def positions_of(bitmap: bytes, rows: int = 1 << 62) -> Positions:
    from pyroaring import BitMap64

    positions = BitMap64.deserialize(bitmap)
    # A run of any length takes a few bytes.
    count = positions.rank(rows - 1) if rows else 0
    if count == len(positions):
        return np.frombuffer(positions.to_array(), np.int64)
    return np.fromiter(islice(positions, count), np.int64, count)


def puffin_of(vectors: Mapping[str, Positions]) -> tuple[bytes, dict[str, tuple[int, int]]]:
    """Return a Puffin file of the deletion vectors of data files, and the offset and size of each."""
    blobs, ranges, parts, offset = [], {}, [_PUFFIN], len(_PUFFIN)
    for path, positions in vectors.items():
        content = _VECTOR + bitmap_of(positions)
        blob = b"".join(
            (
                len(content).to_bytes(4, "big"),
                content,
                zlib.crc32(content).to_bytes(4, "big"),
            )
        )
        parts.append(blob)
        ranges[path] = offset, len(blob)
        blobs.append(_blob_record(path, positions, *ranges[path]))
        offset += len(blob)
    properties = {"created-by": "rowmerge-nb"}
    footer = json.dumps({"blobs": blobs, "properties": properties}).encode()
    parts += [_PUFFIN, footer, len(footer).to_bytes(4, "little"), bytes(4), _PUFFIN]
    return b"".join(parts), ranges


def _blob_record(path: str, positions: Positions, offset: int, size: int) -> dict[str, Any]:
    # The snapshot and its sequence number are not known before the commit: -1, as of other writers.
    return {
        "type": _BLOB,
        "fields": [2_147_483_645],
        "snapshot-id": -1,
        "sequence-number": -1,
        "offset": offset,
        "length": size,
        "properties": {"referenced-data-file": path, "cardinality": str(len(positions))},
    }


def vector_positions(puffin: bytes, path: str, location: str, rows: int = 1 << 62) -> Positions:
    """Return a data file's deletion vector in a Puffin file, or raise ICEBERG_BAD_DATA or
    NOT_SUPPORTED.
    """
    if puffin[:4] != _PUFFIN or puffin[-4:] != _PUFFIN:
        raise ConnectorError(
            f"File '{location}' should hold deletion vectors, and is not a Puffin file",
            code="ICEBERG_BAD_DATA",
            hint=_RESTORE,
        )
    if puffin[-8] & 1:
        raise ConnectorError(
            f"The footer of file '{location}' is compressed, which is not supported",
            hint="Rewrite the table's deletion vectors with another engine.",
        )
    size = int.from_bytes(puffin[-12:-8], "little")
    parts = [np.zeros(0, np.int64)]
    for blob in json.loads(puffin[-12 - size : -12])["blobs"]:
        if blob["type"] == _BLOB and blob["properties"].get("referenced-data-file") == path:
            content = puffin[blob["offset"] : blob["offset"] + blob["length"]]
            parts.append(blob_positions(content, location, rows))
    return np.concatenate(parts)


def blob_positions(blob: bytes, location: str, rows: int) -> Positions:
    """Return the positions of one blob, or raise ICEBERG_BAD_DATA."""
    # Length, magic, the bitmap in Roaring's portable form, checksum.
    content = blob[4:-4]
    if content[:4] != _VECTOR:
        raise ConnectorError(
            f"File '{location}' holds a deletion vector that does not begin as one should",
            code="ICEBERG_BAD_DATA",
            hint=_RESTORE,
        )
    if zlib.crc32(content) != int.from_bytes(blob[-4:], "big"):
        raise ConnectorError(
            f"File '{location}' holds a deletion vector whose checksum does not match",
            code="ICEBERG_BAD_DATA",
            hint=_RESTORE,
        )
    return positions_of(content[4:], rows)
