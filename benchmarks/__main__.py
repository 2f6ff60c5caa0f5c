"""``python -m benchmarks``: all measurements in one run, as a table of ratios."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.engines import Contestant, DeltaRs, DuckDB, RowMerge
from benchmarks.measure import Times, timed
from rowmerge_nb.demo import SETUP, STATEMENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.spi.types import Type
    from rowmerge_nb.sql.analysis import TableBinding


def small_cell(runs: int) -> None:
    """Time the documents' statement as a cell of a notebook, drawing of the output included."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output

    shell = InteractiveShell.instance()
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
        f"small %%merge cell, warm            p50 {times.percentile(50):.3f} s   p95 {times.percentile(95):.3f} s   ({runs} runs)"
    )


def analysis(runs: int) -> None:
    """Time reading and understanding the documents' statement: parse and analyze, nothing planned and nothing run."""
    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.types import parse_type
    from rowmerge_nb.sql.analysis import TableBinding
    from rowmerge_nb.sql.analyzer import analyze
    from rowmerge_nb.sql.parser import parse

    columns = tuple(
        ColumnMetadata(name, parse_type(kind))
        for name, kind in (("customer", "varchar"), ("purchases", "decimal(10,2)"), ("address", "varchar"))
    )

    class Tables:
        """Two tables with the columns of the documents' example."""

        def resolve(self, parts: Sequence[str]) -> TableBinding:
            name = ".".join(parts)
            return TableBinding(name, "memory", f"memory.default.{name}", columns, f"v_{name}")

        def qualify(self, parts: Sequence[str]) -> tuple[str, str, str]:
            return "memory", "default", parts[-1]

        def names(self) -> Sequence[str]:
            return []

        def describe(self, spark_sql: str, bindings: Sequence[TableBinding]) -> Sequence[tuple[str, Type]]:
            return []

    tables = Tables()
    analyze(parse(STATEMENT), tables)
    times = timed(lambda: analyze(parse(STATEMENT), tables), runs)
    print(
        f"analysis of the document's statement   p50 {times.percentile(50) * 1000:.1f} ms   p95 {times.percentile(95) * 1000:.1f} ms"
    )


FIRST_CELL = """
import time; started = time.perf_counter()
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
shell = InteractiveShell.instance()
ready = time.perf_counter()
shell.run_line_magic("load_ext", "rowmerge_nb")
loaded = time.perf_counter()
from rowmerge_nb.demo import SETUP, STATEMENT
with capture_output():
    shell.run_cell("%%merge\\n" + SETUP + ";" + STATEMENT).raise_error()
print(loaded - ready, time.perf_counter() - loaded)
"""


def first_cell(runs: int) -> None:
    """Time the first cell of a fresh process: tables and the documents' statement, Spark's start included."""
    load, first = [], []
    for _ in range(runs):
        answer = subprocess.run([sys.executable, "-c", FIRST_CELL], capture_output=True, text=True, check=True)
        numbers = answer.stdout.split()[-2:]
        load.append(float(numbers[0]))
        first.append(float(numbers[1]))
    print(f"%load_ext in a fresh process      {Times(tuple(load))}")
    print(f"first %%merge of a fresh process  {Times(tuple(first))}")


def transform_page(rows: int) -> None:
    """Time both processors alone."""
    from rowmerge_nb.engine.processors import MergeLayout, create_processor
    from rowmerge_nb.spi import RowChangeParadigm

    layout = MergeLayout(tuple(data.SCHEMA), ("region",), pa.int64(), has_hash=True)
    table = data.target(rows).combine_chunks().to_batches()[0]
    operation = pa.array(np.resize([3, 3, 3, 1, 2, -1], rows).astype(np.int8))
    number = pa.array(np.resize([1, 1, 1, 2, 0, -1], rows).astype(np.int32))
    control = [pa.array(np.ones(rows, bool)), operation, number]
    merge_row = pa.StructArray.from_arrays([*table.columns, *control], fields=list(layout.merge_row))
    ids = pa.array(np.arange(rows))
    arrays = [table.column(1), ids, ids, merge_row, number, pa.array(np.ones(rows, np.int8))]
    page = pa.RecordBatch.from_arrays(arrays, schema=layout.input_schema)
    for paradigm in RowChangeParadigm:
        processor = create_processor(paradigm, layout)
        times = timed(lambda processor=processor: processor.transform_page(page), 7)
        speed = f"{rows / times.median / 1e6:6.1f} M rows/s  {page.nbytes / times.median / 1e9:5.2f} GB/s"
        print(f"transform_page {paradigm.name:28} {speed}   ({rows} rows, 6 channels)")


def race(target_rows: int, source_rows: int, runs: int) -> None:
    """Merge the same tables with all engines, one after the other in every round."""
    target, source = data.target(target_rows), data.source(source_rows, target_rows)
    contestants: list[Contestant] = [
        DeltaRs(),
        DuckDB(),
        RowMerge(),
        RowMerge(trace="off"),
        RowMerge(paradigm="CHANGE_ONLY_UPDATED_COLUMNS"),
    ]
    seconds: dict[str, list[float]] = {c.name: [] for c in contestants}
    fingerprints = {}
    for _ in range(runs + 1):
        for contestant in contestants:
            contestant.prepare(target, source)
            started = time.perf_counter()
            contestant.merge()
            seconds[contestant.name].append(time.perf_counter() - started)
            fingerprints[contestant.name] = data.fingerprint(contestant.content())
    if len(set(fingerprints.values())) != 1:
        sys.exit(f"The engines disagree: {fingerprints}")
    base = Times(tuple(seconds[DeltaRs.name][1:])).median
    print(
        f"\n{target_rows:,} target rows, {source_rows:,} source rows; {runs} warm rounds; all engines give {fingerprints[DeltaRs.name]}"
    )
    print(f"{'engine':58} {'first':>7}  {'warm median [min .. max]':28} x delta-rs")
    for contestant in contestants:
        first, *warm = seconds[contestant.name]
        times = Times(tuple(warm))
        print(f"{contestant.name:58} {first:7.3f}  {times!s:28} {times.median / base:5.2f}")


def main() -> None:
    """Run what is asked for; everything by default."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--only", choices=["analysis", "cell", "first", "pages", "race"], action="append")
    parser.add_argument("--runs", type=int, default=5, help="warm rounds of the race (default 5)")
    parser.add_argument("--target", type=int, default=1_000_000)
    parser.add_argument("--source", type=int, default=100_000)
    chosen = parser.parse_args()
    wanted = set(chosen.only or ["analysis", "cell", "first", "pages", "race"])
    if "analysis" in wanted:
        analysis(50)
    if "first" in wanted:
        first_cell(3)
    if "cell" in wanted:
        small_cell(30)
    if "pages" in wanted:
        transform_page(1_000_000)
    if "race" in wanted:
        race(chosen.target, chosen.source, chosen.runs)


if __name__ == "__main__":
    main()
