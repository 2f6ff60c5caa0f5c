"""``check=``: the table is read after the commit, and its rows are compared with the expected ones.

The expected rows are computed without the connector. They are the former rows with their row ids,
read by the statement's own handle, without those that its pages delete or replace. The rows that
its pages add follow. This verifies the sinks, the finish call and the commit. Since the statement
is committed, differences are reported, not raised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.errors import StatementInterrupted, message_of
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.engine.spark.interrupts import (
    interrupted_too_late,
    interruptible,
    interrupts_let_in,
)
from rowmerge_nb.engine.statements.sink_changes import SinkChanges
from rowmerge_nb.engine.statements.wrong_rows import DIFFERS, WrongRows, key_columns, wrong_sentence
from rowmerge_nb.engine.tasks.handed import Keeping, pages_of
from rowmerge_nb.engine.tasks.task_faults import unwatched
from rowmerge_nb.sql.analyzer.analysis import InsertAnalysis, RowChangeAnalysis
from rowmerge_nb.trace.bags import differing
from rowmerge_nb.trace.check_records import CommitCheck
from rowmerge_nb.trace.contract_calls import WriterRecord
from rowmerge_nb.trace.error_record import StateEvidence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.spi.handles import ConnectorTableVersion
    from rowmerge_nb.spi.metadata import IndependentRows
    from rowmerge_nb.trace.page_samples import PageSample

CHECKED_ROWS: Final = 100_000
"""The row limit of a requested check."""
CHECKED_UNASKED: Final = 10_000
"""The row limit of a default check."""
_AGREES, _NOT_COMPARED = "agrees", "not compared"
_OLDER_FLOW: Final = "page sources changed the rows, and their new values are not in any page"
_KEPT_BYTES: Final = 1 << 26
"""The bytes of pages that each task keeps for the check."""


def is_checked(run: StatementRun) -> bool:
    options = run.options
    if options.dry_run or options.rehearse or options.check is False:
        return False
    if isinstance(run.analysis, InsertAnalysis):
        # A load by many small INSERTs would read the whole table as many times.
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
    """Return which pages tasks keep: for a checked statement those that its sinks receive."""
    keeping = run.options.keeping
    if not is_checked(run) or keeping.every > 1 or run.options.flow == Flow.UPDATABLE:
        return keeping
    most = max(keeping.most_bytes, _KEPT_BYTES) if run.options.check else keeping.most_bytes
    return replace(keeping, most_bytes=most, always=True)


def unacknowledged(writers: Sequence[WriterRecord]) -> str:
    """Report sinks that stored rows and returned no fragment; ``""`` if there are none."""
    silent = [writer for writer in writers if not writer.fragments and any(writer.rows.values())]
    rows = plural(sum(sum(writer.rows.values()) for writer in silent), "row")
    return (
        f"finish() of {plural(len(silent), 'sink')} returned no fragment for {rows}."
        if silent
        else ""
    )


def begin_check(
    run: StatementRun,
    read: Callable[[ConnectorTableVersion | None, int], pa.Table | None],
    read_independently: Callable[[int], IndependentRows | None] = lambda _: None,
) -> Checking | None:
    """Read the former rows by the statement's handle; None if there is nothing to check."""
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
        return replace(checking, problem=f"the previous rows could not be read: {_text(error)}")


def _before(run: StatementRun, most: int) -> Mapping[str, Any]:
    analysis, session = run.analysis, run.transaction.session
    if getattr(run, "pushed", None) is not None:
        return {"problem": "the connector deleted the rows itself, and no page shows which"}
    if run.options.flow == Flow.UPDATABLE and not run.options.check:
        return {"problem": _OLDER_FLOW}
    assert isinstance(analysis, RowChangeAnalysis | InsertAnalysis)
    target = analysis.target
    metadata, handle = run.transaction.metadata(target.catalog), cast("Any", target.handle)
    columns, merge = [*metadata.get_column_handles(session, handle)], run.transaction.merge_handle
    has_row_ids = merge is not None
    if has_row_ids:
        columns.append(metadata.get_merge_row_id_column_handle(session, handle))
    scanned = handle if merge is None else merge.get_table_handle()
    rows = run.transaction.scans.observations.rows_up_to(target.catalog, scanned, columns, most)
    if rows is None:
        hint = "" if run.options.check else f"; check=True reads up to {number(CHECKED_ROWS)}"
        return {"problem": f"the table has more than {number(most)} rows{hint}"}
    # The older flow and an INSERT need no row ids.
    return {
        "before": rows
        if has_row_ids
        else rows.append_column(str(len(columns)), pa.nulls(rows.num_rows))
    }


def _changes_of(run: StatementRun) -> Mapping[str, Any]:
    account = run.account
    if unknown := run.transaction.left_to_store(run.analysis):
        return {"problem": f"the store itself fills column '{unknown[0]}', which the INSERT omits"}
    if isinstance(run.analysis, InsertAnalysis):
        streams, row_count = (
            (account.retained_pages, account.row_count) if account is not None else ((), 0)
        )
        pages = [(number, page) for number, stream, _ in streams for page in pages_of(stream)]
        if sum(page.num_rows for _, page in pages) != row_count:
            return {"problem": "not all pages that its sinks received could be kept"}
        return {"inserted": tuple(pages)}
    if run.options.flow == Flow.UPDATABLE:
        return {"problem": _OLDER_FLOW}
    sample = account.pages if account is not None else None
    if account is not None and account.joined and (sample is None or not sample.complete):
        reason = (
            "with trace='off' no page is kept"
            if run.options.trace == "off"
            else "not all of its pages were kept"
        )
        return {"problem": f"{reason}; check=True keeps those of up to {number(CHECKED_ROWS)} rows"}
    return {"pages": sample}


@dataclass(frozen=True)
class Checking:
    """One statement's check.

    Args:
        before: the former rows with the row id last; None if unknown.
        pages: the sinks' pages; None without rows.
        problem: why there is nothing to compare with, or ``""``.
        early: a sentence about changes that were visible before the finish call, or ``""``.
    """

    run: StatementRun
    read: Callable[[ConnectorTableVersion | None, int], pa.Table | None]
    most: int
    read_independently: Callable[[int], IndependentRows | None] = lambda _: None
    before: pa.Table | None = None
    pages: PageSample | None = None
    inserted: tuple[tuple[int, pa.RecordBatch], ...] = ()
    problem: str = ""
    early: str = ""

    def with_pages(self) -> Checking:
        if self.problem:
            return self
        check = replace(self, **_changes_of(self.run))
        if check.problem or not check.run.options.check:
            return check
        try:
            with interruptible("check"), unwatched():
                return replace(check, early=check._early())  # noqa: SLF001 - of this class
        except StatementInterrupted:
            raise
        except Exception:  # noqa: BLE001 - the table is read again after the commit
            return check

    def _early(self) -> str:
        """Report changes of the statement that another reader sees before the finish call."""
        rows = self.read(None, self.most + 2 * self._former_rows.num_rows)
        if rows is None:
            return ""
        current = self._conformed(rows)
        to_come, changes, early_rows = (
            max(part.num_rows for part in differing(*sides))
            for sides in (
                (current, self._wanted),
                (self._former_rows, self._wanted),
                (current, self._former_rows),
            )
        )
        # Changes of other statements bring the table no nearer to what this one leaves.
        if not early_rows or to_come >= changes:
            return ""
        method = "finish_insert" if self.inserted else "finish_merge"
        return (
            f" Another reader saw {plural(early_rows, 'changed row')} before {method}"
            " was called: sinks must not make rows visible. A failed statement would leave"
            " them."
        )

    def told(self, result: Result) -> Result:
        run = self.run
        try:
            with interruptible("check"), interrupts_let_in(), run.steps.timed("check"):
                run.options.step("check")
                check = self._on_top()._found()  # noqa: SLF001 - of this class
        except StatementInterrupted as interrupt:
            check = CommitCheck(
                _NOT_COMPARED,
                "The rows in the store were not checked: the check was interrupted.",
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
                self, problem="other statements changed the table between its read and its commit"
            )
        try:
            rows = self.read(self.run.versions.before, self.most)
        except Exception as error:  # noqa: BLE001 - the change is there, whatever a reader meets
            return replace(self, problem=f"the previous rows could not be read: {_text(error)}")
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
                DIFFERS,
                f"The store holds far more rows than it should: {expected} were expected.",
                1,
            )
        missing, extra = self._difference(stored_rows)
        if not missing.num_rows and not extra.num_rows:
            return CommitCheck(
                _AGREES,
                f"Read back{reader}: the store holds the expected"
                f" {plural(stored_rows.num_rows, 'row')}.{self.early}{note}",
            )
        if reader:
            note = self._own_reading(most)
        silent = unacknowledged(self.run.account.writers if self.run.account is not None else ())
        more = f"{self.early}{f' {silent}' if silent else ''}{note}"
        if self.run.transaction.version is None:
            more += " The store keeps no versions: later changes by others would look the same."
        try:
            check = self._wrong(missing, extra).check(reader)
        except Exception as error:  # noqa: BLE001 - rows of unusual types differ all the same
            count = max(missing.num_rows, extra.num_rows)
            more += f" They could not be described: {_text(error)}."
            check = CommitCheck(DIFFERS, wrong_sentence(count, reader), count)
        return replace(check, message=f"{check.message}{more}")

    def _wrong(self, missing: pa.Table, extra: pa.Table) -> WrongRows:
        analysis = self.run.analysis
        assert isinstance(analysis, RowChangeAnalysis | InsertAnalysis)
        return WrongRows(
            tuple(column.name for column in analysis.target.columns),
            key_columns(analysis, self._wanted),
            self._former_rows,
            self._stays,
            self._changes,
            self._old_rows,
            missing,
            extra,
            self.run.account.retained_pages if self.run.account is not None else (),
        )

    def _read_back(self, most: int) -> tuple[pa.Table | None, str, str]:
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
        return differing(self._conformed(rows), self._wanted)

    def _conformed(self, rows: pa.Table) -> pa.Table:
        return rows.rename_columns(self._wanted.schema.names).cast(self._wanted.schema)

    def _own_reading(self, most: int) -> str:
        try:
            rows = self.read(self.run.transaction.version, most)
        except Exception as error:  # noqa: BLE001 - reported
            return f" The connector cannot read them: {_text(error)}."
        if rows is None or any(part.num_rows for part in self._difference(rows)):
            return " The connector reads wrong rows, too."
        return " The connector itself reads the correct rows."

    # -- what must be there

    @cached_property
    def _former_rows(self) -> pa.Table:
        assert self.before is not None
        return self.before.select([str(index) for index in range(self.before.num_columns - 1)])

    @cached_property
    def _changes(self) -> SinkChanges:
        if self.inserted:
            return SinkChanges.of_inserted(self.inserted)
        if self.pages is None:
            return SinkChanges.none(self._former_rows.schema)
        return SinkChanges.of_sample(self.pages)

    @cached_property
    def _old_rows(self) -> npt.NDArray[np.int64]:
        """Per change the index of the former row that it removes or replaces, or -1.

        A row is identified by its row id and the insert layout's columns.
        """
        assert self.before is not None
        indices = [*self._changes.layout_columns, self.before.num_columns - 1]
        return self._changes.old_rows(self.before.select([str(index) for index in indices]))

    @cached_property
    def _stays(self) -> npt.NDArray[np.bool_]:
        stays = np.ones(self._former_rows.num_rows, np.bool_)
        stays[self._old_rows[self._old_rows >= 0]] = False
        return stays

    @cached_property
    def _wanted(self) -> pa.Table:
        rows = self._former_rows.filter(pa.array(self._stays))
        new = self._changes.new_values
        return pa.concat_tables([rows, new.cast(rows.schema)]) if new.num_rows else rows


def check_failure(
    run: StatementRun,
    checking: Checking | None,
    read: Callable[[ConnectorTableVersion | None, int], pa.Table | None],
    result: Result,
) -> None:
    """Compare the table after a failed statement with its former rows, and with the expected ones."""
    rows_after, changed = None, None
    try:
        with interruptible("check"), unwatched(), run.steps.timed("check"):
            check, rows_after, changed = _after_failure(run, checking, read)
    except StatementInterrupted:
        raise
    except Exception as error:  # noqa: BLE001 - the statement's own error is the one to see
        check = _not_compared(f"could not be read back: {_text(error)}")
    _with_check(result, check, run)
    trace = result.trace
    if trace.error is not None and changed:
        trace = replace(trace, error=replace(trace.error, changed=True, evidence=None))
    elif trace.error is not None and check.state == _AGREES:
        trace = replace(trace, error=replace(trace.error, evidence=StateEvidence.ROWS))
    result.trace = replace(trace, target=replace(trace.target, rows_after=rows_after))


def _after_failure(
    run: StatementRun,
    checking: Checking | None,
    read: Callable[[ConnectorTableVersion | None, int], pa.Table | None],
) -> tuple[CommitCheck, int | None, bool]:
    before = checking.before if checking is not None else None
    if checking is not None and before is not None:
        former_rows: pa.Table | None = checking._former_rows  # noqa: SLF001 - of this module
    elif not run.versions.is_kept:
        check = _not_compared(
            "were not compared: the statement failed before its previous rows were"
            " read, and the store keeps no versions"
        )
        return check, None, False
    else:
        former_rows = read(run.versions.before, CHECKED_ROWS)
    most = CHECKED_ROWS + (0 if before is None else 2 * before.num_rows)
    rows = read(None, most)
    if former_rows is None or rows is None:
        check = _not_compared(
            f"were not compared: the table has more than {number(CHECKED_ROWS)} rows"
        )
        return check, None, False

    def differences(expected: pa.Table) -> int:
        assert rows is not None
        conformed = rows.rename_columns(expected.schema.names).cast(expected.schema)
        return max(int(part.num_rows) for part in differing(conformed, expected))

    wrong, count = differences(former_rows), plural(rows.num_rows, "row")
    if not wrong:
        check = CommitCheck(_AGREES, f"Read back: the table holds its {count} as before.")
        return check, rows.num_rows, False
    final_rows = checking._wanted if checking is not None and before is not None else None  # noqa: SLF001 - of this module
    is_open = run.transaction.changed is not False
    if final_rows is not None and is_open and not differences(final_rows):
        check = CommitCheck(
            _AGREES,
            f"Read back: the table holds the {count} that the statement should leave,"
            " so its change is stored.",
        )
        return check, rows.num_rows, True
    check = CommitCheck(
        DIFFERS,
        f"Read back: {plural(wrong, 'row')} of the table {'is' if wrong == 1 else 'are'} not as"
        f" before the failed statement.{_origin_of_rows(run)}",
        wrong,
    )
    return check, rows.num_rows, True


def _not_compared(reason: str) -> CommitCheck:
    return CommitCheck(_NOT_COMPARED, f"The rows in the store {reason}.")


def _origin_of_rows(run: StatementRun) -> str:
    finish = next((c for c in run.transaction.log.calls if c.method.startswith("finish_")), None)
    if finish is None:
        origin = "A sink stored them: no finish call was made."
    elif finish.error is None:
        origin = f"{finish.method} stored them, or a sink before it."
    else:
        origin = f"{finish.method} stored them before it failed, or a sink stored them."
    more = (
        ""
        if run.versions.is_kept
        else " The store keeps no versions: changes by others would look the same."
    )
    return f" {origin} The rollback did not remove them.{more}"


def _text(error: BaseException) -> str:
    return message_of(error).rstrip(".")


def _with_check(result: Result, check: CommitCheck, run: StatementRun) -> Result:
    result.trace = replace(
        result.trace,
        checks=replace(result.trace.checks, commit=check),
        seconds=dict(run.steps.seconds),
    )
    return result
