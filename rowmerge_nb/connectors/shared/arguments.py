"""What programs hand to a connector: names, numbers."""

from __future__ import annotations

from typing import Any

from rowmerge_nb.base.errors import checked_name
from rowmerge_nb.spi.handles import SchemaTableName


def checked_table_name(schema: Any, table: Any) -> SchemaTableName:
    """Return a table's name as it is compared.

    Raises:
        RowMergeError: INVALID_ARGUMENTS for what is no name.

    >>> str(checked_table_name("Default", "T"))
    'default.t'
    >>> checked_table_name("default", " ")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.RowMergeError: INVALID_ARGUMENTS: name = ' ' is not possible. Give the name of a table, a text that is not blank.
    """
    return SchemaTableName(checked_name(schema, "schema", "schema").lower(), checked_name(table, "name", "table").lower())


def is_number(given: Any) -> bool:
    """Return whether a value is a number that counts or names something: an integer from 0 on.

    >>> [is_number(given) for given in (0, -5, True, "x")]
    [True, False, False, False]
    """
    return type(given) is int and given >= 0


def is_names(given: Any) -> bool:
    """Return whether a value is a list of names; a text is none, though Python would take it for one of letters.

    >>> [is_names(given) for given in (["a", "b"], (), "ab", [""], 5)]
    [True, True, False, False, False]
    """
    return isinstance(given, list | tuple) and all(isinstance(name, str) and name.strip() for name in given)
