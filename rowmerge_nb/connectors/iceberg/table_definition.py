"""The definition of a new table: its properties, schema and partitioning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.connectors.iceberg.iceberg_types import schema_of
from rowmerge_nb.connectors.iceberg.servers import local_path
from rowmerge_nb.connectors.iceberg.sorting import order_of, parse_keys, shown_keys
from rowmerge_nb.connectors.iceberg.write_modes import WRITE_PROPERTIES
from rowmerge_nb.connectors.shared.properties import (
    invalid_property,
    listed_names,
    property_text,
    require_known,
)
from rowmerge_nb.connectors.shared.transforms import Transform, parse_transforms
from rowmerge_nb.spi import ColumnMetadata, ConnectorTableMetadata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.sorting import SortOrder


TABLE_PROPERTIES: Final = {
    "format": "'PARQUET', the only one",
    "format_version": (
        "version of the table's format: 2 (default); 3, with deletion vectors and row lineage; or"
        " 1, whose rows cannot be changed"
    ),
    "location": "the folder of the table's files; by default a folder of the warehouse",
    "partitioning": (
        "columns and transforms of columns whose values define the partitions,"
        " ARRAY['region', 'bucket(id, 4)', 'month(day)']"
    ),
    "sorted_by": (
        "columns by which the rows of every data file are sorted, ARRAY['id', 'v DESC NULLS FIRST']"
    ),
    "max_commit_retry": "how often a commit is retried after a concurrent one, 4 by default",
    "object_store_layout_enabled": (
        "whether data files are in folders with hashed names, which suits object stores; false by"
        " default"
    ),
    "data_location": "the folder of data files with that layout",
    "isolation_level": (
        "what MERGE, UPDATE and DELETE guard against: 'serializable' (default) or 'snapshot'"
    ),
    "extra_properties": (
        "properties of Iceberg: write.{merge,update,delete}.mode and"
        " write[.{merge,update,delete}].distribution-mode,"
        " MAP(ARRAY['write.merge.mode'], ARRAY['copy-on-write'])"
    ),
}
"""The table properties that CREATE TABLE accepts."""

FORMAT_VERSION: Final = 2
"""The default format version."""

ISOLATION: Final = (
    "write.merge.isolation-level",
    "write.update.isolation-level",
    "write.delete.isolation-level",
)
"""Iceberg's properties of the isolation level; the first one that is set applies."""


@dataclass(frozen=True)
class Definition:
    schema: Schema
    spec: PartitionSpec
    order: SortOrder
    location: str | None
    properties: Mapping[str, str] = field(default_factory=dict)


PROPERTIES: Final = {
    "max_commit_retry": "commit.retry.num-retries",
    "object_store_layout_enabled": "write.object-storage.enabled",
    "data_location": "write.data.path",
}
"""Properties with a counterpart in Iceberg's table properties."""

RETRIES: Final = 4
"""The default number of commit retries."""

_DEFAULTS: Final = {"commit.retry.num-retries": str(RETRIES), "write.format.default": "PARQUET"}
"""The properties that Trino sets on every new table."""

_REFUSED: Final = {
    "parquet_bloom_filter_columns": (
        "Bloom filters are not written: not every supported version of Arrow has them"
    ),
    "orc_bloom_filter_columns": "ORC is not written",
    "orc_bloom_filter_fpp": "ORC is not written",
}
"""Unsupported properties of Trino, with the reason."""


COMMENT: Final = "comment"
"""The property of a table's comment, as in Trino and Spark."""


def defined_table(metadata: ConnectorTableMetadata) -> Definition:
    """Validate the definition of a table, or raise INVALID_TABLE_PROPERTY or NOT_SUPPORTED."""
    settings = _checked(metadata.properties)
    if "data_location" in settings and not settings.get("object_store_layout_enabled", False):
        raise invalid_property(
            "data_location",
            "Data location can only be set when object store layout is enabled",
            "Add object_store_layout_enabled = true.",
        )
    version = settings.get("format_version", FORMAT_VERSION)
    properties = {
        "format-version": str(version),
        "write.parquet.compression-codec": "zstd",
        **_DEFAULTS,
    }
    if "isolation_level" in settings:
        properties.update(dict.fromkeys(ISOLATION, str(settings["isolation_level"]).lower()))
    if metadata.comment is not None:
        properties[COMMENT] = metadata.comment
    properties.update(
        {PROPERTIES[name]: property_text(settings[name]) for name in PROPERTIES if name in settings}
    )
    properties.update(extra_properties(settings))
    schema = schema_of(metadata.columns, version)
    order = order_of(parse_keys(listed_names(settings, "sorted_by")), schema)
    location = _checked_location(str(settings["location"])) if "location" in settings else None
    return Definition(
        schema,
        _spec_of(transforms_of(settings, metadata.columns), schema),
        order,
        location,
        properties,
    )


def extra_properties(settings: Mapping[str, Any]) -> dict[str, str]:
    extra = settings.get("extra_properties") or {}
    return {name: str(value).lower() for name, value in extra.items()}


def _checked_location(location: str, name: str = "location") -> str:
    path, normalized = local_path(location), location.rstrip("/")
    has_host = location.startswith("file://") and not location.startswith("file:///")
    if (
        has_host
        or "\0" in location
        or (path is not None and not (path.startswith("/") and path.strip("/")))
    ):
        raise invalid_property(
            name,
            f"{name} must be the absolute path of a folder, or an address on the local"
            f" disk without a host, not '{location}'",
            f"Write '/folder/of/the/table' or 's3://bucket/folder', or omit the property {name}.",
        )
    if not set("#?") & set(normalized):
        return normalized
    if path is None:
        # All data would go into one file.
        raise invalid_property(
            name,
            f"{name} has '#' or '?', which end the path of an address: '{location}'",
            "Name a folder without them.",
        )
    return path.rstrip("/")


def check_changes(properties: Mapping[str, Any], metadata: ConnectorTableMetadata) -> None:
    """Validate changes of a table's properties, or raise INVALID_TABLE_PROPERTY or NOT_SUPPORTED."""
    settings = _checked(properties)
    if "location" in properties:
        raise AnalysisError(
            "The following properties cannot be updated: location",
            code="NOT_SUPPORTED",
            properties=("location",),
            hint="CREATE TABLE AS creates a table elsewhere.",
        )
    has = metadata.properties["format_version"]
    if has > settings.get("format_version", has):
        raise AnalysisError(
            f"Cannot downgrade v{has} table to v{settings['format_version']}",
            code="NOT_SUPPORTED",
            properties=("format_version",),
            hint="Omit the property format_version.",
        )
    schema = schema_of(metadata.columns, settings.get("format_version", has))
    _spec_of(transforms_of(settings, metadata.columns), schema)
    order_of(parse_keys(listed_names(settings, "sorted_by")), schema)


def transforms_of(
    properties: Mapping[str, Any], columns: Sequence[ColumnMetadata]
) -> tuple[Transform, ...]:
    """Parse the property ``partitioning``; INVALID_TABLE_PROPERTY if it does not match the columns."""
    columns_by_name = {column.name.lower(): (column.name, column.type) for column in columns}
    return parse_transforms(
        listed_names(properties, "partitioning"), columns_by_name, "partitioning"
    )


def _checked(properties: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in properties.items():
        if name == "extra_properties" and value is not None:
            _check_extra(name, value)
        if name in _REFUSED:
            raise AnalysisError(
                f"Table property '{name}' is not supported: {_REFUSED[name]}",
                code="NOT_SUPPORTED",
                properties=(name,),
                hint="Remove it.",
            )
        require_known((name,), TABLE_PROPERTIES, "Catalog 'iceberg'")
    settings = {name: value for name, value in properties.items() if value is not None}
    _check_one_of("format", str(settings.get("format", "PARQUET")).upper(), ("PARQUET",))
    version = settings.get("format_version", FORMAT_VERSION)
    if version not in {1, 2, 3}:
        raise invalid_property(
            "format_version",
            f"format_version must be between 1 and 3, not {version!r}",
            "Omit the property format_version.",
        )
    if "isolation_level" in settings:
        _check_one_of(
            "isolation_level",
            str(settings["isolation_level"]).lower(),
            ("serializable", "snapshot"),
        )
    _check_types(settings)
    if "data_location" in settings:
        settings["data_location"] = _checked_location(settings["data_location"], "data_location")
    return settings


def _check_extra(name: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise invalid_property(
            name,
            f"Invalid value for catalog 'iceberg' table property '{name}': Cannot convert"
            f" [{value!r}] to map(varchar, varchar)",
            "Write MAP(ARRAY['write.merge.mode'], ARRAY['copy-on-write']).",
        )
    # Trino's connector allows only those that its configuration lists, by default none.
    illegal = [key for key in value if key not in WRITE_PROPERTIES]
    if illegal:
        raise invalid_property(
            name,
            f"Illegal keys in extra_properties: [{', '.join(illegal)}]",
            "Set them by connector.catalog, pyiceberg's own.",
        )
    for key, choice in value.items():
        _check_one_of(key, str(choice).lower(), WRITE_PROPERTIES[key])


def _check_types(settings: Mapping[str, Any]) -> None:
    for name, python_type, word in (
        ("max_commit_retry", int, "integer"),
        ("object_store_layout_enabled", bool, "boolean"),
        ("data_location", str, "varchar"),
    ):
        value = settings.get(name)
        if value is not None and type(value) is not python_type:
            display_value = f"'{value}'" if isinstance(value, str) else value
            raise invalid_property(
                name,
                f"Invalid value for catalog 'iceberg' table property '{name}': Cannot convert"
                f" [{display_value}] to {word}",
                f"It is of type {word}.",
            )
    retries = settings.get("max_commit_retry", 0)
    if retries < 0:
        raise invalid_property(
            "max_commit_retry",
            f"Unable to set catalog 'iceberg' table property 'max_commit_retry' to [{retries}]:"
            " max_commit_retry must be greater than or equal to 0",
            "0 tries once.",
        )


def _check_one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise invalid_property(
            name,
            f"{name} can be {' or '.join(repr(choice) for choice in choices)}, not '{value}'",
            f"Omit the property {name}.",
        )


def _spec_of(transforms: tuple[Transform, ...], schema: Schema) -> PartitionSpec:
    from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
    from pyiceberg.transforms import parse_transform

    names = {field.name for field in schema.fields}
    fields: list[PartitionField] = []
    for number, transform in enumerate(transforms):
        source = schema.find_field(transform.column)
        name = (
            transform.column
            if transform.name == "identity"
            else f"{transform.column}_{_word(transform.name)}"
        )
        if transform.name != "identity" and name in names:
            raise invalid_property(
                "partitioning",
                f"Table property 'partitioning': {transform} makes a partition field"
                f" '{name}', but a column has that name",
                "Give the column another name.",
            )
        if any(field.name == name for field in fields):
            raise invalid_property(
                "partitioning",
                f"Table property 'partitioning': two transforms create a partition field '{name}'",
                "Name one of them.",
            )
        fields.append(
            PartitionField(
                source_id=source.field_id,
                field_id=PARTITION_FIELD_ID_START + number,
                transform=parse_transform(written_transform(transform)),
                name=name,
            )
        )
    return PartitionSpec(*fields)


def written_transform(transform: Transform) -> str:
    """Format a transform for Iceberg's metadata, as ``bucket[4]``."""
    return transform.name if transform.width is None else f"{transform.name}[{transform.width}]"


def _word(name: str) -> str:
    return {"truncate": "trunc", "void": "null"}.get(name, name)


def shown_properties(table: Table) -> dict[str, Any]:
    schema, properties = table.schema(), table.properties
    parts = []
    for part in table.spec().fields:
        name, _, width = str(part.transform).partition("[")
        if name == "void" and table.format_version == 1:
            continue
        column = schema.find_column_name(part.source_id) or "?"
        parts.append(str(Transform(name, column, int(width.rstrip("]")) if width else None)))
    level = next((properties[name] for name in ISOLATION if name in properties), None)
    retries = properties.get(PROPERTIES["max_commit_retry"])
    return {
        "data_location": properties.get(PROPERTIES["data_location"]),
        "format": "PARQUET",
        "format_version": table.format_version,
        "location": table.location(),
        "max_commit_retry": int(retries) if retries is not None and retries.isdecimal() else None,
        "object_store_layout_enabled": (
            properties.get(PROPERTIES["object_store_layout_enabled"], "").lower() == "true" or None
        ),
        "partitioning": tuple(parts),
        "sorted_by": tuple(map(str, shown_keys(table))),
        "isolation_level": level,
    }
