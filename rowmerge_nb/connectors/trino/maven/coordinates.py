"""Maven coordinates of a plugin."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rowmerge_nb.base.errors import SetupError

ENGINE: Final = "io.trino:trino-main"
"""Group and artifact of Trino's engine."""

_EXAMPLE: Final = "'io.trino:trino-iceberg:483'"
_PART: Final = r"[A-Za-z0-9_.-]+"
_COORDINATES: Final = re.compile(rf"({_PART}):({_PART}):(.+)")
_VERSION: Final = re.compile(r"[A-Za-z0-9_.+-]*[A-Za-z0-9]")
_MOVING: Final = frozenset({"LATEST", "RELEASE", "MANAGED"})
_SNAPSHOT: Final = "-SNAPSHOT"


@dataclass(frozen=True)
class Coordinates:
    """Group, artifact and version.

    >>> str(Coordinates("io.trino", "trino-memory", "483"))
    'io.trino:trino-memory:483'
    """

    group: str
    artifact: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def folder(self) -> str:
        return f"{self.group.replace('.', '/')}/{self.artifact}"

    def file(self, extension: str, classifier: str = "") -> str:
        suffix = f"-{classifier}" if classifier else ""
        name = f"{self.artifact}-{self.version}{suffix}.{extension}"
        return f"{self.folder}/{self.version}/{name}"


def parse_coordinates(text: str, argument: str = "maven") -> Coordinates:
    match = _COORDINATES.fullmatch(text.strip()) if isinstance(text, str) else None
    if (
        match is None
        or not all(part.strip(".") for part in (*match[1].split("."), match[2]))
        or ":" in match[3]
    ):
        raise SetupError.invalid(
            f"{argument} = {text!r} is not group:artifact:version", hint=f"Write it as {_EXAMPLE}."
        )
    version = match[3]
    if version.endswith(_SNAPSHOT):
        raise SetupError.invalid(
            f"{argument} = {text!r} is a snapshot, whose jars change",
            hint="Name folders of jars instead: plugin='target/trino-iceberg-484-SNAPSHOT'.",
        )
    if version in _MOVING or _VERSION.fullmatch(version) is None:
        raise SetupError.invalid(
            f"{argument} = {text!r} does not name one version",
            hint=f"Write a number, as in {_EXAMPLE}.",
        )
    return Coordinates(match[1], match[2], version)


def is_coordinates(value: str | os.PathLike[str]) -> bool:
    return isinstance(value, str) and value.count(":") > 1 and not Path(value).exists()
