"""Rows picked by the number of a source row, or by values of columns: what ``result.why`` and ``result.near`` take."""

from __future__ import annotations

from contextlib import suppress
from operator import index
from typing import TYPE_CHECKING, Any

from rowmerge_nb.errors import RowMergeError, checked
from rowmerge_nb.names import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["any_has_values", "check_columns", "check_source_row", "has_values", "in_words"]


def check_source_row(source_row: Any) -> None:
    """See that it is the number of a row, or None for any.

    Raises:
        RowMergeError: INVALID_ARGUMENTS if it is something else.
    """
    checked(source_row, "source_row", _is_row, "the number of a row of the source, from 0")


def _is_row(value: Any) -> bool:
    return value is None or (hasattr(value, "__index__") and not isinstance(value, bool) and index(value) >= 0)


def check_columns(columns: Iterable[str], sides: Iterable[Mapping[str, Any] | None]) -> None:
    """See that one of the rows has each of these columns, in whatever case.

    Raises:
        RowMergeError: INVALID_ARGUMENTS for a name that none has, with the nearest one.
    """
    names = {name.lower(): name for side in sides for name in side or {}}
    if unknown := [name for name in columns if name.lower() not in names]:
        msg = f"Neither side has a column '{unknown[0]}'"
        hint = did_you_mean(unknown[0], list(names)) or f"There are: {', '.join(sorted(names.values()))}."
        raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint=hint)


def has_values(side: Mapping[str, Any], columns: Mapping[str, Any]) -> bool:
    """Tell whether a row has all these values.

    >>> has_values({"Id": 7, "name": "Ed"}, {"id": "7"}), has_values({"Id": 7}, {"name": "Ed"})
    (True, False)
    """
    values = {name.lower(): value for name, value in side.items()}
    return all(name.lower() in values and _same(values[name.lower()], value) for name, value in columns.items())


def any_has_values(rows: Iterable[Mapping[str, Any] | None], columns: Mapping[str, Any]) -> bool:
    """Tell whether one of some rows has all these values."""
    return any(has_values(row, columns) for row in rows if row)


def _same(value: Any, wanted: Any) -> bool:
    with suppress(Exception):
        # Somebody else's objects compare as they like.
        if bool(value == wanted):
            return True
    return value is not None and wanted is not None and str(value) == str(wanted)


def in_words(source_row: int | None, columns: Mapping[str, Any]) -> str:
    """Say what was looked for.

    >>> in_words(3, {"name": "Ed"})
    "source row 3 and name = 'Ed'"
    """
    wanted = [f"source row {source_row}"] if source_row is not None else []
    return " and ".join([*wanted, *(f"{name} = {value!r}" for name, value in columns.items())])
