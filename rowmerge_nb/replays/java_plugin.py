"""What a replay notes of a plugin of Trino, for a test in Java."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class PluginFacts:
    """What a test in Java must know of a plugin, besides the catalog's properties."""

    plugin_class: str
    version: str
    features: Mapping[str, bool] = field(default_factory=dict)


@runtime_checkable
class JavaConnector(Protocol):
    connector_name: str
    properties: Mapping[str, str]
    session_properties: Mapping[str, Any]

    def describe_plugin(self) -> Mapping[str, Any] | None:
        """Return the fields of `PluginFacts`; None if the plugin has not started."""


def plugin_facts(connector: object) -> PluginFacts | None:
    """Return the facts of a started plugin; None for a connector in Python.

    >>> plugin_facts(object()) is None
    True
    """
    if not isinstance(connector, JavaConnector):
        return None
    description = connector.describe_plugin()
    return None if description is None else PluginFacts(**description)
