"""Schemas that MERGE WITH SCHEMA EVOLUTION makes: new columns and fields, and wider types."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.connectors.delta.delta_types import (
    delta_type_of,
    field_json,
    new_field,
    sql_type_of,
)
from rowmerge_nb.spi.types import is_wider

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rowmerge_nb.spi import ColumnMetadata, Type

_TYPE_CHANGES: Final = "delta.typeChanges"


class SchemaEvolution:
    """A schema in JSON with new columns, fields and types.

    Args:
        fixed: the columns that keep their types: those of partitions.
        widens: whether the table has the feature of wider types.

    >>> from rowmerge_nb.spi import ColumnMetadata
    >>> from rowmerge_nb.spi.types import BIGINT
    >>> id_field = {"name": "id", "type": "integer", "nullable": True, "metadata": {}}
    >>> evolution = SchemaEvolution({"type": "struct", "fields": [id_field]}, (), widens=True)
    >>> evolution.take([ColumnMetadata("id", BIGINT)])
    >>> json.loads(evolution.schema)["fields"][0]["metadata"]
    {'delta.typeChanges': [{'fromType': 'integer', 'toType': 'long'}]}
    """

    def __init__(self, schema: dict[str, Any], fixed: Collection[str], *, widens: bool) -> None:
        self._schema, self._fixed, self._widens = schema, fixed, widens
        self.narrow_columns: list[str] = []
        """The paths of columns and fields whose type stays, for want of the feature."""

    @property
    def schema(self) -> str:
        return json.dumps(self._schema)

    def take(self, columns: Sequence[ColumnMetadata]) -> None:
        """Add columns, or give those that exist further fields and wider types."""
        fields = {field["name"].lower(): field for field in self._schema["fields"]}
        for column in columns:
            field = fields.get(column.name.lower())
            if field is None:
                self._schema["fields"].append(field_json(column))
            elif field["name"] not in self._fixed:
                self._evolve_field(field, column.type, field["name"])

    def _evolve_field(self, field: dict[str, Any], sql_type: Type, path: str) -> None:
        changes: list[dict[str, str]] = []
        field["type"] = self._evolved(field["type"], sql_type, path, (), changes)
        if changes:
            metadata = field["metadata"]
            field["metadata"] = {
                **metadata,
                _TYPE_CHANGES: [*metadata.get(_TYPE_CHANGES, ()), *changes],
            }

    def _evolved(
        self,
        delta_type: Any,
        sql_type: Type,
        path: str,
        inside: tuple[str, ...],
        changes: list[dict[str, str]],
    ) -> Any:
        """Return the new type of a part of a field.

        Args:
            inside: the steps from the field to the part, through lists and maps.
            changes: takes the changes of numbers, which the log keeps with the field.
        """
        if isinstance(delta_type, str):
            if not is_wider(sql_type_of(delta_type, path, path), sql_type):
                return delta_type
            if not self._widens:
                self.narrow_columns.append(path)
                return delta_type
            new_type = delta_type_of(sql_type, path)
            change = {"fromType": delta_type, "toType": new_type}
            changes.append({**change, "fieldPath": ".".join(inside)} if inside else change)
            return new_type
        if delta_type["type"] == "struct":
            return {**delta_type, "fields": self._evolved_fields(delta_type, sql_type, path)}
        key, step, index = (
            ("elementType", "element", 0)
            if delta_type["type"] == "array"
            else ("valueType", "value", 1)
        )
        part = sql_type.parameters[index]
        steps = (*inside, step)
        new_part = self._evolved(delta_type[key], part, f"{path}.{step}", steps, changes)
        return {**delta_type, key: new_part}

    def _evolved_fields(
        self, delta_type: dict[str, Any], sql_type: Type, path: str
    ) -> list[dict[str, Any]]:
        fields = [dict(field) for field in delta_type["fields"]]
        old_fields = {field["name"].lower(): field for field in fields}
        for name, part in zip(sql_type.fields, sql_type.parameters, strict=True):
            field, part_path = old_fields.get(str(name).lower()), f"{path}.{name}"
            if field is None:
                fields.append(new_field(str(name), delta_type_of(part, part_path), nullable=True))
            else:
                self._evolve_field(field, part, part_path)
        return fields


def holds_columns(columns: Sequence[ColumnMetadata], earlier: Sequence[ColumnMetadata]) -> bool:
    """Return whether files of earlier columns can be read as files of columns that follow them."""
    types = {column.name: column.type for column in columns}
    names = {column.name for column in earlier}
    return all(
        column.name in types and _is_narrower(column.type, types[column.name]) for column in earlier
    ) and all(column.nullable for column in columns if column.name not in names)


def _is_narrower(before: Type, after: Type) -> bool:
    if before.base == after.base == "row":
        parts = dict(zip(after.fields, after.parameters, strict=True))
        return all(
            name in parts and _is_narrower(part, parts[name])
            for name, part in zip(before.fields, before.parameters, strict=True)
        )
    if before.base == after.base and before.base in {"array", "map"}:
        return all(map(_is_narrower, before.parameters, after.parameters))
    return before == after or is_wider(before, after)
