"""All tables of a catalog with the files that they know, and those among them that cannot be read: nothing that these name is removed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import RowMergeError, error_text
from rowmerge_nb.connectors.iceberg.files import places_of
from rowmerge_nb.connectors.iceberg.housekeeping import known_files, lower_name
from rowmerge_nb.connectors.iceberg.ownership import Ownership, own_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pyiceberg.table import Table

    from rowmerge_nb.spi.handles import SchemaTableName

_METADATA: Final = "/metadata"


@dataclass
class Census:
    """The tables of a catalog.

    Args:
        tables: the tables that can be read.
        known: the places of all files that tables speak of, as far as they can be read.
        errors: why tables are left out, by their names.
    """

    tables: list[Table] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    errors: dict[SchemaTableName, Exception] = field(default_factory=dict)
    _folders: set[str] = field(default_factory=set)
    _named: set[str] = field(default_factory=set)

    @property
    def sentences(self) -> list[str]:
        """What is left out, and why."""
        return [
            f"Table '{name}' and its files were left out: {_text(error)}" for name, error in sorted(self.errors.items(), key=str)
        ]

    def add(self, name: SchemaTableName, table: Table, known: Callable[[Table], set[str]]) -> None:
        """Add a table; it is left out if its files are not known.

        Args:
            name: its name.
            table: the table.
            known: returns the places of the files that it speaks of.
        """
        try:
            self.known |= known(table)
        except Exception as error:  # noqa: BLE001 - a damaged table must not keep others from being looked after
            self.leave_out(name, error, [table.metadata_location], table)
        else:
            self.tables.append(table)

    def refuse(self, table: Table, error: Exception) -> None:
        """Leave a table out after all, whose folders cannot be looked at."""
        name = lower_name(table)
        self.tables = [one for one in self.tables if one.name() != table.name()]
        if name not in self.errors:
            self.leave_out(name, error, [table.metadata_location], table)

    def leave_out(
        self, name: SchemaTableName, error: Exception, metadata_files: Iterable[str], table: Table | None = None
    ) -> None:
        """Leave a table out.

        Args:
            name: its name.
            error: why.
            metadata_files: its metadata file, if the catalog says where that is; several if several tables may be meant.
            table: the table, if its metadata can be read.
        """
        self.errors[name] = error
        self._folders |= set(map(_folder_of, metadata_files))
        if table is None:
            return
        self.known |= known_files(table, strict=False)
        named = (table.location(), *(table.properties.get(f"write.{kind}.path", "") for kind in ("data", "metadata")))
        places = places_of(f"{location.rstrip('/')}/x" for location in named if location)
        self._named |= {place.removesuffix("/x") for place in places}
        self._named |= {_folder_of(entry.metadata_file) for entry in table.metadata.metadata_log}

    def ownership(self, table: Table) -> Ownership:
        """Return which files may be removed for a table."""
        own = [folder for folder in map(own_folder, self.tables) if folder is not None]
        # A table that cannot be read keeps no other one from its own folder by naming that.
        claimed = {f"{folder}{below}" for folder in own for below in ("", "/data", _METADATA)}
        others = [other for other in self.tables if other.name() != table.name()]
        return Ownership(table, others, self._folders | (self._named - claimed))


def _text(error: Exception) -> str:
    return error.message if isinstance(error, RowMergeError) else error_text(error)


def _folder_of(metadata_location: str) -> str:
    [place] = places_of([metadata_location])
    return place.rpartition("/")[0].removesuffix(_METADATA)
