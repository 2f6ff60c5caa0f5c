"""What a table's own metadata must not decide: imported classes, connections, and the removal of
others' files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.io import FileIO, InputFile, OutputFile, load_file_io
from pyiceberg.table import Table
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.update import RemovePropertiesUpdate, SetPropertiesUpdate
from pyiceberg.typedef import EMPTY_DICT

from rowmerge_nb.base.arguments import checked
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
    """File access through the catalog's connections, restricted to the servers that its
    configuration names.
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
        self._check(location)
        return self._files.new_input(location)

    def new_output(self, location: str) -> OutputFile:
        self._check(location)
        return self._files.new_output(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        require_reachable(
            self.properties, location if isinstance(location, str) else location.location
        )
        self._files.delete(location)


def checked_files(properties: Mapping[str, Any], location: str) -> CheckedFiles:
    require_reachable(properties, location)
    return CheckedFiles(load_file_io(dict(properties), location), properties)


def provider_of(
    location: str, properties: Mapping[str, str], configured: Mapping[str, Any]
) -> LocationProvider:
    """Return the location provider: a class of the catalog's configuration, or one of pyiceberg's."""
    return load_location_provider(
        location, {**_without_provider(properties), **_provider(configured)}
    )


def _provider(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if name == _PROVIDER}


def _without_provider(properties: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in properties.items() if name != _PROVIDER}


class _GuardedTable(Table):
    """A table that takes its location provider from the catalog's configuration."""

    def location_provider(self) -> LocationProvider:
        return provider_of(
            self.metadata.location, self.metadata.properties, self.catalog.properties
        )


class GuardedCatalog(Catalog):
    """Loads and commits tables by the catalog's own configuration only."""

    trusts_entries = True
    """Whether the catalog is a separate service, whose metadata locations are trusted."""
    vends_connections = False
    """Whether the catalog itself supplies connection properties, separate from the table's
    metadata.
    """

    def load_table(self, identifier: str | Identifier) -> Table:
        table = super().load_table(identifier)  # type: ignore[safe-super]
        return _GuardedTable(
            table.name(),
            table.metadata,
            table.metadata_location,
            table.io,
            table.catalog,
            table.config,
        )

    def _load_file_io(
        self, properties: Mapping[str, Any] = EMPTY_DICT, location: str | None = None
    ) -> FileIO:
        vended = dict(properties) if self.vends_connections else {}
        trusted_locations = (location,) if location and self.trusts_entries else ()
        servers = named_servers({**self.properties, **vended}, trusted_locations)
        if location:
            require_reachable(with_servers({}, servers), location)
        files = super()._load_file_io(vended, location)
        folder = location.rpartition("/")[0] if location else ""
        return CheckedFiles(files, with_servers(files.properties, servers), folder)

    def _response_to_table(self, identifier_tuple: tuple[str, ...], table_response: Any) -> Table:
        """Convert a REST response with the catalog's connection properties, not the table's."""
        convert: Any = super()._response_to_table  # type: ignore[misc]
        table: Table = _converted(convert, identifier_tuple, table_response)
        return table

    def _response_to_staged_table(
        self, identifier_tuple: tuple[str, ...], table_response: Any
    ) -> StagedTable:
        convert: Any = super()._response_to_staged_table  # type: ignore[misc]
        table: StagedTable = _converted(convert, identifier_tuple, table_response)
        return table

    def _update_and_stage_table(
        self,
        current_table: Table | None,
        table_identifier: Identifier,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> StagedTable:
        """Stage a commit without the table's location provider, which pyiceberg would import; then
        add it back.
        """
        provider = _provider(current_table.metadata.properties) if current_table is not None else {}
        for update in updates:
            if isinstance(update, SetPropertiesUpdate):
                provider |= _provider(update.updates)
            elif isinstance(update, RemovePropertiesUpdate) and _PROVIDER in update.removals:
                provider = {}
        if provider:
            current_table = None if current_table is None else _without_class(current_table)
            updates = tuple(map(_update_without_class, updates))
        commit: Any = super()
        staged: StagedTable = commit._update_and_stage_table(  # noqa: SLF001
            current_table, table_identifier, requirements, updates
        )
        if provider:
            staged.metadata = _with_properties(
                staged.metadata, {**staged.metadata.properties, **provider}
            )
        if current_table is not None:
            # The table's properties choose the new metadata file's location, which must not make
            # its server trusted.
            staged.io = current_table.io
        return staged

    def _delete_old_metadata(  # type: ignore[override]
        self, io: FileIO, base: TableMetadata, metadata: TableMetadata
    ) -> None:
        """Remove old metadata files, but only those beside the current one."""
        folder = io.folder if isinstance(io, CheckedFiles) else ""
        files = places_of([f"{folder}/.", *(entry.metadata_file for entry in base.metadata_log)])
        removable = [
            entry
            for entry, file in zip(base.metadata_log, files[1:], strict=True)
            if file.rpartition("/")[0] == files[0].rpartition("/")[0] and ".metadata.json" in file
        ]
        super()._delete_old_metadata(
            io, base.model_copy(update={"metadata_log": removable}), metadata
        )


def guard(catalog: Catalog) -> Catalog:
    """Make a catalog use its own configuration only, and return it; INVALID_ARGUMENTS if it is not
    a catalog.
    """
    of = type(checked(catalog, "catalog", Catalog, "a catalog of pyiceberg's, or the name of one"))
    if not issubclass(of, GuardedCatalog):
        vends = hasattr(of, "_response_to_table")
        catalog.__class__ = type(
            of.__name__,
            (GuardedCatalog, of),
            {"__module__": of.__module__, "vends_connections": vends},
        )
    return catalog


def _with_properties(metadata: TableMetadata, properties: Mapping[str, str]) -> TableMetadata:
    return metadata.model_copy(update={"properties": dict(properties)})


def _converted(convert: Any, identifier: tuple[str, ...], response: Any) -> Any:
    bare = response.model_copy(update={"metadata": _with_properties(response.metadata, {})})
    table = convert(identifier, bare)
    table.metadata = response.metadata
    return table


def _without_class(table: Table) -> Table:
    metadata = _with_properties(table.metadata, _without_provider(table.metadata.properties))
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)


def _update_without_class(update: TableUpdate) -> TableUpdate:
    if isinstance(update, SetPropertiesUpdate):
        return update.model_copy(update={"updates": _without_provider(update.updates)})
    if isinstance(update, RemovePropertiesUpdate):
        return update.model_copy(
            update={"removals": [name for name in update.removals if name != _PROVIDER]}
        )
    return update
