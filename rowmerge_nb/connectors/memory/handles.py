"""What the memory connector hands to engine and tasks: tables, transactions, writes, partitionings. All of it pickles."""

from __future__ import annotations

from dataclasses import dataclass

from rowmerge_nb.connectors.memory.table_properties import by_name
from rowmerge_nb.connectors.shared.transforms import Transform, parse_transforms
from rowmerge_nb.spi.handles import (
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorPartitioningHandle,
    ConnectorTableHandle,
    SchemaTableName,
    own,
)
from rowmerge_nb.spi.metadata import ConnectorTableMetadata


@dataclass(frozen=True)
class MemoryTableHandle(ConnectorTableHandle):
    """One version of a table.

    Args:
        name: the table.
        version: the version that is read.
        metadata: columns and properties.
        added: columns, the last ones, that a MERGE is to add: they are NULL in all rows of the version, which has none of them.
    """

    name: SchemaTableName
    version: int
    metadata: ConnectorTableMetadata
    added: frozenset[str] = frozenset()

    def columns_of(self, name: str) -> tuple[str, ...]:
        """Return a property that is a list."""
        return tuple(self.metadata.properties.get(name, ()))

    @property
    def transforms(self) -> tuple[Transform, ...]:
        """What decides the partition of a row."""
        return parse_transforms(self.columns_of("partitioned_by"), by_name(self.metadata.columns))

    @property
    def bucket_count(self) -> int | None:
        """How many buckets the table has; None if it is not bucketed."""
        return self.metadata.properties.get("bucket_count")


@dataclass(frozen=True)
class MemoryInsertTableHandle(ConnectorInsertTableHandle):
    """A table that rows are appended to."""

    table_handle: MemoryTableHandle


@dataclass(frozen=True)
class MemoryMergeTableHandle(ConnectorMergeTableHandle):
    """A table that is merged into; tasks need no more than the handle."""


@dataclass(frozen=True)
class MemoryPartitioningHandle(ConnectorPartitioningHandle):
    """Places: of inserted rows by the hash of their bucket columns or partition values, of changed rows by their row id.

    Args:
        bucket_count: how many places there are.
        arguments: positions of the bucket columns among the layout's columns; None for the layout of row ids.
        transforms: of a table without buckets: what makes the partition values out of which of the layout's columns.
    """

    bucket_count: int
    arguments: tuple[int, ...] | None
    transforms: tuple[Transform, ...] = ()

    @property
    def described(self) -> str:
        """What EXPLAIN prints of it: the transforms one by one; buckets are left to the engine."""
        functions = (f"{t.name.upper()}{'' if t.width is None else f'[{t.width}]'}({t.column})" for t in self.transforms)
        return f"memory:PartitioningHandle[partitionFunctions=[{', '.join(functions)}]]" if self.transforms else ""


def table_handle_of(handle: ConnectorTableHandle) -> MemoryTableHandle:
    """Return a handle as one of this connector."""
    return own(handle, MemoryTableHandle)
