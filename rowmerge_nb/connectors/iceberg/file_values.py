"""Conversion of pages to the schema of data files, with field ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.iceberg.projection import nulls_of, offsets_of
from rowmerge_nb.spi import Page
from rowmerge_nb.spi.uuids import uuid_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergField

_ID: Final = "PARQUET:field_id"


def file_schema(fields: Sequence[IcebergField]) -> pa.Schema:
    return pa.schema([_arrow_field(field) for field in fields])


def _arrow_field(field: IcebergField, name: str | None = None) -> pa.Field:
    return pa.field(
        name or field.name,
        _arrow_type(field),
        nullable=not field.required,
        metadata={_ID: str(field.id)},
    )


def _arrow_type(field: IcebergField) -> pa.DataType:
    if field.type_name == "struct":
        return pa.struct([_arrow_field(part) for part in field.fields])
    if field.type_name == "list":
        return pa.list_(_arrow_field(field.fields[0], "element"))
    if field.type_name == "map":
        return pa.map_(_arrow_field(field.fields[0], "key"), _arrow_field(field.fields[1], "value"))
    if field.type_name == "uuid":
        return pa.uuid()
    if field.type_name == "fixed":
        return pa.binary(field.length)
    return field.type.arrow


def for_file(page: Page, schema: pa.Schema, fields: Sequence[IcebergField]) -> pa.Table:
    """Convert a page to the schema of data files; CONSTRAINT_VIOLATION for a required NULL, or a
    fixed value of another length.
    """
    arrays = [
        _stored(page.column(i), field, schema.field(i).type, field.name)
        for i, field in enumerate(fields)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _stored(
    values: pa.Array,
    field: IcebergField,
    file_type: pa.DataType,
    path: str,
    outside: pa.Array | None = None,
) -> pa.Array:
    """Convert values; `outside` masks those whose parent row is NULL."""
    if field.required:
        _require_values(values, outside, path, "column" if path == field.name else "field")
    # A required field has no NULLs in a file, not even within a NULL row: placeholders take their
    # positions.
    nulls = None if field.required else nulls_of(values)
    if field.type_name == "struct":
        inner, absent = values.flatten(), nulls_of(values)
        if not inner:
            return values
        parts = zip(inner, field.fields, file_type, strict=True)
        arrays = [
            _stored(part, f, part_type.type, f"{path}.{f.name}", absent)
            for part, f, part_type in parts
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(file_type), mask=nulls)
    if field.type_name == "list":
        elements = _stored(
            values.flatten(), field.fields[0], file_type.value_type, f"{path}.element"
        )
        return pa.ListArray.from_arrays(offsets_of(values), elements, type=file_type, mask=nulls)
    if field.type_name == "map":
        pairs = values.cast(
            pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)]))
        )
        keys, items = pairs.flatten().flatten()
        keys = _stored(keys, field.fields[0], file_type.key_type, f"{path}.key")
        items = _stored(items, field.fields[1], file_type.item_type, f"{path}.value")
        return pa.MapArray.from_arrays(offsets_of(pairs), keys, items, type=file_type, mask=nulls)
    return _plain(values, field, file_type, path)


def _plain(values: pa.Array, field: IcebergField, file_type: pa.DataType, path: str) -> pa.Array:
    if field.type_name == "uuid":
        values, storage_type = _fixed_uuids(values), pa.binary(16)
    else:
        storage_type = file_type
        if field.type_name == "fixed":
            _require_length(values, field, path)
        if values.type != file_type:
            values = values.cast(file_type)
    if field.required and values.null_count:
        values = pc.fill_null(values, _placeholder(storage_type))
    return (
        pa.ExtensionArray.from_storage(file_type, values) if field.type_name == "uuid" else values
    )


def _placeholder(arrow_type: pa.DataType) -> pa.Scalar:
    r"""Return a value for a hidden NULL.

    >>> _placeholder(pa.string()).as_py(), _placeholder(pa.binary(2)).as_py(), _placeholder(pa.bool_()).as_py()
    ('', b'\x00\x00', False)
    """
    if pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type):
        return pa.scalar(b"").cast(arrow_type)
    zeros = pa.py_buffer(bytes(max(arrow_type.bit_width // 8, 16)))
    return pa.Array.from_buffers(arrow_type, 1, [None, zeros])[0]


def _require_values(values: pa.Array, outside: pa.Array | None, path: str, what: str) -> None:
    if not values.null_count:
        return
    missing = pc.is_null(values)
    if outside is not None:
        missing = pc.and_not(missing, outside)
    if pc.any(missing).as_py():
        raise ConnectorError(
            f"NULL value not allowed for NOT NULL {what}: {path}",
            code="CONSTRAINT_VIOLATION",
            hint=(
                "Give a value for it, or set the row, array or map around it to NULL."
                if what == "field"
                else "Give a value for it."
            ),
        )


def _require_length(values: pa.Array, field: IcebergField, path: str) -> None:
    wrong = pc.not_equal(pc.binary_length(values), field.length)
    index = pc.index(wrong, value=True).as_py()
    if index >= 0:
        value = values[index].as_py()
        raise ConnectorError(
            f"Column '{path}' is of type fixed({field.length}) in Iceberg, but"
            f" X'{value[:40].hex().upper()}' has {len(value)} bytes",
            code="CONSTRAINT_VIOLATION",
            hint=(
                f"Write values of {field.length} bytes, for instance by lpad(value, {field.length},"
                " X'00')."
            ),
        )


def _fixed_uuids(values: pa.Array) -> pa.Array:
    uuids = uuid_bytes(values)
    return (
        pc.if_else(pc.is_null(values), pa.scalar(None, pa.binary(16)), uuids)
        if values.null_count
        else uuids
    )
