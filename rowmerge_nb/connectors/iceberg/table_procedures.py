"""The procedures of ``ALTER TABLE ... EXECUTE``, with the names and rules of Trino's connector."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.shared.retention import WEEK, Retention, parse_retention, parse_size
from rowmerge_nb.spi import (
    Constraint,
    Procedure,
    ProcedureArgument,
    TableProcedure,
    TableProcedureArgument,
    parse_type,
)
from rowmerge_nb.spi.types import BIGINT, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle

_TEMPORAL: Final = {"year", "month", "day", "hour"}


_RETAINED: Final = (TableProcedureArgument("retention_threshold", VARCHAR, WEEK, parse_retention),)
_FILES_OF: Final = parse_type("map(varchar, varchar)")
TABLE_PROCEDURES: Final = (
    TableProcedure(
        "OPTIMIZE",
        (TableProcedureArgument("file_size_threshold", VARCHAR, 100 << 20, parse_size),),
        rewrites=True,
    ),
    TableProcedure("OPTIMIZE_MANIFESTS"),
    TableProcedure("DROP_EXTENDED_STATS"),
    TableProcedure("ROLLBACK_TO_SNAPSHOT", (TableProcedureArgument("snapshot_id", BIGINT),)),
    TableProcedure("EXPIRE_SNAPSHOTS", _RETAINED),
    TableProcedure("REMOVE_ORPHAN_FILES", _RETAINED),
    TableProcedure(
        "ADD_FILES",
        tuple(
            TableProcedureArgument(name, VARCHAR)
            for name in ("location", "format", "recursive_directory")
        ),
    ),
    TableProcedure(
        "ADD_FILES_FROM_TABLE",
        (
            *(TableProcedureArgument(name, VARCHAR) for name in ("schema_name", "table_name")),
            TableProcedureArgument("partition_filter", _FILES_OF),
            TableProcedureArgument("recursive_directory", VARCHAR),
        ),
    ),
)
"""The procedures of every table."""

_DISABLED: Final = ("ADD_FILES", "ADD_FILES_FROM_TABLE")


def procedures_of(rollback: Callable[..., None]) -> tuple[Procedure, ...]:
    """Return the procedures of ``CALL catalog.system.name(...)``."""
    arguments = (
        ProcedureArgument("schema", VARCHAR),
        ProcedureArgument("table", VARCHAR),
        ProcedureArgument("snapshot_id", BIGINT),
    )
    return (Procedure("system", "rollback_to_snapshot", arguments, rollback),)


def moment_before(retention: Retention) -> datetime:
    """Return the time that long ago, or the first time that Python supports."""
    try:
        return datetime.now(UTC) - retention.time
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def refuse_disabled(procedure: str) -> None:
    """Raise PERMISSION_DENIED for procedures that Trino disables by default."""
    if procedure in _DISABLED:
        msg = f"{procedure.lower()} procedure is disabled"
        hint = "INSERT INTO ... SELECT copies the rows of another table."
        raise ConnectorError(msg, code="PERMISSION_DENIED", hint=hint)


def check_partitions(handle: IcebergTableHandle, constraint: Constraint, table: Table) -> None:
    """Raise NOT_SUPPORTED unless a predicate selects whole partitions."""
    for name in constraint.domains:
        if name == "$path":
            continue
        number = next((field.id for field in handle.fields if field.name == name), None)
        for spec in table.metadata.specs().values():
            transforms = {str(part.transform) for part in spec.fields if part.source_id == number}
            if not transforms & {"identity", *_TEMPORAL}:
                raise ConnectorError(
                    "WHERE of procedure OPTIMIZE can only name partitions, and table"
                    f" '{handle.name}' has none by column '{name}'",
                    hint=(
                        "Remove that column from WHERE: the whole table can be optimized, or whole"
                        " partitions."
                    ),
                )


def check_rollback(table: Table, handle: IcebergTableHandle, snapshot: int | None) -> int:
    """Return the snapshot to roll back to, or raise INVALID_PROCEDURE_ARGUMENT if it is not an
    ancestor.
    """
    from pyiceberg.table.snapshots import ancestors_of

    newest_ids = ", ".join(str(one.snapshot_id) for one in table.metadata.snapshots[-3:])
    hint = (
        f"The newest snapshots of '{handle.name}' are: {newest_ids}."
        if newest_ids
        else f"Table '{handle.name}' has no snapshots yet."
    )
    if snapshot is None:
        msg = "Required procedure argument 'SNAPSHOT_ID' is missing"
    elif table.metadata.snapshot_by_id(snapshot) is None:
        msg = f"Cannot roll back to unknown snapshot id: {snapshot}"
    elif all(
        one.snapshot_id != snapshot
        for one in ancestors_of(table.current_snapshot(), table.metadata)
    ):
        msg = f"Cannot roll back to snapshot, not an ancestor of the current state: {snapshot}"
    else:
        return snapshot
    raise ConnectorError(msg, code="INVALID_PROCEDURE_ARGUMENT", hint=hint)


def expired_snapshots(metadata: TableMetadata, before: datetime) -> list[int]:
    """Return the snapshots that expire by Iceberg's rules.

    Snapshots of tags and branches are retained, as are newer ancestors of branches, and as many as
    the properties or the branch require.
    """
    oldest = before.timestamp() * 1000
    fewest = int(metadata.properties.get("history.expire.min-snapshots-to-keep", 1))
    retained: set[int] = set()
    past: set[int] = set()
    for ref in metadata.refs.values():
        retained.add(ref.snapshot_id)
        least = fewest if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
        age = ref.max_snapshot_age_ms
        since = oldest if age is None else datetime.now(UTC).timestamp() * 1000 - age
        at, count = (ref.snapshot_id, 0) if ref.snapshot_ref_type.value == "branch" else (None, 0)
        while at is not None and (one := metadata.snapshot_by_id(at)) is not None:
            past.add(at)
            if count < least or one.timestamp_ms >= since:
                retained.add(at)
            at, count = one.parent_snapshot_id, count + 1
    retained |= {
        one.snapshot_id
        for one in metadata.snapshots
        if one.snapshot_id not in past and one.timestamp_ms >= oldest
    }
    return [one.snapshot_id for one in metadata.snapshots if one.snapshot_id not in retained]
