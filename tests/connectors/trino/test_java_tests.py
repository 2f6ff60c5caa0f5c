"""Java tests written by replays: compiled against Trino's jars, and run on plugins."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import rowmerge_nb as rm
from rowmerge_nb.replays import case, replay
from rowmerge_nb.replays.java_plugin import PluginFacts
from tests.connectors.trino.fake_host import FEATURES
from tests.connectors.trino.planted_bugs import SWAPPED_COLUMNS
from tests.connectors.trino.shelf_plugin import ShelfBuild
from tests.connectors.trino.support import iceberg_properties
from tests.replays.test_java_test import case_of_types, make_shop

JUNIT = Path(__file__).parent / "junit"
"""The part of JUnit used by written tests; JUnit itself is not a dependency."""


class JavaTests:
    """Compiles and runs written tests.

    Args:
        home: the folder with ``lib/`` and ``plugin/``.
        java: the folder of a JDK.
        folder: where to write.
    """

    def __init__(self, home, java, folder):
        self._javac, self._java = java / "bin" / "javac", java / "bin" / "java"
        if not self._javac.exists():
            pytest.skip(f"{java} has no javac")
        self._engine = f"{home / 'lib'}/*"
        self._folder = folder

    def compile(self, file, *plugin, more=()):
        """Compile a test, and return the class path to run it."""
        classes = self._folder / "classes"
        path = ":".join([*map(str, plugin), self._engine])
        command = [self._javac, "-proc:none", "-Xlint:-classfile", "-nowarn", "-d", classes]
        sources = [file, *more, *JUNIT.rglob("*.java")]
        done = subprocess.run(
            [*command, "-cp", path, *sources], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return f"{classes}:{path}"

    def run(self, file, *plugin):
        """Return the output of a test, and whether it passed."""
        path = self.compile(file, *plugin)
        options = ["-XX:TieredStopAtLevel=1", "-Xmx700m", "--add-modules=jdk.incubator.vector"]
        done = subprocess.run(
            [self._java, *options, "-cp", path, "RunTest", file.stem, self._folder],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.stdout + done.stderr, done.returncode == 0


@pytest.fixture
def java_tests(trino_home, java_home, tmp_path):
    return JavaTests(trino_home, java_home, tmp_path)


@pytest.fixture
def make_iceberg(trino_home, java_home):
    if not (trino_home / "plugin" / "iceberg").is_dir():
        pytest.skip(f"{trino_home} has no plugin iceberg")

    def make(folder):
        return rm.TrinoConnector(
            "iceberg",
            plugin=trino_home / "plugin" / "iceberg",
            trino=trino_home / "lib",
            properties={**iceberg_properties(folder), "bootstrap.quiet": True},
            session={"max_split_size": "64MB"},
            java=java_home,
            java_options=["-Xmx700m"],
        )

    return make


NOT_OF_ICEBERG = (
    *("tinyint", "smallint", "char(5)", "json", "timestamp(9)", "timestamp(3) with time zone"),
    # Its columns become varchar.
    "varchar(10)",
)
MERGE = case(
    table="shop.accounts",
    columns={"id": "bigint", "name": "varchar"},
    rows=[(1, "a"), (2, "b"), (3, None), (3, None)],
    properties={"format": "ORC", "partitioning": ["name"]},
    session={"era": "current"},
    updated={0: ("name",)},
    pages=[
        (0, [("UPDATE_DELETE", 0, (1, "a"), 0), ("UPDATE_INSERT", None, (1, "x"), 0)]),
        (0, [("DELETE", 2, (None, None), 1)]),
        (1, [("INSERT", None, (9, "new"), 2)]),
    ],
)


def test_a_test_of_every_type_compiles(java_tests, tmp_path):
    plugin = tmp_path / "ShopPlugin.java"
    plugin.write_text("package shop; public class ShopPlugin implements io.trino.spi.Plugin {}")
    file = replay(case_of_types(), make_shop).to_test(tmp_path / "TestTypes.java")
    java_tests.compile(file, more=[plugin])


def test_a_test_for_trino_476_compiles(java_home, tmp_path):
    home = os.environ.get("ROWMERGE_TRINO_OTHER_HOME")
    if home is None:
        pytest.skip("ROWMERGE_TRINO_OTHER_HOME does not name a folder with lib/ of Trino 476")
    plugin = tmp_path / "ShopPlugin.java"
    plugin.write_text("package shop; public class ShopPlugin implements io.trino.spi.Plugin {}")
    features = {**dict.fromkeys(FEATURES, False), "object_value_takes_session": True}
    facts = PluginFacts("shop.ShopPlugin", "476", features)
    done = replace(replay(case_of_types(), make_shop), plugin=facts)
    file = done.to_test(tmp_path / "TestTypes.java")
    JavaTests(Path(home), java_home, tmp_path).compile(file, more=[plugin])


def test_a_test_fails_on_a_broken_plugin_and_passes_on_the_mended_one(
    trino_home, java_home, java_tests, tmp_path
):
    build = ShelfBuild(trino_home / "lib", java_home, tmp_path / "build")
    jars = build.jar(tmp_path / "plugin", *SWAPPED_COLUMNS)

    def make_shelf(folder):
        return rm.TrinoConnector(
            "shelf",
            plugin=[jars, *build.needed_jars],
            trino=trino_home / "lib",
            properties={"shelf.folder": folder},
            java=java_home,
        )

    record = case(
        table="shop.accounts",
        columns={"id": "bigint", "name": "varchar", "city": "varchar"},
        rows=[(1, "a", "x"), (2, "b", "y")],
        pages=[(0, [("DELETE", 1, (None, None, None)), ("INSERT", None, (9, "new", "city"))])],
    )
    done = replay(record, make_shelf)
    assert done.missing.to_pylist() == [{"id": 9, "name": "new", "city": "city"}]
    file = done.to_test(tmp_path / "TestShelf.java")
    path = [jars / "shelf.jar", *build.needed_jars]
    output, passed = java_tests.run(file, *path)
    assert not passed
    assert "[9, city, new]" in output
    build.jar(jars)
    output, passed = java_tests.run(file, *path)
    assert passed, output


@pytest.mark.parametrize(
    "kind",
    [
        "MERGE",
        pytest.param("INSERT", marks=pytest.mark.long),
        pytest.param("types", marks=pytest.mark.long),
    ],
)
def test_a_test_of_icebergs_plugin_passes_in_java(kind, make_iceberg, java_tests, tmp_path):
    records = {
        "MERGE": MERGE,
        "INSERT": case(
            kind="INSERT",
            table="shop.accounts",
            columns={"id": "bigint", "name": "varchar"},
            rows=[],
            pages=[(0, [("INSERT", None, (1, "x")), ("INSERT", None, (2, None))])],
        ),
        "types": case_of_types(*NOT_OF_ICEBERG),
    }
    done = replay(records[kind], make_iceberg)
    assert done.agrees, done
    file = done.to_test(tmp_path / "TestAccounts.java")
    plugin = f"{Path(done.origin.source(tmp_path).hosts._paths[0])}/*"

    output, passed = java_tests.run(file, plugin)
    assert passed, output
    assert "testRowsThatAreLeft passed" in output

    if kind == "MERGE":
        file.write_text(file.read_text().replace('row(9L, "new")', 'row(8L, "new")'))
        output, passed = java_tests.run(file, plugin)
        assert not passed
        assert re.search(r"expected: <.*\[8, new\].*> but was: <.*\[9, new\]", output)


@pytest.mark.long
def test_an_exception_of_icebergs_plugin_is_expected_or_not(make_iceberg, java_tests, tmp_path):
    wrong = case(
        table="shop.accounts",
        columns={"id": "bigint"},
        rows=[],
        pages=[(0, [("INSERT", None, (None,))])],
        not_null=["id"],
    )
    done = replay(wrong, make_iceberg)
    assert done.failed
    plugin = f"{Path(done.origin.source(tmp_path).hosts._paths[0])}/*"
    refused = done.to_test(tmp_path / "TestRefused.java", expect_error=True)
    output, passed = java_tests.run(refused, plugin)
    assert passed, output
    taken = done.to_test(tmp_path / "TestTaken.java")
    output, passed = java_tests.run(taken, plugin)
    assert not passed
    assert done.error.java_class in output
