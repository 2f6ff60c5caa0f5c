"""Removal of leftovers of failed attempts, and of unreferenced files."""

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
from rowmerge_nb.spi import Orphan, ProcedureOutcome, SchemaTableName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pyiceberg.table import Table


_PREFIX: Final = re.compile(
    r"(.+)-[0-9a-f]{8}-([0-9a-f]{32}.*\.(?:parquet|puffin)|writer|[0-9a-f-]{36}(-m\d+)?\.avro)"
)
"""The name of a statement's file; the first group is the statement."""
_FOLDER: Final = re.compile(r".+-[0-9a-f]{32}")
"""The name of a new table's folder in a warehouse."""
_SNAPSHOT: Final = re.compile(r"snap-\d+-\d+-")
"""The start of the name of a manifest list, before the statement."""
_COMMITTING: Final = timedelta(minutes=1)
"""The time in which a note or a metadata file is written completely, unless its writer has died."""
_DAY: Final = timedelta(days=1)
_ATTEMPTS: Final = 10
"""The number of commit attempts of a statement whose metadata files are recognized by name."""


def remove_folder(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class File:
    """A file in a folder; `location` has the form of the folder's location."""

    location: str
    size: int | None
    modified: datetime | None
    is_link: bool = False

    @property
    def name(self) -> str:
        return self.location.rpartition("/")[2]


def _listed(io: Any, location: str, *, recursive: bool = True) -> Iterator[File]:
    path = local_path(location)
    if path is not None:
        prefix = location[: len(location) - len(path)] if location.endswith(path) else "file://"
        yield from _on_disk(path, prefix, recursive=recursive)
        return
    from pyiceberg.io.pyarrow import PyArrowFileIO

    require_reachable(io.properties, location)
    # The catalog may use another FileIO; this one can list files.
    lister = PyArrowFileIO(io.properties)
    scheme, netloc, path = lister.parse_location(location, lister.properties)
    system = lister.fs_by_scheme(scheme, netloc)
    prefix = location[: len(location) - len(path)]
    for info in system.get_file_info(
        fs.FileSelector(path, recursive=recursive, allow_not_found=True)
    ):
        if info.type == fs.FileType.File:
            yield File(f"{prefix}{info.path}", info.size, info.mtime)


def _on_disk(path: str, prefix: str, *, recursive: bool) -> Iterator[File]:
    for folder, folders, names in (
        os.walk(path) if recursive else itertools.islice(os.walk(path), 1)
    ):
        for name in (*names, *(name for name in folders if Path(folder, name).is_symlink())):
            # Files may disappear meanwhile.
            with suppress(OSError):
                state = os.lstat(f"{folder}/{name}")
                is_link = stat.S_ISLNK(state.st_mode)
                if is_link or stat.S_ISREG(state.st_mode):
                    modified = datetime.fromtimestamp(state.st_mtime, UTC)
                    yield File(f"{prefix}{folder}/{name}", state.st_size, modified, is_link)


@dataclass
class Removal:
    """The removal of a table's unreferenced files, and why others stay."""

    io: Any
    removed: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def remove(self, location: str) -> None:
        """Remove a file; a missing file counts as removed."""
        try:
            remove_location(self.io, location)
        except Exception as error:  # noqa: BLE001 - all others are removed
            self.reasons[location] = error_text(error)
        else:
            self.removed.append(location)

    def report(self, outcome: ProcedureOutcome) -> None:
        outcome.metrics["deleted_files_count"] = len(self.removed)
        outcome.metrics["left_files_count"] = len(self.reasons)
        if self.removed:
            outcome.notices.append(
                f"{_were(len(self.removed))} removed: {_shortened(self.removed)}"
            )
        for reason, group in itertools.groupby(
            sorted(self.reasons.items(), key=lambda pair: pair[1]), key=lambda pair: pair[1]
        ):
            locations = [location for location, _ in group]
            outcome.notices.append(
                f"{_were(len(locations))} left ({reason}): {_shortened(locations)}"
            )
        outcome.notices.extend(self.problems)


NOT_OWN: Final = "not in the table's own folder"
"""Why a file that metadata names is not removed."""
UNREAD: Final = "another table cannot be read, and may need them"
_LINK: Final = "links are not followed"
_SHOWN: Final = 5


def _were(count: int) -> str:
    return f"{plural(count, 'file')} {'was' if count == 1 else 'were'}"


def _shortened(locations: Sequence[str]) -> str:
    more = len(locations) - _SHOWN
    return ", ".join((*sorted(locations)[:_SHOWN], *([f"and {more} more"] if more > 0 else ())))


def has_files(io: Any, location: str, *, deep: bool = True) -> bool:
    """Return whether a location contains files; OSError if it cannot be listed, ValueError for an
    unknown scheme.
    """
    path = local_path(location.rstrip("/"))
    if path is None:
        return next(_listed(io, location.rstrip("/"), recursive=deep), None) is not None
    with suppress(FileNotFoundError):
        os.lstat(path)
    walk = os.walk(path) if deep else itertools.islice(os.walk(path), 1)
    return Path(path).is_file() or any(
        names or any(Path(at, one).is_symlink() for one in folders) for at, folders, names in walk
    )


def remove_attempts(
    io: Any,
    folders: Collection[str],
    prefixes: Collection[str],
    committed: Collection[str],
    *,
    deep: bool,
) -> None:
    """Remove files of ended statements that were not committed; raise the first OSError at the end."""
    failures: list[OSError] = []
    marks = tuple(f"{prefix}-" for prefix in prefixes)
    # Tasks stop writing once their note is gone.
    for folder, prefix in itertools.product(sorted(folders), prefixes):
        with suppress(OSError):
            remove_location(io, f"{folder}/{prefix}{SUFFIX}")
    for folder in sorted(folders):
        for file in list(_listed(io, folder, recursive=deep)):
            mine = _SNAPSHOT.sub("", file.name, count=1).startswith(marks) and not file.is_link
            if mine and file.location not in committed:
                try:
                    remove_location(io, file.location)
                except OSError as error:
                    failures.append(error)
    if failures:
        raise failures[0]


def remove_location(io: Any, location: str) -> None:
    with suppress(FileNotFoundError):
        io.delete(location)


@dataclass(frozen=True)
class Note:
    """The note of a statement, and the state of its process at the same moment; the process may
    commit and end later.

    Args:
        process: the process in the note; ``""`` for an empty note, None for a note that
            disappeared.
    """

    process: str | None
    since: timedelta
    is_alive: bool | None

    def may_run(self, age: timedelta) -> bool:
        """Return whether the statement may still have been running.

        The heartbeat of a process on another machine expires after a day or `age`, whichever is
        longer.
        """
        if self.process is None:
            return True
        if not self.process:
            return self.since <= _COMMITTING
        return self.since <= max(age, _DAY) if self.is_alive is None else self.is_alive

    @property
    def is_abandoned(self) -> bool:
        return self.process is not None and (
            self.is_alive is False or (self.process == "" and self.since > _COMMITTING)
        )


def _note_of(process: str | None, since: timedelta) -> Note:
    return Note(process, since, is_alive(process) if process else None)


@dataclass(frozen=True)
class Listing:
    table: Table
    files: Mapping[str, Sequence[File]]
    notes: Mapping[str, Note]
    at: datetime

    def protected(self, age: timedelta) -> set[str]:
        """Return the prefixes of the statements that may still run."""
        return {prefix for prefix, note in self.notes.items() if note.may_run(age)}

    def abandoned(self) -> set[str]:
        """Return the prefixes of the statements of dead processes."""
        return {prefix for prefix, note in self.notes.items() if note.is_abandoned}


def listing_of(table: Table) -> Listing:
    """List a table's files, then its notes, then check which of their processes live.

    Read the tables after that: every listed file has its note unless its statement has ended, and
    an ended process commits nothing later.
    """
    io: Any = table.io
    location = table.location().rstrip("/")
    folders = {f"{location}/{folder}" for folder in ("data", "metadata")}
    folders |= {
        path.rstrip("/")
        for folder in ("data", "metadata")
        if (path := table.properties.get(f"write.{folder}.path"))
    }
    roots = [
        folder
        for folder in sorted(folders)
        if not any(folder.startswith(f"{other}/") for other in folders)
    ]
    files = {folder: list(_listed(io, folder)) for folder in roots}
    now = datetime.now(UTC)
    notes = [
        file
        for folder in roots
        for file in _listed(io, folder)
        if file.name.endswith(SUFFIX) and not file.is_link
    ]
    read = {
        file.name.removesuffix(SUFFIX): _note_of(_read(io, file.location), _since(file, now))
        for file in notes
    }
    return Listing(table, files, read, now)


@dataclass(frozen=True)
class Search:
    """A search for orphans in a table's folders.

    Args:
        known_paths: the files that any table of the catalog references, read after the listing.
        ended_prefixes: those of its ended statements, whose leftovers are orphans at any age.
        is_shared: whether a folder may contain files of others.
        reasons: why unreferenced files are not orphans, by location.
    """

    listing: Listing
    known_paths: Collection[str]
    running: Collection[str]
    ended_prefixes: Collection[str]
    age: timedelta
    owns: Callable[[str], bool]
    is_shared: Callable[[str], bool]
    reasons: dict[str, str] = field(default_factory=dict)

    def orphans(self) -> list[Orphan]:
        """Return the orphans, notes first: a statement without its note does not commit."""
        orphans = [orphan for folder in self.listing.files for orphan in self._orphans_in(folder)]
        return sorted(orphans, key=lambda orphan: not orphan.name.endswith(SUFFIX))

    def _orphans_in(self, folder: str) -> Iterator[Orphan]:
        listing, running = self.listing, set(self.running)
        ended_prefixes = {*listing.abandoned(), *self.ended_prefixes} - running
        protected = tuple(
            f"{prefix}-" for prefix in {*listing.protected(self.age), *running} - ended_prefixes
        )
        removable = tuple(f"{prefix}-" for prefix in ended_prefixes)
        age, files = None if self.is_shared(folder) else self.age, listing.files[folder]
        for file, path in zip(files, places_of(file.location for file in files), strict=True):
            if path in self.known_paths or file.name == "version-hint.text":
                continue
            if file.is_link or not self.owns(path):
                self.reasons[file.location] = _LINK if file.is_link else NOT_OWN
                continue
            by, since = self._writer_of(file), _since(file, listing.at)
            if by is not None and by.startswith(removable):
                yield self._orphan(file, by)
            elif age is None or (by is not None and by.startswith(protected)):
                continue
            elif file.name.endswith(".metadata.json"):
                # The catalog chooses its name, so a running statement may be committing it. An
                # incomplete file is useless.
                if not protected and since > (
                    _COMMITTING if by is None and ended_prefixes else max(age, _COMMITTING)
                ):
                    yield self._orphan(file, "")
            elif since > age:
                yield self._orphan(file, by or "")

    @cached_property
    def _metadata_files(self) -> Mapping[str, str]:
        """The prefixes of known statements, by the ids in the names of their metadata files."""
        prefixes = {*self.listing.notes, *self.ended_prefixes, *self.running}
        return {
            str(metadata_id(prefix, attempt)): prefix
            for prefix in prefixes
            for attempt in range(_ATTEMPTS)
        }

    def _writer_of(self, file: File) -> str | None:
        """Return the statement's prefix and what follows it, ``""`` if unknown, None for an incomplete
        metadata file.
        """
        if not file.name.endswith(".metadata.json"):
            return _SNAPSHOT.sub("", file.name, count=1)
        prefix = self._metadata_files.get("-".join(file.name.split(".")[0].split("-")[1:]))
        if prefix is not None:
            return f"{prefix}-"
        # A file older than a day is not committed anymore.
        if _since(file, self.listing.at) >= _DAY:
            return ""
        manifest_list = _manifest_list(self.listing.table.io, file.location)
        # A referenced list was committed by another metadata file; this file belongs to a later
        # change.
        if not manifest_list or not set(places_of([manifest_list])).isdisjoint(self.known_paths):
            return None if manifest_list is None else ""
        return _SNAPSHOT.sub("", manifest_list.rsplit("/", 1)[-1], count=1)

    def _orphan(self, file: File, by: str) -> Orphan:
        statement = _PREFIX.fullmatch(by)
        process = next(
            (
                note.process
                for prefix, note in self.listing.notes.items()
                if by.startswith(f"{prefix}-")
            ),
            "",
        )
        return Orphan(
            file.location,
            file.size,
            file.modified.timestamp() if file.modified is not None else None,
            statement[1] if statement is not None else "",
            process or "",
        )


def folders_without_table(
    folders: Collection[Path], running: Collection[str], age: timedelta
) -> Iterator[Orphan]:
    """Yield the folders in a warehouse whose tables were never committed.

    Args:
        folders: folders without a table. One with a metadata file is skipped, unless a statement
            left its note and that first file.
    """
    for folder in sorted(folders):
        if not _FOLDER.fullmatch(folder.name):
            continue
        orphan, statement, process, since = orphaned_path(folder), "", "", timedelta()
        now = datetime.now(UTC)
        with suppress(OSError):
            for note in folder.glob(f"data/*{SUFFIX}"):
                statement = note.name.removesuffix(SUFFIX)
                process = note.read_text(errors="replace")
                since = now - datetime.fromtimestamp(note.stat().st_mtime, UTC)
        if (
            statement in running
            or (process and _note_of(process, since).may_run(age))
            or not _was_never_committed(folder, statement)
        ):
            continue
        old = (
            orphan.modified is not None and now.timestamp() - orphan.modified > age.total_seconds()
        )
        if process or old:
            yield orphaned_path(folder, statement.rsplit("-", 1)[0], process)


def dropped_folder(folder: Path, process: str, age: timedelta) -> Orphan | None:
    """Return a dropped table's folder as an orphan; None if it is gone or `process` is still
    removing it.
    """
    orphan = orphaned_path(folder, process=process)
    if orphan.modified is None:
        return None
    since = datetime.now(UTC) - datetime.fromtimestamp(orphan.modified, UTC)
    return None if process and _note_of(process, since).may_run(age) else orphan


def _was_never_committed(folder: Path, statement: str) -> bool:
    files = [
        file.name for file in folder.glob("metadata/*") if not file.name.endswith(".metadata.json")
    ]
    metadata = [file.name for file in folder.glob("metadata/*.metadata.json")]
    own = bool(statement) and all(
        _SNAPSHOT.sub("", name, count=1).startswith(f"{statement}-") for name in files
    )
    return not metadata or (own and len(metadata) == 1 and metadata[0].startswith("00000-"))


def _since(file: File, now: datetime) -> timedelta:
    return now - file.modified if file.modified is not None else timedelta()


def _manifest_list(io: Any, location: str) -> str | None:
    """Return the current snapshot's manifest list, ``""`` without one, None for an incomplete file."""
    from pyiceberg.exceptions import ValidationError
    from pyiceberg.serializers import FromInputFile

    try:
        snapshot = FromInputFile.table_metadata(io.new_input(location)).current_snapshot()
    except (OSError, ValueError, EOFError, ValidationError):
        return None
    return snapshot.manifest_list if snapshot is not None else ""


def _read(io: Any, location: str) -> str | None:
    try:
        with io.new_input(location).open() as file:
            return str(file.read().decode(errors="replace"))
    except FileNotFoundError:
        return None


def lower_name(table: Table) -> SchemaTableName:
    return SchemaTableName(*(str(part).lower() for part in table.name()[-2:]))


def known_files(table: Table, *, strict: bool = True) -> set[str]:
    """Return the paths of all files that a table references, older snapshots included."""
    errors = () if strict else (Exception,)
    metadata = table.metadata
    locations = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    locations |= {
        statistics.statistics_path
        for statistics in (*metadata.statistics, *metadata.partition_statistics)
    }
    manifests = set()
    for snapshot in metadata.snapshots:
        locations.add(snapshot.manifest_list)
        with suppress(*errors):
            manifests.update(snapshot.manifests(table.io))
    for manifest in manifests:
        locations.add(manifest.manifest_path)
        with suppress(*errors):
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
            locations.update(entry.data_file.file_path for entry in entries)
    return set(places_of(locations))


def _files_of(table: Table, snapshots: Collection[int]) -> set[str]:
    locations, manifests = set[str](), {}
    for snapshot in table.metadata.snapshots:
        if snapshot.snapshot_id in snapshots:
            locations.add(snapshot.manifest_list)
            manifests.update({one.manifest_path: one for one in snapshot.manifests(table.io)})
    for path, manifest in manifests.items():
        locations.add(path)
        locations.update(
            entry.data_file.file_path for entry in manifest.fetch_manifest_entry(table.io)
        )
    return locations


def expired_files(table: Table, expired: Collection[int]) -> set[str]:
    """Return the locations of the files that only the expired snapshots need."""
    snapshot_ids = {one.snapshot_id for one in table.metadata.snapshots}
    files = _files_of(table, expired) - _files_of(table, snapshot_ids - set(expired))
    statistics = (*table.metadata.statistics, *table.metadata.partition_statistics)
    return files | {one.statistics_path for one in statistics if one.snapshot_id in expired}


def files_below(folder: Path) -> set[str]:
    files = (f"{at}/{name}" for at, _, names in os.walk(folder) for name in names)
    return set(places_of(file for file in files if not file.endswith(".metadata.json")))
