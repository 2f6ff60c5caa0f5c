"""Reading and extending the log of a table, by delta-rs."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError, RowMergeError, SetupError, error_text
from rowmerge_nb.connectors.delta.delta_handles import DataFile, DeltaTableHandle
from rowmerge_nb.connectors.delta.delta_types import columns_of
from rowmerge_nb.connectors.delta.features import check_readable
from rowmerge_nb.connectors.delta.notes import LOG
from rowmerge_nb.connectors.delta.partitions import texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction

    from rowmerge_nb.spi import SchemaTableName


def require_library() -> None:
    """Raise SetupError if delta-rs is not installed."""
    try:
        import deltalake  # noqa: F401
    except ImportError as error:
        raise SetupError(
            "deltalake, which reads and writes the log of Delta tables, is not installed",
            hint="Run: pip install 'rowmerge-nb[delta]'",
        ) from error


@contextmanager
def log_errors(name: object) -> Iterator[None]:
    """Convert errors of delta-rs.

    Raises:
        ConnectorError: DELTA_LAKE_INVALID_TABLE.
    """
    try:
        yield
    except (RowMergeError, MemoryError):
        raise
    except Exception as error:
        raise ConnectorError(
            f"The log of Delta table '{name}' cannot be read or written:"
            f" {type(error).__name__}: {error_text(error)}",
            code="DELTA_LAKE_INVALID_TABLE",
            hint="Check the files of its folder _delta_log, or DROP TABLE.",
        ) from error


def open_table(folder: Path, name: SchemaTableName, version: int | None = None) -> DeltaTable:
    """Open a table, by default its newest version."""
    from deltalake import DeltaTable

    with log_errors(name):
        return DeltaTable(folder, version=version)


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
        return tuple(
            DataFile(path, size, rows, partition)
            for path, size, rows, partition in zip(
                actions.column("path").to_pylist(),
                actions.column("size_bytes").to_pylist(),
                actions.column("num_records").to_pylist(),
                partitions,
                strict=True,
            )
        )


def added(fragment: Mapping[str, Any]) -> AddAction:
    """Return the action that adds a written file."""
    from deltalake.transaction import AddAction

    return AddAction(
        fragment["path"],
        fragment["bytes"],
        fragment["partition"],
        time.time_ns() // 1_000_000,
        data_change=True,
        stats=fragment["statistics"],
    )


def removed(file: DataFile) -> RemoveAction:
    """Return the action that removes a file."""
    from deltalake.transaction import RemoveAction

    # delta-rs encodes the path of a removal again.
    return RemoveAction(
        unquote(file.path), True, time.time_ns() // 1_000_000, file.size, dict(file.partition)
    )


def commit(
    table: DeltaTable,
    handle: DeltaTableHandle,
    actions: Sequence[AddAction | RemoveAction],
    details: Mapping[str, Any],
) -> int:
    """Commit actions as the version after the table's, and return it.

    Raises:
        ConnectorError: TRANSACTION_CONFLICT if another statement committed meanwhile.
    """
    from deltalake.transaction import CommitProperties

    version = table.version() + 1
    properties = CommitProperties(custom_metadata=dict(details), max_commit_retries=0)
    try:
        table.create_write_transaction(
            list(actions),
            "append",
            table.schema(),
            list(handle.partition_columns),
            commit_properties=properties,
        )
    except Exception as error:  # noqa: BLE001 - delta-rs raises exceptions of many classes
        if not is_ours(handle, version, details):
            _raise_failed(error, handle, version)
    return version


def create(
    handle: DeltaTableHandle,
    schema: str,
    actions: Sequence[AddAction],
    details: Mapping[str, Any],
) -> int:
    """Create a table with its first rows as one version, and return it."""
    from deltalake import Schema
    from deltalake.transaction import CommitProperties, create_table_with_add_actions

    properties = CommitProperties(custom_metadata=dict(details), max_commit_retries=0)
    try:
        create_table_with_add_actions(
            handle.location,
            Schema.from_json(schema),
            list(actions),
            partition_by=list(handle.partition_columns),
            commit_properties=properties,
        )
    except Exception as error:
        if not is_ours(handle, 0, details):
            if (Path(handle.location) / LOG / f"{0:020}.json").exists():
                raise ConnectorError(
                    f"Table '{handle.name}' was created by another statement",
                    code="TABLE_ALREADY_EXISTS",
                    hint="Choose another name, or DROP TABLE before.",
                ) from error
            _raise_failed(error, handle, 0)
    return 0


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
    """Return the error of a table that others have changed."""
    return ConnectorError(
        f"Delta table '{name}' was changed by another statement",
        code="TRANSACTION_CONFLICT",
        hint="Run the statement again.",
    )
