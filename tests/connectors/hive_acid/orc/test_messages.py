"""Chunks of a file's tail that would decompress without end are refused."""

from __future__ import annotations

import zlib

import pyarrow as pa
import pytest

from rowmerge_nb.connectors.hive_acid.orc.messages import decompressed, varint

ZLIB, SNAPPY, ZSTD = 1, 2, 5


def packed(plain: bytes, codec: int) -> bytes:
    """Return one packed chunk with its header."""
    if codec == ZLIB:
        packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        chunk = packing.compress(plain) + packing.flush()
    else:
        chunk = bytes(pa.compress(plain, codec="snappy" if codec == SNAPPY else "zstd"))
    return (len(chunk) << 1).to_bytes(3, "little") + chunk


@pytest.mark.parametrize("codec", [ZLIB, SNAPPY, ZSTD])
def test_chunks_of_the_largest_size_are_unfolded(codec: int) -> None:
    plain = bytes(1 << 23)
    assert decompressed(packed(plain, codec) * 2, codec) == plain * 2


@pytest.mark.parametrize("codec", [ZLIB, SNAPPY, ZSTD])
def test_a_chunk_that_holds_more_than_a_chunk_can_is_refused(codec: int) -> None:
    with pytest.raises(ValueError, match="bytes"):
        decompressed(packed(bytes((1 << 23) + 1), codec), codec)


def test_a_chunk_that_claims_gigabytes_is_refused_before_memory_is_allocated() -> None:
    chunk = varint(1 << 31) + b"\0"
    with pytest.raises(ValueError, match="a chunk of 6 bytes declares a size of 2147483648"):
        decompressed((len(chunk) << 1).to_bytes(3, "little") + chunk, SNAPPY)


def test_many_chunks_that_unfold_to_more_than_a_tail_has_are_refused() -> None:
    with pytest.raises(ValueError, match="decompresses to more than 268435456 bytes"):
        decompressed(packed(bytes(1 << 23), ZSTD) * 33, ZSTD)


def test_a_chunk_that_is_cut_short_is_refused() -> None:
    chunk = packed(b"a" * 1000, ZLIB)[3:-2]
    with pytest.raises(ValueError, match="is truncated"):
        decompressed((len(chunk) << 1).to_bytes(3, "little") + chunk, ZLIB)
