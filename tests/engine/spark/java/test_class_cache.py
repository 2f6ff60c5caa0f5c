"""The class caches that a Java may use, and when one is trusted; plain files replace those that Java writes."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.engine.spark.java import class_cache as module
from rowmerge_nb.engine.spark.java.class_cache import (
    ClassCache,
    NoClassCache,
    cache_home,
    class_cache_of,
    remove_superfluous,
)
from rowmerge_nb.engine.spark.java.runtime import Java

CONTENT = b"classes" * 1000
JAVA = Java(Path("/opt/java"), 25, "JAVA_HOME")


def cache_in(home: Path, name: str = "fits") -> ClassCache:
    """The location of a cache in an existing home."""
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "configuration").mkdir(exist_ok=True)
    return ClassCache(home, name, 25, home)


def made(cache: ClassCache, content: bytes = CONTENT) -> ClassCache:
    """Create it like its maker: beside, sealed, renamed."""
    directory = cache.home / "making-1"
    directory.mkdir(mode=0o700)
    (directory / "classes").write_bytes(content)
    cache.seal(directory)
    directory.rename(cache.directory)
    return cache


def reason(found: Any) -> str:
    assert isinstance(found, NoClassCache)
    return found.reason


def test_a_sealed_cache_is_trusted_and_a_missing_one_is_not(tmp_path):
    cache = cache_in(tmp_path / "home")
    assert reason(cache.trouble()) == "there is none yet"
    assert made(cache).trouble() is None
    assert cache.size == 7000
    assert cache.created_at().startswith("20")


def write(name: str, content: bytes) -> Any:
    return lambda directory: (directory / name).write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda directory: os.truncate(directory / "classes", 3000), id="cut"),
        pytest.param(write("classes", b""), id="emptied"),
        pytest.param(write("classes", bytes(16) + CONTENT[16:]), id="zeros first"),
        pytest.param(
            write("classes", CONTENT[:3500] + bytes(100) + CONTENT[3600:]), id="zeros inside"
        ),
        pytest.param(write("classes", b"another" * 1000), id="another of the same length"),
        pytest.param(write("classes", CONTENT + b"more"), id="longer"),
        pytest.param(write("seal.json", b""), id="an empty seal"),
        pytest.param(write("seal.json", b"[]"), id="a list as seal"),
        pytest.param(write("seal.json", b"\xff{"), id="bytes as seal"),
        pytest.param(write("seal.json", b"{}"), id="a seal of nothing"),
        pytest.param(lambda directory: directory.chmod(0o755), id="open to others"),
    ],
)
def test_a_damaged_cache_is_not_trusted(tmp_path, damage):
    cache = made(cache_in(tmp_path / "home"))
    damage(cache.directory)
    assert str(cache.directory) in reason(cache.trouble())


def test_the_cache_of_another_build_is_not_trusted_with_its_own_seal_either(tmp_path):
    other = made(cache_in(tmp_path / "home", "other"), b"other" * 10)
    fits = cache_in(tmp_path / "home")
    other.directory.rename(fits.directory)
    assert "damaged, or another's" in reason(fits.trouble())


def test_a_cache_whose_file_is_missing_or_a_link_is_not_trusted(tmp_path):
    cache = made(cache_in(tmp_path / "home"))
    (cache.directory / "classes").unlink()
    assert reason(cache.trouble()) == "there is none yet"
    cache.remove()
    made(cache).directory.rename(tmp_path / "elsewhere")
    cache.directory.symlink_to(tmp_path / "elsewhere")
    assert "cannot be used" in reason(cache.trouble())


def test_files_in_sparks_configuration_directory_are_reported(tmp_path):
    cache = made(cache_in(tmp_path / "home"))
    (cache.configuration / "spark-defaults.conf").touch()
    found = cache.trouble()
    assert "must be empty" in reason(found)
    assert found is not None
    assert found.advice


def test_a_home_accessible_to_other_users_is_not_trusted(tmp_path):
    cache = made(cache_in(tmp_path / "home"))
    cache.home.chmod(0o755)
    assert "not private" in reason(cache.trouble())


def environ(tmp_path: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(tmp_path), **more}


@pytest.mark.parametrize(
    ("conf", "variables"),
    [
        ({"spark.driver.extraJavaOptions": "-Xss9m"}, {}),
        ({"spark.driver.memory": "33g"}, {}),
        ({}, {"JAVA_TOOL_OPTIONS": "-Dx=1"}),
        ({}, {"JDK_JAVA_OPTIONS": "-Dx=1"}),
        ({}, {"SPARK_SUBMIT_OPTS": "-Dx=1"}),
    ],
)
def test_other_options_have_another_cache(tmp_path, conf, variables):
    usual, other = (
        class_cache_of(JAVA, {}, environ(tmp_path)),
        class_cache_of(JAVA, conf, environ(tmp_path, **variables)),
    )
    assert isinstance(usual, ClassCache)
    assert isinstance(other, ClassCache)
    assert usual.name != other.name
    assert usual == class_cache_of(JAVA, {"spark.driver.memory": "3g"}, environ(tmp_path))


def test_another_java_or_another_spark_has_another_cache(tmp_path, monkeypatch):
    usual = class_cache_of(JAVA, {}, environ(tmp_path))
    newer = class_cache_of(Java(JAVA.home, 26, ""), {}, environ(tmp_path))
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "a.jar").write_bytes(b"1")
    monkeypatch.setattr(module, "_jars", lambda: jars)
    other = class_cache_of(JAVA, {}, environ(tmp_path))
    (jars / "a.jar").write_bytes(b"22")
    longer = class_cache_of(JAVA, {}, environ(tmp_path))
    os.utime(jars / "a.jar", (1, 1))
    touched = class_cache_of(JAVA, {}, environ(tmp_path))
    assert (
        len(
            {
                cache.name
                for cache in (usual, newer, other, longer, touched)
                if isinstance(cache, ClassCache)
            }
        )
        == 5
    )


@pytest.mark.parametrize(
    ("conf", "variables", "told"),
    [
        ({}, {"ROWMERGE_CLASS_CACHE": "off"}, "turned off by the variable ROWMERGE_CLASS_CACHE"),
        ({"spark.driver.extraJavaOptions": "-javaagent:x.jar"}, {}, "-javaagent"),
        ({}, {"JAVA_TOOL_OPTIONS": "-agentlib:jdwp"}, "-agentlib"),
        ({"spark.driver.extraJavaOptions": "-XX:SharedArchiveFile=mine"}, {}, "not ours"),
        ({}, {"JDK_JAVA_OPTIONS": "-Xshare:off"}, "not ours"),
        ({"spark.driver.extraClassPath": "x.jar"}, {}, "spark.driver.extraClassPath"),
        ({}, {"HADOOP_CONF_DIR": "/etc/hadoop"}, "HADOOP_CONF_DIR"),
        (
            {},
            {"PYSPARK_SUBMIT_ARGS": "--driver-class-path x.jar pyspark-shell"},
            "PYSPARK_SUBMIT_ARGS",
        ),
        (
            {},
            {"PYSPARK_GATEWAY_PORT": "4711"},
            "PYSPARK_GATEWAY_PORT prevents Java from starting here",
        ),
        ({}, {"SPARK_REMOTE": "sc://there"}, "SPARK_REMOTE prevents Java from starting here"),
        ({}, {"ROWMERGE_CLASS_CACHE": "No"}, "turned off"),
        ({}, {"XDG_CACHE_HOME": "/a:b"}, "a colon"),
        ({}, {"HOME": ""}, "no home directory"),
    ],
)
def test_obstacles_to_a_java_cache_are_reported(tmp_path, conf, variables, told):
    assert told in reason(class_cache_of(JAVA, conf, environ(tmp_path, **variables)))


def test_an_old_java_without_an_archive_uses_no_cache(tmp_path):
    old = Java(tmp_path, 17, "JAVA_HOME")
    assert "no archive" in reason(class_cache_of(old, {}, environ(tmp_path)))
    (tmp_path / "lib" / "server").mkdir(parents=True)
    (tmp_path / "lib" / "server" / "classes.jsa").touch()
    cache = class_cache_of(old, {}, environ(tmp_path))
    assert isinstance(cache, ClassCache)
    assert cache.use_options().startswith("-XX:SharedArchiveFile=")


def test_an_inaccessible_cache_is_a_reason_and_not_an_error(tmp_path, monkeypatch):
    (tmp_path / "gone.jar").symlink_to(tmp_path / "nowhere")
    monkeypatch.setattr(module, "_jars", lambda: tmp_path)
    assert "gone.jar" in reason(class_cache_of(JAVA, {}, environ(tmp_path)))


def test_a_value_that_the_variable_cannot_have_is_refused(tmp_path):
    with pytest.raises(SetupError, match="The variable ROWMERGE_CLASS_CACHE is 'of'") as caught:
        class_cache_of(JAVA, {}, environ(tmp_path, ROWMERGE_CLASS_CACHE="of"))
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert caught.value.hint


def test_a_relative_cache_directory_is_ignored():
    assert cache_home({"XDG_CACHE_HOME": "here", "HOME": "/home/ann"}) == Path(
        "/home/ann/.cache/rowmerge_nb/class-caches"
    )


def test_a_path_with_a_space_is_quoted_as_spark_reads_it(tmp_path):
    cache = ClassCache(tmp_path / "a home", "x", 25, tmp_path)
    assert cache.use_options().startswith(
        f"-XX:AOTCache='{tmp_path}/a home/x/classes' -Xlog:aot*=off "
    )
    assert f"-XX:ErrorFile='{tmp_path}/a home/crash.log'" in cache.use_options()


def test_leftovers_are_removed_and_the_three_last_used_caches_stay(tmp_path):
    home = tmp_path / "home"
    caches = [made(cache_in(home, f"c{number}")) for number in range(5)]
    gone = made(ClassCache(home, "gone", 25, tmp_path / "no spark"))
    for age, cache in enumerate(caches):
        os.utime(cache.directory / "seal.json", (time.time() - age, time.time() - age))
    (home / "making-dead").mkdir()
    (home / "no cache").mkdir()
    (home / "lock").touch()
    remove_superfluous(home, "c4")
    assert sorted(entry.name for entry in home.iterdir()) == [
        "c0",
        "c1",
        "c4",
        "configuration",
        "lock",
    ]
    assert not gone.directory.exists()


def test_using_a_cache_makes_it_the_last_to_be_removed(tmp_path):
    cache = made(cache_in(tmp_path / "home"))
    os.utime(cache.directory / "seal.json", (1, 1))
    cache.mark_used()
    assert (cache.directory / "seal.json").stat().st_mtime > 1
    assert json.loads((cache.directory / "seal.json").read_text())["name"] == "fits"
    cache.remove()
    cache.mark_used()
    cache.remove()
