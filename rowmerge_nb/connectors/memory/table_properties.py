"""Checks of properties, NOT NULL columns and primary keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import AnalysisError, ExecutionError
from rowmerge_nb.base.next_steps import ONE_ROW_PER_KEY, null_refusal
from rowmerge_nb.connectors.shared.properties import (
    invalid_property,
    listed_names,
    require_columns,
    require_known,
    spelled_names,
)
from rowmerge_nb.connectors.shared.transforms import parse_transforms
from rowmerge_nb.spi import ColumnMetadata, ConnectorTableMetadata, RowChangeParadigm, Type
from rowmerge_nb.spi.types import is_wider
from rowmerge_nb.spi.values import shown_value

TABLE_PROPERTIES: Final = {
    "paradigm": (
        "row change paradigm: DELETE_ROW_AND_INSERT_ROW (default) or CHANGE_ONLY_UPDATED_COLUMNS"
    ),
    "partitioned_by": (
        "columns or transforms of them that decide the partition, ARRAY['region', 'bucket(id, 4)',"
        " 'month(day)']"
    ),
    "bucketed_by": "columns whose hash decides the bucket, ARRAY['...']",
    "bucket_count": "number of buckets",
    "primary_key": "columns that identify a row; NULL and repeated keys are refused, ARRAY['...']",
    "check_constraints": "conditions that every stored row must satisfy, ARRAY['quantity > 0']",
}
"""The table properties that CREATE TABLE accepts."""


def schema_of(columns: Sequence[ColumnMetadata]) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.type.arrow) for column in columns])


def fitted(
    rows: pa.Table, before: Sequence[ColumnMetadata], columns: Sequence[ColumnMetadata]
) -> pa.Table:
    """Return rows with the columns of an altered table.

    A column of another type is new, and NULL, unless a MERGE can have evolved the type.
    """
    types = {column.name: column.type for column in before}
    if list(types.items()) == [(column.name, column.type) for column in columns]:
        return rows
    arrays = [
        (
            rows.column(column.name).cast(column.type.arrow)
            if column.name in types and has_evolved(types[column.name], column.type)
            else pa.nulls(rows.num_rows, column.type.arrow)
        )
        for column in columns
    ]
    return pa.Table.from_arrays(arrays, schema=schema_of(columns))


def has_evolved(before: Type, after: Type) -> bool:
    """Return whether a type has all values of another, as types of MERGE WITH SCHEMA EVOLUTION."""
    if before.base in {"row", "array", "map"}:
        pairs = zip(before.parameters, after.parameters, strict=False)
        return before.base == after.base and all(has_evolved(*pair) for pair in pairs)
    return before == after or is_wider(before, after)


def checked_metadata(metadata: ConnectorTableMetadata) -> ConnectorTableMetadata:
    """Validate a table's properties and complete them; raises INVALID_TABLE_PROPERTY."""
    properties = dict(metadata.properties)
    require_known(properties, TABLE_PROPERTIES, "Catalog 'memory'")
    require_columns(metadata)
    properties["paradigm"] = _paradigm(properties.get("paradigm"))
    transforms = parse_transforms(
        listed_names(properties, "partitioned_by"), by_name(metadata.columns)
    )
    properties["partitioned_by"] = tuple(map(str, transforms))
    for name in ("bucketed_by", "primary_key"):
        properties[name] = spelled_names(properties, name, metadata.columns)
        nested = [
            c
            for c in metadata.columns
            if c.name in properties[name] and c.type.base in {"array", "map", "row"}
        ]
        if nested:
            raise invalid_property(
                name,
                f"Table property '{name}' names column '{nested[0].name}' of type"
                f" {nested[0].type}, which cannot determine where rows are stored",
                "Name columns of plain types.",
            )
    checks = properties["check_constraints"] = listed_names(properties, "check_constraints")
    count = properties.setdefault("bucket_count", None)
    if (count is None) != (not properties["bucketed_by"]) or (
        count is not None and (not isinstance(count, int) or count < 1)
    ):
        raise AnalysisError(
            f"bucketed_by = {list(properties['bucketed_by'])} and bucket_count ="
            f" {count} cannot be combined",
            code="INVALID_TABLE_PROPERTY",
            properties=("bucketed_by", "bucket_count"),
            hint="Set both, with a bucket_count of at least 1, or neither.",
        )
    return replace(metadata, properties=properties, check_constraints=checks)


def _paradigm(value: Any) -> str:
    paradigm = str(value or RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW.name).upper()
    if paradigm not in RowChangeParadigm.__members__:
        raise invalid_property(
            "paradigm",
            f"'{paradigm}' is not a row change paradigm",
            f"There are: {', '.join(RowChangeParadigm.__members__)}.",
        )
    return paradigm


def by_name(columns: Iterable[ColumnMetadata]) -> dict[str, tuple[str, Type]]:
    """Return names and types of columns by lower-case name, for parsing partition transforms."""
    return {column.name.lower(): (column.name, column.type) for column in columns}


def check_content(metadata: ConnectorTableMetadata, data: pa.Table) -> None:
    for column in metadata.columns:
        if not column.nullable and data.column(column.name).null_count:
            raise null_refusal(column.name).error("finish_merge")
    _check_key(metadata, data)


def _check_key(metadata: ConnectorTableMetadata, data: pa.Table) -> None:
    key = metadata.properties.get("primary_key")
    if not key:
        return
    for name in key:
        if data.column(name).null_count:
            raise ExecutionError(
                f"NULL value not allowed for primary key column: {name}",
                code="CONSTRAINT_VIOLATION",
                step="finish_merge",
            )
    # Arrow groups 0.0 and -0.0 separately, but they are equal in SQL.
    keys = {
        name: (
            pc.add(data.column(name), 0)
            if pa.types.is_floating(data.schema.field(name).type)
            else data.column(name)
        )
        for name in key
    }
    counts = pa.table(keys).group_by(list(key)).aggregate([([], "count_all")])
    repeated = counts.filter(pc.greater(counts.column("count_all"), 1))
    if repeated.num_rows:
        key_text = ", ".join(f"{name} = {shown_value(repeated.column(name)[0])}" for name in key)
        raise ExecutionError(
            f"Primary key of '{metadata.name}' would be repeated: {key_text} ({repeated.num_rows}"
            " in all)",
            code="CONSTRAINT_VIOLATION",
            step="finish_merge",
            next_step=ONE_ROW_PER_KEY,
        )
