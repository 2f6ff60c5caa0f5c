"""Rows of a page that sinks stage."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rowmerge_nb.connectors.jdbc.staging import JdbcMergeSink
from rowmerge_nb.spi import Era, PageLayout


class Staged:
    """A page sink that keeps its rows instead of staging them."""

    def stage(
        self, page: pa.RecordBatch, operations: pa.Array, cases: pa.Array | None, row_ids: pa.Array
    ) -> None:
        self.case_numbers = None if cases is None else cases.to_pylist()
        self.row_ids = row_ids.to_pylist()


def test_the_case_number_is_that_of_the_clause_even_if_a_column_has_its_name() -> None:
    columns = pa.schema([pa.field("case_number", pa.int64()), pa.field("row_id", pa.int64())])
    for era, expected in ((Era.CURRENT, [2]), (Era.DOCUMENTS, None)):
        layout, staged = PageLayout(1, era=era), Staged()
        row: dict[str, Any] = {"operation": 3, "row_id": 7, "insert_from_update": 0}
        arrays = [pa.array([row.get(f.name, 2)], f.type) for f in layout.output_schema(columns)]
        page = pa.RecordBatch.from_arrays(
            [pa.array([99]), *arrays[1:]], schema=layout.output_schema(columns)
        )
        JdbcMergeSink(staged, 1).store_merged_rows(layout.stored_page(page))  # type: ignore[arg-type]
        assert (staged.case_numbers, staged.row_ids) == (expected, [7])
