"""Replay of the older flow of UPDATE and DELETE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rowmerge_nb.engine.tasks.identity import row_keys
from rowmerge_nb.engine.tasks.page_program import PageProgram
from rowmerge_nb.engine.tasks.updatable_pages import SplitPass, SplitRun
from rowmerge_nb.replays.replayed_statement import ErrorRecorder, LocalStatement, Work
from rowmerge_nb.spi.page import ROW_ID, row_ids_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rowmerge_nb.spi.handles import ColumnHandle
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.updatable import UpdatablePageSource
    from rowmerge_nb.trace.record import Record


class _RecordedSplit(SplitRun):
    def __init__(self, task: SplitPass, number: int, rows: Page) -> None:
        super().__init__(task, number, task.splits[number], ())
        self.recorder = self.error_recorder = ErrorRecorder(number, 0, caller="split")
        self.rows = rows
        self.keys = row_keys([rows.column(0)], rows.num_rows)

    def _changed(self, source: UpdatablePageSource, page: Page) -> None:
        page_keys = row_keys([row_ids_of(page)], page.num_rows)
        places = np.flatnonzero(np.isin(self.keys, page_keys))
        if not places.size:
            return
        rows = self.rows.take(pa.array(places))
        if self.task.channels:
            self.step = "update_rows"
            with self.recorder.call(
                "update_rows", f"U {rows.num_rows}, channels {list(self.task.channels)}", rows
            ):
                source.update_rows(rows, list(self.task.channels))
        else:
            self.step = "delete_rows"
            with self.recorder.call("delete_rows", f"D {rows.num_rows}", rows):
                source.delete_rows(rows.column(0))


class ReplayedSplits:
    """The calls of the older flow."""

    def __init__(
        self, statement: LocalStatement, record: Record, updated: Sequence[ColumnHandle]
    ) -> None:
        self.statement = statement
        self.record = record
        order = [
            name
            for name in (column.name for column in record.columns)
            if name in {column.name for column in updated}
        ]
        in_order = sorted(updated, key=lambda column: order.index(column.name))
        self.verb = "update" if record.channels else "delete"
        self.arguments: tuple[Any, ...] = (
            statement.session,
            statement.handle,
            *([in_order] if record.channels else []),
        )
        self.row_id: ColumnHandle = self._ask(
            f"get_{self.verb}_row_id_column_handle", *self.arguments
        )
        self.handle: Any = None

    def begin(self) -> None:
        self.handle = self._ask(f"begin_{self.verb}", *self.arguments)

    def work(self, number: int, pages: Sequence[tuple[Page, pa.Array]]) -> Work:
        statement, record = self.statement, self.record
        names = [ROW_ID, *record.updated.get(0, ())]
        rows = pa.concat_batches(
            [
                pa.RecordBatch.from_arrays([ids, *page.columns[1:]], names=names)
                for page, ids in pages
            ]
        )
        scan = statement.scan(self.handle, self.row_id)
        task = SplitPass(
            provider=scan.provider,
            transaction=statement.transaction,
            session=statement.session,
            table=self.handle,
            splits=scan.splits,
            columns=tuple(scan.columns),
            symbols=tuple(column.name for column in record.columns),
            program=PageProgram(),
            channels=record.channels,
            table_columns=(),
            per_clause=0,
            witness=False,
        )
        works = []
        for index in range(len(scan.splits)):
            run = _RecordedSplit(task, index, rows)
            works.append(Work.of(run.error_recorder, run.run()))
            if works[-1].error is not None:
                break
        calls, fragments = (
            tuple(one for work in works for one in getattr(work, name))
            for name in ("calls", "fragments")
        )
        last = works[-1] if works else Work(number, (), ())
        return Work(number, calls, fragments, last.error, last.step)

    def finish(self, fragments: Collection[bytes]) -> None:
        self._ask(f"finish_{self.verb}", self.statement.session, self.handle, fragments)

    def _ask(self, method: str, *arguments: Any) -> Any:
        return self.statement.log.call(
            method, lambda: getattr(self.statement.metadata, method)(*arguments)
        )
