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
