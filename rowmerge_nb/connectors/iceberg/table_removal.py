"""Removal of a catalog's tables, snapshots and leftovers."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rowmerge_nb.base.errors import ConnectorError, RowMergeError, error_text
from rowmerge_nb.connectors.iceberg.files import places_of
from rowmerge_nb.connectors.iceberg.housekeeping import (
    NOT_OWN,
    UNREAD,
    Removal,
    dropped_folder,
    expired_files,
    files_below,
    known_files,
    lower_name,
    remove_folder,
)
from rowmerge_nb.connectors.iceberg.ownership import own_folder
from rowmerge_nb.connectors.iceberg.servers import local_path
from rowmerge_nb.connectors.iceberg.table_lookup import TableLookup
from rowmerge_nb.spi import Orphan, SchemaTableName

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterator

    from pyiceberg.table import Table

    from rowmerge_nb.connectors.iceberg.census import Census
    from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog
    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle
    from rowmerge_nb.connectors.iceberg.notes import Writer


class TableRemoval(TableLookup):
    """Removal of tables, and of files that nothing refers to."""

    def expire(self, handle: IcebergTableHandle, before: dt.datetime, writer: Writer) -> Removal:
        """Expire old, unused snapshots, and remove files in the table's own folders that nothing
        else references.
        """
        from rowmerge_nb.connectors.iceberg.commit_conflicts import conflict
        from rowmerge_nb.connectors.iceberg.commits import expire
        from rowmerge_nb.connectors.iceberg.table_procedures import expired_snapshots

        table = self._changed(handle)
        removal = Removal(table.io)
        expired = expired_snapshots(table.metadata, before)
        if not expired:
            return removal
        try:
            files = expired_files(table, expired)
        except Exception as error:  # noqa: BLE001 - it is raised below, in words of this connector
            self._refuse_unreadable(handle, table, error)
        # Finding the files takes time, in which a branch or tag may have been created.
        latest = self._changed(handle)
        if latest.metadata.refs != table.metadata.refs:
            conflict(handle.name, "its branches or tags were changed")
        # Another process may have expired some of them.
        remaining_ids = [
            snapshot for snapshot in expired if latest.metadata.snapshot_by_id(snapshot) is not None
        ]
        if remaining_ids:
            expire(handle, remaining_ids, latest.transaction(), writer)
        # The snapshots are expired, so errors are ignored: remaining files are listed among the
        # orphans.
        with suppress(Exception):
            census = self.census(without=table)
            removal.problems += census.sentences
            ownership = census.ownership(table)
            for file, path in zip(files, places_of(files), strict=True):
                if path not in census.known_paths and census.errors:
                    removal.reasons[file] = UNREAD
                elif path not in census.known_paths and ownership.has(path):
                    removal.remove(file)
                elif path not in census.known_paths:
                    removal.reasons[file] = NOT_OWN
        return removal

    def _refuse_unreadable(
        self, handle: IcebergTableHandle, table: Table, error: Exception
    ) -> NoReturn:
        from rowmerge_nb.connectors.iceberg.commit_conflicts import conflict

        if isinstance(error, RowMergeError):
            raise error
        if self._changed(handle).metadata_location != table.metadata_location:
            conflict(handle.name, "another commit removed files that were being read")
        raise _unreadable(handle.name, error) from error

    def census(self, without: Table | None = None) -> Census:
        """Return all tables with the paths of the files that they reference."""
        from rowmerge_nb.connectors.iceberg.census import Census

        census = Census()
        excluded = None if without is None else lower_name(without)
        for name, table in self._loaded(census, excluded):
            census.add(name, table, self._known_files_of)
        if self._warehouse is not None:
            # A table without metadata files was dropped meanwhile.
            for name in list(census.errors):
                if not self._metadata_files_of(name):
                    del census.errors[name]
        return census

    def all(self) -> list[Table]:
        from rowmerge_nb.connectors.iceberg.census import Census

        return [table for _, table in self._loaded(Census())]

    def _loaded(
        self, census: Census, excluded: SchemaTableName | None = None
    ) -> Iterator[tuple[SchemaTableName, Table]]:
        for name in self.names():
            if name == excluded:
                continue
            try:
                table = self.load(name)
            except ConnectorError as error:
                census.skip(name, error, self._metadata_files_of(name))
                continue
            if table is not None:
                yield name, table

    def _known_files_of(self, table: Table) -> set[str]:
        name = lower_name(table)
        while True:
            try:
                return known_files(table)
            except RowMergeError:
                raise
            except Exception as error:
                # Snapshots may expire meanwhile.
                latest = self.load(name)
                if latest is None:
                    return set()
                if latest.metadata_location == table.metadata_location:
                    raise _unreadable(name, error) from error
                table = latest

    def drop(self, handle: IcebergTableHandle) -> None:
        """Drop a table; remove its files if they are below the embedded catalog's warehouse."""
        table = self.load(handle.name)
        if table is None or str(table.metadata.table_uuid) != handle.identity:
            return
        folder, embedded = self._folder_to_remove(handle, table), self._embedded
        with embedded.leaving(folder) if embedded is not None else nullcontext():
            with self._asking(
                f"table '{handle.name}'",
                lambda: not self._has_identity(handle.name, handle.identity),
            ):
                self.catalog.drop_table(table.name())
            if embedded is not None and folder is not None:
                self._remove_dropped(embedded, table, folder)

    def _folder_to_remove(self, handle: IcebergTableHandle, table: Table) -> str | None:
        path = local_path(handle.location)
        # A location that does not match the catalog's metadata file may be another table's folder.
        if (
            path is None
            or own_folder(table) is None
            or handle.properties.get("gc.enabled", "true").lower() == "false"
        ):
            return None
        return path if self._is_within(path) else None

    def _is_within(self, path: str) -> bool:
        return (
            self._warehouse is not None
            and self._warehouse.resolve() in Path(path).resolve().parents
        )

    def _remove_dropped(self, embedded: EmbeddedCatalog, table: Table, folder: str) -> None:
        try:
            is_shared = self._is_shared(table, Path(folder).resolve())
            if is_shared:
                embedded.forget_folders([folder])
            elif is_shared is False:
                remove_folder(Path(folder))
        finally:
            # The table is dropped, so an error would be misleading.
            with suppress(Exception):
                embedded.release_folder(folder)

    def dropped_folders(self, known_paths: Collection[str], age: dt.timedelta) -> list[Orphan]:
        embedded = self._embedded
        if embedded is None:
            return []
        with self._asking("catalog"):
            recorded = embedded.dropped_folders()
        paths = {*known_paths, *places_of(self._metadata_paths())} if recorded else set()
        orphans = []
        for folder, process in sorted(recorded.items()):
            root = str(Path(folder).resolve())
            if not self._is_within(folder) or any(path.startswith(f"{root}/") for path in paths):
                continue
            orphan = dropped_folder(Path(folder), process, age)
            if orphan is not None:
                orphans.append(orphan)
        return orphans

    def release_folder(self, folder: str) -> None:
        if self._embedded is not None:
            with self._asking("catalog"):
                self._embedded.release_folder(folder)

    @property
    def _embedded(self) -> EmbeddedCatalog | None:
        from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog

        return (
            self.catalog
            if isinstance(self.catalog, EmbeddedCatalog) and self._warehouse is not None
            else None
        )

    def _is_shared(self, table: Table, folder: Path) -> bool | None:
        """Return whether another table has files in a dropped table's folder; None after an error,
        which would be misleading.
        """
        with suppress(Exception):
            if any(
                Path(other).resolve().is_relative_to(folder) for other in self._metadata_paths()
            ):
                return True
            unknown = files_below(folder) - known_files(table)
            # Other tables are read only if the folder has files that this table does not reference.
            others = filter(None, map(self.load, self.names())) if unknown else ()
            return any(not unknown.isdisjoint(known_files(other)) for other in others)
        return None

    def _metadata_paths(self) -> list[str]:
        assert self._embedded is not None
        with self._asking("catalog"):
            return [
                path
                for path in map(local_path, self._embedded.metadata_files())
                if path is not None
            ]


def _unreadable(name: object, error: Exception) -> ConnectorError:
    return ConnectorError(
        f"The manifests of Iceberg table '{name}' cannot be read: {error_text(error)}",
        code="ICEBERG_INVALID_METADATA",
        hint="Restore that file, or roll the table back to a snapshot whose manifests are intact.",
    )
