"""A query of one table, computed on its pages."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import pyarrow as pa

from rowmerge_nb.engine.tasks.arrow import gathered
from rowmerge_nb.engine.tasks.scan import ScanPass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rowmerge_nb.engine.tasks.page_program import AssignedColumn, PageProgram
    from rowmerge_nb.spi.page import Page


@dataclass(frozen=True)
class QueryRows:
    program: PageProgram
    schema: pa.Schema
    values: tuple[AssignedColumn, ...]

    def of(self, pages: Iterable[Page]) -> Iterator[Page]:
        with closing(self.program.evaluator(None)) as evaluator:
            for page in gathered(evaluator.filtered(pages)):
                yield pa.RecordBatch.from_arrays(
                    evaluator.values_of(self.values, page), schema=self.schema
                )


@dataclass(frozen=True, kw_only=True)
class QueryScan(ScanPass):
    """Reads the rows of a query like those of a table."""

    table_scan: ScanPass
    query: QueryRows

    @classmethod
    def over(cls, table_scan: ScanPass, query: QueryRows) -> QueryScan:
        own = {field.name: getattr(table_scan, field.name) for field in fields(ScanPass)}
        return cls(**{**own, "schema": query.schema}, table_scan=table_scan, query=query)

    def read(self, numbers: Iterable[int]) -> Iterator[pa.RecordBatch]:
        yield from self.query.of(self.table_scan.read(numbers))
