"""Operations on whole tables of a catalog."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import AnalysisError, ConnectorError, error_text
from rowmerge_nb.connectors.iceberg.housekeeping import (
    has_files,
)
from rowmerge_nb.connectors.iceberg.opened_catalogs import (
    location_of,
)
from rowmerge_nb.connectors.shared.folders import folder_name
from rowmerge_nb.spi import ConnectorTableVersion, RenameTable, SchemaTableName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.table import CreateTableTransaction, Table

    from rowmerge_nb.connectors.iceberg.commit_conflicts import Change
    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle
    from rowmerge_nb.connectors.iceberg.iceberg_metadata import Loaded
    from rowmerge_nb.connectors.iceberg.notes import Writer
    from rowmerge_nb.connectors.iceberg.table_definition import Definition
    from rowmerge_nb.spi.alterations import Alteration

from rowmerge_nb.connectors.iceberg.table_removal import TableRemoval


class Tables(TableRemoval):
    def create_schema(self, schema: str) -> None:
        with self._asking(f"schema '{schema}'", lambda: schema in self.schemas()):
            self.catalog.create_namespace_if_not_exists(schema)

    def drop_schema(self, schema: str) -> None:
        from pyiceberg.exceptions import NamespaceNotEmptyError

        with self._asking(f"schema '{schema}'", lambda: schema not in self.schemas()):
            try:
                self.catalog.drop_namespace(self._namespaces().get(schema, schema))
            except NamespaceNotEmptyError as error:
                raise ConnectorError(
                    f"Cannot drop non-empty schema '{schema}'",
                    code="SCHEMA_NOT_EMPTY",
                    hint="Drop its tables one at a time.",
                ) from error

    def create(
        self, name: SchemaTableName, definition: Definition
    ) -> tuple[CreateTableTransaction, Path | None]:
        """Begin to create a table; return the transaction, and the new folder in the warehouse, if
        any.
        """
        location, folder = definition.location, None
        if location is not None and self._has_files(location):
            raise AnalysisError(
                f"Cannot create a table on a non-empty location: {location}",
                code="ICEBERG_FILESYSTEM_ERROR",
                properties=("location",),
                hint=(
                    "Each table needs its own folder: name an empty one, or omit"
                    " location, which INCLUDING PROPERTIES copies."
                ),
            )
        if location is None and self._warehouse is not None:
            folder = (
                self._warehouse
                / folder_name(name.schema)
                / f"{folder_name(name.table)}-{uuid.uuid4().hex}"
            )
            location = location_of(folder)
        schema = self._namespaces().get(name.schema, name.schema)
        with self._asking(f"table '{name}'"):
            creation = self.catalog.create_table_transaction(
                (schema, name.table),
                definition.schema,
                location=location,
                partition_spec=definition.spec,
                sort_order=definition.order,
                properties=dict(definition.properties),
            )
        return creation, folder

    def register(self, name: SchemaTableName, metadata_location: str) -> None:
        """Register a table by its metadata file, which pyiceberg does not check."""
        from pyiceberg.exceptions import NoSuchNamespaceError, TableAlreadyExistsError
        from pyiceberg.serializers import FromInputFile

        try:
            io = self.catalog._load_file_io(location=metadata_location)  # noqa: SLF001
            FromInputFile.table_metadata(io.new_input(metadata_location))
        except Exception as error:
            raise ConnectorError(
                f"'{metadata_location}' is not a metadata file of an Iceberg table:"
                f" {' '.join(error_text(error).split())[:300]}",
                code="ICEBERG_INVALID_METADATA",
                hint="Name the newest of the files metadata/*.metadata.json of the table's folder.",
            ) from error
        exists = _exists(name, "Register it under another name, or drop that table.")
        # Names that differ only in case would be ambiguous.
        if self._spelling(name) is not None:
            raise exists
        with self._asking(f"table '{name}'"):
            try:
                self.catalog.register_table(
                    (self._namespaces().get(name.schema, name.schema), name.table),
                    metadata_location,
                )
            except TableAlreadyExistsError as error:
                raise exists from error
            except NoSuchNamespaceError as error:
                raise _no_schema(name) from error

    def require_reachable(self, location: str | None) -> None:
        """Raise ICEBERG_FILESYSTEM_ERROR if the folder of ``data_location`` cannot be listed."""
        if location is not None:
            self._has_files(str(location), "data_location", deep=False)

    def _has_files(self, location: str, name: str = "location", *, deep: bool = True) -> bool:
        try:
            return has_files(self.catalog._load_file_io(location=location), location, deep=deep)  # noqa: SLF001
        except (OSError, ValueError, ImportError, ConnectorError) as error:
            what = name.replace("_", " ").capitalize()
            raise AnalysisError(
                f"{what} '{location}' cannot be read: {' '.join(error_text(error).split())[:300]}",
                code="ICEBERG_FILESYSTEM_ERROR",
                properties=(name,),
                hint=(
                    "Check that it is spelled right and can be reached from here, or omit the"
                    f" property {name}."
                ),
            ) from error

    def commit(
        self, change: Change, loaded: Loaded, properties: Mapping[str, str], writer: Writer
    ) -> ConnectorTableVersion | None:
        from rowmerge_nb.connectors.iceberg.branches import BranchTable
        from rowmerge_nb.connectors.iceberg.commit_conflicts import conflict
        from rowmerge_nb.connectors.iceberg.commits import commit, replace

        if loaded.replacement is not None and loaded.original is not None:
            now = self._changed(loaded.original.handle)
            return replace(
                change, loaded.original.handle, now, loaded.replacement, properties, writer
            )
        transaction: Any = loaded.creation
        if transaction is None:
            table = self.load(change.handle.name)
            if table is None:
                conflict(change.handle.name, "it was dropped")
            if change.handle.branch is not None:
                table = BranchTable.of(table, change.handle.branch, change.handle.name)
            transaction = table.transaction()
        return commit(change, transaction, properties, writer, is_new=loaded.creation is not None)

    def truncate(self, handle: IcebergTableHandle, writer: Writer) -> ConnectorTableVersion | None:
        from rowmerge_nb.connectors.iceberg.commits import truncate

        table = self._changed(handle)
        return (
            None
            if table.current_snapshot() is None
            else truncate(handle, table.transaction(), writer)
        )

    def gather_manifests(
        self, handle: IcebergTableHandle, writer: Writer
    ) -> ConnectorTableVersion | None:
        """Rewrite manifests to one per partitioning; return the new snapshot, if any."""
        from rowmerge_nb.connectors.iceberg.commits import gather_manifests

        table = self._changed(handle)
        snapshot = table.current_snapshot()
        try:
            manifests = [] if snapshot is None else snapshot.manifests(table.io)
        except Exception as error:  # noqa: BLE001 - it is raised below, in words of this connector
            self._refuse_unreadable(handle, table, error)
        return gather_manifests(handle, table.transaction(), writer) if len(manifests) > 1 else None

    def drop_statistics(self, handle: IcebergTableHandle, writer: Writer) -> None:
        from rowmerge_nb.connectors.iceberg.commits import drop_statistics

        table = self._changed(handle)
        if table.metadata.statistics:
            drop_statistics(handle, table.transaction(), writer)

    def alter(self, handle: IcebergTableHandle, alteration: Alteration, writer: Writer) -> None:
        """Alter a table that still matches its handle: by a commit, or a rename in the catalog."""
        from rowmerge_nb.connectors.iceberg.commits import alter

        table = self._changed(handle)
        if not isinstance(alteration, RenameTable):
            alter(handle, alteration, table.transaction(), writer)
            return
        self._rename(handle, table, alteration.name, writer)

    def _rename(
        self, handle: IcebergTableHandle, table: Table, name: SchemaTableName, writer: Writer
    ) -> None:
        from pyiceberg.exceptions import NoSuchNamespaceError, TableAlreadyExistsError

        schema = self._namespaces().get(name.schema, name.schema)
        writer.ask()
        with self._asking(
            f"table '{handle.name}'", lambda: self._has_identity(name, handle.identity)
        ):
            try:
                self.catalog.rename_table(table.name(), (schema, name.table))
            except TableAlreadyExistsError as error:
                raise _exists(name, "Choose another name.") from error
            except NoSuchNamespaceError as error:
                raise _no_schema(name) from error

    def restore(
        self,
        handle: IcebergTableHandle,
        snapshot: int | None,
        dropped: Sequence[str],
        writer: Writer,
    ) -> ConnectorTableVersion | None:
        from rowmerge_nb.connectors.iceberg.commits import restore

        table = self._changed(handle)
        return restore(handle, snapshot, dropped, table.transaction(), writer)


def _exists(name: SchemaTableName, hint: str) -> ConnectorError:
    return ConnectorError(f"Table '{name}' already exists", code="TABLE_ALREADY_EXISTS", hint=hint)


def _no_schema(name: SchemaTableName) -> ConnectorError:
    return ConnectorError(
        f"Schema '{name.schema}' does not exist",
        code="SCHEMA_NOT_FOUND",
        hint="CREATE SCHEMA makes one.",
    )
