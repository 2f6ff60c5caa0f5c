"""The schema that every catalog has besides its own: tables of its schemas, tables, columns and views. The engine makes their rows."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.types import BIGINT, VARCHAR

if TYPE_CHECKING:
    from collections.abc import Mapping

INFORMATION_SCHEMA: Final = "information_schema"


def _columns(*names: str) -> tuple[ColumnMetadata, ...]:
    return tuple(ColumnMetadata(name, BIGINT if name == "ordinal_position" else VARCHAR) for name in names)


TABLES: Final[Mapping[str, tuple[ColumnMetadata, ...]]] = MappingProxyType(
    {
        "applicable_roles": _columns("grantee", "grantee_type", "role_name", "is_grantable"),
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
        "enabled_roles": _columns("role_name"),
        "roles": _columns("role_name"),
        "schemata": _columns("catalog_name", "schema_name"),
        "table_privileges": _columns(
            "grantor",
            "grantor_type",
            "grantee",
            "grantee_type",
            "table_catalog",
            "table_schema",
            "table_name",
            "privilege_type",
            "is_grantable",
            "with_hierarchy",
        ),
        "tables": _columns("table_catalog", "table_schema", "table_name", "table_type"),
        "views": _columns("table_catalog", "table_schema", "table_name", "view_definition"),
    }
)
"""Its tables and their columns, as Trino has them; those about roles and privileges, which no store here has, are empty.

>>> [column.name for column in TABLES["schemata"]]
['catalog_name', 'schema_name']
"""
