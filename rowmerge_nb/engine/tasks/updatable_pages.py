"""The older flow: one updatable page source per split reads pages, and receives the rows to change."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.engine.tasks.arrow import conform, page_of
from rowmerge_nb.engine.tasks.handed import IN_CASE, Keeping
from rowmerge_nb.engine.tasks.outcome import FRAGMENT_ROW, RECORD_ROW, outcome
from rowmerge_nb.engine.tasks.page_program import PageEvaluator, PageProgram
from rowmerge_nb.engine.tasks.recorder import Recorder
from rowmerge_nb.engine.tasks.writer import abort, fragments_of
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import INSERT_FROM_UPDATE, OPERATION, ROW_ID, PageLayout, row_ids_of
from rowmerge_nb.spi.updatable import UpdatablePageSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rowmerge_nb.spi.handles import (
        ColumnHandle,
        ConnectorSession,
        ConnectorTableHandle,
        ConnectorTransactionHandle,
    )
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.spi.page_source import ConnectorPageSource, ConnectorPageSourceProvider

ONLY_CASE: Final = 0


@dataclass(frozen=True)
class SplitPass:
    """Processes the splits whose numbers arrive, with the results of subqueries.

    Args:
        channels: for an UPDATE, the page channel of every updated column in table order, and of the
            row id.
        carries_splits: `splits` is empty; each split arrives pickled with its number.
    """

    provider: ConnectorPageSourceProvider
    transaction: ConnectorTransactionHandle
    session: ConnectorSession
    table: ConnectorTableHandle
    splits: Sequence[Any]
    columns: tuple[ColumnHandle, ...]
    symbols: tuple[str, ...]
    program: PageProgram
    channels: tuple[int, ...]
    table_columns: tuple[pa.Field, ...]
    per_clause: int
    witness: bool
    carries_splits: bool = False
    keeping: Keeping = IN_CASE

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            first = 2 if self.carries_splits else 1
            answers = [
                query.answer(batch.column(first + index))
                for index, query in enumerate(self.program.queries)
            ]
            for row, number in enumerate(batch.column(0).to_pylist()):
                # Pickled by the driver.
                split = (
                    pickle.loads(batch.column(1)[row].as_py())  # noqa: S301
                    if self.carries_splits
                    else self.splits[number]
                )
                yield from SplitRun(self, number, split, answers).run()

    @property
    def data_columns(self) -> tuple[ColumnHandle, ...]:
        return self.columns[:-1]

    @property
    def row_id_column(self) -> ColumnHandle:
        return self.columns[-1]

    @property
    def operation(self) -> Operation:
        return Operation.UPDATE if self.channels else Operation.DELETE


class SplitRun:
    def __init__(
        self, task: SplitPass, number: int, split: Any, answers: Sequence[pa.Array]
    ) -> None:
        self.task = task
        self.number = number
        self.split = split
        self.recorder = Recorder(
            number, task.per_clause, caller="split", keeping=task.keeping, handle=task.table
        )
        self.evaluator = PageEvaluator(task.program, answers)
        self.opened: ConnectorPageSource | None = None
        self.step = "create_page_source"

    def run(self) -> Iterator[pa.RecordBatch]:
        fragments: list[bytes] = []
        try:
            source = self._opened()
            while (page := self._next(source)) is not None:
                self._changed(source, page)
            fragments = self._finish(source)
        except (
            Exception,  # noqa: BLE001
            SystemExit,
        ) as error:
            self._failed(error)
        self.evaluator.close()
        self._close()
        if self.recorder.record.error is not None:
            fragments = []
        rows = [(FRAGMENT_ROW, self.number, fragment) for fragment in fragments]
        for row in [*rows, (RECORD_ROW, self.number, self.recorder.serialize())]:
            yield outcome([row])

    def _opened(self) -> UpdatablePageSource:
        task = self.task
        # The split number makes the names of written files unique.
        session = replace(task.session, writer=self.number)
        with self.recorder.call("create_page_source"):
            source = task.provider.create_page_source(
                task.transaction, session, self.split, task.table, list(task.columns)
            )
        self.opened = source
        if not isinstance(source, UpdatablePageSource):
            raise ConnectorError(
                f"{type(task.provider).__name__}.create_page_source returned"
                f" {type(source).__name__} for a handle of"
                f" begin_{self.task.operation.name.lower()}; it must return an"
                " UpdatablePageSource",
                code="GENERIC_INTERNAL_ERROR",
            )
        return source

    def _next(self, source: UpdatablePageSource) -> Page | None:
        self.step = "get_next_page"
        with self.recorder.call("get_next_page") as call:
            result = source.get_next_page()
            page = (
                None
                if result is None
                else page_of(result, len(self.task.columns), type(source).__name__)
            )
            call.describe_result("end" if page is None else "", page)
        return page

    def _changed(self, source: UpdatablePageSource, page: Page) -> None:
        task, record = self.task, self.recorder.record
        record.read += page.num_rows
        arrays = [
            conform(page.column(index), column.type.arrow)
            for index, column in enumerate(task.data_columns)
        ]
        # Row ids are opaque: the source gets them back unchanged.
        arrays.append(row_ids_of(page))
        symbol_page = pa.RecordBatch.from_arrays(arrays, names=[*task.symbols, ROW_ID])
        self.step = "Filter"
        data = self.evaluator.filter(symbol_page)
        if not data.num_rows:
            return
        self.step = "Project"
        values = self.evaluator.project(data.select(list(range(len(task.symbols)))))
        if task.program.checks:
            self.evaluator.values_of(task.program.checks, self._new_rows(data, values))
        row_ids = row_ids_of(data)
        record.matched += data.num_rows
        record.clause_rows[ONLY_CASE] = record.clause_rows.get(ONLY_CASE, 0) + data.num_rows
        if task.channels:
            names = [ROW_ID, *(column.name for column in task.program.assigned)]
            projected = pa.RecordBatch.from_arrays([row_ids, *values], names=names)
            self.step = "update_rows"
            self.recorder.retain(projected)
            with self.recorder.call(
                "update_rows", f"U {data.num_rows}, channels {list(task.channels)}", projected
            ):
                source.update_rows(projected, list(task.channels))
        else:
            self.step = "delete_rows"
            deleted = pa.RecordBatch.from_arrays([row_ids], names=[ROW_ID])
            self.recorder.retain(deleted)
            with self.recorder.call("delete_rows", f"D {data.num_rows}", deleted):
                source.delete_rows(row_ids)
        self._recorded(data, values, conform(row_ids, task.row_id_column.type.arrow))

    def _new_rows(self, data: Page, values: list[pa.Array]) -> Page:
        task = self.task
        new = {
            column.name: value for column, value in zip(task.program.assigned, values, strict=True)
        }
        arrays = [
            new.get(column.name, data.column(index))
            for index, column in enumerate(task.data_columns)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(task.symbols))

    def _recorded(self, data: Page, values: list[pa.Array], row_ids: pa.Array) -> None:
        task = self.task
        operations = pa.array(np.full(data.num_rows, task.operation, np.int8))
        names = [ROW_ID, *(column.name for column in task.program.assigned)]
        self.recorder.stored(
            None,
            pa.RecordBatch.from_arrays([row_ids, *values], names=names),
            operations,
            data.num_rows,
        )
        if not task.per_clause or (task.channels and len(task.columns) <= len(task.table_columns)):
            # Without the other columns, the new rows of an update are unknown.
            return
        old = {column.name: data.column(index) for index, column in enumerate(task.data_columns)}
        new = {
            column.name: value for column, value in zip(task.program.assigned, values, strict=True)
        }
        new_values = {**old, **new} if task.channels else {}
        after = pa.RecordBatch.from_arrays(
            [
                *(
                    new_values.get(f.name, pa.nulls(data.num_rows, f.type))
                    for f in task.table_columns
                ),
                operations,
                row_ids,
                pa.array(np.zeros(data.num_rows, np.int8)),
            ],
            names=[*(f.name for f in task.table_columns), OPERATION, ROW_ID, INSERT_FROM_UPDATE],
        )
        witness = None
        if task.witness and len(old) == len(task.table_columns):
            target = pa.StructArray.from_arrays(
                [old[f.name] for f in task.table_columns], fields=list(task.table_columns)
            )
            witness = pa.RecordBatch.from_arrays(
                [pa.nulls(len(target), pa.int64()), target], names=["source_row", "target"]
            )
        self.recorder.passed_through(PageLayout(len(task.table_columns)), after, ONLY_CASE, witness)

    def _finish(self, source: UpdatablePageSource) -> list[bytes]:
        self.step = "finish"
        with self.recorder.call("finish") as call:
            fragments = fragments_of(source.finish(), type(source).__name__)
            call.extend(fragments)
        self.recorder.record.fragments = [len(fragment) for fragment in fragments]
        return fragments

    def _failed(self, error: Exception | SystemExit) -> None:
        self.recorder.failed(error, self.step)
        if isinstance(self.opened, UpdatablePageSource):
            abort(self.opened, self.recorder)

    def _close(self) -> None:
        if self.opened is None:
            return
        try:
            self.opened.close()
        except (
            Exception,  # noqa: BLE001
            SystemExit,
        ) as error:
            self.step = "close"
            if self.recorder.record.error is None:
                self._failed(error)
