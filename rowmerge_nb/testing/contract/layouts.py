"""Checks of layouts and of the functions that give rows their buckets."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pytest

from rowmerge_nb.testing.contract.contract_statement import Changes, PageStatement, travel
from rowmerge_nb.testing.contract.differences import must_be
from rowmerge_nb.testing.contract.store_under_test import ContractStore, FilledTable

if TYPE_CHECKING:
    from collections.abc import Iterator


class LayoutChecks(ContractStore):
    """Where rows go; a table without layouts has nothing to check."""

    varies: ClassVar[Collection[str]] = ("layout",)

    def test_an_insert_layout_names_columns_of_the_table(self, filled: FilledTable) -> None:
        """Each of them once, in table order."""
        statement = begun(filled)
        if statement.insert_layout is None:
            statement.rollback()
            pytest.skip("get_insert_layout gives None for this table")
        named = statement.insert_layout.partition_columns
        columns = [column.name for column in statement.columns]
        statement.rollback()
        assert named, "a layout without columns is None"
        must_be("columns of the insert layout", list(named), [name for name in columns if name in named])

    def test_an_update_layout_takes_the_row_id_alone(self, filled: FilledTable) -> None:
        """So it names no columns."""
        statement = begun(filled)
        layout = statement.update_layout
        statement.rollback()
        if layout is None:
            pytest.skip("get_update_layout gives None for this table")
        must_be("columns of the update layout", layout.partition_columns, ())

    def test_both_layouts_have_equally_many_buckets(self, filled: FilledTable) -> None:
        """Otherwise the engine refuses the statement with NOT_SUPPORTED."""
        counts = {kind: function.bucket_count for kind, function, _ in functions(filled)}
        must_be("numbers of buckets", counts, dict.fromkeys(counts, next(iter(counts.values()))))

    def test_every_row_has_a_bucket_within_the_bucket_count(self, filled: FilledTable) -> None:
        """One int32 per row, NULL in no place, rows that hold NULL included."""
        for kind, function, page in functions(filled):
            buckets = function.get_buckets(page)
            assert buckets.type == pa.int32(), f"the buckets of the {kind} layout are int32, not {buckets.type}"
            must_be(f"number of buckets that the {kind} layout gives for a page", len(buckets), page.num_rows)
            assert buckets.null_count == 0, f"{buckets.null_count} rows have no bucket in the {kind} layout"
            outside = [bucket for bucket in buckets.to_pylist() if not 0 <= bucket < function.bucket_count]
            assert not outside, f"buckets {outside} are not within range({function.bucket_count})"

    def test_equal_values_have_equal_buckets_wherever_they_stand(self, filled: FilledTable) -> None:
        """In another order, in a part of a page, beside themselves, and in another process."""
        for kind, function, page in functions(filled):
            whole = function.get_buckets(page).to_pylist()
            order = pa.array([*range(page.num_rows - 1, -1, -1), *range(page.num_rows)])
            again = function.get_buckets(page.take(order)).to_pylist()
            must_be(
                f"buckets of the {kind} layout for the same rows in another order", again, [whole[i] for i in order.to_pylist()]
            )
            parts = [function.get_buckets(page.slice(i, 1)).to_pylist()[0] for i in range(page.num_rows)]
            must_be(f"buckets of the {kind} layout for rows one by one", parts, whole)
            must_be(
                f"buckets of the {kind} layout by a copy of the function", travel(function).get_buckets(page).to_pylist(), whole
            )


def begun(filled: FilledTable) -> PageStatement:
    """Return a statement whose merge has begun."""
    statement = filled.statement()
    statement.begin(Changes())
    return statement


def functions(filled: FilledTable) -> Iterator[tuple[str, Any, Any]]:
    """Return the bucket functions of a table, each with a page of its arguments; skip the check where there is none."""
    statement = begun(filled)
    found = []
    if statement.insert_layout is not None and statement.insert_layout.partitioning is not None:
        named = statement.insert_layout.partition_columns
        columns = {column.name: column for column in statement.columns}
        function = statement.bucket_function(statement.insert_layout, tuple(columns[name].type for name in named))
        found.append(("insert", function, one_page(statement.read(*named))))
    if statement.update_layout is not None and statement.update_layout.partitioning is not None:
        function = statement.bucket_function(statement.update_layout, (statement.row_id.type,))
        rows = statement.read(row_id=True)
        found.append(("update", function, one_page(rows.select(["$row_id"]))))
    statement.rollback()
    if not found:
        pytest.skip("no layout of this table names a partitioning: the engine hashes its columns, or leaves rows where they are")
    return iter(found)


def one_page(table: pa.Table) -> pa.RecordBatch:
    """Make one page of a table."""
    return pa.RecordBatch.from_arrays([column.combine_chunks() for column in table.columns], names=table.column_names)
