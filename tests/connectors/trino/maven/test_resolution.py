"""Which jars a plugin needs, by jgo on a repository in a folder."""

from __future__ import annotations

import re

import pytest

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.extras import install_command
from rowmerge_nb.connectors.trino.maven import repository as repositories
from rowmerge_nb.connectors.trino.maven.coordinates import parse_coordinates
from rowmerge_nb.connectors.trino.maven.repository import FolderRepository
from rowmerge_nb.connectors.trino.maven.resolution import resolve
from tests.connectors.trino.maven.local_repository import dependency, gav, publish_pom

PLUGIN = "io.trino:trino-shop:483"
ROOT = "io.trino:trino-root:483"


def resolved(folder, coordinates=PLUGIN):
    pytest.importorskip("jgo")
    counts: list[int] = []
    resolution = resolve(
        parse_coordinates(coordinates),
        FolderRepository(folder),
        folder.parent / "poms",
        counts.append,
    )
    assert counts == list(range(1, len(counts) + 1))
    names = sorted(path.rsplit("/", 1)[-1].removesuffix(".jar") for path in resolution.jars)
    return names, resolution.engine


@pytest.fixture
def folder(tmp_path):
    """Trino's way to name versions: a parent imports lists of versions."""
    folder = tmp_path / "repository"
    managed = (
        dependency("org.acme:list:5", "<type>pom</type><scope>import</scope>")
        + dependency(
            "org.acme:store:2",
            f"<exclusions><exclusion>{gav('org.acme:logs:')}</exclusion></exclusions>",
        )
        + dependency("io.trino:trino-spi:483")
    )
    publish_pom(
        folder,
        ROOT,
        "<packaging>pom</packaging><dependencyManagement><dependencies>"
        f"{managed}</dependencies></dependencyManagement>",
    )
    publish_pom(
        folder,
        "org.acme:list:5",
        "<packaging>pom</packaging><dependencyManagement><dependencies>"
        f"{dependency('org.acme:words:1.5')}</dependencies></dependencyManagement>",
    )
    publish_pom(
        folder,
        PLUGIN,
        "<packaging>trino-plugin</packaging><dependencies>"
        + dependency("io.trino:trino-cache:483")
        + dependency("org.acme:letters:1")
        + dependency("io.trino:trino-spi:", "<scope>provided</scope>")
        + dependency("org.acme:tests:1", "<scope>test</scope>")
        + "</dependencies>",
        ROOT,
    )
    # Its own exclusions, in addition to those managed by the root.
    publish_pom(
        folder,
        "io.trino:trino-cache:483",
        "<dependencies>"
        + dependency(
            "org.acme:store:",
            f"<exclusions><exclusion>{gav('org.acme:paint:')}</exclusion></exclusions>",
        )
        + "</dependencies>",
        ROOT,
    )
    publish_pom(
        folder,
        "org.acme:store:2",
        "<dependencies>"
        + dependency("org.acme:logs:1")
        + dependency("org.acme:paint:1")
        + dependency("org.acme:optional:1", "<optional>true</optional>")
        + dependency("org.acme:base:3", "<scope>runtime</scope>")
        + "</dependencies>",
    )
    publish_pom(
        folder,
        "org.acme:letters:1",
        f"<dependencies>{dependency('org.acme:words:0.9')}</dependencies>",
    )
    publish_pom(folder, "org.acme:words:1.5")
    publish_pom(folder, "org.acme:base-parent:3", "<packaging>pom</packaging>")
    publish_pom(
        folder,
        "org.acme:base:3",
        "<dependencies>"
        + dependency("org.acme:base-native:${project.parent.version}")
        + "</dependencies>",
        "org.acme:base-parent:3",
    )
    publish_pom(folder, "org.acme:base-native:3")
    return folder


def test_versions_are_those_that_the_plugins_build_manages(folder):
    names, engine = resolved(folder)
    assert names == [
        "base-3",
        "base-native-3",
        "letters-1",
        "store-2",
        "trino-cache-483",
        "trino-shop-483",
        "words-1.5",
    ]
    assert engine == "io.trino:trino-main:483"


def test_a_plugin_that_does_not_name_trino_spi_names_no_engine(folder):
    assert resolved(folder, "org.acme:words:1.5") == (["words-1.5"], "")


def test_an_unknown_version_is_an_error_that_lists_the_newest_ones(folder):
    metadata = "".join(f"<version>{number}</version>" for number in range(475, 484))
    (folder / "io/trino/trino-shop/maven-metadata.xml").write_text(f"<m>{metadata}</m>")
    with pytest.raises(SetupError) as caught:
        resolved(folder, "io.trino:trino-shop:999")
    assert "io.trino:trino-shop has no version 999 in file://" in caught.value.message
    assert "Use one of its newest versions: 483, 482, 481, 480, 479." in caught.value.hint


def test_an_unknown_artifact_is_an_error(folder):
    with pytest.raises(SetupError, match=r"There is no io.trino:trino-shpo in file://"):
        resolved(folder, "io.trino:trino-shpo:483")


def test_a_dependency_without_a_pom_file_is_an_error_and_not_omitted(folder):
    (folder / parse_coordinates("org.acme:words:1.5").file("pom")).unlink()
    with pytest.raises(SetupError, match=r"has no org/acme/words/1.5/words-1.5.pom, which a dep"):
        resolved(folder)


def test_a_pom_file_that_is_not_xml_is_an_error_with_its_name(folder):
    (folder / parse_coordinates("org.acme:words:1.5").file("pom")).write_text("<html>")
    with pytest.raises(SetupError, match=r"The POM file of org.acme:words:1.5 is not XML"):
        resolved(folder)


def test_the_error_without_jgo_has_the_install_command(folder, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"need jgo, .*" + re.escape(install_command("trino"))):
        resolve(parse_coordinates(PLUGIN), FolderRepository(folder), folder, print)
    with pytest.raises(SetupError, match="need jgo"):
        repositories.default_repository()
