"""Settings of a Spark session that statements change for a while, side by side: a session is left as it was found."""

from __future__ import annotations

import threading
import warnings
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.engine.spark.interrupts import interrupts_afterwards, interrupts_put_off, raise_put_off

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EXCLUDED_RULES: Final = "spark.sql.optimizer.excludedRules"
"""The setting that names the rules that Spark's optimizer leaves out, with commas between them."""

_lock = threading.Lock()
_known: weakref.WeakValueDictionary[int, SessionSettings] = weakref.WeakValueDictionary()


def settings_of(spark: Any) -> SessionSettings:
    """Return the settings of a session; all who change some of one session at the same time share them."""
    with _lock:
        found = _known.get(id(spark))
        if found is None:
            found = _known[id(spark)] = SessionSettings(spark)
        return found


def excluded_rules(*told: str | None) -> str:
    """Return the value of that setting that leaves out all that any of several values does; None says nothing.

    >>> excluded_rules("my.Rule", None, "another.Rule, my.Rule")
    'my.Rule,another.Rule'
    """
    names = (name.strip() for value in told if value is not None for name in value.split(","))
    return ",".join(dict.fromkeys(filter(None, names)))


class SessionSettings:
    """Knows who has changed which setting of a session; whoever leaves last finds it as the first one did.

    Args:
        spark: the session.

    >>> class Conf(dict):
    ...     set = dict.__setitem__
    ...     unset = dict.pop
    >>> class Session:
    ...     conf = Conf({"zone": "Asia/Tokyo"})
    >>> settings = SessionSettings(Session())
    >>> first, second = settings.hold({"zone": "UTC", "cores": "1"}), settings.hold({"zone": "CET"})
    >>> Session.conf
    {'zone': 'CET', 'cores': '1'}
    >>> settings.release(first); Session.conf
    {'zone': 'CET'}
    >>> settings.release(second); Session.conf
    {'zone': 'Asia/Tokyo'}
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._lock = threading.RLock()
        self._before: dict[str, str | None] = {}
        self._now: dict[str, str | None] = {}
        self._holders: dict[str, list[tuple[object, str]]] = {}

    @contextmanager
    def held(self, values: Mapping[str, str]) -> Iterator[None]:
        """Set some settings for a while."""
        holder = self.hold(values)
        try:
            yield
        finally:
            self.release(holder)

    def hold(self, values: Mapping[str, str]) -> object:
        """Set some settings until what is given here is released."""
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
                self._give_back(holder)
                raise
        if interrupts.came:
            self.release(holder)
            raise_put_off()
        return holder

    def release(self, holder: object) -> None:
        """Leave the settings to those who hold them still, or as they were before anybody did.

        All of them are tried, whatever the session raises at one; the first such error is raised in the end, and an interrupt after that.
        """
        with interrupts_afterwards(), self._lock:
            self._give_back(holder)

    def _give_back(self, holder: object) -> None:
        failures: list[Exception] = []
        for key, holders in list(self._holders.items()):
            left = [entry for entry in holders if entry[0] is not holder]
            if len(left) == len(holders):
                continue
            self._holders[key] = left
            try:
                self._set(key, left[-1][1] if left else self._before[key])
            except Exception as failure:  # noqa: BLE001 - the others must be given back all the same; it is raised below
                failures.append(failure)
                continue
            if not left:
                del self._holders[key], self._before[key], self._now[key]
        if failures:
            raise failures[0]

    def _set(self, key: str, value: str | None) -> None:
        """Set the value in the session unless it is set already: over a network that takes a while."""
        if self._now[key] == value:
            return
        with warnings.catch_warnings():
            # A Connect server warns of settings with which it will have only one meaning some day: ours.
            warnings.simplefilter("ignore")
            if value is None:
                self._spark.conf.unset(key)
            else:
                self._spark.conf.set(key, value)
        self._now[key] = value
