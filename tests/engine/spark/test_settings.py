"""A session's settings are restored despite interrupts and failures meanwhile."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Any

import pytest

from rowmerge_nb.engine.spark import spark_session as session
from rowmerge_nb.engine.spark.settings import SessionSettings
from rowmerge_nb.engine.spark.spark_session import SESSION_SETTINGS, AdoptedSession

MINE = {"a": "mine", "b": "mine"}
OURS = {"a": "ours", "b": "ours"}


class Conf(dict[str, str]):
    """Settings of a session in which an event occurs in the middle of one call."""

    call, happens = 0, staticmethod(lambda: None)

    def set(self, key: str, value: str) -> None:
        self.call -= 1
        if self.call == 0:
            self.happens()
        self[key] = value

    def unset(self, key: str) -> None:
        self.call -= 1
        if self.call == 0:
            self.happens()
        del self[key]


def session_with(call: int, happens: Any, settings: dict[str, str]) -> Any:
    conf = Conf(settings)
    conf.call, conf.happens = call, happens
    return SimpleNamespace(conf=conf)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("call", [1, 2, 3, 4])
def test_an_interrupt_while_settings_are_made_or_restored_leaves_the_session_unchanged(
    call: int,
) -> None:
    spark = session_with(call, interrupt, MINE)
    settings = SessionSettings(spark)
    with pytest.raises(KeyboardInterrupt), settings.held(OURS):
        pass
    assert spark.conf == MINE
    with settings.held(OURS):
        assert spark.conf == OURS
    assert spark.conf == MINE


def test_a_setting_that_cannot_be_restored_does_not_block_the_others() -> None:
    def fails() -> None:
        raise OSError("the server is gone")

    spark = session_with(3, fails, MINE)
    with pytest.raises(OSError, match="the server is gone"), SessionSettings(spark).held(OURS):
        pass
    assert spark.conf == {"a": "ours", "b": "mine"}


@pytest.mark.parametrize("call", [1, len(SESSION_SETTINGS), len(SESSION_SETTINGS) + 1])
def test_a_users_session_gets_its_settings_back_despite_interrupts(
    monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    monkeypatch.setattr(session, "keep_quiet", lambda **_: None)
    mine = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    spark = session_with(call, interrupt, mine)
    adopted = AdoptedSession(spark)
    with pytest.raises(KeyboardInterrupt), adopted:
        pass
    assert spark.conf == mine
    with adopted:
        assert spark.conf == dict(SESSION_SETTINGS)
    assert spark.conf == mine
