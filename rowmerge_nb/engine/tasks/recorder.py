"""The records of tasks, which the driver merges.

A record travels as a row of the statement's one Spark action, so only successful attempts count.
"""

from __future__ import annotations

import pickle
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ExecutionError, RowMergeError, error_text
from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.base.words import plural
from rowmerge_nb.engine.tasks.breakpoints import no_breakpoints
from rowmerge_nb.engine.tasks.handed import IN_CASE, HandedPages, Keeping
from rowmerge_nb.engine.tasks.strikes import noted
from rowmerge_nb.trace.contract_calls import Call
from rowmerge_nb.trace.samples import spans
from rowmerge_nb.trace.words import operation_letters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.audit_passes import RowChooser
    from rowmerge_nb.engine.tasks.duplicates import Patterns
    from rowmerge_nb.spi.page import Page, PageLayout
    from rowmerge_nb.trace.raised import Raised


EVERY_ROW: Final = 1 << 30
"""The `per_clause` value that samples all rows, regardless of size."""
SAMPLED_BYTES: Final = 1 << 24
"""Approximate limit of a task's samples otherwise: before and after ``transform_page`` together,
and again for stored rows.
"""


@dataclass
class Sampled:
    """Sampled rows of one page before and after ``transform_page``; equal if not ``transformed``."""

    layout: PageLayout
    transformed: bool
    before: Page
    after: Page
    produced: npt.NDArray[np.int64]
    witness: Page | None
    numbers: pa.Array | None = None


@dataclass
class TaskRecord:
    """The record of one task.

    Args:
        partition: the partition of the task, or the number of the writer behind an exchange.
        stored_page: the first rows that the sink or page source received.
        warning: unique ids of target rows that deserve a warning.
        witnesses: their joined rows: unique_id, case_number, row_id and optionally the witness.
        returned: rows of RETURNING as an Arrow stream; such a record has no other data.
        is_cut: rows fail the check, and not all rows were checked.
    """

    partition: int
    clause_rows: dict[int, int] = field(default_factory=dict)
    matched: int = 0
    before: int = 0
    after: int = 0
    sampled: list[Sampled] = field(default_factory=list)
    stored_page: Page | None = None
    stored_layout: PageLayout | None = None
    operations: dict[int, int] = field(default_factory=dict)
    pages: int = 0
    row_count: int = 0
    fragments: list[int] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    failing: list[int] = field(default_factory=list)
    warning: list[int] = field(default_factory=list)
    witnesses: Page | None = None
    patterns: Patterns = field(default_factory=dict)
    error: RowMergeError | None = None
    aborted: bool = False
    unmatched_rows: int = 0
    returned: bytes = b""
    read: int = 0
    retained_pages: bytes = b""
    left_out: int = 0
    raised: list[Raised] = field(default_factory=list)
    is_cut: bool = False


class CallNote(list[bytes]):
    gave = ""
    page: Page | None = None

    def describe_result(self, gave: str, page: Page | None) -> None:
        self.gave, self.page = gave, page


class Recorder:
    """Builds a task's record.

    Args:
        per_clause: the number of rows per clause to sample; fewer if they are large, unless it is
            `EVERY_ROW`.
    """

    def __init__(
        self,
        partition: int,
        per_clause: int,
        caller: str = "writer",
        keeping: Keeping = IN_CASE,
        chooser: RowChooser | None = None,
        handle: object = None,
    ) -> None:
        self.record = TaskRecord(partition)
        self._chooser = chooser
        self.handle = handle
        self._caller = caller
        self._keeping = keeping
        self._retained = HandedPages(self._keeping)
        self.returned: list[TaskRecord] = []
        self._per_clause = per_clause
        self._remaining: dict[int, int] = {}
        self._room = {"sampled": SAMPLED_BYTES, "stored": SAMPLED_BYTES}
        self._positions: pa.Array | None = None
        self._started = time.perf_counter()

    @contextmanager
    def call(
        self, method: str, arguments: str = "", page: Page | None = None
    ) -> Iterator[CallNote]:
        """Record a call; the caller appends its fragments to the yielded list."""
        started = time.perf_counter()
        note = CallNote()
        error: str | None = None
        try:
            with no_breakpoints():
                yield note
        except BaseException as failure:
            error = error_text(failure)
            self._note_raised(failure, method, page)
            raise
        finally:
            page = note.page if page is None else page
            gave = plural(len(note), "fragment") if note else note.gave
            size = page.nbytes if page is not None else sum(map(len, note)) or None
            seconds = time.perf_counter() - started
            rows = page.num_rows if page is not None else None
            self.record.calls.append(
                Call(
                    0,
                    self._caller,
                    method,
                    arguments,
                    gave,
                    rows,
                    size,
                    seconds,
                    started - self._started,
                    error,
                    self.record.partition,
                    noted(),
                )
            )

    def _note_raised(self, error: BaseException, method: str, page: Page | None) -> None:
        # Needed by few tasks: those in which a call fails.
        from rowmerge_nb.engine.tasks.call_frames import raised_by

        record = self.record
        before = sum(call.method == method for call in record.calls)
        raised = raised_by(
            error,
            method,
            caller=self._caller,
            number=record.partition,
            call=before + 1,
            page=page,
            handle=self.handle,
        )
        if raised is not None:
            record.raised.append(raised)

    def transformed(
        self,
        layout: PageLayout,
        before: Page,
        after: Page,
        produced: npt.NDArray[np.int64],
        cases: npt.NDArray[np.int32],
        witness: Page | None,
    ) -> None:
        self._sample(Sampled(layout, True, before, after, produced, witness), cases)

    def passed_through(
        self, layout: PageLayout, page: Page, case_number: int, witness: Page | None
    ) -> None:
        """Count and sample a page that is stored without ``transform_page``."""
        each = np.ones(page.num_rows, np.int64)
        cases = np.full(page.num_rows, case_number, np.int32)
        self._sample(Sampled(layout, False, page, page, each, witness), cases)

    def _sample(self, page: Sampled, cases: npt.NDArray[np.int32]) -> None:
        before, after, produced, witness = page.before, page.after, page.produced, page.witness
        record = self.record
        record.before += before.num_rows
        record.after += after.num_rows
        self._positions = None
        if self._chooser is None:
            size = (
                before.nbytes
                + (after.nbytes if page.transformed else 0)
                + (0 if witness is None else witness.nbytes)
            )
            chosen_rows = self._choose(
                cases, ascending(cases), self._rows_in("sampled", size, before.num_rows)
            )
            self._room["sampled"] -= size * len(chosen_rows) // max(before.num_rows, 1)
        else:
            chosen_rows = self._chooser.rows(
                page.layout, (before, after), produced, witness, transformed=page.transformed
            )
        if chosen_rows.size:
            sizes = produced[chosen_rows]
            after_positions = self._positions = pa.array(
                spans(np.cumsum(produced)[chosen_rows] - sizes, sizes)
            )
            witness_rows = witness.take(pa.array(chosen_rows)) if witness is not None else None
            record.sampled.append(
                replace(
                    page,
                    before=before.take(pa.array(chosen_rows)),
                    after=after.take(after_positions),
                    produced=produced[chosen_rows],
                    witness=witness_rows,
                )
            )

    def placed(self, numbers: Callable[[pa.Array], pa.Array]) -> None:
        if self._positions is not None:
            self.record.sampled[-1].numbers = numbers(self._positions)

    def add_returned(self, rows: pa.StructArray) -> None:
        """Add rows of RETURNING; NULL rows were not changed."""
        changed = rows.drop_null()
        if len(changed):
            names = [f"f{index}" for index in range(changed.type.num_fields)]
            page = pa.RecordBatch.from_arrays(changed.flatten(), names=names)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, page.schema) as writer:
                writer.write_batch(page)
            self.returned.append(
                TaskRecord(self.record.partition, returned=sink.getvalue().to_pybytes())
            )

    def _rows_in(self, room: str, size: int, rows: int) -> int:
        if self._per_clause >= EVERY_ROW:
            return EVERY_ROW
        return max(self._room[room], 0) * rows // max(size, 1)

    def _choose(
        self, cases: npt.NDArray[np.int32], numbers: npt.NDArray[np.int32], most: int
    ) -> npt.NDArray[np.int64]:
        samples = [np.zeros(0, np.int64)]
        for number in numbers.tolist():
            is_new = number not in self._remaining
            free_rows = self._remaining.setdefault(number, self._per_clause)
            if free_rows > 0:
                # At least one row of each clause is sampled.
                first = np.flatnonzero(cases == number)[
                    : min(free_rows, max(most // len(numbers), int(is_new)))
                ]
                self._remaining[number] = free_rows - len(first)
                samples.append(first)
        return np.sort(np.concatenate(samples))

    def stored(
        self, layout: PageLayout | None, page: Page, operations: pa.Array, row_count: int
    ) -> None:
        record = self.record
        record.pages += 1
        record.row_count += row_count
        for entry in pc.value_counts(operations).to_pylist():
            record.operations[entry["values"]] = (
                record.operations.get(entry["values"], 0) + entry["counts"]
            )
        stored_rows = record.stored_page.num_rows if record.stored_page is not None else 0
        new_rows = min(
            self._per_clause - stored_rows,
            page.num_rows,
            max(self._rows_in("stored", page.nbytes, page.num_rows), not stored_rows),
        )
        if new_rows > 0:
            self._room["stored"] -= page.nbytes * new_rows // page.num_rows
            # A slice would pickle the whole page.
            more = page.take(pa.array(np.arange(new_rows)))
            record.stored_page = (
                more
                if record.stored_page is None
                else pa.concat_batches([record.stored_page, more])
            )
            record.stored_layout = layout

    def retain(self, page: Page) -> None:
        """Retain a page before it is passed to the connector, if there is room."""
        self._retained.note(page)

    def serialize(self) -> bytes:
        record = self.record
        if self._keeping.always or record.error is not None:
            record.retained_pages, record.left_out = self._retained.retained()
        return pickle.dumps(record)

    def failed(self, error: Exception | SystemExit, step: str) -> None:
        if not isinstance(error, RowMergeError):
            error = ExecutionError(f"{step} failed: {error_text(error)}", step=step)
        elif isinstance(error, ExecutionError) and not error.step:
            error.step = step
        self.record.error = error


def operation_text(operations: pa.Array) -> str:
    """Return the number of rows per operation as text.

    >>> operation_text(pa.array([2, 2, 1], pa.int8()))
    'D 2, I 1'
    """
    return operation_letters(
        {entry["values"]: entry["counts"] for entry in pc.value_counts(operations).to_pylist()}
    )
