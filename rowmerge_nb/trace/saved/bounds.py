"""Memory limits for opening files, checked before memory is allocated.

Files of this package are uncompressed. A small hostile file may claim gigabytes: by compressed
buffers, arrays without buffers, repeated dictionary values, or nested JSON.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import RowMergeError

_LEAST: Final = 64 << 20
_TIMES: Final = 32
_MOST: Final = 4 << 30
_CELL: Final = 8
"""Bytes of an element of a Python list."""
_JSON: Final = {b"[": 88, b"{": 232, b",": 16}
"""Bytes of a list, an object and a further element in Python, by the character that begins each."""
_DICTIONARY_BATCH: Final = 2
_RECORD_BATCH: Final = 3


class UnfoldsTooFar(Exception):
    """A file would exceed its memory limit."""

    def __init__(self, needed_bytes: int, budget: Budget) -> None:
        self.needed = needed_bytes
        allowed = "" if budget.is_chosen else f" of {in_bytes(budget.size)}"
        super().__init__(
            f"opening it would take at least {in_bytes(needed_bytes)} of memory, and a"
            f" file{allowed} may take {in_bytes(budget.limit)}"
        )


def in_bytes(count: int) -> str:
    """Return a size in words.

    >>> in_bytes(101), in_bytes(3_300_000), in_bytes(1_716_000_000)
    ('101 B', '3.3 MB', '1.7 GB')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} B"


class Budget:
    """The memory limit of a file; each part takes its share before it is decoded.

    ``most_bytes`` is by default 32 times ``size``, at least 64 MiB and at most 4 GiB.
    """

    def __init__(self, size: int, most_bytes: int | None = None) -> None:
        self.size, self.is_chosen = size, most_bytes is not None
        self.limit = min(max(_LEAST, _TIMES * size), _MOST) if most_bytes is None else most_bytes
        self._taken = 0
        if size > self.limit:
            raise UnfoldsTooFar(size, self)

    def take(self, count: int) -> None:
        """Take memory; UnfoldsTooFar if the total exceeds the limit.

        >>> Budget(10, most_bytes=100).take(101)
        Traceback (most recent call last):
        rowmerge_nb.trace.saved.bounds.UnfoldsTooFar: opening it would take at least 101 B of memory, and a file may take 100 B
        """
        self._taken += count
        if self._taken > self.limit:
            raise UnfoldsTooFar(self._taken, self)

    def take_json(self, content: bytes) -> None:
        self.take(
            len(content) + sum(each * content.count(character) for character, each in _JSON.items())
        )


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def budget_of(budget: Budget) -> Iterator[None]:
    token = _current.set(budget)
    try:
        yield
    finally:
        _current.reset(token)


def current_budget(size: int) -> Budget:
    return _current.get() or Budget(size)


def checked_bound(most_bytes: Any) -> int | None:
    if most_bytes is None or (type(most_bytes) is int and most_bytes > 0):
        return most_bytes
    raise RowMergeError.invalid(
        f"most_bytes is {most_bytes!r}; it is a positive number of bytes, or None",
        hint="Omit most_bytes, or pass a number such as 2_000_000_000.",
    )


# -- Arrow


def read_stream(
    content: bytes, check: Callable[[pa.Schema], None] | None = None
) -> list[pa.RecordBatch]:
    """Read an Arrow stream within its file's budget; ``check`` raises if the schema is wrong."""
    budget = current_budget(len(content))
    for message in pa.ipc.MessageReader.open_stream(pa.py_buffer(content)):
        budget.take(_unpacked(message))
    pages = []
    with pa.ipc.open_stream(content) as stream:
        if check is not None:
            check(stream.schema)
        for page in stream:
            budget.take(
                _CELL * page.num_rows if not page.num_columns else sum(map(_unbacked, page.columns))
            )
            page.validate(full=True)
            budget.take(sum(map(_repeated, page.columns)))
            pages.append(page)
    return pages


def _unpacked(message: pa.Message) -> int:
    try:
        buffers = _packed_buffers(memoryview(message.metadata))
        body = memoryview(message.body) if buffers else memoryview(b"")
        sizes = [
            struct.unpack_from("<q", body, offset)[0] for offset, length in buffers if length >= 8
        ]
    except (struct.error, IndexError, ValueError, TypeError) as error:
        raise pa.ArrowInvalid(f"the header of a message is damaged: {error}") from error
    return sum(size for size in sizes if size > 0)


def _packed_buffers(header: memoryview) -> list[tuple[int, int]]:
    message = struct.unpack_from("<I", header, 0)[0]
    type_at, batch_at = _field(header, message, 1), _field(header, message, 2)
    message_type = header[type_at] if type_at else 0
    if message_type not in {_DICTIONARY_BATCH, _RECORD_BATCH} or not batch_at:
        return []
    batch = _target(header, batch_at)
    if message_type == _DICTIONARY_BATCH:
        data_at = _field(header, batch, 1)
        if not data_at:
            return []
        batch = _target(header, data_at)
    if not _field(header, batch, 3) or not (buffers_at := _field(header, batch, 2)):
        return []
    vector = _target(header, buffers_at)
    count = struct.unpack_from("<I", header, vector)[0]
    if vector + 4 + 16 * count > len(header):
        raise ValueError(f"{count} buffers are declared in {len(header)} bytes")
    return list(struct.iter_unpack("<qq", header[vector + 4 : vector + 4 + 16 * count]))


def _field(header: memoryview, table: int, number: int) -> int:
    fields = table - struct.unpack_from("<i", header, table)[0]
    size = struct.unpack_from("<H", header, fields)[0]
    at = 4 + 2 * number
    offset = struct.unpack_from("<H", header, fields + at)[0] if at + 2 <= size else 0
    return table + offset if offset else 0


def _target(header: memoryview, at: int) -> int:
    return int(at + struct.unpack_from("<I", header, at)[0])


def _unbacked(array: pa.Array) -> int:
    """Return the bytes of values without a buffer in the file, which a length alone claims."""
    arrow_type = array.type
    if isinstance(array, pa.ExtensionArray):
        return _unbacked(array.storage)
    children = [_unbacked(child) for child in _children(array)]
    is_free = (
        pa.types.is_null(arrow_type)
        or pa.types.is_run_end_encoded(arrow_type)
        or (pa.types.is_struct(arrow_type) and not arrow_type.num_fields)
        or (pa.types.is_fixed_size_binary(arrow_type) and not arrow_type.byte_width)
        or (pa.types.is_fixed_size_list(arrow_type) and not arrow_type.list_size)
    )
    return (_CELL * len(array) if is_free else 0) + sum(children)


def _children(array: pa.Array) -> list[pa.Array]:
    arrow_type = array.type
    if pa.types.is_struct(arrow_type) or pa.types.is_union(arrow_type):
        return [array.field(index) for index in range(arrow_type.num_fields)]
    if pa.types.is_map(arrow_type):
        return [array.keys, array.items]
    if _is_list(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        return [array.values]
    return [array.dictionary] if pa.types.is_dictionary(arrow_type) else []


def _is_list(arrow_type: pa.DataType) -> bool:
    tests = ("is_list", "is_large_list", "is_fixed_size_list", "is_list_view", "is_large_list_view")
    return any(getattr(pa.types, test)(arrow_type) for test in tests)


def _repeated(array: pa.Array) -> int:
    arrow_type = array.type
    if isinstance(array, pa.ExtensionArray):
        return _repeated(array.storage)
    below = sum(map(_repeated, _children(array)))
    if pa.types.is_dictionary(arrow_type) or pa.types.is_run_end_encoded(arrow_type):
        values = array.dictionary if pa.types.is_dictionary(arrow_type) else array.values
        return below + len(array) * _longest(values)
    if pa.types.is_list_view(arrow_type) or pa.types.is_large_list_view(arrow_type):
        return below + (pc.sum(array.sizes).as_py() or 0) * max(_CELL, _longest(array.values))
    if pa.types.is_string_view(arrow_type) or pa.types.is_binary_view(arrow_type):
        return below + (pc.sum(pc.binary_length(array)).as_py() or 0)
    return below


def _longest(values: pa.Array) -> int:
    text_types = (
        pa.types.is_string,
        pa.types.is_binary,
        pa.types.is_large_string,
        pa.types.is_large_binary,
    )
    if any(test(values.type) for test in text_types):
        return int(pc.max(pc.binary_length(values)).as_py() or 0)
    return (
        int(values.nbytes) + _CELL * len(values)
        if values.type.num_fields or pa.types.is_dictionary(values.type)
        else _CELL
    )
