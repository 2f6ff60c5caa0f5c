"""ALTER TABLE on fields of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Protocol

from rowmerge_nb.spi.alterations import AddField, DropField, RenameField, SetFieldType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.types import Type


class Refuse(Protocol):
    """Raises an error; without ``has_position`` Trino reports no position."""

    def __call__(self, code: str, message: str, *, has_position: bool = True) -> NoReturn: ...


def added(
    refuse: Refuse,
    column: ColumnMetadata,
    names: Sequence[str],
    name: str,
    field_type: Type,
    *,
    if_not_exists: bool,
) -> AddField | None:
    row = column.type
    for step in names[1:]:
        if row.base == "array":
            row = _element(refuse, row, step)
        elif row.base == "row":
            row = _field_type(refuse, row, step)
        else:
            _refuse_type(refuse, row)
    if row.base != "row":
        _refuse_type(refuse, row)
    exists = _field_index(row, name) is not None
    if exists and not if_not_exists:
        refuse("COLUMN_ALREADY_EXISTS", f"Field '{name}' already exists")
    return None if exists else AddField(_own_names(column, names), name, field_type)


def dropped(
    refuse: Refuse, column: ColumnMetadata, names: Sequence[str], *, if_exists: bool
) -> DropField | None:
    """Drop a field; letter case matters."""
    row = column.type
    for number, step in enumerate(names, 1):
        last = number == len(names)
        if row.base == "array":
            row = _element(refuse, row, step)
            if last:
                _refuse_path(refuse, names)
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


def renamed(
    refuse: Refuse, column: ColumnMetadata, names: Sequence[str], name: str, *, if_exists: bool
) -> RenameField | None:
    row = column.type
    for number, step in enumerate(names[1:], 2):
        if row.base != "row":
            _refuse_type(refuse, row)
        last = number == len(names)
        if _field_index(row, step) is None and if_exists:
            return None
        if _field_index(row, step) is None and last:
            refuse("COLUMN_NOT_FOUND", f"Field '{names[0]}' does not exist")
        if last and _field_index(row, name) is not None:
            refuse("COLUMN_ALREADY_EXISTS", f"Field '{name}' already exists")
        row = _field_type(refuse, row, step)
    return RenameField(_own_names(column, names), name)


def retyped(
    refuse: Refuse, column: ColumnMetadata, names: Sequence[str], field_type: Type
) -> SetFieldType:
    row = column.type
    for number, step in enumerate(names[1:], 2):
        container = row
        if row.base == "array":
            row = _element(refuse, row, step)
        elif row.base == "map":
            if step not in {"key", "value"}:
                refuse(
                    "NOT_SUPPORTED",
                    f"MAP type should be denoted by 'key' or 'value' in the path; found '{step}'",
                    has_position=False,
                )
            row = row.parameters[step == "value"]
        elif row.base == "row":
            row = _field_type(refuse, row, step)
        else:
            _refuse_type(refuse, row)
        if number == len(names) and container.base != "row":
            _refuse_path(refuse, names)
    return SetFieldType(_own_names(column, names), field_type)


def _refuse_type(refuse: Refuse, row: Type) -> NoReturn:
    refuse("NOT_SUPPORTED", f"Unsupported type: {row}", has_position=False)


def _refuse_path(refuse: Refuse, names: Sequence[str]) -> NoReturn:
    refuse("COLUMN_NOT_FOUND", f"Field path [{', '.join(names)}] does not point to row field")


def _element(refuse: Refuse, array: Type, step: str) -> Type:
    if step != "element":
        refuse(
            "NOT_SUPPORTED",
            f"ARRAY type should be denoted by 'element' in the path; found '{step}'",
            has_position=False,
        )
    element: Type = array.parameters[0]
    return element


def _field_index(row: Type, name: str) -> int | None:
    return next(
        (
            index
            for index, field in enumerate(row.fields)
            if field is not None and field.lower() == name
        ),
        None,
    )


def _field_type(refuse: Refuse, row: Type, name: str) -> Type:
    index = _field_index(row, name)
    if index is None:
        refuse("COLUMN_NOT_FOUND", f"Field '{name}' does not exist within {row}")
    field_type: Type = row.parameters[index]
    return field_type


def _own_names(column: ColumnMetadata, names: Sequence[str]) -> tuple[str, ...]:
    sql_type, path = column.type, [column.name]
    for name in names[1:]:
        index = _field_index(sql_type, name) if sql_type.base == "row" else int(name == "value")
        path.append((sql_type.fields[index or 0] or name) if sql_type.base == "row" else name)
        sql_type = sql_type.parameters[index or 0]
    return tuple(path)
