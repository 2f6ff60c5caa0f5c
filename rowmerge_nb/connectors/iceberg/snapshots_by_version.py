"""Time travel: the snapshot of a version, and the table at that snapshot."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.connectors.shared.history import no_history, unsupported_version
from rowmerge_nb.spi import ConnectorTableVersion, PointerType, SchemaTableName
from rowmerge_nb.spi.types import BIGINT

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot


def snapshot_of(
    table: Table, name: SchemaTableName, version: ConnectorTableVersion, time_zone: str
) -> Snapshot:
    """Find the snapshot of a version by Trino's rules: by id, tag, branch, or time;
    INVALID_ARGUMENTS if there is none.
    """
    snapshot_id = (
        _at(table, name, version.instant(time_zone))
        if version.pointer_type is PointerType.TEMPORAL
        else _by_reference(table, version)
    )
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        # Trino's wording.
        msg = f"Iceberg snapshot ID does not exists: {snapshot_id}"
        newest = sorted(table.metadata.snapshots, key=lambda one: one.timestamp_ms)[-3:]
        ids = ", ".join(str(one.snapshot_id) for one in newest)
        raise ConnectorError.invalid(
            msg,
            hint=(
                f"The newest snapshots of '{name}' are: {ids}."
                if ids
                else f"Table '{name}' has no snapshots yet."
            ),
        )
    return snapshot


def _by_reference(table: Table, version: ConnectorTableVersion) -> int:
    pointer = version.version
    if isinstance(pointer, str):
        reference = table.metadata.refs.get(pointer)
        if reference is None:
            refs = sorted(table.metadata.refs)
            raise ConnectorError.invalid(
                f"Cannot find snapshot with reference name: {pointer}",
                hint=did_you_mean(pointer, refs)
                or (
                    f"There are: {', '.join(refs)}." if refs else "It has no tags and branches yet."
                ),
            )
        return int(reference.snapshot_id)
    if not isinstance(pointer, int) or version.version_type not in {None, BIGINT}:
        type_name = version.version_type or type(pointer).__name__
        raise unsupported_version(
            type_name,
            "Write the id of a snapshot, which is a bigint, or the name of a tag or a branch in"
            " quotes.",
        )
    return pointer


def _at(table: Table, name: SchemaTableName, instant: dt.datetime) -> int:
    millis = (instant - dt.datetime.fromtimestamp(0, dt.UTC)) // dt.timedelta(milliseconds=1)
    log = table.metadata.snapshot_log
    before = [entry for entry in log if entry.timestamp_ms <= millis]
    if not before:
        first = min((entry.timestamp_ms for entry in log), default=None)
        at = None if first is None else dt.datetime.fromtimestamp(first / 1000, dt.UTC)
        raise no_history(
            name,
            instant,
            (
                "It has no snapshots yet."
                if at is None
                else f"Its history begins at {at:%Y-%m-%d %H:%M:%S.%f} UTC."
            ),
        )
    # The last entry of the same time wins.
    return int(
        max(enumerate(before), key=lambda entry: (entry[1].timestamp_ms, entry[0]))[1].snapshot_id
    )


def as_of(table: Table, snapshot: Snapshot) -> Table:
    """Return a table at a snapshot, with its columns, for reading only."""
    from pyiceberg.table import Table

    metadata = table.metadata
    schema_ids = {schema.schema_id for schema in metadata.schemas}
    schema = snapshot.schema_id if snapshot.schema_id in schema_ids else metadata.current_schema_id
    then = metadata.model_copy(
        update={"current_snapshot_id": snapshot.snapshot_id, "current_schema_id": schema}
    )
    return Table(table.name(), then, table.metadata_location, table.io, table.catalog)


def check_restorable(table: Table, name: SchemaTableName, snapshot: Snapshot) -> None:
    """Raise NOT_SUPPORTED for a snapshot that shares no column with the table, since all values
    would be NULL.
    """
    schema = next(
        (schema for schema in table.metadata.schemas if schema.schema_id == snapshot.schema_id),
        None,
    )
    if schema is None or table.schema().field_ids & schema.field_ids:
        return
    msg = (
        f"Snapshot {snapshot.snapshot_id} of table '{name}' has other columns: CREATE"
        " OR REPLACE TABLE has since replaced the table"
    )
    statement = (
        f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM {name} FOR VERSION AS OF"
        f" {snapshot.snapshot_id}"
    )
    raise ConnectorError(msg, hint=f"This restores it: {statement}")
