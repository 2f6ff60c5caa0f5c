"""Reading and extending the log of a table, by delta-rs."""

from __future__ import annotations

import json
import time
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError, RowMergeError, SetupError, error_text
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.connectors.delta.delta_handles import DataFile, DeltaTableHandle
from rowmerge_nb.connectors.delta.delta_types import columns_of
from rowmerge_nb.connectors.delta.features import (
    ENABLE_TYPE_WIDENING,
    check_readable,
    stores_wider_types,
    widens,
)
from rowmerge_nb.connectors.delta.log_entries import (
    TYPE_WIDENING,
    FileChange,
    definition_actions,
    features_of,
    metadata_action,
    protocol_action,
    write_version,
)
from rowmerge_nb.connectors.delta.notes import LOG
from rowmerge_nb.connectors.delta.partitions import texts
from rowmerge_nb.spi import ConnectorTableVersion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

    from rowmerge_nb.spi import SchemaTableName


def require_library() -> None:
    """Raise SetupError if delta-rs is not installed."""
    try:
        import deltalake  # noqa: F401
    except ImportError as error:
        raise SetupError(
            "deltalake, which reads and writes the log of Delta tables, is not installed",
            hint=f"Run: {install_command('delta')}",
        ) from error


@contextmanager
def log_errors(name: object, code: str = "DELTA_LAKE_INVALID_TABLE") -> Iterator[None]:
    try:
        yield
    except (RowMergeError, MemoryError):
        raise
    except Exception as error:
        raise ConnectorError(
            f"The log of Delta table '{name}' cannot be read or written:"
            f" {type(error).__name__}: {error_text(error)}",
            code=code,
            hint="Check the files of its folder _delta_log, or DROP TABLE.",
        ) from error


def open_table(folder: Path, name: SchemaTableName, version: int | None = None) -> DeltaTable:
    from deltalake import DeltaTable

    with log_errors(name):
        return DeltaTable(folder, version=version)


def open_current(handle: DeltaTableHandle) -> DeltaTable:
    """Open the newest version of a table; TRANSACTION_CONFLICT if another table has its name."""
    table = open_table(Path(handle.location), handle.name)
    if str(table.metadata().id) != handle.identity:
        raise conflict(handle.name)
    return table


def version_after(version: int, handle: DeltaTableHandle) -> ConnectorTableVersion:
    base = ConnectorTableVersion(handle.version) if handle.version >= 0 else None
    return ConnectorTableVersion(version, made_from=base)


def handle_of(
    table: DeltaTable, folder: Path, name: SchemaTableName, *, pinned: bool = False
) -> DeltaTableHandle:
    """Return the handle of a table, or raise NOT_SUPPORTED for one that cannot be read."""
    with log_errors(name):
        check_readable(table, name)
        metadata = table.metadata()
        return DeltaTableHandle(
            name,
            str(folder),
            str(metadata.id),
            table.version(),
            columns_of(table.schema().to_json(), name),
            tuple(metadata.partition_columns),
            pinned,
            metadata.description or None,
            widens(table),
        )


def add_actions(table: DeltaTable) -> pa.Table:
    """Return the live files, sorted by path, with their statistics."""
    return pa.table(table.get_add_actions(flatten=False)).sort_by("path")


def files_of(table: DeltaTable, name: SchemaTableName) -> tuple[DataFile, ...]:
    """Return the live files, sorted by path."""
    with log_errors(name):
        actions = add_actions(table)
        partitions: list[dict[str, str | None]] = [{} for _ in range(actions.num_rows)]
        if "partition" in actions.column_names:
            values = actions.column("partition").combine_chunks()
            for index, field in enumerate(values.type):
                for partition, text in zip(
                    partitions, texts(values.field(index)).to_pylist(), strict=True
                ):
                    partition[field.name] = text
        deleted = deleted_positions(table)
        return tuple(
            DataFile(
                path,
                size,
                None if rows is None else rows - len(deleted.get(path, ())),
                partition,
                deleted.get(path),
            )
            for path, size, rows, partition in zip(
                actions.column("path").to_pylist(),
                actions.column("size_bytes").to_pylist(),
                actions.column("num_records").to_pylist(),
                partitions,
                strict=True,
            )
        )


def deleted_positions(table: DeltaTable) -> dict[str, npt.NDArray[np.int64]]:
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return {}
    root = f"{table.table_uri.rstrip('/')}/"
    vectors = pa.table(table.deletion_vectors().read_all())
    return {
        path.removeprefix(root): np.flatnonzero(~selected.values.to_numpy(zero_copy_only=False))
        for path, selected in zip(
            vectors.column("filepath").to_pylist(), vectors.column("selection_vector"), strict=True
        )
    }


def _added(fragment: Mapping[str, Any]) -> AddAction:
    from deltalake.transaction import AddAction

    return AddAction(
        fragment["path"],
        fragment["bytes"],
        fragment["partition"],
        time.time_ns() // 1_000_000,
        data_change=True,
        stats=fragment["statistics"],
    )


def _removed(file: DataFile) -> RemoveAction:
    from deltalake.transaction import RemoveAction

    # delta-rs encodes the path of a removal again.
    return RemoveAction(
        unquote(file.path), True, time.time_ns() // 1_000_000, file.size, dict(file.partition)
    )


def commit(
    table: DeltaTable,
    handle: DeltaTableHandle,
    change: FileChange,
    details: Mapping[str, Any],
    prefix: str,
) -> int:
    """Commit files and the handle's new schema as the version after the table's, and return it, or
    raise TRANSACTION_CONFLICT.
    """
    if handle.new_schema is not None or stores_wider_types(table):
        operation = "WRITE" if handle.new_schema is None else "MERGE"
        return commit_entry(table, handle, operation, details, change, prefix)
    actions: list[AddAction | RemoveAction] = [
        *map(_removed, change.removed),
        *map(_added, change.adds),
    ]
    return commit_by(
        table,
        handle,
        details,
        lambda properties: table.create_write_transaction(
            actions,
            "append",
            table.schema(),
            list(handle.partition_columns),
            commit_properties=properties,
        ),
    )


def commit_entry(
    table: DeltaTable,
    handle: DeltaTableHandle,
    operation: str,
    details: Mapping[str, Any],
    change: FileChange,
    prefix: str = "",
) -> int:
    """Commit the handle's new schema and files without delta-rs; errors as of `commit`."""
    schema = handle.new_schema
    actions = [
        *(() if schema is None else definition_actions(table, schema)),
        *change.actions(),
    ]
    version = commit_by(
        table,
        handle,
        details,
        lambda _: write_version(
            handle.location, table.version() + 1, operation, details, actions, prefix
        ),
    )
    _write_checkpoint(table, version)
    return version


def _write_checkpoint(table: DeltaTable, version: int) -> None:
    """Write a checkpoint when one is due, as delta-rs does after its commits; a later one does too."""
    interval = table.metadata().configuration.get("delta.checkpointInterval", "")
    if version % (int(interval) if interval.isdigit() and int(interval) else 10) == 0:
        with suppress(Exception):
            table.update_incremental()
            table.create_checkpoint()


def commit_by(
    table: DeltaTable,
    handle: DeltaTableHandle,
    details: Mapping[str, Any],
    act: Callable[[CommitProperties], object],
) -> int:
    """Let delta-rs commit the version after the table's, and return it; errors as of `commit`."""
    from deltalake.transaction import CommitProperties

    version = table.version() + 1
    try:
        act(CommitProperties(custom_metadata=dict(details), max_commit_retries=0))
    except Exception as error:  # noqa: BLE001 - delta-rs raises exceptions of many classes
        if not is_ours(handle, version, details):
            _raise_failed(error, handle, version)
    return version


@dataclass(frozen=True)
class NewTable:
    """A table that a statement creates, with its schema in JSON.

    Args:
        widens: whether it has the feature of wider types.
    """

    schema: str
    comment: str | None
    widens: bool = False
    replaced: DeltaTableHandle | None = None


def create(
    handle: DeltaTableHandle,
    new: NewTable,
    adds: Sequence[Mapping[str, Any]],
    details: Mapping[str, Any],
    prefix: str,
) -> ConnectorTableVersion:
    """Create or replace a table with its first rows as one version."""
    from deltalake import Schema
    from deltalake.transaction import create_table_with_add_actions

    def act(properties: CommitProperties) -> None:
        if new.widens:
            actions = [*_definition(handle, new), *FileChange(adds).actions()]
            write_version(handle.location, 0, "CREATE TABLE", details, actions, prefix)
            return
        create_table_with_add_actions(
            handle.location,
            Schema.from_json(new.schema),
            list(map(_added, adds)),
            mode="error" if new.replaced is None else "overwrite",
            partition_by=list(handle.partition_columns),
            description=new.comment,
            commit_properties=properties,
        )

    if new.replaced is not None:
        table = open_current(new.replaced)
        if table.version() != new.replaced.version:
            raise conflict(handle.name)
        return version_after(commit_by(table, handle, details, act), new.replaced)
    from deltalake.transaction import CommitProperties

    try:
        act(CommitProperties(custom_metadata=dict(details), max_commit_retries=0))
    except Exception as error:
        if not is_ours(handle, 0, details):
            if (Path(handle.location) / LOG / f"{0:020}.json").exists():
                raise ConnectorError(
                    f"Table '{handle.name}' was created by another statement",
                    code="TABLE_ALREADY_EXISTS",
                    hint="Choose another name, or DROP TABLE first.",
                ) from error
            _raise_failed(error, handle, 0)
    return version_after(0, handle)


def _definition(handle: DeltaTableHandle, new: NewTable) -> Iterator[dict[str, Any]]:
    features = {TYPE_WIDENING, *features_of(new.schema)}
    yield protocol_action(features, {*features, "appendOnly", "invariants"})
    yield metadata_action(
        str(uuid.uuid4()),
        new.schema,
        handle.partition_columns,
        {ENABLE_TYPE_WIDENING: "true"},
        description=new.comment,
        created=time.time_ns() // 1_000_000,
    )


def is_ours(handle: DeltaTableHandle, version: int, details: Mapping[str, Any]) -> bool:
    """Return whether a commit is this statement's: what follows it may fail, such as a checkpoint."""
    with suppress(OSError):
        text = (Path(handle.location) / LOG / f"{version:020}.json").read_text()
        return json.dumps(details["rowmerge-nb-query-id"]) in text
    return False


def _raise_failed(error: Exception, handle: DeltaTableHandle, version: int) -> NoReturn:
    if (Path(handle.location) / LOG / f"{version:020}.json").exists():
        raise conflict(handle.name) from error
    if not isinstance(error, RowMergeError):
        raise ConnectorError(
            f"The new version of Delta table '{handle.name}' cannot be written:"
            f" {type(error).__name__}: {error_text(error)}",
            code="DELTA_LAKE_BAD_WRITE",
            hint="Check that its folder _delta_log can be written, and that the disk has room.",
        ) from error
    raise error


def conflict(name: object) -> ConnectorError:
    return ConnectorError(
        f"Delta table '{name}' was changed by another statement",
        code="TRANSACTION_CONFLICT",
        hint="Run the statement again.",
    )
