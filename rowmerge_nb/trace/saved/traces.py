"""Saved traces: JSON files, readable only by their owner."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.trace.saved.files import FileFormat, checked_drawing, read_json, write_private
from rowmerge_nb.trace.saved.schema import decoded, encoded
from rowmerge_nb.trace.trace import Trace

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = "rowmerge_nb trace 1"
TRACE_FILE: Final = FileFormat(FORMAT, "a trace", "save_trace")


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write ``result.trace`` to a file atomically, replacing an existing one; only its owner may
    read it, since it holds rows.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if the directory does not exist or the path is not a file,
            PERMISSION_DENIED if it cannot be written, GENERIC_INSUFFICIENT_RESOURCES if the disk is
            full.

    >>> import tempfile, os
    >>> file = os.path.join(tempfile.mkdtemp(), "trace.json")
    >>> save_trace(Trace(statement="DROP TABLE t", kind="DROP TABLE", state="finished"), file)
    >>> load_trace(file).kind, oct(os.stat(file).st_mode & 0o777)
    ('DROP TABLE', '0o600')
    """
    argument: object = trace
    if not isinstance(argument, Trace):
        raise RowMergeError.invalid(
            f"A value of type {type(argument).__name__} is not a trace",
            hint="Give result.trace.",
        )
    # ASCII, because a text may hold a lone surrogate, which UTF-8 cannot encode.
    write_private(path, json.dumps({FORMAT: encoded(trace)}).encode("ascii"), "The trace")


def load_trace(path: str | Path, *, most_bytes: int | None = None) -> Trace:
    """Open a file written by `save_trace`; Spark is not needed.

    The memory limit ``most_bytes`` is by default 32 times the file's size, at least 64 MiB and at
    most 4 GiB.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if the file does not exist, exceeds the memory limit, or is
            not of this format; the message has the path of the wrong part.
    """
    return TRACE_FILE.opened(path, _read, most_bytes)


def _read(content: bytes) -> Trace:
    from rowmerge_nb.report.model.report import build_report

    return checked_drawing(decoded(TRACE_FILE.inside(read_json(content))), build_report)
