"""How and when a class cache is made; other processes replace Java."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb.base.errors import RowMergeError, SetupError, StatementInterrupted
from rowmerge_nb.engine.spark.java import making as module
from rowmerge_nb.engine.spark.java.class_cache import ClassCache
from rowmerge_nb.engine.spark.java.making import IdleMaking, make_class_cache, why_not_in_background

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def cache(tmp_path: Path) -> ClassCache:
    return ClassCache(tmp_path / "home", "fits", 25, tmp_path)


def stand_in(monkeypatch: pytest.MonkeyPatch, run: Any) -> list[str]:
    """Replace the work of the two processes; return their orders."""
    asked: list[str] = []

    def instead(order: Any) -> tuple[str, bool]:
        asked.append(order["purpose"])
        if order["purpose"] == "record":
            (Path(order["directory"]) / "classes").write_bytes(b"classes")
        return run(order)

    monkeypatch.setattr(module, "_run", instead)
    return asked


def test_a_cache_is_recorded_then_proved_then_sealed_and_made_once(cache, monkeypatch):
    asked = stand_in(monkeypatch, lambda order: ("", True))
    make_class_cache(cache, {})
    make_class_cache(cache, {})
    assert asked == ["record", "prove"]
    assert cache.trouble() is None
    assert sorted(entry.name for entry in cache.home.iterdir()) == ["configuration", "fits", "lock"]
    assert cache.home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("purpose", ["record", "prove"])
def test_a_failure_leaves_only_a_log(cache, monkeypatch, purpose):
    stand_in(monkeypatch, lambda order: ("SIGBUS", order["purpose"] != purpose))
    with pytest.raises(SetupError, match=f"the Java process to {purpose} it failed") as caught:
        make_class_cache(cache, {})
    assert caught.value.code == "GENERIC_INTERNAL_ERROR"
    assert cache.failure.read_text() == "SIGBUS"
    assert str(cache.failure) in str(caught.value)
    monkeypatch.delenv("CI", raising=False)
    assert "the last attempt failed" in why_not_in_background(cache), (
        "so it is not tried again and again"
    )
    assert cache.trouble() is not None
    assert not list(cache.home.glob("making-*"))


def test_a_whole_cache_is_used_even_if_none_could_be_made(cache, monkeypatch):
    stand_in(monkeypatch, lambda order: ("", True))
    make_class_cache(cache, {})
    monkeypatch.setattr(module, "free_memory", lambda: 0)
    make_class_cache(cache, {})


def test_only_what_a_cache_has_to_fit_reaches_the_process_that_records_it(cache, monkeypatch):
    orders: list[Any] = []
    stand_in(monkeypatch, lambda order: orders.append(order) or ("", True))
    make_class_cache(
        cache,
        {
            "spark.master": "spark://there",
            "spark.jars.packages": "a:b:1",
            "spark.driver.memory": "4g",
        },
    )
    assert [order["conf"] for order in orders] == [{"spark.driver.memory": "4g"}] * 2


def test_files_in_sparks_configuration_directory_are_reported_before_anything_runs(
    cache, monkeypatch
):
    asked = stand_in(monkeypatch, lambda order: ("", True))
    cache.home.mkdir(mode=0o700)
    cache.configuration.mkdir()
    (cache.configuration / ".DS_Store").touch()
    with pytest.raises(SetupError, match="must be empty"):
        make_class_cache(cache, {})
    assert not asked


def test_reasons_for_making_no_cache_are_named(cache, monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert "CI is set" in why_not_in_background(cache)
    monkeypatch.delenv("CI")
    assert why_not_in_background(cache) == ""


def test_a_damaged_one_is_replaced(cache, monkeypatch):
    stand_in(monkeypatch, lambda order: ("", True))
    make_class_cache(cache, {})
    os.truncate(cache.directory / "classes", 2)
    make_class_cache(cache, {})
    assert cache.trouble() is None


def test_the_second_of_two_makers_is_reported(cache, monkeypatch):
    began, may_end = threading.Event(), threading.Event()

    def wait(order: Any) -> tuple[str, bool]:
        began.set()
        return "", may_end.wait(30)

    asked = stand_in(monkeypatch, wait)
    first = threading.Thread(target=make_class_cache, args=(cache, {}))
    first.start()
    assert began.wait(30)
    with pytest.raises(SetupError, match="Another process is creating a class cache"):
        make_class_cache(cache, {})
    may_end.set()
    first.join()
    assert asked == ["record", "prove"]
    assert cache.trouble() is None


def test_nothing_is_begun_without_spare_memory_or_disk(cache, monkeypatch):
    asked = stand_in(monkeypatch, lambda order: ("", True))
    monkeypatch.setattr(module, "free_memory", lambda: 1 << 30)
    with pytest.raises(SetupError, match=r"needs 2 GiB of memory; 1\.0 GiB are free") as caught:
        make_class_cache(cache, {})
    assert caught.value.code == "GENERIC_INSUFFICIENT_RESOURCES"
    monkeypatch.setattr(module, "free_memory", lambda: None)
    monkeypatch.setattr(
        module.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1 << 29})
    )
    with pytest.raises(SetupError, match=r"needs 1 GiB of disk in '.*'; 0\.5 GiB are free"):
        make_class_cache(cache, {})
    assert not asked
    assert cache.trouble() is not None


@pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="there is no directory that not even root may write to"
)
def test_an_unwritable_home_is_reported(monkeypatch):
    stand_in(monkeypatch, lambda order: ("", True))
    with pytest.raises(SetupError, match="cannot be created in '/proc/home'") as caught:
        make_class_cache(ClassCache(Path("/proc/home"), "fits", 25, Path("/")), {})
    assert caught.value.code == "PERMISSION_DENIED"
    assert caught.value.hint
    assert "XDG_CACHE_HOME" in caught.value.hint


@pytest.mark.not_quick
def test_no_cache_is_made_while_statements_run_or_are_frequent():
    made: list[float] = []
    idle = IdleMaking(seconds=2)
    idle.wish(lambda: made.append(time.monotonic()))
    with idle.statement():
        time.sleep(0.5)
    for _ in range(4):
        time.sleep(0.1)
        with idle.statement():
            assert not made
    last = time.monotonic()
    while not made and time.monotonic() < last + 30:
        time.sleep(0.01)
    assert made[0] >= last + 1.9
    with idle.statement():
        pass
    time.sleep(0.5)
    assert len(made) == 1, "it is wished for once"


def test_an_error_while_making_a_cache_affects_nothing_else():
    called = threading.Event()

    def fail() -> None:
        called.set()
        raise RuntimeError

    idle = IdleMaking(seconds=0)
    idle.wish(fail)
    with idle.statement():
        pass
    assert called.wait(30)


CHILD = """
import sys, threading, time
from rowmerge_nb.recording import _end_with_the_other_end
sys.stdin.buffer.readline()
threading.Thread(target=_end_with_the_other_end, daemon=True).start()
time.sleep(60)
"""

PARENT = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdin=subprocess.PIPE, start_new_session=True)
child.stdin.write(b"an order\\n")
child.stdin.flush()
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.not_quick
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="processes are looked for in /proc")
def test_the_recording_process_ends_with_its_starter():
    def lives(process: int) -> bool:
        status = Path(f"/proc/{process}/status")
        return status.exists() and "State:\tZ" not in status.read_text()

    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        time.sleep(1)
        assert lives(child)
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while lives(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not lives(child)


def class_cache_check() -> Any:
    from rowmerge_nb import doctor

    (check,) = (check for check in doctor(start_spark=False) if check.name == "class cache")
    return check


def test_the_doctor_names_the_reason_for_a_missing_cache_and_whether_one_will_be_made(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("ROWMERGE_CLASS_CACHE", "on")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    assert "idle for a minute" in class_cache_check().advice
    monkeypatch.setenv("CI", "true")
    found = class_cache_check()
    assert (found.state, "CI is set" in found.detail, "idle" in found.advice) == (
        "missing",
        True,
        False,
    )
    monkeypatch.delenv("CI")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nothing")
    if Path("/proc/self").exists() and os.geteuid():
        assert "cannot be written" in class_cache_check().detail
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "_run", lambda order: ("SIGBUS", False))
    from rowmerge_nb import doctor

    (failed,) = (
        check for check in doctor(start_spark=False, prepare=True) if check.name == "class cache"
    )
    assert failed.state == "failed"
    assert "the last attempt failed" in class_cache_check().detail


def test_the_doctors_argument_is_checked():
    from rowmerge_nb import doctor

    with pytest.raises(RowMergeError, match="prepare = 'yes' is of type str"):
        doctor(prepare="yes")  # type: ignore[arg-type]


def test_an_interrupt_ends_the_child_leaves_nothing_and_is_reported_in_a_sentence(
    cache, monkeypatch
):
    """The child is real and would sleep for a minute; its process group has ended when the error is raised."""
    from rowmerge_nb.engine.spark.java import class_cache, runtime
    from rowmerge_nb.machine import doctor

    children: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def asleep(command: Any, **options: Any) -> Any:
        children.append(popen([sys.executable, "-c", "import time; time.sleep(60)"], **options))
        threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
        return children[0]

    monkeypatch.setattr(module.subprocess, "Popen", asleep)
    monkeypatch.setattr(runtime, "find_java", lambda: None)
    monkeypatch.setattr(class_cache, "class_cache_of", lambda java: cache)
    began = time.monotonic()
    with pytest.raises(StatementInterrupted) as caught:
        doctor(start_spark=False, prepare=True)
    assert time.monotonic() - began < 20
    assert caught.value.message == "Creating the class cache was interrupted; nothing of it remains"
    assert children[0].returncode == -signal.SIGKILL
    assert sorted(entry.name for entry in cache.home.iterdir()) == ["configuration", "lock"]
