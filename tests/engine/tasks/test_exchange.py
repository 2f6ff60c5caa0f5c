"""The recorded numbers of rows are those that choose their writers."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb.engine.tasks.exchange import (
    Destination,
    PagePartitioner,
    PartitionFunction,
    Placing,
)
from rowmerge_nb.engine.tasks.merge_passes import ChangedRows
from rowmerge_nb.engine.tasks.recorder import TaskRecord
from rowmerge_nb.engine.tasks.sent_pages import received_pages, without_reports
from rowmerge_nb.spi.layout import BucketFunction
from rowmerge_nb.spi.page import PageLayout

if TYPE_CHECKING:
    from pathlib import Path

LAYOUT = PageLayout(2, (1,))
PAGE = pa.record_batch(
    {
        "a": ["x", None, "z", "w"],
        "b": [1, 2, 3, None],
        "operation": pa.array([1, 2, 1, 3], pa.int8()),
        "row_id": [None, 5, None, 6],
        "insert_from_update": pa.array([0] * 4, pa.int8()),
    }
)


class Third(BucketFunction):
    bucket_count = 8

    def get_buckets(self, page: pa.RecordBatch) -> pa.Array:
        return pa.array(np.arange(page.num_rows) % 3, pa.int32())


@pytest.mark.parametrize(
    ("placing", "by_row_id"),
    [
        (Placing(Destination(arguments=(1,)), Destination(arguments=(1,))), None),
        (Placing(Destination(arguments=(1,)), Destination(arguments=(3,))), 3),
        (Placing(Destination(Third(), (1,)), Destination(Third(), (3,))), 3),
        (Placing(Destination(even=True), Destination(arguments=(3,))), 3),
    ],
)
def test_a_row_goes_to_the_writer_of_its_number(placing: Placing, by_row_id: int | None) -> None:
    buckets = placing.buckets(PAGE, LAYOUT, 0)
    numbers = placing.numbers(PAGE, LAYOUT, buckets)
    function = PartitionFunction(3, (1,), by_row_id, 2)
    writers = function.partitions(ChangedRows(PAGE, buckets)).tolist()
    assert [number % 3 for number in numbers.to_pylist()] == writers


@pytest.mark.parametrize("in_files", [False, True])
@pytest.mark.parametrize("function", [None, PartitionFunction(3, (1,), 3, 2)])
def test_every_writer_gets_its_rows_and_the_first_one_the_records(
    tmp_path: Path, in_files: bool, function: PartitionFunction | None
) -> None:
    rows = ChangedRows(PAGE, pa.nulls(4, pa.int32()))
    folder = str(tmp_path) if in_files else None
    partitioner = PagePartitioner(PAGE.schema, function, folder)
    messages = list(partitioner([rows, rows, TaskRecord(5)]))
    assert len(list(tmp_path.iterdir())) == in_files
    arrived: dict[int, list[str | None]] = {}
    reports: list[bytes] = []
    for message in without_reports(messages, reports):
        for page in received_pages([message], in_files=in_files):
            names = arrived.setdefault(message.column(0)[0].as_py(), [])
            names.extend(page.column("a").to_pylist())
    writers = [0] * 4 if function is None else function.partitions(rows).tolist()
    names = PAGE.column("a").to_pylist()
    for writer, found in arrived.items():
        assert found == 2 * [name for name, to in zip(names, writers, strict=True) if to == writer]
    assert sum(map(len, arrived.values())) == 8
    assert [pickle.loads(report).partition for report in reports] == [5]


def test_a_folder_that_cannot_be_written_is_an_error_of_the_task(tmp_path: Path) -> None:
    rows = ChangedRows(PAGE, pa.nulls(4, pa.int32()))
    partitioner = PagePartitioner(PAGE.schema, None, str(tmp_path / "gone"))
    [message] = partitioner([rows])
    record = pickle.loads(message.column(2)[0].as_py())
    assert "gone" in record.error.message
