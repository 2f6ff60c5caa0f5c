"""``python -m benchmarks``: all measurements in one run, as a table of ratios."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from benchmarks.bulk import bulk
from benchmarks.data import Case
from benchmarks.engines import BIGINT_KEYS
from benchmarks.functions import functions
from benchmarks.keys import KINDS
from benchmarks.measure import Times, timed
from benchmarks.parsing import growth
from benchmarks.races import RACES, by_keys, growing, race, stage
from benchmarks.session import engines, session
from rowmerge_nb.demo import SETUP, STATEMENT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def small_cell(runs: int) -> None:
    """Time the documents' statement as a notebook cell, including the drawing of its output."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell: Any = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "rowmerge_nb")

    def cell(text: str) -> None:
        with capture_output():
            outcome = shell.run_cell(f"%%merge\n{text}")
        outcome.raise_error()

    def prepare() -> None:
        cell(SETUP)

    prepare()
    cell(STATEMENT)
    times = timed(lambda: cell(STATEMENT), runs, prepare)
    print(
        f"small %%merge cell, warm            p50 {times.percentile(50):.3f} s   p95"
        f" {times.percentile(95):.3f} s   ({runs} runs)"
    )
    least = stage(runs).percentile(50)
    print(f"{'the cell, beside that stage':46} {times.percentile(50) / least:.1f} x")


def analysis(runs: int) -> None:
    """Time the front end on the documents' statement: parse and analyze, without a plan
    or a run.
    """
    from benchmarks.parsing import Tables
    from rowmerge_nb.sql.analyzer.statements.statement import analyze
    from rowmerge_nb.sql.parser.statement_reader import parse

    tables = Tables(
        [("customer", "varchar"), ("purchases", "decimal(10,2)"), ("address", "varchar")]
    )
    analyze(parse(STATEMENT), tables)
    times = timed(lambda: analyze(parse(STATEMENT), tables), runs)
    print(
        f"analysis of the document's statement   p50 {times.percentile(50) * 1000:.1f} ms   p95"
        f" {times.percentile(95) * 1000:.1f} ms"
    )


QUICK = ("analysis", "cell", "first", "pages", "bulk", "race")

FIRST_CELL = """
import os, time
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
ready = time.perf_counter()
shell.run_line_magic("load_ext", "rowmerge_nb")
from rowmerge_nb.demo import SETUP, STATEMENT
with capture_output():
    shell.run_cell("%%merge\\n" + SETUP + ";" + STATEMENT).raise_error()
wall = time.perf_counter() - ready
from benchmarks.measure import processor_time
print(wall, processor_time(os.getpid()))
"""
"""The first cell of a process: tables and the documents' statement.

It prints the time of the cell, and the processor time of all processes.
"""

PREPARE = """
from rowmerge_nb import doctor
print([check.detail for check in doctor(start_spark=False, prepare=True) if check.name == "class cache"])
"""


def first_cell(runs: int) -> None:
    """Time the first cell of a new process, including Spark's start, with and without a class
    cache, side by side.
    """
    seconds: dict[str, list[float]] = {"without a class cache": [], "with a class cache": []}
    work: dict[str, list[float]] = {name: [] for name in seconds}
    with tempfile.TemporaryDirectory() as home:
        caches = dict(
            zip(seconds, ({"ROWMERGE_CLASS_CACHE": "off"}, {"XDG_CACHE_HOME": home}), strict=True)
        )
        began = time.perf_counter()
        report = _in_process(PREPARE, caches["with a class cache"])
        print(f"making a class cache took {time.perf_counter() - began:.0f} s: {report}")
        for _ in range(runs):
            for name, variables in caches.items():
                wall, processors = _in_process(FIRST_CELL, variables).split()
                seconds[name].append(float(wall))
                work[name].append(float(processors))
    for name, times in seconds.items():
        print(
            f"first %%merge {name:22} {Times(tuple(times))}   of the processors"
            f" {Times(tuple(work[name]))}"
        )


def _in_process(program: str, variables: Mapping[str, str]) -> str:
    """Run a program in its own process; return its last line.

    Its child processes end with it.
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **variables},
    )
    return done.stdout.splitlines()[-1]


def transform_page(rows: int) -> None:
    """Time both processors alone."""
    from rowmerge_nb.engine.tasks.processors import create_processor
    from rowmerge_nb.spi import PageLayout, RowChangeParadigm

    table = Case(rows, 1).target.combine_chunks().to_batches()[0]
    columns = table.schema.append(pa.field("row_id", pa.int64()))
    layout = PageLayout(len(table.schema), (table.schema.get_field_index("region"),))
    schema = layout.input_schema(columns)
    operation = pa.array(np.resize([3, 3, 3, 1, 2, -1], rows).astype(np.int8))
    number = pa.array(np.resize([1, 1, 1, 2, 0, -1], rows).astype(np.int32))
    control = [pa.array(np.ones(rows, bool)), operation, number]
    merge_row = pa.StructArray.from_arrays(
        [*table.columns, *control], fields=list(schema.field(layout.before.merge_row).type)
    )
    ids = pa.array(np.arange(rows))
    arrays = [table.column(1), ids, ids, merge_row, number, pa.array(np.ones(rows, np.int8))]
    page = pa.RecordBatch.from_arrays(arrays, schema=schema)
    for paradigm in RowChangeParadigm:
        processor = create_processor(paradigm, layout, columns)
        times = timed(partial(processor.transform_page, page), 7)
        speed = (
            f"{rows / times.median / 1e6:6.1f} M rows/s  {page.nbytes / times.median / 1e9:5.2f}"
            " GB/s"
        )
        print(f"transform_page {paradigm.name:28} {speed}   ({rows} rows, 6 channels)")


def main() -> None:
    """Run the requested measurements; by default everything but the races of stores."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument(
        "--only",
        choices=[
            *dict.fromkeys([*QUICK, "parse", *RACES, "keys", "growth", "session", "functions"])
        ],
        action="append",
    )
    parser.add_argument("--runs", type=int, default=5, help="warm rounds of a race (default 5)")
    parser.add_argument("--target", type=int, default=1_000_000)
    parser.add_argument("--source", type=int, default=100_000)
    parser.add_argument(
        "--keys",
        help=(
            "kinds of keys, separated by commas: one for a race, all for `--only keys` if none is"
            " named"
        ),
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="where the random numbers begin (default 1)"
    )
    parser.add_argument(
        "--long", action="store_true", help="a target of 100 million rows in `--only growth`"
    )
    parser.add_argument(
        "--picture", type=Path, help="an SVG file for the picture of `--only growth`"
    )
    parser.add_argument(
        "--statements", type=int, default=500, help="statements of a session (default 500)"
    )
    parser.add_argument(
        "--among",
        help=(
            "the stores and engines that race, by words of their names, separated by commas; for"
            " `--only functions` parts of calls"
        ),
    )
    chosen = parser.parse_args()
    keys = chosen.keys.split(",") if chosen.keys else []
    if unknown := [name for name in keys if name not in KINDS]:
        parser.error(f"there are no keys {', '.join(unknown)}: choose from {', '.join(KINDS)}")
    if {"delete", "update"} & set(chosen.only or ()) and not set(keys) <= set(BIGINT_KEYS):
        parser.error(
            f"DELETE and UPDATE compute with the key: choose from {', '.join(BIGINT_KEYS)}"
        )
    measure(set(chosen.only or QUICK), chosen, keys)


def measure(works: set[str], chosen: argparse.Namespace, keys: list[str]) -> None:
    """Measure the requested subjects, always in the same order."""
    words = [word.strip().lower() for word in chosen.among.split(",")] if chosen.among else []
    case = Case(chosen.target, chosen.source, KINDS[keys[0] if keys else "dense"], chosen.seed)
    plain: dict[str, Callable[[], None]] = {
        "analysis": partial(analysis, 50),
        "parse": partial(growth, 500, chosen.runs),
        "first": partial(first_cell, 3),
        "cell": partial(small_cell, 30),
        "pages": partial(transform_page, 1_000_000),
        "session": partial(long_session, chosen.statements),
        "bulk": partial(bulk, chosen.runs),
        "functions": partial(functions, chosen.target, words),
    }
    for name, run in plain.items():
        if name in works:
            run()
    for name, known in RACES.items():
        if name in works:
            race(known, case, chosen.runs, words)
    if "select" in works:
        stage(chosen.runs)
    if "keys" in works:
        by_keys(case, keys or list(KINDS), chosen.runs, words)
    if "growth" in works:
        growing(case, chosen.runs, words, long=chosen.long, picture=chosen.picture)


def long_session(statements: int) -> None:
    """Run a long session, then open and close engines."""
    session(statements)
    engines(20)


if __name__ == "__main__":
    main()
