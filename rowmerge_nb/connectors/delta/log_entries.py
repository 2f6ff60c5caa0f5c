"""Versions that this connector writes to the log itself.

delta-rs takes no metadata together with files, and no file for tables with the feature
``typeWidening``.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from rowmerge_nb.connectors.delta.notes import LOG

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from deltalake import DeltaTable

    from rowmerge_nb.connectors.delta.delta_handles import DataFile

TYPE_WIDENING: Final = "typeWidening"
TIMESTAMP_NTZ: Final = "timestampNtz"
_WRITER_FEATURES: Final = (
    (2, "appendOnly"),
    (2, "invariants"),
    (3, "checkConstraints"),
    (4, "changeDataFeed"),
    (4, "generatedColumns"),
    (5, "columnMapping"),
    (6, "identityColumns"),
)
"""The features that older versions of the protocol imply, by the first such version."""


@dataclass(frozen=True)
class FileChange:
    """The new files of a statement, as its sinks describe them, and the files that it replaces.

    Args:
        restored: the actions of former files, as the log has them.
    """

    adds: Sequence[Mapping[str, Any]] = ()
    removed: Sequence[DataFile] = ()
    restored: Sequence[Mapping[str, Any]] = ()

    def actions(self) -> Iterator[dict[str, Any]]:
        now = time.time_ns() // 1_000_000
        for file in self.removed:
            # The path is as the log has it.
            yield {
                "remove": {
                    "path": file.path,
                    "deletionTimestamp": now,
                    "dataChange": True,
                    "extendedFileMetadata": True,
                    "partitionValues": dict(file.partition),
                    "size": file.size,
                }
            }
        for action in self.restored:
            yield {"add": {**action, "dataChange": True}}
        for entry in self.adds:
            yield {
                "add": {
                    "path": quote(entry["path"], safe="/="),
                    "partitionValues": entry["partition"],
                    "size": entry["bytes"],
                    "modificationTime": now,
                    "dataChange": True,
                    "stats": entry["statistics"],
                }
            }


def former_actions(location: str, version: int, files: Sequence[DataFile]) -> list[dict[str, Any]]:
    """Return the ``add`` actions of files of a version, without bounds if the log is not there."""
    missing_files = {file.path: file for file in files}
    actions: list[dict[str, Any]] = []
    for number in range(version, -1, -1):
        if not missing_files:
            break
        with suppress(OSError):
            for line in (Path(location) / LOG / f"{number:020}.json").read_text().splitlines():
                action = json.loads(line).get("add")
                if action and missing_files.pop(action["path"], None) is not None:
                    actions.append(action)
    now = time.time_ns() // 1_000_000
    for file in missing_files.values():
        statistics = {} if file.rows is None else {"stats": json.dumps({"numRecords": file.rows})}
        actions.append(
            {
                "path": file.path,
                "partitionValues": dict(file.partition),
                "size": file.size,
                "modificationTime": now,
                **statistics,
            }
        )
    return actions


def definition_actions(table: DeltaTable, schema: str) -> Iterator[dict[str, Any]]:
    """Yield the actions that give a table another schema, in JSON."""
    protocol, metadata = table.protocol(), table.metadata()
    readers, writers = set(protocol.reader_features or ()), set(protocol.writer_features or ())
    if TIMESTAMP_NTZ in features_of(schema) - (readers & writers):
        # Features replace the versions of the protocol, which imply some of them.
        if protocol.min_writer_version < 7:
            writers |= {
                name for first, name in _WRITER_FEATURES if first <= protocol.min_writer_version
            }
        if protocol.min_reader_version == 2:
            readers.add("columnMapping")
        yield protocol_action(readers | {TIMESTAMP_NTZ}, writers | {TIMESTAMP_NTZ})
    yield metadata_action(
        str(metadata.id),
        schema,
        metadata.partition_columns,
        metadata.configuration,
        name=metadata.name,
        description=metadata.description,
        created=metadata.created_time,
    )


def protocol_action(readers: Collection[str], writers: Collection[str]) -> dict[str, Any]:
    return {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": sorted(readers),
            "writerFeatures": sorted(writers),
        }
    }


def metadata_action(
    identity: str,
    schema: str,
    partition_columns: Sequence[str],
    configuration: Mapping[str, str],
    *,
    name: str | None = None,
    description: str | None = None,
    created: int | None = None,
) -> dict[str, Any]:
    action = {
        "id": identity,
        "name": name,
        "description": description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": list(partition_columns),
        "configuration": dict(configuration),
        "createdTime": created,
    }
    return {"metaData": {key: value for key, value in action.items() if value is not None}}


def features_of(schema: str) -> set[str]:
    return {TIMESTAMP_NTZ} if "timestamp_ntz" in _leaf_types(json.loads(schema)) else set()


def _leaf_types(delta_type: Any) -> set[str]:
    if isinstance(delta_type, str):
        return {delta_type}
    parts = [
        *(field["type"] for field in delta_type.get("fields", ())),
        *(delta_type[key] for key in ("elementType", "keyType", "valueType") if key in delta_type),
    ]
    return {leaf for part in parts for leaf in _leaf_types(part)}


def write_version(
    location: str,
    version: int,
    operation: str,
    details: Mapping[str, Any],
    actions: Iterable[Mapping[str, Any]],
    prefix: str,
) -> None:
    """Write a version of a table, or raise FileExistsError if another statement has written it.

    Args:
        prefix: the beginning of the names of the statement's files, so that its draft is found.
    """
    commit = {
        "timestamp": time.time_ns() // 1_000_000,
        "operation": operation,
        "operationParameters": {},
        "engineInfo": "rowmerge-nb",
        **details,
    }
    folder = Path(location) / LOG
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{prefix or 'rowmerge'}-{uuid.uuid4().hex}.tmp"
    try:
        with draft.open("w", encoding="utf-8") as file:
            for action in ({"commitInfo": commit}, *actions):
                file.write(f"{json.dumps(action)}\n")
            file.flush()
            os.fsync(file.fileno())
        # A link fails if the version exists, and readers see the whole of it.
        os.link(draft, folder / f"{version:020}.json")
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
