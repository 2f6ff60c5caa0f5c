"""What a table's own metadata must not decide: classes to import, connections, and files of others to remove."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO, InputFile, OutputFile, load_file_io
from pyiceberg.table import Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.update import RemovePropertiesUpdate, SetPropertiesUpdate
from pyiceberg.typedef import EMPTY_DICT

from rowmerge_nb.base.errors import checked
from rowmerge_nb.connectors.iceberg.files import places_of
from rowmerge_nb.connectors.iceberg.servers import (
    local_path,
    named_servers,
    require_reachable,
    require_readable,
    with_servers,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.table import StagedTable
    from pyiceberg.table.locations import LocationProvider
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from pyiceberg.typedef import Identifier

_PROVIDER: Final = "write.py-location-provider.impl"


class CheckedFiles(FileIO):
    """Access to files by the catalog's connections, on the servers that its configuration names.

    Args:
        files: pyiceberg's access.
        properties: the properties of the connections, and the servers.
        folder: where the metadata file lies by which the catalog knows the table.
    """

    def __init__(self, files: FileIO, properties: Mapping[str, Any], folder: str = "") -> None:
        super().__init__(dict(properties))
        self.folder = folder
        self._files = files

    def _check(self, location: str) -> None:
        require_reachable(self.properties, location)
        path = local_path(location)
        if path is not None:
            require_readable(path)

    def new_input(self, location: str) -> InputFile:
        """Return a file to read.

        Raises:
            ConnectorError: PERMISSION_DENIED, ICEBERG_BAD_DATA.
        """
        self._check(location)
        return self._files.new_input(location)

    def new_output(self, location: str) -> OutputFile:
        """Return a file to write.

        Raises:
            ConnectorError: PERMISSION_DENIED, ICEBERG_BAD_DATA.
        """
        self._check(location)
        return self._files.new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        """Remove a file.

        Raises:
            ConnectorError: PERMISSION_DENIED.
        """
        require_reachable(self.properties, location if isinstance(location, str) else location.location)
        self._files.delete(location)


def checked_files(properties: Mapping[str, Any], location: str) -> CheckedFiles:
    """Return the access to the files of a location.

    Args:
        properties: the properties of a catalog's connections, with the servers.
        location: the location, whose scheme chooses the library.

    Raises:
        ConnectorError: PERMISSION_DENIED.
    """
    require_reachable(properties, location)
    return CheckedFiles(load_file_io(dict(properties), location), properties)


def provider_of(location: str, properties: Mapping[str, str], configured: Mapping[str, Any]) -> LocationProvider:
    """Return what names a table's new files: a class of the catalog's configuration, or one of pyiceberg's own.

    Args:
        location: the table's location.
        properties: the table's properties.
        configured: the properties of the catalog.
    """
    return load_location_provider(location, {**_without_provider(properties), **_provider(configured)})


def _provider(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name == _PROVIDER}


def _without_provider(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name != _PROVIDER}


class _GuardedTable(Table):
    """A table whose files are named by the catalog's configuration."""

    def location_provider(self) -> LocationProvider:
        """Return what names new files."""
        return provider_of(self.metadata.location, self.metadata.properties, self.catalog.properties)


class GuardedCatalog(Catalog):
    """A catalog that hands tables out and commits them by its own configuration alone; put before the class of a catalog."""

    trusts_entries = True
    """The catalog is a service of its own, whose word on where a table's metadata file lies may be taken."""
    vends_connections = False
    """What it calls the properties of a table's connections are its own, and not those of the table's metadata."""

    def load_table(self, identifier: str | Identifier) -> Table:
        """Return a table."""
        table = super().load_table(identifier)  # type: ignore[safe-super]
        return _GuardedTable(table.name(), table.metadata, table.metadata_location, table.io, table.catalog, table.config)

    def _load_file_io(self, properties: Mapping[str, Any] = EMPTY_DICT, location: str | None = None) -> FileIO:
        vended = dict(properties) if self.vends_connections else {}
        named = (location,) if location and self.trusts_entries else ()
        servers = named_servers({**self.properties, **vended}, named)
        if location:
            require_reachable(with_servers({}, servers), location)
        files = super()._load_file_io(vended, location)
        folder = location.rpartition("/")[0] if location else ""
        return CheckedFiles(files, with_servers(files.properties, servers), folder)

    def _response_to_table(self, identifier_tuple: tuple[str, ...], table_response: Any) -> Table:
        """Return a table of a REST catalog: its connections are what the catalog says of them, without the table's properties."""
        bare = _without_properties(table_response)
        table: Table = super()._response_to_table(identifier_tuple, bare)  # type: ignore[misc]
        table.metadata = table_response.metadata
        return table

    def _response_to_staged_table(self, identifier_tuple: tuple[str, ...], table_response: Any) -> StagedTable:
        bare = _without_properties(table_response)
        table: StagedTable = super()._response_to_staged_table(identifier_tuple, bare)  # type: ignore[misc]
        table.metadata = table_response.metadata
        return table

    def _update_and_stage_table(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        """Return a table as a commit makes it: pyiceberg takes the provider's class from its properties, so it is put in afterwards."""
        named = _provider(current_table.metadata.properties) if current_table is not None else {}
        for update in updates:
            if isinstance(update, SetPropertiesUpdate):
                named |= _provider(update.updates)
            elif isinstance(update, RemovePropertiesUpdate) and _PROVIDER in update.removals:
                named = {}
        if named:
            current_table = None if current_table is None else _without_class(current_table)
            updates = tuple(map(_update_without_class, updates))
        commit: Any = super()
        staged: StagedTable = commit._update_and_stage_table(current_table, table_identifier, requirements, updates)  # noqa: SLF001
        if named:
            staged.metadata = _with_properties(staged.metadata, {**staged.metadata.properties, **named})
        if current_table is not None:
            # Where the new metadata file goes, the table's properties say, and that makes no server trusted.
            staged.io = current_table.io
        return staged

    def _delete_old_metadata(self, io: FileIO, base: TableMetadata, metadata: TableMetadata) -> None:  # type: ignore[override]
        """Remove former metadata files, where the table wants that: those beside the one by which the catalog knows it."""
        folder = io.folder if isinstance(io, CheckedFiles) else ""
        files = places_of([f"{folder}/.", *(entry.metadata_file for entry in base.metadata_log)])
        beside = [
            entry
            for entry, file in zip(base.metadata_log, files[1:], strict=True)
            if file.rpartition("/")[0] == files[0].rpartition("/")[0] and ".metadata.json" in file
        ]
        super()._delete_old_metadata(io, base.model_copy(update={"metadata_log": beside}), metadata)


def guard(catalog: Catalog) -> Catalog:
    """Make a catalog use its own configuration only, from now on; the same object is returned.

    Args:
        catalog: a catalog of pyiceberg's, or of a class of your own that is derived from ``pyiceberg.catalog.Catalog``.

    Raises:
        RowMergeError: INVALID_ARGUMENTS, it is not a catalog.
    """
    of = type(checked(catalog, "catalog", Catalog, "a catalog of pyiceberg's, or the name of one"))
    if not issubclass(of, GuardedCatalog):
        vends = hasattr(of, "_response_to_table")
        catalog.__class__ = type(of.__name__, (GuardedCatalog, of), {"__module__": of.__module__, "vends_connections": vends})
    return catalog


def _with_properties(metadata: TableMetadata, properties: Mapping[str, str]) -> TableMetadata:
    return metadata.model_copy(update={"properties": dict(properties)})


def _without_properties(response: Any) -> Any:
    return response.model_copy(update={"metadata": _with_properties(response.metadata, {})})


def _without_class(table: Table) -> Table:
    metadata = _with_properties(table.metadata, _without_provider(table.metadata.properties))
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)


def _update_without_class(update: TableUpdate) -> TableUpdate:
    if isinstance(update, SetPropertiesUpdate):
        return update.model_copy(update={"updates": _without_provider(update.updates)})
    if isinstance(update, RemovePropertiesUpdate):
        return update.model_copy(update={"removals": [name for name in update.removals if name != _PROVIDER]})
    return update
