"""Which snapshot a version points at, and a table as it was in one."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.connectors.shared.history import no_history, unsupported_version
from rowmerge_nb.spi.handles import PointerType
from rowmerge_nb.spi.types import BIGINT

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from rowmerge_nb.spi.handles import ConnectorTableVersion, SchemaTableName


def snapshot_of(table: Table, name: SchemaTableName, version: ConnectorTableVersion, time_zone: str) -> Snapshot:
    """Find the snapshot that a version points at, by Trino's rules: its id, a tag or a branch, or the one that was current at a moment.

    Args:
        table: the table.
        name: its name, for errors.
        version: the version.
        time_zone: the session's zone, for moments without one.

    Raises:
        ConnectorError: INVALID_ARGUMENTS if there is none, NOT_SUPPORTED for a type that is no snapshot's id and no name.
    """
    found = (
        _at(table, name, version.instant(time_zone)) if version.pointer_type is PointerType.TEMPORAL else _named(table, version)
    )
    snapshot = table.metadata.snapshot_by_id(found)
    if snapshot is None:
        # Trino's words.
        msg = f"Iceberg snapshot ID does not exists: {found}"
        newest = sorted(table.metadata.snapshots, key=lambda known: known.timestamp_ms)[-3:]
        known = ", ".join(str(known.snapshot_id) for known in newest)
        raise ConnectorError(
            msg,
            code="INVALID_ARGUMENTS",
            hint=f"The newest snapshots of '{name}' are: {known}." if known else f"Table '{name}' has no snapshots yet.",
        )
    return snapshot


def _named(table: Table, version: ConnectorTableVersion) -> int:
    pointer = version.version
    if isinstance(pointer, str):
        reference = table.metadata.refs.get(pointer)
        if reference is None:
            refs = sorted(table.metadata.refs)
            raise ConnectorError(
                f"Cannot find snapshot with reference name: {pointer}",
                code="INVALID_ARGUMENTS",
                hint=did_you_mean(pointer, refs)
                or (f"There are: {', '.join(refs)}." if refs else "It has no tags and branches yet."),
            )
        return int(reference.snapshot_id)
    if not isinstance(pointer, int) or version.version_type not in {None, BIGINT}:
        kind = version.version_type or type(pointer).__name__
        raise unsupported_version(
            kind, "Write the id of a snapshot, which is a bigint, or the name of a tag or a branch in quotes."
        )
    return pointer


def _at(table: Table, name: SchemaTableName, instant: dt.datetime) -> int:
    """Find what was current at a moment by the log, which has an entry for every snapshot that has become current, again too."""
    millis = (instant - dt.datetime.fromtimestamp(0, dt.UTC)) // dt.timedelta(milliseconds=1)
    log = table.metadata.snapshot_log
    before = [entry for entry in log if entry.timestamp_ms <= millis]
    if not before:
        first = min((entry.timestamp_ms for entry in log), default=None)
        at = None if first is None else dt.datetime.fromtimestamp(first / 1000, dt.UTC)
        raise no_history(
            name, instant, "It has no snapshots yet." if at is None else f"Its history begins at {at:%Y-%m-%d %H:%M:%S.%f} UTC."
        )
    # Of entries of one moment the last one counts.
    return int(max(enumerate(before), key=lambda entry: (entry[1].timestamp_ms, entry[0]))[1].snapshot_id)


def as_of(table: Table, snapshot: Snapshot) -> Table:
    """Return a table as it was in a snapshot, with the columns of that time; only for reading."""
    from pyiceberg.table import Table

    metadata = table.metadata
    known = {schema.schema_id for schema in metadata.schemas}
    schema = snapshot.schema_id if snapshot.schema_id in known else metadata.current_schema_id
    then = metadata.model_copy(update={"current_snapshot_id": snapshot.snapshot_id, "current_schema_id": schema})
    return Table(table.name(), then, table.metadata_location, table.io, table.catalog)


def check_restorable(table: Table, name: SchemaTableName, snapshot: Snapshot) -> None:
    """Refuse to make a snapshot the current one that has none of the table's columns: every value of its rows would be NULL.

    Raises:
        ConnectorError: NOT_SUPPORTED, CREATE OR REPLACE TABLE has made other columns since.
    """
    former = next((schema for schema in table.metadata.schemas if schema.schema_id == snapshot.schema_id), None)
    if former is None or table.schema().field_ids & former.field_ids:
        return
    msg = f"Snapshot {snapshot.snapshot_id} of table '{name}' has other columns: CREATE OR REPLACE TABLE has made the table anew since"
    again = f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM {name} FOR VERSION AS OF {snapshot.snapshot_id}"
    raise ConnectorError(msg, code="NOT_SUPPORTED", hint=f"This makes it what it was then: {again}")
