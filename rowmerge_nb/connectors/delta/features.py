"""Features of tables that this connector does not respect, refused by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.delta.log_entries import TYPE_WIDENING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deltalake import DeltaTable

_FEATURES: Final = {
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
    "columnMapping",
    "identityColumns",
    "timestampNtz",
    "variantType",
    "deletionVectors",
    TYPE_WIDENING,
}
"""The features that are checked elsewhere, or have no effect on files."""

_READ: Final = {"timestampNtz", "columnMapping", "variantType", "deletionVectors", TYPE_WIDENING}
ENABLE_TYPE_WIDENING: Final = "delta.enableTypeWidening"
_COLUMN_FEATURES: Final = {
    "delta.invariants": "invariants",
    "delta.generationExpression": "generatedColumns",
    "delta.identity.start": "identityColumns",
}


def check_readable(table: DeltaTable, name: object) -> None:
    """Raise NOT_SUPPORTED, by the feature's name, for a table that cannot be read."""
    protocol = table.protocol()
    features = set(protocol.reader_features or ())
    mapping = table.metadata().configuration.get("delta.columnMapping.mode", "none")
    if mapping != "none":
        refuse_feature(name, "columnMapping", "read")
    for feature in sorted(features - _READ):
        refuse_feature(name, feature, "read")


def check_writable(table: DeltaTable, name: object, *, changes_rows: bool) -> None:
    """Raise NOT_SUPPORTED, by the feature's name, for a table that cannot be written."""
    for feature in _refused(table, changes_rows=changes_rows):
        refuse_feature(name, feature, "changed" if changes_rows else "written")


def stores_wider_types(table: DeltaTable) -> bool:
    """Return whether files of a table may have narrower types than its schema."""
    return TYPE_WIDENING in (table.protocol().writer_features or ())


def widens(table: DeltaTable) -> bool:
    """Return whether types of a table's columns may become wider."""
    return stores_wider_types(table) and (
        str(table.metadata().configuration.get(ENABLE_TYPE_WIDENING)).lower() == "true"
    )


def _refused(table: DeltaTable, *, changes_rows: bool) -> Iterator[str]:
    protocol, configuration = table.protocol(), table.metadata().configuration
    if protocol.min_writer_version > 7:
        yield f"writer version {protocol.min_writer_version}"
    yield from sorted(set(protocol.writer_features or ()) - _FEATURES)
    if any(key.startswith("delta.constraints.") for key in configuration):
        yield "checkConstraints"
    for key in _column_metadata(json.loads(table.schema().to_json())):
        if key in _COLUMN_FEATURES:
            yield _COLUMN_FEATURES[key]
    if changes_rows:
        for key, feature in (
            ("delta.appendOnly", "appendOnly"),
            ("delta.enableChangeDataFeed", "changeDataFeed"),
        ):
            if str(configuration.get(key, "false")).lower() == "true":
                yield feature
        # The removal of a file would have to name its vector, and delta-rs takes no name.
        if (
            "deletionVectors" in (protocol.reader_features or ())
            and table.deletion_vectors().read_all().num_rows
        ):
            yield "deletionVectors"


def _column_metadata(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        yield from part.get("metadata", ())
        for value in part.values():
            yield from _column_metadata(value)
    elif isinstance(part, list):
        for value in part:
            yield from _column_metadata(value)


def refuse_feature(name: object, feature: str, verb: str) -> NoReturn:
    raise ConnectorError(
        f"Delta table '{name}' cannot be {verb}: it uses the feature {feature}, which is not"
        " supported",
        hint="Use an engine that supports the feature, or copy the table without it.",
    )
