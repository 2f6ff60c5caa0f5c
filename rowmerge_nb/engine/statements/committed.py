"""``check=``: the table is read after the commit, and its rows are compared with the expected ones.

The expected rows are computed without the connector: the former rows with their row ids, read by
the statement's own handle, without those that its pages delete or replace, and with those that its
pages add. This verifies the sinks, the finish call and the commit. Since the statement is
committed, differences are reported, not raised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.errors import RowMergeError, StatementInterrupted, error_text
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.engine.result import Result
from rowmerge_nb.engine.spark.interrupts import (
    interrupted_too_late,
    interruptible,
    interrupts_let_in,
)
from rowmerge_nb.engine.tasks.handed import Keeping, pages_of
from rowmerge_nb.engine.tasks.task_faults import unwatched
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_rows, python_values
from rowmerge_nb.sql.analyzer.analysis import InsertAnalysis, RowChangeAnalysis
from rowmerge_nb.sql.constants import constant_of
from rowmerge_nb.trace.bags import differing
from rowmerge_nb.trace.check_records import CommitCheck, WrongRow
from rowmerge_nb.trace.contract_calls import WriterRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.spi.metadata import IndependentRows
    from rowmerge_nb.trace.page_samples import PageSample

CHECKED_ROWS: Final = 100_000
"""The row limit of a requested check."""
CHECKED_UNASKED: Final = 10_000
"""The row limit of a default check."""
SHOWN: Final = 20
"""The maximum number of listed rows."""
_AGREES, _DIFFERS, _NOT_COMPARED = "agrees", "differs", "not compared"
_GONE: Final = (Operation.DELETE, Operation.UPDATE, Operation.UPDATE_DELETE)
_NEW: Final = (Operation.INSERT, Operation.UPDATE, Operation.UPDATE_INSERT)
_MOST_TEXT: Final = 60
_INSERTED_BYTES: Final = 1 << 26
"""The bytes of an INSERT's pages that each task keeps for the check."""

Rows = tuple[Any, ...]


def is_checked(run: StatementRun) -> bool:
    """Return whether a statement's rows are checked after the commit."""
    options = run.options
    if options.dry_run or options.rehearse or options.check is False:
        return False
    if isinstance(run.analysis, InsertAnalysis):
        # Whoever loads a table by many small INSERTs has not asked for as many readings of all of
        # it.
        return bool(options.check)
    if not isinstance(run.analysis, RowChangeAnalysis):
        return False
    if getattr(run, "pushed", None) is not None:
        return bool(options.check)
    return (
        bool(options.check)
        or run.transaction.opened(run.analysis.target.catalog).connector.checked_after_commit
    )


def keeping_of(run: StatementRun) -> Keeping:
    """Return which pages tasks keep: for a checked INSERT, those needed for the check."""
    keeping = run.options.keeping
    if not isinstance(run.analysis, InsertAnalysis) or not is_checked(run) or keeping.every > 1:
        return keeping
    return replace(keeping, most_bytes=max(keeping.most_bytes, _INSERTED_BYTES), always=True)


def unacknowledged(writers: Sequence[WriterRecord]) -> str:
    """Report sinks that stored rows and returned no fragment; ``""`` if there are none.

    >>> unacknowledged([WriterRecord(0, {1: 2}, 1, 0, 0, 2), WriterRecord(1, {1: 2}, 1, 1, 9, 2)])
    'finish() of 1 sink gave no fragment for 2 rows.'
    """
    silent = [writer for writer in writers if not writer.fragments and any(writer.rows.values())]
    rows = plural(sum(sum(writer.rows.values()) for writer in silent), "row")
    return (
        f"finish() of {plural(len(silent), 'sink')} gave no fragment for {rows}." if silent else ""
    )


def begin_check(
    run: StatementRun,
    read: Callable[[ConnectorTableVersion | None, int], pa.Table | None],
    read_independently: Callable[[int], IndependentRows | None] = lambda _: None,
) -> Checking | None:
    """Read the former rows by the statement's handle; None if there is nothing to check.

    Args:
        run: the statement's run, before its finish call.
        read: reads up to a number of rows of a version, like any reader after the commit.
        read_independently: reads up to a number of rows by another library than the connector.
    """
    if not is_checked(run):
        return None
    most = CHECKED_ROWS if run.options.check else CHECKED_UNASKED
    checking = Checking(run, read, most, read_independently)
    try:
        with interruptible("check"), unwatched():
            return replace(checking, **_before(run, most))
    except StatementInterrupted:
        raise
    except Exception as error:  # noqa: BLE001 - the statement goes on; that nothing can be compared is told
        return replace(checking, problem=f"the rows of before could not be read: {_text(error)}")


def _before(run: StatementRun, most: int) -> Mapping[str, Any]:
    pages = run.account.pages if run.account is not None else None
    if unknown := run.transaction.left_to_store(run.analysis):
        return {
            "problem": f"the store itself fills column '{unknown[0]}', which the INSERT leaves out"
        }
    if isinstance(run.analysis, InsertAnalysis):
        return _before_insert(run, run.analysis, most)
    assert isinstance(run.analysis, RowChangeAnalysis)
    target = run.analysis.target
    if run.options.flow == Flow.UPDATABLE:
        return {"problem": "page sources changed the rows, and no page says what they were given"}
    if getattr(run, "pushed", None) is not None:
        return {"problem": "the connector deleted the rows itself, and no page shows which"}
    joined = run.account.joined if run.account is not None else 0
    if joined and (pages is None or not pages.complete):
        reason = (
            "with trace='off' no page is kept"
            if run.options.trace == "off"
            else "not all of its pages were kept"
        )
        return {"problem": f"{reason}; check=True keeps those of up to {number(CHECKED_ROWS)} rows"}
    session, metadata = run.transaction.session, run.transaction.metadata(target.catalog)
    handle: Any = target.handle
    columns = [
        *metadata.get_column_handles(session, handle),
        metadata.get_merge_row_id_column_handle(session, handle),
    ]
    merge = run.transaction.merge_handle
    scanned = handle if merge is None else merge.get_table_handle()
    rows = run.transaction.scans.observations.rows_up_to(target.catalog, scanned, columns, most)
    if rows is None:
        hint = "" if run.options.check else f"; check=True reads up to {number(CHECKED_ROWS)}"
        return {"problem": f"the table has more than {number(most)} rows{hint}"}
    return {"before": rows, "pages": pages}


def _before_insert(run: StatementRun, analysis: InsertAnalysis, most: int) -> Mapping[str, Any]:
    streams = run.account.handed if run.account is not None else ()
    row_count = run.account.counted if run.account is not None else 0
    target = analysis.target
    handle: Any = target.handle
    columns = run.transaction.metadata(target.catalog).get_column_handles(
        run.transaction.session, handle
    )
    pages = [(number, page) for number, stream, _ in streams for page in pages_of(stream)]
    if sum(page.num_rows for _, page in pages) != row_count:
        return {"problem": "not all of the pages that its sinks were given could be kept"}
    rows = run.transaction.scans.observations.rows_up_to(target.catalog, handle, columns, most)
    if rows is None:
        return {"problem": f"the table has more than {number(most)} rows"}
    # An INSERT needs no row ids.
    return {
        "before": rows.append_column(str(len(columns)), pa.nulls(rows.num_rows)),
        "inserted": tuple(pages),
    }


@dataclass(frozen=True)
class Checking:
    """One statement's check.

    Args:
        read: reads the table in a version.
        read_independently: reads the table by another library, for a requested check.
        before: the former rows with the row id last; None if unknown.
        pages: the sinks' pages; None without rows.
        inserted: an INSERT's pages with their writers.
        problem: why there is nothing to compare with, or ``""``.
    """

    run: StatementRun
    read: Callable[[ConnectorTableVersion | None, int], pa.Table | None]
    most: int
    read_independently: Callable[[int], IndependentRows | None] = lambda _: None
    before: pa.Table | None = None
    pages: PageSample | None = None
    inserted: tuple[tuple[int, pa.RecordBatch], ...] = ()
    problem: str = ""

    def told(self, result: Result) -> Result:
        """Compare, and add the outcome to a result.

        Raises:
            StatementInterrupted: the user interrupted the check; the statement is committed, and
                the error has its result.
        """
        run = self.run
        try:
            with interruptible("check"), interrupts_let_in(), run.timed("check"):
                run.options.step("check")
                check = self._on_top()._found()  # noqa: SLF001 - of this class
        except StatementInterrupted as interrupt:
            check = CommitCheck(
                _NOT_COMPARED,
                "The rows in the store were not looked at: the check was interrupted.",
            )
            raise interrupted_too_late(_with_check(result, check, run)) from interrupt
        return _with_check(result, check, run)

    def _on_top(self) -> Checking:
        """Return the check on the base version of the commit, if others have committed since the
        statement read the table.
        """
        if not self.run.versions.is_overtaken or self.before is None:
            return self
        if not self.inserted:
            return replace(
                self, problem="others have changed the table between its read and its commit"
            )
        try:
            rows = self.read(self.run.versions.before, self.most)
        except Exception as error:  # noqa: BLE001 - the change is there, whatever a reader meets
            return replace(self, problem=f"the rows of before could not be read: {_text(error)}")
        if rows is None:
            return replace(self, problem=f"the table has more than {number(self.most)} rows")
        return replace(
            self, before=rows.append_column(str(rows.num_columns), pa.nulls(rows.num_rows))
        )

    def _found(self) -> CommitCheck:
        if self.problem or self.before is None:
            return CommitCheck(
                _NOT_COMPARED, f"The rows in the store were not compared: {self.problem}."
            )
        most = self.most + 2 * self.before.num_rows
        try:
            stored_rows, reader, note = self._read_back(most)
        except Exception as error:  # noqa: BLE001 - the change is there, whatever a reader meets
            return CommitCheck(
                _NOT_COMPARED, f"The rows in the store could not be read back: {_text(error)}."
            )
        if stored_rows is None:
            expected = plural(self._wanted.num_rows, "row")
            return CommitCheck(
                _DIFFERS,
                f"The store holds far more rows than it must: {expected} were to be there.",
                1,
            )
        missing, extra = self._difference(stored_rows)
        if not missing.num_rows and not extra.num_rows:
            return CommitCheck(
                _AGREES,
                f"Read back{reader}: the store holds the {plural(stored_rows.num_rows, 'row')} that"
                f" it must.{note}",
            )
        if reader:
            note = self._own_reading(most)
        rows = _Wrong(self._story, missing, extra).rows()
        wrong = max(missing.num_rows, extra.num_rows)
        are, them = ("is", "it") if wrong == 1 else ("are", "them")
        silent = unacknowledged(self.run.account.writers if self.run.account is not None else ())
        message = (
            f"Read back{reader}: {plural(wrong, 'row')} {are} not as the statement must have left"
            f" {them}.{f' {silent}' if silent else ''}{note}"
        )
        if self.run.transaction.version is None:
            message += (
                " The store keeps no versions: what somebody else has changed since would look the"
                " same."
            )
        return CommitCheck(_DIFFERS, message, wrong, rows)

    def _read_back(self, most: int) -> tuple[pa.Table | None, str, str]:
        """Return the rows, who has read them if not the connector, and a further sentence."""
        note = ""
        if self.run.options.check:
            try:
                independent = self.read_independently(most)
                if independent is not None:
                    rows = None if independent.rows is None else self._conformed(independent.rows)
                    return rows, f" by {independent.reader}", ""
            except Exception as error:  # noqa: BLE001 - the connector reads instead
                note = f" Another reader could not read the table: {_text(error)}."
        return self.read(self.run.transaction.version, most), "", note

    def _difference(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """Return the missing rows, and those that must not be there."""
        return differing(self._conformed(rows), self._wanted)

    def _conformed(self, rows: pa.Table) -> pa.Table:
        return rows.rename_columns(self._wanted.schema.names).cast(self._wanted.schema)

    def _own_reading(self, most: int) -> str:
        """Report whether the connector reads the right rows where another reader does not."""
        try:
            rows = self.read(self.run.transaction.version, most)
        except Exception as error:  # noqa: BLE001 - reported
            return f" The connector cannot read them: {_text(error)}."
        if rows is None or any(part.num_rows for part in self._difference(rows)):
            return " The connector reads wrong rows, too."
        return " The connector itself reads the right rows."

    # -- what must be there -------------------------------------------------------------------------------------------

    @cached_property
    def _changes(self) -> _Changes:
        return _Inserted(self.inserted) if self.inserted else _Changes(self.pages)

    @property
    def _columns(self) -> list[str]:
        assert self.before is not None
        return [str(index) for index in range(self.before.num_columns - 1)]

    @cached_property
    def _stays(self) -> np.ndarray[Any, Any]:
        """A mask of the former rows that no page deletes or replaces."""
        removed_ids = set(self._changes.gone)
        return np.fromiter(
            (row_id not in removed_ids for row_id in self._ids), bool, len(self._ids)
        )

    @cached_property
    def _ids(self) -> list[str]:
        """The identity of each former row: its row id and the insert layout's columns, which the
        sink gets too.
        """
        assert self.before is not None
        layout_columns = (
            []
            if self.pages is None
            else [str(index) for index in self.pages.layout.redistribution_columns]
        )
        return _texts(self.before.select([*layout_columns, str(self.before.num_columns - 1)]))

    @cached_property
    def _wanted(self) -> pa.Table:
        assert self.before is not None
        data = self.before.select(self._columns)
        retained_rows = data.filter(pa.array(self._stays))
        new = self._changes.new
        return (
            retained_rows
            if new is None
            else pa.concat_tables(
                [retained_rows, new.rename_columns(self._columns).cast(data.schema)]
            )
        )

    @cached_property
    def _story(self) -> _Story:
        assert self.before is not None
        texts = _texts(self.before.select(self._columns))
        return _Story(dict(zip(self._ids, texts, strict=True)), texts, self._stays, self._changes)


class _Changes:
    def __init__(self, pages: PageSample | None) -> None:
        self._pages = pages
        self.new: pa.Table | None = None
        self.gone: list[str] = []
        self.operations: list[int] = []
        self.ids: list[str] = []
        if pages is None:
            return
        layout, after = pages.layout.after, pages.after
        self.operations = after.column(layout.operation).to_pylist()
        if pages.transformed:
            from_before = [
                pages.before.column(index)
                for index in pages.layout.before.write_redistribution_columns
            ]
            layout_columns = [
                column.take(pa.array(self.joined_rows, pa.int64())) for column in from_before
            ]
        else:
            layout_columns = [after.column(index) for index in pages.layout.redistribution_columns]
        ids = [*layout_columns, after.column(layout.row_id)]
        self.ids = _texts(pa.table(ids, [str(index) for index in range(len(ids))]))
        self.gone = [
            row_id
            for row_id, operation in zip(self.ids, self.operations, strict=True)
            if operation in _GONE
        ]
        is_new = pc.is_in(
            after.column(layout.operation), pa.array([int(one) for one in _NEW], pa.int8())
        )
        if pages.transformed or pc.any(is_new).as_py():
            rows = after.filter(is_new)
            values = [rows.column(index) for index in layout.columns]
            self.new = pa.table(values, [str(index) for index in range(len(values))])

    @cached_property
    def joined_rows(self) -> list[int]:
        produced = self._pages.produced if self._pages is not None else ()
        return [index for index, count in enumerate(produced) for _ in range(count)]

    def is_half(self, index: int) -> bool:
        joined = self.joined_rows
        return (
            self._pages is not None
            and index < len(joined)
            and self._pages.produced[joined[index]] > 1
        )

    @property
    def writers(self) -> Sequence[int]:
        return self._pages.writers if self._pages is not None else ()


class _Inserted(_Changes):
    def __init__(self, pages: Sequence[tuple[int, pa.RecordBatch]]) -> None:
        super().__init__(None)
        new = pa.Table.from_batches([page for _, page in pages])
        self.new = new.rename_columns([str(index) for index in range(new.num_columns)])
        self.operations = [int(Operation.INSERT)] * new.num_rows
        self.ids = [""] * new.num_rows
        self._by = [writer for writer, page in pages for _ in range(page.num_rows)]

    @property
    def writers(self) -> Sequence[int]:
        return self._by


@dataclass(frozen=True)
class _Change:
    """A row's role in the statement: ``words`` continue the text ``row (...)``."""

    words: str
    writer: int | None
    joined_row: int | None


class _Story:
    def __init__(
        self, old: Mapping[str, str], texts: Sequence[str], stays: Any, changes: _Changes
    ) -> None:
        self.gone: dict[str, _Change] = {}
        self.new: dict[str, _Change] = {}
        self.untouched = {
            text for text, is_untouched in zip(texts, stays, strict=True) if is_untouched
        }
        fresh = iter(_texts(changes.new)) if changes.new is not None else iter(())
        joined, writers = changes.joined_rows, changes.writers
        for index, (operation, row_id) in enumerate(
            zip(changes.operations, changes.ids, strict=True)
        ):
            writer = writers[index] if index < len(writers) and writers[index] >= 0 else None
            joined_row = joined[index] if index < len(joined) else None
            replaced = operation in {Operation.UPDATE, Operation.UPDATE_DELETE} or changes.is_half(
                index
            )
            if operation in _GONE and (text := old.get(row_id)) is not None:
                self.gone[text] = _Change(
                    "was to be changed" if replaced else "was to be deleted", writer, joined_row
                )
            if operation in _NEW:
                updated = operation != Operation.INSERT or changes.is_half(index)
                words = "was to be there after an update" if updated else "was to be inserted"
                self.new[next(fresh)] = _Change(words, writer, joined_row)


class _Wrong:
    def __init__(self, story: _Story, missing: pa.Table, extra: pa.Table) -> None:
        self._story, self._missing, self._extra = story, missing, extra

    def rows(self) -> tuple[WrongRow, ...]:
        wrong_rows = [self._one_too_many(*row) for row in _rows(self._extra)] + [
            self._one_missing(*row) for row in _rows(self._missing)
        ]
        return tuple(dict.fromkeys(wrong_rows))[:SHOWN]

    def _one_too_many(self, text: str, display_value: str, row: Rows) -> WrongRow:
        story = self._story
        if text in story.new:
            return _told(
                f"Row {display_value} is there more often than it must be: it"
                f" {story.new[text].words}.",
                story.new[text],
            )
        if text in story.untouched:
            return WrongRow(
                f"Row {display_value} is there more often than before; the statement does not"
                " touch it."
            )
        if text in story.gone:
            return _told(
                f"Row {display_value} {story.gone[text].words} and is there.", story.gone[text]
            )
        if all(value is None for value in row):
            return WrongRow("A row of NULLs is there that nobody asked for.")
        return WrongRow(f"Row {display_value} is there, and nobody asked for it.")

    def _one_missing(self, text: str, display_value: str, _: Rows) -> WrongRow:
        story = self._story
        if text in story.new:
            return _told(
                f"Row {display_value} {story.new[text].words} and is not there.", story.new[text]
            )
        return WrongRow(f"Row {display_value} is gone; the statement does not touch it.")


def _told(sentence: str, change: _Change) -> WrongRow:
    return WrongRow(sentence, change.writer, change.joined_row)


def _rows(table: pa.Table) -> list[tuple[str, str, Rows]]:
    first = table.slice(0, SHOWN)
    values = [tuple(row.values()) for row in python_rows(first)]
    return [(text, _shown(row), row) for text, row in zip(_texts(first), values, strict=True)]


def _texts(table: Any) -> list[str]:
    return [
        repr(row) for row in zip(*(python_values(column) for column in table.columns), strict=True)
    ]


def _shown(row: Rows) -> str:
    return f"({', '.join(_value(value) for value in row)})"


def _value(value: Any) -> str:
    text = constant_of(value) or str(value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."


def _text(error: BaseException) -> str:
    return (error.message if isinstance(error, RowMergeError) else error_text(error)).rstrip(".")


def _with_check(result: Result, check: CommitCheck, run: StatementRun) -> Result:
    result.trace = replace(
        result.trace, checks=replace(result.trace.checks, commit=check), seconds=dict(run.seconds)
    )
    return result
