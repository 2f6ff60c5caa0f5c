"""The stores that can be connected by name: entry points of the group ``rowmerge_nb.connectors``.

Only installed packages have entry points; no file of a project names code.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.errors import RowMergeError, SetupError, error_text
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.spi.factory import ConnectorFactory

if TYPE_CHECKING:
    from collections.abc import Iterator

GROUP: Final = "rowmerge_nb.connectors"
"""The group of entry points."""
OWN_STORES: Final = {
    name.lower(): f"rowmerge_nb.connectors.factories:{name}"
    for name in ("MEMORY", "HIVE_ACID", "ICEBERG", "DELTA", "SQLITE", "POSTGRESQL", "TRINO")
}
"""The entry points of this package, for a copy that is imported without being installed."""


def store_names() -> list[str]:
    """Return the names of all stores, those of this package first."""
    return list(_entries())


def store_factory(store: str) -> ConnectorFactory:
    checked(store, "store", str, "the name of a store, such as 'iceberg'")
    entries = _entries()
    candidates = entries.get(store.lower().replace("-", "_"), [])
    if not candidates:
        raise RowMergeError.invalid(
            f"There is no store '{store}'",
            hint=(
                f"Omit jdbc: at the beginning: {store[5:]}"
                if store.lower().startswith("jdbc:")
                else did_you_mean(store.lower(), entries) or f"There are: {', '.join(entries)}."
            ),
        )
    if len(candidates) > 1:
        packages = ", ".join(
            f"{entry.dist.name if entry.dist else 'a folder'} ({entry.value})"
            for entry in candidates
        )
        raise SetupError(
            f"Several packages offer the store '{store}': {packages}",
            hint="Uninstall all of them but one.",
        )
    return _load(candidates[0])


def store_of_scheme(scheme: str) -> ConnectorFactory | None:
    """Return the factory whose addresses have this scheme, or None.

    >>> store_of_scheme("postgres").name, store_of_scheme("https")
    ('postgresql', None)
    """
    return next((f for f in _factories() if scheme.lower() in f.schemes), None)


def _factories() -> Iterator[ConnectorFactory]:
    for name in store_names():
        try:
            yield store_factory(name)
        except RowMergeError:
            # A broken package does not hide the others; its name reports the error.
            continue


def _entries() -> dict[str, list[EntryPoint]]:
    stores = {name: [EntryPoint(name, value, GROUP)] for name, value in OWN_STORES.items()}
    for entry in entry_points(group=GROUP):
        others = stores.setdefault(entry.name.lower(), [])
        # A package may be on the path twice.
        if entry.value not in {other.value for other in others}:
            others.append(entry)
    return stores


def _load(entry: EntryPoint) -> ConnectorFactory:
    package = entry.dist.name if entry.dist else "rowmerge-nb"
    try:
        factory = entry.load()
    except Exception as error:
        raise SetupError(
            f"The store '{entry.name}' of the package {package} cannot be loaded:"
            f" {error_text(error)}",
            hint=f"Repair or uninstall it: pip install --force-reinstall {package}",
        ) from error
    if not isinstance(factory, ConnectorFactory):
        raise SetupError(
            f"The entry point '{entry.name} = {entry.value}' of the package {package} is of type"
            f" {type(factory).__name__}",
            hint="It must name a rowmerge_nb.spi.ConnectorFactory.",
        )
    return factory
