"""The engine without Spark: a MERGE's one action is done by this process, its passes and sinks as tasks would run them, one after the other.

All else is the engine's own: text, plan, the connector's calls, commit, rollback, and what is said in the end.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.engine import Engine
from rowmerge_nb.engine.spark.lazy_session import LazySession
from rowmerge_nb.engine.spark.lowering_context import LoweringContext
from rowmerge_nb.engine.spark.passes import merge_pass
from rowmerge_nb.engine.statements import dispatch as runs
from rowmerge_nb.engine.statements.merge import MergeRun
from rowmerge_nb.engine.statements.row_change import Planned, plan_of
from rowmerge_nb.engine.tasks.outcome import OUTCOME
from rowmerge_nb.plan.nodes import MergeProcessor, TableScan
from rowmerge_nb.plan.rules import RULES, chain
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rowmerge_nb.engine.tasks.merge import MergePass

__all__ = ["MERGE", "InProcessEngine", "after_merge", "without_spark"]

MERGE: Final = (
    "MERGE INTO t USING news s ON t.id = s.id WHEN MATCHED AND s.v % 10 = 0 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET v = t.v + s.v, name = s.name WHEN NOT MATCHED THEN INSERT (id, v, name) VALUES (s.id, s.v, s.name)"
)
"""The one statement that is understood here, for a table of ``id bigint, v bigint, name varchar``."""

_writer: ContextVar[int] = ContextVar("writer", default=0)
_UNUSED: Final = SimpleNamespace(conf=SimpleNamespace(get=lambda *_: "2"))
"""Stands where the engine asks for a Spark session."""


def after_merge(rows: dict[int, tuple[int, str]], news: dict[int, tuple[int, str]]) -> dict[int, tuple[int, str]]:
    """Give the rows that `MERGE` leaves, by their keys.

    >>> after_merge({1: (5, "a"), 2: (6, "a")}, {1: (10, "a"), 2: (1, "a"), 3: (4, "b")})
    {2: (7, 'a'), 3: (4, 'b')}
    """
    left = dict(rows)
    for key, (value, name) in news.items():
        if key in rows and value % 10 == 0:
            del left[key]
        else:
            left[key] = (rows[key][0] + value if key in rows else value, name)
    return left


class _InProcessMerge(MergeRun):
    """A MERGE whose tasks are two calls: one takes the rows of the first name, the other those of all other names."""

    def context(self, planned: Planned) -> LoweringContext:
        self._made = LoweringContext(_UNUSED, self.transaction.scans, 1, 1, 2)
        return self._made

    def _lowered(self, context: LoweringContext) -> Any:
        return None

    def collect(self, spark: Any, rows: Any, partitions: int) -> pa.Table:
        """Read, join, and store."""
        nodes = chain(plan_of(self))
        target, source = sorted((n for n in nodes if isinstance(n, TableScan)), key=lambda scan: scan.row_id is None)
        processor = next(node for node in nodes if isinstance(node, MergeProcessor))
        task = merge_pass(processor, self._made, placing=None, sinks=self.transaction.scans.sinks())
        there, news = (_named(self.transaction.scans._scan_pass(scan).rows(), scan) for scan in (target, source))  # noqa: SLF001
        joined = _joined(there, news, task)
        first = pc.equal(news["name"], pc.min(news["name"])).to_numpy()
        told: list[pa.RecordBatch] = []
        for number, chosen in enumerate((first, ~first)):
            token = _writer.set(number)
            try:
                told += task(iter([joined.filter(pa.array(chosen))]))
            finally:
                _writer.reset(token)
        return pa.Table.from_batches(told, OUTCOME)


def _named(rows: pa.Table, scan: TableScan) -> pa.Table:
    """Give rows under the names of the table's columns; the row id and the position come last."""
    names = [column.name for column in scan.columns]
    return rows.rename_columns([*names[:3], *(["row id"] if scan.row_id is not None else []), "position"]).combine_chunks()


def _joined(there: pa.Table, news: pa.Table, task: MergePass) -> pa.RecordBatch:
    """Give what goes into the pass of a MERGE: the rows of the source, each with the row of the target that it meets."""
    met = there.take(pc.index_in(news["id"], value_set=there["id"])).combine_chunks()
    matched = met["position"].is_valid()
    gone = pc.and_(matched, pa.array(news["v"].to_numpy() % 10 == 0))
    kept = {
        "id": news["id"],
        "v": pc.if_else(matched, pc.add(met["v"], news["v"]), news["v"]),
        "name": news["name"],
    }
    layout, columns = task.layout, task.columns
    data = [
        pc.if_else(gone, met[f.name] if index in layout.redistribution_columns else pa.scalar(None, f.type), kept[f.name])
        for index, f in enumerate(columns.field(index) for index in layout.merge_row.columns)
    ]
    operations = pc.if_else(gone, int(Operation.DELETE), pc.if_else(matched, int(Operation.UPDATE), int(Operation.INSERT)))
    cases = pc.if_else(gone, 0, pc.if_else(matched, 1, 2)).cast(pa.int32()).combine_chunks()
    merge_row = [_whole(column) for column in (*data, matched, operations.cast(pa.int8()), cases)]
    channels = [
        *(met[columns.field(place).name] for place in layout.redistribution_columns),
        *([pa.array(np.zeros(news.num_rows, np.int64))] if layout.before.hash is not None else []),
        met["row id"],
        pa.StructArray.from_arrays(merge_row, fields=list(task.input_schema.field(layout.before.merge_row).type)),
        cases,
        met["position"],
    ]
    return pa.RecordBatch.from_arrays([_whole(c) for c in channels], names=[f"c{i}" for i in range(len(channels))])


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


class _NoSession(LazySession):
    """Does without Spark."""

    def start(self) -> None:
        """Do nothing."""

    @property
    def spark(self) -> Any:
        """What stands in for the Spark session."""
        return _UNUSED


class InProcessEngine(Engine):
    """An engine that runs `MERGE` and no other statement that has to do with rows; CREATE TABLE works, too.

    Its plans are those of the documents, without the engine's rules.

    Args:
        options: as those of `Engine`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(spark=_NoSession(), **options)

    def merge(self, news: pa.Table, progress: Callable[[str], None] | None = None) -> Any:
        """Run `MERGE` with a source; gives the engine's result.

        Args:
            news: the source.
            progress: is told each step as it begins.

        Raises:
            RowMergeError: as `Engine.run` does.
        """
        return self.run(MERGE, namespace={"news": news}, rules_off=tuple(RULES), trace="off", progress=progress)


@contextmanager
def without_spark() -> Iterator[None]:
    """Have the engines of this process run MERGE without Spark, as long as this lasts; for processes that do nothing else."""
    with (
        patch.dict(runs._RUNS, {MergeAnalysis: _InProcessMerge}),  # noqa: SLF001
        patch("rowmerge_nb.engine.tasks.merge.task_partition", _writer.get),
        patch("rowmerge_nb.engine.tasks.writer.task_partition", _writer.get),
    ):
        yield
