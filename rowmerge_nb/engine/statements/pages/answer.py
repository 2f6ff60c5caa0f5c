"""Queries computed by DuckDB over streams of pages, with limited memory and no other access."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import pyarrow as pa

from rowmerge_nb.base.errors import SetupError, StatementInterrupted
from rowmerge_nb.base.private import PrivateDirectory
from rowmerge_nb.engine.spark.interrupts import run_cancellable
from rowmerge_nb.engine.spark.java.java_options import usual_cores
from rowmerge_nb.engine.spark.memory import all_memory
from rowmerge_nb.engine.statements.pages.counted_rows import counted_rows
from rowmerge_nb.engine.statements.pages.stream import PageStream
from rowmerge_nb.engine.tasks.page_program import require_duckdb, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rowmerge_nb.engine.tasks.scan import ScanPass
    from rowmerge_nb.plan.page_query import PagedQuery
    from rowmerge_nb.plan.plan_nodes import TableScan

T = TypeVar("T")
Counts: TypeAlias = dict[str, int]
Scanner: TypeAlias = "Callable[[TableScan], ScanPass]"

PAGE_ROWS: Final = 1 << 16
"""Rows per page of a result."""
_AHEAD: Final = 8
"""Pages to read ahead: a few megabytes."""
_SHARE: Final = 4
"""DuckDB may use 1/4 of the machine's memory; beyond it, groups and sorts spill to files."""
_LEAST: Final = 1 << 28
_KEPT_OPTIMIZERS: Final = frozenset({"top_n"})
"""Top-N avoids a complete sort.

Other optimizers may drop failing terms (x + 1 = 5 becomes x = 4) or reorder them.
"""


class PagesRefusedError(Exception):
    """DuckDB's result would not be reliable; Spark must compute the query, or raise its error."""


def answer(query: PagedQuery, scan: Scanner, cancelled: threading.Event) -> tuple[pa.Table, Counts]:
    """Return the rows of a query, and the row counts of its nodes by their ids.

    Args:
        scan: returns the pass that reads a table.
    """
    return _answered(query, scan, cancelled, lambda rows: rows.to_arrow_table())


def stream_answer(
    query: PagedQuery,
    scan: Scanner,
    cancelled: threading.Event,
    take: Callable[[Iterator[pa.RecordBatch]], T],
) -> tuple[T, Counts]:
    """Pass the rows of a query to `take`, page by page, in another thread; return its result and
    row counts. Raises as `answer` does.
    """
    return _answered(
        query, scan, cancelled, lambda rows: take(_pages_of(rows.to_arrow_reader(PAGE_ROWS)))
    )


def _pages_of(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            page = reader.read_next_batch()
        except StopIteration:
            return
        except OSError as error:
            # Arrow reports every error within a stream as an OSError.
            raise pa.ArrowInvalid(str(error)) from error
        yield page


def _answered(
    query: PagedQuery, scan: Scanner, cancelled: threading.Event, take: Callable[[Any], T]
) -> tuple[T, Counts]:
    # What needs few pages reads few, in their order.
    ahead = 1 if query.ends_early else _AHEAD
    passes = {name: scan(table_scan) for name, table_scan in query.scans.items()}
    stopped = threading.Event()
    with _connected() as connection, ExitStack() as stack:
        streams = {
            name: stack.enter_context(
                PageStream(part, ahead, stopped, gathers=not query.ends_early)
            )
            for name, part in passes.items()
        }

        def cancel() -> None:
            stopped.set()
            connection.interrupt()

        return run_cancellable(
            lambda: _computed(connection, query, streams, cancelled, take),
            cancel,
            cancelled,
            "the reading of its tables is ended",
        )


def _computed(
    connection: Any,
    query: PagedQuery,
    streams: Mapping[str, PageStream],
    cancelled: threading.Event,
    take: Callable[[Any], T],
) -> tuple[T, Counts]:
    duckdb = require_duckdb()
    failure: Exception | None = None
    results: list[T] = []
    try:
        for name, values in query.lists.items():
            connection.register(name, pa.table([values], names=["v"]))
        # One thread returns the rows of a small table in the same order each time.
        for pages in streams.values():
            pages.start()
        is_parallel = not query.ends_early and any(
            pages.has_several() for pages in streams.values()
        )
        _lock(connection, usual_cores() if is_parallel else 1)
        for name, pages in streams.items():
            connection.register(name, pages.reader())
        results.append(take(connection.sql(query.sql)))
    except (duckdb.Error, pa.ArrowException) as error:
        failure = error
    if cancelled.is_set():
        raise StatementInterrupted("The statement was cancelled", step="run") from failure
    for pages in streams.values():
        if pages.failure is not None:
            raise pages.failure
    if failure is not None:
        raise PagesRefusedError(translated(str(failure)).message) from failure
    return results[0], counted_rows(connection, query.root)


def _lock(connection: Any, threads: int) -> None:
    """Set the number of threads; no setting can be changed afterwards."""
    connection.execute(f"SET threads = {threads}")
    connection.execute("SET lock_configuration = true")


@contextmanager
def _connected() -> Iterator[Any]:
    """Yield a DuckDB without access to anything but its own spill files."""
    try:
        duckdb, private = require_duckdb(), PrivateDirectory()
    except SetupError as error:
        raise PagesRefusedError(error.message) from error
    try:
        connection = duckdb.connect(
            config={
                "memory_limit": f"{max((all_memory() or 0) // _SHARE, _LEAST)}B",
                "temp_directory": str(private.path),
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "python_enable_replacements": False,
            }
        )
        try:
            names = [
                name
                for (name,) in connection.sql("SELECT name FROM duckdb_optimizers()").fetchall()
            ]
            connection.execute(
                f"SET disabled_optimizers = '{','.join(sorted(set(names) - _KEPT_OPTIMIZERS))}'"
            )
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("PRAGMA enable_profiling = 'no_output'")
            connection.execute("SET enable_external_access = false")
            yield connection
        finally:
            connection.close()
    finally:
        private.remove()
