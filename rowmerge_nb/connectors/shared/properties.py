"""Checks of table properties and columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rowmerge_nb.base.errors import AnalysisError
from rowmerge_nb.spi import ColumnMetadata, ConnectorTableMetadata


def invalid_property(name: str, message: str, hint: str) -> AnalysisError:
    return AnalysisError(message, code="INVALID_TABLE_PROPERTY", properties=(name,), hint=hint)


def property_text(value: Any) -> str:
    """Format a property as Java does.

    >>> property_text(True), property_text(4)
    ('true', '4')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def listed_names(properties: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the names that a property lists, or raise INVALID_TABLE_PROPERTY; a single name may be
    a string.

    >>> listed_names({"bucketed_by": ["a", "b"]}, "bucketed_by"), listed_names({"primary_key": "id"}, "primary_key"), listed_names({}, "primary_key")
    (('a', 'b'), ('id',), ())
    >>> listed_names({"primary_key": 5}, "primary_key")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.AnalysisError: INVALID_TABLE_PROPERTY: Invalid value for table property 'primary_key': Cannot convert [5] to \
    array(varchar). It lists texts: ARRAY['...'].
    """
    value = properties.get(name)
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
        raise invalid_property(
            name,
            f"Invalid value for table property '{name}': Cannot convert [{value}] to"
            " array(varchar)",
            "It lists texts: ARRAY['...'].",
        )
    return tuple(names)


def require_known(properties: Collection[str], candidates: Collection[str], subject: str) -> None:
    """Raise INVALID_TABLE_PROPERTY for an unknown property.

    >>> require_known(["x"], ["format"], "Catalog 'hive'")
    Traceback (most recent call last):
    rowmerge_nb.base.errors.AnalysisError: INVALID_TABLE_PROPERTY: Catalog 'hive' table property 'x' does not exist. There is: format.
    """
    for name in properties:
        if name not in candidates:
            raise invalid_property(
                name,
                f"{subject} table property '{name}' does not exist",
                f"There {'is' if len(candidates) == 1 else 'are'}: {', '.join(candidates)}.",
            )


def require_columns(metadata: ConnectorTableMetadata) -> None:
    if not metadata.columns:
        raise AnalysisError.unsupported(
            f"Table '{metadata.name}' has no columns",
            hint="Give it at least one column.",
        )


def spelled_names(
    properties: Mapping[str, Any], name: str, columns: Sequence[ColumnMetadata]
) -> tuple[str, ...]:
    """Return the columns that a property lists, as the table spells them; INVALID_TABLE_PROPERTY
    for a missing one.
    """
    spellings = {column.name.lower(): column.name for column in columns}
    names = listed_names(properties, name)
    missing = [column for column in names if column.lower() not in spellings]
    if missing:
        raise wrong_columns(
            name, f"names column '{missing[0]}', which the table does not have", columns
        )
    return tuple(spellings[column.lower()] for column in names)


def wrong_columns(name: str, wrong: str, columns: Sequence[ColumnMetadata]) -> AnalysisError:
    return invalid_property(
        name,
        f"Table property '{name}' {wrong}",
        f"Its columns are: {', '.join(column.name for column in columns)}.",
    )
