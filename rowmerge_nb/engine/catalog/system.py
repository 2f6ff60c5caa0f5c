"""The catalog ``system``: what the engine knows of all its catalogs, as tables that can be read and not changed."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pyarrow as pa

from rowmerge_nb.engine.catalog.information_schema import CatalogView
from rowmerge_nb.errors import ConnectorError
from rowmerge_nb.spi.connector import Connector
from rowmerge_nb.spi.handles import ConnectorTableHandle, SchemaTableName
from rowmerge_nb.spi.metadata import ConnectorMetadata, ConnectorTableMetadata, SystemTable
from rowmerge_nb.spi.procedures import Procedure, ProcedureArgument
from rowmerge_nb.spi.system_tables import SYSTEM_TABLES
from rowmerge_nb.spi.types import VARCHAR, Type

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowmerge_nb.engine.catalog.transaction import StatementTransaction
    from rowmerge_nb.engine.catalog.views import Views
    from rowmerge_nb.spi.handles import ConnectorSession, ConnectorTransactionHandle
    from rowmerge_nb.spi.page_source import ConnectorPageSourceProvider, ConnectorSplitManager

Row = tuple[Any, ...]


def system_table(
    name: SchemaTableName, connectors: Mapping[str, Connector], transaction: StatementTransaction, views: Views
) -> SystemTable | None:
    """Give one of the tables with its rows, as a statement sees the catalogs; None if there is none of that name.

    Args:
        name: the schema and the table.
        connectors: the engine's catalogs.
        transaction: the statement's transaction.
        views: the views of all catalogs.
    """
    columns = SYSTEM_TABLES.get(name)
    if columns is None:
        return None
    make = _MAKERS.get(str(name))
    rows = [] if make is None else list(make(_Catalogs(connectors, transaction, views)))
    arrays = [pa.array([row[place] for row in rows], column.type.arrow) for place, column in enumerate(columns)]
    return SystemTable(columns, pa.Table.from_arrays(arrays, names=[column.name for column in columns]))


@dataclass(frozen=True)
class SystemTableHandle(ConnectorTableHandle):
    """One of its tables."""

    name: SchemaTableName


class SystemMetadata(ConnectorMetadata):
    """Which tables there are; whoever reads one asks `system_table`."""

    def list_schemas(self, session: ConnectorSession) -> Sequence[str]:
        """Give the names of the schemas."""
        return sorted({name.schema for name in SYSTEM_TABLES})

    def schema_exists(self, session: ConnectorSession, schema: str) -> bool:
        """Tell whether there is such a schema."""
        return schema in self.list_schemas(session)

    def list_tables(self, session: ConnectorSession) -> Sequence[SchemaTableName]:
        """Give the names of the tables."""
        return list(SYSTEM_TABLES)

    def get_table_handle(self, session: ConnectorSession, name: SchemaTableName) -> SystemTableHandle | None:
        """Give the handle of a table."""
        return SystemTableHandle(name) if name in SYSTEM_TABLES else None

    def get_table_metadata(self, session: ConnectorSession, table_handle: ConnectorTableHandle) -> ConnectorTableMetadata:
        """Give the columns of a table."""
        assert isinstance(table_handle, SystemTableHandle)
        return ConnectorTableMetadata(table_handle.name, SYSTEM_TABLES[table_handle.name])


class SystemConnector(Connector):
    """The connector of the catalog ``system``."""

    name = "system"
    checked_after_commit = False

    def get_metadata(self, transaction_handle: ConnectorTransactionHandle) -> SystemMetadata:
        """Give the metadata, which is the same for all transactions."""
        return SystemMetadata()

    def get_split_manager(self) -> ConnectorSplitManager:
        """Refuse: the rows are made by the driver. Raises ConnectorError NOT_SUPPORTED."""
        _no_scan()

    def get_page_source_provider(self) -> ConnectorPageSourceProvider:
        """Refuse likewise. Raises ConnectorError NOT_SUPPORTED."""
        _no_scan()

    def get_procedures(self) -> Sequence[Procedure]:
        """Give ``runtime.kill_query``: statements run one after the other, so that there is never another one to end."""
        arguments = (ProcedureArgument("query_id", VARCHAR), ProcedureArgument("message", VARCHAR, required=False))
        return (Procedure("runtime", "kill_query", arguments, _kill_query),)


def _no_scan() -> NoReturn:
    raise ConnectorError("The tables of the catalog 'system' have no splits")


def _kill_query(session: ConnectorSession, query_id: str, message: str | None) -> None:
    del session, message
    raise ConnectorError(
        f"Target query not found: {query_id}", code="NOT_FOUND", hint="Interrupt the kernel to end a statement that runs."
    )


class _Catalogs:
    """All catalogs, as a transaction sees them."""

    def __init__(self, connectors: Mapping[str, Connector], transaction: StatementTransaction, views: Views) -> None:
        self._connectors, self._transaction, self._views = connectors, transaction, views

    def catalogs(self) -> Iterator[Row]:
        for name, connector in sorted(self._connectors.items()):
            yield name, name, connector.name

    def names(self) -> Iterator[Row]:
        for name in sorted(self._connectors):
            yield (name,)

    def schemas(self) -> Iterator[Row]:
        for catalog in self._all():
            for schema in catalog.schemas():
                yield schema, catalog.name

    def comments(self) -> Iterator[Row]:
        for catalog in self._all():
            for name, kind in catalog.relations():
                comment = catalog.comment(name, kind)
                yield catalog.name, name.schema, name.table, comment

    def table_properties(self) -> Iterator[Row]:
        for name, connector in sorted(self._connectors.items()):
            for key, meaning in sorted(connector.get_table_properties().items()):
                # What type a property has connectors do not say.
                yield name, key, "", None, str(meaning)

    def tables(self) -> Iterator[Row]:
        for catalog in self._all():
            for name, kind in catalog.relations():
                shown = "VIEW" if kind == "VIEW" else "TABLE"
                yield catalog.name, name.schema, name.table, shown, *(None,) * 6

    def columns(self) -> Iterator[Row]:
        for catalog in self._all():
            for name, kind in catalog.relations():
                for place, column in enumerate(catalog.columns_of(name, kind), 1):
                    number, size, digits, radix, octets = _described(column.type)
                    head = (catalog.name, name.schema, name.table, column.name.lower(), number, str(column.type), size, 0)
                    nullable = "YES" if column.nullable else "NO"
                    described = (digits, radix, int(column.nullable), column.comment, column.default, None, None)
                    yield *head, *described, octets, place, nullable, *(None,) * 6

    def _all(self) -> Iterator[CatalogView]:
        for name in sorted(self._connectors):
            yield CatalogView(name, self._transaction.metadata(name), self._transaction.session, self._views)


def _table_types(_: _Catalogs) -> Iterator[Row]:
    yield from (("TABLE",), ("VIEW",))


def _types(_: _Catalogs) -> Iterator[Row]:
    """Give all types; of those with parameters JDBC is told nothing but the name."""
    whole = (
        "boolean",
        "tinyint",
        "smallint",
        "integer",
        "bigint",
        "real",
        "double",
        "varbinary",
        "date",
        "json",
        "uuid",
        "unknown",
    )
    for name in (*whole, "interval day to second", "interval year to month"):
        number, size, _digits, radix, _octets = _described(Type(name))
        yield name, number, size, *(None,) * 3, 1, False, 3, None, False, None, None, 0, 0, None, None, radix
    for name in (
        "varchar",
        "char",
        "decimal",
        "time",
        "timestamp",
        "timestamp with time zone",
        "array",
        "map",
        "row",
        "function",
    ):
        number = _NUMBERS["array"] if name == "array" else _OTHER
        yield name, number, *(None,) * 4, 1, False, 0, None, False, None, None, 0, 0, *(None,) * 3


def _nodes(catalogs: _Catalogs) -> Iterator[Row]:
    del catalogs
    yield platform.node() or "localhost", "", version("rowmerge_nb"), True, "active"


_MAKERS: Final = {
    "jdbc.catalogs": _Catalogs.names,
    "jdbc.columns": _Catalogs.columns,
    "jdbc.schemas": _Catalogs.schemas,
    "jdbc.table_types": _table_types,
    "jdbc.tables": _Catalogs.tables,
    "jdbc.types": _types,
    "metadata.catalogs": _Catalogs.catalogs,
    "metadata.table_comments": _Catalogs.comments,
    "metadata.table_properties": _Catalogs.table_properties,
    "runtime.nodes": _nodes,
}
"""What makes the rows of each table; the others have none."""

_OTHER: Final = 2000
_NUMBERS: Final = {
    "boolean": 16,
    "tinyint": -6,
    "smallint": 5,
    "integer": 4,
    "bigint": -5,
    "real": 7,
    "double": 8,
    "decimal": 3,
    "varchar": 12,
    "char": 1,
    "varbinary": -3,
    "date": 91,
    "time": 92,
    "timestamp": 93,
    "timestamp with time zone": 2014,
    "array": 2003,
}
"""JDBC's numbers of types; all others are Java objects to it."""
_SIZES: Final = {"tinyint": 3, "smallint": 5, "integer": 10, "bigint": 19, "real": 24, "double": 53, "date": 14}
_CLOCKS: Final = {"time": 8, "timestamp": 21, "timestamp with time zone": 55}
"""How many characters a moment without parts of a second has to JDBC."""
_LONGEST: Final = 2_147_483_647


def _described(kind: Type) -> tuple[int, int | None, int | None, int | None, int | None]:
    """Give what JDBC wants to know of a type: its number, its size, its digits after the point, the base that it counts in, its bytes.

    >>> _described(Type("decimal", (10, 2))), _described(Type("timestamp", (6,)))
    ((3, 10, 2, 10, None), (93, 28, 6, None, None))
    """
    number, size, digits, octets = _NUMBERS.get(kind.base, _OTHER), _SIZES.get(kind.base), None, None
    if kind.base == "decimal":
        size, digits = int(str(kind.parameters[0])), int(str(kind.parameters[1]))
    elif kind.base in {"varchar", "char", "varbinary"}:
        size = octets = int(str(kind.parameters[0])) if kind.parameters else _LONGEST
    elif kind.base in _CLOCKS:
        digits = int(str(kind.parameters[0])) if kind.parameters else 6
        size = _CLOCKS[kind.base] + (digits + 1 if digits else 0)
    radix = 2 if kind.base in {"real", "double"} else 10 if size is not None and number in {-6, 5, 4, -5, 3} else None
    return number, size, digits, radix, octets
