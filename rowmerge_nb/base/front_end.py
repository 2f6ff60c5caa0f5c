"""How messages write calls and options: as a program does, or as a cell does.

A message is written once, where it arises. What it proposes depends on its reader: a program calls an
engine, a cell has commands.

>>> orphans_command(), engine_call("restore('t', 3)"), either("near=True", "--near")
('engine.orphans()', "engine.restore('t', 3)", 'near=True')
>>> with cell_front_end("", functions={"restore"}):
...     print(orphans_command(), engine_call("restore('t', 3)"), engine_call("table('t')"), sep=" | ")
%merge doctor --orphans | rowmerge_nb.restore('t', 3) | rowmerge_nb.default_engine().table('t')
"""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_PACKAGE: Final = "rowmerge_nb"


@dataclass(frozen=True)
class _Cell:
    engine: str
    functions: frozenset[str]

    def owner(self, method: str) -> str:
        if self.engine:
            return self.engine
        return _PACKAGE if method in self.functions else f"{_PACKAGE}.default_engine()"


_cell: ContextVar[_Cell | None] = ContextVar("_cell", default=None)


@contextmanager
def cell_front_end(engine: str, functions: Collection[str]) -> Iterator[None]:
    """Write messages for a cell meanwhile.

    Args:
        engine: the variable of its engine, or ``""`` for the default engine.
        functions: the package's functions, which call the default engine.
    """
    token = _cell.set(_Cell(engine, frozenset(functions)))
    try:
        yield
    finally:
        _cell.reset(token)


def engine_call(call: str) -> str:
    """Return a call of the engine, such as ``restore('t', 3)``, with its owner."""
    cell = _cell.get()
    return f"{'engine' if cell is None else cell.owner(call.partition('(')[0])}.{call}"


def result_call(call: str) -> str:
    """Return a call of the statement's result, such as ``why()``, with its owner."""
    return f"{either('result', '_merge')}.{call}"


def either(program: str, cell: str) -> str:
    """Return the form for the reader: of an option, ``near=True`` or ``--near``."""
    return program if _cell.get() is None else cell


def undo_command(table: str) -> str:
    """Return how the last change of a table is taken back.

    >>> undo_command('shop.t')
    "engine.undo('shop.t')"
    """
    return either(f"engine.undo({table!r})", f"%merge undo {table}")


def orphans_command() -> str:
    """Return how leftovers are listed."""
    return either("engine.orphans()", "%merge doctor --orphans")


def connect_command(store: str, location: str, name: str) -> str:
    """Return how a store is connected.

    >>> connect_command("iceberg", "warehouse/", "ice")
    "engine.connect('iceberg', 'warehouse/', name='ice')"
    """
    return either(
        f"engine.connect({store!r}, {location!r}, name={name!r})",
        f"%merge connect {store} {shlex.quote(location)} AS {name}",
    )
