"""Replay of a record, and comparison of the resulting rows."""

from __future__ import annotations

import bdb
import traceback
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.errors import RowMergeError, error_text
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.base.words import plural
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.engine.tasks.call_frames import own_frame
from rowmerge_nb.replays.debugging import has_keyboard
from rowmerge_nb.replays.java_debugger import checked_port, debugged, is_of_coordinator
from rowmerge_nb.replays.java_plugin import PluginFacts, plugin_facts
from rowmerge_nb.replays.origin import ReplayOrigin
from rowmerge_nb.replays.replayed_statement import LocalStatement, Work
from rowmerge_nb.replays.rows import (
    NOT_FOUND,
    NamedRows,
    data_of,
    difference,
    lacks_targets,
    places_in,
    row_ids_in,
    rows_left,
)
from rowmerge_nb.replays.split import ReplayedSplits
from rowmerge_nb.replays.table import Prepared, check_make_table, prepared_table
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.spi.page import row_ids_of
from rowmerge_nb.trace.record import HandedPage, Record
from rowmerge_nb.trace.saved.records import load_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.page import Page
    from rowmerge_nb.trace.contract_calls import Call


@dataclass(frozen=True)
class Replay:
    """The result of a replay; displays as text, or as HTML in a notebook.

    Args:
        numbers: the writers, or splits, whose pages were replayed.
        call: the last call to make.
        expected: the expected rows, if known.
        remaining: the actual rows, if read.
        step: the call that raised it.
        has_rows: whether the table had the record's rows.
        plugin: the plugin of Trino, if the connector is one.
    """

    record: Record
    origin: ReplayOrigin
    numbers: tuple[int, ...]
    call: str
    make_table: Any = None
    calls: tuple[Call, ...] = ()
    fragments: tuple[tuple[int, bytes], ...] = ()
    expected: Page | None = None
    remaining: Page | None = None
    error: BaseException | None = None
    step: str = ""
    number: int | None = None
    notices: tuple[str, ...] = ()
    has_rows: bool = True
    plugin: PluginFacts | None = None

    @property
    def compared(self) -> bool:
        """Whether the rows were compared."""
        return self.error is None and self.expected is not None and self.remaining is not None

    @property
    def missing(self) -> Page | None:
        """The missing rows; None without a comparison."""
        return self._difference[0] if self._difference is not None else None

    @property
    def extra(self) -> Page | None:
        """The unexpected rows; None without a comparison."""
        return self._difference[1] if self._difference is not None else None

    @cached_property
    def _difference(self) -> tuple[Page, Page] | None:
        if self.error is not None or self.expected is None or self.remaining is None:
            return None
        return difference(self.expected, self.remaining)

    @property
    def agrees(self) -> bool:
        """Whether no call failed, and no rows differ."""
        differences = self._difference
        return (
            differences is not None and not differences[0].num_rows and not differences[1].num_rows
        )

    @property
    def failed(self) -> bool:
        """Whether a call failed, or the rows differ."""
        return self.error is not None or (self.compared and not self.agrees)

    @property
    def traceback(self) -> str:
        """The traceback of the error, from the connector on."""
        if self.error is None:
            return ""
        return "".join(
            traceback.format_exception(
                type(self.error), self.error, _connectors_frames(self.error.__traceback__)
            )
        )

    def debug(self) -> None:
        """Open the debugger where the call failed: IPython's in a notebook, otherwise pdb.

        NOT_SUPPORTED if no call failed.
        """
        if self.error is None:
            raise RowMergeError.unsupported(
                "No call failed in this replay, so there is no line to stop at",
                hint=(
                    "Put breakpoint() into the connector, and replay the record"
                    " again: the replay runs in this process."
                ),
            )
        from rowmerge_nb.replays.debugging import debugger_at

        debugger_at(self.error)

    def shrink(self, seconds: float = 30.0) -> Replay:
        """Return a smaller replay with the same failure; see `rowmerge_nb.replays.shrink`."""
        from rowmerge_nb.replays.shrinking import shrunk

        return shrunk(self, seconds)

    def to_test(
        self,
        path: str | Path,
        connector: str | None = None,
        make_table: str | None = None,
        *,
        expect_error: bool = False,
    ) -> Path:
        """Write a test with these calls and rows; it fails until the connector is fixed.

        Args:
            path: the file, which must not exist: ``test_*.py`` for pytest, or ``Test*.java`` for
                JUnit 5 if the connector is a plugin of Trino. Missing folders are created.
            connector: the ``module:name`` of the connector's factory; by default that of the
                replay. Only for pytest.
            make_table: likewise for ``make_table``.
            expect_error: the error of the replay is right, and the test passes if it is raised.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if a value or the connector cannot be written, or no
                call failed and an error is expected.
            RowMergeError: NOT_SUPPORTED for a test in Java of a connector in Python, of
                ``make_table`` or of the older flow.
        """
        from rowmerge_nb.replays.written import write_test

        return write_test(self, path, connector, make_table, expect_error=expect_error)

    def __str__(self) -> str:
        from rowmerge_nb.replays.shown import text_of

        return text_of(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from rowmerge_nb.replays.shown import html_of

        return html_of(self)


def replay(
    record: Record | Result | str | Path,
    connector: Any,
    *,
    writer: int | None = None,
    split: int | None = None,
    call: str | None = None,
    make_table: Any = None,
    debug: int | None = None,
) -> Replay:
    """Repeat a recorded statement's calls in this process and without Spark, so that
    ``breakpoint()`` works in the connector.

    Unless the connector has the table with the record's rows, it is created by CREATE TABLE and
    INSERT. The resulting rows are compared with the expected ones, and the statement is rolled
    back. A connector that shows rows only after the commit gets one, but only on a table of the
    replay, which is dropped.

    Args:
        record: the record, the path of a saved one, or a result that has one.
        connector: a connector of yours, or a factory (a class or function, without arguments or
            with an empty directory), or ``'module:name'``.
        writer: replay only this writer's pages, up to its fragments.
        split: in the older flow, replay only this split's pages; otherwise only read this split of
            the table.
        call: the last call to make: ``begin_merge``, ``finish`` (of the sinks) or ``finish_merge``.
        make_table: a function of connector, metadata and rows, for connectors without CREATE TABLE
            or INSERT.
        debug: for connectors in Java, the port where the process of the replayed calls waits for a
            debugger: that of the tasks, or the coordinator's if ``call`` or the failed call is a
            call of the coordinator. An interrupt ends the wait.

    Raises:
        RowMergeError: INVALID_ARGUMENTS for a writer, split or call that the record lacks, and for
            a port in use; NOT_SUPPORTED if the table cannot be created. Errors of the connector are in the result.
    """
    loaded, origin = _record(record), ReplayOrigin.of(connector)
    check_make_table(make_table)
    numbers, last = _selection(loaded, writer, split, call)
    initial = Replay(loaded, origin, numbers, last, make_table)
    port, of_coordinator = checked_port(debug), is_of_coordinator(loaded, call)
    with ExitStack() as stack:
        open_connector = stack.enter_context(origin.opened())
        wait = partial(debugged, open_connector, port, coordinator=of_coordinator)
        stack.enter_context(wait(before_tables=True))
        prepared = prepared_table(open_connector, loaded, make_table, origin)
        notice = ""
        try:
            with wait(before_tables=False):
                result = _Run(
                    initial, open_connector, prepared, split if loaded.flow is Flow.MERGE else None
                ).run()
        finally:
            notice = prepared.drop(open_connector, loaded)
        plugin = plugin_facts(open_connector)
    notices = (*result.notices, notice) if notice else result.notices
    return replace(result, notices=notices, plugin=plugin)


CALLS: Final = {
    "INSERT": "insert",
    "CREATE TABLE AS": "insert",
    "UPDATE": "update",
    "DELETE": "delete",
}
"""The verb in the names of the contract's calls, if it is not ``merge``."""


def _verb(record: Record) -> str:
    return CALLS[record.kind] if record.row_id is None or record.flow is Flow.UPDATABLE else "merge"


def _record(source: Any) -> Record:
    if isinstance(source, Record):
        return source
    if isinstance(source, Result):
        return source.record()
    return load_record(
        checked(
            source,
            "record",
            (str, Path),
            "a record, the path of a saved one, or the result of a statement",
        )
    )


def _selection(
    record: Record, writer: int | None, split: int | None, call: str | None
) -> tuple[tuple[int, ...], str]:
    steps = (f"begin_{_verb(record)}", "finish", f"finish_{_verb(record)}")
    if call is not None and call not in steps:
        raise RowMergeError.invalid(
            f"call = {call!r} is not possible",
            hint=did_you_mean(str(call), steps) or f"There are: {', '.join(steps)}.",
        )
    number = writer if writer is not None else split
    if writer is not None and split is not None:
        raise RowMergeError.invalid(
            "writer and split cannot be combined",
            hint="Give one of them.",
        )
    if number is None:
        return record.writers, call or steps[-1]
    name = "writer" if writer is not None else "split"
    checked(
        number, name, lambda value: type(value) is int and value >= 0, "the number of one, from 0"
    )
    if split is not None and record.flow is Flow.MERGE:
        return (), steps[0]
    if name != record.worker:
        raise RowMergeError.invalid(
            "A record of the older flow has no writers: page sources changed the rows"
            " that they read",
            hint=f"Give split=, one of {_listed(record.writers)}.",
        )
    if number not in record.writers:
        raise RowMergeError.invalid(
            f"The record has no pages of {name} {number}",
            hint=f"There are: {_listed(record.writers)}.",
        )
    return (number,), call or steps[1]


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


class _CallError(Exception):
    def __init__(self, of: BaseException, step: str, number: int | None) -> None:
        super().__init__(step)
        self.of, self.step, self.number = of, step, number


@dataclass
class _Run:
    initial: Replay
    connector: Connector
    prepared: Prepared
    split: int | None
    works: list[Work] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    expected: Page | None = None
    remaining: Page | None = None
    splits: ReplayedSplits | None = None
    refusal: RowMergeError | None = None

    @property
    def record(self) -> Record:
        return self.initial.record

    @cached_property
    def named_rows(self) -> NamedRows:
        return NamedRows(self.record)

    def run(self) -> Replay:
        if self.prepared.notice:
            self.notices.append(self.prepared.notice)
        error: BaseException | None = None
        step, number, committed = "", None, False
        try:
            statement = LocalStatement(self.connector, self.prepared.name, self.record.session)
        except Exception as failure:  # noqa: BLE001 - it is what the replay shows
            return self._result((), *_blamed(failure, "begin_transaction"))
        try:
            committed = self._calls(statement)
        except _CallError as failure:
            error, step, number = failure.of, failure.step, failure.number
        except Exception as failure:  # as above, but for what cannot be replayed at all
            if failure is self.refusal:
                raise
            error, step, number = _blamed(failure, statement.log.calls[-1].method)
        finally:
            if not committed:
                try:
                    statement.rollback()
                except Exception as failure:  # noqa: BLE001 - the first error is the one to show
                    self.notices.append(f"The rollback failed: {error_text(_cause(failure))}")
        if isinstance(error, bdb.BdbQuit):
            raise error if has_keyboard() else _no_keyboard(error)
        return self._result(tuple(statement.log.calls), error, step, number)

    def _result(
        self, log: tuple[Call, ...], error: BaseException | None, step: str, number: int | None
    ) -> Replay:
        end = next(
            (
                i
                for i, call in enumerate(log)
                if call.method.startswith("finish_") or call.method in {"commit", "rollback"}
            ),
            len(log),
        )
        calls = (*log[:end], *(call for work in self.works for call in work.calls), *log[end:])
        return replace(
            self.initial,
            calls=tuple(replace(call, order=order) for order, call in enumerate(calls, 1)),
            fragments=tuple(
                (work.number, fragment) for work in self.works for fragment in work.fragments
            ),
            expected=self.expected if error is None else None,
            remaining=self.remaining if error is None else None,
            error=error,
            step=step,
            number=number,
            notices=tuple(self.notices),
            has_rows=self.prepared.has_rows,
        )

    def _calls(self, statement: LocalStatement) -> bool:
        if statement.handle is None:
            self.refusal = RowMergeError(
                f"The connector has no table {self.prepared.name}",
                code="TABLE_NOT_FOUND",
                hint="Give make_table=..., which makes it.",
            )
            raise self.refusal
        record = self.record
        table, places, work = self._begin(statement)
        if self.split is not None:
            self._read_split(statement)
            return False
        if self.initial.call.startswith("begin_"):
            return False
        for number in self.initial.numbers:
            pages = [page for page in record.pages if page.number == number]
            if missing := record.left_out.get(number):
                self.notices.append(
                    f"{plural(missing, 'page')} of {record.worker} {number} are not in the record,"
                    " before its last one"
                )
            self.works.append(result := work(number, pages))
            if result.error is not None:
                raise _CallError(result.error, result.step, number)
        if record.every > 1:
            self.notices.append(f"The record is a sample: one row of {record.every} was kept")
        if self.initial.call == "finish":
            return False
        return self._finish(statement, table, places)

    def _begin(
        self, statement: LocalStatement
    ) -> tuple[Page, np.ndarray[Any, Any], Callable[[int, list[HandedPage]], Work]]:
        record = self.record
        nowhere = np.zeros(0, np.int64)
        if record.row_id is None:
            statement.begin_insert()
            rows = data_of(record, statement.rows())
            return (
                rows,
                nowhere,
                lambda number, pages: statement.insert([page.page for page in pages], number),
            )
        columns = {column.name: column for column in statement.columns}
        if record.flow is Flow.UPDATABLE:
            self.splits = splits = ReplayedSplits(
                statement, record, [columns[name] for name in record.updated.get(0, ())]
            )
            splits.begin()
            read, row_id = statement.rows(splits.handle, splits.row_id), splits.row_id
        else:
            updated = {
                number: [columns[name] for name in names]
                for number, names in record.updated.items()
            }
            row_id = statement.begin_merge(updated if record.era is Era.CURRENT else None)
            if record.paradigm not in {"", statement.paradigm.name}:
                self.notices.append(
                    f"The pages are of {record.paradigm}, but the connector uses"
                    f" {statement.paradigm.name}"
                )
            read = statement.rows(statement.merge_handle.get_table_handle(), row_id)
        table = data_of(record, read)
        places = nowhere
        if self.prepared.has_rows and record.rows is not None:
            places = places_in(table, data_of(record, record.rows))
        ids = row_ids_of(read)

        def mapped(pages: list[HandedPage]) -> Iterator[tuple[Page, pa.Array]]:
            for handed_page in pages:
                yield self._mapped(
                    handed_page, ids if len(places) else None, places, row_id.type.arrow
                )

        if record.flow is Flow.UPDATABLE:
            return table, places, lambda number, pages: splits.work(number, list(mapped(pages)))
        return (
            table,
            places,
            lambda number, pages: statement.merge(
                number,
                [self._transformed(page, row_ids) for page, row_ids in mapped(pages)],
                record.layout,
            ),
        )

    def _mapped(
        self, handed_page: HandedPage, ids: pa.Array | None, places: Any, row_id_type: pa.DataType
    ) -> tuple[Page, pa.Array]:
        """Return a page with current row ids, without rows whose target row is missing."""
        page, record = handed_page.page, self.record
        old = row_ids_in(record, page)
        if ids is None:
            # Without target rows there is nothing to convert, whatever the type of row ids.
            is_empty = old.null_count == len(old)
            return page, pa.nulls(len(old), row_id_type) if is_empty else conform(old, row_id_type)
        targets = self.named_rows.of(page)
        missing = lacks_targets(record, page, targets)
        if missing.any():
            self.notices.append(
                f"The record lacks rows of the target: {plural(int(missing.sum()), 'row')} of the"
                " pages skipped"
            )
            page, targets = page.filter(pa.array(~missing)), targets[~missing]
        indexes = pa.array(
            np.where(targets == NOT_FOUND, 0, places[targets]), mask=targets == NOT_FOUND
        )
        return page, ids.take(indexes)

    def _transformed(self, page: Page, row_ids: pa.Array) -> Page:
        after = self.record.layout.after
        arrays = list(page.columns)
        arrays[after.row_id] = row_ids
        names = [*page.schema.names, "insert_from_update"]
        return pa.RecordBatch.from_arrays(
            [*arrays, pa.array(np.zeros(page.num_rows, np.int8))], names=names
        )

    def _read_split(self, statement: LocalStatement) -> None:
        handle = (
            statement.merge_handle.get_table_handle() if self.record.row_id is not None else None
        )
        task = statement.scan(handle)
        if self.split is None or self.split >= len(task.splits):
            self.refusal = RowMergeError.invalid(
                f"The table has no split {self.split}: it has {plural(len(task.splits), 'split')}"
                " here",
                hint="The record's own table may have had more.",
            )
            raise self.refusal
        rows = sum(page.num_rows for page in task.read([self.split]))
        self.notices.append(f"Split {self.split} was read: {plural(rows, 'row')}")

    def _finish(self, statement: LocalStatement, table: Page, places: Any) -> bool:
        record, connector = self.record, self.connector
        if connector.commits_in_finish and not self.prepared.is_own:
            self.notices.append(
                f"{self.initial.call} was not called: the connector commits in it, and"
                " the table does not belong to the replay. Pass a function that creates a"
                " connector instead of a connector."
            )
            return False
        fragments = [fragment for work in self.works for fragment in work.fragments]
        if record.row_id is None:
            statement.finish_insert(fragments)
        elif self.splits is not None:
            self.splits.finish(fragments)
        else:
            statement.finish_merge(fragments)
        if not self.prepared.has_rows:
            return False
        pages = [page for page in record.pages if page.number in self.initial.numbers]
        self.expected = rows_left(record, table, places, pages)
        if statement.metadata.shows_own_changes and not connector.commits_in_finish:
            fresh = statement.metadata.get_table_handle(statement.session, self.prepared.name)
            self.remaining = data_of(record, statement.rows(fresh))
            return False
        if not self.prepared.is_own:
            self.notices.append(
                "The resulting rows were not checked: the connector shows them after"
                " the commit, and the table does not belong to the replay. Pass a function"
                " that creates a connector instead of a connector."
            )
            return False
        statement.commit()
        after = LocalStatement(connector, self.prepared.name, record.session)
        try:
            self.remaining = data_of(record, after.rows())
        finally:
            with suppress(Exception):
                after.rollback()
        return True


def _no_keyboard(quit_: bdb.BdbQuit) -> RowMergeError:
    frame = own_frame(quit_)
    where = f" in {frame.filename}, line {frame.lineno}," if frame is not None else ""
    error = RowMergeError.unsupported(
        f"breakpoint(){where} cannot stop here: this process has no keyboard",
        hint="Replay it in a notebook, in a terminal, or in a test by pytest -s.",
    )
    error.__cause__ = quit_
    return error


def _blamed(failure: BaseException, step: str) -> tuple[BaseException, str, None]:
    return _cause(failure), getattr(failure, "step", "") or step, None


def _cause(failure: BaseException) -> BaseException:
    return (
        failure.__cause__
        if isinstance(failure, RowMergeError) and isinstance(failure.__cause__, Exception)
        else failure
    )


def _connectors_frames(frames: TracebackType | None) -> TracebackType | None:
    ours = str(Path(__file__).parent.parent)
    last = frames
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(ours):
        frames = frames.tb_next
    return frames if frames is not None else last
