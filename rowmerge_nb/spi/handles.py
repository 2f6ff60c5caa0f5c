"""Handles: the connector's plain data, opaque to the engine and pickled to tasks."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Collection
from concurrent.futures import Future
from copy import copy
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Self, TypeVar

import pyarrow as pa

from rowmerge_nb.spi.types import Type, from_arrow

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")

Fragments = Collection[bytes] | Future[Collection[bytes]]
"""The result of a sink's ``finish``: bytes that are opaque to the engine, or a future of them; a
failed future fails the statement.
"""


@dataclass(frozen=True)
class SchemaTableName:
    """A table's name within its catalog, in lower case.

    >>> str(SchemaTableName("default", "accounts"))
    'default.accounts'
    """

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True)
class ConnectorSession:
    """The context of a statement.

    Args:
        query_id: unique per statement; part of the names of whatever a task writes, to identify
            leftovers.
        time_zone: an IANA zone name.
        properties: the session properties; the engine sets ``row_change_paradigm`` and ``era`` on
            request, and ``statement`` (``MERGE``, ``UPDATE`` or ``DELETE``) before it asks for the
            row id. In the era of the documents, ``updated_columns`` has the names of all columns
            that UPDATE clauses assign, for ``begin_merge``.
        writer: for a sink, the number of its writer, the same for every attempt of a task and
            unique within the statement.
        is_observation: the rows are only displayed or compared, so that the read cannot conflict
            with changes.

    >>> ConnectorSession("q1").time_zone
    'UTC'
    """

    query_id: str
    user: str = "user"
    time_zone: str = "UTC"
    properties: Mapping[str, Any] = field(default_factory=dict)
    writer: int | None = None
    is_observation: bool = False


@dataclass(frozen=True)
class ColumnHandle:
    """A column as the connector names it.

    Args:
        type: its SQL type; an Arrow type is converted. A row id may have any type, usually a row.
        carried: in a read, no expression uses the column, so a store that does not validate values
            may return NULL for an invalid one. An UPDATE does not write the column.

    >>> str(ColumnHandle("row_id", pa.struct([("bucket", pa.int32()), ("position", pa.int64())])).type)
    'row("bucket" integer, "position" bigint)'
    """

    name: str
    type: Type
    carried: bool = field(default=False, compare=False, repr=False, kw_only=True)

    @property
    def identifies_new_rows(self) -> bool:
        """Whether the new row of an UPDATE has this row id too in the era of the documents.

        In the current era it always has the row id of its old row.
        """
        return False

    def as_carried(self) -> Self:
        """Return a copy with ``carried`` set."""
        handle = copy(self)
        object.__setattr__(handle, "carried", True)
        return handle

    def __post_init__(self) -> None:
        if isinstance(self.type, pa.DataType):
            object.__setattr__(self, "type", from_arrow(self.type))


class ConnectorTableHandle:
    """A table for the duration of a statement; connectors subclass it."""


class PointerType(Enum):
    """How a version is specified: by time (``FOR TIMESTAMP AS OF``), by number or name
    (``FOR VERSION AS OF``), or as the branch that a statement changes (``t @ branch``).
    """

    TEMPORAL = "TIMESTAMP"
    TARGET_ID = "VERSION"
    BRANCH = "@"


@dataclass(frozen=True)
class ConnectorTableVersion:
    """A version of a table that the connector can read.

    Args:
        version: the connector's number or name; or a date or datetime, in the session's zone if it
            has none. Fractions of a microsecond are truncated.
        version_type: its SQL type in the statement; None for a version that the connector returned.
        made_from: for a committed version, the one it is based on, if reported. The statement may
            have read an older one, if commits in between did not conflict.

    >>> str(ConnectorTableVersion(7)), str(ConnectorTableVersion(dt.date(2026, 1, 31), PointerType.TEMPORAL))
    ('FOR VERSION AS OF 7', 'FOR TIMESTAMP AS OF 2026-01-31')
    """

    version: int | str | dt.date
    pointer_type: PointerType = PointerType.TARGET_ID
    version_type: Type | None = None
    made_from: ConnectorTableVersion | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.pointer_type is PointerType.BRANCH:
            return f"@ {self.version}"
        version = f"'{self.version}'" if isinstance(self.version, str) else self.version
        return f"FOR {self.pointer_type.value} AS OF {version}"

    def instant(self, time_zone: str = "UTC") -> dt.datetime:
        """Return the time; a date means its start.

        Raises:
            TypeError: the version is not a time.

        >>> ConnectorTableVersion(dt.date(2026, 1, 31), PointerType.TEMPORAL).instant("Europe/Berlin").astimezone(dt.UTC).isoformat()
        '2026-01-30T23:00:00+00:00'
        """
        moment = self.version
        if not isinstance(moment, dt.date):
            raise TypeError(f"{moment!r} is not a moment")
        if not isinstance(moment, dt.datetime):
            moment = dt.datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001 - the zone is given below
        return (
            moment
            if moment.tzinfo is not None
            else moment.replace(tzinfo=zoneinfo.ZoneInfo(time_zone))
        )


@dataclass(frozen=True)
class ReadFile:
    """A file that a split reads.

    Args:
        path: its path or address; relative to the table's location if the connector reports it so.
        bytes: its size, if known without opening it.
        rows: its number of rows, if known without opening it.
        deletes: whether it only deletes rows of other files.
    """

    path: str
    bytes: int | None = None
    rows: int | None = None
    deletes: bool = False


class ConnectorSplit:
    """A part of a table that one task reads."""

    @property
    def read_files(self) -> tuple[ReadFile, ...]:
        """The files that it reads, for comparisons of costs; empty if the connector does not report
        them.
        """
        return ()

    @property
    def carries_rows(self) -> bool:
        """Whether the rows are in the split itself.

        If all splits of a table carry theirs, the engine reads them while planning.
        """
        return False

    @property
    def remotely_accessible(self) -> bool:
        """Whether a task on any machine can read it (Trino's ``isRemotelyAccessible``).

        Otherwise the driver reads the split if executors may run elsewhere; the older flow sends
        the result of `with_rows`.
        """
        return True

    @property
    def is_repeatable(self) -> bool:
        """Whether every read during the statement returns the same rows in the same order, on any
        machine.

        If so for all splits of a MERGE's source, every task reads the source itself; otherwise one
        task reads and sends it.
        """
        return False

    def with_rows(self) -> ConnectorSplit:
        """Return a split of the same rows that any machine can read; by default this one."""
        return self


class ConnectorTransactionHandle:
    """A transaction of a connector."""


class ConnectorInsertTableHandle:
    """The target of an INSERT (``begin_insert``)."""


class ConnectorOutputTableHandle(ConnectorInsertTableHandle):
    """The new table of CREATE TABLE AS (``begin_create_table``); its sinks are those of an INSERT."""


class ConnectorTableExecuteHandle:
    """A call of a table procedure; opaque to the engine."""


class ConnectorPartitioningHandle:
    """A connector's own partitioning; the partitioning provider returns its bucket function.

    >>> ConnectorPartitioningHandle().described
    ''
    """

    @property
    def described(self) -> str:
        """The text for EXPLAIN; by default the layout's columns are printed."""
        return ""


@dataclass(frozen=True)
class ConnectorMergeTableHandle:
    """The target of a MERGE (design documents, "ConnectorMergeTableHandle API"); ``table_handle``
    is for its scans.

    >>> handle = ConnectorTableHandle()
    >>> ConnectorMergeTableHandle(handle).get_table_handle() is handle
    True
    """

    table_handle: ConnectorTableHandle

    def get_table_handle(self) -> ConnectorTableHandle:
        """Return the handle for scans during the merge."""
        return self.table_handle


def own(handle: object, kind: type[T]) -> T:
    """Return a handle or split as the connector's own class; raises TypeError for other classes.

    >>> own("a text", ConnectorSplit)
    Traceback (most recent call last):
    TypeError: 'a text' is not a ConnectorSplit of this connector
    """
    if not isinstance(handle, kind):
        raise TypeError(f"{handle!r} is not a {kind.__name__} of this connector")
    return handle
