"""Handles for engine and tasks. They pickle."""

from __future__ import annotations

from dataclasses import dataclass

from rowmerge_nb.connectors.memory.table_properties import by_name
from rowmerge_nb.connectors.shared.transforms import Transform, parse_transforms
from rowmerge_nb.spi import (
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorPartitioningHandle,
    ConnectorTableHandle,
    ConnectorTableMetadata,
    SchemaTableName,
    own,
)


@dataclass(frozen=True)
class MemoryTableHandle(ConnectorTableHandle):
    """One version of a table, and columns that a MERGE adds or gives another type."""

    name: SchemaTableName
    version: int
    metadata: ConnectorTableMetadata
    column_changes: frozenset[str] = frozenset()

    def columns_of(self, name: str) -> tuple[str, ...]:
        return tuple(self.metadata.properties.get(name, ()))

    @property
    def transforms(self) -> tuple[Transform, ...]:
        return parse_transforms(self.columns_of("partitioned_by"), by_name(self.metadata.columns))

    @property
    def bucket_count(self) -> int | None:
        return self.metadata.properties.get("bucket_count")


@dataclass(frozen=True)
class MemoryInsertTableHandle(ConnectorInsertTableHandle):
    table_handle: MemoryTableHandle


@dataclass(frozen=True)
class MemoryMergeTableHandle(ConnectorMergeTableHandle):
    """The target of a MERGE."""


@dataclass(frozen=True)
class MemoryPartitioningHandle(ConnectorPartitioningHandle):
    """Buckets by bucket columns or partition values, or by row id.

    Args:
        arguments: indexes of the columns in the layout; None for the layout of row ids.
    """

    bucket_count: int
    arguments: tuple[int, ...] | None
    transforms: tuple[Transform, ...] = ()

    @property
    def described(self) -> str:
        functions = (
            f"{t.name.upper()}{'' if t.width is None else f'[{t.width}]'}({t.column})"
            for t in self.transforms
        )
        return (
            f"memory:PartitioningHandle[partitionFunctions=[{', '.join(functions)}]]"
            if self.transforms
            else ""
        )


def table_handle_of(handle: ConnectorTableHandle) -> MemoryTableHandle:
    return own(handle, MemoryTableHandle)
