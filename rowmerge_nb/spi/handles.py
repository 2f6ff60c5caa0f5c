"""Handles: what engine and connector pass back and forth without the engine looking inside.

All of them travel to tasks by pickle, so they hold plain data.
"""

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
"""What a sink's ``finish`` gives: connector-specific bytes, opaque to the engine, at once or later; a failed future fails the statement."""


@dataclass(frozen=True)
class SchemaTableName:
    """A table's name within its catalog, both parts in lower case as they are compared.

    >>> str(SchemaTableName("default", "accounts"))
    'default.accounts'
    """

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True)
class ConnectorSession:
    """What a connector may know of the statement it serves.

    Args:
        query_id: unique per statement; whatever a task leaves behind is named by it, so that it can be found and removed.
        user: who runs the statement.
        time_zone: the session's zone, an IANA name.
        properties: the session's properties; ``row_change_paradigm`` and ``era`` are set by the engine when the user asks. In the era of the
            documents ``begin_merge`` gets ``updated_columns``: the names of all columns that UPDATE clauses assign.
        writer: where a sink is made: which of the statement's writers it is for, the same number for every attempt of a task, and
            another one for every other writer. None elsewhere.
        is_observation: what is read is only shown or compared; the statement does not depend on it. A connector that checks at commit
            whether others changed what the statement has read must not count it.

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
        name: the column's name as it was written when the table was made.
        type: its SQL type; an Arrow type is accepted and translated. A row id may be of any type, usually a row.
        carried: where a column is to be read: no expression of the statement reads it, and its values only go along with the row. A store that
            does not check its values may give NULL for one that the type does not have. An UPDATE does not write the column.

    >>> str(ColumnHandle("row_id", pa.struct([("bucket", pa.int32()), ("position", pa.int64())])).type)
    'row(bucket integer, position bigint)'
    """

    name: str
    type: Type
    carried: bool = field(default=False, compare=False, repr=False, kw_only=True)

    def as_carried(self) -> Self:
        """Return a copy that is only carried along."""
        handle = copy(self)
        object.__setattr__(handle, "carried", True)
        return handle

    def __post_init__(self) -> None:
        if isinstance(self.type, pa.DataType):
            object.__setattr__(self, "type", from_arrow(self.type))


class ConnectorTableHandle:
    """A table for the length of a statement; connectors subclass it, usually as a frozen dataclass."""


class PointerType(Enum):
    """How a version is pointed at: by a moment (``FOR TIMESTAMP AS OF``), or by its own number or name (``FOR VERSION AS OF``)."""

    TEMPORAL = "TIMESTAMP"
    TARGET_ID = "VERSION"


@dataclass(frozen=True)
class ConnectorTableVersion:
    """A state of a table that the connector keeps and can find again.

    Args:
        version: its name or number, as the connector counts; of a moment a date, a datetime without a zone (a ``timestamp``, in the session's
            zone), or one with a zone. What is finer than a microsecond is cut.
        pointer_type: what ``version`` is.
        version_type: the SQL type that it has in the statement; None of a version that the connector itself has given.
        made_from: of a version that a commit has made, the one that it was put on top of. The statement may have read an older one, where others
            have committed meanwhile and that is no conflict. None where the connector does not say.

    >>> str(ConnectorTableVersion(7)), str(ConnectorTableVersion(dt.date(2026, 1, 31), PointerType.TEMPORAL))
    ('FOR VERSION AS OF 7', 'FOR TIMESTAMP AS OF 2026-01-31')
    """

    version: int | str | dt.date
    pointer_type: PointerType = PointerType.TARGET_ID
    version_type: Type | None = None
    made_from: ConnectorTableVersion | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        shown = f"'{self.version}'" if isinstance(self.version, str) else self.version
        return f"FOR {self.pointer_type.value} AS OF {shown}"

    def instant(self, time_zone: str = "UTC") -> dt.datetime:
        """Return the moment that it points at; a date is its first one, and what has no zone is taken in that of the session.

        Raises:
            TypeError: it points at no moment.

        >>> ConnectorTableVersion(dt.date(2026, 1, 31), PointerType.TEMPORAL).instant("Europe/Berlin").astimezone(dt.UTC).isoformat()
        '2026-01-30T23:00:00+00:00'
        """
        found = self.version
        if not isinstance(found, dt.date):
            raise TypeError(f"{found!r} is not a moment")
        if not isinstance(found, dt.datetime):
            found = dt.datetime(found.year, found.month, found.day)  # noqa: DTZ001 - the zone is given below
        return found if found.tzinfo is not None else found.replace(tzinfo=zoneinfo.ZoneInfo(time_zone))


class ConnectorSplit:
    """A part of a table that one task reads."""

    @property
    def carries_rows(self) -> bool:
        """The rows are in the split itself.

        Where that is so of all splits of a table, they are read at once where the statement is planned: a task would cost more than
        the reading.
        """
        return False

    @property
    def remotely_accessible(self) -> bool:
        """A task on any machine can read it (Trino's ``isRemotelyAccessible``).

        Where that is not so, splits are read on the driver for executors that may be elsewhere; where tasks must have the split itself, as
        in the older flow, they get the one that `with_rows` gives.
        """
        return True

    @property
    def is_repeatable(self) -> bool:
        """Reading it gives the same rows in the same order, however often and wherever it is read while the statement runs.

        Where that is so of all splits of a MERGE's source, every task reads the source itself; else one task does, and sends the rows.
        """
        return False

    def with_rows(self) -> ConnectorSplit:
        """Return a split of the same rows that any machine can read; by default this one."""
        return self


class ConnectorTransactionHandle:
    """A transaction of a connector."""


class ConnectorInsertTableHandle:
    """A table that rows are being inserted into (``begin_insert``)."""


class ConnectorTableExecuteHandle:
    """What a procedure of a table is to do; opaque to the engine."""


class ConnectorPartitioningHandle:
    """A connector's own way of spreading rows; its bucket function comes from the partitioning provider.

    >>> ConnectorPartitioningHandle().described
    ''
    """

    @property
    def described(self) -> str:
        """What EXPLAIN prints of it; ``""`` leaves it to the engine, which names the layout's columns."""
        return ""


@dataclass(frozen=True)
class ConnectorMergeTableHandle:
    """A table that is being merged into (design documents, "ConnectorMergeTableHandle API").

    Args:
        table_handle: the handle to scan with while the merge runs. Connectors that need more in their merge handle
            subclass this class and add fields.

    >>> handle = ConnectorTableHandle()
    >>> ConnectorMergeTableHandle(handle).get_table_handle() is handle
    True
    """

    table_handle: ConnectorTableHandle

    def get_table_handle(self) -> ConnectorTableHandle:
        """Return the table handle that ``begin_merge`` made for scanning the target."""
        return self.table_handle


def own(handle: object, kind: type[T]) -> T:
    """Return a handle or split back as one of a connector's own classes: signatures of the contract name only the common ones.

    Raises:
        TypeError: it is another connector's, or of another statement's kind.

    >>> own(ConnectorMergeTableHandle(ConnectorTableHandle()), ConnectorMergeTableHandle).table_handle is not None
    True
    >>> own("a text", ConnectorSplit)
    Traceback (most recent call last):
    TypeError: 'a text' is not a ConnectorSplit of this connector
    """
    if not isinstance(handle, kind):
        raise TypeError(f"{handle!r} is not a {kind.__name__} of this connector")
    return handle
