"""Keyboard interrupts while a driver works."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

from rowmerge_nb.connectors.jdbc.interrupts import interruptible
from tests.connectors.jdbc.support import Database


def interrupt_within_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    from adbc_driver_manager import dbapi

    real, waiting = dbapi._blocking_call, threading.Event()
    pending = [True]

    def blocking(function: Any, arguments: Any, more: Any, cancel: Any) -> Any:
        def interrupted(*given: Any, **named: Any) -> Any:
            if pending:
                pending.clear()
                os.kill(os.getpid(), signal.SIGINT)
                # The interrupt is handled beside the call.
                waiting.wait(0.1)
            return function(*given, **named)

        return real(interrupted, arguments, more, cancel)

    monkeypatch.setattr(dbapi, "_blocking_call", blocking)


@pytest.mark.parametrize("method", ["query", "execute"])
def test_an_interrupt_within_a_call_of_the_driver_is_an_interrupt(
    database: Database, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    session = database.connector.store.connect(writing=True)
    interrupt_within_the_next_call(monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        getattr(session, method)("SELECT 1 AS n")
    assert session.query("SELECT 3 AS n") == [{"n": 3}]
    session.close()


def test_a_call_that_was_interrupted_has_ended_before_the_interrupt_is_raised() -> None:
    ended: list[str] = []
    cancelled = threading.Event()

    def call() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        if cancelled.wait(10):
            ended.append("ended")

    with pytest.raises(KeyboardInterrupt):
        interruptible(call, cancelled.set)
    assert ended == ["ended"]


def test_errors_of_a_call_are_raised_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 // 0, lambda: None)
