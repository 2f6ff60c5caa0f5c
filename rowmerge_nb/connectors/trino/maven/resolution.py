"""Which jars a plugin needs, by the POM files that jgo reads.

jgo reads each POM file and each imported list of versions again for every dependency, which takes
minutes for Trino. Here each is read once. docs/decisions/stores.md has the figures.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from xml.etree.ElementTree import Element, ParseError, SubElement, tostring

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.connectors.trino.maven.coordinates import ENGINE, Coordinates
from rowmerge_nb.connectors.trino.maven.repository import MissingFileError, check_jgo

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rowmerge_nb.connectors.trino.maven.repository import Repository

_JAR: Final = "jar"
_SPI: Final = ("io.trino", "trino-spi", "", _JAR)
_VERSION: Final = re.compile(r"<version>([^<]+)</version>")
_MOST_VERSIONS: Final = 5
_ARCHIVES: Final = (
    "Some plugins are only in a server's archive: name its folders with plugin and trino."
)


@dataclass(frozen=True)
class Resolution:
    """The jars of a plugin or of Trino's engine, and the engine with its version of trino-spi, if
    known.
    """

    jars: tuple[str, ...]
    engine: str = ""


def resolve(
    coordinates: Coordinates, repository: Repository, poms: Path, report: Callable[[int], None]
) -> Resolution:
    """Return the jars that the coordinates need when they run.

    The versions of all jars are those that the coordinates' own POM file and its parents manage, as
    in their build.
    """
    check_jgo()
    _check_exists(coordinates, repository)
    return _Resolver(repository, poms, report).resolve(coordinates)


def _check_exists(coordinates: Coordinates, repository: Repository) -> None:
    try:
        repository.read(coordinates.file("pom"))
    except MissingFileError:
        pass
    else:
        return
    name = f"{coordinates.group}:{coordinates.artifact}"
    versions = _versions(coordinates, repository)
    if versions:
        listed = ", ".join(reversed(versions[-_MOST_VERSIONS:]))
        raise SetupError(
            f"{name} has no version {coordinates.version} in {repository.url}",
            code="NOT_FOUND",
            hint=f"Use one of its newest versions: {listed}. {_ARCHIVES}",
        )
    raise SetupError(
        f"There is no {name} in {repository.url}",
        code="NOT_FOUND",
        hint=f"Check group and artifact. {_ARCHIVES}",
    )


def _versions(coordinates: Coordinates, repository: Repository) -> list[str]:
    try:
        text = repository.read(f"{coordinates.folder}/maven-metadata.xml").decode()
    except MissingFileError:
        return []
    return _VERSION.findall(text)


class _Resolver:
    def __init__(self, repository: Repository, poms: Path, report: Callable[[int], None]) -> None:
        self._maven: Any = importlib.import_module("jgo.maven")
        self._repository = repository
        self._report = report
        self._count = 0
        self._poms: dict[tuple[str, ...], Any] = {}
        self._parents: dict[tuple[str | None, ...], Any] = {}
        self._exclusions: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        resolver = self._maven.PythonResolver()
        resolver.download = self._download
        self._context = self._maven.MavenContext(
            resolver, repo_cache=poms, local_repos=[], remote_repos={"central": repository.url}
        )
        self._read_parent = self._context.pom_parent
        self._context.pom_parent = self._parent
        self._context.project = self._project

    def resolve(self, coordinates: Coordinates) -> Resolution:
        dependency = self._context.create_dependency(str(coordinates))
        model = self._maven.Model(dependency.artifact.component.pom(), self._context)
        spi = model.deps.get(_SPI)
        self._exclusions = {
            key: [(each.groupId, each.artifactId) for each in managed.exclusions]
            for key, managed in model.dep_mgmt.items()
            if managed.exclusions
        }
        # Read again, since the exclusions apply to the dependencies of all POM files.
        self._poms.clear()
        self._parents.clear()
        inputs, others = self._context.resolver.resolve([dependency])
        jars = dict.fromkeys(
            Coordinates(each.groupId, each.artifactId, each.version).file(_JAR, each.classifier)
            for each in (*inputs, *others)
            if each.type == _JAR and each.scope in {None, "compile", "runtime"}
        )
        return Resolution(tuple(jars), f"{ENGINE}:{spi.version}" if spi is not None else "")

    # jgo's hooks

    def _download(self, artifact: Any) -> Path:
        target: Path = artifact.cached_path
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(".part")
        path = f"{artifact.component.path_prefix.as_posix()}/{artifact.filename}"
        try:
            part.write_bytes(self._repository.read(path))
        except MissingFileError as error:
            raise SetupError(
                f"{self._repository.url} has no {path}, which a dependency names",
                code="NOT_FOUND",
                hint=_ARCHIVES,
            ) from error
        return part.replace(target)

    def _project(self, group: str, artifact: str) -> Any:
        project = self._maven.Project(self._context, group, artifact)
        at_version = project.at_version

        def component(version: str) -> Any:
            result = at_version(version)
            result.pom = partial(self._pom, result, result.pom)
            return result

        project.at_version = component
        return project

    def _pom(self, component: Any, read: Callable[[], Any]) -> Any:
        key = (component.groupId, component.artifactId, component.version)
        if key not in self._poms:
            pom = self._adapted(_parsed(key, read))
            self._count += 1
            self._report(self._count)
            if pom.value("packaging") == "pom":
                # What other POM files import: their managed versions are computed once.
                pom = self._maven.POM(effective_pom(self._maven.Model(pom, self._context)))
            self._poms[key] = pom
        return self._poms[key]

    def _parent(self, pom: Any) -> Any:
        key = tuple(pom.value(f"parent/{name}") for name in ("groupId", "artifactId", "version"))
        if key not in self._parents:
            parent = _parsed(key, partial(self._read_parent, pom))
            self._parents[key] = None if parent is None else self._adapted(parent)
        return self._parents[key]

    def _adapted(self, pom: Any) -> Any:
        """Add what jgo's reading of a POM file omits.

        These are ``${project.parent.version}``, and exclusions that the root manages for a
        dependency with exclusions of its own.
        """
        root = pom.tree.getroot()
        parent_version = pom.value("parent/version")
        if parent_version:
            properties = root.find("properties")
            properties = SubElement(root, "properties") if properties is None else properties
            SubElement(properties, "project.parent.version").text = parent_version
        for dependency in pom.elements("dependencies/dependency"):
            exclusions = dependency.find("exclusions")
            key = tuple(
                (dependency.findtext(name) or default).strip()
                for name, default in (
                    ("groupId", ""),
                    ("artifactId", ""),
                    ("classifier", ""),
                    ("type", _JAR),
                )
            )
            if exclusions is not None:
                _exclude(exclusions, self._exclusions.get(key, ()))
        return pom


def effective_pom(model: Any) -> str:
    """Return a POM file with the dependencies and managed versions that a model has computed."""
    project = Element("project")
    for name in ("groupId", "artifactId", "version"):
        SubElement(project, name).text = getattr(model.pom, name)
    managed = [each for each in model.dep_mgmt.values() if each.scope != "import"]
    section = SubElement(SubElement(project, "dependencyManagement"), "dependencies")
    for parent, dependencies in (
        (section, managed),
        (SubElement(project, "dependencies"), model.deps.values()),
    ):
        for dependency in dependencies:
            _add_dependency(parent, dependency)
    return tostring(project, encoding="unicode")


def _add_dependency(parent: Element, dependency: Any) -> None:
    element = SubElement(parent, "dependency")
    for name in ("groupId", "artifactId", "version", "classifier", "type", "scope"):
        value = getattr(dependency, name)
        if value:
            SubElement(element, name).text = value
    if dependency.optional:
        SubElement(element, "optional").text = "true"
    if dependency.exclusions:
        pairs = [(each.groupId, each.artifactId) for each in dependency.exclusions]
        _exclude(SubElement(element, "exclusions"), pairs)


def _exclude(exclusions: Element, pairs: Any) -> None:
    for group, artifact in pairs:
        exclusion = SubElement(exclusions, "exclusion")
        SubElement(exclusion, "groupId").text = group
        SubElement(exclusion, "artifactId").text = artifact


def _parsed(key: tuple[Any, ...], read: Callable[[], Any]) -> Any:
    try:
        return read()
    except ParseError as error:
        raise SetupError(
            f"The POM file of {':'.join(str(each) for each in key)} is not XML: {error}",
            hint="Delete the folder poms of the cache, and check the repository.",
        ) from error
