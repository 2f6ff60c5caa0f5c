"""Looking after files: those that failed attempts have left, and those that no snapshot knows."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyarrow import fs

from rowmerge_nb.base.errors import error_text
from rowmerge_nb.base.words import plural
from rowmerge_nb.connectors.iceberg.files import places_of
from rowmerge_nb.connectors.iceberg.notes import SUFFIX, metadata_id
from rowmerge_nb.connectors.iceberg.servers import local_path, require_reachable
from rowmerge_nb.connectors.shared.orphans import is_alive, orphaned_path
from rowmerge_nb.spi.connector import Orphan
from rowmerge_nb.spi.handles import SchemaTableName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pyiceberg.table import Table

    from rowmerge_nb.spi.procedures import ProcedureOutcome

_PREFIX: Final = re.compile(r"(.+)-[0-9a-f]{8}-([0-9a-f]{32}.*\.parquet|writer|[0-9a-f-]{36}(-m\d+)?\.avro)")
"""The name of a file that a statement wrote begins with the statement."""
_FOLDER: Final = re.compile(r".+-[0-9a-f]{32}")
"""The name of a new table's folder in a warehouse."""
_SNAPSHOT: Final = re.compile(r"snap-\d+-\d+-")
"""What stands before that in the name of a list of manifests."""
_COMMITTING: Final = timedelta(minutes=1)
"""A note or a metadata file is written at once; one that is not whole after so long has lost its writer."""
_DAY: Final = timedelta(days=1)
_ATTEMPTS: Final = 10
"""The metadata files of so many attempts of a statement to commit are recognized by their names."""


def remove_folder(path: Path) -> None:
    """Remove a folder with all that is in it; what cannot be removed stays."""
    shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class File:
    """A file of a folder.

    Args:
        location: where it is, written as the folder's location is.
        size: its size.
        modified: when it was written; None if the store does not say.
        is_link: it is a link, to a file or a folder.
    """

    location: str
    size: int | None
    modified: datetime | None
    is_link: bool = False

    @property
    def name(self) -> str:
        """Its name without the folder."""
        return self.location.rpartition("/")[2]


def _listed(io: Any, location: str, *, recursive: bool = True) -> Iterator[File]:
    """List the files of a location, and the links, which are not followed."""
    path = local_path(location)
    if path is not None:
        prefix = location[: len(location) - len(path)] if location.endswith(path) else "file://"
        yield from _on_disk(path, prefix, recursive=recursive)
        return
    from pyiceberg.io.pyarrow import PyArrowFileIO

    require_reachable(io.properties, location)
    # Whatever else a catalog reads files with: this one can list them.
    lister = PyArrowFileIO(io.properties)
    scheme, netloc, path = lister.parse_location(location, lister.properties)
    found = lister.fs_by_scheme(scheme, netloc)
    prefix = location[: len(location) - len(path)]
    for info in found.get_file_info(fs.FileSelector(path, recursive=recursive, allow_not_found=True)):
        if info.type == fs.FileType.File:
            yield File(f"{prefix}{info.path}", info.size, info.mtime)


def _on_disk(path: str, prefix: str, *, recursive: bool) -> Iterator[File]:
    for folder, folders, names in os.walk(path) if recursive else itertools.islice(os.walk(path), 1):
        for name in (*names, *(name for name in folders if Path(folder, name).is_symlink())):
            # Files come and go meanwhile.
            with suppress(OSError):
                state = os.lstat(f"{folder}/{name}")
                is_link = stat.S_ISLNK(state.st_mode)
                if is_link or stat.S_ISREG(state.st_mode):
                    modified = datetime.fromtimestamp(state.st_mtime, UTC)
                    yield File(f"{prefix}{folder}/{name}", state.st_size, modified, is_link)


@dataclass
class Removal:
    """The removal of files that are of no use to a table any more, one by one; what cannot be removed is left.

    Args:
        io: pyiceberg's access to files.
        removed: the locations of the files that are gone.
        left: why files are left, by location.
        problems: sentences about tables that cannot be read.
    """

    io: Any
    removed: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def remove(self, location: str) -> None:
        """Remove a file; a file that is gone already counts."""
        try:
            remove_location(self.io, location)
        except Exception as error:  # noqa: BLE001 - all others are removed
            self.left[location] = error_text(error)
        else:
            self.removed.append(location)

    def report(self, outcome: ProcedureOutcome) -> None:
        """Add to the outcome of a procedure what was removed, and what was left."""
        outcome.metrics["deleted_files_count"] = len(self.removed)
        outcome.metrics["left_files_count"] = len(self.left)
        if self.removed:
            outcome.notices.append(f"{_were(len(self.removed))} removed: {_shortened(self.removed)}")
        for reason, one in itertools.groupby(sorted(self.left.items(), key=lambda pair: pair[1]), key=lambda pair: pair[1]):
            locations = [location for location, _ in one]
            outcome.notices.append(f"{_were(len(locations))} left ({reason}): {_shortened(locations)}")
        outcome.notices.extend(self.problems)


NOT_OWN: Final = "not in a folder of the table's own"
"""Why a file is left that metadata names."""
UNREAD: Final = "another table cannot be read, and may need them"
_LINK: Final = "links are not followed"
_SHOWN: Final = 5


def _were(count: int) -> str:
    return f"{plural(count, 'file')} {'was' if count == 1 else 'were'}"


def _shortened(locations: Sequence[str]) -> str:
    more = len(locations) - _SHOWN
    return ", ".join((*sorted(locations)[:_SHOWN], *([f"and {more} more"] if more > 0 else ())))


def has_files(io: Any, location: str, *, deep: bool = True) -> bool:
    """Return whether there is anything but folders in a location.

    Args:
        io: pyiceberg's access to files.
        location: the location.
        deep: look into the folders of folders too.

    Raises:
        OSError: the location cannot be looked at.
        ValueError: its scheme is unknown.
    """
    path = local_path(location.rstrip("/"))
    if path is None:
        return next(_listed(io, location.rstrip("/"), recursive=deep), None) is not None
    with suppress(FileNotFoundError):
        os.lstat(path)
    walk = os.walk(path) if deep else itertools.islice(os.walk(path), 1)
    return Path(path).is_file() or any(names or any(Path(at, one).is_symlink() for one in folders) for at, folders, names in walk)


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
    # Tasks that see no note write no more.
    for folder, prefix in itertools.product(sorted(folders), prefixes):
        with suppress(OSError):
            remove_location(io, f"{folder}/{prefix}{SUFFIX}")
    for folder in sorted(folders):
        for file in list(_listed(io, folder, recursive=deep)):
            mine = _SNAPSHOT.sub("", file.name, count=1).startswith(marks) and not file.is_link
            if mine and file.location not in kept:
                try:
                    remove_location(io, file.location)
                except OSError as error:
                    failures.append(error)
    if failures:
        raise failures[0]


def remove_location(io: Any, location: str) -> None:
    """Remove a file if it is there."""
    with suppress(FileNotFoundError):
        io.delete(location)


@dataclass(frozen=True)
class Note:
    """The note of a statement, and its process, both as they were at one moment.

    Whether the process lived is part of the note. A process may commit and end after the tables were read that are searched for its files.

    Args:
        process: the process in the note; ``""`` for a note without one, None for a note that was gone before it could be read.
        since: the time since the note was renewed.
        is_alive: whether the process lived; None if it cannot be seen from here.
    """

    process: str | None
    since: timedelta
    is_alive: bool | None

    def may_run(self, age: timedelta) -> bool:
        """Return whether the statement may still have been running.

        A process that cannot be seen from here is judged by its heartbeat. A note that was not renewed for a day, and for the age that is
        asked for, protects nothing any more.

        Args:
            age: the age of files that are orphans.
        """
        if self.process is None:
            return True
        if not self.process:
            return self.since <= _COMMITTING
        return self.since <= max(age, _DAY) if self.is_alive is None else self.is_alive

    @property
    def is_abandoned(self) -> bool:
        """Whether the process was gone for certain."""
        return self.process is not None and (self.is_alive is False or (self.process == "" and self.since > _COMMITTING))


def _note_of(process: str | None, since: timedelta) -> Note:
    return Note(process, since, is_alive(process) if process else None)


@dataclass(frozen=True)
class Listing:
    """What lies in the folders of a table's files.

    Args:
        table: the table.
        files: the files below each folder.
        notes: the notes of statements, by the prefixes of these.
        at: when they were looked at.
    """

    table: Table
    files: Mapping[str, Sequence[File]]
    notes: Mapping[str, Note]
    at: datetime

    def protected(self, age: timedelta) -> set[str]:
        """Return the prefixes of the statements that may still run.

        Args:
            age: the age of files that are orphans.
        """
        return {prefix for prefix, note in self.notes.items() if note.may_run(age)}

    def abandoned(self) -> set[str]:
        """Return the prefixes of the statements whose processes are gone for certain."""
        return {prefix for prefix, note in self.notes.items() if note.is_abandoned}


def listing_of(table: Table) -> Listing:
    """List the files of a table's folders, then the notes, and then look which of their processes live.

    Who asks later which of the files tables know misses none that was committed meanwhile. A statement leaves its note before its first
    file, so every file of this list has its note in that list, unless its statement has ended. A process that has ended by then commits
    nothing later.
    """
    io: Any = table.io
    location = table.location().rstrip("/")
    folders = {f"{location}/{kind}" for kind in ("data", "metadata")}
    folders |= {path.rstrip("/") for kind in ("data", "metadata") if (path := table.properties.get(f"write.{kind}.path"))}
    roots = [folder for folder in sorted(folders) if not any(folder.startswith(f"{other}/") for other in folders)]
    files = {folder: list(_listed(io, folder)) for folder in roots}
    now = datetime.now(UTC)
    notes = [file for folder in roots for file in _listed(io, folder) if file.name.endswith(SUFFIX) and not file.is_link]
    read = {file.name.removesuffix(SUFFIX): _note_of(_read(io, file.location), _since(file, now)) for file in notes}
    return Listing(table, files, read, now)


@dataclass(frozen=True)
class Search:
    """What is known of the files of a table when orphans are looked for.

    Args:
        listing: what lies there.
        known: the places of all files of all tables of its catalog, as they were after that: another one may have files in its folders.
        running: the prefixes of the statements that run in this connector.
        ended: the prefixes of its statements that have ended: what they have left is an orphan, whatever its age.
        age: how old files of unknown origin must be.
        owns: whether a file of a place may be removed for this table.
        is_shared: whether others may keep files of unknown origin in a folder.
        left: why files that no table knows are no orphans, by location, once they were looked for.
    """

    listing: Listing
    known: Collection[str]
    running: Collection[str]
    ended: Collection[str]
    age: timedelta
    owns: Callable[[str], bool]
    is_shared: Callable[[str], bool]
    left: dict[str, str] = field(default_factory=dict)

    def orphans(self) -> list[Orphan]:
        """Return the files below the table's folders that no table knows, notes first: a statement that has lost its note does not commit."""
        found = [orphan for folder in self.listing.files for orphan in self._orphans_in(folder)]
        return sorted(found, key=lambda orphan: not orphan.name.endswith(SUFFIX))

    def _orphans_in(self, folder: str) -> Iterator[Orphan]:
        listing, running = self.listing, set(self.running)
        left = {*listing.abandoned(), *self.ended} - running
        untouched = tuple(f"{prefix}-" for prefix in {*listing.protected(self.age), *running} - left)
        listed = tuple(f"{prefix}-" for prefix in left)
        age, files = None if self.is_shared(folder) else self.age, listing.files[folder]
        for file, place in zip(files, places_of(file.location for file in files), strict=True):
            if place in self.known or file.name == "version-hint.text":
                continue
            if file.is_link or not self.owns(place):
                self.left[file.location] = _LINK if file.is_link else NOT_OWN
                continue
            by, since = self._writer_of(file), _since(file, listing.at)
            if by is not None and by.startswith(listed):
                yield self._orphan(file, by)
            elif age is None or (by is not None and by.startswith(untouched)):
                continue
            elif file.name.endswith(".metadata.json"):
                # Its name is the catalog's: it may be just what a running statement commits. Half a file is of use to nobody.
                if not untouched and since > (_COMMITTING if by is None and left else max(age, _COMMITTING)):
                    yield self._orphan(file, "")
            elif since > age:
                yield self._orphan(file, by or "")

    @cached_property
    def _metadata_files(self) -> Mapping[str, str]:
        """The prefixes of the statements that are known, by the ids in the names of their metadata files."""
        prefixes = {*self.listing.notes, *self.ended, *self.running}
        return {str(metadata_id(prefix, attempt)): prefix for prefix in prefixes for attempt in range(_ATTEMPTS)}

    def _writer_of(self, file: File) -> str | None:
        """Return a name that begins with the prefix of a file's statement, ``""`` if that is not known, None for half a metadata file."""
        if not file.name.endswith(".metadata.json"):
            return _SNAPSHOT.sub("", file.name, count=1)
        prefix = self._metadata_files.get("-".join(file.name.split(".")[0].split("-")[1:]))
        if prefix is not None:
            return f"{prefix}-"
        # What is older than a day nobody commits any more.
        if _since(file, self.listing.at) >= _DAY:
            return ""
        made = _manifest_list(self.listing.table.io, file.location)
        # A list that is known was committed by another metadata file: this one is of a later change.
        if not made or not set(places_of([made])).isdisjoint(self.known):
            return made and ""
        return _SNAPSHOT.sub("", made.rsplit("/", 1)[-1], count=1)

    def _orphan(self, file: File, by: str) -> Orphan:
        statement = _PREFIX.fullmatch(by)
        process = next((note.process for prefix, note in self.listing.notes.items() if by.startswith(f"{prefix}-")), "")
        return Orphan(file.location, file.size, _modified(file), statement[1] if statement is not None else "", process or "")


def folders_without_table(folders: Collection[Path], running: Collection[str], age: timedelta) -> Iterator[Orphan]:
    """Yield those folders of a warehouse that were a table's before it was made, and that nobody makes any more.

    Args:
        folders: folders that no table of the catalog has. One with a metadata file was a table's, and is left alone, unless that file is
            the first one, of a statement that has left its note here.
        running: the prefixes of statements that run in this connector.
        age: how old a folder must be in which no statement has left a note.
    """
    for folder in sorted(folders):
        if not _FOLDER.fullmatch(folder.name):
            continue
        found, statement, process, since = orphaned_path(folder), "", "", timedelta()
        now = datetime.now(UTC)
        with suppress(OSError):
            for note in folder.glob(f"data/*{SUFFIX}"):
                statement, process = note.name.removesuffix(SUFFIX), note.read_text(errors="replace")
                since = now - datetime.fromtimestamp(note.stat().st_mtime, UTC)
        if statement in running or (process and _note_of(process, since).may_run(age)) or not _is_unmade(folder, statement):
            continue
        old = found.modified is not None and now.timestamp() - found.modified > age.total_seconds()
        if process or old:
            yield orphaned_path(folder, statement.rsplit("-", 1)[0], process)


def dropped_folder(folder: Path, process: str, age: timedelta) -> Orphan | None:
    """Return the folder of a dropped table as an orphan; None if it is gone, or is being removed.

    Args:
        folder: the folder.
        process: the process that removes it, ``""`` if it has given up.
        age: how old the folder must be at least, if that process cannot be seen from here.
    """
    found = orphaned_path(folder, process=process)
    if found.modified is None:
        return None
    since = datetime.now(UTC) - datetime.fromtimestamp(found.modified, UTC)
    return None if process and _note_of(process, since).may_run(age) else found


def _is_unmade(folder: Path, statement: str) -> bool:
    """Return whether no table can have been in a folder: at most the first metadata file, and lists of one statement, are there."""
    files = [file.name for file in folder.glob("metadata/*") if not file.name.endswith(".metadata.json")]
    metadata = [file.name for file in folder.glob("metadata/*.metadata.json")]
    own = bool(statement) and all(_SNAPSHOT.sub("", name, count=1).startswith(f"{statement}-") for name in files)
    return not metadata or (own and len(metadata) == 1 and metadata[0].startswith("00000-"))


def _since(file: File, now: datetime) -> timedelta:
    return now - file.modified if file.modified is not None else timedelta()


def _modified(file: File) -> float | None:
    return file.modified.timestamp() if file.modified is not None else None


def _manifest_list(io: Any, location: str) -> str | None:
    """Return the list of manifests of the snapshot that a metadata file makes the current one; None for half a file."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.serializers import FromInputFile

    try:
        snapshot = FromInputFile.table_metadata(io.new_input(location)).current_snapshot()
    except (OSError, ValueError, EOFError, ValidationError):
        return None
    return snapshot.manifest_list if snapshot is not None else ""


def _read(io: Any, location: str) -> str | None:
    """Read a note; None if it is gone by now."""
    try:
        with io.new_input(location).open() as file:
            return str(file.read().decode(errors="replace"))
    except FileNotFoundError:
        return None


def lower_name(table: Table) -> SchemaTableName:
    """Return a table's name as statements have it."""
    return SchemaTableName(*(str(part).lower() for part in table.name()[-2:]))


def known_files(table: Table, *, strict: bool = True) -> set[str]:
    """Return the places of all files that a table's metadata speaks of, those of its older snapshots included.

    Args:
        table: the table.
        strict: what cannot be read is raised; else it is passed over.
    """
    errors = () if strict else (Exception,)
    metadata = table.metadata
    known = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    known |= {statistics.statistics_path for statistics in (*metadata.statistics, *metadata.partition_statistics)}
    manifests = set()
    for snapshot in metadata.snapshots:
        known.add(snapshot.manifest_list)
        with suppress(*errors):
            manifests.update(snapshot.manifests(table.io))
    for manifest in manifests:
        known.add(manifest.manifest_path)
        with suppress(*errors):
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
            known.update(entry.data_file.file_path for entry in entries)
    return set(places_of(known))


def _files_of(table: Table, snapshots: Collection[int]) -> set[str]:
    """Return the locations of the files that some snapshots of a table consist of, lists of manifests and manifests among them."""
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
    """Return the locations of the files that a table will have no use for when some of its snapshots are gone."""
    known = {one.snapshot_id for one in table.metadata.snapshots}
    files = _files_of(table, expired) - _files_of(table, known - set(expired))
    statistics = (*table.metadata.statistics, *table.metadata.partition_statistics)
    return files | {one.statistics_path for one in statistics if one.snapshot_id in expired}


def files_below(folder: Path) -> set[str]:
    """Return the places of the files in a folder, but those of metadata."""
    files = (f"{at}/{name}" for at, _, names in os.walk(folder) for name in names)
    return set(places_of(file for file in files if not file.endswith(".metadata.json")))
