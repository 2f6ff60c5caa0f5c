"""Trials in separate processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from proof.engines.postgresql import find_server
from rowmerge_nb.base.errors import SetupError


def points(*arguments: str) -> str:
    """Run trials in a process without threads, which can be forked."""
    command = [sys.executable, "-m", "proof.trials.points", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
    )
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-3000:]}"
    return done.stdout


def skip_without_server(store: str) -> None:
    """Skip the test of a database server that is missing on this machine."""
    if store == "postgresql":
        try:
            find_server()
        except SetupError as error:
            pytest.skip(str(error))
