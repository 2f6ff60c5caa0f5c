"""The record of a statement: the pages its connector got, and what a replay needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.page import ROW_ID, PageLayout
from rowmerge_nb.spi.types import Type, parse_type
from rowmerge_nb.trace.contract_calls import Call

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class RecordedColumn:
    """A column, with its SQL type as text.

    >>> RecordedColumn("price", "decimal(10, 2)").sql_type.arrow
    Decimal128Type(decimal128(10, 2))
    """

    name: str
    type: str
    nullable: bool = True

    @property
    def sql_type(self) -> Type:
        return parse_type(self.type)


@dataclass(frozen=True)
class RecordedFailure:
    """The contract call that failed."""

    method: str
    number: int | None
    message: str


@dataclass(frozen=True)
class HandedPage:
    number: int
    page: pa.RecordBatch


@dataclass(frozen=True, kw_only=True)
class Record:
    """The input of a statement's connector.

    Args:
        redistribution: indices of the insert layout's columns.
        updated: the columns assigned by UPDATE, per case number in the current era, under 0 in the
            older flow.
        channels: in the older flow of an UPDATE, the page channel of each updated column and of the
            row id.
        left_out: omitted pages per writer; they precede its last page.
        every: the sampling interval: one row in ``every`` is recorded.
        rows: the target's rows before: its columns, then the row id; None if unreadable.

    >>> record = Record(statement="DELETE FROM t", kind="DELETE", name=("memory", "default", "t"), connector="memory",
    ...                 columns=(RecordedColumn("id", "bigint"),), row_id=RecordedColumn("$row_id", "bigint"))
    >>> record.page_schema.names, record.writers
    (['id', 'operation', 'row_id'], ())
    """

    statement: str
    kind: str
    name: tuple[str, ...]
    connector: str
    columns: tuple[RecordedColumn, ...]
    row_id: RecordedColumn | None = None
    paradigm: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    session: Mapping[str, Any] = field(default_factory=dict)
    era: Era = Era.DOCUMENTS
    flow: Flow = Flow.MERGE
    redistribution: tuple[int, ...] = ()
    updated: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    channels: tuple[int, ...] = ()
    pages: tuple[HandedPage, ...] = ()
    left_out: Mapping[int, int] = field(default_factory=dict)
    every: int = 1
    rows: pa.RecordBatch | None = None
    row_count: int | None = None
    splits: int | None = None
    calls: tuple[Call, ...] = ()
    failure: RecordedFailure | None = None

    @property
    def layout(self) -> PageLayout:
        return PageLayout(len(self.columns), self.redistribution, self.era)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns, then the row id if there is one."""
        columns = [*self.columns, *([self.row_id] if self.row_id is not None else [])]
        return pa.schema([pa.field(column.name, column.sql_type.arrow) for column in columns])

    @property
    def page_schema(self) -> pa.Schema:
        if self.row_id is None:
            return self.schema
        if self.flow is Flow.UPDATABLE:
            kinds = {column.name: column.sql_type.arrow for column in self.columns}
            assigned = [pa.field(name, kinds[name]) for name in self.updated.get(0, ())]
            return pa.schema([pa.field(ROW_ID, self.row_id.sql_type.arrow), *assigned])
        after = self.layout.output_schema(self.schema)
        return pa.schema([after.field(i) for i in self.layout.after.stored])

    @property
    def writers(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(page.number for page in self.pages))

    @property
    def page_rows(self) -> int:
        return sum(page.page.num_rows for page in self.pages)

    @property
    def is_complete(self) -> bool:
        """Whether all pages and all target rows are included."""
        whole = self.rows is None or self.rows.num_rows == self.row_count
        return whole and not self.left_out and self.every == 1

    def save(self, path: str | Path) -> None:
        """Write the record to a file for `rowmerge_nb.load_record`; errors as in `Audit.save`."""
        from rowmerge_nb.trace.saved.records import save_record

        save_record(self, path)

    def __str__(self) -> str:
        summary = (
            f"{plural(len(self.pages), 'page')} with {plural(self.page_rows, 'row')} for"
            f" {plural(len(self.writers), self.worker)}"
        )
        lines = [f"Record of {self.kind} {'.'.join(self.name)} ({self.connector})", summary]
        if self.rows is None:
            lines.append("the rows of the target before are not in it")
        elif self.row_count != self.rows.num_rows:
            lines.append(
                f"{plural(self.rows.num_rows, 'row')} of the target before, of"
                f" {number(self.row_count or 0)}"
            )
        else:
            lines.append(f"{plural(self.rows.num_rows, 'row')} of the target before: all of them")
        if self.every > 1:
            lines.append(f"sampled: one row of {self.every} was kept")
        lines += [
            f"{plural(count, 'page')} of {self.worker} {number} omitted, before its last page"
            for number, count in sorted(self.left_out.items())
        ]
        if self.failure is not None:
            at = "" if self.failure.number is None else f" of {self.worker} {self.failure.number}"
            lines.append(f"{self.failure.method}{at} failed: {self.failure.message}")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def worker(self) -> str:
        """``writer``, or ``split`` in the older flow."""
        return "split" if self.flow is Flow.UPDATABLE else "writer"
