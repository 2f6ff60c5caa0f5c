"""Leftovers of several catalogs, and interrupts while they are listed or removed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

import pytest

from rowmerge_nb import MemoryConnector, StatementInterrupted
from rowmerge_nb.engine.catalog.leftovers import orphans_of
from rowmerge_nb.engine.spark import interrupts
from rowmerge_nb.spi import Orphan


class Store(MemoryConnector):
    """A connector with a leftover that runs an action while it is listed or removed."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._meanwhile = meanwhile
        self.removed = False

    def orphans(self) -> Sequence[Orphan]:
        self._meanwhile()
        return [Orphan("file", "left")]

    def remove_orphans(self) -> Sequence[Orphan]:
        self._meanwhile()
        self.removed = True
        return [Orphan("file", "left")]


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


def test_an_interrupted_search_for_leftovers_reports_that_nothing_was_removed() -> None:
    with pytest.raises(StatementInterrupted, match="nothing was removed") as caught:
        orphans_of({"a": Store(interrupt)}, remove=False)
    assert caught.value.changed is False


def test_an_interrupted_removal_ends_in_its_catalog_and_reports_what_was_removed() -> None:
    stores = {"a": Store(), "b": Store(interrupt), "c": Store()}
    with pytest.raises(StatementInterrupted) as caught:
        orphans_of(stores, remove=True)
    words = "The removal of leftovers was interrupted: 2 leftovers removed from a, b; nothing was removed from c"
    assert caught.value.message == words
    assert caught.value.changed is True
    assert [store.removed for store in stores.values()] == [True, True, False]


def test_a_removal_ended_by_a_second_interrupt_does_not_claim_what_it_cannot_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interrupts, "PATIENCE_SECONDS", 0.0)
    stores = {"a": Store(lambda: [interrupt(), interrupt()]), "b": Store()}
    with pytest.raises(
        StatementInterrupted, match="some may be removed from a; nothing was removed from b"
    ) as caught:
        orphans_of(stores, remove=True)
    assert caught.value.changed is None
    assert not any(store.removed for store in stores.values())
