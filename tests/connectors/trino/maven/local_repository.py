"""A Maven repository in a folder, with small jars."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from rowmerge_nb.connectors.trino.maven.coordinates import Coordinates, parse_coordinates

if TYPE_CHECKING:
    from pathlib import Path


def publish(
    folder: Path, coordinates: str, content: str = "", *, extension: str = "jar"
) -> Coordinates:
    """Write a jar, or a POM file with the content, and its checksum."""
    parsed = parse_coordinates(coordinates)
    file = folder / parsed.file(extension)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content or coordinates)
    file.with_name(f"{file.name}.sha1").write_text(hashlib.sha1(file.read_bytes()).hexdigest())
    return parsed


def publish_pom(folder: Path, coordinates: str, content: str = "", parent: str = "") -> Coordinates:
    """Write a POM file with the content."""
    parsed = parse_coordinates(coordinates)
    above = f"<parent>{gav(parent)}</parent>" if parent else ""
    text = (
        f"<project><modelVersion>4.0.0</modelVersion>{above}{gav(coordinates)}{content}</project>"
    )
    return publish(folder, str(parsed), text, extension="pom")


def gav(coordinates: str, more: str = "") -> str:
    """Return coordinates as elements of a POM file."""
    group, artifact, version = coordinates.split(":")
    number = f"<version>{version}</version>" if version else ""
    return f"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>{number}{more}"


def dependency(coordinates: str, more: str = "") -> str:
    """Return a dependency of a POM file; without a version if it is managed."""
    return f"<dependency>{gav(coordinates, more)}</dependency>"
