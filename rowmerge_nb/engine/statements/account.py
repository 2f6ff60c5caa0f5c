"""The records of all tasks as one account of the statement."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.base.errors import ExecutionError, RowMergeError
from rowmerge_nb.base.words import plural
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.trace import Call, MatchPattern, PageSample, Placement, StoredSample, WriterRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.tasks.recorder import Sampled, TaskRecord
    from rowmerge_nb.spi.page import Page, PageLayout
    from rowmerge_nb.trace.raised import Raised
    from rowmerge_nb.trace.trace import AskedRows


@dataclass
class Account:
    """All tasks' records put together.

    Args:
        clause_rows: joined rows per case number.
        returned: the rows of RETURNING, as Arrow streams.
        errors: what ended tasks, in the order of their partitions.
        failed: the partition of the first of them.
        handed: of writers or splits that kept the pages that they were to hand on: the number, these as an Arrow stream, and how many are
            not among them.
        asked: the rows that were asked for; None where nobody has.
        untouched: target rows that took no part, where they are known.
        raised: what the connector's code raised in tasks; first in the one whose error is the first.
        is_cut: rows fail the check, and a task has not looked at all rows; the counts are too small.
    """

    clause_rows: dict[int, int]
    joined: int
    matched: int
    pages: PageSample | None
    stored: tuple[StoredSample, ...]
    writers: tuple[WriterRecord, ...]
    calls: tuple[Call, ...]
    failing: list[int]
    warning: list[int]
    witnesses: list[Page]
    patterns: tuple[MatchPattern, ...]
    errors: list[RowMergeError]
    counted: int
    alone: int
    returned: list[bytes]
    read: int = 0
    failed: int | None = None
    handed: tuple[tuple[int, bytes, int], ...] = ()
    asked: AskedRows | None = None
    untouched: pa.RecordBatch | None = None
    raised: tuple[Raised, ...] = ()
    is_cut: bool = False

    @property
    def has_counts(self) -> bool:
        """Whether tasks have counted all rows that they had to look at, as far as they came."""
        return bool(self.clause_rows) and not self.is_cut


def sum_up(records: Sequence[TaskRecord], writers: int = 1) -> Account:
    """Put the records of all tasks together, ordered by partition.

    Args:
        records: what the tasks told.
        writers: among how many writers an exchange chose, if there was one.
    """
    records = sorted(records, key=lambda r: r.partition)
    clause_rows: dict[int, int] = {}
    for record in records:
        for number, count in record.clause_rows.items():
            clause_rows[number] = clause_rows.get(number, 0) + count
    return Account(
        clause_rows=clause_rows,
        joined=sum(clause_rows.values()),
        matched=sum(record.matched for record in records),
        pages=_pages(records, writers),
        stored=tuple(
            StoredSample(r.partition, r.stored, sum(r.operations.values()), r.stored_layout)
            for r in records
            if r.stored is not None
        ),
        writers=tuple(
            WriterRecord(
                r.partition,
                r.operations,
                r.pages,
                len(r.fragments),
                sum(r.fragments),
                r.counted,
                "aborted" if r.aborted else "finished",
            )
            for r in records
            if r.pages or any(call.method in {"create_merge_sink", "create_page_source"} for call in r.calls)
        ),
        calls=tuple(call for record in records for call in record.calls),
        failing=sorted({i for record in records for i in record.failing}),
        warning=sorted({i for record in records for i in record.warning}),
        witnesses=[record.witnesses for record in records if record.witnesses is not None],
        patterns=_patterns(records),
        errors=[record.error for record in records if record.error is not None],
        counted=sum(record.counted for record in records),
        alone=sum(record.alone for record in records),
        returned=[record.returned for record in records if record.returned],
        read=sum(record.read for record in records),
        failed=next((record.partition for record in records if record.error is not None), None),
        handed=tuple((record.partition, record.retained_pages, record.left_out) for record in records if record.retained_pages),
        raised=tuple(one for record in records for one in record.raised),
        is_cut=any(record.is_cut for record in records),
    )


def check_fragments(account: Account, fragments: Sequence[bytes]) -> None:
    """Check that the driver has got what the tasks gave, before anything of it is made to last.

    Args:
        account: what the tasks told.
        fragments: the fragments that came.

    Raises:
        ExecutionError: fragments are missing, or there are more of them than were made.
    """
    made = [writer for writer in account.writers if writer.state == "finished"]
    count, size = sum(writer.fragments for writer in made), sum(writer.fragment_bytes for writer in made)
    if (count, size) != (len(fragments), sum(map(len, fragments))):
        came = f"{plural(len(fragments), 'fragment')} of {sum(map(len, fragments))} bytes"
        raise ExecutionError(
            f"The tasks gave {plural(count, 'fragment')} of {size} bytes, and {came} arrived; nothing was committed",
            step="run",
            hint="Run the statement again; if it happens again, please report it.",
        )


def _patterns(records: Sequence[TaskRecord]) -> tuple[MatchPattern, ...]:
    """Add up what the tasks counted: all matches of a target row are in one task."""
    total: Counter[tuple[int, int, int, int, bool]] = Counter()
    for record in records:
        total.update(record.patterns)
    return tuple(MatchPattern(*pattern, rows=rows) for pattern, rows in sorted(total.items()))


def _placement(parts: Sequence[Sampled], writers: int) -> Placement | None:
    """Return how the exchange placed the sampled rows; None without one."""
    placed = [part.numbers for part in parts if part.after.num_rows]
    known = [numbers for numbers in placed if numbers is not None]
    if not known or len(known) < len(placed):
        return None
    return Placement(writers, tuple(number for numbers in known for number in numbers.to_pylist()))


def _writers(layout: PageLayout, after: Page, records: Sequence[TaskRecord]) -> tuple[int, ...]:
    """Find out which writer got each sampled row without an exchange, by the pages that the writers kept; -1 where those do not tell.

    Rows that look the same may be another task's. In the older flow the split that has read a row changes it.
    """
    if any(record.read for record in records):
        return tuple(record.partition for record in records for part in record.sampled for _ in range(part.after.num_rows))
    handing = [record for record in records if record.pages]
    if len(handing) == 1 and handing[0].error is None:
        return tuple([handing[0].partition] * int(after.num_rows))
    found: dict[str, int] = {}
    for record in records:
        if record.stored is not None:
            for row in _rows_as_text(record.stored):
                found[row] = record.partition if found.get(row, record.partition) == record.partition else -1
    return tuple(found.get(row, -1) for row in _rows_as_text(layout.stored_page(after)))


def _rows_as_text(page: Page) -> list[str]:
    return [repr(row) for row in zip(*map(python_values, page.columns), strict=True)]


def _pages(records: Sequence[TaskRecord], writers: int) -> PageSample | None:
    parts = [part for record in records for part in record.sampled]
    before, after = sum(r.before for r in records), sum(r.after for r in records)
    if not parts:
        return None
    witnesses: list[Any] = [part.witness for part in parts]
    sampled = sum(part.before.num_rows for part in parts)
    made = pa.concat_batches([part.after for part in parts])
    placement = _placement(parts, writers)
    return PageSample(
        before=pa.concat_batches([part.before for part in parts]),
        after=made,
        produced=tuple(int(n) for part in parts for n in part.produced),
        writers=_writers(parts[0].layout, made, records) if placement is None else placement.chosen,
        witness=None if any(w is None for w in witnesses) else pa.concat_batches(witnesses),
        total_before=before,
        total_after=after,
        complete=sampled == before,
        layout=parts[0].layout,
        transformed=parts[0].transformed,
        tasks=tuple(rows for r in records if (rows := sum(part.before.num_rows for part in r.sampled))),
        placement=placement,
    )
