"""A bucket function that violates its contract is refused before it sends a row anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.engine.engine import Engine
from rowmerge_nb.engine.tasks.checked_buckets import CheckedBuckets
from rowmerge_nb.spi.layout import BucketFunction
from tests.contract.broken_tasks import Buckets
from tests.contract.exchangeable_store import Store

PAGE = pa.record_batch({"id": [1, 2, 3]})


class ShopBuckets(BucketFunction):
    """A function of four buckets that returns the values of a test."""

    def __init__(self, result: Any, count: Any = 4) -> None:
        self.result, self.count = result, count

    @property
    def bucket_count(self) -> int:
        return self.count  # type: ignore[no-any-return]

    def get_buckets(self, page: pa.RecordBatch) -> pa.Array:
        return self.result


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (
            pa.array([0, 4, 4], pa.int32()),
            "returned bucket 4 for 2 rows; with bucket_count 4 buckets are 0 to 3",
        ),
        (
            pa.array([0, -1, 9], pa.int32()),
            "returned buckets -1, 9 for 2 rows; with bucket_count 4 buckets are 0 to 3",
        ),
        (pa.array([5, 6, 7], pa.int32()), "returned buckets 5, 6, 7 for 3 rows"),
        (pa.array([0, None, 3], pa.int32()), "returned NULL for 1 row of 3"),
        (pa.array([0, 1], pa.int32()), "returned 2 buckets for 3 rows"),
        (pa.array([], pa.int32()), "returned 0 buckets for 3 rows"),
        (pa.array([0, 1, 2, 3], pa.int32()), "returned 4 buckets for 3 rows"),
        (pa.array([0, 1, 2]), "returned values of type int64; buckets must be int32"),
        (pa.array([0.0, 1.0, 2.5]), "returned values of type double; buckets must be int32"),
        (pa.array(["0", "1", "2"]), "returned values of type string; buckets must be int32"),
        (
            pa.chunked_array([pa.array([0, 1, 2], pa.int32())]),
            "returned pyarrow.lib.ChunkedArray; it must return a pyarrow int32",
        ),
        (np.zeros(3, np.int32), "returned numpy.ndarray; it must return a pyarrow int32 array"),
        ([0, 1, 2], "returned builtins.list; it must return a pyarrow int32 array"),
        (None, "returned builtins.NoneType; it must return a pyarrow int32 array"),
    ],
)
def test_a_wrong_return_value_is_refused_by_name_value_and_count(result: Any, message: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        CheckedBuckets(ShopBuckets(result)).get_buckets(PAGE)
    assert caught.value.code == "GENERIC_INTERNAL_ERROR"
    assert caught.value.message.startswith(f"ShopBuckets.get_buckets() {message}")
    assert (
        caught.value.hint
        == "Return a pyarrow int32 array with one bucket per row, each from 0 to 3."
    )


def test_many_wrong_buckets_are_listed_in_part() -> None:
    with pytest.raises(RowMergeError) as caught:
        CheckedBuckets(ShopBuckets(pa.array(range(4, 24), pa.int32()))).get_buckets(
            pa.record_batch({"id": range(20)})
        )
    assert "returned buckets 4, 5, 6, 7, 8, ... for 20 rows;" in caught.value.message


@pytest.mark.parametrize("count", [0, -1, None, 2.0, True, "4"])
def test_a_bucket_count_is_a_positive_integer(count: Any) -> None:
    with pytest.raises(RowMergeError) as caught:
        CheckedBuckets(ShopBuckets(pa.array([0, 0, 0], pa.int32()), count)).get_buckets(PAGE)
    assert (
        caught.value.message
        == f"ShopBuckets.bucket_count is {count!r}; it must be a positive integer"
    )


@pytest.mark.parametrize(
    "result", [pa.array([0, 3, 0], pa.int32()), pa.array([3, 3, 3], pa.int32())]
)
def test_buckets_within_the_count_are_returned_as_they_are(result: pa.Array) -> None:
    assert CheckedBuckets(ShopBuckets(result, np.int64(4))).get_buckets(PAGE) is result


def test_an_empty_page_has_no_buckets() -> None:
    empty = pa.array([], pa.int32())
    assert CheckedBuckets(ShopBuckets(empty)).get_buckets(PAGE.slice(0, 0)) is empty


class FourOfFour(BucketFunction):
    """Returns a bucket beyond the last one."""

    def __init__(self, count: int, arguments: tuple[int, ...]) -> None:
        self.count = count

    @property
    def bucket_count(self) -> int:
        return self.count

    def get_buckets(self, page: pa.RecordBatch) -> pa.Array:
        return pa.array([self.count] * page.num_rows, pa.int32())


@pytest.mark.spark
def test_a_merge_with_bucket_4_of_4_fails_and_changes_nothing(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.add_catalog(
        "shop",
        Store({"partitioning": type("FourOfFourBuckets", (Buckets,), {"function": FourOfFour})}),
    )
    engine.run(
        "CREATE TABLE shop.default.t (id bigint, v varchar) WITH (bucketed_by = ARRAY['id'], bucket_count = 4)"
    )
    merge = "MERGE INTO shop.default.t t USING news n ON t.id = n.id WHEN NOT MATCHED THEN INSERT VALUES (n.id, n.v)"
    with pytest.raises(RowMergeError) as caught:
        engine.run(merge, namespace={"news": pa.table({"id": [1, 2], "v": ["a", "b"]})})
    assert "FourOfFour.get_buckets() returned bucket 4 for 2 rows" in str(caught.value)
    table = engine.run("SELECT count(*) FROM shop.default.t").table
    assert table is not None
    assert table.column(0).to_pylist() == [0]
