"""All tables of a catalog, and the files that they reference, which are never removed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import message_of
from rowmerge_nb.connectors.iceberg.files import places_of
from rowmerge_nb.connectors.iceberg.housekeeping import known_files, lower_name
from rowmerge_nb.connectors.iceberg.ownership import Ownership, named_locations, own_folder
from rowmerge_nb.spi import SchemaTableName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyiceberg.table import Table


_METADATA: Final = "/metadata"


@dataclass
class Census:
    tables: list[Table] = field(default_factory=list)
    known_paths: set[str] = field(default_factory=set)
    errors: dict[SchemaTableName, Exception] = field(default_factory=dict)
    _folders: set[str] = field(default_factory=set)
    _named_folders: set[str] = field(default_factory=set)

    @property
    def sentences(self) -> list[str]:
        return [
            f"Table '{name}' and its files were skipped: {message_of(error)}"
            for name, error in sorted(self.errors.items(), key=str)
        ]

    def add(
        self, name: SchemaTableName, table: Table, list_files: Callable[[Table], set[str]]
    ) -> None:
        try:
            self.known_paths |= list_files(table)
        except Exception as error:  # noqa: BLE001 - a damaged table must not keep others from being looked after
            self.skip(name, error, [table.metadata_location], table)
        else:
            self.tables.append(table)

    def refuse(self, table: Table, error: Exception) -> None:
        """Skip a table whose folders cannot be listed."""
        name = lower_name(table)
        self.tables = [one for one in self.tables if one.name() != table.name()]
        if name not in self.errors:
            self.skip(name, error, [table.metadata_location], table)

    def skip(
        self,
        name: SchemaTableName,
        error: Exception,
        metadata_files: Iterable[str],
        table: Table | None = None,
    ) -> None:
        """Skip a table.

        Args:
            metadata_files: the candidates for its metadata file, if known.
        """
        self.errors[name] = error
        self._folders |= set(map(_folder_of, metadata_files))
        if table is None:
            return
        self.known_paths |= known_files(table, strict=False)
        paths = places_of(f"{location.rstrip('/')}/x" for location in named_locations(table))
        self._named_folders |= {path.removesuffix("/x") for path in paths}
        self._named_folders |= {
            _folder_of(entry.metadata_file) for entry in table.metadata.metadata_log
        }

    def ownership(self, table: Table) -> Ownership:
        own = [folder for folder in map(own_folder, self.tables) if folder is not None]
        # An unreadable table does not protect the folder of another table by naming it.
        claimed = {f"{folder}{below}" for folder in own for below in ("", "/data", _METADATA)}
        others = [other for other in self.tables if other.name() != table.name()]
        return Ownership(table, others, self._folders | (self._named_folders - claimed))


def _folder_of(metadata_location: str) -> str:
    [path] = places_of([metadata_location])
    return path.rpartition("/")[0].removesuffix(_METADATA)
