"""The tables and views of all catalogs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import RowMergeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rowmerge_nb.engine.catalog.transaction import StatementTransaction
    from rowmerge_nb.engine.catalog.views import Views
    from rowmerge_nb.spi.connector import Connector


class TableInfo(tuple[str, str, tuple[str, ...], int | None, str]):
    """A row of `Engine.tables`: qualified name, type of store, columns, rows if known, paradigm."""

    __slots__ = ()


def list_tables(
    connectors: Mapping[str, Connector], views: Views, transaction: StatementTransaction
) -> list[TableInfo]:
    infos = []
    session = transaction.session
    for catalog, connector in sorted(connectors.items()):
        metadata = transaction.metadata(catalog)
        for name in metadata.list_tables(session):
            try:
                handle = metadata.get_table_handle(session, name)
            except RowMergeError:
                # An unreadable table does not hide the others; a statement on it reports the error.
                infos.append(TableInfo((f"{catalog}.{name}", connector.name, (), None, "")))
                continue
            if handle is None:
                continue
            table_metadata = metadata.get_table_metadata(session, handle)
            columns = tuple(
                f"{c.name} {c.type}{'' if c.nullable else ' not null'}"
                for c in table_metadata.columns
            )
            try:
                paradigm = metadata.get_row_change_paradigm(session, handle).name
            except RowMergeError:
                paradigm = ""
            rows = metadata.row_count(session, handle)
            infos.append(TableInfo((f"{catalog}.{name}", connector.name, columns, rows, paradigm)))
        for name in views.names(catalog, metadata, session):
            view = views.get(catalog, metadata, session, name)
            columns = tuple(f"{c.name} {c.type}" for c in view.columns) if view is not None else ()
            infos.append(TableInfo((f"{catalog}.{name}", "view", columns, None, "")))
    return infos
