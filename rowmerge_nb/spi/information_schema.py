"""The schema ``information_schema`` of every catalog; the engine computes its rows."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.types import BIGINT, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Mapping

INFORMATION_SCHEMA: Final = "information_schema"


def _columns(*names: str) -> tuple[ColumnMetadata, ...]:
    return tuple(
        ColumnMetadata(name, BIGINT if name == "ordinal_position" else VARCHAR) for name in names
    )


TABLES: Final[Mapping[str, tuple[ColumnMetadata, ...]]] = MappingProxyType(
    {
        "columns": _columns(
            "table_catalog",
            "table_schema",
            "table_name",
            "column_name",
            "ordinal_position",
            "column_default",
            "is_nullable",
            "data_type",
        ),
        "schemata": _columns("catalog_name", "schema_name"),
        "tables": _columns("table_catalog", "table_schema", "table_name", "table_type"),
        "views": _columns("table_catalog", "table_schema", "table_name", "view_definition"),
    }
)
"""Its tables and their columns, as Trino has them.

>>> [column.name for column in TABLES["schemata"]]
['catalog_name', 'schema_name']
"""

TABLES_OF_ROLES: Final = frozenset(
    ["applicable_roles", "enabled_roles", "roles", "table_privileges"]
)
"""Tables of this schema that only Trino has."""
