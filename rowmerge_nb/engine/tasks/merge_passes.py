"""What runs in the tasks above a scan: checking and transforming merge rows, feeding sinks.

Each pass is a picklable callable from Arrow batches to Arrow batches, as Spark's ``mapInArrow`` wants it. A pass may be run more than
once for one partition, and its input may simply end when something fails on Spark's side; so nothing it does is visible before
the driver's ``finish_merge``. A Python error is not raised in the task: it is sent to the driver as a record, so that the failed
statement's trace survives.
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

from rowmerge_nb.engine.tasks.arrow import Batches, conform, for_spark, last_channel
from rowmerge_nb.engine.tasks.duplicates import NO_CLAUSE, DuplicateRule, Duplicates, mark_distinct, match_patterns
from rowmerge_nb.engine.tasks.exchange import BUCKET, Placing
from rowmerge_nb.engine.tasks.handed import IN_CASE, Keeping
from rowmerge_nb.engine.tasks.outcome import RECORD, RECORD_ROW, outcome
from rowmerge_nb.engine.tasks.processors import create_processor
from rowmerge_nb.engine.tasks.recorder import Recorder, TaskRecord
from rowmerge_nb.engine.tasks.writer import MergeSinkWriter, SinkFactory, task_partition

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.audit_passes import RowChooser
    from rowmerge_nb.spi.operations import RowChangeParadigm
    from rowmerge_nb.spi.page import Page, PageLayout


WITNESSED_ROWS = 100
MOST_CHECKED: Final = 1_000_000
"""A task that has checked more joined rows ends at the next target row that fails; until then it looks for all of them."""


@dataclass(frozen=True)
class MergePass:
    """From joined rows to rows to store: MarkDistinct, DuplicateCheck and MergeProcessor; fused, the writer too.

    Args:
        layout: where the channels lie.
        columns: the table's columns in table order and, last, the row id.
        paradigm: the connector's paradigm; None where there is no processor.
        rule: which repeated matches end the statement; None where no row can be matched twice.
        updates: the case numbers of UPDATE clauses, and ``deletes`` those of DELETE clauses.
        source_present: the position of the channel that marks rows with a source row; None unless the join is a FULL one.
        returning: the position of the channel with the row of RETURNING; None without one.
        witness: the type of the hidden witness channel, None if rows do not carry it.
        per_clause: how many rows per clause are sampled.
        placing: how rows find their writer; None without an exchange.
        sinks: makes sinks when the writer is in this pass; None behind an exchange.
        grouped: a target row has all of its joined rows in one batch, so that each batch is checked and stored as it comes; otherwise
            those of the whole partition are held until all have come.
        keeping: which pages are kept of those that the sink gets.
        chooser: chooses the rows that are sampled, in place of so many per clause; None without one.

    Its input channels are those of the page with ``unique_id`` in the place of ``is_distinct``, then those two, and last the witness if
    there is one.
    """

    layout: PageLayout
    columns: pa.Schema
    paradigm: RowChangeParadigm | None
    rule: DuplicateRule | None
    witness: pa.DataType | None
    per_clause: int
    placing: Placing | None
    sinks: SinkFactory | None
    source_present: int | None = None
    returning: int | None = None
    updates: tuple[int, ...] = ()
    deletes: tuple[int, ...] = ()
    grouped: bool = False
    keeping: Keeping = IN_CASE
    chooser: RowChooser | None = None

    @cached_property
    def input_schema(self) -> pa.Schema:
        """The channels before ``transform_page``."""
        return self.layout.input_schema(self.columns)

    @cached_property
    def output_schema(self) -> pa.Schema:
        """The channels after ``transform_page``."""
        return self.layout.output_schema(self.columns)

    @property
    def exchanged(self) -> pa.Schema:
        """The channels that go into the exchange, in Spark's types: the transformed page, the bucket, and the record."""
        data = [pa.field(f"c{i}", for_spark(field.type)) for i, field in enumerate(self.output_schema)]
        return pa.schema([*data, pa.field(BUCKET, pa.int32()), pa.field(RECORD, pa.binary())])

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Work on the partition of this task."""
        yield from self.work(batches, task_partition())

    def work(self, batches: Batches, partition: int) -> Iterator[pa.RecordBatch]:
        """Work on one partition; its number is also that of its writer."""
        recorder = Recorder(partition, self.per_clause, keeping=self.keeping, chooser=self.chooser)
        pages = self._checked((batch for batch in batches if batch.num_rows), recorder)
        if self.sinks is not None:
            yield from MergeSinkWriter(self.layout, self.sinks, recorder).run(self._transformed(pages, recorder))
            for record in recorder.returned:
                yield outcome([(RECORD_ROW, record.partition, pickle.dumps(record))])
            return
        spread = 0
        try:
            for page in self._transformed(pages, recorder):
                yield self._exchange_batch(page, spread, recorder)
                spread += page.num_rows
        except Exception as error:  # noqa: BLE001
            recorder.failed(error, "transform_page")
        if recorder.record.before or recorder.record.error or recorder.record.failing:
            yield self._record_batch(recorder.record)
        for record in recorder.returned:
            yield self._record_batch(record)

    def _checked(self, arriving: Iterator[pa.RecordBatch], recorder: Recorder) -> Iterator[tuple[Page, Page | None]]:
        """Mark and check all rows of the partition; give the input pages with their witnesses, up to the first row that fails.

        What fails, here or below, is in the record when the last page has been given: what was stored until then is to be dropped.
        """
        seen: set[int] = set()
        try:
            for batches in ([batch] for batch in arriving) if self.grouped else [list(arriving)]:
                if batches:
                    distinct = self._check(batches, recorder, seen)
                    # After a row that fails the others are checked as well, since errors name several.
                    if not recorder.record.failing:
                        yield from self._input_pages(batches, distinct, recorder)
                    elif sum(recorder.record.clause_rows.values()) > MOST_CHECKED:
                        recorder.record.is_cut = True
                        return
        except Exception as error:  # noqa: BLE001 - whatever it is goes to the driver as a record
            recorder.failed(error, "MarkDistinct")

    def _check(self, batches: list[pa.RecordBatch], recorder: Recorder, seen: set[int]) -> pa.Array:
        """Check target rows that have all of their joined rows here, and give the channel ``is_distinct``."""
        if self.rule is None:
            raise ValueError("Rows that can be matched twice need a rule")
        record = recorder.record
        unique_id = pa.chunked_array([batch.column(self._unique_id) for batch in batches]).combine_chunks()
        cases = pa.chunked_array([batch.column(self.layout.before.case_number) for batch in batches]).combine_chunks()
        record.matched += len(unique_id) - unique_id.null_count
        if self.source_present is not None:
            alone = sum(batch.column(self.source_present).null_count for batch in batches)
            record.alone += alone
            record.matched -= alone
        numbers, counts = np.unique(pc.fill_null(cases, NO_CLAUSE).to_numpy(zero_copy_only=False), return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            record.clause_rows[number] = record.clause_rows.get(number, 0) + count
        patterns = match_patterns(unique_id, cases, self.updates, self.deletes)
        if patterns:
            for pattern, count in patterns.items():
                record.patterns[pattern] = record.patterns.get(pattern, 0) + count
            self._note_duplicates(self.rule.check(unique_id, cases), batches, recorder)
        return mark_distinct(unique_id, cases, self.layout.era, seen)

    def _note_duplicates(self, found: Duplicates, batches: list[pa.RecordBatch], recorder: Recorder) -> None:
        """Keep which target rows fail, and the rows of the first of them; while none fails those that deserve a warning."""
        record = recorder.record
        if found.failing.size and not record.failing:
            record.witnesses = None
        told = record.failing if found.failing.size or record.failing else record.warning
        wanted = (found.failing if told is record.failing else found.warning)[: max(WITNESSED_ROWS - len(told), 0)]
        if wanted.size:
            rows = self._witnesses(batches, wanted)
            record.witnesses = rows if record.witnesses is None else pa.concat_batches([record.witnesses, rows])
        record.failing += found.failing.tolist()
        record.warning += found.warning.tolist()[: max(WITNESSED_ROWS - len(record.warning), 0)]

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
                recorder.give_back(batch.column(self.returning))
            marks = distinct.slice(start, batch.num_rows)
            start += batch.num_rows
            yield self._input_page(batch, marks), self._witness(batch)

    def _input_page(self, batch: pa.RecordBatch, distinct: pa.Array) -> Page:
        """Return the page before ``transform_page``: what arrives, and ``is_distinct``."""
        arrays = [conform(batch.column(i), self.input_schema.field(i).type) for i in range(self.layout.before.is_distinct)]
        return pa.RecordBatch.from_arrays([*arrays, distinct], schema=self.input_schema)

    def _witness(self, batch: pa.RecordBatch) -> Page | None:
        if self.witness is None:
            return None
        return pa.RecordBatch.from_struct_array(conform(last_channel(batch), self.witness))

    def _witnesses(self, batches: list[pa.RecordBatch], ids: npt.NDArray[np.int64]) -> Page:
        """Take the rows of some target rows: unique_id, case_number, row_id, witness."""
        before = self.layout.before
        wanted, taken = pa.array(ids), []
        for batch in batches:
            rows = batch.filter(pc.is_in(batch.column(self._unique_id), value_set=wanted))
            row_id = conform(rows.column(before.row_id), self.input_schema.field(before.row_id).type)
            arrays = {"unique_id": rows.column(self._unique_id), "case_number": rows.column(before.case_number), "row_id": row_id}
            if self.witness is not None:
                arrays["witness"] = conform(last_channel(rows), self.witness)
            taken.append(pa.RecordBatch.from_pydict(arrays))
        return pa.concat_batches(taken)

    def _transformed(self, pages: Iterable[tuple[Page, Page | None]], recorder: Recorder) -> Iterator[Page]:
        if self.paradigm is None:
            raise ValueError("Merge rows need a processor")
        processor = create_processor(self.paradigm, self.layout, self.columns)
        for before, witness in pages:
            after = processor.transform_page(before)
            cases = pc.fill_null(before.column(self.layout.before.case_number), NO_CLAUSE).to_numpy(zero_copy_only=False)
            recorder.transformed(self.layout, before, after, processor.rows_produced(before), cases, witness)
            if after.num_rows:
                yield after

    def _exchange_batch(self, page: Page, spread: int, recorder: Recorder) -> pa.RecordBatch:
        placing, schema, count = self.placing, self.exchanged, page.num_rows
        buckets = pa.nulls(count, pa.int32())
        if placing is not None:
            buckets = placing.buckets(page, self.layout, spread)
            recorder.placed(lambda rows: placing.numbers(page.take(rows), self.layout, buckets.take(rows)))
        data = [conform(page.column(i), schema.field(i).type) for i in range(page.num_columns)]
        return pa.RecordBatch.from_arrays([*data, buckets, pa.nulls(count, pa.binary())], schema=schema)

    def _record_batch(self, record: TaskRecord) -> pa.RecordBatch:
        known = {BUCKET: 0, RECORD: pickle.dumps(record)}
        return pa.RecordBatch.from_pylist([known], schema=self.exchanged)
