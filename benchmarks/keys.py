"""Common kinds of merge keys: how each is derived from whole numbers, and the ON condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]
    """The numbers of rows, of which their keys are made."""

Side = Literal["target", "source"]

SCRAMBLE: Final = 6_180_339_887
"""Multiplication by it, modulo a power of ten, keeps numbers distinct, since it has no factor
2 or 5.
"""


@dataclass(frozen=True)
class Keys:
    """A kind of keys.

    Args:
        name: the name in `--keys`.
        types: the key columns and their Arrow types.
        on: the condition of the MERGE, which all engines read.
        make: computes the key columns from numbers, for one side of the join.
        arrange: sorts the numbers of the target's rows into the order of the rows.
    """

    name: str
    types: Mapping[str, pa.DataType]
    on: str
    make: Callable[[Numbers, Side], list[pa.Array]]
    arrange: Callable[[Numbers], Numbers] = lambda numbers: numbers

    def fields(self) -> list[pa.Field]:
        """Return the fields of the key columns."""
        return [pa.field(name, kind) for name, kind in self.types.items()]


def _hashes(numbers: Numbers) -> npt.NDArray[np.uint64]:
    """Scramble 64 bits so that numbers stay distinct (the end of the generator
    SplitMix64).
    """
    word = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


def _scrambled(numbers: Numbers, digits: int = 12) -> Numbers:
    scrambled: Numbers = numbers * SCRAMBLE % 10**digits
    return scrambled


def _dense(numbers: Numbers, _: Side) -> list[pa.Array]:
    return [pa.array(numbers)]


def _sparse(numbers: Numbers, _: Side) -> list[pa.Array]:
    return [pa.array(_hashes(numbers).view(np.int64))]


def _digits(numbers: Numbers, length: int = 12) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), length, "0")


def _varchar(numbers: Numbers, _: Side) -> list[pa.Array]:
    return [_digits(_scrambled(numbers))]


def _uuid_bytes(numbers: Numbers) -> npt.NDArray[np.uint8]:
    words = np.stack([_hashes(numbers), _hashes(numbers + 2**40)], axis=1)
    return words.view(np.uint8).reshape(len(numbers), 16)


def _uuid(numbers: Numbers, _: Side) -> list[pa.Array]:
    storage = pa.Array.from_buffers(
        pa.binary(16), len(numbers), [None, pa.py_buffer(_uuid_bytes(numbers))]
    )
    return [pa.ExtensionArray.from_storage(pa.uuid(), storage)]


def _uuid_text(numbers: Numbers, _: Side) -> list[pa.Array]:
    pairs = np.array([list(f"{byte:02x}".encode()) for byte in range(256)], np.uint8)
    digits = pairs[_uuid_bytes(numbers)].reshape(len(numbers), 32)
    text = np.full((len(numbers), 36), ord("-"), np.uint8)
    text[:, [*range(8), *range(9, 13), *range(14, 18), *range(19, 23), *range(24, 36)]] = digits
    ends = np.arange(len(numbers) + 1, dtype=np.int32) * 36
    return [
        pa.Array.from_buffers(
            pa.string(), len(numbers), [None, pa.py_buffer(ends), pa.py_buffer(text)]
        )
    ]


def _tenant_and_code(numbers: Numbers, _: Side) -> list[pa.Array]:
    return [pa.array(numbers % 1000), _digits(_scrambled(numbers // 1000, 9), 9)]


def _decimal(numbers: Numbers, _: Side) -> list[pa.Array]:
    words = np.stack([_scrambled(numbers), np.zeros(len(numbers), np.int64)], axis=1)
    return [
        pa.Array.from_buffers(
            pa.decimal128(20, 4), len(numbers), [None, pa.py_buffer(np.ascontiguousarray(words))]
        )
    ]


def _timestamp(numbers: Numbers, _: Side) -> list[pa.Array]:
    return [pa.array(1_700_000_000_000_000 + _scrambled(numbers), pa.timestamp("us"))]


def _letters(numbers: Numbers, side: Side) -> list[pa.Array]:
    begin = "Item-" if side == "target" else "ITEM-"
    return [pc.binary_join_element_wise(begin, _digits(_scrambled(numbers)), "")]


def _day(numbers: Numbers, side: Side) -> list[pa.Array]:
    return [pa.array(numbers), pa.array(numbers % 365 + (1 if side == "source" else 0))]


def _shuffled(numbers: Numbers) -> Numbers:
    return np.random.default_rng(5).permutation(numbers)


def _skewed(numbers: Numbers) -> Numbers:
    # A few keys have most of the rows: the most frequent key of a million rows has 3 % of them.
    random = np.random.default_rng(7)
    return (len(numbers) * random.random(len(numbers)) ** 4).astype(np.int64)


def _by_hash(numbers: Numbers) -> Numbers:
    return numbers[np.argsort(_hashes(numbers).view(np.int64))]


KINDS: Final[Mapping[str, Keys]] = {
    keys.name: keys
    for keys in (
        Keys("dense", {"id": pa.int64()}, "t.id = s.id", _dense),
        Keys("shuffled", {"id": pa.int64()}, "t.id = s.id", _dense, _shuffled),
        Keys("skewed", {"id": pa.int64()}, "t.id = s.id", _dense, _skewed),
        Keys("sparse", {"id": pa.int64()}, "t.id = s.id", _sparse),
        Keys("sparse-sorted", {"id": pa.int64()}, "t.id = s.id", _sparse, _by_hash),
        Keys("varchar12", {"id": pa.string()}, "t.id = s.id", _varchar),
        Keys("varchar36", {"id": pa.string()}, "t.id = s.id", _uuid_text),
        Keys("uuid", {"id": pa.uuid()}, "t.id = s.id", _uuid),
        Keys(
            "two-columns",
            {"tenant": pa.int64(), "code": pa.string()},
            "t.tenant = s.tenant AND t.code = s.code",
            _tenant_and_code,
        ),
        Keys("decimal", {"id": pa.decimal128(20, 4)}, "t.id = s.id", _decimal),
        Keys("timestamp", {"id": pa.timestamp("us")}, "t.id = s.id", _timestamp),
        Keys("lower", {"id": pa.string()}, "lower(t.id) = lower(s.id)", _letters),
        Keys(
            "range",
            {"id": pa.int64(), "day": pa.int64()},
            "t.id = s.id AND t.day BETWEEN s.day - 1 AND s.day + 1",
            _day,
        ),
    )
}
"""By name; `dense` is the best case."""
