"""The target of a statement, before and after it, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from rowmerge_nb.spi.output import ConnectorOutputMetadata


@dataclass(frozen=True, kw_only=True)
class TargetRecord:
    """The table, or other object, that a statement changes; all fields are empty without one.

    Args:
        alias: its name in the statement; ``""`` if that names no rows of it.
        branch: the branch that it changes; ``""`` for the table itself.
        unread_reason: why the committed version cannot be read.
        added_columns: names and types of columns that the statement added, or would have added.
        type_changes: path, former type and new type of columns and fields; a new field has no
            former type.
        filled_columns: names of columns whose NULL in a new row the store replaces by its own value.
        output: the written files and statements; None if not reported, or unfinished.
    """

    name: str = ""
    qualified_name: str = ""
    name_parts: tuple[str, ...] = ()
    alias: str = ""
    catalog: str = ""
    connector: str = ""
    branch: str = ""
    rows_before: int | None = None
    rows_after: int | None = None
    unread_reason: str = ""
    version_before: int | str | None = None
    version_after: int | str | None = None
    added_columns: tuple[tuple[str, str], ...] = ()
    type_changes: tuple[tuple[str, str, str], ...] = ()
    filled_columns: tuple[str, ...] = ()
    output: ConnectorOutputMetadata | None = None
