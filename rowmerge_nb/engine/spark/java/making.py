"""Creation of class caches: one Java runs statements and records its classes, another one verifies
the result.

That takes a minute of processor time. Unless requested, it waits for a minute without statements,
and runs in a low-priority child process, with memory to spare, and never in CI.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.errors import SetupError
from rowmerge_nb.base.private import opened_own_directory, opened_own_file
from rowmerge_nb.base.temporary_space import is_full
from rowmerge_nb.engine.spark.java.class_cache import (
    MAKING,
    ClassCache,
    java_settings,
    remove_cache,
    remove_superfluous,
)
from rowmerge_nb.engine.spark.java.java_options import python_path
from rowmerge_nb.engine.spark.memory import free_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_IDLE_SECONDS: Final = 60.0
_LONGEST_RUN: Final = 900.0
_LONGEST_LOG: Final = 1 << 16
_MEMORY_NEEDED: Final = 2 << 30
_DISK_NEEDED: Final = 1 << 30


def make_class_cache(cache: ClassCache, conf: Mapping[str, str], *, gently: bool = False) -> None:
    """Create a cache, in half a minute to two, unless a valid one exists."""
    if cache.trouble() is None:
        return
    _check_memory()
    try:
        cache.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        cache.configuration.mkdir(mode=0o700, exist_ok=True)
        _check_disk(cache.home)
        if any(cache.configuration.iterdir()):
            raise SetupError(
                f"The directory '{cache.configuration}' must be empty",
                code="CONFIGURATION_INVALID",
                hint="Remove its contents: otherwise Java uses no class cache.",
            )
        with _only_maker(cache.home):
            if cache.trouble() is None:
                return
            remove_superfluous(cache.home, cache.name)
            directory = Path(tempfile.mkdtemp(prefix=MAKING, dir=cache.home))
            try:
                _make_in(directory, cache, conf, gently=gently)
            finally:
                remove_cache(directory)
            remove_superfluous(cache.home, cache.name)
    except OSError as error:
        code = "GENERIC_INSUFFICIENT_RESOURCES" if is_full(error) else "PERMISSION_DENIED"
        raise SetupError(
            f"The class cache cannot be created in '{cache.home}': {error.strerror or error}",
            code=code,
            hint=(
                f"Make sure that only you can write there (chmod 700 '{cache.home}'),"
                " or set the variable XDG_CACHE_HOME."
            ),
        ) from error


def _make_in(directory: Path, cache: ClassCache, conf: Mapping[str, str], *, gently: bool) -> None:
    cache.failure.unlink(missing_ok=True)
    order = {
        "directory": str(directory),
        "name": cache.name,
        "conf": java_settings(conf),
        "gently": gently,
    }
    for purpose in ("record", "prove"):
        output, ended_well = _run({**order, "purpose": purpose})
        if not ended_well or not (directory / "classes").is_file():
            with suppress(OSError):
                cache.failure.write_text(output[-_LONGEST_LOG:])
            raise SetupError(
                f"The class cache was not created: the Java process to {purpose} it failed",
                code="GENERIC_INTERNAL_ERROR",
                hint=f"Its output is in '{cache.failure}'. Spark starts without a cache.",
            )
    cache.seal(directory)
    cache.remove()
    directory.rename(cache.directory)


def _run(order: Mapping[str, object]) -> tuple[str, bool]:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_GATEWAY_")
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "rowmerge_nb.recording"],
        stdin=subprocess.PIPE,  # which ends with this process
        stdout=subprocess.PIPE,  # which Java has, too: it ends when both have
        stderr=subprocess.STDOUT,
        env={**inherited, "PYTHONPATH": python_path()},
        cwd=str(order["directory"]),  # a Java that crashes writes a file there
        start_new_session=True,
    )
    with process:
        watch = threading.Timer(_LONGEST_RUN, _end, [process])
        watch.daemon = True
        watch.start()
        try:
            assert process.stdin is not None and process.stdout is not None  # noqa: PT018 - for the type checker
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(order).encode() + b"\n")
                process.stdin.flush()
            output = process.stdout.read().decode("utf-8", "replace")
        except BaseException:
            _end(process)
            raise
        finally:
            watch.cancel()
    return output, process.returncode == 0


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its Java, which may outlive it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _only_maker(home: Path) -> Iterator[None]:
    with opened_own_directory(home) as directory:
        with suppress(FileExistsError):
            os.close(
                os.open(
                    "lock",
                    os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW,
                    0o600,
                    dir_fd=directory,
                )
            )
        with opened_own_file("lock", directory) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise SetupError(
                    "Another process is creating a class cache",
                    code="GENERIC_USER_ERROR",
                    hint="Wait a minute or two until it finishes.",
                ) from error
            yield


def _check_memory() -> None:
    free = free_memory()
    if free is not None and free < _MEMORY_NEEDED:
        raise SetupError(
            f"Creating a class cache needs 2 GiB of memory; {free / 2**30:.1f} GiB are free",
            code="GENERIC_INSUFFICIENT_RESOURCES",
            hint="Close other programs, and try again.",
        )


def _check_disk(home: Path) -> None:
    if (room := shutil.disk_usage(home).free) < _DISK_NEEDED:
        raise SetupError(
            f"Creating a class cache needs 1 GiB of disk in '{home}';"
            f" {room / 2**30:.1f} GiB are free",
            code="GENERIC_INSUFFICIENT_RESOURCES",
            hint="Make room there, or set the variable XDG_CACHE_HOME to another directory.",
        )


def why_not_in_background(cache: ClassCache) -> str:
    """Return why a missing cache is not created automatically; ``""`` if it is."""
    if os.environ.get("CI"):
        return "it is not created automatically if the variable CI is set"
    if cache.failure.exists():
        return f"the last attempt failed; see '{cache.failure}'"
    there = next(parent for parent in (cache.home, *cache.home.parents) if parent.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        return f"'{there}' cannot be written"
    return ""


class IdleMaking:
    """Runs a job after `seconds` without statements."""

    def __init__(self, seconds: float = _IDLE_SECONDS) -> None:
        self._seconds = seconds
        self._changed = threading.Condition()
        self._running = 0
        self._since = 0.0
        self._wish: Callable[[], None] | None = None
        self._waits = False

    def wish(self, make: Callable[[], None]) -> None:
        """Schedule a job once; its errors are ignored."""
        with self._changed:
            self._wish = make

    @contextmanager
    def statement(self) -> Iterator[None]:
        with self._changed:
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._since = time.monotonic()
                if self._wish is not None and not self._waits:
                    self._waits = True
                    threading.Thread(
                        target=self._wait, name="rowmerge_nb-class-cache", daemon=True
                    ).start()

    def _wait(self) -> None:
        with self._changed:
            while (
                self._running
                or (seconds_left := self._since + self._seconds - time.monotonic()) > 0
            ):
                self._changed.wait(self._seconds if self._running else seconds_left)
            make, self._wish, self._waits = self._wish, None, False
        if make is not None:
            with suppress(Exception):
                make()


idle_making: Final = IdleMaking()
"""The instance of this process."""
