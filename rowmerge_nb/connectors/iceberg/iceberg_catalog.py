"""The catalog: tables by name, whatever the case of its letters, and everything that is done to tables as a whole."""

from __future__ import annotations

import sqlite3
import uuid
import weakref
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import quote as percent

from rowmerge_nb.base.errors import AnalysisError, ConnectorError, RowMergeError, SetupError, error_text
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
    """Return the catalog in a warehouse directory: a SQLite file beside the tables.

    Args:
        directory: the warehouse.
        properties: connections to further places where tables may be.

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
    # Of a name with signs that mean something in an address, SQLAlchemy knows how to write it.
    address = URL.create("sqlite", database=str(file), query={"timeout": "30"}).render_as_string()
    with _told(f"catalog '{file}'"):
        catalog = EmbeddedCatalog("rowmerge", **{**(properties or {}), "uri": address, "warehouse": location_of(directory)})
        catalog.create_namespace_if_not_exists("default")
    return catalog


def _require_catalog_of_tables(directory: Path) -> None:
    """Check that a new catalog would have nothing to know: an empty one beside tables would hide them all.

    Raises:
        ConnectorError: ICEBERG_CATALOG_ERROR.
    """
    file = directory / "catalog.sqlite"
    newest = max(directory.glob("*/*/metadata/*.metadata.json"), default=None)
    # Looked at after the tables: another process may just be making both.
    if newest is not None and not (file.is_file() and file.stat().st_size):
        raise ConnectorError(
            f"The catalog '{file}' is missing, and there are tables in the directory, such as '{newest.parent.parent}'",
            code="ICEBERG_CATALOG_ERROR",
            hint="Bring the file back. If it is lost, make a connector of a new directory, and register each table there by its newest"
            " metadata file: IcebergConnector('new/').register_table(schema, name, '.../metadata/....metadata.json').",
        )


def other_owner(directory: Path | None, metadata_location: str) -> tuple[Path, str] | None:
    """Return another warehouse that has a table where a metadata file is, and this table; it is looked for in the folders above.

    Args:
        directory: the warehouse that asks, None for another catalog.
        metadata_location: the file.
    """
    path = local_path(metadata_location)
    if path is None:
        return None
    folder = Path(path).resolve().parent
    for warehouse in folder.parents:
        file = warehouse / "catalog.sqlite"
        if not file.is_file() or (directory is not None and warehouse == directory.resolve()):
            continue
        query = "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables WHERE metadata_location IS NOT NULL"
        # One that cannot be read knows of no table.
        with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{percent(str(file))}?mode=ro", uri=True)) as connection:
            for schema, name, location in connection.execute(query):
                if Path(local_path(location) or "").resolve().parent == folder:
                    return warehouse, f"{schema}.{name}"
    return None


def location_of(path: Path) -> str:
    """Return a local path as a location; names that a URI would take apart stay plain paths.

    >>> location_of(Path("/w/lake")), location_of(Path("/w/a#b"))
    ('file:///w/lake', '/w/a#b')
    """
    text = path.as_posix()
    return text if set("#?%") & set(text) else f"file://{text}"


def named_catalog(name: str, properties: Mapping[str, str]) -> Catalog:
    """Return a catalog by pyiceberg's configuration.

    Raises:
        SetupError: pyiceberg, or what it needs for this catalog, is not installed.
        ConnectorError: ICEBERG_CATALOG_ERROR if it does not answer.
    """
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError as error:
        raise _missing() from error
    with _told(f"catalog '{name}'"):
        return load_catalog(name, **dict(properties))


def is_in_memory(catalog: Catalog) -> bool:
    """Return whether a catalog is a database of this process's memory."""
    from pyiceberg.catalog.sql import SqlCatalog

    return isinstance(catalog, SqlCatalog) and catalog.engine.url.database in {None, "", ":memory:"}


def is_settled(catalog: Catalog) -> bool:
    """Return whether what a catalog does not show after a failed commit will never come, and have it show that.

    It is so of a database over a new connection: that of the commit may show its own changes although they were never committed, and closing
    it undoes them. Another catalog may be at work still.
    """
    from pyiceberg.catalog.sql import SqlCatalog

    if not isinstance(catalog, SqlCatalog) or is_in_memory(catalog):
        return False
    catalog.engine.dispose()
    return True


def writes_metadata(catalog: Catalog) -> bool:
    """Return whether a catalog writes metadata files in its own service, where this process may have no right to write."""
    # Its module is slow to load, and is loaded where such a catalog is used.
    return any(kind.__name__ == "RestCatalog" for kind in type(catalog).__mro__)


def _close_cursors(catalog: Catalog) -> None:
    """Make a database's connections close their cursors when they return to the pool or are discarded.

    SQLAlchemy leaves the cursor of an interrupted query open, and whoever keeps the interrupt keeps that: it would hold SQLite's lock.
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
    return SetupError("pyiceberg, which reads and writes Iceberg's metadata, is not installed", hint=_INSTALL)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Report what a catalog raises in words of this connector."""
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
                hint="Give yourself write permission to the warehouse directory and the file catalog.sqlite in it.",
            ) from error
        raise ConnectorError(
            f"Iceberg {what} does not answer: {error_text(error)}",
            code="ICEBERG_CATALOG_ERROR",
            hint="See that its configuration is right and its service runs.",
        ) from error


def _unreadable(name: object, error: Exception) -> ConnectorError:
    """Return the error of a table whose manifests cannot be read."""
    return ConnectorError(
        f"The manifests of Iceberg table '{name}' cannot be read: {error_text(error)}",
        code="ICEBERG_INVALID_METADATA",
        hint="Restore that file, or roll the table back to a snapshot whose manifests are whole.",
    )


def _is_refusal(error: BaseException | None) -> bool:
    """Return whether a catalog has answered that it does not do what it was asked for."""
    from pyiceberg import exceptions as e

    refusals = e.NoSuchTableError | e.NoSuchNamespaceError | e.TableAlreadyExistsError | e.NamespaceAlreadyExistsError
    return isinstance(error, refusals | e.NamespaceNotEmptyError | e.BadRequestError | e.UnauthorizedError | e.ForbiddenError)


def _is_about_metadata(error: Exception) -> bool:
    """Return whether an error came out of the reading of a metadata file, and not out of the catalog's service or database."""
    if isinstance(error, OSError):
        return not error.errno
    if type(error).__name__ == "ValidationError":
        return True
    return not type(error).__module__.startswith(("sqlalchemy", "requests", "pyiceberg.exceptions", "thrift", "botocore"))


class Tables:
    """The tables of a catalog.

    Args:
        catalog: pyiceberg's catalog.
        warehouse: the directory of the embedded catalog, None for others.
    """

    def __init__(self, catalog: Catalog, warehouse: Path | None) -> None:
        self.catalog = catalog
        self._warehouse = warehouse
        _close_cursors(catalog)

    @contextmanager
    def _asking(self, what: str, landed: Callable[[], bool] | None = None) -> Iterator[None]:
        """Ask the catalog, and report what it raises; what a failure or an interrupt leaves uncommitted is undone.

        Args:
            what: what is asked about.
            landed: whether a change is there whose answer was lost; it is asked over a new connection.

        Raises:
            ConnectorError: ICEBERG_COMMIT_ERROR with ``changed=None`` if that is not known, and the errors of the catalog.
        """
        try:
            with _told(what):
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
                f"The outcome is unknown: Iceberg's catalog did not say whether it has changed {what}: {error_text(error)}",
                code="ICEBERG_COMMIT_ERROR",
                hint="Look at the catalog before you run the statement again.",
                changed=None,
            ) from error
        except BaseException:
            is_settled(self.catalog)
            raise

    # -- names ----------------------------------------------------------------------------------------------------

    def load(self, name: SchemaTableName) -> Table | None:
        """Return a table as it is now, None if there is none of that name.

        Raises:
            ConnectorError: ICEBERG_MISSING_METADATA or ICEBERG_INVALID_METADATA if its metadata file is not there or not understood.
        """
        found = self._load((name.schema, name.table), name)
        if found is not None:
            return found
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
                former = self._former_directory(identifier)
                raise ConnectorError(
                    f"The metadata file of Iceberg table '{name}' does not exist: {error}",
                    code="ICEBERG_MISSING_METADATA",
                    hint=f"The directory was moved, and its files know each other by their full paths: make '{former}' a symbolic link to it."
                    if former is not None
                    else f"Restore it; or take the table out by connector.catalog.drop_table('{'.'.join(identifier)}'), which leaves its files,"
                    " and register it with a metadata file that is there.",
                ) from error
            except Exception as error:
                if not _is_about_metadata(error):
                    raise
                file = self._metadata_file(identifier)
                where = "" if file is None else f" in '{file}'"
                words = " ".join(str(error).split())[:300]
                raise ConnectorError(
                    f"The metadata of Iceberg table '{name}'{where} cannot be understood: {type(error).__name__}: {words}",
                    code="ICEBERG_INVALID_METADATA",
                    hint="See that its format version is 1, 2 or 3, and that the metadata file is whole.",
                ) from error

    def _metadata_files_of(self, name: SchemaTableName) -> list[str]:
        """Return the metadata files that the embedded catalog has for a name, whatever the case of its letters."""
        if self._warehouse is None:
            return []
        query = "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables WHERE metadata_location IS NOT NULL"
        with self._asking("catalog"), closing(sqlite3.connect(self._warehouse / "catalog.sqlite")) as connection:
            entries = connection.execute(query).fetchall()
        return [str(file) for schema, table, file in entries if (schema.lower(), table.lower()) == (name.schema, name.table)]

    def _metadata_file(self, identifier: tuple[str, str]) -> str | None:
        """Return the file that the embedded catalog has for a table's metadata; None for other catalogs, which do not tell."""
        if self._warehouse is None:
            return None
        query = "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = ? AND table_name = ?"
        with suppress(sqlite3.Error), closing(sqlite3.connect(self._warehouse / "catalog.sqlite")) as connection:
            found = connection.execute(query, identifier).fetchone()
            return None if found is None else str(found[0])
        return None

    def _former_directory(self, identifier: tuple[str, str]) -> Path | None:
        """Return the place from which the warehouse was moved, if a table's metadata is at the same place below the present one."""
        file = Path(local_path(self._metadata_file(identifier) or "") or "")
        below = file.parts[-4:]  # schema, table, "metadata", file
        is_here = self._warehouse is not None and len(below) == 4 and self._warehouse.joinpath(*below).is_file()
        return file.parents[3] if is_here else None

    def _spelling(self, name: SchemaTableName) -> tuple[str, str] | None:
        """Find a table's own spelling; names here are in lower case."""
        with self._asking(f"schema '{name.schema}'"):
            schema = self._namespaces().get(name.schema)
            if schema is None:
                return None
            found = [str(entry[-1]) for entry in self.catalog.list_tables(schema) if entry[-1].lower() == name.table]
        if len(found) > 1:
            raise ConnectorError(
                f"Iceberg tables {', '.join(sorted(found))} of schema '{schema}' differ in case only, so that '{name}' may mean any",
                code="AMBIGUOUS_NAME",
                hint="Rename one of them with another engine.",
            )
        return (schema, found[0]) if found else None

    def _namespaces(self) -> dict[str, str]:
        with self._asking("catalog"):
            return {str(entry[0]).lower(): str(entry[0]) for entry in self.catalog.list_namespaces() if len(entry) == 1}

    def schemas(self) -> list[str]:
        """Return the names of all schemas, sorted; namespaces within namespaces are none."""
        with self._asking("catalog"):
            return sorted(self._namespaces())

    def names(self) -> list[SchemaTableName]:
        """Return the names of all tables, sorted."""
        with self._asking("catalog"):
            found = [
                SchemaTableName(schema, str(entry[-1]).lower())
                for schema, written in self._namespaces().items()
                for entry in self.catalog.list_tables(written)
            ]
        return sorted(found, key=str)

    # -- changes --------------------------------------------------------------------------------------------------

    def create_schema(self, schema: str) -> None:
        """Make a schema."""
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
                    f"Cannot drop non-empty schema '{schema}'", code="SCHEMA_NOT_EMPTY", hint="Drop its tables one by one."
                ) from error

    def create(self, name: SchemaTableName, definition: Definition) -> tuple[CreateTableTransaction, Path | None]:
        """Begin to make a table; its folder has a name of its own, so that a dropped table's files are never in the way.

        Returns:
            The transaction that makes it, and the folder; None where the user or the catalog names that.

        Raises:
            AnalysisError: ICEBERG_FILESYSTEM_ERROR if there are files in the folder that the user names: they may be another table's.
        """
        location, folder = definition.location, None
        if location is not None and self._has_files(location):
            raise AnalysisError(
                f"Cannot create a table on a non-empty location: {location}",
                code="ICEBERG_FILESYSTEM_ERROR",
                properties=("location",),
                hint="Every table has a folder of its own: name an empty one, or leave out location, which INCLUDING PROPERTIES brings along.",
            )
        if location is None and self._warehouse is not None:
            folder = self._warehouse / folder_name(name.schema) / f"{folder_name(name.table)}-{uuid.uuid4().hex}"
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
        """Take a table in by its metadata file, which is read first: pyiceberg enters the name before it looks at the file.

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
                f"'{metadata_location}' is no metadata file of an Iceberg table: {' '.join(error_text(error).split())[:300]}",
                code="ICEBERG_INVALID_METADATA",
                hint="Name the newest of the files metadata/*.metadata.json of the table's folder.",
            ) from error
        exists = ConnectorError(
            f"Table '{name}' already exists",
            code="TABLE_ALREADY_EXISTS",
            hint="Register it under another name, or drop that one.",
        )
        # Names that differ in case only could not be told apart afterwards.
        if self._spelling(name) is not None:
            raise exists
        with self._asking(f"table '{name}'"):
            try:
                self.catalog.register_table((self._namespaces().get(name.schema, name.schema), name.table), metadata_location)
            except TableAlreadyExistsError as error:
                raise exists from error
            except NoSuchNamespaceError as error:
                raise ConnectorError(
                    f"Schema '{name.schema}' does not exist", code="SCHEMA_NOT_FOUND", hint="CREATE SCHEMA makes one."
                ) from error

    def require_own(self, name: SchemaTableName, table: Table) -> None:
        """Check that no other warehouse has a table that is to be changed: each would take the other's files for leftovers.

        Raises:
            ConnectorError: NOT_SUPPORTED in a copy of a warehouse, whose tables lie where those of the first one do.
        """
        owner = other_owner(self._warehouse, table.metadata_location) if self._warehouse is not None else None
        if owner is not None:
            raise ConnectorError(
                f"Iceberg table '{name}' cannot be changed here: its files are those of table '{owner[1]}' in the warehouse '{owner[0]}'",
                hint=f"Change it there, by IcebergConnector('{owner[0]}'); or, in a copy of that directory, make a table of its own:"
                f" CREATE TABLE ... AS SELECT * FROM {name}.",
            )

    def require_reachable(self, location: str | None) -> None:
        """Check that the folder of the property ``data_location`` can be looked at, if it is set.

        Raises:
            AnalysisError: ICEBERG_FILESYSTEM_ERROR.
        """
        if location is not None:
            self._has_files(str(location), "data_location", deep=False)

    def _has_files(self, location: str, name: str = "location", *, deep: bool = True) -> bool:
        try:
            return has_files(self.catalog._load_file_io(location=location), location, deep=deep)  # noqa: SLF001
        except (OSError, ValueError, ImportError, ConnectorError) as error:
            what = name.replace("_", " ").capitalize()
            raise AnalysisError(
                f"{what} '{location}' cannot be looked at: {' '.join(error_text(error).split())[:300]}",
                code="ICEBERG_FILESYSTEM_ERROR",
                properties=(name,),
                hint=f"See that it is spelled right and can be reached from here, or leave the property {name} out.",
            ) from error

    def commit(
        self, change: Change, loaded: Loaded, properties: Mapping[str, str], writer: Writer
    ) -> ConnectorTableVersion | None:
        """Commit what a statement did to a table, or the table that it makes; give the snapshot.

        Args:
            change: what it did.
            loaded: the table as it was looked up.
            properties: what the snapshot's summary says besides.
            writer: the statement that writes.
        """
        from rowmerge_nb.connectors.iceberg.commits import commit, conflict, replace

        if loaded.replacement is not None and loaded.former is not None:
            now = self._changed(loaded.former.handle)
            return replace(change, loaded.former.handle, now, loaded.replacement, properties, writer)
        transaction: Any = loaded.creation
        if transaction is None:
            table = self.load(change.handle.name)
            if table is None:
                conflict(change.handle.name, "it was dropped")
            transaction = table.transaction()
        return commit(change, transaction, properties, writer, is_new=loaded.creation is not None)

    def _changed(self, handle: IcebergTableHandle) -> Table:
        """Return the table that a handle is of as it is now, to be changed as a whole.

        Raises:
            ConnectorError: TRANSACTION_CONFLICT if it is not there any more, NOT_SUPPORTED if it is another warehouse's.
        """
        from rowmerge_nb.connectors.iceberg.commits import conflict

        table = self.load(handle.name)
        if table is None or str(table.metadata.table_uuid) != handle.identity:
            conflict(handle.name, "it was dropped or replaced")
        self.require_own(handle.name, table)
        return table

    def truncate(self, handle: IcebergTableHandle, writer: Writer) -> ConnectorTableVersion | None:
        """Remove all files of a table in a snapshot of its own, and give that; None for a table that has none."""
        from rowmerge_nb.connectors.iceberg.commits import truncate

        table = self._changed(handle)
        return None if table.current_snapshot() is None else truncate(handle, table.transaction(), writer)

    def gather_manifests(self, handle: IcebergTableHandle, writer: Writer) -> ConnectorTableVersion | None:
        """Rewrite a table's manifests to one for each partitioning, and return the new snapshot; None if there is at most one manifest."""
        from rowmerge_nb.connectors.iceberg.commits import gather_manifests

        table = self._changed(handle)
        snapshot = table.current_snapshot()
        try:
            manifests = [] if snapshot is None else snapshot.manifests(table.io)
        except Exception as error:  # noqa: BLE001 - it is raised below, in words of this connector
            self._refuse_unreadable(handle, table, error)
        return gather_manifests(handle, table.transaction(), writer) if len(manifests) > 1 else None

    def expire(self, handle: IcebergTableHandle, before: dt.datetime, writer: Writer) -> Removal:
        """Forget the snapshots of a table that are older than a moment and of no use, and remove the files that only they had.

        Files that another table of the catalog knows stay, and files outside of the table's own folders.
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
        # To look for the files takes a while, in which somebody may have named a snapshot.
        latest = self._changed(handle)
        if latest.metadata.refs != table.metadata.refs:
            conflict(handle.name, "its branches or tags were changed")
        # Another process may have let some of them expire meanwhile.
        there = [snapshot for snapshot in expired if latest.metadata.snapshot_by_id(snapshot) is not None]
        if there:
            expire(handle, there, latest.transaction(), writer)
        # Nothing may fail any more: what stays is found among the orphans.
        with suppress(Exception):
            census = self.census(without=table)
            removal.problems += census.sentences
            ownership = census.ownership(table)
            for file, place in zip(files, places_of(files), strict=True):
                if place not in census.known and census.errors:
                    removal.left[file] = UNREAD
                elif place not in census.known and ownership.has(place):
                    removal.remove(file)
                elif place not in census.known:
                    removal.left[file] = NOT_OWN
        return removal

    def _refuse_unreadable(self, handle: IcebergTableHandle, table: Table, error: Exception) -> NoReturn:
        """Refuse to go on with a table whose manifests cannot be read: others may have removed them meanwhile."""
        from rowmerge_nb.connectors.iceberg.commits import conflict

        if isinstance(error, RowMergeError):
            raise error
        if self._changed(handle).metadata_location != table.metadata_location:
            conflict(handle.name, "another commit removed files that were being looked at")
        raise _unreadable(handle.name, error) from error

    def census(self, without: Table | None = None) -> Census:
        """Return all tables as they are now, or were a moment ago, and the places of all files that they speak of.

        Args:
            without: a table that is not among them.
        """
        from rowmerge_nb.connectors.iceberg.census import Census

        census = Census()
        excluded = None if without is None else lower_name(without)
        for name, table in self._loaded(census, excluded):
            census.add(name, table, self._known_files_of)
        # A table that was dropped meanwhile is no broken one.
        for name in list(census.errors) if self._warehouse is not None else ():
            if not self._metadata_files_of(name):
                del census.errors[name]
        return census

    def all(self) -> list[Table]:
        """Return all tables that can be read, as they are now."""
        from rowmerge_nb.connectors.iceberg.census import Census

        return [table for _, table in self._loaded(Census())]

    def _loaded(self, census: Census, excluded: SchemaTableName | None = None) -> Iterator[tuple[SchemaTableName, Table]]:
        """Yield all tables but one; those whose metadata cannot be read are left out of a census."""
        for name in self.names():
            if name == excluded:
                continue
            try:
                table = self.load(name)
            except ConnectorError as error:
                census.leave_out(name, error, self._metadata_files_of(name))
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
        """Take a table's statistics files out."""
        from rowmerge_nb.connectors.iceberg.commits import drop_statistics

        table = self._changed(handle)
        if table.metadata.statistics:
            drop_statistics(handle, table.transaction(), writer)

    def alter(self, handle: IcebergTableHandle, alteration: Alteration, writer: Writer) -> None:
        """Alter a table, if it is as the handle has it: its columns by a commit, its name by the catalog."""
        from rowmerge_nb.connectors.iceberg.commits import alter

        table = self._changed(handle)
        if not isinstance(alteration, RenameTable):
            alter(handle, alteration, table.transaction(), writer)
            return
        self._rename(handle, table, alteration.name, writer)

    def _rename(self, handle: IcebergTableHandle, table: Table, name: SchemaTableName, writer: Writer) -> None:
        from pyiceberg.exceptions import NoSuchNamespaceError, TableAlreadyExistsError

        schema = self._namespaces().get(name.schema, name.schema)
        writer.ask()
        with self._asking(f"table '{handle.name}'", lambda: self._has_identity(name, handle.identity)):
            try:
                self.catalog.rename_table(table.name(), (schema, name.table))
            except TableAlreadyExistsError as error:
                raise ConnectorError(
                    f"Table '{name}' already exists", code="TABLE_ALREADY_EXISTS", hint="Choose another name."
                ) from error
            except NoSuchNamespaceError as error:
                raise ConnectorError(
                    f"Schema '{name.schema}' does not exist", code="SCHEMA_NOT_FOUND", hint="CREATE SCHEMA makes one."
                ) from error

    def restore(
        self, handle: IcebergTableHandle, snapshot: int | None, dropped: Sequence[str], writer: Writer
    ) -> ConnectorTableVersion | None:
        """Make a former snapshot the current one again, if the table is as the handle has it; give the snapshot that is current then.

        Args:
            handle: the table as it was looked up.
            snapshot: the snapshot; None for the time before the first one.
            dropped: columns that go with it.
            writer: the statement that writes.
        """
        from rowmerge_nb.connectors.iceberg.commits import restore

        table = self._changed(handle)
        return restore(handle, snapshot, dropped, table.transaction(), writer)

    def drop(self, handle: IcebergTableHandle) -> None:
        """Drop a table. Its files go with it where they are below the embedded catalog's warehouse; all others stay."""
        table = self.load(handle.name)
        if table is None or str(table.metadata.table_uuid) != handle.identity:
            return
        folder, embedded = self._folder_to_remove(handle, table), self._embedded
        with embedded.leaving(folder) if embedded is not None else nullcontext():
            with self._asking(f"table '{handle.name}'", lambda: not self._has_identity(handle.name, handle.identity)):
                self.catalog.drop_table(table.name())
            if embedded is not None and folder is not None:
                self._remove_dropped(embedded, table, folder)

    def _folder_to_remove(self, handle: IcebergTableHandle, table: Table) -> str | None:
        """Return the folder that goes with a dropped table; None if its files stay."""
        path = local_path(handle.location)
        # A location that the catalog's metadata file does not confirm may be anybody's folder.
        if path is None or own_folder(table) is None or handle.properties.get("gc.enabled", "true").lower() == "false":
            return None
        return path if self._is_within(path) else None

    def _is_within(self, path: str) -> bool:
        """Return whether a folder is below the warehouse; a location may have been given with steps upwards."""
        return self._warehouse is not None and self._warehouse.resolve() in Path(path).resolve().parents

    def _remove_dropped(self, embedded: EmbeddedCatalog, table: Table, folder: str) -> None:
        """Remove the folder of a table that was dropped; what is left of it is found among the orphans."""
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

    def dropped_folders(self, known: Collection[str], age: dt.timedelta) -> list[Orphan]:
        """Return the folders of dropped tables whose removal did not come to its end.

        Args:
            known: the places of all files that the tables of the catalog have; others may have files in a dropped table's folder.
            age: how old a folder must be at least, if nothing is known of the process that removes it.
        """
        embedded = self._embedded
        if embedded is None:
            return []
        with self._asking("catalog"):
            recorded = embedded.dropped_folders()
        places = {*known, *places_of(self._metadata_paths())} if recorded else set()
        orphans = []
        for folder, process in sorted(recorded.items()):
            root = str(Path(folder).resolve())
            if not self._is_within(folder) or any(place.startswith(f"{root}/") for place in places):
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
        """The catalog in the warehouse directory; None with another one."""
        from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog

        return self.catalog if isinstance(self.catalog, EmbeddedCatalog) and self._warehouse is not None else None

    def _has_identity(self, name: SchemaTableName, identity: str) -> bool:
        """Return whether a name is that of a certain table."""
        now = self.load(name)
        return now is not None and str(now.metadata.table_uuid) == identity

    def _is_shared(self, table: Table, folder: Path) -> bool | None:
        """Return whether another table has files in the folder of one that was dropped: registered ones, or those that it writes there.

        Returns:
            None if a table is damaged, so that its files are not known.
        """
        # The table is dropped by now: nothing may fail any more.
        with suppress(Exception):
            if any(Path(other).resolve().is_relative_to(folder) for other in self._metadata_paths()):
                return True
            unknown = files_below(folder) - known_files(table)
            # All other tables are read only if there is anything of theirs to be found; what failed statements have left is nobody's.
            others = filter(None, map(self.load, self.names())) if unknown else ()
            return any(not unknown.isdisjoint(known_files(other)) for other in others)
        return None

    def _metadata_paths(self) -> list[str]:
        """Return the local paths of the newest metadata files of all tables in a warehouse."""
        assert self._embedded is not None
        with self._asking("catalog"):
            return [path for path in map(local_path, self._embedded.metadata_files()) if path is not None]
