"""The stores of the trials: a table with some rows, created once and restored before every trial."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from proof.engines.postgresql import private_server
from proof.trials.driver import read
from proof.trials.points.in_process import InProcessEngine
from proof.trials.readers import READERS, MissingTableError
from rowmerge_nb.base.private import sweep

if TYPE_CHECKING:
    from rowmerge_nb.spi.connector import Connector

__all__ = ["FURTHER", "NEWS", "ROWS", "STORES", "Rows", "Store", "reopened", "store_of", "table_of"]

Rows = Mapping[int, tuple[int, str]]
"""A table's rows by their keys."""

ROWS: Final[Rows] = {key: (7 * key + 1, "ab"[key % 2]) for key in range(12)}
NEWS: Final[Rows] = {
    1: (10, "b"),
    2: (20, "a"),
    4: (3, "a"),
    5: (4, "b"),
    12: (1, "a"),
    13: (2, "b"),
}
"""The source of the MERGE: it deletes, updates and inserts one row in each of two partitions."""
FURTHER: Final[Rows] = {2: (30, "a"), 3: (5, "b"), 6: (6, "a"), 20: (7, "a")}
"""The source of the following MERGE."""
_MINUTES: Final = 5


def table_of(rows: Rows) -> pa.Table:
    """Return rows as a table.

    >>> table_of({1: (2, "a")}).to_pylist()
    [{'id': 1, 'v': 2, 'name': 'a'}]
    """
    values, names = zip(*rows.values(), strict=True)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "v": pa.array(values, pa.int64()),
            "name": pa.array(names, pa.string()),
        }
    )


class Store:
    """A store, initially empty.

    Args:
        root: its own directory.
        partitioned: the table is partitioned by ``name``, if supported.
    """

    name: ClassVar[str]
    schema: ClassVar[str] = "default"
    properties: ClassVar[tuple[str, str]] = ("", "")
    """The properties in CREATE TABLE, without and with partitions."""
    survives: ClassVar[bool] = True
    """Whether the table outlives the process."""

    def __init__(self, root: Path, *, partitioned: bool = True) -> None:
        self.root = root
        self.live = root / "live"
        self._saved = root / "saved"
        self._partitioned = partitioned
        self.live.mkdir()

    @property
    def directories(self) -> list[str]:
        """The directories whose files are watched."""
        return [str(self.live)]

    def connector(self) -> Connector:
        """Open the store."""
        raise NotImplementedError

    def engine(self, connector: Connector) -> InProcessEngine:
        """Return an engine whose default catalog it is."""
        engine = InProcessEngine(catalog="store", schema=self.schema)
        engine.add_catalog("store", connector)
        return engine

    def fill(self, engine: InProcessEngine) -> None:
        """Create the table with `ROWS`."""
        engine.run(
            "CREATE TABLE t (id bigint, v bigint, name"
            f" varchar){self.properties[self._partitioned]}"
        )
        engine.merge(table_of(ROWS))

    @property
    def is_saved(self) -> bool:
        """Whether a saved table exists."""
        return self._saved.exists()

    def foreign_rows(self) -> list[list[Any]] | None:
        """Return the rows of the table ``t`` as an independent reader sees them, sorted; None if
        the store has none.
        """
        reader = READERS.get(self.name)
        try:
            return (
                None
                if reader is None
                else sorted(map(list, reader(str(self.live), "t", ("id", "v", "name"))))
            )
        except MissingTableError:
            return []

    def save(self) -> None:
        """Save the current state."""
        shutil.copytree(self.live, self._saved, symlinks=True)

    def lay(self) -> None:
        """Restore the saved state."""
        shutil.rmtree(self.live)
        shutil.copytree(self._saved, self.live, symlinks=True)

    def rows(self, connector: Connector) -> dict[int, tuple[int, str]] | list[Any]:
        """Read the table; return a list of rows if keys repeat."""
        records = read(connector, self.schema).to_pylist()
        rows = {row["id"]: (row["v"], row["name"]) for row in records}
        return rows if len(rows) == len(records) else records

    def things(self) -> list[str]:
        """List all objects, files and database objects, without the connector.

        The journal of an SQLite file is not separate: the next writer consumes it.
        """
        paths = (path for path in self.live.rglob("*") if not path.name.endswith("-journal"))
        return sorted(str(path.relative_to(self.live)) for path in paths)

    def swept(self) -> list[str]:
        """Return files that outlive the process and do not belong to the store."""
        return []

    def age(self) -> None:
        """Make files some minutes older, so that incomplete folders and files count as abandoned."""
        then = time.time() - _MINUTES * 60
        for path in self.live.rglob("*"):
            os.utime(path, (then, then))


def shape(things: list[str]) -> list[str]:
    """Return names without the numbers that differ between runs.

    >>> shape(["t/delta_0000002_0000002_0000/bucket_00000", "t/0b2c4d5e6f-m0.avro"])
    ['t/#-m#.avro', 't/delta_#_#_#/bucket_#']
    """
    return sorted(re.sub(r"[0-9a-f]{8,}(-[0-9a-f]{4,})*|[0-9]+", "#", thing) for thing in things)


class Memory(Store):
    """Tables in memory; here, every table is large enough for files in the directory."""

    name = "memory"
    properties = ("", " WITH (partitioned_by = ARRAY['name'])")
    survives = False

    def lay(self) -> None:
        """Create an empty directory."""
        shutil.rmtree(self.live)
        self.live.mkdir()

    def things(self) -> list[str]:
        """Return nothing: files of tables are removed when the connector is closed."""
        return []

    def swept(self) -> list[str]:
        """Clean up as the next process that starts Spark; return the remaining files.

        A lock without a mark may be in use.
        """
        tempfile.tempdir = str(self.live)
        sweep()
        return [
            str(path.relative_to(self.live))
            for path in self.live.rglob("*")
            if path.is_file() and path.stat().st_size
        ]

    def connector(self) -> Connector:
        """Create the connector and its table."""
        from rowmerge_nb.connectors.memory import reading
        from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector

        reading.INLINE_BYTES = -1
        tempfile.tempdir = str(self.live)
        connector = MemoryConnector()
        self.fill(self.engine(connector))
        return connector


class Hive(Store):
    """Transactional tables with the embedded metastore."""

    name = "hive"
    properties = ("", " WITH (partitioned_by = ARRAY['name'])")

    def connector(self) -> Connector:
        """Open the metastore."""
        from rowmerge_nb import HiveAcidConnector

        return HiveAcidConnector(self.live)


class Iceberg(Store):
    """Tables with the embedded catalog."""

    name = "iceberg"
    properties = ("", " WITH (partitioning = ARRAY['name'])")

    def connector(self) -> Connector:
        """Open the catalog."""
        from rowmerge_nb import IcebergConnector

        return IcebergConnector(self.live, min_retention=timedelta(0))


class Delta(Store):
    """Tables with a log of their own."""

    name = "delta"
    properties = ("", " WITH (partitioned_by = ARRAY['name'])")

    def connector(self) -> Connector:
        """Open the directory."""
        from rowmerge_nb import DeltaConnector

        return DeltaConnector(self.live, min_retention=timedelta(0))


class Sqlite(Store):
    """A database file."""

    name = "sqlite"
    schema = "main"
    properties = (" WITH (primary_key = ARRAY['id'])",) * 2

    def connector(self) -> Connector:
        """Open the file."""
        from rowmerge_nb import SqliteConnector

        return SqliteConnector(self.live / "shop.db", create=True)


class Postgresql(Store):
    """A database of a private server.

    Args:
        root: its own directory, which stays empty.
        dsn: the database.
        partitioned: ignored.
    """

    name = "postgresql"
    schema = "public"
    is_saved = False
    properties = (" WITH (primary_key = ARRAY['id'])",) * 2

    def __init__(self, root: Path, dsn: str, *, partitioned: bool = True) -> None:
        super().__init__(root, partitioned=partitioned)
        self.dsn = dsn
        self.is_saved = False
        self._connection: Any = None

    def connector(self) -> Connector:
        """Return the connector of the server."""
        from rowmerge_nb import PostgresConnector

        return PostgresConnector(self.dsn)

    def save(self) -> None:
        """Save a copy of the table."""
        self._run("CREATE SCHEMA saved", "CREATE TABLE saved.t AS TABLE public.t")
        self.is_saved = True

    def foreign_rows(self) -> list[list[Any]] | None:
        """Return the rows of the table as ``psql`` sees them, sorted."""
        if "t" not in self.things():
            return []
        return sorted(map(list, READERS[self.name](self.dsn, "t", ("id", "v", "name"))))

    def lay(self) -> None:
        """Restore the table, and drop everything else."""
        self._run(
            # The session of a killed process keeps its locks for a moment.
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND datname = current_database()",
            "DROP SCHEMA public CASCADE",
            "CREATE SCHEMA public",
            "CREATE TABLE t AS TABLE saved.t",
            "ALTER TABLE t ADD PRIMARY KEY (id)",
        )

    def things(self) -> list[str]:
        """List the tables."""
        tables = self._run(
            "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND"
            " relkind = 'r'"
        )
        return sorted(row[0] for row in tables)

    def _run(self, *statements: str) -> list[Any]:
        """Run statements over a persistent connection: connecting takes longer than all of them."""
        from adbc_driver_postgresql import dbapi

        rows: list[Any] = []
        self._connection = self._connection or dbapi.connect(self.dsn, autocommit=True)
        with self._connection.cursor() as cursor:
            for sql in statements:
                cursor.execute(sql)
                rows = cursor.fetchall() if sql.startswith("SELECT") else []
        return rows


STORES: Final[Mapping[str, type[Store]]] = {
    kind.name: kind for kind in (Memory, Hive, Iceberg, Delta, Sqlite, Postgresql)
}


def reopened(name: str, where: str) -> Store:
    """Return a store created by another process.

    Args:
        name: the kind of store.
        where: its directory; for PostgreSQL the connection string.
    """
    store = STORES[name].__new__(STORES[name])
    store.live = Path(where)
    if isinstance(store, Postgresql):
        store.dsn = where
    return store


@contextmanager
def store_of(name: str, *, partitioned: bool = True) -> Iterator[Store]:
    """Yield an empty store; remove it afterwards.

    Raises:
        SetupError: the machine lacks a requirement.
    """
    with tempfile.TemporaryDirectory(
        prefix=f"rowmerge_nb-points-{name}-", ignore_cleanup_errors=True
    ) as folder:
        if name == "postgresql":
            with private_server() as dsn:
                yield Postgresql(Path(folder), dsn, partitioned=partitioned)
        else:
            yield STORES[name](Path(folder), partitioned=partitioned)
