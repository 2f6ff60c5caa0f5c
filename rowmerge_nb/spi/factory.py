"""How a store is connected by its name: ``%merge connect``, ``Engine.connect`` and TOML files.

A package offers its store by an entry point of the group ``rowmerge_nb.connectors``, whose object
is a `ConnectorFactory`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowmerge_nb.spi.connector import Connector


class PropertyType(StrEnum):
    """The type of a property's value, in words.

    Relative paths are relative to the folder of the file that has them. A text with a colon behind
    its first word, such as an address or Maven coordinates, is not changed.
    """

    TEXT = "a text"
    PATH = "a path"
    BOOLEAN = "true or false"
    INTEGER = "a whole number"
    TEXTS = "a list of texts"
    PATHS = "a path, or a list of paths"
    TABLE = "a table of names and texts"


@dataclass(frozen=True)
class ConnectorProperty:
    """A property of a connection.

    Args:
        secret: whether it is never shown.
    """

    meaning: str
    type: PropertyType = PropertyType.TEXT
    secret: bool = False
    required: bool = False


@dataclass(frozen=True)
class ConnectorFactory:
    """A store that can be connected by its name.

    The module of the factory should import nothing heavy; `create` may.

    Args:
        name: the name of the store, such as ``"iceberg"``.
        create: builds the connector; it gets the properties as keyword arguments.
        location: the property whose value follows the store's name; ``""`` for none.
        schemes: for addresses such as ``postgresql://...``: scheme to property.

    >>> factory = ConnectorFactory("shop", "a shop", dict, {"file": ConnectorProperty("its file")}, "file")
    >>> factory.create(file="shop.db")
    {'file': 'shop.db'}
    """

    name: str
    meaning: str
    create: Callable[..., Connector]
    properties: Mapping[str, ConnectorProperty] = field(default_factory=dict)
    location: str = ""
    schemes: Mapping[str, str] = field(default_factory=dict)
