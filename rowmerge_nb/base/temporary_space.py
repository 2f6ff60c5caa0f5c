"""Errors of the temporary directory: it is full, or cannot be written."""

from __future__ import annotations

import errno
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Iterator

_HINT: Final = (
    "Make room there, or set the variable TMPDIR to a directory that you may write"
    " to, and restart Python."
)


@contextmanager
def needs_temporary_space() -> Iterator[None]:
    """Report errors of the temporary directory like `PrivateDirectory`.

    >>> with needs_temporary_space():
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.SetupError: GENERIC_INSUFFICIENT_RESOURCES: The temporary directory '...' cannot be written: No space left...
    """
    try:
        yield
    except OSError as error:
        full = is_full(error)
        # Python has no writable one.
        folder = f"'{tempfile.tempdir}'" if tempfile.tempdir else "of this machine"
        msg = f"The temporary directory {folder} cannot be written: {error.strerror or error}"
        code = "GENERIC_INSUFFICIENT_RESOURCES" if full else "PERMISSION_DENIED"
        raise SetupError(msg, code=code, hint=_HINT) from error


def is_full(error: OSError) -> bool:
    """Return whether the disk is full or a quota exceeded.

    >>> is_full(OSError(28, "No space left on device")), is_full(FileNotFoundError())
    (True, False)
    """
    return error.errno in {errno.ENOSPC, errno.EDQUOT}
