"""The notebook of a plugin of Trino runs where Java and the plugin are; nothing is downloaded by a test."""

from __future__ import annotations

import functools
import importlib.util

import pytest

_PLUGIN_NOTEBOOK = "13_a_trino_plugin.ipynb"


@functools.cache
def _missing_plugin() -> str:
    """Return what the notebook of a plugin lacks here; nothing is downloaded by a test."""
    if importlib.util.find_spec("jpype") is None:
        return "JPype is not installed (the extra trino)"
    from rowmerge_nb.connectors.trino.maven.coordinates import Coordinates
    from rowmerge_nb.connectors.trino.maven.jar_sets import JarSets

    if JarSets().find(Coordinates("io.trino", "trino-iceberg", "483")) is None:
        return "the cache of Maven coordinates has no trino-iceberg 483"
    return ""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the notebook with the reason."""
    for item in items:
        if item.path.name == _PLUGIN_NOTEBOOK and (reason := _missing_plugin()):
            item.add_marker(pytest.mark.skip(reason=reason))
