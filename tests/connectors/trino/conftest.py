"""Locations of Trino, its plugins and a Java for them; tests are skipped with a reason if one is missing."""

from __future__ import annotations

import importlib.util
import os
import re
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowmerge_nb as rm
from rowmerge_nb.connectors.trino.host_channel import HostChannel, pack_batch, unpack_batch
from rowmerge_nb.connectors.trino.maven.coordinates import Coordinates
from rowmerge_nb.connectors.trino.maven.jar_sets import JarSets

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_OLDEST_JAVA = 25


@pytest.fixture(scope="session")
def trino_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with ``lib/`` (trino-main and its jars) and ``plugin/``.

    ROWMERGE_TRINO_HOME names it; otherwise it is built from the jars in the cache of Maven coordinates.
    """
    if importlib.util.find_spec("jpype") is None:
        pytest.skip("JPype is not installed (the extra trino)")
    named = os.environ.get("ROWMERGE_TRINO_HOME")
    home = Path(named) if named else cached_home(tmp_path_factory.mktemp("trino"))
    if home is None or not (home / "lib").is_dir():
        pytest.skip(
            "ROWMERGE_TRINO_HOME does not name a folder with lib/ and plugin/ of Trino, and the"
            " cache has no io.trino:trino-main"
        )
    return home


@pytest.fixture(scope="module", autouse=True)
def _plugin_of_the_module(request: pytest.FixtureRequest) -> None:
    """Skip the tests of a module whose REAL_PLUGIN is missing."""
    name = getattr(request.module, "REAL_PLUGIN", None)
    if name is not None:
        home = request.getfixturevalue("trino_home")
        if not (home / "plugin" / name).is_dir():
            pytest.skip(f"{home} has no plugin {name}")


def cached_home(folder: Path, sets: JarSets | None = None) -> Path | None:
    """Link the newest engine of the cache and its plugins in the layout of a server; nothing is
    downloaded.
    """
    sets = sets or JarSets()
    groups = sets.home / "sets" / "io.trino"
    versions = sorted(path.name for path in (groups / "trino-main").glob("*"))
    complete = [version for version in versions if _cached(sets, "trino-main", version)]
    if not complete:
        return None
    (folder / "plugin").mkdir(parents=True)
    for artifact in sorted(path.name for path in groups.glob("trino-*")):
        if jars := _cached(sets, artifact, complete[-1]):
            name = (
                "lib" if artifact == "trino-main" else f"plugin/{artifact.removeprefix('trino-')}"
            )
            (folder / name).symlink_to(jars)
    return folder


def _cached(sets: JarSets, artifact: str, version: str) -> Path | None:
    jar_set = sets.find(Coordinates("io.trino", artifact, version))
    return None if jar_set is None else jar_set.folder


@pytest.fixture(scope="session")
def java_home() -> Path:
    """A full JDK of version 25 or later."""
    for folder in _java_homes():
        release = folder / "release"
        text = release.read_text(encoding="utf-8") if release.exists() else ""
        version = re.search(r'JAVA_VERSION="(\d+)', text)
        if version and int(version[1]) >= _OLDEST_JAVA and "jdk.incubator.vector" in text:
            return folder
    pytest.skip(f"No JDK {_OLDEST_JAVA} with jdk.incubator.vector was found")


def _java_homes() -> Iterator[Path]:
    for variable in ("TRINO_JAVA_HOME", "JAVA_HOME"):
        if os.environ.get(variable):
            yield Path(os.environ[variable])
    yield from sorted(Path("/usr/lib/jvm").glob("*"))


@pytest.fixture(scope="session")
def iceberg_plugin(
    trino_home: Path, java_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[rm.TrinoConnector]:
    """Trino's Iceberg plugin on an empty warehouse, whose processes serve all tests."""
    connector = start_plugin(
        trino_home, java_home, "iceberg", lake_properties(trino_home, "iceberg", tmp_path_factory)
    )
    yield connector
    connector.close()


def start_plugin(
    home: Path, java: Path, name: str, properties: dict[str, Any], **arguments: Any
) -> rm.TrinoConnector:
    """Return the connector of a plugin, or skip the test if its jars are missing."""
    folder = home / "plugin" / name.replace("_", "-")
    if not folder.is_dir():
        pytest.skip(f"ROWMERGE_TRINO_HOME has no folder plugin/{folder.name}")
    return rm.TrinoConnector(
        name,
        **{"plugin": folder, **arguments},
        trino=home / "lib",
        properties=properties,
        java=java,
        java_options=["-Xmx700m"],
    )


def lake_properties(
    home: Path, name: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Return properties of a catalog of files in a new folder.

    Older versions lack a file system for local files: Hadoop's is in a folder.
    """
    folder = tmp_path_factory.mktemp(name)
    metastore = (
        {"iceberg.catalog.type": "TESTING_FILE_METASTORE"}
        if name == "iceberg"
        else {"hive.metastore": "file"}
    )
    if (home / "plugin" / name / "hdfs").is_dir():
        warehouse = f"file://{folder}/warehouse"
        files: dict[str, Any] = {"fs.hadoop.enabled": True}
    else:
        warehouse = "local:///warehouse"
        files = {"fs.local.enabled": True, "local.location": str(folder)}
    return {**metastore, **files, "hive.metastore.catalog.dir": warehouse}


class BlockProgram:
    """A process with Java that builds blocks of columns and reads them back."""

    def __init__(self, channel: HostChannel) -> None:
        self._channel = channel

    def round_trip(
        self, column: pa.RecordBatch, types: list[str], form: str = "plain"
    ) -> tuple[dict[str, Any], pa.RecordBatch]:
        """Return Java's description of the blocks, and the columns that come back."""
        return self._ask({"types": types, "form": form}, column)

    def domain(self, domain: dict[str, Any], sql_type: str) -> tuple[dict[str, Any], list[Any]]:
        """Return Java's description of a domain of the wire, and the bounds of its ranges."""
        import pyarrow as pa

        header = {"types": [sql_type], "form": "plain", "domain": domain}
        described, bounds = self._ask(header, pa.record_batch({"c0": pa.nulls(0)}))
        return described, bounds.column(0).to_pylist()

    def _ask(
        self, header: dict[str, Any], batch: pa.RecordBatch
    ) -> tuple[dict[str, Any], pa.RecordBatch]:
        self._channel.send(header, pack_batch(batch))
        header, payload = self._channel.receive()
        if "error" in header:
            raise AssertionError(header["error"])
        return header, unpack_batch(payload)


@contextmanager
def block_program(engine: Path, java: Path) -> Iterator[BlockProgram]:
    """A process with Java: pytest's faulthandler conflicts with Java's signals."""
    here, there = socket.socketpair()
    program = [sys.executable, "-m", "tests.connectors.trino.block_program"]
    arguments = [str(engine), str(java), str(there.fileno())]
    process = subprocess.Popen([*program, *arguments], pass_fds=[there.fileno()])
    there.close()
    yield BlockProgram(HostChannel(here))
    here.close()
    process.wait(30)


@pytest.fixture(scope="session")
def blocks(trino_home: Path, java_home: Path) -> Iterator[BlockProgram]:
    """A program for blocks of the newest version."""
    with block_program(trino_home / "lib", java_home) as program:
        yield program
