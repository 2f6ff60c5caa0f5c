"""The one action of a statement: who interrupts it gets an answer when it has ended, and not before."""

from __future__ import annotations

import os
import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from rowmerge_nb.base.errors import StatementInterrupted
from rowmerge_nb.engine.spark.job import collect


def test_an_interrupted_action_has_ended_before_the_interrupt_is_told() -> None:
    cancelled, told = threading.Event(), []

    class Rows:
        def toArrow(self) -> Any:  # noqa: N802 - as Spark has it
            os.kill(os.getpid(), signal.SIGINT)
            cancelled.wait(10)
            # Spark takes a moment to end what was cancelled.
            threading.Event().wait(0.2)
            told.append("ended")

    context = SimpleNamespace(addJobTag=lambda _: None, cancelJobsWithTag=lambda _: cancelled.set())
    with pytest.raises(StatementInterrupted):
        collect(SimpleNamespace(sparkContext=context), Rows(), "tag", threading.Event())
    assert told == ["ended"]
