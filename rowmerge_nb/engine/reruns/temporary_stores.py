"""Stores in a temporary folder, for copies of tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import RowMergeError, SetupError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.base.private import PrivateDirectory
from rowmerge_nb.engine.catalog.table_files import SplitRecorder, files_of_table
from rowmerge_nb.engine.spark.interrupts import to_its_end
from rowmerge_nb.spi.handles import ReadFile, SchemaTableName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.spi.connector import Connector


@dataclass(frozen=True)
class StoreKind:
    """A store that can be opened in a temporary folder.

    Args:
        compaction: the statement that compacts a table, with its ``table``, and its ``catalog``,
            ``schema`` and ``name``; ``""`` if it needs none.
        has_files: whether its tables are files, which splits report.
    """

    meaning: str
    open: Callable[[Path], Connector]
    properties: Mapping[str, str] = field(default_factory=dict)
    schema: str = "default"
    compaction: str = ""
    has_files: bool = True


def _memory(_folder: Path) -> Connector:
    from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector

    return MemoryConnector(keep_versions=1)


def _hive(folder: Path) -> Connector:
    from rowmerge_nb.connectors.hive_acid.hive_connector import HiveAcidConnector

    return HiveAcidConnector(folder)


def _iceberg(folder: Path) -> Connector:
    from rowmerge_nb.connectors.iceberg.iceberg_connector import IcebergConnector

    return IcebergConnector(folder)


def _delta(folder: Path) -> Connector:
    from rowmerge_nb.connectors.delta.delta_connector import DeltaConnector

    return DeltaConnector(folder)


def _sqlite(folder: Path) -> Connector:
    from rowmerge_nb.connectors.jdbc.sqlite.sqlite_connector import SqliteConnector

    folder.mkdir(parents=True, exist_ok=True)
    return SqliteConnector(folder / SQLITE_FILE, create=True)


SQLITE_FILE: Final = "tables.db"
_COPY_ON_WRITE: Final = (
    "MAP(ARRAY['write.merge.mode', 'write.update.mode', 'write.delete.mode'],"
    " ARRAY['copy-on-write', 'copy-on-write', 'copy-on-write'])"
)
_OPTIMIZE: Final = "ALTER TABLE {table} EXECUTE optimize"

STORE_KINDS: Final[Mapping[str, StoreKind]] = {
    "memory": StoreKind("tables in memory, changed in place", _memory, has_files=False),
    "hive": StoreKind(
        "Hive ACID: delta files, merged by readers",
        _hive,
        compaction="CALL {catalog}.system.compact('{schema}', '{name}')",
    ),
    "iceberg_merge_on_read": StoreKind(
        "Iceberg with position delete files, merged by readers", _iceberg, compaction=_OPTIMIZE
    ),
    "iceberg_copy_on_write": StoreKind(
        "Iceberg, whose changed files are rewritten",
        _iceberg,
        {"extra_properties": _COPY_ON_WRITE},
        compaction=_OPTIMIZE,
    ),
    "delta": StoreKind(
        "Delta Lake, whose changed files are rewritten", _delta, compaction=_OPTIMIZE
    ),
    "sqlite": StoreKind(
        "SQLite, whose rows are changed in place", _sqlite, schema="main", has_files=False
    ),
}
"""The stores by name."""


def checked_stores(stores: object, others: Collection[str] = ()) -> tuple[str, ...]:
    """Return the names of different stores, in lower case.

    Raises:
        RowMergeError: INVALID_ARGUMENTS.

    >>> checked_stores(["Delta", "hive"])
    ('delta', 'hive')
    """
    if stores is None:
        return tuple(STORE_KINDS)
    example = f"Name some of: {', '.join(STORE_KINDS)}."
    if not isinstance(stores, list | tuple) or not all(isinstance(name, str) for name in stores):
        raise RowMergeError.invalid(f"stores = {stores!r} is not a list of names", hint=example)
    names = tuple(name.strip().lower() for name in stores)
    known_names = (*STORE_KINDS, *others)
    for name in names:
        if name not in known_names:
            raise RowMergeError.invalid(
                f"There is no store '{name}'",
                hint=did_you_mean(name, known_names) or f"There are: {', '.join(known_names)}.",
            )
        if names.count(name) > 1:
            raise RowMergeError.invalid(
                f"Store '{name}' is named twice",
                hint="Name each store once.",
            )
    if not names:
        raise RowMergeError.invalid("No store is named", hint=example)
    return names


class OpenStore:
    def __init__(self, name: str, catalog: str, folder: Path) -> None:
        self.name, self.catalog = name, catalog
        self.kind = STORE_KINDS[name]
        self._folder = folder
        self.connector = self.kind.open(folder)
        self.recorder = SplitRecorder(self.connector)

    def table_name(self, table: str) -> TableName:
        return self.catalog, self.kind.schema, table

    def files(self, table: str) -> dict[str, ReadFile]:
        if self.name == "sqlite":
            path = self._folder / SQLITE_FILE
            return {path.name: ReadFile(path.name, path.stat().st_size)}
        return files_of_table(self.connector, SchemaTableName(self.kind.schema, table))


class TemporaryStores:
    """Stores in a temporary folder, until `remove`.

    Args:
        other_names: names of catalogs that theirs must differ from.
    """

    def __init__(self, names: Sequence[str], other_names: Collection[str]) -> None:
        self._directory = PrivateDirectory()
        self.stores: dict[str, OpenStore] = {}
        self.refusals: dict[str, SetupError] = {}
        try:
            for name in names:
                catalog = f"copy_{name}" if name in other_names else name
                try:
                    self.stores[name] = OpenStore(name, catalog, self._directory.path / name)
                except SetupError as error:
                    self.refusals[name] = error
        except BaseException:
            self.remove()
            raise

    @property
    def connectors(self) -> dict[str, Connector]:
        return {store.catalog: store.connector for store in self.stores.values()}

    def remove(self) -> None:
        def end() -> None:
            while self.stores:
                self.stores.popitem()[1].connector.close()
            self._directory.remove()

        to_its_end(end)
