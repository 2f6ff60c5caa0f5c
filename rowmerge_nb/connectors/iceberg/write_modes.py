"""Iceberg's table properties of how MERGE, UPDATE and DELETE write: the mode, and the distribution
of rows.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle
    from rowmerge_nb.connectors.shared.copy_on_write import Rewrite
    from rowmerge_nb.spi import ConnectorSession


class WriteMode(StrEnum):
    COPY_ON_WRITE = "copy-on-write"
    MERGE_ON_READ = "merge-on-read"


class Distribution(StrEnum):
    NONE = "none"
    HASH = "hash"
    RANGE = "range"


_STATEMENTS: Final = ("merge", "update", "delete")
_EVERY_STATEMENT: Final = "write.distribution-mode"

WRITE_PROPERTIES: Final[Mapping[str, tuple[str, ...]]] = {
    **{f"write.{statement}.mode": tuple(map(str, WriteMode)) for statement in _STATEMENTS},
    **{
        name: tuple(map(str, Distribution))
        for name in (
            _EVERY_STATEMENT,
            *(f"write.{statement}.distribution-mode" for statement in _STATEMENTS),
        )
    },
}
"""The properties, with their values."""


def write_mode(handle: IcebergTableHandle, session: ConnectorSession) -> WriteMode:
    """Return the mode of a row change: merge-on-read, as Trino's, unless the table has a property."""
    value = handle.properties.get(_mode_property(session), WriteMode.MERGE_ON_READ)
    return WriteMode(value.lower())


def distribution(handle: IcebergTableHandle, session: ConnectorSession) -> Distribution:
    value = handle.properties.get(_distribution_property(handle, session), Distribution.HASH)
    return Distribution(value.lower())


def notices(
    handle: IcebergTableHandle, session: ConnectorSession, rewrite: Rewrite | None
) -> Iterator[str]:
    """Yield sentences about the properties that are set, for the report of a row change."""
    mode = _mode_property(session)
    if mode in handle.properties:
        outcome = (
            f" {len(rewrite.removed)} files were rewritten, with {rewrite.copied} copied rows."
            if rewrite is not None
            else ""
        )
        yield (
            f"{mode} of table '{handle.name}' is '{handle.properties[mode]}'.{outcome} Trino ignores"
            " this property and writes merge-on-read; the default of Spark is copy-on-write."
        )
    name = _distribution_property(handle, session)
    if handle.partitioning and distribution(handle, session) is Distribution.RANGE:
        yield (
            f"{name} of table '{handle.name}' is 'range', which is executed as 'hash': one writer"
            " for each partition, and no order across files."
        )


def _mode_property(session: ConnectorSession) -> str:
    return f"write.{session.properties.get('statement', 'MERGE').lower()}.mode"


def _distribution_property(handle: IcebergTableHandle, session: ConnectorSession) -> str:
    name = f"write.{session.properties.get('statement', '').lower()}.distribution-mode"
    return name if name in handle.properties else _EVERY_STATEMENT
