"""The rows of ``information_schema``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.information_schema import INFORMATION_SCHEMA, TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rowmerge_nb.engine.catalog.views import Views
    from rowmerge_nb.spi.handles import ConnectorSession
    from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorMetadata, ConnectorTableMetadata

Row = tuple[Any, ...]


def information_rows(
    table: str, catalog: str, metadata: ConnectorMetadata, session: ConnectorSession, views: Views
) -> pa.Table:
    rows = list(_MAKERS[table](_CatalogView(catalog, metadata, session, views)))
    columns = TABLES[table]
    arrays = [
        pa.array([row[position] for row in rows], column.type.arrow)
        for position, column in enumerate(columns)
    ]
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


class _CatalogView:
    def __init__(
        self, name: str, metadata: ConnectorMetadata, session: ConnectorSession, views: Views
    ) -> None:
        self.name, self._metadata, self._session, self._views = name, metadata, session, views

    def schemas(self) -> Sequence[str]:
        return sorted({*self._metadata.list_schemas(self._session), INFORMATION_SCHEMA})

    def relations(self) -> Iterator[tuple[SchemaTableName, str]]:
        for table in TABLES:
            yield SchemaTableName(INFORMATION_SCHEMA, table), "BASE TABLE"
        for name in self._metadata.list_tables(self._session):
            yield name, "BASE TABLE"
        for name in self._views.names(self.name, self._metadata, self._session):
            yield name, "VIEW"

    def columns_of(self, name: SchemaTableName, table_type: str) -> Sequence[ColumnMetadata]:
        if name.schema == INFORMATION_SCHEMA:
            return TABLES[name.table]
        if table_type == "VIEW":
            view = self._views.get(self.name, self._metadata, self._session, name)
            return () if view is None else view.columns
        table_metadata = self._known(name)
        return () if table_metadata is None else table_metadata.columns

    def _known(self, name: SchemaTableName) -> ConnectorTableMetadata | None:
        try:
            handle = self._metadata.get_table_handle(self._session, name)
            return (
                None if handle is None else self._metadata.get_table_metadata(self._session, handle)
            )
        except RowMergeError:
            # As in Trino, an unreadable table does not hide the others; a statement on it reports
            # the error.
            return None

    def _schemata(self) -> Iterator[Row]:
        for schema in self.schemas():
            yield self.name, schema

    def _tables(self) -> Iterator[Row]:
        for name, relation_kind in self.relations():
            yield self.name, name.schema, name.table, relation_kind

    def _columns(self) -> Iterator[Row]:
        for name, relation_kind in self.relations():
            for position, column in enumerate(self.columns_of(name, relation_kind), 1):
                nullable = "YES" if column.nullable else "NO"
                head = (self.name, name.schema, name.table, column.name.lower())
                yield *head, position, column.default, nullable, str(column.type)

    def _definitions(self) -> Iterator[Row]:
        for name in self._views.names(self.name, self._metadata, self._session):
            view = self._views.get(self.name, self._metadata, self._session, name)
            if view is not None:
                yield self.name, name.schema, name.table, view.original_sql

    @classmethod
    def makers(cls) -> Mapping[str, Callable[[_CatalogView], Iterator[Row]]]:
        return {
            "columns": cls._columns,
            "schemata": cls._schemata,
            "tables": cls._tables,
            "views": cls._definitions,
        }


_MAKERS: Final = _CatalogView.makers()
