"""Handles for engine and tasks. They pickle and hold no metastore."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable, Snapshot
from rowmerge_nb.connectors.hive_acid.orc.codecs import OrcCodec
from rowmerge_nb.spi import (
    ColumnDomain,
    ColumnHandle,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorSplit,
    ConnectorTableHandle,
    ReadFile,
    own,
)
from rowmerge_nb.spi.types import BIGINT, INTEGER, row_of

ROW_ID_TYPE = row_of([("originalTransaction", BIGINT), ("bucket", INTEGER), ("rowId", BIGINT)])


@dataclass(frozen=True)
class HiveRowIdColumn(ColumnHandle):
    """The row id column, which its class identifies, not its name."""


@dataclass(frozen=True)
class HiveTableHandle(ConnectorTableHandle):
    table: HiveTable
    snapshot: Snapshot


@dataclass(frozen=True)
class HiveWrite:
    """The part of a transaction that sinks need."""

    write_id: int
    folder: str
    codec: OrcCodec = OrcCodec.GZIP


@dataclass(frozen=True)
class HiveMergeTableHandle(ConnectorMergeTableHandle):
    write: HiveWrite


@dataclass(frozen=True)
class HiveInsertTableHandle(ConnectorInsertTableHandle):
    table_handle: HiveTableHandle
    write: HiveWrite


@dataclass(frozen=True)
class HiveSplit(ConnectorSplit):
    """One file of rows, and the delete events that concern it.

    Args:
        original: bucket and number of the first row, for a file without row ids.
        elsewhere: rows up to this write id are in another directory.
    """

    path: Path
    partition: str
    deletes: tuple[Path, ...]
    original: tuple[int, int] | None = None
    bucket: int | None = None
    stripes: tuple[int, int] | None = None
    domains: tuple[tuple[int, ColumnDomain], ...] = ()
    carries_rows: bool = False
    elsewhere: int = 0

    is_repeatable = True
    """Files of a write id never change."""

    @property
    def read_files(self) -> tuple[ReadFile, ...]:
        return (
            ReadFile(str(self.path), self.path.stat().st_size),
            *(ReadFile(str(path), path.stat().st_size, deletes=True) for path in self.deletes),
        )


def hive_table(handle: ConnectorTableHandle) -> HiveTableHandle:
    return own(handle, HiveTableHandle)


def changeable_table(handle: ConnectorTableHandle) -> HiveTableHandle:
    table_handle = hive_table(handle)
    if not table_handle.table.transactional:
        raise ConnectorError(
            "Modifying Hive table rows is only supported for transactional tables",
            hint=(
                f"'{table_handle.table.name}' is not transactional: CREATE TABLE ... WITH"
                " (transactional = true) AS SELECT * FROM it."
            ),
        )
    return table_handle
