"""Case-insensitive lookup of a catalog's tables."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import ConnectorError, error_text
from rowmerge_nb.connectors.iceberg.opened_catalogs import (
    ENTRIES,
    catalog_errors,
    close_cursors,
    is_about_metadata,
    is_refusal,
    is_settled,
    other_owner,
)
from rowmerge_nb.connectors.iceberg.servers import local_path
from rowmerge_nb.spi import SchemaTableName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle


class TableLookup:
    def __init__(self, catalog: Catalog, warehouse: Path | None) -> None:
        self.catalog = catalog
        self._warehouse = warehouse
        close_cursors(catalog)

    @contextmanager
    def _asking(self, what: str, landed: Callable[[], bool] | None = None) -> Iterator[None]:
        """Convert errors of a call to the catalog; roll back after a failure.

        If the response was lost, ``landed`` checks over a new connection whether the change is
        visible.
        """
        try:
            with catalog_errors(what):
                yield
        except Exception as error:
            settled = is_settled(self.catalog) or is_refusal(error.__cause__)
            if landed is None:
                raise
            try:
                if landed():
                    return
            except Exception:  # noqa: BLE001 - the catalog does not answer now either
                settled = False
            if settled:
                raise
            raise ConnectorError(
                "The outcome is unknown: Iceberg's catalog did not report whether it"
                f" has changed {what}: {error_text(error)}",
                code="ICEBERG_COMMIT_ERROR",
                hint="Check the catalog before you run the statement again.",
                changed=None,
            ) from error
        except BaseException:
            is_settled(self.catalog)
            raise

    def load(self, name: SchemaTableName) -> Table | None:
        """Load a table, or return None; ICEBERG_MISSING_METADATA or ICEBERG_INVALID_METADATA."""
        table = self._load((name.schema, name.table), name)
        if table is not None:
            return table
        identifier = self._spelling(name)
        return self._load(identifier, name) if identifier is not None else None

    def _load(self, identifier: tuple[str, str], name: SchemaTableName) -> Table | None:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        with self._asking(f"table '{name}'"):
            try:
                return self.catalog.load_table(identifier)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
            except ConnectorError:
                raise
            except FileNotFoundError as error:
                old_directory = self._former_directory(identifier)
                raise ConnectorError(
                    f"The metadata file of Iceberg table '{name}' does not exist: {error}",
                    code="ICEBERG_MISSING_METADATA",
                    hint=(
                        "The directory was moved, and its files refer to each other"
                        f" by full paths: make '{old_directory}' a symbolic link to it."
                        if old_directory is not None
                        else (
                            "Restore it; or unregister the table with"
                            f" connector.catalog.drop_table('{'.'.join(identifier)}'), which"
                            " keeps its files, and register it with a metadata file that"
                            " exists."
                        )
                    ),
                ) from error
            except Exception as error:
                if not is_about_metadata(error):
                    raise
                file = self._metadata_file(identifier)
                where = "" if file is None else f" in '{file}'"
                words = " ".join(str(error).split())[:300]
                raise ConnectorError(
                    f"The metadata of Iceberg table '{name}'{where} cannot be understood:"
                    f" {type(error).__name__}: {words}",
                    code="ICEBERG_INVALID_METADATA",
                    hint=(
                        "Check that its format version is 1, 2 or 3, and that the metadata file is"
                        " intact."
                    ),
                ) from error

    def _metadata_files_of(self, name: SchemaTableName) -> list[str]:
        if self._warehouse is None:
            return []
        with (
            self._asking("catalog"),
            closing(sqlite3.connect(self._warehouse / "catalog.sqlite")) as connection,
        ):
            entries = connection.execute(ENTRIES).fetchall()
        return [
            str(file)
            for schema, table, file in entries
            if (schema.lower(), table.lower()) == (name.schema, name.table)
        ]

    def _metadata_file(self, identifier: tuple[str, str]) -> str | None:
        if self._warehouse is None:
            return None
        query = (
            "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND"
            " table_name = ?"
        )
        with (
            suppress(sqlite3.Error),
            closing(sqlite3.connect(self._warehouse / "catalog.sqlite")) as connection,
        ):
            row = connection.execute(query, identifier).fetchone()
            return None if row is None else str(row[0])
        return None

    def _former_directory(self, identifier: tuple[str, str]) -> Path | None:
        """Return the directory that the warehouse was moved from, if the metadata file is here."""
        file = Path(local_path(self._metadata_file(identifier) or "") or "")
        below = file.parts[-4:]  # schema, table, "metadata", file
        is_here = (
            self._warehouse is not None
            and len(below) == 4
            and self._warehouse.joinpath(*below).is_file()
        )
        return file.parents[3] if is_here else None

    def _spelling(self, name: SchemaTableName) -> tuple[str, str] | None:
        with self._asking(f"schema '{name.schema}'"):
            schema = self._namespaces().get(name.schema)
            if schema is None:
                return None
            spellings = [
                str(entry[-1])
                for entry in self.catalog.list_tables(schema)
                if entry[-1].lower() == name.table
            ]
        if len(spellings) > 1:
            raise ConnectorError(
                f"Iceberg tables {', '.join(sorted(spellings))} of schema '{schema}'"
                f" differ only in case, so '{name}' is ambiguous",
                code="AMBIGUOUS_NAME",
                hint="Rename one of them with another engine.",
            )
        return (schema, spellings[0]) if spellings else None

    def _namespaces(self) -> dict[str, str]:
        with self._asking("catalog"):
            return {
                str(entry[0]).lower(): str(entry[0])
                for entry in self.catalog.list_namespaces()
                if len(entry) == 1
            }

    def schemas(self) -> list[str]:
        """Return the sorted names of all schemas; nested namespaces are omitted."""
        with self._asking("catalog"):
            return sorted(self._namespaces())

    def names(self) -> list[SchemaTableName]:
        with self._asking("catalog"):
            names = [
                SchemaTableName(schema, str(entry[-1]).lower())
                for schema, spelling in self._namespaces().items()
                for entry in self.catalog.list_tables(spelling)
            ]
        return sorted(names, key=str)

    def require_own(self, name: SchemaTableName, table: Table) -> None:
        """Raise NOT_SUPPORTED for a table of another warehouse, such as a copied one: each would
        remove the other's files as orphans.
        """
        owner = (
            other_owner(self._warehouse, table.metadata_location)
            if self._warehouse is not None
            else None
        )
        if owner is not None:
            raise ConnectorError(
                f"Iceberg table '{name}' cannot be changed here: its files are those of table"
                f" '{owner[1]}' in the warehouse '{owner[0]}'",
                hint=(
                    f"Change it there, by IcebergConnector('{owner[0]}'); or, in a"
                    " copy of that directory, create a separate table: CREATE TABLE ... AS"
                    f" SELECT * FROM {name}."
                ),
            )

    def _changed(self, handle: IcebergTableHandle) -> Table:
        from rowmerge_nb.connectors.iceberg.commit_conflicts import conflict

        table = self.load(handle.name)
        if table is None or str(table.metadata.table_uuid) != handle.identity:
            conflict(handle.name, "it was dropped or replaced")
        self.require_own(handle.name, table)
        return table

    def _has_identity(self, name: SchemaTableName, identity: str) -> bool:
        now = self.load(name)
        return now is not None and str(now.metadata.table_uuid) == identity
