"""Validation of arguments that programs pass to a connector."""

from __future__ import annotations

from typing import Any

from rowmerge_nb.base.arguments import checked_name
from rowmerge_nb.spi import SchemaTableName


def checked_table_name(schema: Any, table: Any) -> SchemaTableName:
    """Return a table's name in lower case, or raise INVALID_ARGUMENTS.

    >>> str(checked_table_name("Default", "T"))
    'default.t'
    >>> checked_table_name("default", " ")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: INVALID_ARGUMENTS: name = ' ' is not possible. Give the name of a table, a text that is not blank.
    """
    return SchemaTableName(
        checked_name(schema, "schema", "schema").lower(),
        checked_name(table, "name", "table").lower(),
    )


def is_number(value: Any) -> bool:
    """Return whether a value is a non-negative integer.

    >>> [is_number(value) for value in (0, -5, True, "x")]
    [True, False, False, False]
    """
    return type(value) is int and value >= 0


def is_names(value: Any) -> bool:
    """Return whether a value is a list of names, rather than a string.

    >>> [is_names(value) for value in (["a", "b"], (), "ab", [""], 5)]
    [True, True, False, False, False]
    """
    return isinstance(value, list | tuple) and all(
        isinstance(name, str) and name.strip() for name in value
    )
