"""A private PostgreSQL server in a temporary directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from rowmerge_nb.base.errors import SetupError

__all__ = ["find_server", "private_server"]

_PLACES: Final = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/pgsql/bin",
)
OLDEST: Final = 15
"""The first version with MERGE."""


def find_server() -> Path:
    """Return the directory of the newest ``initdb`` and ``pg_ctl`` on this machine.

    Raises:
        SetupError: no version with MERGE is installed.
    """
    on_path = shutil.which("initdb")
    directories = [Path(on_path).resolve().parent] if on_path else []
    directories += [
        path
        for pattern in _PLACES
        for path in Path("/").glob(pattern.lstrip("/"))
        if (path / "initdb").is_file()
    ]
    versions = {path: _version(path) for path in directories}
    fitting = [path for path, version in versions.items() if version >= OLDEST]
    if not fitting:
        raise SetupError(
            f"No PostgreSQL server of version {OLDEST} or newer was found"
            + (f", only {versions}" if versions else ""),
            hint="Install one: apt-get install postgresql, or brew install postgresql.",
        )
    return max(fitting, key=versions.__getitem__)


def _version(directory: Path) -> int:
    with suppress(OSError, ValueError, IndexError, subprocess.SubprocessError):
        text = subprocess.run(
            [directory / "initdb", "--version"], capture_output=True, text=True, check=True
        ).stdout
        return int(text.split()[2].split(".")[0])
    return 0


@contextmanager
def private_server(port: int | None = None) -> Iterator[str]:
    """Start a server that listens on a socket in its own directory; yield its connection string.

    Args:
        port: a port of this machine on which it listens too, for drivers without such sockets.

    The server refuses to run as root; then it runs as the user ``postgres`` or ``nobody``.

    Raises:
        SetupError: no server is installed, or it does not start.
    """
    programs = find_server()
    # A short name: the path of a socket may have at most 100 characters.
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        user = _unprivileged()
        if user is not None:
            shutil.chown(directory, user)
        data = directory / "data"
        address = "''" if port is None else f"127.0.0.1 -p {port}"
        switches = f"-c listen_addresses={address} -c fsync=off -c timezone=UTC -k {directory}"
        control: list[str | Path] = [programs / "pg_ctl", "-D", data, "-s", "-w"]
        _run(
            [
                programs / "initdb",
                "-D",
                data,
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C.UTF-8",
                "-N",
            ],
            directory,
            user,
        )
        _run([*control, "-o", switches, "-l", directory / "log", "start"], directory, user)
        try:
            suffix = "" if port is None else f" port={port}"
            yield f"host={directory} user=postgres dbname=postgres{suffix}"
        finally:
            _run([*control, "-m", "immediate", "stop"], directory, user)


def _unprivileged() -> str | None:
    """Return the user to switch to, or None."""
    if os.geteuid() != 0:
        return None
    import pwd

    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise SetupError(
        "PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody' to run it",
        hint="Run this as an ordinary user.",
    )


def _run(command: list[str | Path], directory: Path, user: str | None) -> None:
    process = subprocess.run(
        [str(part) for part in command],
        cwd=directory,
        user=user,
        group=None,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if process.returncode:
        raise SetupError(
            f"{Path(command[0]).name} failed ({process.returncode}): {process.stderr.strip()}",
            hint="The server's log may say more.",
        )
