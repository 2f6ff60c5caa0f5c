"""The record of a task is small, even for large pages: it travels to the driver."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.recorder import EVERY_ROW, Recorder
from rowmerge_nb.spi.page import PageLayout


def test_only_the_first_rows_of_a_stored_page_travel() -> None:
    page = pa.record_batch({"id": range(100_000), "operation": pa.array([1] * 100_000, pa.int8())})
    recorder = Recorder(0, 10)
    for _ in range(2):
        recorder.stored(None, page, page.column(1), page.num_rows)
    assert recorder.record.stored_page is not None
    assert recorder.record.stored_page.column(0).to_pylist() == list(range(10))
    assert recorder.record.operations == {1: 200_000}
    assert len(pickle.dumps(recorder.record)) < 10_000


def test_only_sampled_rows_have_a_record_of_their_placement() -> None:
    layout = PageLayout(1)
    page = pa.record_batch({"id": range(100)})
    produced, cases = np.full(100, 1), np.zeros(100, np.int32)
    recorder = Recorder(0, 3)
    for _ in range(2):
        recorder.transformed(layout, page, page, produced, cases, None)
        recorder.placed(lambda rows: pc.add(page.column(0).take(rows), 7))
    assert [part.numbers for part in recorder.record.sampled] == [pa.array([7, 8, 9])]


def test_fewer_large_rows_are_sampled_with_at_least_one_per_clause() -> None:
    page = pa.record_batch(
        {"text": ["x" * 4_000_000] * 8, "operation": pa.array([1] * 8, pa.int8())}
    )
    produced, cases = np.full(8, 1), np.array([0, 0, 0, 0, 0, 0, 1, 1], np.int32)
    recorder, every = Recorder(0, 1_000), Recorder(0, EVERY_ROW)
    for one in (recorder, every):
        for _ in range(3):
            one.transformed(PageLayout(1), page, page, produced, cases, None)
            one.stored(None, page, page.column(1), page.num_rows)
    record = recorder.record
    assert sum(part.before.num_rows for part in record.sampled) == 2
    assert record.stored_page is not None
    assert record.stored_page.num_rows == 4
    assert (record.before, record.operations) == (24, {1: 24})
    assert sum(part.before.num_rows for part in every.record.sampled) == 24
