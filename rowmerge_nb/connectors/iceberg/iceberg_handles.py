"""Handles and splits: plain data, so that reading tasks need nothing but Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rowmerge_nb.connectors.shared.file_positions import ROW_ID_TYPE
from rowmerge_nb.connectors.shared.transforms import Transform
from rowmerge_nb.spi import (
    ColumnDomain,
    ColumnHandle,
    ColumnMetadata,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorPartitioningHandle,
    ConnectorSplit,
    ConnectorTableExecuteHandle,
    ConnectorTableHandle,
    Constraint,
    ReadFile,
    SchemaTableName,
    Type,
    own,
    parse_type,
)
from rowmerge_nb.spi.types import BIGINT, INTEGER, VARCHAR, row_of

PATH_ID, POSITION_ID = 2_147_483_546, 2_147_483_545
"""The field ids of the two columns of position delete files."""


@dataclass(frozen=True)
class IcebergField:
    """A column of the table's schema, or a part of a nested one.

    Args:
        type_name: Iceberg's type: ``"int"``, ``"uuid"``, ``"struct"``, ...
        default: the value in rows of older files.
        write_default: the value in new rows that do not name the column.
    """

    id: int
    name: str
    type: Type
    type_name: str
    required: bool = False
    default: Any = None
    fields: tuple[IcebergField, ...] = ()
    comment: str | None = None
    length: int | None = None
    write_default: Any = None


ROW_ID = IcebergField(2_147_483_540, "_row_id", BIGINT, "long")
LAST_UPDATED = IcebergField(2_147_483_539, "_last_updated_sequence_number", BIGINT, "long")
LINEAGE = (ROW_ID, LAST_UPDATED)
"""The reserved columns of version 3 that files have whose rows were in other files before."""

SOURCE_ROW_ID_TYPE = row_of([("file", INTEGER), ("position", BIGINT), ("source_row_id", BIGINT)])
"""The row id of a table with row lineage, as in Trino: the new row of an UPDATE keeps the last
field.
"""


@dataclass(frozen=True)
class IcebergColumn(ColumnHandle):
    field: IcebergField


@dataclass(frozen=True)
class IcebergRowIdColumn(ColumnHandle):
    """The row id, identified by its class, since columns can have any name."""

    @property
    def identifies_new_rows(self) -> bool:
        return self.type == SOURCE_ROW_ID_TYPE


@dataclass(frozen=True)
class IcebergHiddenColumn(ColumnHandle):
    """A column about a row's file; identified by its class."""


HIDDEN = (
    IcebergHiddenColumn("$path", VARCHAR),
    IcebergHiddenColumn("$partition", VARCHAR),
    IcebergHiddenColumn("$file_modified_time", parse_type("timestamp(3) with time zone")),
)
"""The columns that ``*`` omits: a row's file, its partition as a path, and when the file was
written.
"""


@dataclass(frozen=True)
class PartitionField:
    """A field of a table's partitioning.

    Args:
        path: the indexes of nested fields in that column, from the outside in.
    """

    name: str
    column: int
    path: tuple[int, ...]
    transform: Transform


@dataclass(frozen=True)
class DataFileRef:
    """A live data file whose rows can be deleted."""

    path: str
    spec_id: int


@dataclass(frozen=True)
class IcebergTableHandle(ConnectorTableHandle):
    """A table at the snapshot that a statement reads.

    Args:
        pinned: whether the snapshot was requested; it is read with its own columns, and never
            written.
        column_changes: the columns of ``fields`` that a MERGE adds, or gives another type; ``schema_id``
            does not include them.
        branch: the branch to change, at whose head the table is read; None for the main one.
        only: the data files to read; None for all.
        sorted_by: the sort order: column indexes with descending and NULLS FIRST flags.
    """

    name: SchemaTableName
    identity: str
    location: str
    data_location: str
    io: Mapping[str, str] = field(repr=False)
    snapshot: int | None
    format_version: int
    schema_id: int
    spec_id: int
    fields: tuple[IcebergField, ...]
    partitioning: tuple[PartitionField, ...]
    properties: Mapping[str, str]
    sql_properties: Mapping[str, Any]
    pinned: bool = False
    column_changes: tuple[ColumnMetadata, ...] = ()
    branch: str | None = None
    only: frozenset[str] | None = field(default=None, repr=False)
    sorted_by: tuple[tuple[int, bool, bool], ...] = ()

    @property
    def lineage(self) -> tuple[IcebergField, ...]:
        """The columns of row lineage, unless the table has columns of these names."""
        names = {f.name.lower() for f in self.fields}
        has_lineage = self.format_version >= 3 and names.isdisjoint(f.name for f in LINEAGE)
        return LINEAGE if has_lineage else ()

    @property
    def row_id(self) -> IcebergRowIdColumn:
        return IcebergRowIdColumn("$row_id", SOURCE_ROW_ID_TYPE if self.lineage else ROW_ID_TYPE)


@dataclass(frozen=True)
class IcebergTableExecuteHandle(ConnectorTableExecuteHandle):
    table_handle: IcebergTableHandle
    procedure: str
    arguments: Mapping[str, Any]
    constraint: Constraint


@dataclass(frozen=True)
class IcebergMergeTableHandle(ConnectorMergeTableHandle):
    """The target of a MERGE.

    Args:
        files: its data files; row ids have their indexes.
        whole_files: the reads of these files as a whole, if the statement rewrites files that lose
            rows; None if it writes delete files.
    """

    files: tuple[DataFileRef, ...]
    prefix: str
    whole_files: tuple[IcebergSplit, ...] | None = None


@dataclass(frozen=True)
class IcebergInsertTableHandle(ConnectorInsertTableHandle):
    """The target of an INSERT; `prefix` begins the names of new files."""

    table_handle: IcebergTableHandle
    prefix: str


@dataclass(frozen=True)
class IcebergPartitioningHandle(ConnectorPartitioningHandle):
    """Partitioning by values, or by the file of the row id.

    Args:
        partitioning: the fields, where ``column`` is an index in the layout's columns; None for the
            row id's file.
    """

    partitioning: tuple[PartitionField, ...] | None = None

    @property
    def described(self) -> str:
        """Trino's text in EXPLAIN: the transforms, or HASH for plain columns."""
        if self.partitioning is None:
            return "iceberg:IcebergPartitioningHandle[update=true, file of row_id]"
        transforms = [part.transform for part in self.partitioning]
        if all(transform.name == "identity" for transform in transforms):
            return "HASH"
        paths = [", ".join(map(str, (part.column, *part.path))) for part in self.partitioning]
        functions = ", ".join(
            f"IcebergPartitionFunction[transform={transform.name.upper()}, dataPath=[{path}],"
            f" type={transform.base}"
            f"{'' if transform.width is None else f', size=OptionalInt[{transform.width}]'}]"
            for path, transform in zip(paths, transforms, strict=True)
        )
        return f"iceberg:IcebergPartitioningHandle[update=false, partitionFunctions=[{functions}]]"


@dataclass(frozen=True)
class DeleteFile:
    """A file that deletes rows of a data file.

    Args:
        whole: whether all of its positions refer to one data file.
        fields: the columns that an equality delete compares.
        vector: the offset and size of a deletion vector in the file.
        file: its size and number of deletes, as the manifest has them.
    """

    path: str
    content: str
    whole: bool = False
    fields: tuple[IcebergField, ...] = ()
    vector: tuple[int, int] | None = None
    file: ReadFile | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """What identifies it, as `version_three.key_of` does."""
        return self.path if self.vector is None else f"{self.path}#{self.vector[0]}"


@dataclass(frozen=True)
class IcebergSplit(ConnectorSplit):
    """A range of a data file: the row groups whose midpoint is in it.

    Args:
        file: its index in the merge handle; -1 if rows are only read.
        constants: values of partition columns, by field id, for files without these columns.
        carries_rows: whether reading the whole table on the driver is cheaper than a task.
        partition: the file's partition as a path, if the statement reads it.
        first_row_id: the row id of the file's first row, None before the table has row ids.
        sequence_number: the number of the commit that has added the file.
    """

    path: str
    file: int
    start: int
    end: int
    deletes: tuple[DeleteFile, ...] = ()
    constants: Mapping[int, Any] = field(default_factory=dict)
    domains: Mapping[int, ColumnDomain] = field(default_factory=dict)
    carries_rows: bool = False
    partition: str = ""
    data_file: ReadFile | None = field(default=None, compare=False)
    first_row_id: int | None = None
    sequence_number: int | None = None

    is_repeatable = True
    """The files of a snapshot do not change."""

    @property
    def read_files(self) -> tuple[ReadFile, ...]:
        files = (self.data_file, *(delete.file for delete in self.deletes))
        return tuple(file for file in files if file is not None)


def iceberg_table(handle: ConnectorTableHandle) -> IcebergTableHandle:
    return own(handle, IcebergTableHandle)
