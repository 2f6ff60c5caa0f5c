"""The one action of a statement: an interrupt returns when the action has ended, not before."""

from __future__ import annotations

import os
import signal
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from rowmerge_nb.base.errors import ConnectorError, StatementInterrupted
from rowmerge_nb.engine.spark.job import collect


def test_an_interrupted_action_ends_before_the_interrupt_is_raised() -> None:
    cancelled, told = threading.Event(), []

    class Rows:
        def toArrow(self) -> Any:  # noqa: N802 - as Spark has it
            os.kill(os.getpid(), signal.SIGINT)
            cancelled.wait(10)
            # Spark takes a moment to end cancelled work.
            threading.Event().wait(0.2)
            told.append("ended")

    context = SimpleNamespace(addJobTag=lambda _: None, cancelJobsWithTag=lambda _: cancelled.set())
    with pytest.raises(StatementInterrupted):
        collect(SimpleNamespace(sparkContext=context), Rows(), "tag", threading.Event())
    assert told == ["ended"]


def test_a_lost_process_cancels_the_action_and_is_its_error() -> None:
    cancelled, ended = threading.Event(), []

    class Rows:
        def toArrow(self) -> Any:  # noqa: N802 - as Spark has it
            cancelled.wait(10)
            ended.append(True)
            raise RuntimeError("cancelled part of cancelled job tag")

    context = SimpleNamespace(addJobTag=lambda _: None, cancelJobsWithTag=lambda _: cancelled.set())
    loss = ConnectorError("The process of the plugin ended", code="HOST_TERMINATED")
    with pytest.raises(ConnectorError) as caught:
        collect(
            SimpleNamespace(sparkContext=context), Rows(), "tag", threading.Event(), lambda: loss
        )
    assert caught.value is loss
    assert ended


def test_an_action_that_has_ended_before_it_is_cancelled_has_its_result() -> None:
    lost = threading.Event()

    class Rows:
        def toArrow(self) -> Any:  # noqa: N802 - as Spark has it
            lost.wait(10)
            return "rows"

    def find_loss() -> ConnectorError:
        lost.set()
        return ConnectorError("The process of the plugin ended", code="HOST_TERMINATED")

    context = SimpleNamespace(addJobTag=lambda _: None, cancelJobsWithTag=lambda _: None)
    session = SimpleNamespace(sparkContext=context)
    assert collect(session, Rows(), "tag", threading.Event(), find_loss) == "rows"
