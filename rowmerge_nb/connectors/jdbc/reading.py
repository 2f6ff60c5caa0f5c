"""Reading in tasks: a query per split, its rows page by page, only the columns that are wanted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.connectors.jdbc.handles import JdbcSplit, JdbcTableHandle, RowIdColumn, table_handle_of
from rowmerge_nb.connectors.jdbc.store import Reading, Session, Store
from rowmerge_nb.connectors.jdbc.updatable import JdbcUpdatablePageSource, JdbcUpdatableTableHandle
from rowmerge_nb.errors import ConnectorError
from rowmerge_nb.spi.handles import own
from rowmerge_nb.spi.page_source import ConnectorPageSource, ConnectorPageSourceProvider

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from rowmerge_nb.spi.handles import ColumnHandle, ConnectorSession, ConnectorSplit, ConnectorTableHandle
    from rowmerge_nb.spi.handles import ConnectorTransactionHandle as TransactionHandle
    from rowmerge_nb.spi.page import Page

__all__ = ["JdbcPageSource", "JdbcPageSourceProvider"]


@dataclass(frozen=True)
class JdbcPageSourceProvider(ConnectorPageSourceProvider):
    """Opens splits; every source has a connection of its own."""

    store: Store

    def create_page_source(
        self,
        transaction_handle: TransactionHandle,
        session: ConnectorSession,
        split: ConnectorSplit,
        table_handle: ConnectorTableHandle,
        columns: Sequence[ColumnHandle],
    ) -> ConnectorPageSource:
        """Give a source of the wanted columns."""
        split = own(split, JdbcSplit)
        handle = table_handle_of(table_handle)
        source = JdbcPageSource(self.store, handle, split, columns)
        return JdbcUpdatablePageSource(source, self.store, handle) if isinstance(handle, JdbcUpdatableTableHandle) else source


class JdbcPageSource(ConnectorPageSource):
    """Reads one split."""

    def __init__(self, store: Store, handle: JdbcTableHandle, split: JdbcSplit, columns: Sequence[ColumnHandle]) -> None:
        self._store = store
        self._handle = handle
        self._split = split
        self._columns = list(columns)
        self._session: Session | None = None
        self._pages = self._read()

    def get_next_page(self) -> Page | None:
        """Give the next page."""
        return next(self._pages, None)

    def close(self) -> None:
        """End the query and close the connection."""
        self._pages.close()
        if self._session is not None:
            self._session.close()

    def _parts(self) -> list[tuple[str, list[Reading]]]:
        """Give, per wanted column, its name and how it is read: several parts for a row id."""
        parts = []
        for column in self._columns:
            if isinstance(column, RowIdColumn):
                parts.append(("the primary key", self._store.row_id_readings(self._handle)))
            elif not self._handle.column(column.name).added:
                parts.append((column.name, [self._store.reading(self._handle.column(column.name), key=False)]))
        return parts

    def _read(self) -> Generator[Page, None, None]:
        parts = self._parts()
        readings = [reading for _, group in parts for reading in group]
        misfits = [reading.misfit for reading in readings]
        found = " ".join(f"WHEN {misfit} THEN {number}" for number, misfit in enumerate(misfits, 1) if misfit)
        check = Reading(f"CASE {found} ELSE 0 END" if found else "0", pa.int64())
        source = self._store.table(self._handle)
        conditions = [part for part in (self._store.range_of(self._split), self._split.predicate) if part]
        filtered = f"{source} WHERE {' AND '.join(conditions)}" if conditions else source
        names = [f"v{number}" for number in range(len(readings))]
        sql = self._store.select([*readings, check], [*names, "misfit"], filtered)
        self._session = self._store.connect()
        self._store.begin_reading(self._session, self._split)
        leading = self._store.leading_rows
        for read in self._session.stream(sql, self._store.batch_option, f"Reading table '{self._handle.name}'"):
            batch = read.slice(leading)
            leading = max(leading - read.num_rows, 0)
            if not batch.num_rows:
                continue
            strange = pc.max(batch.column(batch.num_columns - 1)).as_py()
            if strange:
                self._refuse(parts, readings, int(strange) - 1, source, conditions)
            yield self._page(batch)

    def _page(self, batch: pa.RecordBatch) -> Page:
        arrays, first = [], 0
        for column in self._columns:
            if isinstance(column, RowIdColumn):
                kind = column.type.arrow
                kinds = [field.type for field in kind] if pa.types.is_struct(kind) else [kind]
                values = [_plain(batch.column(first + number)).cast(wanted) for number, wanted in enumerate(kinds)]
                arrays.append(pa.StructArray.from_arrays(values, fields=list(kind)) if pa.types.is_struct(kind) else values[0])
                first += len(kinds)
                continue
            known = self._handle.column(column.name)
            if known.added:
                arrays.append(pa.nulls(batch.num_rows, known.type.arrow))
                continue
            try:
                arrays.append(self._store.converted(known, batch.column(first)))
            except pa.ArrowInvalid as error:
                msg = (
                    f"Column '{known.name}' of {self._store.name} table '{self._handle.name}' is declared {known.declared} "
                    f"and holds what is no {known.type}: {error}"
                )
                raise ConnectorError(msg, code="JDBC_ERROR", hint="Correct the value, or declare the column otherwise.") from None
            first += 1
        return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in self._columns])

    def _refuse(
        self, parts: list[tuple[str, list[Reading]]], readings: list[Reading], which: int, source: str, conditions: list[str]
    ) -> None:
        """Say which value of which column its declared type does not have."""
        names = [name for name, group in parts for _ in group]
        name, misfit = names[which], readings[which].misfit
        declared = next((column for column in self._handle.columns if column.name == name), None)
        shown = self._store.shown_value(readings[which])
        where = " AND ".join([*conditions, f"({misfit})"])
        with_session = self._store.connect()
        try:
            self._store.begin_reading(with_session, self._split)
            value = with_session.value(f"SELECT {shown} AS v FROM {source} WHERE {where} LIMIT 1")
        finally:
            with_session.close()
        kind = f"is declared {declared.declared} and" if declared is not None else "of this kind"
        msg = (
            f"Column '{name}' of {self._store.name} table '{self._handle.name}' {kind} holds {value}, "
            f"which is no {declared.type if declared is not None else 'usable value'}"
        )
        raise ConnectorError(msg, code="JDBC_ERROR", hint="Correct the value, or declare the column otherwise.")


def _plain(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array
