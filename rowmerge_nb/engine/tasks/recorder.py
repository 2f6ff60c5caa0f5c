"""What a task records, and how the records of all tasks become one account of the statement.

A record travels to the driver as a row of the statement's one Spark action, so only successful attempts are counted.
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
from rowmerge_nb.base.words import plural
from rowmerge_nb.engine.tasks.call_frames import no_breakpoints, raised_by
from rowmerge_nb.engine.tasks.duplicates import Patterns
from rowmerge_nb.engine.tasks.handed import IN_CASE, HandedPages, Keeping
from rowmerge_nb.engine.tasks.task_faults import noted
from rowmerge_nb.trace.samples import spans
from rowmerge_nb.trace.trace import Call
from rowmerge_nb.trace.words import operation_letters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.audit_passes import RowChooser
    from rowmerge_nb.spi.page import Page, PageLayout
    from rowmerge_nb.trace.raised import Raised


EVERY_ROW: Final = 1 << 30
"""As a number of rows for each clause: all of them are sampled, however large they are."""
SAMPLED_BYTES: Final = 1 << 24
"""Otherwise a task samples rows of about this size before and after ``transform_page`` together, and stored rows of the same size."""


@dataclass
class Sampled:
    """Sampled rows of one page before and after ``transform_page``; ``transformed`` is False where there was none, and they are the same.

    ``numbers`` are those by which an exchange finds the writers of the rows after it; None without one.
    """

    layout: PageLayout
    transformed: bool
    before: Page
    after: Page
    produced: npt.NDArray[np.int64]
    witness: Page | None
    numbers: pa.Array | None = None


@dataclass
class TaskRecord:
    """What one task has to tell.

    Args:
        partition: the partition it worked on; of a writer behind an exchange its number.
        clause_rows: joined rows per case number.
        matched: joined rows with both sides, and ``alone`` those with the target's alone.
        before: rows into ``transform_page``; ``after`` rows out of it.
        sampled: the sampled rows.
        stored: the first rows that the sink got, or that the page source got back; ``stored_layout`` is where their channels lie, None of
            what a page source got back.
        operations: rows stored per operation.
        pages: pages the sink got.
        counted: rows changed.
        fragments: size of every fragment.
        calls: contract calls made in the task.
        failing: unique ids of target rows that fail the check, and ``warning`` those that only deserve a warning.
        witnesses: the rows of those target rows: unique_id, case_number, row_id and, where rows carry it, the witness.
        patterns: how target rows with more than one match were matched.
        error: what ended the task.
        returned: rows of RETURNING as an Arrow stream; such a record tells nothing else.
        read: rows that an updatable page source gave.
        handed: the pages that were handed to the connector, as an Arrow stream, where they are kept.
        left_out: how many of them are not among those.
        raised: what the connector's code raised, in order.
        is_cut: rows fail the check, and the task has not looked at all rows.
    """

    partition: int
    clause_rows: dict[int, int] = field(default_factory=dict)
    matched: int = 0
    before: int = 0
    after: int = 0
    sampled: list[Sampled] = field(default_factory=list)
    stored: Page | None = None
    stored_layout: PageLayout | None = None
    operations: dict[int, int] = field(default_factory=dict)
    pages: int = 0
    counted: int = 0
    fragments: list[int] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    failing: list[int] = field(default_factory=list)
    warning: list[int] = field(default_factory=list)
    witnesses: Page | None = None
    patterns: Patterns = field(default_factory=dict)
    error: RowMergeError | None = None
    aborted: bool = False
    alone: int = 0
    returned: bytes = b""
    read: int = 0
    handed: bytes = b""
    left_out: int = 0
    raised: list[Raised] = field(default_factory=list)
    is_cut: bool = False


class CallNote(list[bytes]):
    """What is noted of a call while it is made: the fragments that it gave, or in a few words something else, and a page."""

    gave = ""
    page: Page | None = None

    def tell(self, gave: str, page: Page | None) -> None:
        """Report what the call gave, and which page that was."""
        self.gave, self.page = gave, page


class Recorder:
    """Keeps a task's record while it works.

    Args:
        partition: the task's partition.
        per_clause: how many rows per clause are sampled, 0 for none; fewer if they are large, unless it is `EVERY_ROW`.
        caller: what the partition is called in the log of calls.
        keeping: which pages are kept of those that are handed to the connector.
        chooser: chooses the rows that are sampled in place of that; None without one.
        handle: the handle that the connector is given, which is told beside an error of its code.

    Attributes:
        returned: the records that carry the rows of RETURNING, a page of them each.
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
        self._handed = HandedPages(self._keeping)
        self.returned: list[TaskRecord] = []
        self._per_clause = per_clause
        self._left: dict[int, int] = {}
        self._room = {"sampled": SAMPLED_BYTES, "stored": SAMPLED_BYTES}
        self._positions: pa.Array | None = None
        self._started = time.perf_counter()

    @contextmanager
    def call(self, method: str, given: str = "", page: Page | None = None) -> Iterator[CallNote]:
        """Record one contract call; what the caller puts into the yielded list is counted as its fragments.

        Args:
            method: its name.
            given: what it is called with, in a few words.
            page: the page that it is called with; None where it is called with none.
        """
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
                    given,
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
        """Keep an error of the connector's own code."""
        record = self.record
        before = sum(call.method == method for call in record.calls)
        raised = raised_by(
            error, method, caller=self._caller, number=record.partition, call=before + 1, page=page, handle=self.handle
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
        """Count a transformed page, and sample it."""
        self._sample(Sampled(layout, True, before, after, produced, witness), cases)

    def handed_on(self, layout: PageLayout, page: Page, case_number: int, witness: Page | None) -> None:
        """Count a page that goes to the store as it is, without ``transform_page``, and sample it; one clause took all of its rows."""
        each, cases = np.ones(page.num_rows, np.int64), np.full(page.num_rows, case_number, np.int32)
        self._sample(Sampled(layout, False, page, page, each, witness), cases)

    def _sample(self, page: Sampled, cases: npt.NDArray[np.int32]) -> None:
        before, after, produced, witness = page.before, page.after, page.produced, page.witness
        record = self.record
        record.before += before.num_rows
        record.after += after.num_rows
        self._positions = None
        if self._chooser is None:
            size = before.nbytes + (after.nbytes if page.transformed else 0) + (0 if witness is None else witness.nbytes)
            chosen = self._choose(cases, np.unique(cases), self._rows_in("sampled", size, before.num_rows))
            self._room["sampled"] -= size * len(chosen) // max(before.num_rows, 1)
        else:
            chosen = self._chooser.rows(page.layout, (before, after), produced, witness, transformed=page.transformed)
        if chosen.size:
            sizes = produced[chosen]
            positions = self._positions = pa.array(spans(np.cumsum(produced)[chosen] - sizes, sizes))
            taken = witness.take(pa.array(chosen)) if witness is not None else None
            record.sampled.append(
                replace(
                    page,
                    before=before.take(pa.array(chosen)),
                    after=after.take(positions),
                    produced=produced[chosen],
                    witness=taken,
                )
            )

    def placed(self, numbers: Callable[[pa.Array], pa.Array]) -> None:
        """Keep by which numbers the exchange finds the writers of the sampled rows of the last page.

        Args:
            numbers: gives those of some rows of the page after ``transform_page``, by their places in it.
        """
        if self._positions is not None:
            self.record.sampled[-1].numbers = numbers(self._positions)

    def give_back(self, rows: pa.StructArray) -> None:
        """Keep a page's rows of RETURNING; those are NULL for which no clause changes anything."""
        changed = rows.drop_null()
        if len(changed):
            names = [f"f{index}" for index in range(changed.type.num_fields)]
            page = pa.RecordBatch.from_arrays(changed.flatten(), names=names)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, page.schema) as writer:
                writer.write_batch(page)
            self.returned.append(TaskRecord(self.record.partition, returned=sink.getvalue().to_pybytes()))

    def _rows_in(self, room: str, size: int, rows: int) -> int:
        """Return how many rows of a page there is room for.

        Args:
            room: what they are for.
            size: the size of the page in bytes.
            rows: its rows.
        """
        if self._per_clause >= EVERY_ROW:
            return EVERY_ROW
        return max(self._room[room], 0) * rows // max(size, 1)

    def _choose(self, cases: npt.NDArray[np.int32], numbers: npt.NDArray[np.int32], most: int) -> npt.NDArray[np.int64]:
        """Return the first rows of each clause, and about as many of each as there is room for."""
        chosen = [np.zeros(0, np.int64)]
        for number in numbers.tolist():
            is_new = number not in self._left
            left = self._left.setdefault(number, self._per_clause)
            if left > 0:
                # One row of each clause is always sampled.
                first = np.flatnonzero(cases == number)[: min(left, max(most // len(numbers), int(is_new)))]
                self._left[number] = left - len(first)
                chosen.append(first)
        return np.sort(np.concatenate(chosen))

    def stored(self, layout: PageLayout | None, page: Page, operations: pa.Array, counted: int) -> None:
        """Count a page that a sink took, or that an updatable page source took back, and keep the first rows."""
        record = self.record
        record.pages += 1
        record.counted += counted
        for entry in pc.value_counts(operations).to_pylist():
            record.operations[entry["values"]] = record.operations.get(entry["values"], 0) + entry["counts"]
        kept = record.stored.num_rows if record.stored is not None else 0
        wanted = min(self._per_clause - kept, page.num_rows, max(self._rows_in("stored", page.nbytes, page.num_rows), not kept))
        if wanted > 0:
            self._room["stored"] -= page.nbytes * wanted // page.num_rows
            # Not a slice: that would take the whole page along to the driver.
            more = page.take(pa.array(np.arange(wanted)))
            record.stored = more if record.stored is None else pa.concat_batches([record.stored, more])
            record.stored_layout = layout

    def handing(self, page: Page) -> None:
        """Keep a page that is about to be handed to the connector, if there is room for it."""
        self._handed.note(page)

    def told(self) -> bytes:
        """Return the record as it goes to the driver, with the pages that are kept."""
        record = self.record
        if self._keeping.always or record.error is not None:
            record.handed, record.left_out = self._handed.kept()
        return pickle.dumps(record)

    def failed(self, error: Exception | SystemExit, step: str) -> None:
        """Note what ended the task; errors that are not ours are told with their type."""
        if not isinstance(error, RowMergeError):
            error = ExecutionError(f"{step} failed: {error_text(error)}", step=step)
        elif isinstance(error, ExecutionError) and not error.step:
            error.step = step
        self.record.error = error


def operation_text(operations: pa.Array) -> str:
    """Return how many rows of which operation a page holds.

    >>> operation_text(pa.array([2, 2, 1], pa.int8()))
    'D 2, I 1'
    """
    return operation_letters({entry["values"]: entry["counts"] for entry in pc.value_counts(operations).to_pylist()})
