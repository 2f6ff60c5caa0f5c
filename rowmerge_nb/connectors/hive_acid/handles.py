"""What the connector hands to engine and tasks. All of it pickles, and nothing of it holds the metastore."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable, Snapshot
from rowmerge_nb.connectors.hive_acid.orc.codecs import OrcCodec
from rowmerge_nb.spi.handles import (
    ColumnHandle,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorSplit,
    ConnectorTableHandle,
    own,
)
from rowmerge_nb.spi.types import BIGINT, INTEGER, row_of

if TYPE_CHECKING:
    from pathlib import Path

    from rowmerge_nb.spi.page_source import ColumnDomain

ROW_ID_TYPE = row_of([("originalTransaction", BIGINT), ("bucket", INTEGER), ("rowId", BIGINT)])


@dataclass(frozen=True)
class HiveRowIdColumn(ColumnHandle):
    """The row id: told by its class, since a table may have a column of any name."""


@dataclass(frozen=True)
class HiveTableHandle(ConnectorTableHandle):
    """A table as a statement sees it.

    Args:
        table: the table.
        snapshot: what of it may be read.
    """

    table: HiveTable
    snapshot: Snapshot


@dataclass(frozen=True)
class HiveWrite:
    """What sinks need to know of the transaction that they write for.

    Args:
        write_id: the transaction's write id in the table.
        folder: name of the hidden folder, below the table's, in which attempts of tasks write. The driver makes and removes it.
        codec: how files are compressed.
    """

    write_id: int
    folder: str
    codec: OrcCodec = OrcCodec.GZIP


@dataclass(frozen=True)
class HiveMergeTableHandle(ConnectorMergeTableHandle):
    """A table that is merged into."""

    write: HiveWrite


@dataclass(frozen=True)
class HiveInsertTableHandle(ConnectorInsertTableHandle):
    """A table that rows are inserted into."""

    table_handle: HiveTableHandle
    write: HiveWrite


@dataclass(frozen=True)
class HiveSplit(ConnectorSplit):
    """One file of rows, and the delete events that concern it.

    Args:
        path: the file.
        partition: name of its partition.
        deletes: the files with delete events of its bucket.
        original: bucket and number of the first row, of a file without row ids.
        bucket: the bucket that all rows must be of; None if the table is not bucketed.
        stripes: the part of a large file that is read, from one stripe to before another; None for the whole file.
        domains: per data column, by its place among them, what its values must satisfy to matter; stripes that have none such are not
            read.
        small: the whole table is so small that reading it where the statement is planned costs less than a task.
        elsewhere: rows up to this write id are read from another directory, and left out here.
    """

    path: Path
    partition: str
    deletes: tuple[Path, ...]
    original: tuple[int, int] | None = None
    bucket: int | None = None
    stripes: tuple[int, int] | None = None
    domains: tuple[tuple[int, ColumnDomain], ...] = ()
    small: bool = False
    elsewhere: int = 0

    @property
    def carries_rows(self) -> bool:
        """A small table is read at once."""
        return self.small

    @property
    def is_repeatable(self) -> bool:
        """The files of a write id do not change, and those that are read stay."""
        return True


def hive_table(handle: ConnectorTableHandle) -> HiveTableHandle:
    """Return a handle as one of this connector."""
    return own(handle, HiveTableHandle)


def changeable_table(handle: ConnectorTableHandle) -> HiveTableHandle:
    """Return the handle of a table whose rows can be deleted and updated.

    Raises:
        ConnectorError: NOT_SUPPORTED for a table that is not transactional.
    """
    found = hive_table(handle)
    if not found.table.transactional:
        raise ConnectorError(
            "Modifying Hive table rows is only supported for transactional tables",
            hint=f"'{found.table.name}' is not transactional: CREATE TABLE ... WITH (transactional = true) AS SELECT * FROM it.",
        )
    return found
