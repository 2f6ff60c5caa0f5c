"""Which files are a table's own; its metadata is not trusted, since others can change it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.connectors.iceberg.files import places_of
from rowmerge_nb.connectors.iceberg.servers import local_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyiceberg.table import Table

_METADATA: Final = "metadata"
_NAME: Final = re.compile(
    r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|-[0-9a-f]{8}-writer$"
)
"""The unique part that Iceberg writers put in every file's name."""


def own_folder(table: Table) -> str | None:
    """Return a table's own folder: its location, if all of its metadata files in the catalog and
    the log are there.
    """
    files = [
        table.metadata_location,
        *(entry.metadata_file for entry in table.metadata.metadata_log),
    ]
    folders = {
        path.rpartition("/")[0]
        for path in places_of([f"{table.location().rstrip('/')}/{_METADATA}/x", *files])
    }
    return folders.pop().removesuffix(f"/{_METADATA}") if len(folders) == 1 else None


def named_locations(table: Table) -> list[str]:
    """Return the locations that a table's properties name: its own, and those of data and metadata."""
    paths = (table.properties.get(f"write.{folder}.path", "") for folder in ("data", "metadata"))
    return [location for location in (table.location(), *paths) if location]


class Ownership:
    """The files that may be removed for a table.

    In its own folder, these are all files outside of folders of other or unreadable tables.
    Elsewhere, in folders that the table's properties name, they are files with names of Iceberg
    writers, outside of any other table's folder.
    """

    def __init__(self, table: Table, others: Iterable[Table], fences: Iterable[str] = ()) -> None:
        self._own = own_folder(table)
        self._fences = [fence for fence in fences if fence == self._own or self._is_nearer(fence)]
        self._others = {
            folder
            for folder in map(own_folder, others)
            if folder is not None and folder != self._own
        }
        [self._metadata, *paths] = places_of(
            [
                table.metadata_location,
                *(f"{location.rstrip('/')}/x" for location in named_locations(table)),
            ]
        )
        self._named_folders = [path.removesuffix("/x") for path in paths]
        self._foreign: dict[Path, bool] = {}

    def has(self, path: str) -> bool:
        """Return whether a file is the table's own, by its path from `places_of`, where links are
        resolved.
        """
        if {"..", "."} & set(path.split("/")) or any(
            _is_below(path, fence) for fence in self._fences
        ):
            return False
        if any(_is_below(path, other) for other in self._others if self._is_nearer(other)):
            return False
        if self._own is not None and _is_below(path, self._own):
            return True
        if not any(_is_below(path, folder) for folder in self._named_folders) or not _NAME.search(
            path.rpartition("/")[2]
        ):
            return False
        return local_path(path) is None or not self._is_of_another(Path(path).parent)

    def _is_nearer(self, other: str) -> bool:
        return self._own is None or not _is_below(self._own, other)

    def _is_of_another(self, folder: Path) -> bool:
        if folder not in self._foreign:
            is_foreign = any(
                str(file) != self._metadata and str(file.parent) != str(Path(self._metadata).parent)
                for file in (folder / _METADATA).glob("*.metadata.json")
            )
            self._foreign[folder] = is_foreign or (
                folder != folder.parent and self._is_of_another(folder.parent)
            )
        return self._foreign[folder]


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder.rstrip('/')}/")
