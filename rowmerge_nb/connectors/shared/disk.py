"""What a disk refuses while a store writes to it, and what it gives back that cannot be, told alike by all stores."""

from __future__ import annotations

import errno
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.private import is_full

if TYPE_CHECKING:
    from collections.abc import Iterator

_DENIED: Final = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def writing(what: str, code: str) -> Iterator[None]:
    """Report what is wrong when something is written.

    Args:
        what: the file or directory, as the message begins.
        code: the store's own code for what is neither a full disk nor a missing right.

    Raises:
        ConnectorError: GENERIC_INSUFFICIENT_RESOURCES, PERMISSION_DENIED, or that code.

    >>> with writing("File '/w/a.orc'", "HIVE_WRITER_DATA_ERROR"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.ConnectorError: GENERIC_INSUFFICIENT_RESOURCES: File '/w/a.orc' cannot be written: No space left on device. ...
    """
    try:
        yield
    except OSError as error:
        raise refused(error, what, code) from error


def refused(error: OSError, what: str, code: str) -> ConnectorError:
    """Return the error of what could not be written; see `writing`."""
    error = _numbered(error)
    msg = f"{what} cannot be written: {error.strerror or error}"
    if is_full(error):
        return ConnectorError(
            msg,
            code="GENERIC_INSUFFICIENT_RESOURCES",
            hint="Make room on the disk, and run the statement again; the tables are as they were.",
        )
    if error.errno in _DENIED:
        return ConnectorError(
            msg,
            code="PERMISSION_DENIED",
            hint="See that driver and workers may write there, and that the disk is not mounted read-only.",
        )
    return ConnectorError(msg, code=code, hint="See that driver and workers reach the directory and may write to it.")


def _numbered(error: OSError) -> OSError:
    """Return an error with its number: Arrow's ORC writer tells the system's in words alone.

    >>> _numbered(OSError("IOError: Error writing bytes to file. Detail: [errno 28] No space left on device"))
    OSError(28, 'No space left on device')
    """
    told = re.search(r"\[errno (\d+)\]", str(error)) if error.errno is None else None
    return error if told is None else OSError(int(told[1]), os.strerror(int(told[1])))


def require_texts(array: pa.Array) -> pa.Array:
    r"""Return an array back if its texts are some: Arrow decodes files without a look at them.

    Raises:
        pyarrow.ArrowInvalid: one of them is not.

    >>> require_texts(pa.array(["a", None])).to_pylist()
    ['a', None]
    >>> require_texts(pa.array([b"\xe8"]).cast(pa.string(), safe=False))
    Traceback (most recent call last):
    pyarrow.lib.ArrowInvalid: Invalid UTF8 sequence at string index 0
    """
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_nested(kind):
        array.validate(full=True)
    return array
