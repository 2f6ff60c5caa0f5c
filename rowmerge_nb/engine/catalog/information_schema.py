"""The rows of a catalog's ``information_schema``: what the connector tells of its schemas, tables, columns and views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.errors import RowMergeError
from rowmerge_nb.spi.information_schema import INFORMATION_SCHEMA, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.engine.catalog.views import Views
    from rowmerge_nb.spi.handles import ConnectorSession, SchemaTableName
    from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorMetadata

__all__ = ["information_rows"]

Row = tuple[Any, ...]


def information_rows(table: str, catalog: str, metadata: ConnectorMetadata, session: ConnectorSession, views: Views) -> pa.Table:
    """Give the rows of one of its tables, as the statement's transaction sees the catalog.

    Args:
        table: which: a name of `rowmerge_nb.spi.information_schema.TABLES`.
        catalog: the catalog that it tells of.
        metadata: the catalog's metadata.
        session: the statement's session.
        views: the views of all catalogs.
    """
    told = _Catalog(catalog, metadata, session, views)
    rows = list({"columns": told.columns, "schemata": told.schemata, "tables": told.tables, "views": told.views}[table]())
    columns = TABLES[table]
    arrays = [pa.array([row[place] for row in rows], column.type.arrow) for place, column in enumerate(columns)]
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


class _Catalog:
    """One catalog, as a transaction sees it."""

    def __init__(self, catalog: str, metadata: ConnectorMetadata, session: ConnectorSession, views: Views) -> None:
        self._catalog, self._metadata, self._session, self._views = catalog, metadata, session, views

    def schemata(self) -> Iterator[Row]:
        for schema in sorted({*self._metadata.list_schemas(self._session), INFORMATION_SCHEMA}):
            yield self._catalog, schema

    def tables(self) -> Iterator[Row]:
        for table in TABLES:
            yield self._catalog, INFORMATION_SCHEMA, table, "BASE TABLE"
        for name in self._metadata.list_tables(self._session):
            yield self._catalog, name.schema, name.table, "BASE TABLE"
        for name in self._view_names():
            yield self._catalog, name.schema, name.table, "VIEW"

    def columns(self) -> Iterator[Row]:
        for table, columns in TABLES.items():
            yield from self._columns_of(INFORMATION_SCHEMA, table, columns)
        for name in self._metadata.list_tables(self._session):
            yield from self._columns_of(name.schema, name.table, self._known(name))
        for name in self._view_names():
            view = self._views.get(self._catalog, self._metadata, self._session, name)
            yield from self._columns_of(name.schema, name.table, () if view is None else view.columns)

    def views(self) -> Iterator[Row]:
        for name in self._view_names():
            view = self._views.get(self._catalog, self._metadata, self._session, name)
            if view is not None:
                yield self._catalog, name.schema, name.table, view.original_sql

    def _columns_of(self, schema: str, table: str, columns: Sequence[ColumnMetadata]) -> Iterator[Row]:
        for place, column in enumerate(columns, 1):
            nullable = "YES" if column.nullable else "NO"
            yield self._catalog, schema, table, column.name.lower(), place, column.default, nullable, str(column.type)

    def _known(self, name: SchemaTableName) -> Sequence[ColumnMetadata]:
        try:
            handle = self._metadata.get_table_handle(self._session, name)
            return () if handle is None else self._metadata.get_table_metadata(self._session, handle).columns
        except RowMergeError:
            # The other tables are told all the same, as in Trino; a statement on this one says what is wrong with it.
            return ()

    def _view_names(self) -> Sequence[SchemaTableName]:
        return self._views.names(self._catalog, self._metadata, self._session)
