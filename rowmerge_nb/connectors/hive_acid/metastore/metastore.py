"""What the connector asks of a metastore: tables, partitions, transactions and write ids.

The embedded one (`rowmerge_nb.connectors.hive_acid.metastore.embedded`) keeps them in a SQLite file; the other
(`rowmerge_nb.connectors.hive_acid.metastore.thrift_metastore`) is a Hive server's.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.layout_names import DEFAULT_PARTITION, escape, unescape
from rowmerge_nb.connectors.hive_acid.visible_deltas import ValidWriteIds
from rowmerge_nb.connectors.shared.orphans import has_died, this_process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rowmerge_nb.spi.handles import SchemaTableName
    from rowmerge_nb.spi.metadata import ColumnMetadata

COMPACTION_PATIENCE_SECONDS: Final = 10.0
"""How long a compaction waits for another one of the same table."""
_COMPACTION: Final = "compaction_"
_compactions: Final[set[str]] = set()
"""The query ids of the compactions that run in this process."""


@dataclass(frozen=True)
class HiveTable:
    """A table as the metastore knows it.

    Args:
        id: tells it from all other tables that ever had its name.
        name: schema and table.
        location: the folder of its files.
        columns: its columns, partition columns last.
        partitioned_by: names of the partition columns.
        bucketed_by: names of the bucket columns.
        bucket_count: how many buckets there are; None if the table is not bucketed.
        bucketing_version: which of Hive's bucket functions.
        managed: the files go when the table is dropped.
        transactional: rows can be changed.
        comment: the comment on the table; None without one.
    """

    id: str
    name: SchemaTableName
    location: str
    columns: tuple[ColumnMetadata, ...]
    partitioned_by: tuple[str, ...] = ()
    bucketed_by: tuple[str, ...] = ()
    bucket_count: int | None = None
    bucketing_version: int = 1
    managed: bool = True
    transactional: bool = True
    comment: str | None = None

    @property
    def data_columns(self) -> tuple[ColumnMetadata, ...]:
        """The columns that files hold."""
        return self.columns[: len(self.columns) - len(self.partitioned_by)]

    @property
    def partition_columns(self) -> tuple[ColumnMetadata, ...]:
        """The columns that folder names hold."""
        return self.columns[len(self.columns) - len(self.partitioned_by) :]

    @property
    def properties(self) -> Mapping[str, Any]:
        """The properties of CREATE TABLE."""
        found: dict[str, Any] = {"format": "ORC", "transactional": self.transactional}
        if self.partitioned_by:
            found["partitioned_by"] = self.partitioned_by
        if self.bucket_count is not None:
            found |= {
                "bucketed_by": self.bucketed_by,
                "bucket_count": self.bucket_count,
                "bucketing_version": self.bucketing_version,
            }
        return found


@dataclass(frozen=True)
class Snapshot:
    """A table as a statement sees it.

    Args:
        write_ids: what may be read.
        sequence: how many transactions had been committed; a change of the same place with a larger one is a conflict.
        partitions: names of the partitions; of a table without partition columns the one name ``""``.
    """

    write_ids: ValidWriteIds
    sequence: int
    partitions: tuple[str, ...]


@dataclass
class Changes:
    """What a transaction makes visible, all of it or nothing.

    Args:
        tables: tables to make.
        adopted: per table id, the write ids that another metastore has kept for a table that is made.
        dropped: tables to drop.
        commented: tables whose comments, or those of their columns, are to be what these have.
        schemas: schemas to make (True) or to drop (False).
        written: tables that have got rows, or lost some.
        partitions: per table id, names of partitions that have got rows.
        updated: per table id, the places in which rows were changed: names of partitions, ``""`` for a table without.
        sequences: per table id, the sequence of the snapshot that was read.
    """

    tables: list[HiveTable] = field(default_factory=list)
    adopted: dict[str, ValidWriteIds] = field(default_factory=dict)
    dropped: list[HiveTable] = field(default_factory=list)
    commented: list[HiveTable] = field(default_factory=list)
    schemas: dict[str, bool] = field(default_factory=dict)
    written: list[HiveTable] = field(default_factory=list)
    partitions: dict[str, set[str]] = field(default_factory=dict)
    updated: dict[str, set[str]] = field(default_factory=dict)
    sequences: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any((self.tables, self.dropped, self.commented, self.schemas, self.partitions, self.updated))


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction that has neither been committed nor aborted.

    Args:
        number: its number.
        user: who began it.
        query_id: the statement it belongs to.
        process: ``host:pid`` of the process that began it.
        began: when, in seconds since 1970.
    """

    number: int
    user: str
    query_id: str
    process: str
    began: float


@contextmanager
def new_compaction() -> Iterator[str]:
    """Yield the query id of a compaction, which runs as long as this lasts.

    >>> with new_compaction() as query_id:
    ...     is_abandoned(OpenTransaction(1, "compactor", query_id, this_process(), 0.0))
    False
    >>> is_abandoned(OpenTransaction(1, "compactor", query_id, this_process(), 0.0))
    True
    """
    query_id = f"{_COMPACTION}{uuid.uuid4().hex[:12]}"
    _compactions.add(query_id)
    try:
        yield query_id
    finally:
        _compactions.discard(query_id)


def is_compaction(transaction: OpenTransaction) -> bool:
    """Return whether a transaction is one of `Metastore.open_compaction`."""
    return transaction.query_id.startswith(_COMPACTION)


def is_abandoned(transaction: OpenTransaction) -> bool:
    """Return whether nothing will end a transaction: its process has died, or its compaction was interrupted in this one."""
    if transaction.process != this_process():
        return has_died(transaction.process)
    return is_compaction(transaction) and transaction.query_id not in _compactions


def compaction_conflict(table: HiveTable, holder: str) -> ConnectorError:
    """Return the error of a compaction that another one of the same table keeps waiting."""
    return ConnectorError(
        f"Table '{table.name}' is being compacted by {holder}",
        code="TRANSACTION_CONFLICT",
        hint="Wait until it has ended. If its process has died elsewhere, abort_transaction ends it.",
    )


class Metastore(ABC):
    """Tables, transactions and write ids. All methods may be called by several threads and processes at once.

    Attributes:
        shared: other engines use it too: what they have made is left alone, and what is made here is named as all of them know it.
    """

    shared: ClassVar[bool] = False

    @abstractmethod
    def schema_location(self, schema: str) -> Path:
        """Return the folder in which a schema's tables are made.

        Raises:
            ConnectorError: SCHEMA_NOT_FOUND.
        """

    @abstractmethod
    def list_schemas(self) -> Sequence[str]:
        """Return the names of all schemas, sorted."""

    @abstractmethod
    def list_tables(self) -> Sequence[SchemaTableName]:
        """Return the names of all tables, sorted."""

    @abstractmethod
    def get_table(self, name: SchemaTableName) -> HiveTable | None:
        """Return a table, or None."""

    @abstractmethod
    def snapshot(self, table: HiveTable, reader: Callable[[], int] | None = None) -> Snapshot:
        """Return what of a table may be read now.

        Args:
            table: the table.
            reader: gives the transaction that reads, and begins it if it has not begun; a metastore that does not care who
                reads does not call it. None for somebody who only looks.
        """

    @abstractmethod
    def open_transaction(self, user: str, query_id: str) -> int:
        """Begin a transaction; give its number."""

    @abstractmethod
    def open_compaction(self, query_id: str, table: HiveTable) -> int:
        """Begin a transaction that compacts a table, once no other one does; statements do not mind it.

        Args:
            query_id: as `new_compaction` yields it.
            table: the table.

        Returns:
            The number of the transaction. As long as it is not committed, directories with the suffix ``_v<number>`` do not count.

        Raises:
            ConnectorError: TRANSACTION_CONFLICT if another one takes longer than `COMPACTION_PATIENCE_SECONDS`.
        """

    @abstractmethod
    def allocate_write_id(self, transaction: int, table: HiveTable, *, updates: bool) -> int:
        """Return the write id under which a transaction writes into a table; the same one whenever it is asked.

        Args:
            transaction: the transaction.
            table: the table, which may be one that the transaction makes.
            updates: rows will be changed, not only inserted.
        """

    @abstractmethod
    def while_open(self, transaction: int, table: HiveTable, action: Callable[[], None], *, is_new: bool) -> None:
        """Change a table's files while neither the transaction nor the table can end.

        Raises:
            ConnectorError: TRANSACTION_CONFLICT if the transaction was aborted or the table dropped.
        """

    @abstractmethod
    def commit(self, transaction: int | None, changes: Changes) -> None:
        """Make changes visible.

        Args:
            transaction: the transaction that wrote rows; None if only definitions change.
            changes: what becomes visible.

        Raises:
            ConnectorError: TRANSACTION_CONFLICT if another transaction was faster, TABLE_ALREADY_EXISTS, SCHEMA_NOT_EMPTY; one with
                ``changed=None`` if it is not known whether the changes are visible.
        """

    @abstractmethod
    def abort(self, transaction: int) -> bool:
        """End a transaction so that its write ids stay hidden for ever; nothing happens if it has ended.

        Returns:
            Whether they are hidden: False if the transaction was committed, or if nobody knows it.
        """

    @abstractmethod
    def open_transactions(self) -> Sequence[OpenTransaction]:
        """Return the transactions that are open, oldest first."""


def schema_not_found(schema: str) -> ConnectorError:
    """Return the error of a schema that is not there."""
    return ConnectorError(f"Schema '{schema}' does not exist", code="SCHEMA_NOT_FOUND", hint=f"CREATE SCHEMA {schema} makes it.")


def partition_name(columns: Sequence[str], texts: Sequence[str | None]) -> str:
    """Return the name of a partition, which is its folder's path too.

    >>> partition_name(["p", "d"], ["z a/b", None])
    'p=z a%2Fb/d=__HIVE_DEFAULT_PARTITION__'
    """
    pairs = zip(columns, texts, strict=True)
    return "/".join(f"{escape(c.lower())}={DEFAULT_PARTITION if text is None else escape(text)}" for c, text in pairs)


def partition_texts(name: str) -> list[str | None]:
    """Return the values out of a partition's name.

    >>> partition_texts("p=z a%2Fb/d=__HIVE_DEFAULT_PARTITION__")
    ['z a/b', None]
    """
    texts = [part.split("=", 1)[1] for part in name.split("/")] if name else []
    return [None if text == DEFAULT_PARTITION else unescape(text) for text in texts]
