"""Catalogs of pyiceberg: opening them, what they are, and their errors."""

from __future__ import annotations

import sqlite3
import weakref
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote as percent

from rowmerge_nb.base.errors import ConnectorError, SetupError, error_text
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.connectors.iceberg.servers import local_path
from rowmerge_nb.connectors.shared.disk import refused
from rowmerge_nb.connectors.shared.sqlite_errors import is_full, is_read_only

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyiceberg.catalog import Catalog

_CURSORS: Final = "rowmerge_nb.cursors"
ENTRIES: Final = (
    "SELECT table_namespace, table_name, metadata_location FROM iceberg_tables WHERE"
    " metadata_location IS NOT NULL"
)
"""The query of the tables of a warehouse's catalog."""


def embedded_catalog(directory: Path, properties: Mapping[str, str] | None = None) -> Catalog:
    """Return the catalog in a warehouse directory: a SQLite file."""
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
    with catalog_errors(f"catalog '{file}'"):
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
            f"The catalog '{file}' is missing, but there are tables in the directory,"
            f" such as '{newest.parent.parent}'",
            code="ICEBERG_CATALOG_ERROR",
            hint=(
                "Restore the file. If it is lost, create a connector for a new"
                " directory, and register each table there by its newest metadata file:"
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
        # An unreadable catalog has no tables.
        with (
            suppress(sqlite3.Error),
            closing(sqlite3.connect(f"file:{percent(str(file))}?mode=ro", uri=True)) as connection,
        ):
            for schema, name, location in connection.execute(ENTRIES):
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
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError as error:
        raise _missing() from error
    with catalog_errors(f"catalog '{name}'"):
        return load_catalog(name, **dict(properties))


def is_in_memory(catalog: Catalog) -> bool:
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


def close_cursors(catalog: Catalog) -> None:
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
        "pyiceberg, which reads and writes Iceberg's metadata, is not installed",
        hint=f"Run: {install_command('iceberg')}",
    )


@contextmanager
def catalog_errors(what: str) -> Iterator[None]:
    try:
        yield
    except (ConnectorError, SetupError):
        raise
    except Exception as error:
        if is_full(error):
            raise ConnectorError(
                f"Iceberg {what} cannot be written: its disk is full",
                code="GENERIC_INSUFFICIENT_RESOURCES",
                hint="Free space on the disk, and run the statement again.",
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


def is_refusal(error: BaseException | None) -> bool:
    """Return whether a catalog has answered that it does not make a change."""
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


def is_about_metadata(error: Exception) -> bool:
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
