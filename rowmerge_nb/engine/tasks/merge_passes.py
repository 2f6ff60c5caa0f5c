"""Passes above a scan: they check and transform merge rows, and feed sinks.

A pass is a picklable callable for Spark's ``mapInArrow``. It may run twice per partition, and its
input may end early after a failure, so nothing is visible before the driver's ``finish_merge``.
Errors are sent to the driver as records, which preserves the statement's trace.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.arrow import Batches, conform, last_channel
from rowmerge_nb.engine.tasks.duplicates import (
    NO_CLAUSE,
    DuplicateRule,
    Duplicates,
    mark_distinct,
    match_patterns,
)
from rowmerge_nb.engine.tasks.handed import IN_CASE, Keeping
from rowmerge_nb.engine.tasks.outcome import RECORD_ROW, outcome
from rowmerge_nb.engine.tasks.processors import create_processor
from rowmerge_nb.engine.tasks.recorder import Recorder, TaskRecord
from rowmerge_nb.engine.tasks.writer import MergeSinkWriter, SinkFactory, task_partition

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.audit_passes import RowChooser
    from rowmerge_nb.engine.tasks.exchange import LocalExchange, PagePartitioner, Placing
    from rowmerge_nb.spi.operations import RowChangeParadigm
    from rowmerge_nb.spi.page import Page, PageLayout


WITNESSED_ROWS = 100
MOST_CHECKED: Final = 1_000_000
"""Joined rows after which a task stops at the next failing target row; until then it collects all
of them.
"""


@dataclass(frozen=True)
class ChangedRows:
    """A transformed page, and the buckets of its rows; see `Destination.buckets`."""

    page: Page
    buckets: pa.Array


@dataclass(frozen=True)
class MergePass:
    """Turns joined rows into rows to store: MarkDistinct, DuplicateCheck, MergeProcessor, and the
    writer or the exchange to the writers.

    Input channels: those of the page with ``unique_id`` for ``is_distinct``, then `source_present`
        and `returning`, then the witness.

    Args:
        source_present: the channel that marks rows with a source row (FULL join).
        returning: the channel with the row of RETURNING.
        grouped: batches contain all joined rows of a target row, so they are processed one by one.
    """

    layout: PageLayout
    columns: pa.Schema
    paradigm: RowChangeParadigm | None
    rule: DuplicateRule | None
    witness: pa.DataType | None
    per_clause: int
    placing: Placing | None
    sinks: SinkFactory | None
    exchange: LocalExchange | PagePartitioner | None = None
    source_present: int | None = None
    returning: int | None = None
    updates: tuple[int, ...] = ()
    deletes: tuple[int, ...] = ()
    grouped: bool = False
    keeping: Keeping = IN_CASE
    chooser: RowChooser | None = None

    @cached_property
    def input_schema(self) -> pa.Schema:
        return self.layout.input_schema(self.columns)

    @cached_property
    def output_schema(self) -> pa.Schema:
        return self.layout.output_schema(self.columns)

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        yield from self.work(batches, task_partition())

    def work(self, batches: Batches, partition: int) -> Iterator[pa.RecordBatch]:
        if self.exchange is not None:
            yield from self.exchange(self.changed(batches, partition))
            return
        if self.sinks is None:
            raise ValueError("Merge rows need sinks or an exchange")
        recorder = self._recorder(partition)
        pages = self._checked((batch for batch in batches if batch.num_rows), recorder)
        yield from MergeSinkWriter(self.layout, self.sinks, recorder).run(
            self._transformed(pages, recorder)
        )
        for record in recorder.returned:
            yield outcome([(RECORD_ROW, record.partition, pickle.dumps(record))])

    def changed(self, batches: Batches, partition: int) -> Iterator[ChangedRows | TaskRecord]:
        """Yield the rows for an exchange, then what was recorded."""
        recorder, spread = self._recorder(partition), 0
        pages = self._checked((batch for batch in batches if batch.num_rows), recorder)
        try:
            for page in self._transformed(pages, recorder):
                yield ChangedRows(page, self._buckets(page, spread, recorder))
                spread += page.num_rows
        except Exception as error:  # noqa: BLE001
            recorder.failed(error, "transform_page")
        if recorder.record.before or recorder.record.error or recorder.record.failing:
            yield recorder.record
        yield from recorder.returned

    def _recorder(self, partition: int) -> Recorder:
        return Recorder(partition, self.per_clause, keeping=self.keeping, chooser=self.chooser)

    def _checked(
        self, arriving: Iterator[pa.RecordBatch], recorder: Recorder
    ) -> Iterator[tuple[Page, Page | None]]:
        """Mark and check all rows; yield the input pages with their witnesses, up to the first
        failing row.

        After a failure recorded later, rows stored until then must be dropped.
        """
        seen_cases: set[int] = set()
        try:
            for batches in ([batch] for batch in arriving) if self.grouped else [list(arriving)]:
                if batches:
                    distinct = self._check(batches, recorder, seen_cases)
                    # Rows after a failing one are checked as well, because the error lists several.
                    if not recorder.record.failing:
                        yield from self._input_pages(batches, distinct, recorder)
                    elif sum(recorder.record.clause_rows.values()) > MOST_CHECKED:
                        recorder.record.is_cut = True
                        return
        except Exception as error:  # noqa: BLE001 - reported to the driver as a record
            recorder.failed(error, "MarkDistinct")

    def _check(
        self, batches: list[pa.RecordBatch], recorder: Recorder, seen_cases: set[int]
    ) -> pa.Array:
        """Check target rows whose joined rows are all here; return the channel ``is_distinct``."""
        if self.rule is None:
            raise ValueError("Rows that can be matched twice need a rule")
        record = recorder.record
        unique_id = pa.chunked_array(
            [batch.column(self._unique_id) for batch in batches]
        ).combine_chunks()
        cases = pa.chunked_array(
            [batch.column(self.layout.before.case_number) for batch in batches]
        ).combine_chunks()
        record.matched += len(unique_id) - unique_id.null_count
        if self.source_present is not None:
            target_only = sum(batch.column(self.source_present).null_count for batch in batches)
            record.unmatched_rows += target_only
            record.matched -= target_only
        numbers, counts = np.unique(
            pc.fill_null(cases, NO_CLAUSE).to_numpy(zero_copy_only=False), return_counts=True
        )
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            record.clause_rows[number] = record.clause_rows.get(number, 0) + count
        patterns = match_patterns(unique_id, cases, self.updates, self.deletes)
        if patterns:
            for pattern, count in patterns.items():
                record.patterns[pattern] = record.patterns.get(pattern, 0) + count
            self._note_duplicates(self.rule.check(unique_id, cases), batches, recorder)
        return mark_distinct(unique_id, cases, self.layout.era, seen_cases)

    def _note_duplicates(
        self, duplicates: Duplicates, batches: list[pa.RecordBatch], recorder: Recorder
    ) -> None:
        record = recorder.record
        if duplicates.failing.size and not record.failing:
            record.witnesses = None
        recorded_ids = (
            record.failing if duplicates.failing.size or record.failing else record.warning
        )
        new_ids = (duplicates.failing if recorded_ids is record.failing else duplicates.warning)[
            : max(WITNESSED_ROWS - len(recorded_ids), 0)
        ]
        if new_ids.size:
            rows = self._witnesses(batches, new_ids)
            record.witnesses = (
                rows if record.witnesses is None else pa.concat_batches([record.witnesses, rows])
            )
        record.failing += duplicates.failing.tolist()
        record.warning += duplicates.warning.tolist()[
            : max(WITNESSED_ROWS - len(record.warning), 0)
        ]

    @property
    def _unique_id(self) -> int:
        return self.layout.before.is_distinct

    def _input_pages(
        self, batches: list[pa.RecordBatch], distinct: pa.Array, recorder: Recorder
    ) -> Iterator[tuple[Page, Page | None]]:
        start = 0
        while batches:
            batch = batches.pop(0)
            if self.returning is not None:
                recorder.add_returned(batch.column(self.returning))
            marks = distinct.slice(start, batch.num_rows)
            start += batch.num_rows
            yield self._input_page(batch, marks), self._witness(batch)

    def _input_page(self, batch: pa.RecordBatch, distinct: pa.Array) -> Page:
        arrays = [
            conform(batch.column(i), self.input_schema.field(i).type)
            for i in range(self.layout.before.is_distinct)
        ]
        return pa.RecordBatch.from_arrays([*arrays, distinct], schema=self.input_schema)

    def _witness(self, batch: pa.RecordBatch) -> Page | None:
        if self.witness is None:
            return None
        return pa.RecordBatch.from_struct_array(conform(last_channel(batch), self.witness))

    def _witnesses(self, batches: list[pa.RecordBatch], ids: npt.NDArray[np.int64]) -> Page:
        before = self.layout.before
        id_values, selected_rows = pa.array(ids), []
        for batch in batches:
            rows = batch.filter(pc.is_in(batch.column(self._unique_id), value_set=id_values))
            row_id = conform(
                rows.column(before.row_id), self.input_schema.field(before.row_id).type
            )
            arrays = {
                "unique_id": rows.column(self._unique_id),
                "case_number": rows.column(before.case_number),
                "row_id": row_id,
            }
            if self.witness is not None:
                arrays["witness"] = conform(last_channel(rows), self.witness)
            selected_rows.append(pa.RecordBatch.from_pydict(arrays))
        return pa.concat_batches(selected_rows)

    def _transformed(
        self, pages: Iterable[tuple[Page, Page | None]], recorder: Recorder
    ) -> Iterator[Page]:
        if self.paradigm is None:
            raise ValueError("Merge rows need a processor")
        processor = create_processor(self.paradigm, self.layout, self.columns)
        for before, witness in pages:
            after = processor.transform_page(before)
            cases = pc.fill_null(before.column(self.layout.before.case_number), NO_CLAUSE).to_numpy(
                zero_copy_only=False
            )
            recorder.transformed(
                self.layout, before, after, processor.rows_produced(before), cases, witness
            )
            if after.num_rows:
                yield after

    def _buckets(self, page: Page, spread: int, recorder: Recorder) -> pa.Array:
        placing = self.placing
        if placing is None:
            return pa.nulls(page.num_rows, pa.int32())
        buckets = placing.buckets(page, self.layout, spread)
        recorder.placed(
            lambda rows: placing.numbers(page.take(rows), self.layout, buckets.take(rows))
        )
        return buckets
