"""UUIDs as text and as bytes, compared with Python's."""

from __future__ import annotations

import random
import uuid

import pyarrow as pa
import pytest

from rowmerge_nb.spi.uuids import uuid_bytes, uuid_texts

NUMBERS = random.Random(3)
UUIDS = [uuid.UUID(int=NUMBERS.getrandbits(128)) for _ in range(200)]
TEXTS = pa.array(map(str, UUIDS))
BYTES = pa.array([value.bytes for value in UUIDS], pa.binary(16))


def test_texts_and_bytes_are_those_of_python() -> None:
    assert uuid_texts(BYTES).equals(TEXTS)
    assert uuid_bytes(TEXTS).equals(BYTES)


def test_capitals_are_read() -> None:
    assert uuid_bytes(pa.array(str(value).upper() for value in UUIDS)).equals(BYTES)


def test_slices_are_converted_separately() -> None:
    assert uuid_texts(BYTES[7:31]).equals(TEXTS[7:31])
    assert uuid_bytes(TEXTS[7:31]).equals(BYTES[7:31])


def test_null_stays_null_as_text_and_is_zero_as_bytes() -> None:
    values = pa.array([None, UUIDS[0].bytes, None], pa.binary(16))
    texts = uuid_texts(values)
    assert texts.to_pylist() == [None, str(UUIDS[0]), None]
    assert uuid_bytes(texts).to_pylist() == [bytes(16), UUIDS[0].bytes, bytes(16)]


def test_no_rows_are_converted_to_no_rows() -> None:
    assert len(uuid_texts(BYTES[:0])) == len(uuid_bytes(TEXTS[:0])) == 0
    assert uuid_texts(pa.nulls(2, pa.binary(16))).to_pylist() == [None, None]
    assert len(uuid_bytes(pa.array([], pa.string()))) == 0


@pytest.mark.parametrize("texts", [["12"], [str(UUIDS[0])[:-1], str(UUIDS[1]) + "0"]])
def test_a_text_of_another_length_is_not_a_uuid(texts: list[str]) -> None:
    with pytest.raises(ValueError, match="36 characters"):
        uuid_bytes(pa.array(texts))
