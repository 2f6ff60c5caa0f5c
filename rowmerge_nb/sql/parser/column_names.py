"""Columns and tables in hints: names as they are stored, ready to be pasted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.names import nearest, quoted_where_needed
from rowmerge_nb.sql.parser.tokens import RESERVED

if TYPE_CHECKING:
    from collections.abc import Iterable


def column_in_sql(name: str, qualifier: str | None = None) -> str:
    """Return a column as a statement names it.

    >>> print(column_in_sql("Customer ID ", "s"))
    s."Customer ID "
    """
    column = quoted_where_needed(name, RESERVED)
    return column if qualifier is None else f"{quoted_where_needed(qualifier, RESERVED)}.{column}"


def name_in_sql(parts: Iterable[str]) -> str:
    """Return the name of a table as a statement names it.

    >>> name_in_sql(["lake", "my table"])
    'lake."my table"'
    """
    return ".".join(column_in_sql(part) for part in parts)


def nearest_table(name: str, tables: Iterable[str]) -> str | None:
    """Return the suggestion of a table, or None without a similar one.

    >>> nearest_table("the new", ["the news"]), nearest_table("acounts", ["accounts"])
    ('Did you mean "the news"?', "Did you mean 'accounts'?")
    """
    near = nearest(name, tables)
    return None if near is None else offer(column_in_sql(near))


def offer(column: str) -> str:
    """Return the question whether this column of SQL was meant; names in double quotes need no
    other quotes.

    >>> offer("t.address"), offer('t."E-Mail"')
    ("Did you mean 't.address'?", 'Did you mean t."E-Mail"?')
    """
    return f"Did you mean {column}?" if '"' in column else f"Did you mean '{column}'?"


def nearest_column(name: str, columns: Iterable[str]) -> str | None:
    """Return the suggestion of a table's column, or None without a similar one.

    >>> nearest_column("email", ["Name", "E-Mail"])
    'Did you mean "E-Mail"?'
    """
    by_name = {column.lower(): column for column in columns}
    near = nearest(name.lower(), by_name, cutoff=0.5)
    return None if near is None else offer(column_in_sql(by_name[near]))


def column_list(columns: Iterable[str]) -> str:
    """Return columns as a statement lists them.

    >>> column_list(["id", "E-Mail"])
    'id, "E-Mail"'
    """
    return ", ".join(column_in_sql(column) for column in columns)
