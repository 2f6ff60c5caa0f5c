"""Pruning by a constraint: partitions by values, files by bucket, stripes by statistics.

Delete events are never skipped by values.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.connectors.hive_acid.buckets import buckets_of
from rowmerge_nb.connectors.hive_acid.metastore.metastore import partition_texts
from rowmerge_nb.connectors.hive_acid.orc_values import partition_value
from rowmerge_nb.spi import ColumnDomain, Constraint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.connectors.hive_acid.metastore.metastore import HiveTable
    from rowmerge_nb.connectors.hive_acid.orc.tail import OrcTail, Stripe

_MOST_COMBINATIONS: Final = 10_000
_HASHED_AS_EQUAL: Final = frozenset(
    {"boolean", "tinyint", "smallint", "integer", "bigint", "varchar", "date"}
)
"""Types whose equal values have equal bits.

Floating point is not among them: zero has two forms.
"""


def partition_matters(name: str, table: HiveTable, constraint: Constraint | None) -> bool:
    for column, text in zip(table.partition_columns, partition_texts(name), strict=True):
        domain = constraint.domains.get(column.name) if constraint is not None else None
        # char values are equal with and without trailing spaces.
        if domain is None or column.type.base == "char":
            continue
        try:
            value = partition_value(text, column, table.name).as_py()
        except OverflowError:
            # Python has no such year: the engine compares.
            continue
        if value is None or not _meets(domain, value, value):
            return False
    return True


def wanted_buckets(table: HiveTable, constraint: Constraint | None) -> frozenset[int] | None:
    """Return the buckets that may hold rows within a constraint; None for all."""
    if constraint is None or table.bucket_count is None:
        return None
    columns = [
        next(column for column in table.columns if column.name == name)
        for name in table.bucketed_by
    ]
    domains = [constraint.domains.get(column.name) for column in columns]
    lists = [
        domain.values for domain in domains if domain is not None and domain.values is not None
    ]
    if len(lists) < len(columns) or any(
        column.type.base not in _HASHED_AS_EQUAL for column in columns
    ):
        return None
    if math.prod(map(len, lists)) > _MOST_COMBINATIONS:
        return None
    rows = list(itertools.product(*lists))
    if not rows:
        return frozenset()
    try:
        arrays = [
            pa.array(values, column.type.arrow)
            for values, column in zip(zip(*rows, strict=True), columns, strict=True)
        ]
    except (pa.ArrowException, OverflowError):
        # Values outside the column's type: leave the comparison to the engine.
        return None
    buckets = buckets_of(
        arrays, [column.type for column in columns], table.bucket_count, table.bucketing_version
    )
    return frozenset(buckets.tolist())


def data_domains(
    table: HiveTable, constraint: Constraint | None
) -> tuple[tuple[int, ColumnDomain], ...]:
    domains = constraint.domains if constraint is not None else {}
    return tuple(
        (index, domains[column.name])
        for index, column in enumerate(table.data_columns)
        if column.name in domains
    )


def stripes_that_matter(
    table: HiveTable, tail: OrcTail, domains: Sequence[tuple[int, ColumnDomain]], *, flat: bool
) -> list[Stripe]:
    """Return the stripes of a file that may hold rows within domains.

    ``flat``: columns are not in a row.
    """
    columns = [
        ((tail.column(index) if flat else tail.column(5, index)), table.data_columns[index].type)
        for index, _ in domains
    ]
    stripes = []
    for stripe in tail.stripes:
        for (column, sql_type), (_, domain) in zip(columns, domains, strict=True):
            value_range = tail.range(stripe.number, column, sql_type)
            if value_range is not None and (
                value_range.count == 0 or not _meets(domain, value_range.low, value_range.high)
            ):
                break
        else:
            stripes.append(stripe)
    return stripes


def _meets(domain: ColumnDomain, low: Any, high: Any) -> bool:
    try:
        if domain.low is not None and high is not None and high < domain.low:
            return False
        if domain.high is not None and low is not None and low > domain.high:
            return False
        if domain.values is None or low is None or high is None:
            return domain.values is None or bool(domain.values)
        if low == high:
            return low in domain.values
        values = sorted(domain.values)
        index = bisect_left(values, low)
        return index < len(values) and bool(values[index] <= high)
    except TypeError:
        # The domain has values of another type than the file.
        return True
