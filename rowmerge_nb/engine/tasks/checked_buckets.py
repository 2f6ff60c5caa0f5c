"""Checks of a connector's bucket function."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.words import plural
from rowmerge_nb.spi.layout import BucketFunction

if TYPE_CHECKING:
    from rowmerge_nb.spi.page import Page

_EXAMPLES: Final = 5
"""At most this many wrong buckets are listed in an error."""


@dataclass(frozen=True)
class CheckedBuckets(BucketFunction):
    """A bucket function with checks: one int32 per row, not NULL, within the bucket count."""

    function: BucketFunction

    @property
    def bucket_count(self) -> int:
        count: Any = self.function.bucket_count
        if isinstance(count, bool) or not isinstance(count, Integral) or int(count) < 1:
            raise ConnectorError(
                f"{type(self.function).__name__}.bucket_count is {count!r}; it must be"
                " a positive integer",
                code="GENERIC_INTERNAL_ERROR",
                hint="Return the number of buckets of the table.",
            )
        return int(count)

    def get_buckets(self, page: Page) -> pa.Array:
        buckets: Any = self.function.get_buckets(page)
        if wrong := self._violation(buckets, page.num_rows):
            raise ConnectorError(
                f"{type(self.function).__name__}.get_buckets() {wrong}",
                code="GENERIC_INTERNAL_ERROR",
                hint=(
                    "Return a pyarrow int32 array with one bucket per row, each from 0 to"
                    f" {self.bucket_count - 1}."
                ),
            )
        return buckets

    def _violation(self, buckets: Any, rows: int) -> str:
        count = self.bucket_count
        if not isinstance(buckets, pa.Array):
            return (
                f"returned {type(buckets).__module__}.{type(buckets).__qualname__}; it"
                " must return a pyarrow int32 array"
            )
        if buckets.type != pa.int32():
            return f"returned values of type {buckets.type}; buckets must be int32"
        if len(buckets) != rows:
            return f"returned {plural(len(buckets), 'bucket')} for {plural(rows, 'row')}"
        if buckets.null_count:
            return f"returned NULL for {plural(buckets.null_count, 'row')} of {rows}"
        bounds = pc.min_max(buckets).as_py()
        if rows and (bounds["min"] < 0 or bounds["max"] >= count):
            outside = buckets.filter(pc.or_(pc.less(buckets, 0), pc.greater_equal(buckets, count)))
            values = sorted(pc.unique(outside).to_pylist())
            listed = ", ".join(map(str, values[:_EXAMPLES])) + (
                ", ..." if len(values) > _EXAMPLES else ""
            )
            noun = "bucket" if len(values) == 1 else "buckets"
            return (
                f"returned {noun} {listed} for {plural(len(outside), 'row')}; with bucket_count"
                f" {count} buckets are 0 to {count - 1}"
            )
        return ""
