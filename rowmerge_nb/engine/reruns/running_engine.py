"""What reruns need of an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    import pyarrow as pa

    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.api.statement_options import Options
    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.observers.user_observers import ObserverRegistry
    from rowmerge_nb.engine.sessions.runner import RowReader
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.spi.metadata import ConnectorTableMetadata
    from rowmerge_nb.trace.trace import Trace


class RunningEngine(Protocol):
    """The engine of a statement; its methods are those of `rowmerge_nb.engine.engine.Engine`."""

    options: Options

    def run(self, sql: str, **options: Any) -> Result: ...

    def look(
        self,
        sql: str,
        options: Options,
        versions: Mapping[TableName, ConnectorTableVersion],
        look: RowReader,
    ) -> Trace:
        """Read joined rows of a statement, and return them in a trace."""

    def table(self, name: str, version: int | None = None) -> pa.Table: ...

    def table_metadata(
        self, catalog: str, schema: str, table: str
    ) -> ConnectorTableMetadata | None:
        """Return the columns of a table; None if it does not exist."""

    def full_name(self, name: str) -> TableName: ...

    def with_copies(
        self, connectors: Mapping[str, Connector], copies: Mapping[TableName, TableName]
    ) -> Self:
        """Return an engine in which some names mean other tables."""

    def apart(
        self, copies: Mapping[TableName, TableName], observers: ObserverRegistry | None = None
    ) -> Self:
        """Return an engine with copies in place of tables, whose changes this one cannot undo."""
