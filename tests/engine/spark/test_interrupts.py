"""What an interrupt does stands in one place, and says what became of the statement wherever it comes."""

from __future__ import annotations

import ast
import os
import signal
import threading
from pathlib import Path

import pytest

import rowmerge_nb
from rowmerge_nb.engine.spark import interrupts
from rowmerge_nb.engine.spark.interrupts import (
    WaitEndedError,
    interruption,
    run_cancellable,
    to_its_end,
    told_in_cell,
    told_wherever_it_came,
)
from rowmerge_nb.errors import StatementInterrupted

PACKAGE = Path(rowmerge_nb.__file__).parent


def interrupt() -> None:
    raise KeyboardInterrupt


def test_nobody_else_in_engine_or_notebook_speaks_of_the_interrupt_of_the_keyboard() -> None:
    """Connectors may: their drivers lose interrupts in ways of their own."""
    speaking = [
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if "connectors" not in path.parts and "testing" not in path.parts
        if any(isinstance(node, ast.Name) and node.id == "KeyboardInterrupt" for node in ast.walk(ast.parse(path.read_text())))
    ]
    assert speaking == ["engine/spark/interrupts.py"]


@pytest.mark.parametrize("name", interrupts.__all__)
def test_what_the_story_tells_has_a_name_in_it(name: str) -> None:
    assert f"`{name}`" in (interrupts.__doc__ or "") or name == "Interrupts"


def test_an_interrupt_between_a_result_and_its_way_out_gives_the_result() -> None:
    result = object()
    with pytest.raises(StatementInterrupted) as caught:
        told_wherever_it_came(interrupt, lambda: result, lambda: True)
    assert (caught.value.changed, caught.value.result) == (True, result)


@pytest.mark.parametrize("changed", [False, None])
def test_an_interrupt_where_nothing_else_tells_of_it_says_what_is_known_of_the_change(changed: bool | None) -> None:
    with pytest.raises(StatementInterrupted) as caught:
        told_wherever_it_came(interrupt, lambda: None, lambda: changed)
    assert caught.value.changed is changed


@pytest.mark.parametrize("ended", [True, False])
def test_an_interrupt_beside_the_engine_is_told_in_a_cell(ended: bool) -> None:
    with pytest.raises(StatementInterrupted) as caught:
        told_in_cell(interrupt, lambda: ended, "DROP TABLE t")
    assert (caught.value.changed, caught.value.statement) == (ended, "DROP TABLE t")


def test_what_an_interruption_says_depends_on_what_is_known_of_the_change() -> None:
    said = {
        changed: interruption(WaitEndedError(), "commit", changed=changed, look="Look at 't'") for changed in (False, None, True)
    }
    assert [(error.changed, error.step) for error in said.values() if error] == [
        (False, "commit"),
        (None, "commit"),
        (True, "commit"),
    ]
    assert said[None] is not None
    assert "ended by a further interrupt" in said[None].message
    assert (said[None].hint or "").startswith("Look at 't'; ")


def test_a_second_interrupt_ends_a_clean_up_only_after_long() -> None:
    ended = []

    def clean_up() -> None:
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        ended.append(True)

    assert to_its_end(clean_up)
    assert ended == [True]


def test_a_clean_up_that_an_interrupt_has_ended_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "PATIENCE_SECONDS", 0.0)
    assert not to_its_end(lambda: [signal.raise_signal(signal.SIGINT) for _ in range(2)])


def test_an_interrupt_of_work_is_told_when_the_work_has_ended() -> None:
    cancelled, told = threading.Event(), []

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        cancelled.wait(10)
        told.append("ended")

    with pytest.raises(StatementInterrupted):
        run_cancellable(work, cancelled.set, threading.Event())
    assert told == ["ended"]


def test_what_work_raises_is_raised_where_it_is_waited_for() -> None:
    with pytest.raises(ZeroDivisionError):
        run_cancellable(lambda: 1 // 0, lambda: None, threading.Event())
