"""A connector with a requested failure is otherwise the same as the wrapped one."""

from __future__ import annotations

from pathlib import Path

from rowmerge_nb import HiveAcidConnector
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.spi import Connector, Orphan
from rowmerge_nb.testing.faults import FaultyConnector


class Messy(MemoryConnector):
    """A store with one leftover object."""

    def orphans(self) -> list[Orphan]:
        return [Orphan("folder")]

    def remove_orphans(self) -> list[Orphan]:
        return [Orphan("folder"), Orphan("and what was in it")]


def test_leftovers_and_procedures_are_those_of_the_connector_within(tmp_path: Path) -> None:
    messy, hive = Messy(), HiveAcidConnector(tmp_path)
    assert FaultyConnector(messy).orphans() == messy.orphans()
    assert FaultyConnector(messy).remove_orphans() == messy.remove_orphans()
    names = [procedure.name for procedure in FaultyConnector(hive).get_procedures()]
    assert names == [procedure.name for procedure in hive.get_procedures()] != []


def test_nothing_of_the_contract_is_answered_by_a_default() -> None:
    contract = {name for name in vars(Connector) if not name.startswith("_")}
    assert contract <= vars(FaultyConnector).keys()
