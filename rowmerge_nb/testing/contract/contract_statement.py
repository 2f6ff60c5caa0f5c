"""A statement through a connector's contract without Spark: the work of tasks runs sequentially."""

from __future__ import annotations

import io
import itertools
import pickle
import zlib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import pyarrow as pa

from rowmerge_nb.base.words import plural
from rowmerge_nb.engine.tasks.checked_buckets import CheckedBuckets
from rowmerge_nb.engine.tasks.exchange import Destination, Placing
from rowmerge_nb.engine.tasks.processors import create_processor
from rowmerge_nb.spi.handles import ColumnHandle, ConnectorSession, SchemaTableName
from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.spi.page import PageLayout
from rowmerge_nb.spi.page_source import Constraint
from rowmerge_nb.testing.contract.sample_values import identity, read_values, stored_values
from rowmerge_nb.testing.contract.unchanged import WatchedPages, WatchedSink

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator

    from rowmerge_nb.engine.tasks.processors import RowChangeProcessor
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.handles import ConnectorMergeTableHandle, ConnectorTableHandle
    from rowmerge_nb.spi.layout import ConnectorTableLayout
    from rowmerge_nb.spi.merge_sink import ConnectorMergeSink
    from rowmerge_nb.spi.metadata import ColumnMetadata
    from rowmerge_nb.spi.page import Page

T = TypeVar("T")
Row = tuple[Any, ...]
_Request: TypeAlias = tuple[Any, Operation, int, Row]
"""A change of one row: its key, the operation, the case number and the row to hand over."""

WRITERS: Final = 3
_queries = itertools.count(1)


def travel(thing: T) -> T:
    """Return a copy by cloudpickle, as a task receives it.

    >>> travel([1, 2])
    [1, 2]
    """
    from pyspark import cloudpickle

    classes: list[type] = []
    pickler: Any = cloudpickle.Pickler

    class Noting(pickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, type):
                classes.append(obj)
            return super().reducer_override(obj)

    content = io.BytesIO()
    Noting(content).dump(thing)
    saved_attributes = [(each, dict(vars(each))) for each in classes]
    try:
        copy: T = pickle.loads(content.getvalue())  # noqa: S301 - what was pickled above
    finally:
        # Cloudpickle copies a class from a cell by value, but in the same process it overwrites the
        # original's methods with copies, which have copies of their globals. Restore the original
        # methods; a real task is another process.
        for each, attributes in saved_attributes:
            for name, value in attributes.items():
                if vars(each).get(name) is not value:
                    setattr(each, name, value)
    return copy


@dataclass(frozen=True)
class Changes:
    """The changes of a MERGE; rows are identified by their first column.

    ``updated`` has pairs of a key and new values; those with the same columns form one clause.

    >>> expected_rows([(1, "a"), (2, "b")], ("id", "v"), Changes(deleted=(1,), updated=((2, {"v": "c"}),), inserted=((3, "d"),)))
    [(2, 'c'), (3, 'd')]
    """

    deleted: Sequence[Any] = ()
    updated: Sequence[tuple[Any, Mapping[str, Any]]] = ()
    inserted: Sequence[Row] = ()

    @property
    def clauses(self) -> dict[tuple[str, ...], int]:
        """The number of each UPDATE clause, by its assigned columns."""
        return {
            columns: number
            for number, columns in enumerate(dict.fromkeys(tuple(new) for _, new in self.updated))
        }


def expected_rows(rows: Sequence[Row], columns: Sequence[str], changes: Changes) -> list[Row]:
    """Return the rows of a table after changes, in any order."""
    deleted = {identity(key) for key in changes.deleted}
    updated = {identity(key): new for key, new in changes.updated}
    rows_after = []
    for row in rows:
        key = identity(row[0])
        if key not in deleted:
            new = updated.get(key, {})
            rows_after.append(
                tuple(new.get(column, value) for column, value in zip(columns, row, strict=True))
            )
    return [*rows_after, *changes.inserted]


@dataclass
class PageStatement:
    """A running statement; ``paradigm`` None requests the table's own.

    Attributes:
        handle: the table's handle; None if there is no such table.
        without_fragment: the number of rows that sinks took without returning a fragment.
    """

    connector: Connector
    name: SchemaTableName
    era: Era = Era.DOCUMENTS
    paradigm: str | None = None
    merge_handle: ConnectorMergeTableHandle | None = None
    without_fragment: int = 0

    def __post_init__(self) -> None:
        properties = {"era": str(self.era)} | (
            {"row_change_paradigm": self.paradigm} if self.paradigm else {}
        )
        self.session = ConnectorSession(f"contract-{next(_queries)}", properties=properties)
        self.transaction = self.connector.begin_transaction()
        self.metadata = self.connector.get_metadata(self.transaction)
        self.handle: Any = self.metadata.get_table_handle(self.session, self.name)

    # -- reading

    @property
    def columns(self) -> list[ColumnHandle]:
        return list(self.metadata.get_column_handles(self.session, self.handle))

    @property
    def row_id(self) -> ColumnHandle:
        return self.metadata.get_merge_row_id_column_handle(self.session, self.handle)

    def splits(
        self, constraint: Constraint | None = None, handle: ConnectorTableHandle | None = None
    ) -> list[Any]:
        manager = self.connector.get_split_manager()
        return list(
            manager.get_splits(
                self.transaction,
                self.session,
                handle or self._scanned(),
                constraint or Constraint(),
            )
        )

    def _scanned(self) -> Any:
        return self.handle if self.merge_handle is None else self.merge_handle.get_table_handle()

    def pages(
        self, columns: Sequence[ColumnHandle], splits: Sequence[Any] | None = None
    ) -> Iterator[Page]:
        """Yield pages as tasks read them: with pickled copies of handles, splits and providers."""
        handle, passed_pages = self._scanned(), WatchedPages("a page source")
        for split in self.splits() if splits is None else splits:
            provider = travel(self.connector.get_page_source_provider())
            handles = list(map(travel, columns))
            source = provider.create_page_source(
                travel(self.transaction), self.session, travel(split), travel(handle), handles
            )
            try:
                while (page := source.get_next_page()) is not None:
                    passed_pages.check_last()
                    _check_channels(page, columns)
                    passed_pages.add(page)
                    yield page
            finally:
                source.close()
        passed_pages.check()

    def read(
        self, *names: str, row_id: bool = False, constraint: Constraint | None = None
    ) -> pa.Table:
        """Return columns by name, by default all; the row id is last, named ``$row_id``."""
        by_name = {column.name.lower(): column for column in self.columns}
        columns = [by_name[name.lower()] for name in names] if names else list(by_name.values())
        if row_id:
            columns = [*columns, self.row_id]
        schema = pa.schema([*((f"c{i}", column.type.arrow) for i, column in enumerate(columns))])
        pages = [
            pa.RecordBatch.from_arrays(
                [channel.cast(f.type) for channel, f in zip(page.columns, schema, strict=True)],
                schema=schema,
            )
            for page in self.pages(columns, self.splits(constraint))
        ]
        column_names = [column.name for column in columns]
        return pa.Table.from_batches(pages, schema).rename_columns(
            [*column_names[:-1], "$row_id"] if row_id else column_names
        )

    def rows(self) -> list[Row]:
        channels = zip(self.read().columns, self.columns, strict=True)
        return list(
            zip(*(read_values(channel, column.type) for channel, column in channels), strict=True)
        )

    def evolve(self, *columns: ColumnMetadata) -> None:
        """Add new columns to the table, as part of the merge."""
        self.handle = self.metadata.get_evolved_table_handle(self.session, self.handle, columns)

    # -- changing

    def insert(self, rows: Sequence[Row]) -> None:
        """Run an INSERT up to the commit, with two writers."""
        handle = self.metadata.begin_insert(self.session, self.handle, self.columns)
        fragments: list[bytes] = []
        for writer, part in enumerate((rows[::2], rows[1::2])):
            if part:
                provider = travel(self.connector.get_page_sink_provider())
                sink = provider.create_page_sink(
                    travel(self.transaction), replace(self.session, writer=writer), travel(handle)
                )
                page, passed_pages = self.data_page(part), WatchedPages("a page sink")
                passed_pages.add(page)
                sink.append_page(page)
                fragments += given(sink.finish())
                passed_pages.check()
        self.metadata.finish_insert(self.session, handle, fragments)

    def data_page(self, rows: Sequence[Row]) -> Page:
        columns = self.columns
        arrays = [
            pa.array([row[i] for row in rows], column.type.arrow)
            for i, column in enumerate(columns)
        ]
        return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in columns])

    def begin(self, changes: Changes | None = None) -> None:
        """Plan and begin a MERGE with the coordinator's calls, in the documents' order."""
        self._row_id = self.row_id
        self._paradigm = self.metadata.get_row_change_paradigm(self.session, self.handle)
        self.insert_layout = self.metadata.get_insert_layout(self.session, self.handle)
        self.update_layout = self.metadata.get_update_layout(self.session, self.handle)
        if self.era is Era.CURRENT:
            clauses = (changes or Changes()).clauses
            lower = {
                number: {name.lower() for name in assigned} for assigned, number in clauses.items()
            }
            updated = {
                n: [column for column in self.columns if column.name.lower() in names]
                for n, names in lower.items()
            }
            self.merge_handle = self.metadata.begin_merge(self.session, self.handle, updated)
        else:
            self.merge_handle = self.metadata.begin_merge(self.session, self.handle)

    @property
    def layout(self) -> PageLayout:
        columns = self.columns
        layout_columns = (
            set(self.insert_layout.partition_columns) if self.insert_layout is not None else set()
        )
        redistribution = tuple(
            index for index, column in enumerate(columns) if column.name in layout_columns
        )
        return PageLayout(len(columns), redistribution, self.era, self._row_id.identifies_new_rows)

    @property
    def processor(self) -> RowChangeProcessor:
        columns = pa.schema(
            [pa.field(column.name, column.type.arrow) for column in [*self.columns, self._row_id]]
        )
        return create_processor(self._paradigm, self.layout, columns)

    def transformed(self, changes: Changes) -> Page:
        processor, layout = self.processor, self.layout
        scanned = self.read(row_id=True)
        *data, row_ids = (column.combine_chunks() for column in scanned.columns)
        columns = self.columns
        rows_before = list(
            zip(
                *(read_values(c, of.type) for c, of in zip(data, columns, strict=True)), strict=True
            )
        )
        numbers = {identity(row[0]): number for number, row in enumerate(rows_before)}
        old = {key: rows_before[number] for key, number in numbers.items()}
        requests = self._requests(changes, old, layout)
        cases = pa.array([number for _, _, number, _ in requests], pa.int32())
        target_indexes = pa.array(
            [numbers.get(key) if key is not None else None for key, *_ in requests], pa.int64()
        )
        channels = [
            *(data[index].take(target_indexes) for index in layout.redistribution_columns),
            *(
                [pa.array([0] * len(requests), pa.int64())]
                if layout.before.hash is not None
                else []
            ),
            row_ids.take(target_indexes),
            _merge_rows(requests, cases, processor.input_schema, layout),
            cases,
            pa.array([1] * len(requests), pa.int8()),
        ]
        return processor.transform_page(
            pa.RecordBatch.from_arrays(channels, schema=processor.input_schema)
        )

    def _requests(
        self, changes: Changes, old: Mapping[Any, Row], layout: PageLayout
    ) -> list[_Request]:
        if absent := [
            key
            for key in [*changes.deleted, *(key for key, _ in changes.updated)]
            if self._key(key) not in old
        ]:
            raise AssertionError(
                f"row {absent[0]!r} should be changed, but the scan with its row id"
                " does not return it"
            )
        names = [column.name for column in self.columns]
        requests: list[_Request] = []
        for key in map(self._key, changes.deleted):
            old_values = [
                value if self.era is Era.CURRENT or index in layout.redistribution_columns else None
                for index, value in enumerate(old[key])
            ]
            requests.append((key, Operation.DELETE, len(changes.clauses), tuple(old_values)))
        for key, new in ((self._key(key), new) for key, new in changes.updated):
            assigned = {name.lower(): value for name, value in new.items()}
            row = tuple(assigned.get(n.lower(), v) for n, v in zip(names, old[key], strict=True))
            requests.append((key, Operation.UPDATE, changes.clauses[tuple(new)], row))
        requests += [
            (None, Operation.INSERT, len(changes.clauses) + 1, row) for row in changes.inserted
        ]
        return requests

    def _key(self, key: Any) -> Hashable:
        return identity(*stored_values([key], self.columns[0].type))

    def sink_pages(self, changes: Changes) -> dict[int, list[Page]]:
        """Return the pages for each writer's sink, two if there are enough rows."""
        page = self.transformed(changes)
        stored_rows = self.layout.stored_page(page)
        writers = self._writers(page)
        by_writer: dict[int, list[Page]] = {}
        for writer in sorted(set(writers)):
            rows = [number for number, own in enumerate(writers) if own == writer]
            halves = [rows[: len(rows) // 2], rows[len(rows) // 2 :]]
            by_writer[writer] = [stored_rows.take(pa.array(half)) for half in halves if half]
        return by_writer

    def _writers(self, page: Page) -> list[int]:
        if self.insert_layout is None and self.update_layout is None:
            return [number * 2 // page.num_rows for number in range(page.num_rows)]
        columns, layout = [column.name for column in self.columns], self.layout
        arguments = (
            tuple(columns.index(n) for n in self.insert_layout.partition_columns)
            if self.insert_layout
            else ()
        )
        inserts = self._destination(
            self.insert_layout, arguments, tuple(self.columns[i].type for i in arguments)
        )
        updates = inserts
        if self.update_layout is not None or self.era is Era.CURRENT:
            updates = self._destination(
                self.update_layout, (layout.after.row_id,), (self._row_id.type,)
            )
        buckets = Placing(inserts, updates).buckets(page, layout, 0).to_pylist()
        hashed = [page.column(i).to_pylist() for i in arguments]
        return [
            (
                zlib.crc32(repr([channel[row] for channel in hashed]).encode())
                if bucket is None
                else bucket
            )
            % WRITERS
            for row, bucket in enumerate(buckets)
        ]

    def _destination(
        self,
        layout: ConnectorTableLayout | None,
        arguments: tuple[int, ...],
        types: tuple[Any, ...],
    ) -> Destination:
        if layout is None:
            return Destination(even=True)
        return Destination(
            (
                None
                if layout.partitioning is None
                else CheckedBuckets(self.bucket_function(layout, types))
            ),
            arguments,
        )

    def bucket_function(self, layout: ConnectorTableLayout, types: tuple[Any, ...]) -> Any:
        provider = self.connector.get_node_partitioning_provider()
        partitioning: Any = layout.partitioning
        return travel(
            provider.get_bucket_function(self.transaction, self.session, partitioning, types)
        )

    def sink(self, writer: int = 0) -> ConnectorMergeSink:
        provider = travel(self.connector.get_page_sink_provider())
        handle: Any = travel(self.merge_handle)
        return WatchedSink(
            provider.create_merge_sink(
                travel(self.transaction), replace(self.session, writer=writer), handle
            )
        )

    def attempt(self, writer: int, pages: Sequence[Page]) -> list[bytes]:
        """Run an attempt of a task to its end; return its fragments."""
        sink = self.sink(writer)
        for page in pages:
            sink.store_merged_rows(page)
        fragments = given(sink.finish())
        if not fragments:
            self.without_fragment += sum(page.num_rows for page in pages)
        return fragments

    def store(self, changes: Changes) -> list[bytes]:
        """Run all tasks once; return their fragments."""
        return [
            fragment
            for writer, pages in self.sink_pages(changes).items()
            for fragment in self.attempt(writer, pages)
        ]

    def finish(self, fragments: Collection[bytes]) -> None:
        handle: Any = self.merge_handle
        self.metadata.finish_merge(self.session, handle, fragments)

    def merge(self, changes: Changes) -> None:
        self.begin(changes)
        self.finish(self.store(changes))

    def commit(self) -> None:
        self.connector.commit(self.transaction)

    def rollback(self) -> None:
        self.connector.rollback(self.transaction)


def given(fragments: Any) -> list[bytes]:
    """Return a sink's fragments; wait for a future."""
    __tracebackhide__ = True
    result = fragments.result() if isinstance(fragments, Future) else fragments
    fragment_list = list(result) if isinstance(result, Iterable) else None
    if fragment_list is None or not all(type(fragment) is bytes for fragment in fragment_list):
        raise AssertionError(
            f"finish() returned {result!r}; it must return a list of fragments, which are bytes"
        )
    return fragment_list


def _check_channels(page: Page, columns: Sequence[ColumnHandle]) -> None:
    __tracebackhide__ = True
    if page.num_columns != len(columns):
        raise AssertionError(
            f"a page of the scan has {plural(page.num_columns, 'channel')}, but"
            f" {plural(len(columns), 'column')} were requested"
        )
    for index, (channel, column) in enumerate(zip(page.columns, columns, strict=True)):
        if channel.type != column.type.arrow:
            raise AssertionError(
                f"channel {index} of a page ('{column.name}') is {channel.type}, but"
                f" its handle has {column.type} ({column.type.arrow})"
            )


def _merge_rows(
    requests: Sequence[_Request], cases: pa.Array, schema: pa.Schema, layout: PageLayout
) -> pa.StructArray:
    fields = list(schema.field(layout.before.merge_row).type)
    rows = [row for *_, row in requests]
    values = [pa.array([row[i] for row in rows], fields[i].type) for i in layout.merge_row.columns]
    control = [
        pa.array([key is not None for key, *_ in requests]),
        pa.array([int(operation) for _, operation, *_ in requests], pa.int8()),
        cases,
    ]
    return pa.StructArray.from_arrays([*values, *control], fields=fields)
