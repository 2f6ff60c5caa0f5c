"""A small store that numbers its rows, with one configurable bug: for replays, which import it by its name."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import pyarrow as pa

from rowmerge_nb import spi
from rowmerge_nb.spi import (
    ColumnHandle,
    ColumnMetadata,
    ConnectorTableMetadata,
    Operation,
    parse_type,
)

BUGS = (
    "finish gives no fragments",
    "finish gives None",
    "new rows of updates twice",
    "row ids of another type",
    "operation ignored",
    "typo in store_merged_rows",
    "typo in finish_merge",
    "last page lost",
    "price 7 is refused",
    "prices are cut",
)


class Handle(spi.ConnectorTableHandle):
    def __init__(self, metadata: ConnectorTableMetadata) -> None:
        self.metadata = metadata


class Shop(spi.Connector):
    """Rows by their numbers; changes of finish_merge are visible at once, like in many stores."""

    name = "shop"
    commits_in_finish = True
    fixed = False  # it has the table default.prices and creates no other

    def __init__(self, bug: str = "") -> None:
        self.bug = bug
        self.tables: dict[spi.SchemaTableName, ConnectorTableMetadata] = {}
        self.rows: dict[spi.SchemaTableName, dict[int, tuple[Any, ...]]] = {}
        self.numbers = itertools.count(100)
        if self.fixed:
            name = spi.SchemaTableName("default", "prices")
            columns = (
                ColumnMetadata("id", parse_type("bigint")),
                ColumnMetadata("price", parse_type("double")),
            )
            self.tables[name] = ConnectorTableMetadata(name, columns)
            self.rows[name] = {1: (1, 9.5), 2: (2, 3.0)}

    def get_metadata(self, transaction: Any) -> Any:
        return Metadata(self)

    def get_split_manager(self) -> Any:
        return Splits(self)

    def get_page_source_provider(self) -> Any:
        return Reader(self.bug)

    def get_page_sink_provider(self) -> Any:
        return Sinks(self.bug)


class FixedShop(Shop):
    """A connector with its own table that creates no other."""

    fixed = True


class Metadata(spi.ConnectorMetadata):
    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    def get_table_handle(self, session: Any, name: Any) -> Any:
        known = self.shop.tables.get(name)
        return None if known is None else Handle(known)

    def get_table_metadata(self, session: Any, table: Any) -> Any:
        return table.metadata

    def create_table(self, session: Any, metadata: Any) -> None:
        if self.shop.fixed:
            super().create_table(session, metadata)
        self.shop.tables[metadata.name] = metadata
        self.shop.rows[metadata.name] = {}

    def drop_table(self, session: Any, table: Any) -> None:
        del self.shop.tables[table.metadata.name], self.shop.rows[table.metadata.name]

    def begin_insert(self, session: Any, table: Any, columns: Any) -> Any:
        if self.shop.fixed:
            super().begin_insert(session, table, columns)
        return table

    def finish_insert(self, session: Any, table: Any, fragments: Any) -> None:
        rows = self.shop.rows[table.metadata.name]
        for fragment in fragments:
            for row in pickle.loads(fragment):
                rows[next(self.shop.numbers)] = row

    def get_row_change_paradigm(self, session: Any, table: Any) -> Any:
        return spi.RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS

    def get_merge_row_id_column_handle(self, session: Any, table: Any) -> Any:
        return ColumnHandle(
            "$number",
            parse_type("varchar" if self.shop.bug == "row ids of another type" else "bigint"),
        )

    def begin_merge(self, session: Any, table: Any, updated_columns: Any = None) -> Any:
        return spi.ConnectorMergeTableHandle(table)

    def finish_merge(self, session: Any, handle: Any, fragments: Any) -> None:
        if self.shop.bug == "typo in finish_merge":
            fragments.sorted()
        rows = self.shop.rows[handle.table_handle.metadata.name]
        for fragment in fragments:
            for operation, number, row in pickle.loads(fragment):
                if self.shop.bug == "operation ignored" or operation == Operation.INSERT:
                    rows[next(self.shop.numbers)] = row
                elif operation == Operation.DELETE:
                    rows.pop(number, None)
                elif number in rows:
                    rows[number] = row
                    if self.shop.bug == "new rows of updates twice":
                        rows[next(self.shop.numbers)] = row


class Splits(spi.ConnectorSplitManager):
    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    def get_splits(self, transaction: Any, session: Any, table: Any, constraint: Any) -> Any:
        return [dict(self.shop.rows[table.metadata.name])]


class Reader(spi.ConnectorPageSourceProvider):
    def __init__(self, bug: str) -> None:
        self.bug = bug

    def create_page_source(
        self, transaction: Any, session: Any, split: Any, table: Any, columns: Any
    ) -> Any:
        if self.bug == "cannot be read":
            raise OSError("the split is gone")
        names = [column.name for column in table.metadata.columns]
        values = {name: [row[i] for row in split.values()] for i, name in enumerate(names)}
        known = {column.name: column.type.arrow for column in table.metadata.columns}
        arrays = [
            pa.array(values[c.name], known[c.name])
            if c.name in values
            else pa.array(split, pa.int64())
            for c in columns
        ]
        return spi.PagesSource(
            [pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])]
        )


class Sinks(spi.ConnectorPageSinkProvider):
    def __init__(self, bug: str) -> None:
        self.bug = bug

    def create_merge_sink(self, transaction: Any, session: Any, handle: Any) -> Any:
        return Sink(self.bug, len(handle.table_handle.metadata.columns))

    def create_page_sink(self, transaction: Any, session: Any, handle: Any) -> Any:
        return NewRows()


class NewRows(spi.ConnectorPageSink):
    def __init__(self) -> None:
        self.rows: list[Any] = []

    def append_page(self, page: Any) -> None:
        self.rows += zip(*(column.to_pylist() for column in page.columns), strict=True)

    def finish(self) -> Any:
        return [pickle.dumps(self.rows)]


class Sink(spi.ConnectorMergeSink):
    def __init__(self, bug: str, count: int) -> None:
        self.bug, self.count = bug, count
        self.pages: list[Any] = []

    def store_merged_rows(self, page: Any) -> None:
        if self.bug == "typo in store_merged_rows":
            page = page.colum(0)
        rows = list(
            zip(*(page.column(index).to_pylist() for index in range(self.count)), strict=True)
        )
        if self.bug == "price 7 is refused, and so are pages of one row" and len(rows) == 1:
            raise ValueError("one row is none")
        if self.bug.startswith("price 7 is refused") and any(row[-1] == 7 for row in rows):
            raise ValueError("no price is 7")
        if self.bug == "prices are cut":
            rows = [(*row[:-1], row[-1] and float(int(row[-1]))) for row in rows]
        operations, numbers = (
            page.column(self.count).to_pylist(),
            page.column(page.num_columns - 1).to_pylist(),
        )
        self.pages.append(list(zip(operations, numbers, rows, strict=True)))

    def finish(self) -> Any:
        if self.bug == "breakpoint() in finish":
            breakpoint()  # noqa: T100 - the bug
        if self.bug == "finish gives None":
            return None
        if self.bug == "finish gives no fragments":
            return []
        pages = self.pages[:-1] if self.bug == "last page lost" else self.pages
        return [pickle.dumps([change for page in pages for change in page])]


def broken() -> Shop:
    """The connector that the tests write into files, with the bug for as long as requested."""
    return Shop(BUG)


BUG = ""
