"""Looking after files: those that failed attempts have left, and those that no snapshot knows."""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pyarrow import fs

from rowmerge_nb.connectors.iceberg.files import create, local_path, places_of, remove
from rowmerge_nb.connectors.iceberg.servers import require_reachable
from rowmerge_nb.connectors.shared.orphans import has_died, orphaned_path, this_process
from rowmerge_nb.spi.connector import Orphan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyiceberg.table import Table

__all__ = [
    "expired_files",
    "files_below",
    "folders_without_table",
    "forget_writer",
    "has_files",
    "known_files",
    "listing_of",
    "note_writer",
    "orphans_of",
    "remove_attempts",
    "remove_folder",
    "remove_location",
]


_WRITER: Final = "-writer"
"""How the name of the file ends that says which process runs a statement, as long as it runs."""
_PREFIX: Final = re.compile(r"(.+)-[0-9a-f]{8}-([0-9a-f]{32}.*\.parquet|writer|[0-9a-f-]{36}(-m\d+)?\.avro)")
"""The name of a file that a statement wrote begins with the statement."""
_FOLDER: Final = re.compile(r".+-[0-9a-f]{32}")
"""The name of a new table's folder in a warehouse."""
_SNAPSHOT: Final = re.compile(r"snap-\d+-\d+-")
"""What stands before that in the name of a list of manifests."""
_COMMITTING: Final = timedelta(minutes=1)
"""A note or a metadata file is written at once; one that is not whole after so long has lost its writer."""
_DAY: Final = timedelta(days=1)


def remove_folder(path: Path) -> None:
    """Remove a folder with all that is in it; what cannot be removed stays."""
    shutil.rmtree(path, ignore_errors=True)


def _listed(io: Any, location: str, *, recursive: bool = True) -> Iterator[tuple[str, fs.FileInfo]]:
    """Give the files of a location, each as a location of its own and with what is known of it."""
    path = local_path(location)
    if path is not None:
        found: fs.FileSystem = fs.LocalFileSystem()
        prefix = location[: len(location) - len(path)] if location.endswith(path) else "file://"
    else:
        from pyiceberg.io.pyarrow import PyArrowFileIO

        require_reachable(io.properties, location)
        # Whatever else a catalog reads files with: this one can list them.
        lister = PyArrowFileIO(io.properties)
        scheme, netloc, path = lister.parse_location(location, lister.properties)
        found = lister.fs_by_scheme(scheme, netloc)
        prefix = location[: len(location) - len(path)]
    for info in found.get_file_info(fs.FileSelector(path, recursive=recursive, allow_not_found=True)):
        if info.type == fs.FileType.File:
            yield f"{prefix}{info.path}", info


def has_files(io: Any, location: str) -> bool:
    """Tell whether there is any file in a location."""
    return next(_listed(io, location.rstrip("/")), None) is not None


def remove_attempts(io: Any, folders: Collection[str], prefixes: Collection[str], kept: Collection[str], *, deep: bool) -> None:
    """Remove files that attempts of ended statements wrote and no fragment named.

    Args:
        io: pyiceberg's access to files.
        folders: where to look.
        prefixes: how the names of their files begin.
        kept: files that were committed.
        deep: look into the folders of folders too.

    Raises:
        OSError: one of them cannot be removed; all others are.
    """
    failures: list[OSError] = []
    marks = tuple(f"{prefix}-" for prefix in prefixes)
    for folder in sorted(folders):
        for location, info in list(_listed(io, folder, recursive=deep)):
            if info.base_name.startswith(marks) and location not in kept:
                try:
                    remove_location(io, location)
                except OSError as error:
                    failures.append(error)
    if failures:
        raise failures[0]


def remove_location(io: Any, location: str) -> None:
    """Remove a file if it is there."""
    with suppress(FileNotFoundError):
        io.delete(location)


def note_writer(properties: Mapping[str, str], data_location: str, prefix: str) -> None:
    """Write down which process runs a statement: if it dies, others can tell."""
    with create(properties, _note(data_location, prefix)) as file:
        file.write(this_process().encode())


def forget_writer(properties: Mapping[str, str], data_location: str, prefix: str) -> None:
    """Remove the note: the statement has ended."""
    remove(properties, _note(data_location, prefix))


def _note(data_location: str, prefix: str) -> str:
    return f"{data_location}/{prefix}{_WRITER}"


@dataclass(frozen=True)
class Listing:
    """What lies in the folders of a table's files.

    Args:
        table: the table.
        files: of each folder the files below it, each as a location and with what is known of it.
        notes: of each statement that has noted itself there what its note says, None where it was gone before it could be read, and
            how long the note has been there.
        at: when they were looked at.
    """

    table: Table
    files: Mapping[str, Sequence[tuple[str, fs.FileInfo]]]
    notes: Mapping[str, tuple[str | None, timedelta]]
    at: datetime


def listing_of(table: Table) -> Listing:
    """List the files of a table's folders. Whoever asks later which of them tables know misses none that was committed meanwhile."""
    io: Any = table.io
    location = table.location().rstrip("/")
    folders = {table.properties.get(f"write.{kind}.path", f"{location}/{kind}").rstrip("/") for kind in ("data", "metadata")}
    files = {folder: list(_listed(io, folder)) for folder in sorted(folders)}
    now = datetime.now(UTC)
    notes = [(path, info) for found in files.values() for path, info in found if info.base_name.endswith(_WRITER)]
    read = {info.base_name.removesuffix(_WRITER): (_read(io, path), _since(info, now)) for path, info in notes}
    return Listing(table, files, read, now)


def orphans_of(
    listing: Listing,
    known: Collection[str],
    running: Collection[str],
    ended: Collection[str],
    age_in: Callable[[str], timedelta | None],
) -> Iterator[Orphan]:
    """Give the files below a table's folders that no table knows.

    Args:
        listing: what lies there.
        known: the places of all files of all tables of its catalog, as they were after that: another one may have files in its folders.
        running: how names of files begin that are being written now; they are never among them, nor are those of other processes of this
            machine that are alive.
        ended: how names begin that ended statements wrote; they are, whatever their age, as are those of processes that have died.
        age_in: of a folder how old files of unknown origin must be; None where they may be somebody else's.
    """
    io: Any = listing.table.io
    processes = {prefix: process or "" for prefix, (process, _) in listing.notes.items() if prefix not in running}
    # A note that is still empty after a while has lost its writer; of one that is gone the statement has ended.
    dead = {
        prefix
        for prefix in processes
        if has_died(processes[prefix]) or (listing.notes[prefix][0] == "" and listing.notes[prefix][1] > _COMMITTING)
    }
    untouched = tuple(f"{prefix}-" for prefix in {*running, *processes} - dead - set(ended))
    listed = tuple(f"{prefix}-" for prefix in {*ended, *dead})
    for folder, found in listing.files.items():
        age = age_in(folder)
        for (path, info), place in zip(found, places_of(path for path, _ in found), strict=True):
            name = info.base_name
            if place in known or name == "version-hint.text":
                continue
            since = _since(info, listing.at)
            # The names of metadata files are the catalog's; what is older than a day nobody commits any more.
            by = _committed_by(io, path) if name.endswith(".metadata.json") and since < _DAY else _SNAPSHOT.sub("", name, count=1)
            if by is None and since > _COMMITTING and age is not None:
                yield Orphan(path, info.size, _modified(info))
            elif by is None or by.startswith(untouched):
                continue
            elif by.startswith(listed) or (age is not None and since > age):
                written = _PREFIX.fullmatch(by)
                process = next((process for prefix, process in processes.items() if by.startswith(f"{prefix}-")), "")
                yield Orphan(path, info.size, _modified(info), written[1] if written is not None else "", process)


def folders_without_table(folders: Collection[Path], running: Collection[str], age: timedelta) -> Iterator[Orphan]:
    """Give those folders of a warehouse that were a table's before it was made, and that nobody makes any more.

    Args:
        folders: folders that no table of the catalog has. One with a metadata file was a table's, and is left alone.
        running: how names of files begin that are being written now.
        age: how old a folder must be in which no statement has noted itself.
    """
    for folder in sorted(folders):
        if not _FOLDER.fullmatch(folder.name) or any(folder.glob("metadata/*.metadata.json")):
            continue
        found, statement, process = orphaned_path(folder), "", ""
        notes = list(folder.glob(f"data/*{_WRITER}"))
        with suppress(OSError):
            for note in notes:
                statement, process = note.name.removesuffix(_WRITER), note.read_text(errors="replace")
        if statement in running or (process and not has_died(process)):
            continue
        old = found.modified is not None and datetime.now(UTC).timestamp() - found.modified > age.total_seconds()
        if process or old:
            yield orphaned_path(folder, statement.rsplit("-", 1)[0], process)


def _since(info: fs.FileInfo, now: datetime) -> timedelta:
    return now - info.mtime if info.mtime is not None else timedelta()


def _modified(info: fs.FileInfo) -> float | None:
    return info.mtime.timestamp() if info.mtime is not None else None


def _committed_by(io: Any, location: str) -> str | None:
    """Give a name that begins with the statement which was to be committed by a metadata file; None for a file that is not whole."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.serializers import FromInputFile

    try:
        snapshot = FromInputFile.table_metadata(io.new_input(location)).current_snapshot()
    except (OSError, ValueError, EOFError, ValidationError):
        return None
    return _SNAPSHOT.sub("", snapshot.manifest_list.rsplit("/", 1)[-1], count=1) if snapshot is not None else ""


def _read(io: Any, location: str) -> str | None:
    """Read a note; None if it is gone by now."""
    try:
        with io.new_input(location).open() as file:
            return str(file.read().decode(errors="replace"))
    except FileNotFoundError:
        return None


def known_files(table: Table) -> set[str]:
    """Give the places of all files that a table's metadata speaks of, those of its older snapshots included."""
    metadata = table.metadata
    known = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    known |= {statistics.statistics_path for statistics in (*metadata.statistics, *metadata.partition_statistics)}
    manifests = set()
    for snapshot in metadata.snapshots:
        known.add(snapshot.manifest_list)
        manifests.update(snapshot.manifests(table.io))
    for manifest in manifests:
        known.add(manifest.manifest_path)
        entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
        known.update(entry.data_file.file_path for entry in entries)
    return set(places_of(known))


def _files_of(table: Table, snapshots: Collection[int]) -> set[str]:
    """Give the locations of the files that some snapshots of a table consist of, lists of manifests and manifests among them."""
    found, manifests = set[str](), {}
    for snapshot in table.metadata.snapshots:
        if snapshot.snapshot_id in snapshots:
            found.add(snapshot.manifest_list)
            manifests.update({one.manifest_path: one for one in snapshot.manifests(table.io)})
    for path, manifest in manifests.items():
        found.add(path)
        found.update(entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io))
    return found


def expired_files(table: Table, expired: Collection[int]) -> set[str]:
    """Give the locations of the files that a table will have no use for when some of its snapshots are gone."""
    known = {one.snapshot_id for one in table.metadata.snapshots}
    files = _files_of(table, expired) - _files_of(table, known - set(expired))
    statistics = (*table.metadata.statistics, *table.metadata.partition_statistics)
    return files | {one.statistics_path for one in statistics if one.snapshot_id in expired}


def files_below(folder: Path) -> set[str]:
    """Give the places of the files in a folder, but those of metadata."""
    files = (f"{at}/{name}" for at, _, names in os.walk(folder) for name in names)
    return set(places_of(file for file in files if not file.endswith(".metadata.json")))
