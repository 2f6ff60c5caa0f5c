"""Notes: small files that record which process writes to a table, so that any process can attribute
its files.

A statement leaves its note before its first file, and removes it at the end. The heartbeat is for
processes on other machines, which cannot be checked.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import ConnectorError, error_text
from rowmerge_nb.connectors.iceberg.files import create, file_io, remove
from rowmerge_nb.connectors.iceberg.servers import local_path
from rowmerge_nb.connectors.shared.disk import refused
from rowmerge_nb.connectors.shared.orphans import this_process

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle

SUFFIX: Final = "-writer"
"""The suffix of a note's name."""
_RENEWAL: Final = 600.0
"""Seconds between two renewals of a note."""
_METADATA_FILES: Final = uuid.UUID("6f1d2a0e-5f43-4a53-9f0b-0f6a3c1d9b27")
_LOOK_AGAIN: Final = 1.0
"""The minimum number of seconds between a task's checks for its statement's note in an object
store.
"""


def _note_location(table: IcebergTableHandle, prefix: str) -> str:
    return f"{table.location}/data/{prefix}{SUFFIX}"


def metadata_id(prefix: str, attempt: int) -> uuid.UUID:
    return uuid.uuid5(_METADATA_FILES, f"{prefix}/{attempt}")


def _locations(table: IcebergTableHandle, prefix: str, *, data: bool) -> list[str]:
    """Return the locations of a statement's notes: one in the table's folder, and one in each other
    folder that it writes to.
    """
    metadata = table.properties.get("write.metadata.path", "").rstrip("/")
    folders = [metadata, table.data_location if data else ""]
    outside = {
        folder for folder in folders if folder and not f"{folder}/".startswith(f"{table.location}/")
    }
    return [
        _note_location(table, prefix),
        *(f"{folder}/{prefix}{SUFFIX}" for folder in sorted(outside)),
    ]


@dataclass
class Writer:
    """A statement as other processes see it: the prefix of its files, and its notes.

    Args:
        prefix: the prefix of its files' names; ``""`` before it has one.
        is_submitted: whether the catalog may have been asked to commit, so that files may belong to
            a table.
    """

    prefix: str = ""
    notes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    is_submitted: bool = False
    _renewal: threading.Timer | None = None
    _is_stopped: bool = False

    def name(self, query_id: str) -> None:
        """Set the statement's prefix, unless it has one."""
        self.prefix = self.prefix or f"{query_id}-{uuid.uuid4().hex[:8]}"

    def note(self, table: IcebergTableHandle, *, data: bool = False) -> None:
        """Write a table's missing notes before the first file."""
        self.name("commit")
        for location in _locations(table, self.prefix, data=data):
            if location in self.notes:
                continue
            folder = location.rpartition("/")[0]
            _require_absolute(folder, table.name)
            self.notes[location] = table.io
            try:
                with create(table.io, location) as file:
                    file.write(this_process().encode())
            except (OSError, ValueError, ImportError) as error:
                raise _write_error(error, folder, table.name) from error
        if self._renewal is None:
            self._renew_later()

    def require_notes(self, table: IcebergTableHandle) -> None:
        """Raise TRANSACTION_CONFLICT if another process has presumed this statement dead and
        removed its notes.
        """
        for location, properties in self.notes.items():
            if not _exists(table, properties, location):
                raise ConnectorError(
                    f"The note '{location}' of this statement on Iceberg table"
                    f" '{table.name}' was removed, and its files may have been too",
                    code="TRANSACTION_CONFLICT",
                    hint="Nothing was changed by this statement. Run it again.",
                )

    def ask(self) -> None:
        self.is_submitted = True

    def forget(self) -> None:
        self.stop()
        for location, properties in self.notes.items():
            with suppress(Exception):
                remove(properties, location)
        self.notes.clear()

    def stop(self) -> None:
        self._is_stopped = True
        if self._renewal is not None:
            self._renewal.cancel()

    def _renew_later(self) -> None:
        self._renewal = threading.Timer(_RENEWAL, self._renew)
        self._renewal.daemon = True
        self._renewal.start()

    def _renew(self) -> None:
        for location, properties in list(self.notes.items()):
            try:
                renew(properties, location)
            except Exception:  # noqa: BLE001, S112 - the next renewal may succeed
                continue
        # A renewal that is running when the statement ends cannot be canceled.
        if not self._is_stopped:
            self._renew_later()


class Presence:
    """A task's check that its statement is running."""

    def __init__(self, table: IcebergTableHandle, prefix: str) -> None:
        self._table, self._prefix = table, prefix
        self._note = _note_location(table, prefix)
        self._seen = float("-inf")

    def require(self, *, now: bool = False) -> None:
        """Raise TRANSACTION_CONFLICT if the statement has ended, since later files are never
        removed.

        Unless `now`, a note in an object store is checked at most once per second.
        """
        is_fresh = local_path(self._note) is None and time.monotonic() - self._seen < _LOOK_AGAIN
        if is_fresh and not now:
            return
        if not _exists(self._table, self._table.io, self._note):
            raise ConnectorError(
                f"Statement '{self._prefix}' on Iceberg table '{self._table.name}' has ended, so"
                " its tasks write no more files",
                code="TRANSACTION_CONFLICT",
                hint="Nothing was changed by this statement. Run it again.",
            )
        self._seen = time.monotonic()


def renew(properties: Mapping[str, str], location: str) -> None:
    """Set the time of a note to now, or raise OSError; a removed note stays removed."""
    path = local_path(location)
    if path is not None:
        os.utime(path)
        return
    files = file_io(properties, location)
    with files.new_input(location).open() as file:
        content = file.read()
    with files.new_output(location).create(overwrite=True) as file:
        file.write(content)


def _exists(table: IcebergTableHandle, properties: Mapping[str, str], location: str) -> bool:
    path = local_path(location)
    try:
        return (
            Path(path).exists()
            if path is not None
            else bool(file_io(properties, location).new_input(location).exists())
        )
    except OSError as error:
        raise ConnectorError(
            f"File '{location}' of Iceberg table '{table.name}' cannot be read:"
            f" {error_text(error)}",
            code="ICEBERG_FILESYSTEM_ERROR",
            hint=(
                "Check that driver and workers can reach the table's folder, and run the statement"
                " again."
            ),
        ) from error


def _require_absolute(folder: str, table: object) -> None:
    """Refuse a relative folder, which each process would resolve differently."""
    path = local_path(folder)
    if path is not None and not path.startswith("/"):
        raise ConnectorError(
            f"Directory '{folder}' of Iceberg table '{table}' has neither a scheme nor a leading"
            " slash",
            code="ICEBERG_INVALID_METADATA",
            hint=(
                "Correct the property write.data.path or write.metadata.path with the"
                " engine that set it."
            ),
        )


def _write_error(error: Exception, folder: str, table: object) -> ConnectorError:
    what = f"Directory '{folder}' of Iceberg table '{table}'"
    if isinstance(error, OSError):
        return refused(error, what, "ICEBERG_FILESYSTEM_ERROR")
    return ConnectorError(
        f"{what} cannot be written: {' '.join(error_text(error).split())[:300]}",
        code="ICEBERG_FILESYSTEM_ERROR",
        hint=(
            "ALTER TABLE ... SET PROPERTIES data_location = DEFAULT, or name a directory that can"
            " be reached from here."
        ),
    )
