"""Interrupts in quick succession, and in the middle of short calls."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards, interrupts_put_off

ROOT = Path(__file__).resolve().parents[3]


def test_interrupts_wait_for_the_end_of_a_short_call() -> None:
    done, handler = [], signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interrupts_afterwards():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("ended")
    assert done == ["ended"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_handler_of_the_user_is_not_interrupted_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Calls of Spark by PySpark."""
    begun, ended = [], []

    def handler(*_: object) -> None:
        begun.append(1)
        if len(begun) == 1:
            signal.raise_signal(signal.SIGINT)
        ended.append(len(begun))
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, handler)
    try:
        with interrupts_put_off() as interrupts:
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert interrupts.came
    assert ended == [1]


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.spark
def test_a_session_works_after_bursts_of_interrupts() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.engine.spark.bursts_child"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT, timeout=300
    )
    assert done.stdout.splitlines()[-1:] == ["works 100"], done.stderr
    assert "sending command" not in done.stderr
