"""ALTER TABLE and COMMENT.

Only metadata changes: readers match fields by id, and each file knows its own partitioning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from rowmerge_nb.base.errors import ConnectorError, error_text
from rowmerge_nb.connectors.iceberg.branches import stage_branch
from rowmerge_nb.connectors.iceberg.iceberg_types import (
    default_of,
    field_of,
    names_apart,
    schema_of,
)
from rowmerge_nb.connectors.iceberg.replacing import order_updates
from rowmerge_nb.connectors.iceberg.sorting import order_of, parse_keys, sort_fields
from rowmerge_nb.connectors.iceberg.table_definition import (
    COMMENT,
    FORMAT_VERSION,
    ISOLATION,
    PROPERTIES,
    RETRIES,
    extra_properties,
    transforms_of,
    written_transform,
)
from rowmerge_nb.connectors.iceberg.version_three import VERSION, upgrade
from rowmerge_nb.connectors.shared.properties import listed_names, property_text
from rowmerge_nb.spi import (
    AddColumn,
    AddField,
    ColumnMetadata,
    ColumnPosition,
    DropColumn,
    DropDefault,
    DropField,
    DropNotNull,
    RenameColumn,
    RenameField,
    SetColumnType,
    SetDefault,
    SetFieldType,
    SetProperties,
    Type,
)
from rowmerge_nb.spi.alterations import (
    CreateBranch,
    DropBranch,
    FastForwardBranch,
    SetColumnComment,
    SetTableComment,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.table import Transaction
    from pyiceberg.table.update.schema import UpdateSchema
    from pyiceberg.types import IcebergType, NestedField

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergTableHandle
    from rowmerge_nb.spi.alterations import Alteration

_WIDER: Final = (
    "Types can only become wider: integer to bigint, real to double, more digits of a decimal."
)


def stage_alteration(
    handle: IcebergTableHandle, alteration: Alteration, transaction: Transaction
) -> None:
    """Add a change of columns, properties or comments to a pyiceberg transaction; NOT_SUPPORTED for
    what Iceberg does not allow.
    """
    if isinstance(alteration, CreateBranch | DropBranch | FastForwardBranch):
        stage_branch(handle.name, alteration, transaction)
    elif isinstance(alteration, SetTableComment):
        if alteration.comment is not None:
            transaction.set_properties({COMMENT: alteration.comment})
        elif COMMENT in transaction.table_metadata.properties:
            transaction.remove_properties(COMMENT)
    elif isinstance(alteration, SetProperties):
        try:
            _set_properties(handle, alteration.properties, transaction)
        except ValueError as error:
            hint = "CREATE TABLE AS creates a table with other properties."
            raise _refused(handle, error, hint) from error
    else:
        _stage_columns_change(handle, alteration, transaction)


def _refused(handle: IcebergTableHandle, error: Exception, hint: str) -> ConnectorError:
    return ConnectorError(
        f"Iceberg does not allow that of table '{handle.name}': {error_text(error)}",
        hint=hint,
    )


def _stage_columns_change(
    handle: IcebergTableHandle, alteration: Alteration, transaction: Transaction
) -> None:
    from pyiceberg.exceptions import ValidationError

    if isinstance(alteration, AddColumn) and not alteration.column.nullable:
        raise ConnectorError(
            "This connector does not support adding not null columns",
            hint="Add it without NOT NULL: existing rows have NULL in it.",
        )
    try:
        with names_apart(), transaction.update_schema() as update:
            _change_columns(update, handle, alteration, transaction)
    except (ValidationError, ValueError) as error:
        if isinstance(alteration, SetColumnType | SetFieldType):
            what = "column" if isinstance(alteration, SetColumnType) else "field"
            raise ConnectorError(
                f"Failed to set {what} type: {error}", code="ICEBERG_COMMIT_ERROR", hint=_WIDER
            ) from error
        raise _refused(handle, error, _WIDER) from error


def _change_columns(
    update: UpdateSchema,
    handle: IcebergTableHandle,
    alteration: Alteration,
    transaction: Transaction,
) -> None:
    match alteration:
        case AddColumn(column=column, position=position, after=after):
            version = transaction.table_metadata.format_version
            _add_column(update, schema_of([column], version).fields[0])
            if position is ColumnPosition.FIRST:
                update.move_first((column.name,))
            elif position is ColumnPosition.AFTER:
                update.move_after((column.name,), (after,))
        case DropColumn(column=name):
            _refuse_partitioned(handle, name, transaction)
            _refuse_sorted(name, transaction)
            update.delete_column((name,))
        case RenameColumn(column=name, name=new):
            update.rename_column((name,), new)
        case SetColumnType(column=name, type=sql_type):
            _change_type(update, transaction, (name,), _iceberg_type(sql_type))
        case AddField(within=path, name=name, type=sql_type):
            update.add_column((*path, name), _iceberg_type(sql_type))
        case DropField(path=path):
            _refuse_partitioned(handle, ".".join(path), transaction)
            update.delete_column(path)
        case RenameField(path=path, name=new):
            update.rename_column(path, new)
        case SetFieldType(path=path, type=sql_type):
            if not transaction.table_metadata.schema().find_type(".".join(path)).is_primitive:
                raise ConnectorError(
                    "Iceberg doesn't support changing field type from non-primitive types",
                    hint=_WIDER,
                )
            update.update_column(path, _iceberg_type(sql_type))
        case SetDefault(column=name, default=default):
            _set_default(update, transaction, name, default)
        case DropDefault(column=name):
            _set_default(update, transaction, name, None)
        case DropNotNull(column=name):
            update.make_column_optional((name,))
        case SetColumnComment(column=name, comment=comment):
            # None would keep the old comment.
            update.update_column((name,), doc=comment or "")


def _add_column(update: UpdateSchema, field: NestedField) -> None:
    update.add_column(
        (field.name,),
        field.field_type,
        doc=field.doc,
        required=field.required,
        default_value=field.initial_default,
    )


def _set_default(
    update: UpdateSchema, transaction: Transaction, name: str, default: str | None
) -> None:
    if transaction.table_metadata.format_version < VERSION:
        raise ConnectorError(
            "Default column values are not supported for Iceberg table format version < 3",
            hint="ALTER TABLE ... SET PROPERTIES format_version = 3 before it.",
        )
    column_type = transaction.table_metadata.schema().find_type(name)
    update.set_default_value((name,), default_of(default, column_type, name))


def _iceberg_type(sql_type: Type) -> IcebergType:
    return schema_of([ColumnMetadata("x", sql_type)]).fields[0].field_type


def _change_type(
    update: UpdateSchema, transaction: Transaction, path: tuple[str, ...], new_type: IcebergType
) -> None:
    """Change a column's type; fields of a row type are matched by name.

    Raise ValueError if the type is not wider.
    """
    from pyiceberg.types import StructType

    old_type = transaction.table_metadata.schema().find_type(".".join(path))
    if not (isinstance(old_type, StructType) and isinstance(new_type, StructType)):
        if old_type.is_primitive != new_type.is_primitive or (
            not old_type.is_primitive and str(old_type) != str(new_type)
        ):
            raise ValueError(f"Cannot change type from {old_type} to {new_type}")
        if old_type.is_primitive:
            update.update_column(path, new_type)
        return
    old_names = {field.name for field in old_type.fields}
    names = [field.name for field in new_type.fields]
    for name in old_names.difference(names):
        update.delete_column((*path, name))
    for field in new_type.fields:
        if field.name in old_names:
            _change_type(update, transaction, (*path, field.name), field.field_type)
        else:
            update.add_column((*path, field.name), field.field_type)
    for before, name in zip(["", *names], names, strict=False):
        if before:
            update.move_after((*path, name), (*path, before))
        else:
            update.move_first((*path, name))


def stage_columns(columns: Sequence[ColumnMetadata], transaction: Transaction) -> None:
    """Add new last columns, and new types of others, to a pyiceberg transaction, or raise
    NOT_SUPPORTED.
    """
    metadata = transaction.table_metadata
    old_fields = {field.name.lower(): field for field in metadata.schema().fields}
    new = [column for column in columns if column.name.lower() not in old_fields]
    with names_apart(), transaction.update_schema() as update:
        for field in schema_of(new, metadata.format_version).fields:
            _add_column(update, field)
        for column in columns:
            if column.name.lower() in old_fields:
                _evolve_type(update, (), old_fields[column.name.lower()], column.type)


def _evolve_type(
    update: UpdateSchema, path: tuple[str, ...], field: NestedField, new_type: Type
) -> None:
    path, old_type = (*path, field.name), cast("Any", field.field_type)
    if field_of(field, field.name, path).type == new_type:
        return
    if old_type.is_primitive:
        update.update_column(path, _iceberg_type(new_type))
    elif new_type.base == "array":
        _evolve_type(update, path, old_type.element_field, new_type.parameters[0])
    elif new_type.base == "map":
        _evolve_type(update, path, old_type.value_field, new_type.parameters[1])
    else:
        old_fields = {part.name.lower(): part for part in old_type.fields}
        for name, part in zip(new_type.fields, new_type.parameters, strict=True):
            old = old_fields.get(str(name).lower())
            if old is None:
                update.add_column((*path, str(name)), _iceberg_type(part))
            else:
                _evolve_type(update, path, old, part)


def stage_drops(handle: IcebergTableHandle, names: Sequence[str], transaction: Transaction) -> None:
    """Add the removal of columns to a pyiceberg transaction; partition columns are NOT_SUPPORTED."""
    with transaction.update_schema() as update:
        for name in names:
            _refuse_partitioned(handle, name, transaction)
            update.delete_column((name,))


def _set_properties(
    handle: IcebergTableHandle, properties: Mapping[str, Any], transaction: Transaction
) -> None:
    if "format_version" in properties:
        version: Any = properties["format_version"] or FORMAT_VERSION
        if version != transaction.table_metadata.format_version:
            upgrade(transaction, version)
    if "isolation_level" in properties:
        level = properties["isolation_level"]
        if level is not None:
            transaction.set_properties(dict.fromkeys(ISOLATION, str(level).lower()))
        else:
            transaction.remove_properties(
                *(name for name in ISOLATION if name in transaction.table_metadata.properties)
            )
    extra = extra_properties(properties)
    if extra:
        transaction.set_properties(extra)
    for name in PROPERTIES.keys() & properties.keys():
        own, value = PROPERTIES[name], properties[name]
        value = RETRIES if value is None and name == "max_commit_retry" else value
        if value is not None:
            transaction.set_properties({own: property_text(value)})
        elif own in transaction.table_metadata.properties:
            transaction.remove_properties(own)
    if "sorted_by" in properties:
        order = order_of(
            parse_keys(listed_names(properties, "sorted_by")), transaction.table_metadata.schema()
        )
        transaction._apply(tuple(order_updates(transaction.table_metadata, order.fields)), ())  # noqa: SLF001
    if "partitioning" in properties:
        _set_partitioning(handle, properties, transaction)


def _set_partitioning(
    handle: IcebergTableHandle, properties: Mapping[str, Any], transaction: Transaction
) -> None:
    from pyiceberg.transforms import VoidTransform, parse_transform

    metadata = transaction.table_metadata
    columns = [ColumnMetadata(field.name, field.type) for field in handle.fields]
    new_fields = {
        (
            metadata.schema().find_field(transform.column).field_id,
            written_transform(transform),
        ): transform.column
        for transform in transforms_of(properties, columns)
    }
    # Tables of format 1 keep a void field for each dropped one.
    current = (
        field
        for field in metadata.spec().fields
        if metadata.format_version > 1 or not isinstance(field.transform, VoidTransform)
    )
    old_fields = {(field.source_id, str(field.transform)): field.name for field in current}
    with transaction.update_spec() as update:
        for key, name in old_fields.items():
            if key not in new_fields:
                update.remove_field(name)
        for key, column in new_fields.items():
            if key not in old_fields:
                # Iceberg chooses the name: that of a dropped field may not be reused.
                update.add_field(column, parse_transform(key[1]))


def _refuse_sorted(name: str, transaction: Transaction) -> None:
    metadata = transaction.table_metadata
    number = metadata.schema().find_field(name).field_id
    for part in sort_fields(metadata):
        if part.source_id == number:
            way = (
                f"{part.transform}({number}) {part.direction.name}"
                f" {part.null_order.name.replace('_', ' ')}"
            )
            raise ConnectorError(
                f"Failed to drop column: Cannot find source column for sort field: {way}",
                code="ICEBERG_COMMIT_ERROR",
                hint="ALTER TABLE ... SET PROPERTIES sorted_by = DEFAULT before it.",
            )


def _refuse_partitioned(handle: IcebergTableHandle, name: str, transaction: Transaction) -> None:
    """Refuse to drop a column of any partitioning, since older files would become unreadable."""
    metadata = transaction.table_metadata
    field = metadata.schema().find_field(name)
    if any(
        part.source_id == field.field_id
        for spec in metadata.partition_specs
        for part in spec.fields
    ):
        raise ConnectorError(
            f"Column '{name}' of table '{handle.name}' cannot be dropped: it defines partitions",
            hint="CREATE TABLE AS creates a table with other partitions.",
        )
