"""Checks of layouts and bucket functions."""

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
    """Checks of tables with layouts; skipped for others."""

    varies: ClassVar[Collection[str]] = ("layout",)

    def test_an_insert_layout_names_columns_of_the_table(self, filled_table: FilledTable) -> None:
        statement = begun_statement(filled_table)
        if statement.insert_layout is None:
            statement.rollback()
            pytest.skip("get_insert_layout returns None for this table")
        layout_columns = statement.insert_layout.partition_columns
        columns = [column.name for column in statement.columns]
        statement.rollback()
        assert layout_columns, "a layout without columns is None"
        must_be(
            "columns of the insert layout",
            list(layout_columns),
            [name for name in columns if name in layout_columns],
        )

    def test_an_update_layout_takes_the_row_id_alone(self, filled_table: FilledTable) -> None:
        statement = begun_statement(filled_table)
        layout = statement.update_layout
        statement.rollback()
        if layout is None:
            pytest.skip("get_update_layout returns None for this table")
        must_be("columns of the update layout", layout.partition_columns, ())

    def test_both_layouts_have_equally_many_buckets(self, filled_table: FilledTable) -> None:
        """The engine refuses other statements with NOT_SUPPORTED."""
        counts = {
            operation: function.bucket_count for operation, function, _ in functions(filled_table)
        }
        must_be("numbers of buckets", counts, dict.fromkeys(counts, next(iter(counts.values()))))

    def test_every_row_has_a_bucket_within_the_bucket_count(
        self, filled_table: FilledTable
    ) -> None:
        """One int32 per row and never NULL, even for rows with NULL."""
        for operation, function, page in functions(filled_table):
            buckets = function.get_buckets(page)
            assert buckets.type == pa.int32(), (
                f"the buckets of the {operation} layout are int32, not {buckets.type}"
            )
            must_be(
                f"number of buckets that the {operation} layout returns for a page",
                len(buckets),
                page.num_rows,
            )
            assert buckets.null_count == 0, (
                f"{buckets.null_count} rows have no bucket in the {operation} layout"
            )
            outside = [
                bucket for bucket in buckets.to_pylist() if not 0 <= bucket < function.bucket_count
            ]
            assert not outside, f"buckets {outside} are not within range({function.bucket_count})"

    def test_equal_values_have_equal_buckets_wherever_they_stand(
        self, filled_table: FilledTable
    ) -> None:
        for operation, function, page in functions(filled_table):
            whole = function.get_buckets(page).to_pylist()
            order = pa.array([*range(page.num_rows - 1, -1, -1), *range(page.num_rows)])
            again = function.get_buckets(page.take(order)).to_pylist()
            must_be(
                f"buckets of the {operation} layout for the same rows in another order",
                again,
                [whole[i] for i in order.to_pylist()],
            )
            parts = [
                function.get_buckets(page.slice(i, 1)).to_pylist()[0] for i in range(page.num_rows)
            ]
            must_be(f"buckets of the {operation} layout for single rows", parts, whole)
            must_be(
                f"buckets of the {operation} layout by a copy of the function",
                travel(function).get_buckets(page).to_pylist(),
                whole,
            )


def begun_statement(filled_table: FilledTable) -> PageStatement:
    """Return a statement whose merge has begun."""
    statement = filled_table.statement()
    statement.begin(Changes())
    return statement


def functions(filled_table: FilledTable) -> Iterator[tuple[str, Any, Any]]:
    """Return the bucket functions of a table, each with a page of arguments; skip the check without
    any.
    """
    statement = begun_statement(filled_table)
    bucket_functions = []
    if statement.insert_layout is not None and statement.insert_layout.partitioning is not None:
        layout_columns = statement.insert_layout.partition_columns
        columns = {column.name: column for column in statement.columns}
        function = statement.bucket_function(
            statement.insert_layout, tuple(columns[name].type for name in layout_columns)
        )
        bucket_functions.append(("insert", function, one_page(statement.read(*layout_columns))))
    if statement.update_layout is not None and statement.update_layout.partitioning is not None:
        function = statement.bucket_function(statement.update_layout, (statement.row_id.type,))
        rows = statement.read(row_id=True)
        bucket_functions.append(("update", function, one_page(rows.select(["$row_id"]))))
    statement.rollback()
    if not bucket_functions:
        pytest.skip(
            "no layout of this table names a partitioning: the engine hashes its"
            " columns, or does not move rows"
        )
    return iter(bucket_functions)


def one_page(table: pa.Table) -> pa.RecordBatch:
    """Convert a table to one page."""
    return pa.RecordBatch.from_arrays(
        [column.combine_chunks() for column in table.columns], names=table.column_names
    )
