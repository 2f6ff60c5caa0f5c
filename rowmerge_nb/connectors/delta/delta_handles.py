"""Handles and splits: plain data, so that tasks need nothing but Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowmerge_nb.spi import (
    ColumnHandle,
    ColumnMetadata,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorPartitioningHandle,
    ConnectorSplit,
    ConnectorTableExecuteHandle,
    ConnectorTableHandle,
    ReadFile,
    SchemaTableName,
    own,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


@dataclass(frozen=True)
class DeltaRowIdColumn(ColumnHandle):
    """The row id. Its class identifies it, since a column can have any name."""


@dataclass(frozen=True)
class DataFile:
    """A live data file.

    Args:
        partition: the text of each partition column's value; None for NULL.
        deleted: the positions in its deletion vector, ascending.
    """

    path: str
    size: int
    rows: int | None
    partition: Mapping[str, str | None] = field(default_factory=dict)
    deleted: npt.NDArray[np.int64] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class DeltaTableHandle(ConnectorTableHandle):
    """A table at the version that a statement reads.

    Args:
        version: -1 for a table that the statement creates.
        pinned: whether the statement names the version; such a table is only read.
        widens: whether a MERGE may widen the types of columns.
        new_schema: the schema, as JSON, that a MERGE sets; None if it keeps the present one.
        narrow_columns: the paths of columns whose types are too narrow for the MERGE; `widens` lets
            it change them.
    """

    name: SchemaTableName
    location: str
    identity: str
    version: int
    columns: tuple[ColumnMetadata, ...]
    partition_columns: tuple[str, ...] = ()
    pinned: bool = False
    comment: str | None = None
    widens: bool = False
    new_schema: str | None = None
    narrow_columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeltaTableExecuteHandle(ConnectorTableExecuteHandle):
    table_handle: DeltaTableHandle
    procedure: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class DeltaInsertTableHandle(ConnectorInsertTableHandle):
    """The target of an INSERT; the names of new files begin with `prefix`."""

    table_handle: DeltaTableHandle
    prefix: str


@dataclass(frozen=True)
class DeltaMergeTableHandle(ConnectorMergeTableHandle):
    """The target of a MERGE; a row id has its file as an index of `files`."""

    files: tuple[DataFile, ...]
    prefix: str


@dataclass(frozen=True)
class DeltaPartitioningHandle(ConnectorPartitioningHandle):
    """Partitioning by partition columns, or by the file of the row id."""

    by_file: bool

    @property
    def described(self) -> str:
        return f"delta:DeltaPartitioningHandle[{'file of row_id' if self.by_file else 'partition'}]"


@dataclass(frozen=True)
class DeltaSplit(ConnectorSplit):
    """The row groups of a data file whose midpoints are in a range."""

    file: DataFile
    number: int
    start: int
    end: int

    is_repeatable = True
    """The files of a version do not change."""

    @property
    def read_files(self) -> tuple[ReadFile, ...]:
        return (ReadFile(self.file.path, self.file.size, self.file.rows),)


def delta_table(handle: ConnectorTableHandle) -> DeltaTableHandle:
    return own(handle, DeltaTableHandle)
