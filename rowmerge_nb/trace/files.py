"""Saving a trace and opening it again: a JSON file that only its owner can read, since it holds rows. Needs no Spark."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Any

from rowmerge_nb.errors import RowMergeError, error_text
from rowmerge_nb.private import is_full
from rowmerge_nb.trace.earlier import FORMAT, of_present_format
from rowmerge_nb.trace.schema import TraceSchemaError, decoded, encoded
from rowmerge_nb.trace.trace import Trace

__all__ = ["checked_file", "load_trace", "read_file", "save_trace", "write_private"]


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace to a file, all of it or nothing. The file holds rows of the tables: only its owner may read it.

    Args:
        trace: the trace, ``result.trace``.
        path: the file; one that is there is replaced.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if there is no such directory or something else than a file is there, PERMISSION_DENIED if it
            cannot be written, GENERIC_INSUFFICIENT_RESOURCES if the disk is full.

    >>> import tempfile, os
    >>> file = os.path.join(tempfile.mkdtemp(), "trace.json")
    >>> save_trace(Trace(statement="DROP TABLE t", kind="DROP TABLE", state="finished"), file)
    >>> load_trace(file).kind, oct(os.stat(file).st_mode & 0o777)
    ('DROP TABLE', '0o600')
    """
    given: object = trace
    if not isinstance(given, Trace):
        msg = f"A {type(given).__name__} is not a trace, and cannot be saved as one"
        raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint="Give result.trace.")
    # In ASCII: a text may hold half a character that UTF-8 has no form for.
    write_private(path, json.dumps({FORMAT: encoded(trace)}).encode("ascii"), "The trace")


def write_private(path: str | Path, content: bytes, what: str) -> None:
    """Write a file that only its owner may read, all of it or nothing.

    Args:
        path: the file; one that is there is replaced.
        content: its content.
        what: what cannot be saved if it fails: ``The trace``.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if there is no such directory or something else than a file is there, PERMISSION_DENIED if it
            cannot be written, GENERIC_INSUFFICIENT_RESOURCES if the disk is full.
    """
    try:
        _replace(checked_file(path), content)
    except OSError as error:
        denied = isinstance(error, PermissionError)
        code = "GENERIC_INSUFFICIENT_RESOURCES" if is_full(error) else "PERMISSION_DENIED" if denied else "INVALID_ARGUMENTS"
        msg = f"{what} cannot be saved as '{path}': {error.strerror or error}"
        raise RowMergeError(msg, code=code, hint="Name a file in a directory that you may write to and that has room.") from error


def load_trace(path: str | Path) -> Trace:
    """Open a saved trace.

    Args:
        path: the file that `save_trace` has written.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if there is no such file, or if it is not a trace of this format; the message names the place
            in it.
    """
    try:
        content = json.loads(read_file(checked_file(path)).decode("utf-8"))
        return _drawable(decoded(_of_this_format(content)))
    except TraceSchemaError as error:
        wrong = str(error)
    except OSError as error:
        wrong = error.strerror or str(error)
    except RecursionError:
        wrong = "it is nested too deeply"
    except ValueError as error:
        wrong = f"it is not JSON: {error}"
    msg = f"'{path}' cannot be opened as a trace: {wrong}"
    raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint=f"Write one with save_trace; this version reads '{FORMAT}'.")


def _drawable(trace: Trace) -> Trace:
    """See that a report can be made of a trace: every part may be as it should be, and the parts not go together."""
    from rowmerge_nb.report.model.report import build_report

    try:
        build_report(trace)
    except Exception as error:
        wrong = f"its parts do not go together: {error_text(error)}"
        raise TraceSchemaError(path="$", wrong=wrong) from error
    return trace


def _of_this_format(content: Any) -> Any:
    """Give what is kept under a format's name, so that another format is simply not there."""
    if (found := of_present_format(content)) is not None:
        return found
    start = FORMAT[: FORMAT.rindex(" ")]
    key = next((key for key in content if key.startswith(start)), None) if isinstance(content, dict) else None
    wrong = f"it is of the format '{key[:80]}'" if key is not None else "it is something else than a trace"
    raise TraceSchemaError(path="$", wrong=wrong)


def checked_file(path: str | Path) -> Path:
    """Give a path that a file can have; INVALID_ARGUMENTS for anything else."""
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
        msg = f"{path!r} is not the path of a file"
        raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint="Give a path such as 'trace.json'.")
    return Path(path)


def read_file(path: Path) -> bytes:
    """Read a file that is one: a pipe is not waited for."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "It is not a file")
        return file.read()


def _replace(path: Path, content: bytes) -> None:
    """Write a file beside the one that is to be replaced, and put it in its place; a link stays, and what it names is replaced."""
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise OSError(0, "Something else than a file is there")
    number, name = mkstemp(dir=path.parent, prefix=f".{path.name[:100]}-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(number)
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
