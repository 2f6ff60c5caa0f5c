"""A class cache written by Java: Java starts with it, and survives any damage to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from rowmerge_nb.engine.spark.java.class_cache import ClassCache

ROOT = Path(__file__).resolve().parents[4]

PREPARE = """
from rowmerge_nb import doctor
(check,) = [check for check in doctor(start_spark=False, prepare=True) if check.name == "class cache"]
print(check.state, check.detail)
"""

# The answer of a statement; whether Java got a cache; whether a cache exists afterwards.
STATEMENT = """
import os, subprocess
from rowmerge_nb import default_engine, doctor
engine = default_engine()
engine.run("CREATE TABLE t AS SELECT 1 AS x")
engine.run("UPDATE t SET x = 2")
print(engine.table("t")["x"].to_pylist())
lines = subprocess.run(["ps", "-eo", "ppid,args", "-ww"], capture_output=True, text=True).stdout.splitlines()
(java,) = [line for line in lines if line.split()[0] == str(os.getpid()) and "SparkSubmit" in line]
print("used" if "/classes -Xlog" in java else "not used")
(check,) = [check for check in doctor(start_spark=False) if check.name == "class cache"]
print(check.state)
"""


def run(program: str, cache_home: Path) -> list[str]:
    environment = {
        **os.environ,
        "ROWMERGE_CLASS_CACHE": "on",
        "XDG_CACHE_HOME": str(cache_home),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        # A Java that dies of a damaged cache may print any bytes.
        errors="replace",
        check=False,
        env=environment,
        cwd=cache_home,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def made_in(home: Path) -> Path:
    (directory,) = (
        entry
        for entry in (home / "rowmerge_nb" / "class-caches").iterdir()
        if (entry / "seal.json").exists()
    )
    return directory


@pytest.mark.long
def test_java_starts_with_a_cache_and_survives_what_can_become_of_it(tmp_path):
    home, kept = tmp_path / "a home", tmp_path / "kept"
    home.mkdir()
    (state,) = run(PREPARE, home)
    assert state.startswith("ok "), state
    directory = made_in(home)
    shutil.copytree(directory, kept)

    # Removed while Java has it mapped.
    removing = STATEMENT.replace(
        'engine.run("UPDATE',
        f'import shutil; shutil.rmtree({str(directory)!r}); engine.run("UPDATE',
    )
    assert run(removing, home) == ["[2]", "used", "missing"]

    # Damaged, and sealed as if correct: Java dies, is started again without it, and the cache is removed. (Java 25 detects a file
    # that is too short by itself, and starts without it.)
    content = (kept / "classes").read_bytes()
    directory.mkdir(mode=0o700)
    middle = len(content) // 3
    (directory / "classes").write_bytes(content[:middle] + bytes(middle) + content[2 * middle :])
    ClassCache(directory.parent, directory.name, 25, Path("/")).seal(directory)
    last = run(STATEMENT, home)
    assert last[-2:] == ["not used", "missing"]
    assert last[-3].endswith("[2]"), (
        "what Java says of its death comes first, and not always ends its line"
    )
    assert not directory.exists()
    assert "Java crashed" in (directory.parent / f"{directory.name}.log").read_text()
    assert not list(home.glob("hs_err*")), "a user's directory gets nothing of it"

    # Damaged, and detected as such: Java does not see it.
    shutil.copytree(kept, directory)
    directory.chmod(0o700)
    (directory / "classes").chmod(0o600)
    with (directory / "classes").open("r+b") as file:
        file.seek(len(content) // 2)
        file.write(bytes(1 << 20))
    assert run(STATEMENT, home) == ["[2]", "not used", "missing"]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked for in /proc")
def test_java_ends_with_the_process_that_requested_the_cache_even_while_writing_it(tmp_path):
    def writing() -> list[str]:
        """The making directories in the arguments of living processes."""
        commands = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                commands.append(entry.read_bytes().decode("utf-8", "replace"))
        return [
            command
            for command in commands
            if str(tmp_path) in command and "class-caches/making-" in command
        ]

    environment = {
        **os.environ,
        "ROWMERGE_CLASS_CACHE": "on",
        "XDG_CACHE_HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    with subprocess.Popen(
        [sys.executable, "-c", PREPARE], env=environment, stdout=subprocess.DEVNULL
    ) as parent:
        deadline = time.monotonic() + 120
        # Java writes after the statements; its first file exists then.
        while (
            not list(tmp_path.glob("rowmerge_nb/class-caches/making-*/classes*"))
            and time.monotonic() < deadline
        ):
            time.sleep(0.1)
        assert writing()
        parent.kill()
    deadline = time.monotonic() + 20
    while writing() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not writing()
