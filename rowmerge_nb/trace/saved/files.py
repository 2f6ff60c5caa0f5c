"""Files that hold rows: written atomically, readable only by their owner."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Any, TypeVar

from rowmerge_nb.base.errors import RowMergeError, error_text
from rowmerge_nb.base.temporary_space import is_full
from rowmerge_nb.trace.saved.bounds import (
    Budget,
    UnfoldsTooFar,
    budget_of,
    checked_bound,
    current_budget,
)
from rowmerge_nb.trace.saved.schema import TraceSchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


@dataclass(frozen=True)
class FileFormat:
    """A format of files.

    Args:
        name: the key of the content, with the version.
        what: what such a file is, such as ``a trace``.
        writer: the call that writes one.
    """

    name: str
    what: str
    writer: str

    def opened(
        self, path: str | Path, read: Callable[[bytes], T], most_bytes: int | None = None
    ) -> T:
        """Return the content of a file.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if the file does not exist, is not of this format, or
                exceeds the memory limit.
        """
        file, limit, more = _checked_path(path), checked_bound(most_bytes), ""
        try:
            content, budget = read_file(file, limit)
            with budget_of(budget):
                return read(content)
        except UnfoldsTooFar as error:
            wrong = str(error)
            more = f" If you trust the file, open it with most_bytes={error.needed:_} or more."
        except TraceSchemaError as error:
            wrong = str(error)
        except RowMergeError as error:
            wrong = error.message
        except OSError as error:
            wrong = error.strerror or str(error)
        except RecursionError:
            wrong = "it is nested too deeply"
        except Exception as error:  # noqa: BLE001 - a hostile file has a reader raise anything
            wrong = f"it is truncated or damaged, or is not {self.what} ({error_text(error)[:200]})"
        raise RowMergeError.invalid(
            f"'{path}' cannot be opened as {self.what}: {wrong}",
            hint=f"Write one with {self.writer}; this version reads '{self.name}'.{more}",
        )

    def inside(self, content: Any) -> Any:
        """Return the value under the format's name.

        Raises:
            TraceSchemaError: for another key; the message names it if it is another version.

        >>> FileFormat("rowmerge_nb audit 1", "an audit", "audit.save(...)").inside({"rowmerge_nb audit 7": {}})
        Traceback (most recent call last):
        rowmerge_nb.trace.saved.schema.TraceSchemaError: $: it is of the format 'rowmerge_nb audit 7'
        """
        names = list(content) if isinstance(content, dict) else []
        if names == [self.name]:
            return content[self.name]
        family = self.name[: self.name.rindex(" ")]
        other = next((name for name in names if name.startswith(family)), None)
        wrong = (
            f"it is of the format '{other[:80]}'" if other is not None else f"it is not {self.what}"
        )
        raise TraceSchemaError(path="$", wrong=wrong)


def checked_drawing(value: T, draw: Callable[[T], object]) -> T:
    """Check that a report can be built, since valid parts may be inconsistent."""
    try:
        draw(value)
    except Exception as error:
        wrong = f"its parts do not match: {error_text(error)[:200]}"
        raise TraceSchemaError(path="$", wrong=wrong) from error
    return value


def read_json(content: bytes) -> Any:
    current_budget(len(content)).take_json(content)
    return json.loads(content.decode("utf-8"))


def write_private(path: str | Path, content: bytes, what: str) -> None:
    """Write a file atomically that only its owner may read.

    Args:
        what: the first words of an error message, such as ``The trace``.
    """
    try:
        _replace(_checked_path(path), content)
    except OSError as error:
        code = "INVALID_ARGUMENTS"
        if is_full(error):
            code = "GENERIC_INSUFFICIENT_RESOURCES"
        elif isinstance(error, PermissionError):
            code = "PERMISSION_DENIED"
        raise RowMergeError(
            f"{what} cannot be saved as '{path}': {error.strerror or error}",
            code=code,
            hint="Name a file in a directory that you may write to and that has room.",
        ) from error


def _checked_path(path: str | Path) -> Path:
    if not isinstance(path, str | os.PathLike) or "\0" in os.fspath(path):
        raise RowMergeError.invalid(
            f"{path!r} is not the path of a file",
            hint="Give a path such as 'trace.json'.",
        )
    return Path(path)


def read_file(path: Path, most_bytes: int | None = None) -> tuple[bytes, Budget]:
    """Return a file's bytes and its budget; refuse a pipe rather than wait for it."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "It is not a file")
        budget = Budget(status.st_size, most_bytes)
        return file.read(), budget


def _replace(path: Path, content: bytes) -> None:
    """Replace a file atomically by a temporary sibling; behind a symbolic link, replace the link's
    target.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise OSError(0, "It exists and is not a file")
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
