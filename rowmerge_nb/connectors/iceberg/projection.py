"""What a file holds, as the table has it now: columns are found by field id, types are widened, and missing columns are filled in."""

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

    from rowmerge_nb.connectors.iceberg.handles import Field

_ID: Final = b"PARQUET:field_id"


@dataclass(frozen=True)
class Found:
    """Where a field is in a file, and where its parts are.

    Args:
        field: the field.
        name: the column's name in the file, or of a part of a row the name there; None if the file does not have it.
        index: the part's index in its row.
        parts: the parts of a nested field.
    """

    field: Field
    name: str | None
    index: int = -1
    parts: tuple[Found, ...] = ()

    def values(self, column: pa.Array | None, rows: int) -> pa.Array:
        """Return the field's values.

        Args:
            column: the file's column; None if it has none.
            rows: how many rows there are.
        """
        if column is None or self.name is None:
            return constant(self.field, self.field.default, rows)
        wanted = self.field.type.arrow
        if column.type == wanted:
            return column
        convert = _NESTED.get(self.field.kind)
        return convert(self, column) if convert is not None else _primitive(self.field, column)


def _struct(found: Found, column: pa.Array) -> pa.Array:
    inner = column.flatten()
    arrays = [part.values(inner[part.index] if part.name is not None else None, len(column)) for part in found.parts]
    kind = found.field.type.arrow
    if not arrays:
        return pa.array([{}] * len(column), kind)
    return pa.StructArray.from_arrays(arrays, fields=list(kind), mask=nulls_of(column))


def _list(found: Found, column: pa.Array) -> pa.Array:
    values = column.flatten()
    return pa.ListArray.from_arrays(
        offsets_of(column), found.parts[0].values(values, len(values)), type=found.field.type.arrow, mask=nulls_of(column)
    )


def _map(found: Found, column: pa.Array) -> pa.Array:
    # A map is a list of pairs; as such its pairs can be had without those of NULLs and of other slices.
    pairs = column.cast(pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])))
    inner = pairs.flatten().flatten()
    keys, items = (part.values(array, len(array)) for part, array in zip(found.parts, inner, strict=True))
    return pa.MapArray.from_arrays(offsets_of(pairs), keys, items, type=found.field.type.arrow, mask=nulls_of(column))


_NESTED: Final[Mapping[str, Callable[[Found, pa.Array], pa.Array]]] = {"struct": _struct, "list": _list, "map": _map}


def offsets_of(column: pa.Array) -> pa.Array:
    """Return where the elements of every array of a column begin and end, if those of NULLs are left out."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def nulls_of(column: pa.Array) -> pa.Array | None:
    """Return which values are NULL; None where there are none."""
    return pc.is_null(column) if column.null_count else None


def _primitive(field: Field, column: pa.Array) -> pa.Array:
    kind, wanted = column.type, field.type.arrow
    if isinstance(kind, pa.BaseExtensionType):
        column = column.storage
        kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if field.kind == "uuid" and pa.types.is_fixed_size_binary(kind):
        return uuid_texts(column)
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(wanted) and kind.tz != wanted.tz:
        # The instant is the same whatever zone a writer noted with it; of a value without a zone it counts as UTC.
        column = column.cast(pa.timestamp(kind.unit)) if kind.tz is None else column.cast(pa.timestamp(kind.unit, "UTC"))
        return column.cast(pa.timestamp("us", "UTC"), safe=False).cast(wanted)
    # Timestamps of nanoseconds are cut, as a reader of microseconds would have written them.
    return column.cast(wanted, safe=not pa.types.is_timestamp(kind))


def constant(field: Field, value: Any, rows: int) -> pa.Array:
    """Return one value for every row.

    Args:
        field: the field.
        value: the value, as pyiceberg has it: a date or time may be a number, a UUID is no text.
        rows: how many rows.
    """
    kind = field.type.arrow
    if value is None:
        return pa.nulls(rows, kind)
    if field.kind == "uuid":
        value = str(value)
    if isinstance(value, int) and pa.types.is_temporal(kind):
        return pa.repeat(pa.scalar(value, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind), rows)
    return pa.repeat(pa.scalar(value, kind), rows)


def find_fields(fields: Sequence[Field], schema: pa.Schema, mapping: str | None, location: str) -> tuple[Found, ...]:
    """Find fields in a file.

    Args:
        fields: the fields.
        schema: the file's schema.
        mapping: the table's name mapping (JSON), for files without field ids.
        location: what the file is called in errors.

    Raises:
        ConnectorError: ICEBERG_BAD_DATA if the file says nothing of field ids and there is no mapping.
    """
    if any(field.metadata and _ID in field.metadata for field in schema):
        return tuple(_found(field, list(schema), _id_of) for field in fields)
    if mapping is None:
        if not len(schema):
            return tuple(Found(field, None) for field in fields)
        raise ConnectorError(
            f"File '{location}' has no field ids, so that its columns cannot be told",
            code="ICEBERG_BAD_DATA",
            hint="Set the table property schema.name-mapping.default, which says which name stands for which field.",
        )
    return tuple(_by_name(field, list(schema), json.loads(mapping)) for field in fields)


def _id_of(field: pa.Field) -> int | None:
    text = (field.metadata or {}).get(_ID)
    return int(text) if text is not None else None


def _parts(kind: pa.DataType) -> list[pa.Field]:
    """Return the fields of a nested type in the order that ours has them."""
    if pa.types.is_struct(kind):
        return list(kind)
    if pa.types.is_map(kind):
        return [kind.key_field, kind.item_field]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [kind.value_field]
    return []


def _found(field: Field, candidates: list[pa.Field], id_of: Callable[[pa.Field], int | None]) -> Found:
    for index, candidate in enumerate(candidates):
        if id_of(candidate) == field.id:
            parts = _parts(candidate.type)
            if field.kind == "struct":
                inner = tuple(_found(part, parts, id_of) for part in field.fields)
            else:
                inner = tuple(
                    Found(part, there.name, i, _inside(part, there, id_of))
                    for i, (part, there) in enumerate(zip(field.fields, parts, strict=False))
                )
            return Found(field, candidate.name, index, inner)
    return Found(field, None)


def _inside(field: Field, there: pa.Field, id_of: Callable[[pa.Field], int | None]) -> tuple[Found, ...]:
    """Find the parts of an element, key or value; which one it is is plain from where it stands."""
    parts = _parts(there.type)
    if field.kind == "struct":
        return tuple(_found(part, parts, id_of) for part in field.fields)
    return tuple(
        Found(part, inner.name, i, _inside(part, inner, id_of))
        for i, (part, inner) in enumerate(zip(field.fields, parts, strict=False))
    )


def _by_name(field: Field, candidates: list[pa.Field], mapping: list[Mapping[str, Any]]) -> Found:
    """Find a field by the names that the table's mapping gives to its id."""
    entry = next((entry for entry in mapping if entry.get("field-id") == field.id), None)
    names = entry["names"] if entry is not None else ()
    for index, candidate in enumerate(candidates):
        if entry is not None and candidate.name in names:
            return Found(field, candidate.name, index, _parts_by_name(field, candidate, entry.get("fields", [])))
    return Found(field, None)


def _parts_by_name(field: Field, there: pa.Field, mapping: list[Mapping[str, Any]]) -> tuple[Found, ...]:
    parts = _parts(there.type)
    if field.kind == "struct":
        return tuple(_by_name(part, parts, mapping) for part in field.fields)
    inner = [next((entry for entry in mapping if entry.get("field-id") == part.id), {}) for part in field.fields]
    return tuple(
        Found(part, found.name, i, _parts_by_name(part, found, entry.get("fields", [])))
        for i, (part, found, entry) in enumerate(zip(field.fields, parts, inner, strict=False))
    )
