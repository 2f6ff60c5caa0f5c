"""Handles of a plugin: the SPI's dataclasses around the JSON that Trino itself sends to workers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.words import plural
from rowmerge_nb.spi.handles import (
    ColumnHandle,
    ConnectorInsertTableHandle,
    ConnectorMergeTableHandle,
    ConnectorOutputTableHandle,
    ConnectorPartitioningHandle,
    ConnectorSplit,
    ConnectorTableHandle,
    SchemaTableName,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rowmerge_nb.spi.metadata import ConnectorTableMetadata
    from rowmerge_nb.spi.types import Type

_LONGEST_TEXT: Final = 40
"""The longest text in the repr of a handle."""
_MOST_TEXT: Final = 80


@dataclass(frozen=True, repr=False)
class JavaHandle:
    """A handle of Java as text; its repr is short.

    Args:
        number: the number of the Java object, which the coordinator's host keeps until the
            transaction ends; not part of equality.
        losses: sentences about fields that tasks do not receive; not part of equality.

    >>> handle = JavaHandle("io.trino.spi.connector.ColumnHandle", "io.shop.ShopColumn", "{}")
    >>> handle.class_text
    'ShopColumn'
    >>> JavaHandle("I", "io.shop.ShopMerge", '{"@type": "x", "table": {"name": "t"}, "ids": [1, 2]}')
    ShopMerge(table={1 field}, ids=[2 items])
    """

    interface: str
    class_name: str
    json: str
    number: int | None = field(default=None, compare=False)
    losses: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def class_text(self) -> str:
        return self.class_name.rpartition(".")[2]

    def __repr__(self) -> str:
        return f"{self.class_text}({_folded_fields(self.json)})"

    @property
    def wire(self) -> dict[str, Any]:
        return {
            "interface": self.interface,
            "class": self.class_name,
            "json": self.json,
            "number": self.number,
        }


def _folded_fields(text: str) -> str:
    """Return the fields of a handle's JSON, with nested values as their sizes.

    >>> _folded_fields('["catalog", 3]'), _folded_fields("no JSON")
    ('[2 items]', '')
    """
    try:
        content = json.loads(text)
    except ValueError:
        return ""
    if not isinstance(content, dict):
        return _folded(content)
    fields = [f"{name}={_folded(value)}" for name, value in content.items() if name != "@type"]
    return ", ".join(fields)


def _folded(value: Any) -> str:
    """Return a value of JSON in one short word or phrase.

    >>> _folded({}), _folded(["a"]), _folded(True), _folded("x" * 50)[-4:]
    ('{}', '[1 item]', 'true', 'xxx…')
    """
    if isinstance(value, dict) and value:
        return f"{{{plural(len(value), 'field')}}}"
    if isinstance(value, list) and value:
        return f"[{plural(len(value), 'item')}]"
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else f"{value[:_LONGEST_TEXT]}…"
    return json.dumps(value)


def java_handle(value: Mapping[str, Any]) -> JavaHandle:
    """Return the handle of an object of the wire.

    >>> java_handle({"interface": "I", "class": "C", "json": "{}", "number": 3}).number
    3
    """
    return JavaHandle(
        value["interface"],
        value["class"],
        value["json"],
        value.get("number"),
        tuple(map(_lost_field, value.get("losses") or ())),
    )


def _lost_field(loss: Mapping[str, Any]) -> str:
    before = str(loss["before"])
    value = before if len(before) <= _MOST_TEXT else f"{before[:_MOST_TEXT]}…"
    return (
        f"The field {loss['class']}.{loss['field']} is lost in the JSON of its handle: tasks get"
        f" {loss['after'] or 'an empty text'}, not {value}."
    )


def optional_handle(value: Mapping[str, Any] | None) -> JavaHandle | None:
    return None if value is None else java_handle(value)


def wire_of(handle: JavaHandle | None) -> dict[str, Any] | None:
    return None if handle is None else handle.wire


@dataclass(frozen=True)
class TrinoSession:
    """What a plugin's ConnectorSession is built from, in every process."""

    user: str
    query_id: str
    start: str
    time_zone: str
    properties: tuple[tuple[str, Any], ...] = ()

    @property
    def wire(self) -> dict[str, Any]:
        return {
            "user": self.user,
            "query_id": self.query_id,
            "start": self.start,
            "time_zone": self.time_zone,
            "properties": dict(self.properties),
        }


@dataclass(frozen=True)
class TaskContext:
    transaction: JavaHandle
    session: TrinoSession

    @property
    def wire(self) -> dict[str, Any]:
        return {"transaction": self.transaction.wire, "session": self.session.wire}


@dataclass(frozen=True)
class TrinoColumnHandle(ColumnHandle):
    java: JavaHandle | None = field(default=None, compare=False, repr=False)
    signature: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, repr=False)
class TrinoTableHandle(ConnectorTableHandle):
    name: SchemaTableName
    java: JavaHandle
    context: TaskContext = field(compare=False, repr=False)
    columns: tuple[TrinoColumnHandle, ...] = ()
    hidden_columns: tuple[TrinoColumnHandle, ...] = ()
    metadata: ConnectorTableMetadata | None = field(default=None, compare=False, repr=False)

    @property
    def column_types(self) -> dict[str, Type]:
        return {column.name: column.type for column in (*self.columns, *self.hidden_columns)}

    @property
    def class_text(self) -> str:
        return self.java.class_text

    def __repr__(self) -> str:
        return repr(self.java)

    def columns_of(self, handles: Iterable[ColumnHandle]) -> list[TrinoColumnHandle]:
        by_name = {column.name: column for column in (*self.columns, *self.hidden_columns)}
        result: list[TrinoColumnHandle] = []
        for handle in handles:
            own_handle = handle if isinstance(handle, TrinoColumnHandle) else None
            column = own_handle if own_handle and own_handle.java else by_name.get(handle.name)
            if column is None:
                raise ConnectorError(
                    f"Table '{self.name}' of the plugin has no column '{handle.name}'",
                    code="COLUMN_NOT_FOUND",
                    hint=f"Its columns are: {', '.join(by_name) or 'none'}.",
                )
            result.append(column)
        return result


@dataclass(frozen=True)
class TrinoSplit(ConnectorSplit):
    """A split of a plugin, readable on this machine only.

    Args:
        table: the table after the plugin's applyFilter, if it has taken a constraint.
    """

    java: JavaHandle
    credentials: JavaHandle | None = None
    table: JavaHandle | None = None

    @property
    def remotely_accessible(self) -> bool:
        """Whether tasks on other machines can read it: the host listens on this one."""
        return False


@dataclass(frozen=True)
class TrinoPartitioningHandle(ConnectorPartitioningHandle):
    java: JavaHandle
    context: TaskContext = field(compare=False, repr=False)
    columns: tuple[str, ...] = ()

    @property
    def class_text(self) -> str:
        return self.java.class_text

    @property
    def described(self) -> str:
        return f"{self.java.class_text}({', '.join(self.columns)})"


@dataclass(frozen=True, repr=False)
class TrinoInsertTableHandle(ConnectorInsertTableHandle):
    context: TaskContext = field(compare=False, repr=False)
    java: JavaHandle
    types: tuple[str, ...]
    credentials: JavaHandle | None = None

    @property
    def class_text(self) -> str:
        return self.java.class_text

    def __repr__(self) -> str:
        return repr(self.java)


@dataclass(frozen=True, repr=False)
class TrinoOutputTableHandle(TrinoInsertTableHandle, ConnectorOutputTableHandle):
    """The new table of CREATE TABLE AS."""


@dataclass(frozen=True, repr=False)
class TrinoMergeTableHandle(ConnectorMergeTableHandle):
    java: JavaHandle
    types: tuple[str, ...]
    credentials: JavaHandle | None = None

    @property
    def class_text(self) -> str:
        return self.java.class_text

    def __repr__(self) -> str:
        return repr(self.java)
