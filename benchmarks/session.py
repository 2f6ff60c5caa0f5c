"""A long session: many small statements over several stores in one process, and the resources
that it holds meanwhile.
"""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.measure import Times, children, resident
from benchmarks.stores import SCHEMAS

if TYPE_CHECKING:
    from rowmerge_nb import Engine

__all__ = ["engines", "session"]

STORES: Final = ("memory", "hive", "sqlite", "iceberg")
KEYED: Final = {"sqlite": " WITH (primary_key = ARRAY['id'])"}
ROUND: Final = (
    "INSERT INTO {table} VALUES ({new}, 'new', 1.0)",
    (
        "MERGE INTO {table} t USING (VALUES (1, 'one'), ({new}, 'two')) s (id, name) ON t.id = s.id"
        " WHEN MATCHED THEN UPDATE SET name = s.name, amount = t.amount + 1 WHEN NOT MATCHED THEN"
        " INSERT (id, name) VALUES (s.id, s.name)"
    ),
    "UPDATE {table} SET amount = amount + 1 WHERE id = 2",
    "DELETE FROM {table} WHERE id = {new}",
    "SELECT count(*), sum(amount) FROM {table}",
)
"""The repeated changes of a table, which keep its number of rows."""
COMPACTED: Final = {"hive": "CALL {store}.system.compact('default', 'ledger', 'major')"}
WINDOW: Final = 20


@dataclass(frozen=True)
class Held:
    """The resources of a process and its descendants."""

    driver: int
    java: int
    heap: int
    workers: int
    processes: int
    files: int
    threads: int
    java_threads: int
    temporary: int
    storage: int

    TITLES = (
        "driver MB",
        "java MB",
        "heap MB",
        "workers MB",
        "processes",
        "files",
        "threads",
        "java threads",
        "temp files",
        "temp kB",
    )

    @classmethod
    def now(cls, spark: Any, folder: Path) -> Held:
        """Measure after both garbage collectors have run."""
        gc.collect()
        management = spark._jvm.java.lang.management.ManagementFactory  # noqa: SLF001 - this looks into Java, no statement does
        spark._jvm.java.lang.System.gc()  # noqa: SLF001
        time.sleep(0.5)
        below = children(os.getpid())
        java = sum(resident(number) for number, name in below if name == "java")
        workers = [resident(number) for number, name in below if name != "java"]
        files = [path for path in folder.rglob("*") if path.is_file()]
        return cls(
            driver=resident(os.getpid()) // 1_000_000,
            java=java // 1_000_000,
            heap=management.getMemoryMXBean().getHeapMemoryUsage().getUsed() // 1_000_000,
            workers=sum(workers) // 1_000_000,
            processes=len(below),
            files=len(list(Path("/proc/self/fd").iterdir())),
            threads=threading.active_count(),
            java_threads=management.getThreadMXBean().getThreadCount(),
            temporary=len(files),
            storage=sum(path.stat().st_size for path in files if path.exists()) // 1_000,
        )

    def row(self) -> str:
        """Return the numbers under `TITLES`."""
        numbers = (getattr(self, name) for name in self.__dataclass_fields__)
        return "".join(
            f"{number:>{len(title) + 2}}"
            for number, title in zip(numbers, self.TITLES, strict=True)
        )


def session(statements: int) -> None:
    """Run small statements over four stores, and print the held resources and the time of a statement as the
    session goes on.

    Temporary files are those of the whole session but for the tables; an Iceberg table keeps its
    former snapshots, and a Hive table is compacted after every hundred statements, as its users do.
    """
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="session-")))
        tables = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="session-tables-")))
        before, tempfile.tempdir = tempfile.tempdir, str(temporary)
        stack.callback(setattr, tempfile, "tempdir", before)
        engine = stack.enter_context(_engine(tables))
        times: dict[str, list[float]] = {store: [] for store in STORES}
        print(
            "statement"
            + "".join(f"  {title}" for title in Held.TITLES)
            + "".join(f"  {store:>8}" for store in STORES)
        )
        for number, (store, sql) in enumerate(_statements(), 1):
            began = time.perf_counter()
            result = engine.run(sql)
            str(result)
            times[store].append(time.perf_counter() - began)
            if number % 100 == 0:
                for compacted, call in COMPACTED.items():
                    engine.run(call.format(store=compacted))
            if number == 50 or number % 100 == 0:
                latest = "".join(
                    f"{Times(tuple(times[name][-WINDOW:])).median:>8.3f} s" for name in STORES
                )
                print(f"{number:>9}{Held.now(engine.spark, temporary).row()}{latest}", flush=True)
            if number == statements:
                return


def _engine(folder: Path) -> Engine:
    import rowmerge_nb as rm

    engine = rm.Engine()
    engine.add_catalog("hive", rm.HiveAcidConnector(str(folder / "hive")))
    engine.add_catalog("sqlite", rm.SqliteConnector(str(folder / "ledger.db"), create=True))
    engine.add_catalog("iceberg", rm.IcebergConnector(str(folder / "iceberg")))
    for store in STORES:
        columns = "(id bigint NOT NULL, name varchar, amount decimal(12,2))"
        engine.run(f"CREATE TABLE {_table(store)} {columns}{KEYED.get(store, '')}")
        engine.run(
            f"INSERT INTO {_table(store)} VALUES (1, 'a', 1.0), (2, 'b', 2.0), (3, 'c', 3.0)"
        )
    return engine


def _statements() -> Iterator[tuple[str, str]]:
    for number in count(10):
        for sql in ROUND:
            for store in STORES:
                yield store, sql.format(table=_table(store), new=number)


def _table(store: str) -> str:
    return f"{store}.{SCHEMAS.get(store, 'default')}.ledger"


def engines(times: int) -> None:
    """Open and close two engines in one process repeatedly, and print the resources held after the
    first time and after the last.

    A third engine stays open, and so does Spark, whose start would hide everything else.
    """
    import rowmerge_nb as rm

    with ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="session-")))
        before, tempfile.tempdir = tempfile.tempdir, str(temporary)
        stack.callback(setattr, tempfile, "tempdir", before)
        kept = stack.enter_context(rm.Engine())
        kept.run("SELECT 1")
        print("opened   " + "".join(f"  {title}" for title in Held.TITLES))
        for number in range(1, times + 1):
            with (
                tempfile.TemporaryDirectory(prefix="tables-") as tables,
                _engine(Path(tables)) as one,
                rm.Engine() as other,
            ):
                other.run("CREATE TABLE t AS SELECT 1 a")
                one.run(f"SELECT count(*) FROM {_table('iceberg')}")
            if number in {1, times // 2, times}:
                print(f"{number:>9}{Held.now(kept.spark, temporary).row()}", flush=True)
