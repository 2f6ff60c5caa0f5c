"""What the connector hands to engine and tasks: plain data, so that a task which only reads needs nothing but Arrow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rowmerge_nb.connectors.shared.transforms import Transform
from rowmerge_nb.spi.handles import (
    ColumnHandle,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorPartitioningHandle,
    ConnectorSplit,
    ConnectorTableExecuteHandle,
    ConnectorTableHandle,
    SchemaTableName,
    own,
)
from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.page_source import ColumnDomain, Constraint
from rowmerge_nb.spi.types import BIGINT, INTEGER, VARCHAR, Type, parse_type, row_of

ROW_ID_TYPE = row_of([("file", INTEGER), ("position", BIGINT)])
"""A row by its file's number among the files that the merge handle names, and its position in it; a path would be ten times as wide."""

PATH_ID, POSITION_ID = 2_147_483_546, 2_147_483_545
"""The field ids of the two columns of position delete files."""

BUCKETS = 65_536
"""Into how many places rows are hashed; the engine spreads them over the writers that there are."""


@dataclass(frozen=True)
class Field:
    """A column, or a part of a nested one, as the table's schema has it.

    Args:
        id: the field's id, by which it is found in files whatever its name was.
        name: its name.
        type: its SQL type.
        kind: the word for its type in Iceberg: ``"int"``, ``"uuid"``, ``"struct"``, ...
        required: it may not be NULL.
        default: the value that rows of older files have.
        fields: the fields of a row, the element of an array, key and value of a map.
        comment: the comment on it, which Iceberg calls its doc.
        length: the number of bytes of every value, where the type is ``fixed``.
    """

    id: int
    name: str
    type: Type
    kind: str
    required: bool = False
    default: Any = None
    fields: tuple[Field, ...] = ()
    comment: str | None = None
    length: int | None = None


@dataclass(frozen=True)
class IcebergColumn(ColumnHandle):
    """A column of a table."""

    field: Field


@dataclass(frozen=True)
class IcebergRowIdColumn(ColumnHandle):
    """The row id: told by its class, since a table may have a column of any name."""


@dataclass(frozen=True)
class IcebergHiddenColumn(ColumnHandle):
    """A column that tells where a row lies: told by its class too."""


HIDDEN = (
    IcebergHiddenColumn("$path", VARCHAR),
    IcebergHiddenColumn("$partition", VARCHAR),
    IcebergHiddenColumn("$file_modified_time", parse_type("timestamp(3) with time zone")),
)
"""The columns of every table that ``*`` leaves out: a row's file, its partition as a path, and when the file was written."""


@dataclass(frozen=True)
class PartitionField:
    """A field of a table's partitioning.

    Args:
        name: its name in folders.
        column: which column of the table it is computed of.
        path: which parts of that column, from the outside in, where it is a row.
        transform: how it is computed.
    """

    name: str
    column: int
    path: tuple[int, ...]
    transform: Transform


@dataclass(frozen=True)
class DataFileRef:
    """A live data file, as far as deleting its rows needs to know it."""

    path: str
    spec_id: int


@dataclass(frozen=True)
class IcebergTableHandle(ConnectorTableHandle):
    """A table as a statement sees it.

    Args:
        name: schema and table.
        identity: the table's UUID.
        location: the folder of its files.
        data_location: where data files go.
        io: properties of the file system.
        snapshot: the snapshot that is read; None if there is none yet.
        format_version: 1, 2 or 3.
        schema_id: the schema's number.
        spec_id: the number of the partitioning that is written by.
        fields: the columns.
        partitioning: the partitioning that is written by.
        properties: Iceberg's own table properties.
        shown: the properties as CREATE TABLE has them.
        pinned: the statement, or who asks, has named this snapshot: it is read, with the columns of its time, and never written.
        added: columns, the last ones of ``fields``, that a MERGE adds; ``schema_id`` is that of the schema without them.
        only: the data files that are read, where not all are.
        sorted_by: by which columns the rows of a file are sorted, each with whether greater values come first, and whether NULL does.
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
    fields: tuple[Field, ...]
    partitioning: tuple[PartitionField, ...]
    properties: Mapping[str, str]
    shown: Mapping[str, Any]
    pinned: bool = False
    added: tuple[ColumnMetadata, ...] = ()
    only: frozenset[str] | None = field(default=None, repr=False)
    sorted_by: tuple[tuple[int, bool, bool], ...] = ()


@dataclass(frozen=True)
class IcebergTableExecuteHandle(ConnectorTableExecuteHandle):
    """What a procedure of a table is to do.

    Args:
        table_handle: the table.
        procedure: the procedure's name.
        arguments: the value of every argument.
        constraint: what WHERE says of columns.
    """

    table_handle: IcebergTableHandle
    procedure: str
    arguments: Mapping[str, Any]
    constraint: Constraint


@dataclass(frozen=True)
class IcebergMergeTableHandle(ConnectorMergeTableHandle):
    """A table that is merged into: row ids name its files by number.

    Args:
        table_handle: the table.
        files: its data files, in the order of their numbers.
        prefix: how the names of all files begin that are written for it.
    """

    files: tuple[DataFileRef, ...]
    prefix: str


@dataclass(frozen=True)
class IcebergInsertTableHandle(ConnectorInsertTableHandle):
    """A table that rows are inserted into; the names of all files that are written for it begin alike."""

    table_handle: IcebergTableHandle
    prefix: str


@dataclass(frozen=True)
class IcebergPartitioningHandle(ConnectorPartitioningHandle):
    """Rows by their partition values, or by the file of their row id.

    Args:
        partitioning: the fields; of each, ``column`` counts among the layout's columns. None for the row id's file.
    """

    partitioning: tuple[PartitionField, ...] | None = None

    @property
    def described(self) -> str:
        """What EXPLAIN prints of it: as Trino the transforms one by one; plain columns alone are hashed."""
        if self.partitioning is None:
            return "iceberg:IcebergPartitioningHandle[update=true, file of row_id]"
        transforms = [part.transform for part in self.partitioning]
        if all(transform.name == "identity" for transform in transforms):
            return "HASH"
        paths = [", ".join(map(str, (part.column, *part.path))) for part in self.partitioning]
        functions = ", ".join(
            f"IcebergPartitionFunction[transform={transform.name.upper()}, dataPath=[{path}], type={transform.base}"
            f"{'' if transform.width is None else f', size=OptionalInt[{transform.width}]'}]"
            for path, transform in zip(paths, transforms, strict=True)
        )
        return f"iceberg:IcebergPartitioningHandle[update=false, partitionFunctions=[{functions}]]"


@dataclass(frozen=True)
class DeleteFile:
    """A file that deletes rows of a data file.

    Args:
        path: the file.
        kind: ``"position"``, ``"vector"`` or ``"equality"``.
        whole: all of its positions are about one data file.
        fields: the columns that an equality delete compares.
    """

    path: str
    kind: str
    whole: bool = False
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True)
class IcebergSplit(ConnectorSplit):
    """A range of a data file: the row groups whose middle lies in it.

    Args:
        path: the file.
        file: its number in the merge handle; -1 where rows are only read.
        start: first byte of the range.
        end: the byte behind the range.
        deletes: what deletes rows of the file.
        constants: values of partition columns, by field id, for files without them.
        domains: what columns must satisfy for a row group to matter, by field id.
        small: the whole table is so small that reading it where the statement is planned costs less than a task.
        partition: the file's partition as a path, where the statement may ask for it.
    """

    path: str
    file: int
    start: int
    end: int
    deletes: tuple[DeleteFile, ...] = ()
    constants: Mapping[int, Any] = field(default_factory=dict)
    domains: Mapping[int, ColumnDomain] = field(default_factory=dict)
    small: bool = False
    partition: str = ""

    @property
    def carries_rows(self) -> bool:
        """A small table is read at once."""
        return self.small

    @property
    def is_repeatable(self) -> bool:
        """The files of a snapshot do not change."""
        return True


def iceberg_table(handle: ConnectorTableHandle) -> IcebergTableHandle:
    """Return a handle as one of this connector."""
    return own(handle, IcebergTableHandle)
