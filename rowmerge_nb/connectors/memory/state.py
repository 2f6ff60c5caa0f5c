"""The connector's state: tables with their versions, and open transactions."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.memory.table_properties import fitted
from rowmerge_nb.connectors.shared.history import no_history, unsupported_version
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorTableMetadata,
    ConnectorTableVersion,
    ConnectorViewDefinition,
    PointerType,
    SchemaTableName,
)

if TYPE_CHECKING:
    from rowmerge_nb.connectors.memory.memory_handles import MemoryTableHandle


@dataclass
class MemoryTable:
    """A table.

    Args:
        former_columns: columns of versions that differ from the current ones.
        first: the first version, which identifies a recreated table.
    """

    metadata: ConnectorTableMetadata
    versions: dict[int, pa.Table]
    committed: dict[int, dt.datetime] = field(default_factory=dict)
    former_columns: dict[int, tuple[ColumnMetadata, ...]] = field(default_factory=dict)
    first: int = 0

    @classmethod
    def of(cls, metadata: ConnectorTableMetadata, version: int, rows: pa.Table) -> MemoryTable:
        return cls(metadata, {version: rows}, first=version)

    def following(self, older: MemoryTable) -> MemoryTable:
        """Return the table with the versions of the table that it replaces, if both have the same
        columns and properties.
        """
        if _shape(older.metadata) != _shape(self.metadata):
            return self
        return replace(
            self,
            versions={**older.versions, **self.versions},
            committed=older.committed,
            former_columns=older.former_columns,
        )

    def takes(self, metadata: ConnectorTableMetadata, version: int) -> bool:
        """Return whether rows can be appended; comments and defaults may differ."""
        return version >= self.first and _shape(metadata) == _shape(self.metadata)

    def has_columns_of(self, version: int) -> bool:
        return version in self.versions and version not in self.former_columns

    def metadata_of(self, version: int) -> ConnectorTableMetadata:
        """Return the definition of a version. One with other columns has no constraints."""
        if version not in self.former_columns:
            return self.metadata
        return replace(self.metadata, columns=self.former_columns[version], check_constraints=())

    def with_columns(self, columns: tuple[ColumnMetadata, ...]) -> MemoryTable:
        """Return the table with other columns; existing versions keep theirs."""
        former_columns = {version: self.metadata_of(version).columns for version in self.versions}
        return replace(
            self, metadata=replace(self.metadata, columns=columns), former_columns=former_columns
        )

    def rows_of(self, version: int) -> pa.Table:
        rows, columns = self.versions[version], self.metadata.columns
        return (
            fitted(rows, self.former_columns[version], columns)
            if version in self.former_columns
            else rows
        )

    @property
    def current(self) -> int:
        return max(self.versions)

    def pruned(self, keep: int) -> MemoryTable:
        """Return the table as committed now, with the current rows and those of ``keep`` previous
        changes.

        A restored version shares its rows with the original, and does not count.
        """
        contents: set[int] = set()
        versions: dict[int, pa.Table] = {}
        for version in sorted(self.versions, reverse=True)[: 2 * (keep + 1)]:
            contents.add(id(self.versions[version]))
            if len(contents) > keep + 1:
                break
            versions[version] = self.versions[version]
        committed = {
            version: time for version, time in self.committed.items() if version in versions
        }
        now = dt.datetime.now(dt.UTC)
        if self.current not in committed:
            # Commit times must differ, so that each version can be named by time.
            last = max(committed.values(), default=now - dt.timedelta(days=1))
            committed[self.current] = max(now, last + dt.timedelta(microseconds=1))
        former_columns = {
            version: columns
            for version, columns in self.former_columns.items()
            if version in versions
        }
        return MemoryTable(self.metadata, versions, committed, former_columns, self.first)

    def version_of(self, version: ConnectorTableVersion, time_zone: str) -> int:
        kept_versions = ", ".join(map(str, sorted(self.versions)))
        if version.pointer_type is PointerType.TEMPORAL:
            instant = version.instant(time_zone).astimezone(dt.UTC)
            latest = max(
                (number for number, time in self.committed.items() if time <= instant), default=None
            )
            if latest is None:
                first = min(self.committed.values(), default=None)
                since = "" if first is None else f" since {first:%Y-%m-%d %H:%M:%S.%f} UTC"
                raise no_history(
                    self.metadata.name, instant, f"Kept{since} are the versions {kept_versions}."
                )
            return latest
        number = version.version
        if not isinstance(number, int) or isinstance(number, bool):
            version_type = version.version_type or type(number).__name__
            raise unsupported_version(
                version_type,
                f"Versions of tables in memory are numbers; retained are {kept_versions}.",
            )
        if number not in self.versions:
            raise ConnectorError.invalid(self.missing(number), hint=KEEPING)
        return number

    def missing(self, version: int) -> str:
        return (
            f"Version {version} of table '{self.metadata.name}' is not retained;"
            f" available are {sorted(self.versions)}"
        )


def replaced_error(name: SchemaTableName) -> ConnectorError:
    return ConnectorError(
        f"Table '{name}' was dropped, replaced or altered while the statement ran",
        code="TRANSACTION_CONFLICT",
        hint="Run the statement again.",
    )


def _shape(metadata: ConnectorTableMetadata) -> tuple[object, ...]:
    columns = tuple((column.name, column.type, column.nullable) for column in metadata.columns)
    return columns, dict(metadata.properties), metadata.check_constraints


KEEPING: Final = "MemoryConnector(keep_versions=...) sets how many are kept."


@dataclass
class MemoryTransaction:
    """What a transaction reads, and the changes of its commit."""

    number: int = 0
    read: dict[SchemaTableName, int] = field(default_factory=dict)
    pinned: dict[tuple[SchemaTableName, int], pa.Table] = field(default_factory=dict)
    tables: dict[SchemaTableName, MemoryTable | None] = field(default_factory=dict)
    views: dict[SchemaTableName, ConnectorViewDefinition | None] = field(default_factory=dict)
    schemas: dict[str, bool] = field(default_factory=dict)
    appended: dict[SchemaTableName, tuple[MemoryTableHandle, pa.Table]] = field(
        default_factory=dict
    )
