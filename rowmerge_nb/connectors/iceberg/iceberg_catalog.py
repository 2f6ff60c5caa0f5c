"""The catalog: case-insensitive lookup of tables, and operations on whole tables."""

from __future__ import annotations

import sqlite3
import uuid
import weakref
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import quote as percent

from rowmerge_nb.base.errors import (
    AnalysisError,
    ConnectorError,
    RowMergeError,
    SetupError,
    error_text,
)
from rowmerge_nb.connectors.iceberg.files import places_of
from rowmerge_nb.connectors.iceberg.housekeeping import (
    NOT_OWN,
    UNREAD,
    Removal,
    dropped_folder,
    expired_files,
    files_below,
    has_files,
    known_files,
    lower_name,
    remove_folder,
)
from rowmerge_nb.connectors.iceberg.ownership import own_folder
from rowmerge_nb.connectors.iceberg.servers import local_path
from rowmerge_nb.connectors.shared.disk import refused
from rowmerge_nb.connectors.shared.folders import folder_name
from rowmerge_nb.connectors.shared.sqlite_errors import is_full, is_read_only
from rowmerge_nb.spi.alterations import RenameTable
from rowmerge_nb.spi.handles import SchemaTableName

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import CreateTableTransaction, Table

    from rowmerge_nb.connectors.iceberg.census import Census
    from rowmerge_nb.connectors.iceberg.commits import Change
    from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog
    from rowmerge_nb.connectors.iceberg.handles import IcebergTableHandle
    from rowmerge_nb.connectors.iceberg.metadata import Loaded
    from rowmerge_nb.connectors.iceberg.notes import Writer
    from rowmerge_nb.connectors.iceberg.table_definition import Definition
    from rowmerge_nb.spi.alterations import Alteration
    from rowmerge_nb.spi.connector import Orphan
    from rowmerge_nb.spi.handles import ConnectorTableVersion

_CURSORS: Final = "rowmerge_nb.cursors"
_INSTALL: Final = "Run: pip install 'rowmerge-nb[iceberg]'"


def embedded_catalog(directory: Path, properties: Mapping[str, str] | None = None) -> Catalog:
    """Return the catalog in a warehouse directory: a SQLite file.

    Raises:
        SetupError: pyiceberg is not installed.
        ConnectorError: ICEBERG_FILESYSTEM_ERROR or ICEBERG_CATALOG_ERROR.
    """
    try:
        from sqlalchemy import URL

        from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog
    except ImportError as error:
        raise _missing() from error
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(error, f"Directory '{directory}'", "ICEBERG_FILESYSTEM_ERROR") from error
    _require_catalog_of_tables(directory)
    file = directory / "catalog.sqlite"
    # SQLAlchemy escapes special characters of the path.
    address = URL.create("sqlite", database=str(file), query={"timeout": "30"}).render_as_string()
    with _catalog_errors(f"catalog '{file}'"):
        catalog = EmbeddedCatalog(
            "rowmerge",
            **{**(properties or {}), "uri": address, "warehouse": location_of(directory)},
        )
        catalog.create_namespace_if_not_exists("default")
    return catalog


def _require_catalog_of_tables(directory: Path) -> None:
    """Refuse to create an empty catalog beside existing tables, which it would hide."""
    file = directory / "catalog.sqlite"
    newest = max(directory.glob("*/*/metadata/*.metadata.json"), default=None)
    # Checked after the tables: another process may be creating both.
    if newest is not None and not (file.is_file() and file.stat().st_size):
        raise ConnectorError(
            f"The catalog '{file}' is missing, and there are tables in the directory, such as"
            f" '{newest.parent.parent}'",
            code="ICEBERG_CATALOG_ERROR",
            hint=(
                "Bring the file back. If it is lost, make a connector of a new directory, and"
                " register each table there by its newest metadata file:"
                " IcebergConnector('new/').register_table(schema, name,"
                " '.../metadata/....metadata.json')."
            ),
        )


def other_owner(directory: Path | None, metadata_location: str) -> tuple[Path, str] | None:
    """Return the other warehouse and the table that a metadata file belongs to, or None."""
    path = local_path(metadata_location)
    if path is None:
        return None
    folder = Path(path).resolve().parent
    for warehouse in folder.parents:
        file = warehouse / "catalog.sqlite"
        if not file.is_file() or (directory is not None and warehouse == directory.resolve()):
            continue
        query = (
            "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables WHERE"
            " metadata_location IS NOT NULL"
        )
        # An unreadable catalog has no tables.
        with (
            suppress(sqlite3.Error),
            closing(sqlite3.connect(f"file:{percent(str(file))}?mode=ro", uri=True)) as connection,
        ):
            for schema, name, location in connection.execute(query):
                if Path(local_path(location) or "").resolve().parent == folder:
                    return warehouse, f"{schema}.{name}"
    return None


def location_of(path: Path) -> str:
    """Return a local path as a location; paths with characters that a URI would interpret stay
    plain.

    >>> location_of(Path("/w/lake")), location_of(Path("/w/a#b"))
    ('file:///w/lake', '/w/a#b')
    """
    text = path.as_posix()
    return text if set("#?%") & set(text) else f"file://{text}"


def named_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """Load a catalog of pyiceberg's configuration.

    Raises:
        SetupError: a library is not installed.
        ConnectorError: ICEBERG_CATALOG_ERROR if the catalog does not answer.
    """
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError as error:
        raise _missing() from error
    with _catalog_errors(f"catalog '{name}'"):
        return load_catalog(name, **dict(properties))


def is_in_memory(catalog: Catalog) -> bool:
    """Return whether a catalog is a database in memory."""
    from pyiceberg.catalog.sql import SqlCatalog

    return isinstance(catalog, SqlCatalog) and catalog.engine.url.database in {None, "", ":memory:"}


def is_settled(catalog: Catalog) -> bool:
    """Return whether a commit that is not visible after a failure never will be.

    True for a database after reconnecting, which rolls back the failed connection's changes.
    """
    from pyiceberg.catalog.sql import SqlCatalog

    if not isinstance(catalog, SqlCatalog) or is_in_memory(catalog):
        return False
    catalog.engine.dispose()
    return True


def writes_metadata(catalog: Catalog) -> bool:
    """Return whether the catalog's service writes metadata files, since this process may not have
    the right.
    """
    # By name, since its module is slow to load.
    return any(base.__name__ == "RestCatalog" for base in type(catalog).__mro__)


def _close_cursors(catalog: Catalog) -> None:
    """Close a SQLite connection's cursors when it returns to the pool.

    SQLAlchemy leaves the cursor of an interrupted query open, which would keep SQLite's lock.
    """
    from pyiceberg.catalog.sql import SqlCatalog
    from sqlalchemy import event

    if not isinstance(catalog, SqlCatalog) or catalog.engine.dialect.name != "sqlite":
        return

    def remember(connection: Any, cursor: Any, *_: Any) -> None:
        connection.connection.info.setdefault(_CURSORS, weakref.WeakSet()).add(cursor)

    def close(_: Any, record: Any, *__: Any) -> None:
        for cursor in record.info.pop(_CURSORS, ()):
            with suppress(sqlite3.Error):
                cursor.close()

    event.listen(catalog.engine, "before_cursor_execute", remember)
    event.listen(catalog.engine, "checkin", close)
    event.listen(catalog.engine, "invalidate", close)


def _missing() -> SetupError:
    return SetupError(
        "pyiceberg, which reads and writes Iceberg's metadata, is not installed", hint=_INSTALL
    )


@contextmanager
def _catalog_errors(what: str) -> Iterator[None]:
    try:
        yield
    except (ConnectorError, SetupError):
        raise
    except Exception as error:
        if is_full(error):
            raise ConnectorError(
                f"Iceberg {what} cannot be written: its disk is full",
                code="GENERIC_INSUFFICIENT_RESOURCES",
                hint="Make room on the disk, and run the statement again.",
            ) from error
        if is_read_only(error):
            raise ConnectorError(
                f"Iceberg {what} cannot be written: its file or directory is read-only",
                code="PERMISSION_DENIED",
                hint=(
                    "Give yourself write permission to the warehouse directory and the file"
                    " catalog.sqlite in it."
                ),
            ) from error
        raise ConnectorError(
            f"Iceberg {what} does not answer: {error_text(error)}",
            code="ICEBERG_CATALOG_ERROR",
            hint="Check that its configuration is right and its service is running.",
        ) from error


def _unreadable(name: object, error: Exception) -> ConnectorError:
    return ConnectorError(
        f"The manifests of Iceberg table '{name}' cannot be read: {error_text(error)}",
        code="ICEBERG_INVALID_METADATA",
        hint="Restore that file, or roll the table back to a snapshot whose manifests are intact.",
    )


def _is_refusal(error: BaseException | None) -> bool:
    from pyiceberg import exceptions as e

    refusals = (
        e.NoSuchTableError
        | e.NoSuchNamespaceError
        | e.TableAlreadyExistsError
        | e.NamespaceAlreadyExistsError
    )
    return isinstance(
        error,
        refusals
        | e.NamespaceNotEmptyError
        | e.BadRequestError
        | e.UnauthorizedError
        | e.ForbiddenError,
    )


def _is_about_metadata(error: Exception) -> bool:
    """Return whether an error came from a metadata file, rather than the catalog's service or
    database.
    """
    if isinstance(error, OSError):
        return not error.errno
    if type(error).__name__ == "ValidationError":
        return True
    return not type(error).__module__.startswith(
        ("sqlalchemy", "requests", "pyiceberg.exceptions", "thrift", "botocore")
    )


class Tables:
    """The tables of a catalog."""

    def __init__(self, catalog: Catalog, warehouse: Path | None) -> None:
        self.catalog = catalog
        self._warehouse = warehouse
        _close_cursors(catalog)

    @contextmanager
    def _asking(self, what: str, landed: Callable[[], bool] | None = None) -> Iterator[None]:
        """Convert errors of a call to the catalog; roll back after a failure.

        If the response was lost, ``landed`` checks over a new connection whether the change is
        visible.

        Raises:
            ConnectorError: the catalog's errors; ICEBERG_COMMIT_ERROR with ``changed=None`` if the
                outcome is unknown.
        """
        try:
            with _catalog_errors(what):
                yield
        except Exception as error:
            settled = is_settled(self.catalog) or _is_refusal(error.__cause__)
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
                "The outcome is unknown: Iceberg's catalog did not say whether it has changed"
                f" {what}: {error_text(error)}",
                code="ICEBERG_COMMIT_ERROR",
                hint="Look at the catalog before you run the statement again.",
                changed=None,
            ) from error
        except BaseException:
            is_settled(self.catalog)
            raise

    # -- names ----------------------------------------------------------------------------------------------------

    def load(self, name: SchemaTableName) -> Table | None:
        """Load a table, or return None.

        Raises:
            ConnectorError: ICEBERG_MISSING_METADATA or ICEBERG_INVALID_METADATA.
        """
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
                        "The directory was moved, and its files know each other by their full"
                        f" paths: make '{old_directory}' a symbolic link to it."
                        if old_directory is not None
                        else (
                            "Restore it; or take the table out by"
                            f" connector.catalog.drop_table('{'.'.join(identifier)}'), which leaves"
                            " its files, and register it with a metadata file that is there."
                        )
                    ),
                ) from error
            except Exception as error:
                if not _is_about_metadata(error):
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
        query = (
            "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables WHERE"
            " metadata_location IS NOT NULL"
        )
        with (
            self._asking("catalog"),
            closing(sqlite3.connect(self._warehouse / "catalog.sqlite")) as connection,
        ):
            entries = connection.execute(query).fetchall()
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
                f"Iceberg tables {', '.join(sorted(spellings))} of schema '{schema}' differ in case"
                f" only, so that '{name}' may mean any",
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
        """Return the sorted names of all tables."""
        with self._asking("catalog"):
            names = [
                SchemaTableName(schema, str(entry[-1]).lower())
                for schema, spelling in self._namespaces().items()
                for entry in self.catalog.list_tables(spelling)
            ]
        return sorted(names, key=str)

    # -- changes --------------------------------------------------------------------------------------------------

    def create_schema(self, schema: str) -> None:
        """Create a schema."""
        with self._asking(f"schema '{schema}'", lambda: schema in self.schemas()):
            self.catalog.create_namespace_if_not_exists(schema)

    def drop_schema(self, schema: str) -> None:
        """Drop an empty schema."""
        from pyiceberg.exceptions import NamespaceNotEmptyError

        with self._asking(f"schema '{schema}'", lambda: schema not in self.schemas()):
            try:
                self.catalog.drop_namespace(self._namespaces().get(schema, schema))
            except NamespaceNotEmptyError as error:
                raise ConnectorError(
                    f"Cannot drop non-empty schema '{schema}'",
                    code="SCHEMA_NOT_EMPTY",
                    hint="Drop its tables one by one.",
                ) from error

    def create(
        self, name: SchemaTableName, definition: Definition
    ) -> tuple[CreateTableTransaction, Path | None]:
        """Begin to create a table; return the transaction, and the new folder in the warehouse, if
        any.

        Raises:
            AnalysisError: ICEBERG_FILESYSTEM_ERROR if the user's location contains files.
        """
        location, folder = definition.location, None
        if location is not None and self._has_files(location):
            raise AnalysisError(
                f"Cannot create a table on a non-empty location: {location}",
                code="ICEBERG_FILESYSTEM_ERROR",
                properties=("location",),
                hint=(
                    "Every table has a folder of its own: name an empty one, or leave out location,"
                    " which INCLUDING PROPERTIES brings along."
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
        """Register a table by its metadata file, which pyiceberg does not check.

        Raises:
            ConnectorError: ICEBERG_INVALID_METADATA, TABLE_ALREADY_EXISTS or SCHEMA_NOT_FOUND.
        """
        from pyiceberg.exceptions import NoSuchNamespaceError, TableAlreadyExistsError
        from pyiceberg.serializers import FromInputFile

        try:
            io = self.catalog._load_file_io(location=metadata_location)  # noqa: SLF001
            FromInputFile.table_metadata(io.new_input(metadata_location))
        except Exception as error:
            raise ConnectorError(
                f"'{metadata_location}' is no metadata file of an Iceberg table:"
                f" {' '.join(error_text(error).split())[:300]}",
                code="ICEBERG_INVALID_METADATA",
                hint="Name the newest of the files metadata/*.metadata.json of the table's folder.",
            ) from error
        exists = ConnectorError(
            f"Table '{name}' already exists",
            code="TABLE_ALREADY_EXISTS",
            hint="Register it under another name, or drop that one.",
        )
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
                raise ConnectorError(
                    f"Schema '{name.schema}' does not exist",
                    code="SCHEMA_NOT_FOUND",
                    hint="CREATE SCHEMA makes one.",
                ) from error

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
                    f"Change it there, by IcebergConnector('{owner[0]}'); or, in a copy of that"
                    " directory, make a table of its own: CREATE TABLE ... AS SELECT * FROM"
                    f" {name}."
                ),
            )

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
                f"{what} '{location}' cannot be looked at:"
                f" {' '.join(error_text(error).split())[:300]}",
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
        """Commit a statement's change to a table, or a new table; return the snapshot."""
        from rowmerge_nb.connectors.iceberg.commits import commit, conflict, replace

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
            transaction = table.transaction()
        return commit(change, transaction, properties, writer, is_new=loaded.creation is not None)

    def _changed(self, handle: IcebergTableHandle) -> Table:
        from rowmerge_nb.connectors.iceberg.commits import conflict

        table = self.load(handle.name)
        if table is None or str(table.metadata.table_uuid) != handle.identity:
            conflict(handle.name, "it was dropped or replaced")
        self.require_own(handle.name, table)
        return table

    def truncate(self, handle: IcebergTableHandle, writer: Writer) -> ConnectorTableVersion | None:
        """Remove all files of a table; return the new snapshot, if any."""
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

    def expire(self, handle: IcebergTableHandle, before: dt.datetime, writer: Writer) -> Removal:
        """Expire old, unused snapshots, and remove files in the table's own folders that nothing
        else references.
        """
        from rowmerge_nb.connectors.iceberg.commits import conflict, expire
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
        """Raise the error, or a conflict if another commit has changed the table."""
        from rowmerge_nb.connectors.iceberg.commits import conflict

        if isinstance(error, RowMergeError):
            raise error
        if self._changed(handle).metadata_location != table.metadata_location:
            conflict(handle.name, "another commit removed files that were being looked at")
        raise _unreadable(handle.name, error) from error

    def census(self, without: Table | None = None) -> Census:
        """Return all tables with the paths of the files that they reference."""
        from rowmerge_nb.connectors.iceberg.census import Census

        census = Census()
        excluded = None if without is None else lower_name(without)
        for name, table in self._loaded(census, excluded):
            census.add(name, table, self._known_files_of)
        # A table that was dropped meanwhile is not unreadable.
        for name in list(census.errors) if self._warehouse is not None else ():
            if not self._metadata_files_of(name):
                del census.errors[name]
        return census

    def all(self) -> list[Table]:
        """Load all readable tables."""
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
                now = self.load(name)
                if now is None:
                    return set()
                if now.metadata_location == table.metadata_location:
                    raise _unreadable(name, error) from error
                table = now

    def drop_statistics(self, handle: IcebergTableHandle, writer: Writer) -> None:
        """Remove a table's statistics files."""
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
                raise ConnectorError(
                    f"Table '{name}' already exists",
                    code="TABLE_ALREADY_EXISTS",
                    hint="Choose another name.",
                ) from error
            except NoSuchNamespaceError as error:
                raise ConnectorError(
                    f"Schema '{name.schema}' does not exist",
                    code="SCHEMA_NOT_FOUND",
                    hint="CREATE SCHEMA makes one.",
                ) from error

    def restore(
        self,
        handle: IcebergTableHandle,
        snapshot: int | None,
        dropped: Sequence[str],
        writer: Writer,
    ) -> ConnectorTableVersion | None:
        """Make an earlier snapshot the current one; return the new current snapshot."""
        from rowmerge_nb.connectors.iceberg.commits import restore

        table = self._changed(handle)
        return restore(handle, snapshot, dropped, table.transaction(), writer)

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
            # The table is dropped by now: nothing may fail any more.
            with suppress(Exception):
                embedded.release_folder(folder)

    def dropped_folders(self, known_paths: Collection[str], age: dt.timedelta) -> list[Orphan]:
        """Return the folders of dropped tables that still exist."""
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
        """Record that a dropped table's folder was removed."""
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

    def _has_identity(self, name: SchemaTableName, identity: str) -> bool:
        now = self.load(name)
        return now is not None and str(now.metadata.table_uuid) == identity

    def _is_shared(self, table: Table, folder: Path) -> bool | None:
        """Return whether another table has files in a dropped table's folder; None if that is
        unknown.
        """
        # The table is dropped by now: nothing may fail any more.
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
