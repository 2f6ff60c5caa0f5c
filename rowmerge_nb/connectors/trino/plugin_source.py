"""Where a plugin comes from: folders of jars, Maven coordinates, and catalog files of Trino."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.connectors.trino.jar_names import spi_number
from rowmerge_nb.connectors.trino.maven.coordinates import is_coordinates, parse_coordinates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.connectors.trino.maven.coordinates import Coordinates

JarState = tuple[tuple[str, int, int], ...]
"""Path, size and modification time of each file of a plugin."""

_TRINO_GROUP: Final = "io.trino"
_PROPERTY: Final = re.compile(r"((?:\\.|[^\\\s=:])+)\s*[=:\s]\s*(.*)")
_VARIABLE: Final = re.compile(r"\$\{ENV:([A-Za-z_][A-Za-z0-9_]*)\}")


class PluginJars:
    """The jars of a plugin and of Trino's engine, as arguments name them.

    Raises:
        SetupError: INVALID_ARGUMENTS unless exactly one of plugin and maven is there, or a folder
            has no jars.
    """

    def __init__(
        self,
        plugin: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None,
        trino: str | os.PathLike[str] | None,
        maven: str | None,
    ) -> None:
        if (plugin is None) == (maven is None):
            raise SetupError.invalid(
                "A plugin needs exactly one of the arguments plugin and maven",
                hint="Name a folder, as in plugin='trino/plugin/iceberg', or coordinates, as in"
                " maven='io.trino:trino-iceberg:483'.",
            )
        if plugin is not None and trino is None:
            raise SetupError.invalid(
                "A plugin in a folder needs the argument trino",
                hint="Name the folder of the engine, as in trino='trino-server/lib', or"
                " coordinates, as in trino='io.trino:trino-main:483'.",
            )
        self._maven = None if maven is None else parse_coordinates(maven)
        self._paths = [] if plugin is None else checked_plugin(plugin)
        self._trino: Path | Coordinates | None = None
        if trino is not None and is_coordinates(trino):
            self._trino = parse_coordinates(str(trino), "trino")
        elif trino is not None:
            self._trino = checked_folder(trino, "trino", "'trino-server/lib'")

    @property
    def trino_version(self) -> str:
        """The version of Trino's engine, such as ``"483"``; ``""`` if no name has it."""
        if isinstance(self._trino, Path):
            return spi_number((jar.name for jar in self._trino.glob("*.jar")), "")
        coordinates = self._trino or self._maven
        if coordinates is None or coordinates.group != _TRINO_GROUP:
            # Plugins of other groups have numbers of their own.
            return ""
        return coordinates.version

    def load(self) -> tuple[list[Path], Path]:
        """Return the plugin's paths and the engine's folder, after a download if necessary."""
        paths, trino = self._paths, self._trino
        if self._maven is None and isinstance(trino, Path):
            return paths, trino
        # The cache is not needed for folders.
        from rowmerge_nb.connectors.trino.maven.jar_sets import JarSets

        sets = JarSets()
        if self._maven is not None:
            jar_set = sets.get(self._maven)
            paths, trino = [jar_set.folder], trino or jar_set.checked_engine()
        return paths, trino if isinstance(trino, Path) else sets.get(
            cast("Coordinates", trino)
        ).folder


def checked_folder(path: str | os.PathLike[str], argument: str, example: str) -> Path:
    folder = Path(path).expanduser().absolute()
    if not folder.is_dir():
        raise SetupError(
            f"{argument} = '{folder}' is not a folder", hint=f"Name a folder such as {example}."
        )
    if not next(folder.glob("*.jar"), None) and not next(folder.rglob("*.class"), None):
        raise SetupError(
            f"{argument} = '{folder}' has no jars", hint=f"Name a folder such as {example}."
        )
    return folder


def checked_plugin(plugin: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    paths = [plugin] if isinstance(plugin, str | os.PathLike) else list(plugin)
    result = []
    for path in paths:
        jar = Path(path).expanduser().absolute()
        is_jar = jar.is_file()
        result.append(jar if is_jar else checked_folder(path, "plugin", "'trino/plugin/iceberg'"))
    return result


def jar_state(paths: Sequence[Path]) -> JarState:
    """Return the state of the files, which differs after a rebuild.

    >>> jar_state([])
    ()
    """
    state = []
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            try:
                status = file.stat()
            except OSError:
                continue
            if file.suffix in {".jar", ".class"}:
                state.append((str(file), status.st_size, status.st_mtime_ns))
    return tuple(state)


def read_catalog_file(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the properties of a catalog file, with ``${ENV:...}`` replaced."""
    try:
        text = Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(
            f"The catalog file '{os.fspath(path)}' cannot be read: {error.strerror or error}",
            hint="Name a file such as 'etc/catalog/ice.properties'.",
        ) from error
    properties: dict[str, str] = {}
    lines = re.sub(r"\\\r?\n[ \t]*", "", text).splitlines()
    for number, line in enumerate((line.strip() for line in lines), start=1):
        if not line or line[0] in "#!":
            continue
        match = _PROPERTY.fullmatch(line)
        if match is None:
            raise SetupError(
                f"Line {number} of '{os.fspath(path)}' is not a property: {line!r}",
                hint="Write it as name=value.",
            )
        properties[re.sub(r"\\(.)", r"\1", match[1])] = _VARIABLE.sub(
            lambda variable: _value(variable[1]), re.sub(r"\\(.)", r"\1", match[2])
        )
    if not properties.get("connector.name"):
        raise SetupError(
            f"The catalog file '{os.fspath(path)}' has no property connector.name",
            hint="Add a line such as connector.name=iceberg.",
        )
    return properties


def _value(name: str) -> str:
    if name not in os.environ:
        raise SetupError(
            f"The catalog file uses the environment variable {name}, which is not set",
            hint=f"Set {name} before Python starts.",
        )
    return os.environ[name]
