"""Connections: a catalog of a store by the store's name and properties, with secrets masked."""

from __future__ import annotations

import copy
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.arguments import checked, checked_name, checked_path
from rowmerge_nb.base.conninfo import is_secret, masked, secrets_in
from rowmerge_nb.base.errors import ConnectorError, RowMergeError, SetupError, error_text
from rowmerge_nb.base.front_end import either
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.engine.catalog.inputs import user_name
from rowmerge_nb.engine.catalog.store_registry import store_factory, store_of_scheme
from rowmerge_nb.spi.factory import ConnectorFactory, PropertyType
from rowmerge_nb.spi.handles import ConnectorSession

if TYPE_CHECKING:
    from rowmerge_nb.engine.catalog.engine_catalogs import Catalogs
    from rowmerge_nb.spi.connector import Connector

_VARIABLE: Final = re.compile(r"\$\{ENV:([A-Za-z_][A-Za-z0-9_]*)\}")
_SCHEME: Final = re.compile(r"([A-Za-z][\w+.-]*)://")
_NO_FILE: Final = re.compile(r"[A-Za-z_][\w+.-]+:")
"""How addresses and Maven coordinates begin; a drive has one letter."""
_TYPES: Final[Mapping[PropertyType, type | tuple[type, ...]]] = {
    PropertyType.TEXT: str,
    PropertyType.PATH: (str, os.PathLike),
    PropertyType.BOOLEAN: bool,
    PropertyType.INTEGER: int,
    PropertyType.TEXTS: (list, tuple),
    PropertyType.PATHS: (str, os.PathLike, list, tuple),
    PropertyType.TABLE: Mapping,
}


@dataclass(frozen=True)
class ConnectionRequest:
    """A catalog to connect.

    Args:
        origin: the file that requests it; ``""`` for a cell or a program.
        base: the folder of relative paths; None for the current one.
    """

    store: str
    location: str | os.PathLike[str] | None = None
    name: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)
    origin: str = ""
    base: Path | None = None


@dataclass(frozen=True)
class Connection:
    """A connected catalog.

    Args:
        problem: why it could not be connected; ``""`` if it is.
        digest: a hash of its properties; ``""`` for a connector that a program has added.
    """

    name: str
    store: str
    location: str = ""
    origin: str = ""
    problem: str = ""
    digest: str = field(default="", repr=False)


def connect(catalogs: Catalogs, request: ConnectionRequest, *, check: bool) -> Connection:
    """Add a catalog.

    The same connection under the same name again changes nothing.

    Args:
        check: ask the store for its schemas, unless it starts slowly.
    """
    location = request.location
    if location is not None:
        location = checked_path(location, "location")
    factory = factory_of(request.store, location)
    name = checked_name(request.name or factory.name, "name", "catalog").lower()
    properties, secrets = _properties(factory, location, request)
    lasting = sorted(item for item in properties.items() if item[0] != "create")
    digest = hashlib.sha256(repr(lasting).encode()).hexdigest()
    if name in catalogs.connectors:
        connection = catalogs.connections.get(name)
        if connection and (connection.store, connection.digest) == (factory.name, digest):
            return connection
        other = catalogs.describe(name)
        raise ConnectorError(
            f"Catalog '{name}' already exists: {other.store} {other.location}".rstrip(),
            code="ALREADY_EXISTS",
            hint=f"Choose another name, such as {_free_name(name, catalogs.connectors)}.",
        )
    try:
        connector = factory.create(**properties)
        if check and not connector.starts_slowly:
            _check(connector)
        catalogs.add(name, connector)
    except RowMergeError as error:
        raise _without_secrets(error, secrets) from None
    except Exception as error:  # noqa: BLE001 - whatever a store's library raises
        text = _hide(error_text(error), secrets)
        raise ConnectorError(
            f"The store {factory.name} could not be connected: {text}",
            code="GENERIC_INTERNAL_ERROR",
            hint="Check its properties.",
        ) from (None if secrets else error)
    connection = Connection(
        name, factory.name, _display_location(factory, properties), request.origin, digest=digest
    )
    catalogs.connections[name] = connection
    catalogs.failures.pop(name, None)
    return connection


def validate(request: ConnectionRequest) -> None:
    """Check the store and the names of the properties of a request, without connecting."""
    location = None if request.location is None else os.fspath(request.location)
    _raw_properties(factory_of(request.store, location), location, request)


def factory_of(store: str, location: str | None) -> ConnectorFactory:
    if store:
        return store_factory(store)
    scheme = _SCHEME.match(location or "")
    factory = store_of_scheme(scheme[1]) if scheme else None
    if factory is None:
        raise RowMergeError.invalid(
            f"'{masked(location or '')}' names no store",
            hint="Write the store first, such as: "
            + either(
                "engine.connect('iceberg', 'warehouse/', create=True, name='ice')",
                "%merge connect iceberg warehouse/ create=true AS ice",
            ),
        )
    return factory


def _raw_properties(
    factory: ConnectorFactory, location: str | None, request: ConnectionRequest
) -> dict[str, Any]:
    raw = dict(request.properties)
    if location is not None:
        scheme = _SCHEME.match(location)
        target = (factory.schemes.get(scheme[1].lower()) if scheme else None) or factory.location
        if not target:
            raise RowMergeError.invalid(
                f"'{masked(location)}' follows the store {factory.name}, which has no location",
                hint=_properties_hint(factory),
            )
        if target in raw:
            raise RowMergeError.invalid(
                f"The property '{target}' of the store {factory.name} is given twice",
                hint=f"Write it once, after the store's name or as {target}=VALUE.",
            )
        raw[target] = location
    for name in raw:
        if name not in factory.properties:
            raise RowMergeError.invalid(
                f"The store {factory.name} has no property '{name}'",
                hint=" ".join(
                    filter(
                        None, [did_you_mean(name, factory.properties), _properties_hint(factory)]
                    )
                ),
            )
    for name, definition in factory.properties.items():
        if definition.required and name not in raw:
            raise RowMergeError.invalid(
                f"The store {factory.name} needs its property '{name}': {definition.meaning}",
                hint=_properties_hint(factory),
            )
    return raw


def _properties(
    factory: ConnectorFactory, location: str | None, request: ConnectionRequest
) -> tuple[dict[str, Any], set[str]]:
    secrets: set[str] = set()
    values = {}
    for name, raw_value in _raw_properties(factory, location, request).items():
        definition = factory.properties[name]
        value = _with_variables(raw_value, name)
        form = f"{definition.type.value}: {definition.meaning}"
        _check_type(name, value, definition.type, form, secret=definition.secret)
        for key, text in _texts(name, value):
            secrets |= {text} if definition.secret or is_secret(key) else secrets_in(text)
        values[name] = _located(value, definition.type, request.base or Path.cwd())
    return values, secrets


def _check_type(
    name: str, value: Any, value_type: PropertyType, form: str, *, secret: bool
) -> None:
    expected = _TYPES[value_type]
    if secret and not isinstance(value, expected):
        # The message must not have the value.
        raise RowMergeError.invalid(
            f"{name} is of type {type(value).__name__}, which is not possible",
            hint=f"Give {form}.",
        )
    if value_type == PropertyType.INTEGER and isinstance(value, bool):
        expected = ()
    if isinstance(value, str):
        # An address may have a password.
        checked(value if isinstance(value, expected) else masked(value), name, expected, form)
    else:
        checked(value, name, expected, form)
    items = value.values() if isinstance(value, Mapping) else value
    if isinstance(items, Sequence | type({}.values())) and not isinstance(items, str):
        for item in items:
            checked(item, f"a value of {name}", str, "texts")


def _texts(name: str, value: Any) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(name, value)]
    if isinstance(value, Mapping):
        return [pair for key, item in value.items() for pair in _texts(str(key), item)]
    if isinstance(value, Sequence):
        return [pair for item in value for pair in _texts(name, item)]
    return []


def _with_variables(value: Any, name: str) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: _variable(match[1], name), value)
    if isinstance(value, Mapping):
        return {key: _with_variables(item, name) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_variables(item, name) for item in value]
    return value


def _variable(variable: str, name: str) -> str:
    if variable not in os.environ:
        raise SetupError(
            f"The property '{name}' uses the environment variable {variable}, which is not set",
            hint=f"Set it before Python starts, as in: export {variable}=...",
        )
    return os.environ[variable]


def _located(value: Any, value_type: PropertyType, base: Path) -> Any:
    if value_type == PropertyType.PATHS:
        paths = [value] if isinstance(value, str | os.PathLike) else value
        return [_located(path, PropertyType.PATH, base) for path in paths]
    if value_type != PropertyType.PATH or _NO_FILE.match(os.fspath(value)):
        return value
    return base / Path(value).expanduser()


def _check(connector: Connector) -> None:
    try:
        handle = connector.begin_transaction()
        try:
            session = ConnectorSession("rowmerge-connect", user_name())
            connector.get_metadata(handle).list_schemas(session)
        finally:
            connector.rollback(handle)
    except BaseException:
        with suppress(Exception):
            connector.close()
        raise


def _display_location(factory: ConnectorFactory, properties: Mapping[str, Any]) -> str:
    names = (factory.location, *factory.schemes.values())
    return masked(next((str(properties[name]) for name in names if name in properties), ""))


def _properties_hint(factory: ConnectorFactory) -> str:
    if not factory.properties:
        return f"The store {factory.name} has no properties."
    return f"Its properties are: {', '.join(factory.properties)}."


def _free_name(name: str, connectors: Mapping[str, Any]) -> str:
    """Return a name that no catalog has.

    >>> _free_name("ice", {"ice": 1, "ice2": 1})
    'ice3'
    """
    return next(
        f"{name}{i}" for i in range(2, len(connectors) + 3) if f"{name}{i}" not in connectors
    )


def _hide(text: str, secrets: set[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _without_secrets(error: RowMergeError, secrets: set[str]) -> RowMergeError:
    twin = copy.copy(error)
    twin.message = _hide(error.message, secrets)
    twin.hint = error.hint and _hide(error.hint, secrets)
    twin.args = (twin.message,)
    return twin
