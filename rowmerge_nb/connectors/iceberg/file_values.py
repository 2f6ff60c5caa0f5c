"""Values on their way into a file: the schema of data files, with field ids, and pages brought into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.iceberg.projection import nulls_of, offsets_of
from rowmerge_nb.connectors.shared.transforms import uuid_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.connectors.iceberg.handles import Field
    from rowmerge_nb.spi.page import Page

_ID: Final = "PARQUET:field_id"


def file_schema(fields: Sequence[Field]) -> pa.Schema:
    """Return the schema of data files."""
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
    if field.kind == "fixed":
        return pa.binary(field.length)
    return field.type.arrow


def for_file(page: Page, schema: pa.Schema, fields: Sequence[Field]) -> pa.Table:
    """Convert a page into the schema of data files.

    Raises:
        ConnectorError: CONSTRAINT_VIOLATION, a required field is NULL in a row that is not, or bytes are more or less than fixed.
    """
    arrays = [_stored(page.column(i), field, schema.field(i).type, field.name) for i, field in enumerate(fields)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _stored(values: pa.Array, field: Field, wanted: pa.DataType, path: str, outside: pa.Array | None = None) -> pa.Array:
    """Return values as the file has them.

    Args:
        values: the values of a column, or of a part of one.
        field: the column or part.
        wanted: its type in the file.
        path: how to call it in errors.
        outside: which values are part of a row that is NULL, and so no values at all.
    """
    if field.required:
        _require_values(values, outside, path, "column" if path == field.name else "field")
    # What is required has no NULLs in a file, not even within a row that is NULL: something else takes their places there.
    nulls = None if field.required else nulls_of(values)
    if field.kind == "struct":
        inner, absent = values.flatten(), nulls_of(values)
        if not inner:
            return values
        parts = zip(inner, field.fields, wanted, strict=True)
        arrays = [_stored(part, f, kind.type, f"{path}.{f.name}", absent) for part, f, kind in parts]
        return pa.StructArray.from_arrays(arrays, fields=list(wanted), mask=nulls)
    if field.kind == "list":
        elements = _stored(values.flatten(), field.fields[0], wanted.value_type, f"{path}.element")
        return pa.ListArray.from_arrays(offsets_of(values), elements, type=wanted, mask=nulls)
    if field.kind == "map":
        pairs = values.cast(pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])))
        keys, items = pairs.flatten().flatten()
        keys = _stored(keys, field.fields[0], wanted.key_type, f"{path}.key")
        items = _stored(items, field.fields[1], wanted.item_type, f"{path}.value")
        return pa.MapArray.from_arrays(offsets_of(pairs), keys, items, type=wanted, mask=nulls)
    return _plain(values, field, wanted, path)


def _plain(values: pa.Array, field: Field, wanted: pa.DataType, path: str) -> pa.Array:
    if field.kind == "uuid":
        values, wanted_storage = _fixed_uuids(values), pa.binary(16)
    else:
        wanted_storage = wanted
        if field.kind == "fixed":
            _require_length(values, field, path)
        if values.type != wanted:
            values = values.cast(wanted)
    if field.required and values.null_count:
        values = pc.fill_null(values, _placeholder(wanted_storage))
    return pa.ExtensionArray.from_storage(wanted, values) if field.kind == "uuid" else values


def _placeholder(kind: pa.DataType) -> pa.Scalar:
    r"""Return what takes the place of a value that no reader sees.

    >>> _placeholder(pa.string()).as_py(), _placeholder(pa.binary(2)).as_py(), _placeholder(pa.bool_()).as_py()
    ('', b'\x00\x00', False)
    """
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return pa.scalar(b"").cast(kind)
    zeros = pa.py_buffer(bytes(max(kind.bit_width // 8, 16)))
    return pa.Array.from_buffers(kind, 1, [None, zeros])[0]


def _require_values(values: pa.Array, outside: pa.Array | None, path: str, what: str) -> None:
    """Check that a required field is NULL only where the row around it is.

    Raises:
        ConnectorError: CONSTRAINT_VIOLATION.
    """
    if not values.null_count:
        return
    missing = pc.is_null(values)
    if outside is not None:
        missing = pc.and_not(missing, outside)
    if pc.any(missing).as_py():
        raise ConnectorError(
            f"NULL value not allowed for NOT NULL {what}: {path}",
            code="CONSTRAINT_VIOLATION",
            hint="Name a value for it, or make the row, array or map around it NULL."
            if what == "field"
            else "Name a value for it.",
        )


def _require_length(values: pa.Array, field: Field, path: str) -> None:
    """Check that bytes are as many as the type says.

    Raises:
        ConnectorError: CONSTRAINT_VIOLATION.
    """
    wrong = pc.not_equal(pc.binary_length(values), field.length)
    index = pc.index(wrong, value=True).as_py()
    if index >= 0:
        value = values[index].as_py()
        raise ConnectorError(
            f"Column '{path}' is of type fixed({field.length}) in Iceberg, and X'{value[:40].hex().upper()}' has {len(value)} bytes",
            code="CONSTRAINT_VIOLATION",
            hint=f"Write values of {field.length} bytes, for instance by lpad(value, {field.length}, X'00').",
        )


def _fixed_uuids(values: pa.Array) -> pa.Array:
    """Return UUIDs, which pages carry as texts, as their sixteen bytes.

    >>> _fixed_uuids(pa.array(["00010203-0405-0607-0809-0A0b0c0d0e0f", None])).to_pylist() == [bytes(range(16)), None]
    True
    """
    made = uuid_bytes(values).cast(pa.binary(16))
    return pc.if_else(pc.is_null(values), pa.scalar(None, pa.binary(16)), made) if values.null_count else made
