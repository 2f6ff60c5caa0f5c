"""Commits of a statement's changes to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, ValidationException
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import AssertRefSnapshotId
from pyiceberg.table.update.snapshot import ExpireSnapshots, ManageSnapshots
from pyiceberg.table.update.statistics import UpdateStatistics

from rowmerge_nb.base.errors import ConnectorError, RowMergeError, error_text
from rowmerge_nb.connectors.iceberg.alter_table import stage_alteration, stage_columns, stage_drops
from rowmerge_nb.connectors.iceberg.commit_conflicts import Change, check, check_head, conflict
from rowmerge_nb.connectors.iceberg.iceberg_types import fields_of
from rowmerge_nb.connectors.iceberg.opened_catalogs import is_settled, writes_metadata
from rowmerge_nb.connectors.iceberg.snapshot_producers import (
    Emptying,
    ManifestRewrite,
    RowDelta,
    SnapshotProducer,
    Truncation,
)
from rowmerge_nb.connectors.iceberg.sorting import sort_fields
from rowmerge_nb.connectors.iceberg.table_definition import COMMENT, ISOLATION, PROPERTIES
from rowmerge_nb.connectors.iceberg.write_modes import WRITE_PROPERTIES
from rowmerge_nb.connectors.shared.disk import refused
from rowmerge_nb.connectors.shared.sqlite_errors import is_full, sqlite_message
from rowmerge_nb.spi import ConnectorTableVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata

    from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog
    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle
    from rowmerge_nb.connectors.iceberg.notes import Writer
    from rowmerge_nb.spi.alterations import Alteration


def commit(
    change: Change,
    transaction: Transaction,
    properties: Mapping[str, str],
    writer: Writer,
    *,
    is_new: bool = False,
) -> ConnectorTableVersion | None:
    """Commit a change; pyiceberg retries on top of compatible commits.

    Return the new snapshot, if any.

    Raises:
        ConnectorError: TRANSACTION_CONFLICT, ICEBERG_CATALOG_ERROR or ICEBERG_COMMIT_ERROR;
            ``changed=None`` if the outcome is unknown.
    """
    producer, landed = None, _holds(None)
    if not is_new:
        check(change, transaction._table)  # noqa: SLF001
    if change.handle.column_changes:
        landed = _evolve(change.handle, transaction)
    # As in Trino, a new table has a snapshot even if it is empty.
    if change.data or change.deletes or change.removed.data or is_new:
        producer = RowDelta(change, transaction, properties).of_statement(change.handle, writer)
        _stage(producer)
        landed = _holds(producer)
    _commit(change.handle, transaction, producer, writer, landed, is_new=is_new)
    return None if producer is None else _version_of(producer)


def _version_of(producer: SnapshotProducer) -> ConnectorTableVersion:
    parent = producer._parent_snapshot_id  # noqa: SLF001
    below = None if parent is None else ConnectorTableVersion(parent)
    return ConnectorTableVersion(producer.snapshot_id, made_from=below)


def _evolve(
    handle: IcebergTableHandle, transaction: Transaction
) -> Callable[[TableMetadata], bool]:
    """Add the handle's new columns and types, or raise TRANSACTION_CONFLICT if the ids differ from
    the new files'; return a predicate for tables with them.
    """
    stage_columns(handle.column_changes, transaction)
    schema = transaction.table_metadata.schema()
    if fields_of(schema, handle.name) != handle.fields:
        conflict(handle.name, "its columns were altered")
    return lambda now: now.schema().fields == schema.fields


def replace(
    change: Change,
    original: IcebergTableHandle,
    now: Table,
    transaction: Transaction,
    properties: Mapping[str, str],
    writer: Writer,
) -> ConnectorTableVersion:
    """Commit a replaced table in a snapshot without a parent."""
    check_head(original, now)
    if now.metadata.current_schema_id != original.schema_id:
        conflict(original.name, "its columns were altered")
    producer = RowDelta(change, transaction, properties).of_statement(original, writer)
    _stage(producer)
    # No retry on top of another commit: the statement replaces the table that it has seen.
    transaction._snapshot_producers.clear()  # noqa: SLF001
    _commit(original, transaction, producer, writer, _holds(producer))
    return _version_of(producer)


def alter(
    handle: IcebergTableHandle, alteration: Alteration, transaction: Transaction, writer: Writer
) -> None:
    old_schema_id = transaction.table_metadata.current_schema_id
    if tuple(field.field_id for field in transaction.table_metadata.schema().fields) != tuple(
        f.id for f in handle.fields
    ):
        conflict(handle.name, "its columns were altered")
    stage_alteration(handle, alteration, transaction)
    staged = transaction.table_metadata

    def landed(now: TableMetadata) -> bool:
        altered = (
            now.current_schema_id != old_schema_id or staged.current_schema_id == old_schema_id
        )
        same_refs = _heads(now) == _heads(staged)
        return altered and same_refs and _altered_parts(now) == _altered_parts(staged)

    _commit(handle, transaction, None, writer, landed)


def _heads(metadata: TableMetadata) -> dict[str, int]:
    return {name: ref.snapshot_id for name, ref in metadata.refs.items() if name != MAIN_BRANCH}


def _altered_parts(metadata: TableMetadata) -> tuple[Any, ...]:
    set_here = [
        metadata.properties.get(name)
        for name in (COMMENT, *ISOLATION, *PROPERTIES.values(), *WRITE_PROPERTIES)
    ]
    return (
        metadata.schema(),
        metadata.spec().fields,
        metadata.format_version,
        sort_fields(metadata),
        set_here,
    )


def truncate(
    handle: IcebergTableHandle, transaction: Transaction, writer: Writer
) -> ConnectorTableVersion:
    """Commit the removal of all rows, including concurrent inserts; errors as of `commit`."""
    return _submit(Truncation(transaction).of_statement(handle, writer))


def restore(
    handle: IcebergTableHandle,
    snapshot: int | None,
    dropped: Sequence[str],
    transaction: Transaction,
    writer: Writer,
) -> ConnectorTableVersion | None:
    """Make an earlier snapshot the current one, as ``rollback_to_snapshot`` does; any concurrent
    commit is a conflict.

    None commits a snapshot without files.
    """
    metadata = transaction.table_metadata
    check_head(handle, transaction._table)  # noqa: SLF001
    if dropped:
        if metadata.current_schema_id != handle.schema_id:
            conflict(handle.name, "its columns were altered")
        stage_drops(handle, dropped, transaction)
    if snapshot == handle.snapshot:
        if dropped:
            # The statement added columns and changed no rows.
            fields = transaction.table_metadata.schema().fields
            _commit(handle, transaction, None, writer, lambda now: now.schema().fields == fields)
        return None if snapshot is None else ConnectorTableVersion(snapshot)
    if snapshot is None:
        return _submit(Emptying(handle, transaction).of_statement(handle, writer))
    try:
        ManageSnapshots(transaction).set_current_snapshot(snapshot_id=snapshot)
    except ValueError as error:
        # The snapshot has expired.
        conflict(handle.name, error_text(error))
    entries = len(metadata.snapshot_log)

    def landed(now: TableMetadata) -> bool:
        return any(entry.snapshot_id == snapshot for entry in now.snapshot_log[entries:])

    _commit(handle, transaction, None, writer, landed)
    return ConnectorTableVersion(snapshot)


def gather_manifests(
    handle: IcebergTableHandle, transaction: Transaction, writer: Writer
) -> ConnectorTableVersion:
    """Commit a snapshot of the same files in fewer manifests."""
    return _submit(ManifestRewrite(transaction).of_statement(handle, writer))


def expire(
    handle: IcebergTableHandle, expired: Sequence[int], transaction: Transaction, writer: Writer
) -> None:
    """Commit the removal of snapshots, if branches and tags have not moved."""
    expired_ids = set(expired)
    refs = transaction.table_metadata.refs.items()
    same = tuple(
        AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": ref.snapshot_id})
        for name, ref in refs
    )
    transaction._apply((), same)  # noqa: SLF001
    try:
        ExpireSnapshots(transaction).by_ids(list(expired)).commit()
    except ValueError as error:
        conflict(handle.name, error_text(error))
    _commit(
        handle,
        transaction,
        None,
        writer,
        lambda now: expired_ids.isdisjoint(one.snapshot_id for one in now.snapshots),
    )


def drop_statistics(handle: IcebergTableHandle, transaction: Transaction, writer: Writer) -> None:
    """Commit the removal of a table's statistics files; errors as of `commit`."""
    for statistics in transaction.table_metadata.statistics:
        # pyiceberg's update removes one at a time.
        UpdateStatistics(transaction).remove_statistics(statistics.snapshot_id).commit()
    _commit(handle, transaction, None, writer, lambda now: not now.statistics)


def _submit(producer: SnapshotProducer) -> ConnectorTableVersion:
    _stage(producer)
    transaction = producer._transaction  # noqa: SLF001
    _commit(producer.handle, transaction, producer, producer.writer, _holds(producer))
    return _version_of(producer)


def _holds(producer: SnapshotProducer | None) -> Callable[[TableMetadata], bool]:
    return lambda now: producer is None or now.snapshot_by_id(producer.snapshot_id) is not None


def _stage(producer: SnapshotProducer) -> None:
    handle = producer.handle
    producer.writer.note(handle)
    try:
        producer.commit()
    except BaseException as error:
        producer._clean_all_uncommitted()  # noqa: SLF001
        if isinstance(error, RowMergeError) or not isinstance(error, Exception):
            raise
        # Errors of network connections have no errno.
        if isinstance(error, OSError) and error.errno and not isinstance(error, FileNotFoundError):
            raise _metadata_error(error, handle) from error
        raise ConnectorError(
            f"The snapshot of Iceberg table '{handle.name}' cannot be written:"
            f" {type(error).__name__}: {error_text(error)}",
            code="ICEBERG_COMMIT_ERROR",
            hint=(
                "Check that the table's folder can be reached and that its manifests are intact;"
                " otherwise roll the table back to an earlier snapshot."
            ),
        ) from error


def _metadata_error(error: OSError, handle: IcebergTableHandle) -> ConnectorError:
    folder = handle.properties.get("write.metadata.path", f"{handle.location}/metadata")
    what = f"The metadata of Iceberg table '{handle.name}' in '{folder}'"
    return refused(error, what, "ICEBERG_FILESYSTEM_ERROR")


def _commit(
    handle: IcebergTableHandle,
    transaction: Transaction,
    producer: SnapshotProducer | None,
    writer: Writer,
    landed: Callable[[TableMetadata], bool],
    *,
    is_new: bool = False,
) -> None:
    """Commit; after a failure, ``landed`` checks the reloaded table."""
    if not writes_metadata(transaction._table.catalog):  # noqa: SLF001
        writer.note(handle)
    writer.require_notes(handle)
    embedded = _embedded(transaction._table)  # noqa: SLF001
    if embedded is not None:
        embedded.begin_commit(writer.prefix)
    writer.ask()
    try:
        transaction.commit_transaction()
    except (CommitFailedException, ConnectorError) as error:
        if producer is not None:
            producer._clean_all_uncommitted()  # noqa: SLF001
        if isinstance(error, ConnectorError):
            raise
        what = (
            "another table of this name was created"
            if is_new
            else "other commits were faster, repeatedly"
        )
        conflict(handle.name, what)
    except ValidationException as error:
        conflict(handle.name, str(error))
    except Exception as error:
        outcome = _has_landed(handle, transaction, landed, is_new=is_new)
        if outcome:
            return
        if outcome is None:
            raise ConnectorError(
                "The outcome is unknown: Iceberg's catalog did not report whether"
                f" table '{handle.name}' was changed: {sqlite_message(error)}",
                code="ICEBERG_COMMIT_ERROR",
                hint=("Check the table before you run the statement again; its files remain."),
                changed=None,
            ) from error
        if producer is not None:
            producer._clean_all_uncommitted()  # noqa: SLF001
        if embedded is not None:
            embedded.discard(transaction._table.io)  # noqa: SLF001
        raise _failure(error, handle) from error


def _failure(error: Exception, handle: IcebergTableHandle) -> ConnectorError:
    if isinstance(error, OSError) and error.errno:
        return _metadata_error(error, handle)
    msg = f"Iceberg's catalog could not commit to table '{handle.name}': {sqlite_message(error)}"
    if is_full(error):
        return ConnectorError(
            msg,
            code="GENERIC_INSUFFICIENT_RESOURCES",
            hint="Free space on its disk, and run the statement again. The table is unchanged.",
        )
    return ConnectorError(
        msg,
        code="ICEBERG_CATALOG_ERROR",
        hint="Check that no other program locks the catalog, and run the statement again.",
    )


def _embedded(table: Table) -> EmbeddedCatalog | None:
    from rowmerge_nb.connectors.iceberg.embedded import EmbeddedCatalog

    return table.catalog if isinstance(table.catalog, EmbeddedCatalog) else None


def _has_landed(
    handle: IcebergTableHandle,
    transaction: Transaction,
    landed: Callable[[TableMetadata], bool],
    *,
    is_new: bool,
) -> bool | None:
    """Return whether a commit succeeded whose response was lost, or None if that is unknown."""
    table = transaction._table  # noqa: SLF001
    settled = is_settled(table.catalog)
    try:
        latest = table.catalog.load_table(table.name())
    except NoSuchTableError:
        if is_new:
            return False if settled else None
        conflict(handle.name, "it was dropped")
    except Exception:  # noqa: BLE001 - the catalog does not answer now either
        return None
    now = latest.metadata
    if str(now.table_uuid) != handle.identity:
        conflict(handle.name, "it was dropped, and another table has its name")
    # A later commit may have changed the same parts again.
    files = {latest.metadata_location, *(entry.metadata_file for entry in now.metadata_log)}
    embedded = _embedded(table)
    is_there = embedded is not None and embedded.written in files
    return landed(now) or is_there or (False if settled else None)
