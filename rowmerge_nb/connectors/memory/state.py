"""What the connector holds: tables in several versions, and what a transaction has read and will make visible."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.memory.table_properties import fitted
from rowmerge_nb.connectors.shared.history import no_history, unsupported_version
from rowmerge_nb.spi.handles import ConnectorTableVersion, PointerType, SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata, ConnectorViewDefinition

if TYPE_CHECKING:
    from rowmerge_nb.connectors.memory.handles import MemoryTableHandle


@dataclass
class MemoryTable:
    """A table.

    Args:
        metadata: what it may hold.
        versions: its rows by version.
        committed: since when each version is there; one that is not committed has no time.
        former: the columns of versions that have other ones than the table has now.
        first: the number of the first version. A table that is dropped and made again has another one.
    """

    metadata: ConnectorTableMetadata
    versions: dict[int, pa.Table]
    committed: dict[int, dt.datetime] = field(default_factory=dict)
    former: dict[int, tuple[ColumnMetadata, ...]] = field(default_factory=dict)
    first: int = 0

    @classmethod
    def of(cls, metadata: ConnectorTableMetadata, version: int, rows: pa.Table) -> MemoryTable:
        """Build a table with one version."""
        return cls(metadata, {version: rows}, first=version)

    def takes(self, metadata: ConnectorTableMetadata, version: int) -> bool:
        """Return whether rows can be appended that were made for a version of this table with a certain definition.

        Comments and defaults may have changed since: they say nothing of rows that are complete.
        """
        return version >= self.first and _shape(metadata) == _shape(self.metadata)

    def has_columns_of(self, version: int) -> bool:
        """Return whether a version is kept whose columns the table still has, so that changes of its rows fit."""
        return version in self.versions and version not in self.former

    def metadata_of(self, version: int) -> ConnectorTableMetadata:
        """Return the definition of a version: with the columns that it has. One of other columns has no constraints: it is only read."""
        if version not in self.former:
            return self.metadata
        return replace(self.metadata, columns=self.former[version], check_constraints=())

    def with_columns(self, columns: tuple[ColumnMetadata, ...]) -> MemoryTable:
        """Return the table with other columns; its versions keep those that they have."""
        former = {version: self.metadata_of(version).columns for version in self.versions}
        return replace(self, metadata=replace(self.metadata, columns=columns), former=former)

    def rows_of(self, version: int) -> pa.Table:
        """Return the rows of a version under the columns that the table has now."""
        rows, columns = self.versions[version], self.metadata.columns
        return fitted(rows, self.former[version], columns) if version in self.former else rows

    @property
    def current(self) -> int:
        """The latest version."""
        return max(self.versions)

    def kept(self, keep: int) -> MemoryTable:
        """Return the table as it is committed now: with its current rows and those of the ``keep`` changes before them.

        A version that was restored shares its rows with the one that it was restored from, and takes no place of its own; so that numbers
        do not pile up all the same, there are no more than two for each place.
        """
        contents: set[int] = set()
        versions: dict[int, pa.Table] = {}
        for version in sorted(self.versions, reverse=True)[: 2 * (keep + 1)]:
            contents.add(id(self.versions[version]))
            if len(contents) > keep + 1:
                break
            versions[version] = self.versions[version]
        committed = {version: time for version, time in self.committed.items() if version in versions}
        now = dt.datetime.now(dt.UTC)
        if self.current not in committed:
            # Two commits never have one time, or a moment between them could not be named.
            last = max(committed.values(), default=now - dt.timedelta(days=1))
            committed[self.current] = max(now, last + dt.timedelta(microseconds=1))
        former = {version: columns for version, columns in self.former.items() if version in versions}
        return MemoryTable(self.metadata, versions, committed, former, self.first)

    def version_of(self, version: ConnectorTableVersion, time_zone: str) -> int:
        """Find a version that is kept.

        Raises:
            ConnectorError: INVALID_ARGUMENTS if it is not kept, NOT_SUPPORTED for a version that is no number and no moment.
        """
        kept = ", ".join(map(str, sorted(self.versions)))
        if version.pointer_type is PointerType.TEMPORAL:
            instant = version.instant(time_zone).astimezone(dt.UTC)
            found = max((number for number, time in self.committed.items() if time <= instant), default=None)
            if found is None:
                first = min(self.committed.values(), default=None)
                since = "" if first is None else f" since {first:%Y-%m-%d %H:%M:%S.%f} UTC"
                raise no_history(self.metadata.name, instant, f"Kept{since} are the versions {kept}.")
            return found
        number = version.version
        if not isinstance(number, int) or isinstance(number, bool):
            kind = version.version_type or type(number).__name__
            raise unsupported_version(kind, f"Versions of tables in memory are numbers; kept are {kept}.")
        if number not in self.versions:
            raise ConnectorError(self.missing(number), code="INVALID_ARGUMENTS", hint=KEEPING)
        return number

    def missing(self, version: int) -> str:
        """Report that a version is not kept."""
        return f"Version {version} of table '{self.metadata.name}' is not kept; there are {sorted(self.versions)}"


def replaced_error(name: SchemaTableName) -> ConnectorError:
    """Build the error of a table that is another one by now."""
    return ConnectorError(
        f"Table '{name}' was dropped, replaced or altered while the statement ran",
        code="TRANSACTION_CONFLICT",
        hint="Run the statement again.",
    )


def _shape(metadata: ConnectorTableMetadata) -> tuple[object, ...]:
    """Return what rows of a table must fit."""
    columns = tuple((column.name, column.type, column.nullable) for column in metadata.columns)
    return columns, dict(metadata.properties), metadata.check_constraints


KEEPING: Final = "MemoryConnector(keep_versions=...) says how many are kept."


@dataclass
class MemoryTransaction:
    """What a transaction has read, and what it will make visible: per table its next state, None for a dropped one.

    Views likewise; of schemas whether they are there.

    Args:
        number: the number of the transaction.
        appended: the rows that it appends to tables that it changes in no other way; they fit every state of the table.
    """

    number: int = 0
    read: dict[SchemaTableName, int] = field(default_factory=dict)
    pinned: dict[tuple[SchemaTableName, int], pa.Table] = field(default_factory=dict)
    tables: dict[SchemaTableName, MemoryTable | None] = field(default_factory=dict)
    views: dict[SchemaTableName, ConnectorViewDefinition | None] = field(default_factory=dict)
    schemas: dict[str, bool] = field(default_factory=dict)
    appended: dict[SchemaTableName, tuple[MemoryTableHandle, pa.Table]] = field(default_factory=dict)
