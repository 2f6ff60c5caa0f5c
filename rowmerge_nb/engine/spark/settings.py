"""Temporary changes of a Spark session's settings by concurrent statements."""

from __future__ import annotations

import threading
import warnings
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.engine.spark.interrupts import (
    interrupts_afterwards,
    interrupts_put_off,
    raise_put_off,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EXCLUDED_RULES: Final = "spark.sql.optimizer.excludedRules"
"""The setting with the optimizer rules that Spark skips, comma-separated."""

_lock = threading.Lock()
_settings_by_id: weakref.WeakValueDictionary[int, SessionSettings] = weakref.WeakValueDictionary()


def settings_of(spark: Any) -> SessionSettings:
    with _lock:
        settings = _settings_by_id.get(id(spark))
        if settings is None:
            settings = _settings_by_id[id(spark)] = SessionSettings(spark)
        return settings


def excluded_rules(*values: str | None) -> str:
    """Combine several values of that setting.

    >>> excluded_rules("my.Rule", None, "another.Rule, my.Rule")
    'my.Rule,another.Rule'
    """
    names = (name.strip() for value in values if value is not None for name in value.split(","))
    return ",".join(dict.fromkeys(filter(None, names)))


class SessionSettings:
    """The holders of each changed setting of a session; the last release restores the original
    value.
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._lock = threading.RLock()
        self._before: dict[str, str | None] = {}
        self._now: dict[str, str | None] = {}
        self._holders: dict[str, list[tuple[object, str]]] = {}

    @contextmanager
    def held(self, values: Mapping[str, str]) -> Iterator[None]:
        holder = self.hold(values)
        try:
            yield
        finally:
            self.release(holder)

    def hold(self, values: Mapping[str, str]) -> object:
        holder = object()
        with interrupts_put_off() as interrupts, self._lock:
            try:
                for key, value in values.items():
                    if key not in self._holders:
                        self._before[key] = self._now[key] = self._spark.conf.get(key, None)
                        self._holders[key] = []
                    self._holders[key].append((holder, value))
                    self._set(key, value)
            except BaseException:
                self._restore(holder)
                raise
        if interrupts.came:
            self.release(holder)
            raise_put_off()
        return holder

    def release(self, holder: object) -> None:
        """Restore the values of remaining holders, or the originals.

        All settings are tried before the first error, or a deferred interrupt, is raised.
        """
        with interrupts_afterwards(), self._lock:
            self._restore(holder)

    def _restore(self, holder: object) -> None:
        failures: list[Exception] = []
        for key, holders in list(self._holders.items()):
            others = [entry for entry in holders if entry[0] is not holder]
            if len(others) == len(holders):
                continue
            self._holders[key] = others
            try:
                self._set(key, others[-1][1] if others else self._before[key])
            except Exception as failure:  # noqa: BLE001 - the other settings must still be restored; raised below
                failures.append(failure)
                continue
            if not others:
                del self._holders[key], self._before[key], self._now[key]
        if failures:
            raise failures[0]

    def _set(self, key: str, value: str | None) -> None:
        """Change a setting in the session, unless it is current: with Connect, each change is a
        round trip.
        """
        if self._now[key] == value:
            return
        with warnings.catch_warnings():
            # A Connect server warns that some settings will become fixed, to our values.
            warnings.simplefilter("ignore")
            if value is None:
                self._spark.conf.unset(key)
            else:
                self._spark.conf.set(key, value)
        self._now[key] = value
