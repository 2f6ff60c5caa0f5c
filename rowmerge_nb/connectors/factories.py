"""The stores of this package, by name; pyproject.toml has the same entry points."""

from __future__ import annotations

import shlex
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi.factory import ConnectorFactory, ConnectorProperty, PropertyType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.connectors.delta.delta_connector import DeltaConnector
    from rowmerge_nb.connectors.hive_acid.hive_connector import HiveAcidConnector
    from rowmerge_nb.connectors.iceberg.iceberg_connector import IcebergConnector
    from rowmerge_nb.connectors.jdbc.postgresql.postgres_connector import PostgresConnector
    from rowmerge_nb.connectors.jdbc.sqlite.sqlite_connector import SqliteConnector
    from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
    from rowmerge_nb.connectors.trino.trino_connector import TrinoConnector


def _memory(keep_versions: int = 5) -> MemoryConnector:
    from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector

    return MemoryConnector(keep_versions)


def _hive_acid(
    directory: Path | None = None,
    metastore: str | None = None,
    compression_codec: str = "GZIP",
    create: bool = False,
) -> HiveAcidConnector:
    from rowmerge_nb.connectors.hive_acid.hive_connector import HiveAcidConnector

    if directory is not None and metastore is None and not create:
        _require_file(directory, "metastore.sqlite")
    return HiveAcidConnector(directory, metastore, compression_codec=compression_codec)


def _iceberg(
    warehouse: Path | None = None,
    catalog: str | None = None,
    properties: Mapping[str, str] | None = None,
    min_retention_days: int = 7,
    create: bool = False,
) -> IcebergConnector:
    from rowmerge_nb.connectors.iceberg.iceberg_connector import IcebergConnector

    if warehouse is not None and catalog is None and not create:
        _require_file(warehouse, "catalog.sqlite")
    return IcebergConnector(
        warehouse,
        catalog=catalog,
        properties=properties,
        min_retention=timedelta(days=min_retention_days),
    )


def _delta(directory: Path, min_retention_days: int = 7, create: bool = False) -> DeltaConnector:
    from rowmerge_nb.connectors.delta.delta_connector import DeltaConnector

    if not create:
        _require_folder(directory)
    return DeltaConnector(directory, min_retention=timedelta(days=min_retention_days))


def _require_folder(folder: Path) -> None:
    if not Path(folder).is_dir():
        raise ConnectorError(
            f"There is no folder '{folder}'",
            code="NOT_FOUND",
            hint="Correct the path, or write create=true for a new folder.",
        )


def _require_file(folder: Path, name: str) -> None:
    """Refuse a folder without a catalog, which a connector would create."""
    _require_folder(folder)
    if (Path(folder) / name).is_file():
        return
    above = next(
        (each for each in Path(folder).absolute().parents if (each / name).is_file()), None
    )
    raise ConnectorError(
        f"The folder '{folder}' has no {name}, which lists the tables",
        code="NOT_FOUND",
        hint=(
            "Correct the path, or write create=true for a new one."
            if above is None
            else f"Connect the folder that has it: {shlex.quote(str(above))}."
        ),
    )


def _sqlite(path: Path, create: bool = False) -> SqliteConnector:
    from rowmerge_nb.connectors.jdbc.sqlite.sqlite_connector import SqliteConnector

    if not create and not path.exists():
        raise ConnectorError(
            f"There is no file '{path}'",
            code="NOT_FOUND",
            hint="Correct the path, or write create=true for a new file.",
        )
    return SqliteConnector(path, create=create)


def _postgresql(dsn: str, password: str | None = None) -> PostgresConnector:
    from rowmerge_nb.connectors.jdbc.postgresql.postgres_connector import PostgresConnector

    return PostgresConnector(dsn if password is None else dsn_with_password(dsn, password))


def dsn_with_password(dsn: str, password: str) -> str:
    if "://" in dsn:
        return f"{dsn}{'&' if '?' in dsn else '?'}password={quote(password, safe='')}"
    escaped = password.replace("\\", "\\\\").replace("'", "\\'")
    return f"{dsn} password='{escaped}'"


def _trino(
    catalog_file: Path,
    plugin: Sequence[Path] | None = None,
    trino: Path | None = None,
    maven: str | None = None,
    session: Mapping[str, str] | None = None,
    java: Path | None = None,
    java_options: Sequence[str] = (),
    plugin_class: str | None = None,
    sources: Sequence[Path] | None = None,
    processes: int = 2,
) -> TrinoConnector:
    from rowmerge_nb.connectors.trino.trino_connector import TrinoConnector

    return TrinoConnector.from_catalog_file(
        catalog_file,
        plugin=plugin,
        trino=trino,
        maven=maven,
        session=dict(session or {}),
        java=java,
        java_options=java_options,
        plugin_class=plugin_class,
        sources=sources,
        processes=processes,
    )


def _text(meaning: str, **flags: Any) -> ConnectorProperty:
    return ConnectorProperty(meaning, **flags)


def _of(value_type: PropertyType, meaning: str, **flags: Any) -> ConnectorProperty:
    return ConnectorProperty(meaning, value_type, **flags)


MEMORY: Final = ConnectorFactory(
    "memory",
    "tables in memory, which exist as long as the engine",
    _memory,
    {"keep_versions": _of(PropertyType.INTEGER, "the number of earlier versions of a table")},
)
HIVE_ACID: Final = ConnectorFactory(
    "hive_acid",
    "Hive's transactional tables",
    _hive_acid,
    {
        "directory": _of(PropertyType.PATH, "the folder of metastore.sqlite and warehouse"),
        "metastore": _text("the address thrift://host:port of a Hive Metastore"),
        "compression_codec": _text("GZIP, ZSTD, SNAPPY or NONE, for new files"),
        "create": _of(
            PropertyType.BOOLEAN, "whether to create a missing folder or metastore.sqlite"
        ),
    },
    "directory",
    {"thrift": "metastore"},
)
ICEBERG: Final = ConnectorFactory(
    "iceberg",
    "Iceberg tables",
    _iceberg,
    {
        "warehouse": _of(PropertyType.PATH, "the folder of the tables and of catalog.sqlite"),
        "catalog": _text("instead: a catalog's name in pyiceberg's configuration"),
        "properties": _of(PropertyType.TABLE, "pyiceberg's properties of the catalog"),
        "min_retention_days": _of(
            PropertyType.INTEGER, "the minimum age of what expire_snapshots removes"
        ),
        "create": _of(PropertyType.BOOLEAN, "whether to create a missing folder or catalog.sqlite"),
    },
    "warehouse",
)
DELTA: Final = ConnectorFactory(
    "delta",
    "Delta Lake tables",
    _delta,
    {
        "directory": _of(
            PropertyType.PATH, "the folder of schemas, with their tables", required=True
        ),
        "min_retention_days": _of(PropertyType.INTEGER, "the minimum age of what vacuum removes"),
        "create": _of(PropertyType.BOOLEAN, "whether to create a missing folder"),
    },
    "directory",
)
SQLITE: Final = ConnectorFactory(
    "sqlite",
    "the tables of an SQLite file",
    _sqlite,
    {
        "path": _of(PropertyType.PATH, "the database file", required=True),
        "create": _of(PropertyType.BOOLEAN, "whether to create a missing file"),
    },
    "path",
)
POSTGRESQL: Final = ConnectorFactory(
    "postgresql",
    "the tables of a PostgreSQL database",
    _postgresql,
    {
        "dsn": _text("the address postgresql://user@host:port/database", required=True),
        "password": _text("the password, if PGPASSWORD and ~/.pgpass lack it", secret=True),
    },
    "dsn",
    {"postgresql": "dsn", "postgres": "dsn"},
)
TRINO: Final = ConnectorFactory(
    "trino",
    "a connector plugin of Trino",
    _trino,
    {
        "catalog_file": _of(
            PropertyType.PATH, "the catalog file, such as etc/catalog/ice.properties", required=True
        ),
        "plugin": _of(PropertyType.PATHS, "the folder with the plugin's jars"),
        "trino": _of(PropertyType.PATH, "the folder with the jars of trino-main, or coordinates"),
        "maven": _text("instead of plugin: its Maven coordinates"),
        "session": _of(PropertyType.TABLE, "the plugin's session properties"),
        "java": _of(PropertyType.PATH, "the folder of a JDK 25 or later"),
        "java_options": _of(PropertyType.TEXTS, "further options of Java"),
        "plugin_class": _text("the class that implements Trino's Plugin, if several do"),
        "sources": _of(PropertyType.PATHS, "the plugin's source text, for reports of errors"),
        "processes": _of(PropertyType.INTEGER, "2, or 1 for a plugin with its rows in memory"),
    },
    "catalog_file",
)
