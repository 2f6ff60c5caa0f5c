"""Sets of jars in the cache, on a repository in a folder."""

from __future__ import annotations

import errno
import io
import json
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.connectors.trino.maven import downloads
from rowmerge_nb.connectors.trino.maven.coordinates import parse_coordinates
from rowmerge_nb.connectors.trino.maven.jar_sets import JarSets
from rowmerge_nb.connectors.trino.maven.progress_line import ProgressLine
from rowmerge_nb.connectors.trino.maven.repository import FolderRepository
from rowmerge_nb.connectors.trino.maven.resolution import Resolution
from tests.connectors.trino.maven.local_repository import publish

if TYPE_CHECKING:
    from pathlib import Path

PLUGIN = parse_coordinates("io.trino:trino-shop:483")
ENGINE = "io.trino:trino-main:483"
JARS = ("io.trino:trino-shop:483", "org.acme:words:1.0", "org.other:words:1.0")


class Repository(FolderRepository):
    """Counts reads, and fails on request."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.downloads: list[str] = []
        self.error: BaseException | None = None
        self.cut = 0

    def download(self, path, target, advance):
        self.downloads.append(path)
        if self.error is not None and len(self.downloads) > 1:
            target.write_bytes(b"half")
            raise self.error
        super().download(path, target, advance)
        if self.cut:
            target.write_bytes(target.read_bytes()[: self.cut])


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "repository"
    for jar in (*JARS, ENGINE):
        publish(folder, jar)
    return folder


@pytest.fixture
def repository(folder):
    return Repository(folder)


@pytest.fixture
def sets(tmp_path, repository):
    return make_sets(tmp_path, repository)


def make_sets(tmp_path, repository, others=()):
    def resolve(coordinates, repository, poms, report):
        report(1)
        jars = JARS if coordinates == PLUGIN else (str(coordinates),)
        return Resolution(tuple(parse_coordinates(jar).file("jar") for jar in jars), ENGINE)

    return JarSets(tmp_path / "cache", lambda: repository, resolve, others)


def offline(tmp_path):
    def fail(*arguments):
        raise AssertionError("the network was used")

    return JarSets(tmp_path / "cache", fail, fail, ())


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_set_has_all_jars_and_is_used_without_the_network(tmp_path, sets, capsys):
    jar_set = sets.get(PLUGIN)
    assert sorted(path.name for path in jar_set.folder.glob("*.jar")) == [
        "org.acme-words-1.0.jar",
        "org.other-words-1.0.jar",
        "trino-shop-483.jar",
    ]
    assert (jar_set.folder / "org.acme-words-1.0.jar").read_text() == "org.acme:words:1.0"
    first, last = capsys.readouterr().err.splitlines()
    assert first == "io.trino:trino-shop:483: downloading 3 jars, 0.0 MB"
    assert last.startswith("io.trino:trino-shop:483: 3 jars, 0.0 MB, of which 0.0 MB were downl")

    again = offline(tmp_path).get(PLUGIN)
    assert again == jar_set
    assert str(again.checked_engine()) == ENGINE
    assert capsys.readouterr().err == ""


def test_the_list_of_the_jars_has_sizes_and_checksums(sets):
    pins = json.loads((sets.get(PLUGIN).folder / "jars.json").read_text())
    assert pins["coordinates"] == str(PLUGIN)
    assert [set(jar) for jar in pins["jars"]] == [{"path", "size", "sha256"}] * 3


def test_jars_that_another_set_has_are_not_downloaded_again(sets, repository):
    sets.get(PLUGIN)
    shutil.rmtree(sets.home / "sets")
    repository.downloads.clear()
    sets.get(PLUGIN)
    assert repository.downloads == []


def test_jars_of_mavens_own_cache_are_copied_if_their_checksum_is_right(
    tmp_path, repository, folder
):
    other = tmp_path / "m2"
    shutil.copytree(folder, other)
    wrong = parse_coordinates(JARS[1]).file("jar")
    (other / wrong).write_text("changed")
    jar_set = make_sets(tmp_path, repository, (other,)).get(PLUGIN)
    assert repository.downloads == [wrong]
    assert (jar_set.folder / "org.acme-words-1.0.jar").read_text() == JARS[1]


@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_damaged_set_is_mended_without_resolving_again(tmp_path, sets, repository, damage):
    jar_set = sets.get(PLUGIN)
    path = parse_coordinates(JARS[0]).file("jar")
    for file in (jar_set.folder / "trino-shop-483.jar", sets.home / "jars" / path):
        file.unlink()
        if damage == "cut":
            file.write_text("cut")
    repository.downloads.clear()
    mending = JarSets(sets.home, lambda: repository, None, ())
    assert mending.find(PLUGIN) is None
    assert mending.get(PLUGIN) == jar_set
    assert repository.downloads == [path]


def test_a_pinned_jar_that_changed_in_the_repository_is_an_error(sets, folder):
    jar_set = sets.get(PLUGIN)
    publish(folder, JARS[0], "another content")
    (jar_set.folder / "trino-shop-483.jar").unlink()
    (sets.home / "jars" / parse_coordinates(JARS[0]).file("jar")).unlink()
    with pytest.raises(SetupError, match="CHECKSUM_MISMATCH: The sha256 checksum of"):
        sets.get(PLUGIN)


def test_a_cut_download_is_an_error_and_leaves_nothing(sets, repository):
    repository.cut = 5
    with pytest.raises(SetupError, match=r"CHECKSUM_MISMATCH: The sha1 checksum of .* Try again"):
        sets.get(PLUGIN)
    assert files(sets.home) == ["lock"]
    repository.cut = 0
    assert len(sets.get(PLUGIN).jars) == 3


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "bad disk")])
def test_after_an_interrupt_no_half_file_is_used(tmp_path, sets, repository, error, monkeypatch):
    monkeypatch.setattr(downloads, "_AT_ONCE", 1)
    repository.error = error
    with pytest.raises(type(error)):
        sets.get(PLUGIN)
    assert [name for name in files(sets.home) if name != "lock"] == [
        f"jars/{parse_coordinates(JARS[0]).file('jar')}"
    ]
    assert sets.find(PLUGIN) is None

    repository.error = None
    repository.downloads.clear()
    sets.get(PLUGIN)
    assert repository.downloads == [parse_coordinates(jar).file("jar") for jar in JARS[1:]]


def test_a_full_disk_is_an_error_with_the_next_step(sets, repository):
    repository.error = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(SetupError, match=r"GENERIC_INSUFFICIENT_RESOURCES.*XDG_CACHE_HOME"):
        sets.get(PLUGIN)


def test_a_disk_without_room_is_an_error_before_the_download(sets, repository, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1_500_000})())
    with pytest.raises(SetupError, match=r"The jars need 0.0 MB, but the disk .* has 1.5 MB"):
        sets.get(PLUGIN)
    assert repository.downloads == []


def test_a_cache_that_cannot_be_written_is_an_error_with_the_next_step(tmp_path, repository):
    (tmp_path / "cache").touch()
    with pytest.raises(
        SetupError, match=r"PERMISSION_DENIED: .* cannot be written.*XDG_CACHE_HOME"
    ):
        make_sets(tmp_path, repository).get(PLUGIN)


def test_a_jar_that_the_repository_lacks_is_named(sets, folder):
    (folder / parse_coordinates(JARS[1]).file("jar")).unlink()
    with pytest.raises(SetupError, match=r"NOT_FOUND: .* has no org/acme/words/1.0/words-1.0.jar"):
        sets.get(PLUGIN)


def test_a_jar_without_a_published_checksum_is_accepted_and_pinned(sets, folder):
    for file in folder.rglob("*.sha1"):
        file.unlink()
    assert all(len(jar.sha256) == 64 for jar in sets.get(PLUGIN).jars)


def test_an_unreadable_list_of_jars_is_not_a_set(sets):
    pins = sets.get(PLUGIN).folder / "jars.json"
    for text in ("", "{}", '{"engine": "", "jars": [{"path": 1}]}', "[]"):
        pins.write_text(text)
        assert sets.find(PLUGIN) is None
    assert sets.get(PLUGIN).jars


def test_a_plugin_without_trino_spi_needs_the_argument_trino(sets):
    jar_set = sets.get(parse_coordinates(ENGINE))
    assert str(jar_set.checked_engine()) == ENGINE
    object.__setattr__(jar_set, "engine", "")
    with pytest.raises(SetupError, match="Pass the engine"):
        jar_set.checked_engine()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_line_of_progress_is_overwritten_on_a_terminal():
    terminal = Terminal()
    line = ProgressLine("io.trino:trino-shop:483", terminal)
    line.show("reading 10 files")
    line.show("not yet")
    line.end("2 jars")
    assert terminal.getvalue() == (
        f"io.trino:trino-shop:483: reading 10 files\r{'io.trino:trino-shop:483: 2 jars':<41}\n"
    )


def test_a_file_has_announcements_and_the_last_line():
    file = io.StringIO()
    line = ProgressLine("p", file)
    line.show("reading")
    line.end()
    assert file.getvalue() == ""
    line.announce("downloading")
    line.end("2 jars")
    assert file.getvalue() == "p: downloading\np: 2 jars\n"


def test_a_line_without_standard_error_writes_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    line = ProgressLine("p")
    line.show("reading")
    line.announce("downloading")
    line.end("2 jars")
