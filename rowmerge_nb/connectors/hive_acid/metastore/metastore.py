"""The interface of a metastore: tables, partitions, transactions and write ids."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.hive_acid.layout_names import DEFAULT_PARTITION, escape, unescape
from rowmerge_nb.connectors.hive_acid.visible_deltas import ValidWriteIds
from rowmerge_nb.connectors.shared.orphans import has_died, this_process
from rowmerge_nb.spi import ColumnMetadata, SchemaTableName

COMPACTION_PATIENCE_SECONDS: Final = 10.0
"""The time that a compaction waits for another one of the same table."""
_COMPACTION: Final = "compaction_"
_compactions: Final[set[str]] = set()
"""The query ids of the compactions running in this process."""


@dataclass(frozen=True)
class HiveTable:
    """A table in the metastore.

    Args:
        id: unique among all tables, including dropped ones.
        columns: partition columns last.
        managed: whether DROP TABLE removes the files.
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
        return self.columns[: len(self.columns) - len(self.partitioned_by)]

    @property
    def partition_columns(self) -> tuple[ColumnMetadata, ...]:
        return self.columns[len(self.columns) - len(self.partitioned_by) :]

    @property
    def properties(self) -> Mapping[str, Any]:
        properties: dict[str, Any] = {"format": "ORC", "transactional": self.transactional}
        if self.partitioned_by:
            properties["partitioned_by"] = self.partitioned_by
        if self.bucket_count is not None:
            properties |= {
                "bucketed_by": self.bucketed_by,
                "bucket_count": self.bucket_count,
                "bucketing_version": self.bucketing_version,
            }
        return properties


@dataclass(frozen=True)
class Snapshot:
    """The state of a table that a statement reads.

    Args:
        sequence: the number of commits so far; a later change of the same partition is a conflict.
        partitions: names of the partitions; ``("",)`` without partition columns.
    """

    write_ids: ValidWriteIds
    sequence: int
    partitions: tuple[str, ...]


@dataclass
class MetastoreChanges:
    """The changes that a transaction makes visible, all or none. Dictionaries are by table id.

    Args:
        adopted: write ids from another metastore, for new tables.
        schemas: schemas to create (True) or drop (False).
    """

    tables: list[HiveTable] = field(default_factory=list)
    adopted: dict[str, ValidWriteIds] = field(default_factory=dict)
    dropped: list[HiveTable] = field(default_factory=list)
    replaced: dict[str, ValidWriteIds] = field(default_factory=dict)
    commented: list[HiveTable] = field(default_factory=list)
    schemas: dict[str, bool] = field(default_factory=dict)
    changed_tables: list[HiveTable] = field(default_factory=list)
    partitions: dict[str, set[str]] = field(default_factory=dict)
    updated: dict[str, set[str]] = field(default_factory=dict)
    sequences: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(
            (self.tables, self.dropped, self.commented, self.schemas, self.partitions, self.updated)
        )


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction that is neither committed nor aborted; ``process`` is ``host:pid``."""

    number: int
    user: str
    query_id: str
    process: str
    began: float


@contextmanager
def new_compaction() -> Iterator[str]:
    """Yield the query id of a compaction, which is running until the block ends."""
    query_id = f"{_COMPACTION}{uuid.uuid4().hex[:12]}"
    _compactions.add(query_id)
    try:
        yield query_id
    finally:
        _compactions.discard(query_id)


def is_compaction(transaction: OpenTransaction) -> bool:
    return transaction.query_id.startswith(_COMPACTION)


def is_abandoned(transaction: OpenTransaction) -> bool:
    """Return whether a transaction's process died, or its compaction was interrupted in this
    process.
    """
    if transaction.process != this_process():
        return has_died(transaction.process)
    return is_compaction(transaction) and transaction.query_id not in _compactions


def compaction_conflict(table: HiveTable, holder: str) -> ConnectorError:
    return ConnectorError(
        f"Table '{table.name}' is being compacted by {holder}",
        code="TRANSACTION_CONFLICT",
        hint=(
            "Wait until it ends. If its process died on another machine, abort_transaction ends it."
        ),
    )


class Metastore(ABC):
    """Tables, transactions and write ids.

    Methods may be called by several threads and processes at once.

    Attributes:
        shared: whether other engines use it, whose files must be left alone.
    """

    shared: ClassVar[bool] = False

    @abstractmethod
    def schema_location(self, schema: str) -> Path:
        """Return the folder for new tables of a schema, or raise SCHEMA_NOT_FOUND."""

    @abstractmethod
    def list_schemas(self) -> Sequence[str]:
        """Return the names of all schemas, sorted."""

    @abstractmethod
    def list_tables(self) -> Sequence[SchemaTableName]:
        """Return the names of all tables, sorted."""

    @abstractmethod
    def get_table(self, name: SchemaTableName) -> HiveTable | None: ...

    @abstractmethod
    def snapshot(self, table: HiveTable, reader: Callable[[], int] | None = None) -> Snapshot:
        """Return a table's visible write ids and partitions.

        ``reader`` returns the reading transaction, beginning it if needed; metastores without read
        locks do not call it.
        """

    @abstractmethod
    def open_transaction(self, user: str, query_id: str) -> int: ...

    @abstractmethod
    def open_compaction(self, query_id: str, table: HiveTable) -> int:
        """Begin a transaction that compacts a table; it does not block statements.

        Directories with the suffix ``_v<number>`` are invisible until it commits.

        Raises:
            ConnectorError: TRANSACTION_CONFLICT if another one takes longer than
                `COMPACTION_PATIENCE_SECONDS`.
        """

    @abstractmethod
    def allocate_write_id(self, transaction: int, table: HiveTable, *, updates: bool) -> int:
        """Return the transaction's write id in a table, the same on every call.

        ``updates``: rows will be changed, not only inserted.
        """

    @abstractmethod
    def while_open(
        self, transaction: int, table: HiveTable, action: Callable[[], None], *, is_new: bool
    ) -> None:
        """Change a table's files while neither transaction nor table can end; TRANSACTION_CONFLICT
        if one has.
        """

    @abstractmethod
    def commit(self, transaction: int | None, changes: MetastoreChanges) -> None:
        """Make changes visible; without a transaction, only definitions.

        Raises:
            ConnectorError: TRANSACTION_CONFLICT, TABLE_ALREADY_EXISTS or SCHEMA_NOT_EMPTY;
                ``changed=None`` if the outcome is unknown.
        """

    @abstractmethod
    def abort(self, transaction: int) -> bool:
        """Abort a transaction; return whether its write ids are hidden."""

    @abstractmethod
    def open_transactions(self) -> Sequence[OpenTransaction]:
        """Return the open transactions, oldest first."""


def schema_not_found(schema: str) -> ConnectorError:
    return ConnectorError(
        f"Schema '{schema}' does not exist",
        code="SCHEMA_NOT_FOUND",
        hint=f"CREATE SCHEMA {schema} makes it.",
    )


def schema_not_empty(schema: str) -> ConnectorError:
    return ConnectorError(
        f"Schema not empty: {schema}", code="SCHEMA_NOT_EMPTY", hint="Drop its tables before."
    )


def table_exists(name: SchemaTableName) -> ConnectorError:
    return ConnectorError(
        f"Table '{name}' already exists",
        code="TABLE_ALREADY_EXISTS",
        hint="Choose another name, or DROP TABLE first.",
    )


def partition_name(columns: Sequence[str], texts: Sequence[str | None]) -> str:
    """Return the name of a partition, its folder's path.

    >>> partition_name(["p", "d"], ["z a/b", None])
    'p=z a%2Fb/d=__HIVE_DEFAULT_PARTITION__'
    """
    pairs = zip(columns, texts, strict=True)
    return "/".join(
        f"{escape(c.lower())}={DEFAULT_PARTITION if text is None else escape(text)}"
        for c, text in pairs
    )


def partition_texts(name: str) -> list[str | None]:
    texts = [part.split("=", 1)[1] for part in name.split("/")] if name else []
    return [None if text == DEFAULT_PARTITION else unescape(text) for text in texts]
