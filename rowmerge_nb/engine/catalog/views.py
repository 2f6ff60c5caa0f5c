"""Views of all catalogs: those that a connector stores, and those that the engine keeps for connectors that store none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.handles import ConnectorSession, SchemaTableName
    from rowmerge_nb.spi.metadata import ConnectorMetadata, ConnectorViewDefinition


class Views:
    """Views by catalog. What the engine keeps itself lives as long as the engine, and no transaction guards it."""

    def __init__(self) -> None:
        """Begin without views."""
        self._kept: dict[str, dict[SchemaTableName, ConnectorViewDefinition]] = {}

    def get(
        self, catalog: str, metadata: ConnectorMetadata, session: ConnectorSession, name: SchemaTableName
    ) -> ConnectorViewDefinition | None:
        """Return the view of that name, or None."""
        return metadata.get_view(session, name) if metadata.stores_views else self._kept.get(catalog, {}).get(name)

    def names(self, catalog: str, metadata: ConnectorMetadata, session: ConnectorSession) -> Sequence[SchemaTableName]:
        """Return the names of a catalog's views."""
        return metadata.list_views(session) if metadata.stores_views else sorted(self._kept.get(catalog, {}), key=str)

    def create(self, catalog: str, metadata: ConnectorMetadata, session: ConnectorSession, view: ConnectorViewDefinition) -> None:
        """Store a view, in place of one of the same name."""
        if metadata.stores_views:
            metadata.create_view(session, view)
        else:
            self._kept.setdefault(catalog, {})[view.name] = view

    def rename(
        self,
        catalog: str,
        metadata: ConnectorMetadata,
        session: ConnectorSession,
        name: SchemaTableName,
        view: ConnectorViewDefinition,
    ) -> None:
        """Store a view under its new name, and remove it from the one that it had."""
        self.create(catalog, metadata, session, view)
        self.drop(catalog, metadata, session, name)

    def drop(self, catalog: str, metadata: ConnectorMetadata, session: ConnectorSession, name: SchemaTableName) -> None:
        """Remove a view."""
        if metadata.stores_views:
            metadata.drop_view(session, name)
        else:
            self._kept.get(catalog, {}).pop(name, None)
