"""Sessions of connectors, made by Trino's own classes from plain data."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.trino.host.jpype_library import jpype
from rowmerge_nb.connectors.trino.host.jvm import java_class, java_text
from rowmerge_nb.connectors.trino.host.versions import catalog_handle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rowmerge_nb.connectors.trino.host.jvm import JavaObject
    from rowmerge_nb.connectors.trino.host.versions import SpiVersion


class Sessions:
    """Builds ConnectorSessions; equal descriptions share one."""

    def __init__(self, catalog: str, properties: Iterable[JavaObject], version: SpiVersion) -> None:
        self._catalog = catalog
        self._handle = catalog_handle(catalog)
        self._names = java_class("java.util.LinkedHashMap")()
        for each in properties:
            self._names.put(each.getName(), each)
        self._manager = version.property_manager(self._handle, self._names)
        self._sessions: dict[str, JavaObject] = {}

    def session(self, description: Mapping[str, Any]) -> JavaObject:
        """Return the session of a description: user, query_id, start, time_zone and properties."""
        key = json.dumps(description, sort_keys=True)
        if key not in self._sessions:
            self._sessions = {**dict(list(self._sessions.items())[-20:])}
            self._sessions[key] = self._build(description)
        return self._sessions[key]

    def _build(self, description: Mapping[str, Any]) -> JavaObject:
        user = java_text(description.get("user") or "user")
        properties = java_class("java.util.HashMap")()
        for name, value in (description.get("properties") or {}).items():
            if not self._names.containsKey(java_text(name)):
                raise ConnectorError(
                    f"The connector has no session property {name}",
                    code="INVALID_SESSION_PROPERTY",
                    hint="Its session properties are: "
                    + (", ".join(sorted(str(key) for key in self._names.keySet())) or "none")
                    + ".",
                )
            text = str(value).lower() if isinstance(value, bool) else str(value)
            properties.put(java_text(name), java_text(text))
        identity = java_class("io.trino.spi.security.Identity").ofUser(user)
        builder = (
            java_class("io.trino.Session")
            .builder(self._manager)
            .setQueryId(
                java_class("io.trino.spi.QueryId")(
                    java_text(query_identifier(description.get("query_id") or "query"))
                )
            )
            .setIdentity(identity)
            .setSource(java_text("rowmerge_nb"))
            .setLocale(java_class("java.util.Locale").ENGLISH)
            .setTimeZoneKey(
                java_class("io.trino.spi.type.TimeZoneKey").getTimeZoneKey(
                    java_text(description.get("time_zone") or "UTC")
                )
            )
        )
        if hasattr(builder, "setOriginalIdentity"):
            builder = builder.setOriginalIdentity(identity)
        if description.get("start"):
            start = java_class("java.time.OffsetDateTime").parse(java_text(description["start"]))
            builder = builder.setStart(start.toInstant())
        session = java_class("io.trino.FullConnectorSession")(
            builder.build(),
            java_class("io.trino.spi.security.ConnectorIdentity").ofUser(user),
            properties,
            self._handle,
            java_text(self._catalog),
            self._manager,
        )
        for name in properties.keySet():
            # Trino decodes a property when the plugin asks for it; here a wrong value fails at once.
            session.getProperty(name, self._names.get(name).getJavaType())
        return session


def query_identifier(text: str) -> str:
    """Return a text with only the characters of Trino's query identifiers.

    >>> query_identifier("20240101-Ab")
    '20240101_ab'
    """
    return re.sub(r"[^_a-z0-9]", "_", text.lower())


def property_value(java_property: JavaObject, value: Any) -> JavaObject:
    sql_type = str(java_property.getSqlType().getDisplayName())
    try:
        return java_property.decode(_sql_value(sql_type, value))
    except (jpype.JException, TypeError, ValueError) as error:
        raise ConnectorError(
            f"Invalid value of property {java_property.getName()}: {value!r} ({error})",
            code="INVALID_TABLE_PROPERTY",
            hint=f"It takes a value of {sql_type}.",
        ) from error


def _sql_value(sql_type: str, value: Any) -> JavaObject:
    if value is None:
        return None
    if sql_type.startswith("array"):
        items = java_class("java.util.ArrayList")()
        for item in value:
            items.add(java_text(item) if isinstance(item, str) else item)
        return items
    if sql_type == "boolean":
        return java_class("java.lang.Boolean").valueOf(bool(value))
    if sql_type == "integer":
        return java_class("java.lang.Integer").valueOf(int(value))
    if sql_type == "bigint":
        return java_class("java.lang.Long").valueOf(int(value))
    if sql_type == "double":
        return java_class("java.lang.Double").valueOf(float(value))
    return java_text(str(value))
