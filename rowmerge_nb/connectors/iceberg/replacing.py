"""CREATE OR REPLACE TABLE in one commit.

As in Trino, the table keeps its identity, folder and earlier snapshots.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.iceberg.table_definition import COMMENT
from rowmerge_nb.connectors.iceberg.version_three import upgrade
from rowmerge_nb.connectors.shared.properties import invalid_property

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.sorting import SortField

    from rowmerge_nb.connectors.iceberg.table_definition import Definition


def begin_replacement(table: Table, definition: Definition) -> Transaction:
    """Return a pyiceberg transaction that replaces a table, without the snapshot of its rows."""
    from pyiceberg.table.refs import MAIN_BRANCH

    u = _updates()
    metadata, transaction = table.metadata, table.transaction()
    if definition.location is not None and definition.location.rstrip(
        "/"
    ) != table.location().rstrip("/"):
        raise invalid_property(
            "location",
            f"The provided location '{definition.location}' does not match the existing table"
            f" location '{table.location()}'",
            "Omit the property location.",
        )
    properties = dict(definition.properties)
    _upgrade(transaction, int(properties.pop("format-version")))
    schema = _schema(definition.schema, metadata)
    spec = _spec(definition, schema, metadata)
    unchanged = (
        u.AssertCurrentSchemaId(current_schema_id=metadata.current_schema_id),
        u.AssertDefaultSpecId(default_spec_id=metadata.default_spec_id),
        u.AssertRefSnapshotId(ref=MAIN_BRANCH, snapshot_id=metadata.current_snapshot_id),
    )
    updates: list[Any] = [u.AddSchemaUpdate(schema=schema), u.SetCurrentSchemaUpdate(schema_id=-1)]
    if spec.spec_id not in metadata.specs():
        updates.append(u.AddPartitionSpecUpdate(spec=spec))
    updates += [
        u.SetDefaultSpecUpdate(spec_id=spec.spec_id),
        *_order_updates(definition, schema, metadata),
        u.RemoveSnapshotRefUpdate(ref_name=MAIN_BRANCH),
    ]
    if COMMENT in metadata.properties and COMMENT not in properties:
        updates.append(u.RemovePropertiesUpdate(removals=[COMMENT]))
    updates.append(u.SetPropertiesUpdate(updates=properties))
    transaction._apply(tuple(updates), unchanged)  # noqa: SLF001
    return transaction


def _updates() -> Any:
    from pyiceberg.table import update

    return update


def _upgrade(transaction: Transaction, version: int) -> None:
    has = transaction.table_metadata.format_version
    if version < has:
        raise ConnectorError(
            f"Cannot downgrade v{has} table to v{version}",
            hint=f"Write WITH (format_version = {has}).",
        )
    if version > has:
        upgrade(transaction, version)


def _schema(schema: Schema, metadata: TableMetadata) -> Schema:
    """Return a schema that reuses the ids of columns of the same name and primitive type, so that
    old values are not read as those of new columns.
    """
    from pyiceberg.schema import Schema, assign_fresh_schema_ids

    old_fields = {
        field.name: field for field in metadata.schema().fields if field.field_type.is_primitive
    }
    fresh = assign_fresh_schema_ids(
        schema, next_id=itertools.count(metadata.last_column_id + 1).__next__
    )
    fields = (
        (
            field.model_copy(update={"field_id": old_fields[field.name].field_id})
            if field.name in old_fields and old_fields[field.name].field_type == field.field_type
            else field
        )
        for field in fresh.fields
    )
    return Schema(*fields, schema_id=max(existing.schema_id for existing in metadata.schemas) + 1)


def _spec(definition: Definition, schema: Schema, metadata: TableMetadata) -> PartitionSpec:
    from pyiceberg.partitioning import PartitionSpec

    names = (
        definition.schema.find_column_name(field.source_id) or ""
        for field in definition.spec.fields
    )
    requested = [
        field.model_copy(update={"source_id": schema.find_field(name).field_id})
        for name, field in zip(names, definition.spec.fields, strict=True)
    ]
    # pyiceberg cannot read a void field of a dropped column.
    carries = metadata.format_version == 1 and schema.field_ids.issuperset(
        field.source_id for field in metadata.spec().fields
    )
    fields = (
        _with_void_fields(requested, metadata) if carries else _with_old_ids(requested, metadata)
    )
    specs = metadata.specs()
    existing = next((spec for spec in specs.values() if spec.fields == tuple(fields)), None)
    return PartitionSpec(*fields, spec_id=max(specs) + 1) if existing is None else existing


def _new_field_ids(metadata: TableMetadata) -> Iterator[int]:
    from pyiceberg.partitioning import PARTITION_FIELD_ID_START

    return itertools.count((metadata.last_partition_id or PARTITION_FIELD_ID_START - 1) + 1)


def _key(field: PartitionField) -> tuple[int, str]:
    return field.source_id, str(field.transform)


def _with_old_ids(
    requested: Sequence[PartitionField], metadata: TableMetadata
) -> list[PartitionField]:
    """Reuse the ids of past equal fields, as the specification requires from version 2 on."""
    old_ids = {
        _key(field): field.field_id for spec in metadata.specs().values() for field in spec.fields
    }
    ids = _new_field_ids(metadata)
    return [
        field.model_copy(update={"field_id": old_ids.get(_key(field)) or next(ids)})
        for field in requested
    ]


def _with_void_fields(
    requested: Sequence[PartitionField], metadata: TableMetadata
) -> list[PartitionField]:
    """Return the current fields and the new ones; in version 1, a removed field becomes void."""
    from pyiceberg.transforms import VoidTransform

    new, names = {_key(field): field for field in requested}, {field.name for field in requested}
    fields = []
    for field in metadata.spec().fields:
        same = new.pop(_key(field), None)
        name = f"{field.name}_{field.field_id}" if field.name in names else field.name
        void = {"name": name, "transform": VoidTransform()}
        fields.append(field.model_copy(update=void if same is None else {"name": same.name}))
    ids = _new_field_ids(metadata)
    return [*fields, *(field.model_copy(update={"field_id": next(ids)}) for field in new.values())]


def _order_updates(definition: Definition, schema: Schema, metadata: TableMetadata) -> list[Any]:
    from pyiceberg.table.sorting import SortField

    names = [
        definition.schema.find_column_name(part.source_id) or "" for part in definition.order.fields
    ]
    return order_updates(
        metadata,
        [
            SortField(
                schema.find_field(name).field_id, part.transform, part.direction, part.null_order
            )
            for name, part in zip(names, definition.order.fields, strict=True)
        ],
    )


def order_updates(metadata: TableMetadata, fields: Sequence[SortField]) -> list[Any]:
    from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, SortOrder

    u = _updates()
    existing = next(
        (
            existing_order
            for existing_order in metadata.sort_orders
            if existing_order.fields == list(fields)
        ),
        None,
    )
    last = max(existing_order.order_id for existing_order in metadata.sort_orders)
    order = existing or (SortOrder(*fields, order_id=last + 1) if fields else UNSORTED_SORT_ORDER)
    if order.order_id == metadata.default_sort_order_id:
        return []
    added = [] if existing else [u.AddSortOrderUpdate(sort_order=order)]
    return [*added, u.SetDefaultSortOrderUpdate(sort_order_id=order.order_id)]
