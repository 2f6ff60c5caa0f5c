"""File access: Arrow for the local disk, pyiceberg's file systems for everything else."""

from __future__ import annotations

import datetime as dt
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from rowmerge_nb.base.errors import ConnectorError, RowMergeError
from rowmerge_nb.connectors.iceberg.servers import local_path, require_reachable, require_readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def places_of(locations: Iterable[str]) -> list[str]:
    """Return the canonical path of each file, with links and ``..`` resolved.

    >>> places_of(["file:///w/a b.parquet", "/w/../w/a b.parquet", "s3://w/a"])
    ['/w/a b.parquet', '/w/a b.parquet', 's3://w/a']
    """
    real: dict[str, str] = {}
    paths = []
    for location in locations:
        path = local_path(location)
        if path is None:
            paths.append(location)
            continue
        folder, _, name = path.rpartition("/")
        if folder not in real:
            real[folder] = os.path.realpath(folder or "/")
        paths.append(f"{real[folder].rstrip('/')}/{name}")
    return paths


def modified(properties: Mapping[str, str], location: str) -> dt.datetime:
    """Return when a file was written, in milliseconds."""
    path, system = local_path(location), fs.LocalFileSystem()
    if path is None:
        from pyiceberg.io.pyarrow import PyArrowFileIO

        require_reachable(properties, location)
        lister = PyArrowFileIO(dict(properties))
        scheme, netloc, path = lister.parse_location(location, lister.properties)
        system = lister.fs_by_scheme(scheme, netloc)
    nanoseconds = system.get_file_info(path).mtime_ns or 0
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(
        milliseconds=nanoseconds // 1_000_000
    )


def file_io(properties: Mapping[str, str], location: str) -> Any:
    """Return pyiceberg's file access, or raise PERMISSION_DENIED for a server that the catalog's
    configuration does not name.
    """
    from rowmerge_nb.connectors.iceberg.trust import checked_files

    return checked_files(properties, location)


def open_file(properties: Mapping[str, str], location: str) -> Any:
    """Open a file, or raise FileNotFoundError, PERMISSION_DENIED or ICEBERG_BAD_DATA."""
    path = local_path(location)
    if path is not None:
        require_readable(path)
        return fs.LocalFileSystem().open_input_file(path)
    return file_io(properties, location).new_input(location).open()


def create(properties: Mapping[str, str], location: str) -> Any:
    """Open a new file for writing, and create its folders."""
    path = local_path(location)
    if path is None:
        return file_io(properties, location).new_output(location).create(overwrite=False)
    disk = fs.LocalFileSystem()
    disk.create_dir(path.rsplit("/", 1)[0], recursive=True)
    return disk.open_output_stream(path)


def remove(properties: Mapping[str, str], location: str) -> None:
    path = local_path(location)
    try:
        if path is None:
            file_io(properties, location).delete(location)
        else:
            fs.LocalFileSystem().delete_file(path)
    except FileNotFoundError:
        pass


@contextmanager
def reading(table: object, location: str) -> Iterator[None]:
    """Convert errors of reading a file to `ConnectorError`."""
    try:
        yield
    except FileNotFoundError as error:
        raise ConnectorError(
            f"File '{location}' of Iceberg table '{table}' does not exist",
            code="ICEBERG_MISSING_DATA",
            hint=(
                "Run the statement again if files were being removed; else roll the table back to a"
                " snapshot whose files exist."
            ),
        ) from error
    except RowMergeError:
        raise
    except Exception as error:
        words = " ".join(str(error).split()) or type(error).__name__
        msg = f"File '{location}' of Iceberg table '{table}' cannot be read: {words}"
        # Errors of the operating system have an errno; Arrow's errors about the content do not.
        if isinstance(error, OSError) and error.errno:
            raise ConnectorError(
                msg,
                code="ICEBERG_FILESYSTEM_ERROR",
                hint="Check that driver and workers can reach and read the table's files.",
            ) from error
        raise ConnectorError(
            msg,
            code="ICEBERG_BAD_DATA",
            hint="Restore the file, or roll the table back to a snapshot without it.",
        ) from error
