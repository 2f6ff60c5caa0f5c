"""Views of all catalogs; the engine keeps those for connectors without views."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.handles import ConnectorSession, SchemaTableName
    from rowmerge_nb.spi.metadata import ConnectorMetadata, ConnectorViewDefinition


class Views:
    """Views by catalog.

    The engine's own views live as long as the engine, outside of transactions.
    """

    def __init__(self) -> None:
        self._views: dict[str, dict[SchemaTableName, ConnectorViewDefinition]] = {}

    def get(
        self,
        catalog: str,
        metadata: ConnectorMetadata,
        session: ConnectorSession,
        name: SchemaTableName,
    ) -> ConnectorViewDefinition | None:
        return (
            metadata.get_view(session, name)
            if metadata.stores_views
            else self._views.get(catalog, {}).get(name)
        )

    def names(
        self, catalog: str, metadata: ConnectorMetadata, session: ConnectorSession
    ) -> Sequence[SchemaTableName]:
        return (
            metadata.list_views(session)
            if metadata.stores_views
            else sorted(self._views.get(catalog, {}), key=str)
        )

    def create(
        self,
        catalog: str,
        metadata: ConnectorMetadata,
        session: ConnectorSession,
        view: ConnectorViewDefinition,
    ) -> None:
        if metadata.stores_views:
            metadata.create_view(session, view)
        else:
            self._views.setdefault(catalog, {})[view.name] = view

    def rename(
        self,
        catalog: str,
        metadata: ConnectorMetadata,
        session: ConnectorSession,
        name: SchemaTableName,
        view: ConnectorViewDefinition,
    ) -> None:
        self.create(catalog, metadata, session, view)
        self.drop(catalog, metadata, session, name)

    def drop(
        self,
        catalog: str,
        metadata: ConnectorMetadata,
        session: ConnectorSession,
        name: SchemaTableName,
    ) -> None:
        if metadata.stores_views:
            metadata.drop_view(session, name)
        else:
            self._views.get(catalog, {}).pop(name, None)
