"""The tables of the catalog ``system``, which tells of all catalogs: their names and columns, as Trino has them. The engine makes their rows."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.types import BIGINT, BOOLEAN, VARCHAR, parse_type

if TYPE_CHECKING:
    from collections.abc import Mapping

SYSTEM: Final = "system"
"""The catalog's name."""

_TYPES: Final = {"": VARCHAR, "n": BIGINT, "b": BOOLEAN, "t": parse_type("timestamp(6) with time zone")}
_PROPERTIES: Final = "catalog_name property_name default_value type description"
_ROWS: Final = f"""
jdbc.attributes | type_cat type_schem type_name attr_name data_type:n attr_type_name attr_size:n decimal_digits:n num_prec_radix:n nullable:n \
remarks attr_def sql_data_type:n sql_datetime_sub:n char_octet_length:n ordinal_position:n is_nullable scope_catalog scope_schema scope_table source_data_type:n
jdbc.catalogs | table_cat
jdbc.columns | table_cat table_schem table_name column_name data_type:n type_name column_size:n buffer_length:n decimal_digits:n num_prec_radix:n \
nullable:n remarks column_def sql_data_type:n sql_datetime_sub:n char_octet_length:n ordinal_position:n is_nullable scope_catalog scope_schema scope_table \
source_data_type:n is_autoincrement is_generatedcolumn
jdbc.procedure_columns | procedure_cat procedure_schem procedure_name column_name column_type:n data_type:n type_name precision:n length:n scale:n \
radix:n nullable:n remarks column_def sql_data_type:n sql_datetime_sub:n char_octet_length:n ordinal_position:n is_nullable specific_name
jdbc.procedures | procedure_cat procedure_schem procedure_name remarks procedure_type:n specific_name
jdbc.pseudo_columns | table_cat table_schem table_name column_name data_type:n column_size:n decimal_digits:n num_prec_radix:n column_usage remarks \
char_octet_length:n is_nullable:n
jdbc.schemas | table_schem table_catalog
jdbc.super_tables | table_cat table_schem table_name supertable_name
jdbc.super_types | type_cat type_schem type_name supertype_cat supertype_schem supertype_name
jdbc.table_types | table_type
jdbc.tables | table_cat table_schem table_name table_type remarks type_cat type_schem type_name self_referencing_col_name ref_generation
jdbc.types | type_name data_type:n precision:n literal_prefix literal_suffix create_params nullable:n case_sensitive:b searchable:n \
unsigned_attribute:b fixed_prec_scale:b auto_increment:b local_type_name minimum_scale:n maximum_scale:n sql_data_type:n sql_datetime_sub:n num_prec_radix:n
jdbc.udts | type_cat type_schem type_name class_name data_type remarks base_type
metadata.analyze_properties | {_PROPERTIES}
metadata.catalogs | catalog_name connector_id connector_name
metadata.column_properties | {_PROPERTIES}
metadata.materialized_view_properties | {_PROPERTIES}
metadata.materialized_views | catalog_name schema_name name storage_catalog storage_schema storage_table freshness last_fresh_time:t comment definition
metadata.schema_properties | {_PROPERTIES}
metadata.table_comments | catalog_name schema_name table_name comment
metadata.table_properties | {_PROPERTIES}
runtime.nodes | node_id http_uri node_version coordinator:b state
"""


def _read(rows: str) -> Mapping[SchemaTableName, tuple[ColumnMetadata, ...]]:
    tables = {}
    for row in rows.strip().splitlines():
        name, columns = row.split(" | ")
        pairs = (column.partition(":") for column in columns.split())
        tables[SchemaTableName(*name.split("."))] = tuple(ColumnMetadata(column, _TYPES[kind]) for column, _, kind in pairs)
    return MappingProxyType(tables)


SYSTEM_TABLES: Final = _read(_ROWS)
"""Its tables and their columns; those that tell of queries, tasks and transactions of a cluster are left out.

>>> [column.name for column in SYSTEM_TABLES[SchemaTableName("metadata", "catalogs")]]
['catalog_name', 'connector_id', 'connector_name']
"""
