"""Opening and writing files: those of the local disk by Arrow alone, all others through pyiceberg's file systems."""

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
    """Return the one name of each file's place, however its location is written: with a scheme or without, through links, with steps upwards.

    >>> places_of(["file:///w/a b.parquet", "/w/../w/a b.parquet", "s3://w/a"])
    ['/w/a b.parquet', '/w/a b.parquet', 's3://w/a']
    """
    real: dict[str, str] = {}
    places = []
    for location in locations:
        path = local_path(location)
        if path is None:
            places.append(location)
            continue
        folder, _, name = path.rpartition("/")
        if folder not in real:
            real[folder] = os.path.realpath(folder or "/")
        places.append(f"{real[folder].rstrip('/')}/{name}")
    return places


def modified(properties: Mapping[str, str], location: str) -> dt.datetime:
    """Return the moment at which a file was written, in thousandths of a second."""
    path, found = local_path(location), fs.LocalFileSystem()
    if path is None:
        from pyiceberg.io.pyarrow import PyArrowFileIO

        require_reachable(properties, location)
        lister = PyArrowFileIO(dict(properties))
        scheme, netloc, path = lister.parse_location(location, lister.properties)
        found = lister.fs_by_scheme(scheme, netloc)
    nanoseconds = found.get_file_info(path).mtime_ns or 0
    return dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(milliseconds=nanoseconds // 1_000_000)


def file_io(properties: Mapping[str, str], location: str) -> Any:
    """Return pyiceberg's access to the files of a location, on the servers that the catalog's configuration names.

    Raises:
        ConnectorError: PERMISSION_DENIED, the location is on another server.
    """
    from rowmerge_nb.connectors.iceberg.trust import checked_files

    return checked_files(properties, location)


def open_file(properties: Mapping[str, str], location: str) -> Any:
    """Open a file for reading.

    Raises:
        FileNotFoundError: there is none.
        ConnectorError: PERMISSION_DENIED or ICEBERG_BAD_DATA, metadata names a server or a file that is not opened.
    """
    path = local_path(location)
    if path is not None:
        require_readable(path)
        return fs.LocalFileSystem().open_input_file(path)
    return file_io(properties, location).new_input(location).open()


def create(properties: Mapping[str, str], location: str) -> Any:
    """Open a new file for writing; its folders are made."""
    path = local_path(location)
    if path is None:
        return file_io(properties, location).new_output(location).create(overwrite=False)
    disk = fs.LocalFileSystem()
    disk.create_dir(path.rsplit("/", 1)[0], recursive=True)
    return disk.open_output_stream(path)


def remove(properties: Mapping[str, str], location: str) -> None:
    """Remove a file if it is there."""
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
    """Report what is wrong with a file in words of this connector."""
    try:
        yield
    except FileNotFoundError as error:
        raise ConnectorError(
            f"File '{location}' of Iceberg table '{table}' does not exist",
            code="ICEBERG_MISSING_DATA",
            hint="Run the statement again if files were being removed; else roll the table back to a snapshot whose files are there.",
        ) from error
    except RowMergeError:
        raise
    except Exception as error:
        words = " ".join(str(error).split()) or type(error).__name__
        msg = f"File '{location}' of Iceberg table '{table}' cannot be read: {words}"
        # What Arrow says of the bytes has no number; what the system says of the file has one.
        if isinstance(error, OSError) and error.errno:
            raise ConnectorError(
                msg,
                code="ICEBERG_FILESYSTEM_ERROR",
                hint="See that driver and workers reach the table's files and may read them.",
            ) from error
        raise ConnectorError(
            msg, code="ICEBERG_BAD_DATA", hint="Restore the file, or roll the table back to a snapshot without it."
        ) from error
