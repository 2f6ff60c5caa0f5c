"""Which files are a table's own, whatever its metadata names: metadata is written by everybody who may write into the warehouse."""

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
_NAME: Final = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|-[0-9a-f]{8}-writer$")
"""What writers of Iceberg put into the name of every file, so that no other file has it."""


def own_folder(table: Table) -> str | None:
    """Return the place of a table's own folder: the location in its metadata, if the catalog's metadata file confirms it.

    The catalog says where the metadata file is. A location that is not the folder of that file is only what the metadata says. So is one
    that the table was given later: its earlier metadata files are in another folder.
    """
    files = [table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)]
    folders = {place.rpartition("/")[0] for place in places_of([f"{table.location().rstrip('/')}/{_METADATA}/x", *files])}
    return folders.pop().removesuffix(f"/{_METADATA}") if len(folders) == 1 else None


class Ownership:
    """The files that may be removed for a table.

    They are those in its own folder, unless they are in the folder of another table within that, or of one that cannot be read. Outside of it, in the folders that the
    table's properties name, they are files with names that writers of Iceberg make, if no table's folder is around them.

    Args:
        table: the table.
        others: all other tables of its catalog.
        fences: folders of tables that cannot be read.
    """

    def __init__(self, table: Table, others: Iterable[Table], fences: Iterable[str] = ()) -> None:
        self._own = own_folder(table)
        self._fences = [fence for fence in fences if fence == self._own or self._is_nearer(fence)]
        self._others = {folder for folder in map(own_folder, others) if folder is not None and folder != self._own}
        named = (table.location(), *(table.properties.get(f"write.{kind}.path", "") for kind in ("data", "metadata")))
        [self._metadata, *places] = places_of(
            [table.metadata_location, *(f"{folder.rstrip('/')}/x" for folder in named if folder)]
        )
        self._named = [place.removesuffix("/x") for place in places]
        self._foreign: dict[Path, bool] = {}

    def has(self, place: str) -> bool:
        """Return whether a file is the table's own, by its place as `places_of` gives it: a link leads out of a folder."""
        if {"..", "."} & set(place.split("/")) or any(_is_below(place, fence) for fence in self._fences):
            return False
        if any(_is_below(place, other) for other in self._others if self._is_nearer(other)):
            return False
        if self._own is not None and _is_below(place, self._own):
            return True
        if not any(_is_below(place, folder) for folder in self._named) or not _NAME.search(place.rpartition("/")[2]):
            return False
        return local_path(place) is None or not self._is_of_another(Path(place).parent)

    def _is_nearer(self, other: str) -> bool:
        """Return whether files in the folder of another table are its own, although this table's folder is around them."""
        return self._own is None or not _is_below(self._own, other)

    def _is_of_another(self, folder: Path) -> bool:
        """Return whether a folder on the local disk is within that of a table, of any catalog."""
        if folder not in self._foreign:
            found = any(
                str(file) != self._metadata and str(file.parent) != str(Path(self._metadata).parent)
                for file in (folder / _METADATA).glob("*.metadata.json")
            )
            self._foreign[folder] = found or (folder != folder.parent and self._is_of_another(folder.parent))
        return self._foreign[folder]


def _is_below(place: str, folder: str) -> bool:
    return place.startswith(f"{folder.rstrip('/')}/")
