"""A connector by Maven coordinates: a host without Java, and the plugin memory if the cache has it."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

import rowmerge_nb as rm
from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.connectors.trino.maven.coordinates import Coordinates, parse_coordinates
from rowmerge_nb.connectors.trino.maven.jar_sets import JarSets
from rowmerge_nb.connectors.trino.maven.repository import FolderRepository
from rowmerge_nb.connectors.trino.maven.resolution import Resolution
from rowmerge_nb.spi import ConnectorSession
from tests.connectors.trino.conftest import cached_home
from tests.connectors.trino.fake_connector import FakeTrinoConnector
from tests.connectors.trino.maven.local_repository import publish

PLUGIN = "io.trino:trino-memory:483"
ENGINE = "io.trino:trino-main:483"
OTHER_ENGINE = "io.trino:trino-main:482"
SESSION = ConnectorSession("q1")


class MavenConnector(FakeTrinoConnector):
    def __init__(self, name="memory", **arguments):
        rm.TrinoConnector.__init__(self, name, **arguments)


@pytest.fixture
def sets(tmp_path, monkeypatch):
    """A cache with a plugin and two engines, and no network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    repository = FolderRepository(tmp_path / "repository")

    def resolve(coordinates, repository, poms, report):
        return Resolution((coordinates.file("jar"),), ENGINE)

    sets = JarSets(None, lambda: repository, resolve, ())
    for coordinates in (PLUGIN, ENGINE, OTHER_ENGINE):
        sets.get(publish(tmp_path / "repository", coordinates))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("ROWMERGE_MAVEN_REPOSITORY", "http://127.0.0.1:9")
    return sets


def folder_of(sets, coordinates):
    return str(sets.find(parse_coordinates(coordinates)).folder)


def test_jars_of_the_cache_are_used_with_the_engine_of_the_same_version(sets):
    connector = MavenConnector(maven=PLUGIN)
    transaction = connector.begin_transaction()
    assert connector.get_metadata(transaction).list_schemas(SESSION)
    connector.rollback(transaction)
    connector.close()
    settings = connector._settings
    assert settings["plugin"] == folder_of(sets, PLUGIN)
    assert settings["engine"] == folder_of(sets, ENGINE)


def test_the_engine_may_be_a_folder_or_other_coordinates(sets, tmp_path):
    engine = tmp_path / "lib"
    engine.mkdir()
    (engine / "trino-main.jar").touch()
    assert MavenConnector(maven=PLUGIN, trino=engine)._settings["engine"] == str(engine)
    connector = MavenConnector(maven=PLUGIN, trino=OTHER_ENGINE)
    assert connector._settings["engine"] == folder_of(sets, OTHER_ENGINE)


def test_a_plugin_in_a_folder_may_have_its_engine_from_maven(sets, tmp_path):
    (tmp_path / "shop.jar").touch()
    connector = MavenConnector(plugin=tmp_path / "shop.jar", trino=ENGINE)
    assert connector._settings["plugin"] == str(tmp_path / "shop.jar")
    assert connector._settings["engine"] == folder_of(sets, ENGINE)


def test_a_catalog_file_can_accompany_coordinates(sets, tmp_path):
    file = tmp_path / "shop.properties"
    file.write_text("connector.name=memory\nlog=/lake")
    connector = MavenConnector.from_catalog_file(file, maven=PLUGIN)
    assert connector.properties == {"log": "/lake"}
    assert connector._settings["plugin"] == folder_of(sets, PLUGIN)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "exactly one of the arguments plugin and maven"),
        ({"plugin": "a", "maven": PLUGIN}, "exactly one of the arguments plugin and maven"),
        ({"plugin": "FOLDER"}, "needs the argument trino"),
        ({"maven": "memory"}, "maven = 'memory' is not group:artifact:version"),
        ({"maven": PLUGIN, "trino": "a:b:*"}, "trino = 'a:b:\\*' does not name one version"),
    ],
)
def test_arguments_that_do_not_fit_are_errors(arguments, words, tmp_path, monkeypatch):
    (tmp_path / "FOLDER").mkdir()
    (tmp_path / "FOLDER" / "shop.jar").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError, match=f"INVALID_ARGUMENTS: .*{words}"):
        MavenConnector(**arguments)


def test_the_machine_is_checked_before_a_download(sets, monkeypatch):
    def fail(connector):
        raise SetupError("no JDK")

    monkeypatch.setattr(MavenConnector, "_check_machine", fail)
    with pytest.raises(SetupError, match="no JDK"):
        MavenConnector(maven="io.trino:trino-iceberg:483")


def test_a_plugin_that_is_not_in_the_cache_needs_the_network(sets):
    pytest.importorskip("jgo")
    with pytest.raises(SetupError, match=r"127.0.0.1:9 did not send io/trino/trino-ice"):
        MavenConnector(maven="io.trino:trino-iceberg:483")


def test_tests_find_the_jars_of_the_cache(sets, tmp_path):
    home = cached_home(tmp_path / "home", sets)
    assert [path.name for path in (home / "lib").glob("*.jar")] == ["trino-main-483.jar"]
    assert [path.name for path in (home / "plugin").iterdir()] == ["memory"]
    empty = JarSets(tmp_path / "empty", None, None, ())
    assert cached_home(tmp_path / "none", empty) is None


INTERRUPTED = """
import pathlib, sys, time
from rowmerge_nb.connectors.trino.maven.jar_sets import JarSets
from rowmerge_nb.connectors.trino.maven.coordinates import parse_coordinates
from rowmerge_nb.connectors.trino.maven.repository import FolderRepository
from rowmerge_nb.connectors.trino.maven.resolution import Resolution

class Slow(FolderRepository):
    def download(self, path, target, advance):
        with target.open("wb") as file:
            while True:
                file.write(b"half")
                file.flush()
                advance(4)
                print("downloading", flush=True)
                time.sleep(0.01)

home, folder = map(pathlib.Path, sys.argv[1:])
plugin = parse_coordinates("io.trino:trino-memory:483")
resolve = lambda *arguments: Resolution((plugin.file("jar"),), "")
JarSets(home, lambda: Slow(folder), resolve, ()).get(plugin)
"""


def _interrupted(process):
    """Press Ctrl-C, and again like a person if Python ignored it; return the output of the process."""
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=20)[1]
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    return process.communicate()[1]


def test_ctrl_c_ends_a_download_and_leaves_no_half_file(tmp_path):
    publish(tmp_path / "repository", PLUGIN)
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path / "cache"), str(tmp_path / "repository")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "downloading\n"
    errors = _interrupted(process)
    assert "KeyboardInterrupt" in errors
    names = [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert names == ["lock"]


def test_the_plugin_memory_of_the_cache_reads_and_writes(spark, java_home):
    pytest.importorskip("jpype")
    plugin = JarSets().find(Coordinates("io.trino", "trino-memory", "483"))
    if plugin is None or JarSets().find(parse_coordinates(plugin.engine)) is None:
        pytest.skip(f"The cache has no {PLUGIN}, which rm.TrinoConnector downloads")
    engine = rm.Engine(spark=spark)
    connector = rm.TrinoConnector("memory", maven=PLUGIN, java=java_home)
    engine.add_catalog("plugin", connector)
    engine.run("CREATE TABLE plugin.default.accounts (id bigint, name varchar)")
    engine.run("INSERT INTO plugin.default.accounts VALUES (1, 'a'), (2, NULL)")
    rows = engine.run("SELECT * FROM plugin.default.accounts ORDER BY id").to_pandas()
    assert rows.to_numpy().tolist() == [[1, "a"], [2, None]]
    connector.close()
