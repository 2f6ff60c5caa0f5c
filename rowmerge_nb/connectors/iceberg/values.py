"""Values on their way into a file: the schema of data files, with field ids, and pages brought into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.connectors.iceberg.projection import nulls_of, offsets_of
from rowmerge_nb.connectors.shared.transforms import uuid_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.connectors.iceberg.handles import Field
    from rowmerge_nb.spi.page import Page

__all__ = ["file_schema", "for_file"]

_ID: Final = "PARQUET:field_id"


def file_schema(fields: Sequence[Field]) -> pa.Schema:
    """Give the schema of data files."""
    return pa.schema([_arrow_field(field) for field in fields])


def _arrow_field(field: Field, name: str | None = None) -> pa.Field:
    return pa.field(name or field.name, _arrow_type(field), nullable=not field.required, metadata={_ID: str(field.id)})


def _arrow_type(field: Field) -> pa.DataType:
    if field.kind == "struct":
        return pa.struct([_arrow_field(part) for part in field.fields])
    if field.kind == "list":
        return pa.list_(_arrow_field(field.fields[0], "element"))
    if field.kind == "map":
        return pa.map_(_arrow_field(field.fields[0], "key"), _arrow_field(field.fields[1], "value"))
    if field.kind == "uuid":
        return pa.uuid()
    return field.type.arrow


def for_file(page: Page, schema: pa.Schema, fields: Sequence[Field]) -> pa.Table:
    """Bring a page into the schema of data files."""
    arrays = [_stored(page.column(i), field, schema.field(i).type) for i, field in enumerate(fields)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _stored(values: pa.Array, field: Field, wanted: pa.DataType) -> pa.Array:
    if field.kind == "uuid":
        return pa.ExtensionArray.from_storage(wanted, _fixed_uuids(values))
    if field.kind == "struct":
        inner = values.flatten()
        if not inner:
            return values
        arrays = [_stored(part, f, wanted.field(i).type) for i, (part, f) in enumerate(zip(inner, field.fields, strict=True))]
        return pa.StructArray.from_arrays(arrays, fields=list(wanted), mask=nulls_of(values))
    if field.kind == "list":
        elements = _stored(values.flatten(), field.fields[0], wanted.value_type)
        return pa.ListArray.from_arrays(offsets_of(values), elements, type=wanted, mask=nulls_of(values))
    if field.kind == "map":
        pairs = values.cast(pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])))
        keys, items = pairs.flatten().flatten()
        keys, items = _stored(keys, field.fields[0], wanted.key_type), _stored(items, field.fields[1], wanted.item_type)
        return pa.MapArray.from_arrays(offsets_of(pairs), keys, items, type=wanted, mask=nulls_of(values))
    return values if values.type == wanted else values.cast(wanted)


def _fixed_uuids(values: pa.Array) -> pa.Array:
    """Give UUIDs, which pages carry as texts, as their sixteen bytes.

    >>> _fixed_uuids(pa.array(["00010203-0405-0607-0809-0A0b0c0d0e0f", None])).to_pylist() == [bytes(range(16)), None]
    True
    """
    made = uuid_bytes(values).cast(pa.binary(16))
    return pc.if_else(pc.is_null(values), pa.scalar(None, pa.binary(16)), made) if values.null_count else made
