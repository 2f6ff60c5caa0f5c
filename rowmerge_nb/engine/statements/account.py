"""The records of all tasks as one account of the statement."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.errors import ExecutionError, RowMergeError
from rowmerge_nb.base.words import plural
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.contract_calls import Call, WriterRecord
from rowmerge_nb.trace.join_record import MatchPattern
from rowmerge_nb.trace.page_samples import PageSample, Placement, StoredSample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.tasks.recorder import Sampled, TaskRecord
    from rowmerge_nb.spi.page import Page, PageLayout
    from rowmerge_nb.trace.raised import Raised


_SCAN_STEPS: Final = {"create_page_source", "get_next_page"}


@dataclass
class Account:
    """The records of all tasks, added up.

    Args:
        retained_pages: for each writer or split that kept its pages: its number, the pages as an
            Arrow stream, and the number of missing pages.
        is_cut: whether rows fail the check and a task did not read all rows, so that counts are too
            small.
    """

    clause_rows: dict[int, int]
    joined: int
    matched: int
    pages: PageSample | None
    stored_samples: tuple[StoredSample, ...]
    writers: tuple[WriterRecord, ...]
    calls: tuple[Call, ...]
    failing: list[int]
    warning: list[int]
    witnesses: list[Page]
    patterns: tuple[MatchPattern, ...]
    errors: list[RowMergeError]
    row_count: int
    unmatched_rows: int
    returned: list[bytes]
    read: int = 0
    failed_partition: int | None = None
    retained_pages: tuple[tuple[int, bytes, int], ...] = ()
    raised: tuple[Raised, ...] = ()
    is_cut: bool = False

    @property
    def has_counts(self) -> bool:
        """Whether tasks have counted all of their rows, as far as they came."""
        return bool(self.clause_rows) and not self.is_cut and not self.lacks_scanned_rows

    @property
    def lacks_scanned_rows(self) -> bool:
        """Whether a scan failed, so that rows were joined without those of its table."""
        return any(getattr(error, "step", "") in _SCAN_STEPS for error in self.errors)


def sum_up(records: Sequence[TaskRecord], writers: int = 1) -> Account:
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
        stored_samples=tuple(
            StoredSample(r.partition, r.stored_page, sum(r.operations.values()), r.stored_layout)
            for r in records
            if r.stored_page is not None
        ),
        writers=tuple(
            WriterRecord(
                r.partition,
                r.operations,
                r.pages,
                len(r.fragments),
                sum(r.fragments),
                r.row_count,
                "aborted" if r.aborted else "finished",
            )
            for r in records
            if r.pages
            or any(call.method in {"create_merge_sink", "create_page_source"} for call in r.calls)
        ),
        calls=tuple(call for record in records for call in record.calls),
        failing=sorted({i for record in records for i in record.failing}),
        warning=sorted({i for record in records for i in record.warning}),
        witnesses=[record.witnesses for record in records if record.witnesses is not None],
        patterns=_patterns(records),
        errors=[record.error for record in records if record.error is not None],
        row_count=sum(record.row_count for record in records),
        unmatched_rows=sum(record.unmatched_rows for record in records),
        returned=[record.returned for record in records if record.returned],
        read=sum(record.read for record in records),
        failed_partition=next(
            (record.partition for record in records if record.error is not None), None
        ),
        retained_pages=tuple(
            (record.partition, record.retained_pages, record.left_out)
            for record in records
            if record.retained_pages
        ),
        raised=tuple(exception for record in records for exception in record.raised),
        is_cut=any(record.is_cut for record in records),
    )


def check_fragments(account: Account, fragments: Sequence[bytes]) -> None:
    finished = [writer for writer in account.writers if writer.state == "finished"]
    count = sum(writer.fragments for writer in finished)
    size = sum(writer.fragment_bytes for writer in finished)
    if (count, size) != (len(fragments), sum(map(len, fragments))):
        arrival = f"{plural(len(fragments), 'fragment')} of {sum(map(len, fragments))} bytes"
        raise ExecutionError(
            f"The tasks sent {plural(count, 'fragment')} of {size} bytes, and"
            f" {arrival} arrived; nothing was committed",
            step="run",
            hint="Run the statement again; if it happens again, please report it.",
        )


def _patterns(records: Sequence[TaskRecord]) -> tuple[MatchPattern, ...]:
    """Add up the patterns: all matches of a target row are in one task."""
    total: Counter[tuple[int, int, int, int, bool]] = Counter()
    for record in records:
        total.update(record.patterns)
    return tuple(MatchPattern(*pattern, rows=rows) for pattern, rows in sorted(total.items()))


def _placement(parts: Sequence[Sampled], writers: int) -> Placement | None:
    all_numbers = [part.numbers for part in parts if part.after.num_rows]
    arrays = [numbers for numbers in all_numbers if numbers is not None]
    if not arrays or len(arrays) < len(all_numbers):
        return None
    return Placement(writers, tuple(number for numbers in arrays for number in numbers.to_pylist()))


def _writers(layout: PageLayout, after: Page, records: Sequence[TaskRecord]) -> tuple[int, ...]:
    """Return the writer of each sampled row without an exchange, from the pages that writers kept; -1
    if they do not show it.
    """
    if any(record.read for record in records):
        return tuple(
            record.partition
            for record in records
            for part in record.sampled
            for _ in range(part.after.num_rows)
        )
    with_pages = [record for record in records if record.pages]
    if len(with_pages) == 1 and with_pages[0].error is None:
        return tuple([with_pages[0].partition] * int(after.num_rows))
    writers: dict[str, int] = {}
    for record in records:
        if record.stored_page is not None:
            for row in _rows_as_text(record.stored_page):
                writers[row] = (
                    record.partition
                    if writers.get(row, record.partition) == record.partition
                    else -1
                )
    return tuple(writers.get(row, -1) for row in _rows_as_text(layout.stored_page(after)))


def _rows_as_text(page: Page) -> list[str]:
    return [repr(row) for row in zip(*map(python_values, page.columns), strict=True)]


def _pages(records: Sequence[TaskRecord], writers: int) -> PageSample | None:
    parts = [part for record in records for part in record.sampled]
    before, after = sum(r.before for r in records), sum(r.after for r in records)
    if not parts:
        return None
    witnesses: list[Any] = [part.witness for part in parts]
    sampled = sum(part.before.num_rows for part in parts)
    after_rows = pa.concat_batches([part.after for part in parts])
    placement = _placement(parts, writers)
    return PageSample(
        before=pa.concat_batches([part.before for part in parts]),
        after=after_rows,
        produced=tuple(int(n) for part in parts for n in part.produced),
        writers=(
            _writers(parts[0].layout, after_rows, records)
            if placement is None
            else placement.chosen
        ),
        witness=None if any(w is None for w in witnesses) else pa.concat_batches(witnesses),
        total_before=before,
        total_after=after,
        complete=sampled == before,
        layout=parts[0].layout,
        transformed=parts[0].transformed,
        tasks=tuple(
            rows for r in records if (rows := sum(part.before.num_rows for part in r.sampled))
        ),
        placement=placement,
    )
