"""What the connector holds: tables in several versions, and what a transaction has read and will make visible."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ConnectorTableMetadata, ConnectorViewDefinition

__all__ = ["MemoryTable", "MemoryTransaction"]


@dataclass
class MemoryTable:
    """A table: what it may hold, and its rows by version."""

    metadata: ConnectorTableMetadata
    versions: dict[int, pa.Table]

    @property
    def current(self) -> int:
        """The latest version."""
        return max(self.versions)


@dataclass
class MemoryTransaction:
    """What a transaction has read, and what it will make visible: per table its next state, None for a dropped one.

    Views likewise; of schemas whether they are there.
    """

    read: dict[SchemaTableName, int] = field(default_factory=dict)
    pinned: dict[tuple[SchemaTableName, int], pa.Table] = field(default_factory=dict)
    tables: dict[SchemaTableName, MemoryTable | None] = field(default_factory=dict)
    views: dict[SchemaTableName, ConnectorViewDefinition | None] = field(default_factory=dict)
    schemas: dict[str, bool] = field(default_factory=dict)
