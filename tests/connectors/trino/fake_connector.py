"""A TrinoConnector on the host without Java."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from rowmerge_nb.connectors.trino.trino_connector import TrinoConnector

if TYPE_CHECKING:
    from pathlib import Path


class FakeTrinoConnector(TrinoConnector):
    """Needs neither Java nor JPype: the jars are empty files in ``folder``."""

    _program: ClassVar[str] = "tests.connectors.trino.fake_host"

    def __init__(self, folder: Path, name: str = "memory", **arguments: Any) -> None:
        """Use one process, since the host without Java keeps its rows in memory."""
        jar = folder / "plugin" / "shop.jar"
        jar.parent.mkdir(exist_ok=True)
        jar.touch()
        super().__init__(name, plugin=jar.parent, trino=jar.parent, **{"processes": 1, **arguments})

    def _check_machine(self) -> None:
        pass
