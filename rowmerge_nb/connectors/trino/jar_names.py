"""Names of the jars of Trino."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def spi_number(jar_names: Iterable[str], default: str = "unknown") -> str:
    """Return the version in the name of the jar of trino-spi; a server's jars have a prefix.

    >>> spi_number(["trino-spi-483.jar"]), spi_number(["io.trino_trino-spi-476.jar"])
    ('483', '476')
    >>> spi_number([])
    'unknown'
    """
    matches = (re.fullmatch(r"(?:io\.trino_)?trino-spi-(\d.*?)\.jar", name) for name in jar_names)
    return next((match[1] for match in matches if match), default)


def other_release_hint(plugin_jars: Iterable[str], engine_release: str) -> str | None:
    """Return which jar of a plugin is of another release than the engine, if one is.

    >>> other_release_hint(["guava-33.jar", "trino-memory-476.jar"], "483")
    'The jar trino-memory-476.jar is of Trino 476, but the engine is of 483: use equal releases.'
    >>> other_release_hint(["shop-1.0.jar", "trino-memory-483.jar"], "483")
    """
    for name in plugin_jars:
        release = re.fullmatch(r"(?:io\.trino_)?trino-[a-z-]+-(\d+)\.jar", name)
        if release and release[1] != engine_release:
            return (
                f"The jar {name} is of Trino {release[1]}, but the engine is of"
                f" {engine_release}: use equal releases."
            )
    return None
