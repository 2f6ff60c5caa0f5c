"""What ALTER TABLE does to fields of rows: the way to a field found in the column's type, with Trino's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Protocol

from rowmerge_nb.spi.alterations import AddField, DropField, RenameField, SetFieldType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.types import Type


class Refuse(Protocol):
    """Raises an error of a code and a message; not ``placed``: Trino says no place."""

    def __call__(self, code: str, message: str, *, placed: bool = True) -> NoReturn:
        """Raise it."""


def added(
    refuse: Refuse, column: ColumnMetadata, names: Sequence[str], name: str, kind: Type, *, if_not_exists: bool
) -> AddField | None:
    """Add a field behind those of a row.

    Args:
        refuse: raises an error.
        column: the column.
        names: the way to the row, the column's name first.
        name: the field's name.
        kind: its type.
        if_not_exists: None where there is one already, in place of an error.
    """
    row = column.type
    for step in names[1:]:
        if row.base == "array":
            row = _element(refuse, row, step)
        elif row.base == "row":
            row = _found(refuse, row, step)
        else:
            refuse("NOT_SUPPORTED", f"Unsupported type: {row}", placed=False)
    if row.base != "row":
        refuse("NOT_SUPPORTED", f"Unsupported type: {row}", placed=False)
    exists = _place(row, name) is not None
    if exists and not if_not_exists:
        refuse("COLUMN_ALREADY_EXISTS", f"Field '{name}' already exists")
    return None if exists else AddField(_own_names(column, names), name, kind)


def dropped(refuse: Refuse, column: ColumnMetadata, names: Sequence[str], *, if_exists: bool) -> DropField | None:
    """Drop a field: the way to it, behind the column's name, has its letters as they were written."""
    row = column.type
    for number, step in enumerate(names, 1):
        last = number == len(names)
        if row.base == "array":
            row = _element(refuse, row, step)
            if last:
                refuse("COLUMN_NOT_FOUND", f"Field path [{', '.join(names)}] does not point to row field")
        elif row.base == "row" and step in row.fields:
            if last and len(row.fields) == 1:
                refuse("NOT_SUPPORTED", "Cannot drop the only field in a row type")
            row = row.parameters[row.fields.index(step)]
        elif if_exists:
            return None
        else:
            within = f"when dropping [{', '.join(names)}] in {column.type}"
            refuse("NOT_SUPPORTED", f"Cannot resolve field '{step}' within {row} type {within}")
    return DropField((column.name, *names))


def renamed(refuse: Refuse, column: ColumnMetadata, names: Sequence[str], name: str, *, if_exists: bool) -> RenameField | None:
    """Rename a field of a row, which may be within rows, and nothing else."""
    row = column.type
    for number, step in enumerate(names[1:], 2):
        if row.base != "row":
            refuse("NOT_SUPPORTED", f"Unsupported type: {row}", placed=False)
        last = number == len(names)
        if _place(row, step) is None and if_exists:
            return None
        if _place(row, step) is None and last:
            refuse("COLUMN_NOT_FOUND", f"Field '{names[0]}' does not exist")
        if last and _place(row, name) is not None:
            refuse("COLUMN_ALREADY_EXISTS", f"Field '{name}' already exists")
        row = _found(refuse, row, step)
    return RenameField(_own_names(column, names), name)


def retyped(refuse: Refuse, column: ColumnMetadata, names: Sequence[str], kind: Type) -> SetFieldType:
    """Give a field another type."""
    row = column.type
    for number, step in enumerate(names[1:], 2):
        container = row
        if row.base == "array":
            row = _element(refuse, row, step)
        elif row.base == "map":
            if step not in {"key", "value"}:
                refuse(
                    "NOT_SUPPORTED", f"MAP type should be denoted by 'key' or 'value' in the path; found '{step}'", placed=False
                )
            row = row.parameters[step == "value"]
        elif row.base == "row":
            row = _found(refuse, row, step)
        else:
            refuse("NOT_SUPPORTED", f"Unsupported type: {row}", placed=False)
        if number == len(names) and container.base != "row":
            refuse("COLUMN_NOT_FOUND", f"Field path [{', '.join(names)}] does not point to row field")
    return SetFieldType(_own_names(column, names), kind)


def _element(refuse: Refuse, array: Type, step: str) -> Type:
    if step != "element":
        refuse("NOT_SUPPORTED", f"ARRAY type should be denoted by 'element' in the path; found '{step}'", placed=False)
    element: Type = array.parameters[0]
    return element


def _place(row: Type, name: str) -> int | None:
    """Return the place of a field among those of a row, whatever the case of its letters."""
    return next((place for place, field in enumerate(row.fields) if field is not None and field.lower() == name), None)


def _found(refuse: Refuse, row: Type, name: str) -> Type:
    """Return the type of a field."""
    place = _place(row, name)
    if place is None:
        refuse("COLUMN_NOT_FOUND", f"Field '{name}' does not exist within {row}")
    kind: Type = row.parameters[place]
    return kind


def _own_names(column: ColumnMetadata, names: Sequence[str]) -> tuple[str, ...]:
    """Return a way that is there with the letters that the names of fields have."""
    kind, path = column.type, [column.name]
    for name in names[1:]:
        place = _place(kind, name) if kind.base == "row" else int(name == "value")
        path.append((kind.fields[place or 0] or name) if kind.base == "row" else name)
        kind = kind.parameters[place or 0]
    return tuple(path)
