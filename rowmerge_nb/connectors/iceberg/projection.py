"""Conversion of file columns to the table's schema: matched by field id, widened, and filled in if
missing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi.uuids import uuid_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowmerge_nb.connectors.iceberg.iceberg_handles import IcebergField

_ID: Final = b"PARQUET:field_id"


@dataclass(frozen=True)
class FileField:
    """A field's counterpart in a file; `name` is None if the file lacks it, `index` is that in the
    parent row.
    """

    field: IcebergField
    name: str | None
    index: int = -1
    parts: tuple[FileField, ...] = ()

    def values(self, column: pa.Array | None, rows: int) -> pa.Array:
        if column is None or self.name is None:
            return constant(self.field, self.field.default, rows)
        arrow_type = self.field.type.arrow
        if column.type == arrow_type:
            return column
        convert = _NESTED.get(self.field.type_name)
        return convert(self, column) if convert is not None else _primitive(self.field, column)


def _struct(match: FileField, column: pa.Array) -> pa.Array:
    inner = column.flatten()
    arrays = [
        part.values(inner[part.index] if part.name is not None else None, len(column))
        for part in match.parts
    ]
    arrow_type = match.field.type.arrow
    if not arrays:
        return pa.array([{}] * len(column), arrow_type)
    return pa.StructArray.from_arrays(arrays, fields=list(arrow_type), mask=nulls_of(column))


def _list(match: FileField, column: pa.Array) -> pa.Array:
    values = column.flatten()
    return pa.ListArray.from_arrays(
        offsets_of(column),
        match.parts[0].values(values, len(values)),
        type=match.field.type.arrow,
        mask=nulls_of(column),
    )


def _map(match: FileField, column: pa.Array) -> pa.Array:
    # Flattening the map as a list of pairs drops the pairs of NULL maps and other slices.
    pairs = column.cast(
        pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)]))
    )
    inner = pairs.flatten().flatten()
    keys, items = (
        part.values(array, len(array)) for part, array in zip(match.parts, inner, strict=True)
    )
    return pa.MapArray.from_arrays(
        offsets_of(pairs), keys, items, type=match.field.type.arrow, mask=nulls_of(column)
    )


_NESTED: Final[Mapping[str, Callable[[FileField, pa.Array], pa.Array]]] = {
    "struct": _struct,
    "list": _list,
    "map": _map,
}


def offsets_of(column: pa.Array) -> pa.Array:
    """Return the offsets of a list column's elements, without those of NULL lists."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def nulls_of(column: pa.Array) -> pa.Array | None:
    return pc.is_null(column) if column.null_count else None


def _primitive(field: IcebergField, column: pa.Array) -> pa.Array:
    source_type, arrow_type = column.type, field.type.arrow
    if isinstance(source_type, pa.BaseExtensionType):
        column = column.storage
        source_type = column.type
    if pa.types.is_dictionary(source_type):
        column = column.dictionary_decode()
        source_type = column.type
    if field.type_name == "uuid" and pa.types.is_fixed_size_binary(source_type):
        return uuid_texts(column)
    if (
        pa.types.is_timestamp(source_type)
        and pa.types.is_timestamp(arrow_type)
        and source_type.tz != arrow_type.tz
    ):
        # A writer's zone does not change the instant; values without a zone are UTC.
        column = (
            column.cast(pa.timestamp(source_type.unit))
            if source_type.tz is None
            else column.cast(pa.timestamp(source_type.unit, "UTC"))
        )
        return column.cast(pa.timestamp("us", "UTC"), safe=False).cast(arrow_type)
    # Nanoseconds are truncated to microseconds.
    return column.cast(arrow_type, safe=not pa.types.is_timestamp(source_type))


def constant(field: IcebergField, value: Any, rows: int) -> pa.Array:
    arrow_type = field.type.arrow
    if value is None:
        return pa.nulls(rows, arrow_type)
    if field.type_name == "uuid":
        value = str(value)
    if isinstance(value, int) and pa.types.is_temporal(arrow_type):
        return pa.repeat(
            pa.scalar(value, pa.int32() if arrow_type.bit_width == 32 else pa.int64()).cast(
                arrow_type
            ),
            rows,
        )
    return pa.repeat(pa.scalar(value, arrow_type), rows)


def find_fields(
    fields: Sequence[IcebergField], schema: pa.Schema, mapping: str | None, location: str
) -> tuple[FileField, ...]:
    """Match fields to a file's columns; ICEBERG_BAD_DATA without field ids and name mapping."""
    if any(field.metadata and _ID in field.metadata for field in schema):
        return tuple(_match(field, list(schema), _id_of) for field in fields)
    if mapping is None:
        if not len(schema):
            return tuple(FileField(field, None) for field in fields)
        raise ConnectorError(
            f"File '{location}' has no field ids, so its columns cannot be identified",
            code="ICEBERG_BAD_DATA",
            hint=(
                "Set the table property schema.name-mapping.default, which maps names to field ids."
            ),
        )
    return tuple(_by_name(field, list(schema), json.loads(mapping)) for field in fields)


def _id_of(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_ID)
    return int(text) if text is not None else None


def _parts(arrow_type: pa.DataType) -> list[pa.Field]:
    if pa.types.is_struct(arrow_type):
        return list(arrow_type)
    if pa.types.is_map(arrow_type):
        return [arrow_type.key_field, arrow_type.item_field]
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return [arrow_type.value_field]
    return []


def _match(
    field: IcebergField, candidates: list[pa.Field], id_of: Callable[[pa.Field], int | None]
) -> FileField:
    for index, candidate in enumerate(candidates):
        if id_of(candidate) == field.id:
            inner = _inside(field, candidate, id_of)
            return FileField(field, candidate.name, index, inner)
    return FileField(field, None)


def _inside(
    field: IcebergField, column: pa.Field, id_of: Callable[[pa.Field], int | None]
) -> tuple[FileField, ...]:
    parts = _parts(column.type)
    if field.type_name == "struct":
        return tuple(_match(part, parts, id_of) for part in field.fields)
    return tuple(
        FileField(part, inner.name, i, _inside(part, inner, id_of))
        for i, (part, inner) in enumerate(zip(field.fields, parts, strict=False))
    )


def _by_name(
    field: IcebergField, candidates: list[pa.Field], mapping: list[Mapping[str, Any]]
) -> FileField:
    entry = next((entry for entry in mapping if entry.get("field-id") == field.id), None)
    names = entry["names"] if entry is not None else ()
    for index, candidate in enumerate(candidates):
        if entry is not None and candidate.name in names:
            return FileField(
                field,
                candidate.name,
                index,
                _parts_by_name(field, candidate, entry.get("fields", [])),
            )
    return FileField(field, None)


def _parts_by_name(
    field: IcebergField, parent: pa.Field, mapping: list[Mapping[str, Any]]
) -> tuple[FileField, ...]:
    parts = _parts(parent.type)
    if field.type_name == "struct":
        return tuple(_by_name(part, parts, mapping) for part in field.fields)
    inner = [
        next((entry for entry in mapping if entry.get("field-id") == part.id), {})
        for part in field.fields
    ]
    return tuple(
        FileField(part, column.name, i, _parts_by_name(part, column, entry.get("fields", [])))
        for i, (part, column, entry) in enumerate(zip(field.fields, parts, inner, strict=False))
    )
