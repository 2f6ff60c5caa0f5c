"""Errors of disks, reported alike by all stores."""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.temporary_space import is_full

if TYPE_CHECKING:
    from collections.abc import Iterator

_DENIED: Final = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def writing(what: str, code: str) -> Iterator[None]:
    """Convert errors of writing ``what``, which begins the message."""
    try:
        yield
    except OSError as error:
        raise refused(error, what, code) from error


@contextmanager
def reading(what: str, code: str) -> Iterator[None]:
    """Convert errors of reading a file or directory that exists.

    Raises:
        ConnectorError: that code.
    """
    try:
        yield
    except OSError as error:
        raise ConnectorError(
            f"{what} cannot be read: {error.strerror or error}",
            code=code,
            hint="Check that this process can reach it and read it.",
        ) from error


def refused(error: OSError, what: str, code: str) -> ConnectorError:
    """Return the error of a failed write; see `writing`."""
    error = _numbered(error)
    msg = f"{what} cannot be written: {error.strerror or error}"
    if is_full(error):
        return ConnectorError(
            msg,
            code="GENERIC_INSUFFICIENT_RESOURCES",
            hint="Free space on the disk, and run the statement again. The tables are unchanged.",
        )
    if error.errno in _DENIED:
        return ConnectorError(
            msg,
            code="PERMISSION_DENIED",
            hint=(
                "Check that driver and workers may write there, and that the disk is not mounted"
                " read-only."
            ),
        )
    return ConnectorError(
        msg,
        code=code,
        hint="Check that driver and workers can reach the directory and write to it.",
    )


def _numbered(error: OSError) -> OSError:
    """Return an error with its errno, which Arrow's ORC writer only has in the message.

    >>> _numbered(OSError("IOError: Error writing bytes to file. Detail: [errno 28] No space left on device"))
    OSError(28, 'No space left on device')
    """
    match = re.search(r"\[errno (\d+)\]", str(error)) if error.errno is None else None
    return error if match is None else OSError(int(match[1]), os.strerror(int(match[1])))


def require_texts(array: pa.Array) -> pa.Array:
    r"""Return the array, or raise ArrowInvalid for invalid UTF-8, which Arrow does not check when
    it decodes files.

    >>> require_texts(pa.array(["a", None])).to_pylist()
    ['a', None]
    >>> require_texts(pa.array(["é", "a"]).slice(1)).to_pylist(), len(require_texts(pa.array(["é"])))
    (['a'], 1)
    >>> require_texts(pa.array([b"\xe8"]).cast(pa.string(), safe=False))
    Traceback (most recent call last):
    pyarrow.lib.ArrowInvalid: Invalid UTF8 sequence at string index 0
    """
    values = array.dictionary if pa.types.is_dictionary(array.type) else array
    arrow_type = values.type
    if (
        (pa.types.is_string(arrow_type) and not _is_ascii(values))
        or pa.types.is_large_string(arrow_type)
        or pa.types.is_nested(arrow_type)
    ):
        values.validate(full=True)
    return array


def _is_ascii(texts: pa.Array) -> bool:
    """Return whether all bytes are ASCII, which takes a tenth of the time of a validation."""
    _, offsets, content = texts.buffers()
    if content is None or not len(texts):
        return True
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    letters = np.frombuffer(content, np.int8)[ends[0] : ends[-1]]
    return int(letters.min(initial=0)) >= 0
