"""Statements with many constants: the growth of their time with the number of constants."""

from __future__ import annotations

import tempfile
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rowmerge_nb import Engine

SIZES = (10_000, 100_000)
COLUMNS = "(id integer, name varchar, price decimal(10,2))"


def bulk(runs: int) -> None:
    """Time INSERT ...

    VALUES and IN with ten thousand and a hundred thousand values; parsing and analysis separately.
    """
    from rowmerge_nb import Engine
    from rowmerge_nb.connectors.iceberg.iceberg_connector import IcebergConnector

    with tempfile.TemporaryDirectory() as folder, Engine() as engine:
        engine.add_catalog("lake", IcebergConnector(folder))
        engine.run("CREATE SCHEMA IF NOT EXISTS lake.bench")
        for table in ("memory.default.bulk", "lake.bench.bulk"):
            engine.run(f"CREATE TABLE {table} {COLUMNS}")
            _grow(engine, f"INSERT INTO {table} VALUES", _rows, runs)
            _grow(engine, f"DELETE FROM {table} WHERE id IN", _ids, runs)


def _rows(size: int) -> str:
    return ", ".join(f"({number}, 'name {number}', {number % 1000}.25)" for number in range(size))


def _ids(size: int) -> str:
    return f"({', '.join(str(-number) for number in range(1, size + 1))})"


def _grow(engine: Engine, begin: str, constants: Callable[[int], str], runs: int) -> None:
    """Time a statement with few and with many constants."""
    totals = []
    for size in SIZES:
        text = f"{begin} {constants(size)}"
        engine.run(text)
        total, read, analyzed = min(_timed(engine, text) for _ in range(runs))
        totals.append(total)
        print(
            f"{begin:44} {size:>7} values  {total:5.2f} s, of it read {read:5.2f} s, analyzed"
            f" {analyzed:5.2f} s"
        )
    print(f"{begin:44} ten times the values take {totals[1] / totals[0]:4.1f} times as long")


def _timed(engine: Engine, text: str) -> tuple[float, float, float]:
    """Seconds of all, and of the steps ``parse`` and ``analyze``."""
    begun: list[tuple[str, float]] = []

    def note(step: str) -> None:
        begun.append((step, time.perf_counter()))

    started = time.perf_counter()
    engine.run(text, progress=note)
    ended = time.perf_counter()
    analyze = next(place for place, (step, _) in enumerate(begun) if step == "analyze")
    return ended - started, begun[analyze][1] - started, begun[analyze + 1][1] - begun[analyze][1]
