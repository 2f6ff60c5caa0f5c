"""What a task records is small, however large its pages are: it travels to the driver."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.tasks.recorder import Recorder
from rowmerge_nb.spi.page import PageLayout


def test_of_a_stored_page_the_first_rows_travel_and_no_others() -> None:
    page = pa.record_batch({"id": range(100_000), "operation": pa.array([1] * 100_000, pa.int8())})
    recorder = Recorder(0, 10)
    for _ in range(2):
        recorder.stored(None, page, page.column(1), page.num_rows)
    assert recorder.record.stored is not None
    assert recorder.record.stored.column(0).to_pylist() == list(range(10))
    assert recorder.record.operations == {1: 200_000}
    assert len(pickle.dumps(recorder.record)) < 10_000


def test_only_of_sampled_rows_is_told_how_they_were_placed() -> None:
    layout = PageLayout(1)
    page = pa.record_batch({"id": range(100)})
    produced, cases = np.full(100, 1), np.zeros(100, np.int32)
    recorder = Recorder(0, 3)
    for _ in range(2):
        recorder.transformed(layout, page, page, produced, cases, None)
        recorder.placed(lambda rows: pc.add(page.column(0).take(rows), 7))
    assert [part.numbers for part in recorder.record.sampled] == [pa.array([7, 8, 9])]
