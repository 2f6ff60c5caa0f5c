"""Locations of an older Trino and a Java for it; tests are skipped with a reason if one is missing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.connectors.trino.java_homes import find_java_home
from rowmerge_nb.connectors.trino.maven.coordinates import Coordinates
from rowmerge_nb.connectors.trino.maven.jar_sets import JarSets

VERSION = "380"


@dataclass(frozen=True)
class OlderJars:
    """The folders of Hive's plugin, of the engine, and of a Java."""

    plugin: Path
    engine: Path
    java: Path


def older_jars() -> OlderJars:
    """Return the folders; skip the test if one is missing.

    ROWMERGE_OLDER_TRINO_HOME names a folder with ``lib/`` and ``plugin/hive/``, or the cache of
    Maven coordinates has the jars.
    """
    pytest.importorskip("jpype", reason="JPype is not installed (the extra trino)")
    try:
        java = find_java_home(trino=VERSION).folder
    except SetupError as error:
        pytest.skip(str(error))
    named = os.environ.get("ROWMERGE_OLDER_TRINO_HOME")
    if named:
        return OlderJars(Path(named) / "plugin" / "hive", Path(named) / "lib", java)
    sets = JarSets()
    plugin, engine = (
        sets.find(Coordinates("io.trino", name, VERSION)) for name in ("trino-hive", "trino-main")
    )
    if plugin is None or engine is None:
        pytest.skip(
            "ROWMERGE_OLDER_TRINO_HOME does not name a folder with lib/ and plugin/hive/ of Trino"
            f" {VERSION}, and the cache has no io.trino:trino-hive:{VERSION}"
        )
    return OlderJars(plugin.folder, engine.folder, java)
