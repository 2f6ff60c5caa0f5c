"""The record of a statement: the pages that it handed to its connector, and what is needed to hand them over once more. Plain data, no handles."""

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
from rowmerge_nb.trace.trace import Call

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class RecordedColumn:
    """A column: its name as written, its SQL type as text, and whether it may hold NULL.

    >>> RecordedColumn("price", "decimal(10, 2)").sql_type.arrow
    Decimal128Type(decimal128(10, 2))
    """

    name: str
    type: str
    nullable: bool = True

    @property
    def sql_type(self) -> Type:
        """The type."""
        return parse_type(self.type)


@dataclass(frozen=True)
class RecordedFailure:
    """The call of the contract that failed.

    Args:
        method: its name.
        number: which writer or split made it; None for the coordinator, and where that is not known.
        message: what it raised.
    """

    method: str
    number: int | None
    message: str


@dataclass(frozen=True)
class HandedPage:
    """A page as the connector got it.

    Args:
        number: of the writer whose sink got it; in the older flow of the split whose page source got it back.
        page: its rows.
    """

    number: int
    page: pa.RecordBatch


@dataclass(frozen=True, kw_only=True)
class Record:
    """What a statement handed to its connector.

    Args:
        statement: its text.
        kind: ``MERGE``, ``UPDATE``, ``DELETE``, ``INSERT`` or ``CREATE TABLE AS``.
        name: the target's catalog, schema and table.
        connector: the kind of store.
        paradigm: name of the row change paradigm; ``""`` of statements without one.
        columns: the table's columns in table order.
        row_id: the column of the row id; None of statements that only insert.
        properties: the table's properties, as far as they are plain data.
        session: the session's properties.
        era: whose page layout the pages have.
        flow: by which flow they were handed over.
        redistribution: the places of the insert layout's columns.
        updated: in the current era per case number the columns that its UPDATE assigns; in the older flow those of the UPDATE, under 0.
        channels: in the older flow of an UPDATE, per updated column and of the row id the channel of the page.
        pages: the pages, those of one writer in the order in which it got them.
        left_out: how many pages of a writer are not among them: they stood before the last one.
        every: of so many rows of the pages one was kept.
        rows: rows of the target before: its columns and, last, the row id; None where they could not be read.
        row_count: how many rows the target had, as far as they were counted.
        splits: how many splits the target had.
        calls: the calls of the contract, in order.
        failure: the call that failed; None if none did.

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
        """Where the channels of pages lie that merge sinks get."""
        return PageLayout(len(self.columns), self.redistribution, self.era)

    @property
    def schema(self) -> pa.Schema:
        """The table's columns and, where there is one, last the row id."""
        kept = [*self.columns, *([self.row_id] if self.row_id is not None else [])]
        return pa.schema([pa.field(column.name, column.sql_type.arrow) for column in kept])

    @property
    def page_schema(self) -> pa.Schema:
        """The channels of a page: of merge sinks as `PageLayout` has them, of page sinks the columns, in the older flow row ids and new values."""
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
        """The numbers of the writers, or of the splits, of which there are pages."""
        return tuple(dict.fromkeys(page.number for page in self.pages))

    @property
    def page_rows(self) -> int:
        """How many rows all pages have together."""
        return sum(page.page.num_rows for page in self.pages)

    @property
    def is_complete(self) -> bool:
        """All pages with all their rows are there, and all rows of the target."""
        whole = self.rows is None or self.rows.num_rows == self.row_count
        return whole and not self.left_out and self.every == 1

    def save(self, path: str | Path) -> None:
        """Write the record to a file that only its owner may read: it holds rows. `rowmerge_nb.load_record` opens it, without Spark.

        Args:
            path: the file; one that is there is replaced.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if there is no such directory, PERMISSION_DENIED if the file cannot be written,
                GENERIC_INSUFFICIENT_RESOURCES if the disk is full.
        """
        from rowmerge_nb.trace.saved.records import save_record

        save_record(self, path)

    def __str__(self) -> str:
        kept = (
            f"{plural(len(self.pages), 'page')} with {plural(self.page_rows, 'row')} for {plural(len(self.writers), self.worker)}"
        )
        lines = [f"Record of {self.kind} {'.'.join(self.name)} ({self.connector})", kept]
        if self.rows is None:
            lines.append("the rows of the target before are not in it")
        elif self.row_count != self.rows.num_rows:
            lines.append(f"{plural(self.rows.num_rows, 'row')} of the target before, of {number(self.row_count or 0)}")
        else:
            lines.append(f"{plural(self.rows.num_rows, 'row')} of the target before: all of them")
        if self.every > 1:
            lines.append(f"sampled: one row of {self.every} was kept")
        lines += [
            f"{plural(count, 'page')} of {self.worker} {number} left out, before its last one"
            for number, count in sorted(self.left_out.items())
        ]
        if self.failure is not None:
            at = "" if self.failure.number is None else f" of {self.worker} {self.failure.number}"
            lines.append(f"{self.failure.method}{at} failed: {self.failure.message}")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def worker(self) -> str:
        """What tasks have of it: a writer, or in the older flow a split."""
        return "split" if self.flow is Flow.UPDATABLE else "writer"
