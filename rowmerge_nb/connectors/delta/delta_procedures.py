"""The procedures of ``ALTER TABLE ... EXECUTE``, by delta-rs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from rowmerge_nb.connectors.delta import log, notes
from rowmerge_nb.connectors.delta.delta_handles import DeltaTableHandle
from rowmerge_nb.connectors.shared.retention import (
    WEEK,
    Retention,
    parse_retention,
    parse_size,
)
from rowmerge_nb.spi import TableProcedure, TableProcedureArgument
from rowmerge_nb.spi.types import VARCHAR

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.spi import ConnectorTableVersion, ProcedureOutcome

TABLE_PROCEDURES: Final = (
    TableProcedure(
        "OPTIMIZE", (TableProcedureArgument("file_size_threshold", VARCHAR, 100 << 20, parse_size),)
    ),
    TableProcedure(
        "VACUUM", (TableProcedureArgument("retention_threshold", VARCHAR, WEEK, parse_retention),)
    ),
)
"""The procedures of every table."""

_RETENTION: Final = "delta.deletedFileRetentionDuration"


def optimize(
    handle: DeltaTableHandle,
    target_bytes: int,
    details: Mapping[str, Any],
    outcome: ProcedureOutcome,
) -> ConnectorTableVersion | None:
    """Compact small files in one version; delta-rs commits it after concurrent appends too."""
    from deltalake.transaction import CommitProperties

    table = log.open_current(handle)
    before = table.version()
    with log.log_errors(handle.name, "TRANSACTION_CONFLICT"):
        metrics = table.optimize.compact(
            target_size=target_bytes,
            commit_properties=CommitProperties(custom_metadata=dict(details)),
        )
    outcome.metrics["added_files_count"] = int(metrics["numFilesAdded"])
    outcome.metrics["removed_files_count"] = int(metrics["numFilesRemoved"])
    return log.version_after(table.version(), handle) if table.version() > before else None


def vacuum(handle: DeltaTableHandle, retention: Retention, outcome: ProcedureOutcome) -> None:
    """Remove the files that delta-rs finds unused, but never those of a running statement."""
    folder = Path(handle.location)
    running = notes.running(folder)
    table = log.open_current(handle)
    with log.log_errors(handle.name, "INVALID_PROCEDURE_ARGUMENT"):
        unused = table.vacuum(
            retention_hours=math.ceil(retention.time.total_seconds() / 3600),
            enforce_retention_duration=_RETENTION in table.metadata().configuration,
            full=True,
        )
    # A statement may have begun after the first look, and be committed by now.
    running |= notes.running(folder)
    newest = log.open_table(folder, handle.name)
    live = {unquote(file.path) for file in log.files_of(newest, handle.name)}
    removed = [
        path
        for path in map(unquote, unused)
        if path not in live and not Path(path).name.startswith(tuple(running))
    ]
    for path in removed:
        (folder / path).unlink(missing_ok=True)
    outcome.metrics["deleted_files_count"] = len(removed)
    outcome.metrics["left_files_count"] = len(unused) - len(removed)
