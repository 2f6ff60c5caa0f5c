"""The handling of interrupts is in one module, and every interrupt reports the outcome of the statement."""

from __future__ import annotations

import ast
import os
import signal
import threading
from pathlib import Path

import pytest

import rowmerge_nb
from rowmerge_nb.base.errors import RowMergeError, StatementInterrupted
from rowmerge_nb.engine.spark import interrupts
from rowmerge_nb.engine.spark.interrupts import (
    StatementGuard,
    WaitEndedError,
    at_once,
    guarded,
    interruption,
    interrupts_let_in,
    no_return,
    note_result,
    run_cancellable,
    to_its_end,
)

PACKAGE = Path(rowmerge_nb.__file__).parent


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.not_quick
def test_only_the_module_of_interrupts_names_keyboard_interrupt() -> None:
    """Connectors may: their drivers lose interrupts in their own ways."""
    speaking = [
        path.relative_to(PACKAGE).as_posix()
        for path in sorted(PACKAGE.rglob("*.py"))
        if "connectors" not in path.parts and "testing" not in path.parts
        if any(
            isinstance(node, ast.Name) and node.id == "KeyboardInterrupt"
            for node in ast.walk(ast.parse(path.read_text()))
        )
    ]
    assert speaking == ["engine/spark/interrupts.py"]


PUBLIC = [
    node.name
    for node in ast.parse(Path(interrupts.__file__).read_text()).body
    if getattr(node, "name", "_")[0] != "_"
]


@pytest.mark.parametrize("name", PUBLIC)
def test_names_in_the_story_of_the_docstring_exist(name: str) -> None:
    assert f"`{name}`" in (interrupts.__doc__ or "") or name == "Interrupts"


def commit_and_interrupt() -> int:
    """Run a statement from its commit on, and interrupt it afterwards."""
    no_return(lambda: True)
    note_result("the result")
    signal.raise_signal(signal.SIGINT)
    return 7


def test_an_interrupt_after_the_commit_is_deferred_and_the_result_returned() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(StatementInterrupted) as caught:
        guarded(commit_and_interrupt)
    assert (caught.value.changed, caught.value.result) == (True, "the result")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("changed", [False, None])
def test_an_interrupt_reports_the_known_state_of_the_change(changed: bool | None) -> None:
    def work() -> None:
        if changed is None:
            no_return(lambda: None)
        interrupt()

    with pytest.raises(StatementInterrupted) as caught:
        guarded(work)
    assert caught.value.changed is changed


def test_only_the_first_interrupt_of_a_statement_is_let_through() -> None:
    cleaned_up = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            signal.raise_signal(signal.SIGINT)
            cleaned_up.append(True)

    with pytest.raises(StatementInterrupted):
        guarded(work)
    assert cleaned_up == [True]


@pytest.mark.parametrize("failure", [ValueError("bad"), StatementInterrupted("stopped")])
def test_a_failure_after_the_commit_reports_the_change(failure: Exception) -> None:
    def work() -> None:
        no_return(lambda: True)
        note_result("the result")
        raise failure

    with pytest.raises(RowMergeError) as caught:
        guarded(work)
    assert (caught.value.changed, caught.value.result, caught.value.hint) == (
        True,
        "the result",
        "Do not run it again.",
    )


def test_a_failure_before_the_commit_stays_unchanged() -> None:
    with pytest.raises(ZeroDivisionError):
        guarded(lambda: 1 // 0)


def test_an_interrupt_reaches_long_work_after_the_commit() -> None:
    def work() -> None:
        no_return(lambda: True)
        with pytest.raises(KeyboardInterrupt), interrupts_let_in():
            signal.raise_signal(signal.SIGINT)

    guarded(work)


def test_an_interrupt_that_was_put_off_is_let_into_it_at_once() -> None:
    entered = []

    def work() -> None:
        no_return(lambda: True)
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interrupts_let_in():
            entered.append(True)

    guarded(work)
    assert entered == []


def test_a_statement_within_a_statement_has_a_guard_of_its_own() -> None:
    def work() -> int:
        with pytest.raises(StatementInterrupted) as caught:
            guarded(commit_and_interrupt)
        assert caught.value.changed is True
        # The outer statement has committed nothing, and can be interrupted.
        signal.raise_signal(signal.SIGINT)
        return 7

    with pytest.raises(StatementInterrupted) as caught:
        guarded(work)
    assert caught.value.changed is False


def test_the_statement_of_a_cell_uses_the_guard_of_the_cell() -> None:
    shown = []

    def cell() -> None:
        guarded(commit_and_interrupt)
        shown.append("the report")

    with pytest.raises(StatementInterrupted) as caught:
        StatementGuard(free=True).run(cell)
    assert shown == []
    assert caught.value.changed is True


def test_a_change_of_this_process_is_made_as_a_whole() -> None:
    made = []

    def change() -> None:
        signal.raise_signal(signal.SIGINT)
        made.append(True)

    with pytest.raises(StatementInterrupted) as caught:
        guarded(lambda: at_once(change))
    assert (made, caught.value.changed) == ([True], True)


def test_the_end_of_the_process_waits_until_the_change_is_reported(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def leave(*_: object) -> None:
        raise SystemExit(3)

    before, steps = signal.signal(signal.SIGTERM, leave), []

    def work() -> None:
        no_return(lambda: True)
        signal.raise_signal(signal.SIGTERM)
        steps.append("result")

    try:
        with pytest.raises(SystemExit):
            guarded(work)
        assert signal.getsignal(signal.SIGTERM) is leave
    finally:
        signal.signal(signal.SIGTERM, before)
    assert steps == ["result"]
    assert (
        "SIGTERM came while a statement was being ended; its change is there."
        in capsys.readouterr().err
    )


def test_a_guard_in_another_thread_ignores_signals() -> None:
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(guarded(lambda: no_return(lambda: True) or 7))
    )
    thread.start()
    thread.join()
    assert answers == [7]


def test_a_handler_that_raises_nothing_gets_every_interrupt() -> None:
    seen = []
    before = signal.signal(signal.SIGINT, lambda *_: seen.append(True))
    try:
        guarded(lambda: [signal.raise_signal(signal.SIGINT) for _ in range(2)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [True, True]


def test_the_text_of_an_interruption_depends_on_the_known_state_of_the_change() -> None:
    said = {
        changed: interruption(WaitEndedError(), "commit", changed=changed, look="Look at 't'")
        for changed in (False, None, True)
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


def test_a_clean_up_ended_by_an_interrupt_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "PATIENCE_SECONDS", 0.0)
    assert not to_its_end(lambda: [signal.raise_signal(signal.SIGINT) for _ in range(2)])


def test_an_interrupt_of_work_is_raised_when_the_work_has_ended() -> None:
    cancelled, told = threading.Event(), []

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        cancelled.wait(10)
        told.append("ended")

    with pytest.raises(StatementInterrupted):
        run_cancellable(work, cancelled.set, threading.Event())
    assert told == ["ended"]


def test_an_error_of_work_is_raised_in_the_waiting_thread() -> None:
    with pytest.raises(ZeroDivisionError):
        run_cancellable(lambda: 1 // 0, lambda: None, threading.Event())


def test_a_signal_that_ends_the_process_does_not_wait_for_the_next_statement_of_a_cell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    numbers: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: numbers.append(number))
    guard = StatementGuard(free=True)

    def cell() -> None:
        guard.no_return(lambda: True)
        signal.raise_signal(signal.SIGTERM)
        assert not numbers
        guard.next_statement()
        assert numbers == [signal.SIGTERM], "it has waited for the end of the first statement"
        signal.raise_signal(signal.SIGTERM)
        assert len(numbers) == 2, "the second statement has changed nothing yet"

    try:
        guard.run(cell)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().err.count("its change is there") == 1
