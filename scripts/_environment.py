"""Creates or updates a virtual environment if necessary, with the standard library only.

Usage: python scripts/_environment.py EXTRA FOLDER
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"


def main(extra: str, folder: str) -> int:
    """Update the environment under a lock, so that two scripts may start at the same time."""
    venv = ROOT / folder
    # Every extra includes the user's requirements.
    stamps = [
        venv / f"installed-{name}" for name in ((extra,) if extra else ("base", "dev", "bench"))
    ]
    with (ROOT / f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = fingerprint(venv)
        if any(stamp.is_file() and stamp.read_text() == wanted for stamp in stamps):
            return 0
        print(
            f"Making the environment {venv} ({extra or 'base'}); this happens once ...",
            file=sys.stderr,
            flush=True,
        )
        # A virtual environment of another Python, or one that was moved, is made anew.
        made_by = venv / "made-by"
        if not (made_by.is_file() and made_by.read_text() == maker(venv)):
            run([sys.executable, "-m", "venv", "--clear", str(venv)])
            made_by.write_text(maker(venv))
        target = f"{ROOT}[{extra}]" if extra else str(ROOT)
        if is_pip_configured(venv) or not install_by_uv(venv, target):
            install_by_pip(venv, target)
        stamps[0].write_text(wanted)
    return 0


def is_pip_configured(venv: Path) -> bool:
    """Whether pip was told where packages come from, which uv does not read."""
    command = [str(venv / "bin" / "python"), "-m", "pip", "config", "list"]
    settings = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = {line.partition("=")[0].rpartition(".")[2] for line in settings.splitlines()}
    return bool(names & {"index-url", "extra-index-url", "no-index", "proxy"})


def install_by_uv(venv: Path, target: str) -> bool:
    """Install in less than half of pip's time, and return whether that went well."""
    pip = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    pip += ["--only-binary", "uv", "--constraint", str(CONSTRAINTS), "uv"]
    if subprocess.run(pip, check=False).returncode:
        return False
    # Files are moved from this folder into the environment. A user's own cache of uv would grow
    # by gigabytes.
    cache = venv / "uv-cache"
    command = [
        *(str(venv / "bin" / "uv"), "pip", "install", "--quiet", "--cache-dir", str(cache)),
        *("--python", str(venv / "bin" / "python"), "--editable", target),
        *("--constraint", str(CONSTRAINTS), "--build-constraint", str(CONSTRAINTS)),
        # PySpark comes as source: the wheel that is made of it is unpacked at once.
        *("--config-settings-package", "pyspark:--build-option=--compression=stored"),
    ]
    done = subprocess.run(command, check=False).returncode == 0
    shutil.rmtree(cache, ignore_errors=True)
    if not done:
        print("uv could not install the packages; pip tries it ...", file=sys.stderr, flush=True)
    return done


def install_by_pip(venv: Path, target: str) -> None:
    """Install as the user's configuration of pip says."""
    # PySpark comes as source, which old pips would build in a way they warn of. The variable
    # instead of -c, because it holds for the tools that build the package as well.
    environment = {
        **os.environ,
        "PIP_CONSTRAINT": str(CONSTRAINTS),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    command = [str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet", "--use-pep517"]
    run([*command, "--editable", target], environment)


def fingerprint(venv: Path) -> str:
    """Return a hash of the required packages."""
    content = b"".join((ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt"))
    return f"{maker(venv)}\n{hashlib.sha256(content).hexdigest()}\n"


def maker(venv: Path) -> str:
    """Return the Python that creates the environment, and its location."""
    return f"{sys.version}\n{sys.base_prefix}\n{venv}\n"


def run(command: list[str], environment: dict[str, str] | None = None) -> None:
    """Run a command, which prints its own errors."""
    status = subprocess.run(command, check=False, env=environment).returncode
    if status:
        raise SystemExit(f"Failed ({status}): {' '.join(command)}")


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
