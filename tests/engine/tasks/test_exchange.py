"""The numbers that are told of rows are those by which they find their writers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb.engine.tasks.exchange import BUCKET, Destination, LocalExchange, Placing
from rowmerge_nb.engine.tasks.outcome import RECORD
from rowmerge_nb.spi.layout import BucketFunction
from rowmerge_nb.spi.page import PageLayout

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
    sent = PAGE.append_column(BUCKET, buckets).append_column(RECORD, pa.nulls(4, pa.binary()))
    exchange = LocalExchange(3, (1,), by_row_id, 2, cast("Any", None))
    assert [number % 3 for number in numbers.to_pylist()] == exchange.writer_of(sent).tolist()
