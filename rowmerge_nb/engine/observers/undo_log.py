"""The changes of an engine, for undo: a table's version before and after each statement."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import join, plural
from rowmerge_nb.engine.statements.naming import kind_of, target_name
from rowmerge_nb.engine.statements.run_observer import RunObserver
from rowmerge_nb.spi.alterations import CreateBranch, DropBranch, FastForwardBranch
from rowmerge_nb.sql.analyzer.analysis import (
    DefinitionAnalysis,
    InsertAnalysis,
    MergeAnalysis,
    RestoreAnalysis,
    RowChangeAnalysis,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.spi.handles import ConnectorTableHandle, ConnectorTableVersion
    from rowmerge_nb.spi.metadata import ColumnMetadata

UNDO: Final = "UNDO"
_OF_NO_ROWS: Final = ("ALTER TABLE", "COMMENT")
BRANCH_CHANGES: Final = (CreateBranch, DropBranch, FastForwardBranch)
MOST: Final = 100
"""The number of changes in the log; a store may keep fewer versions."""
MOST_SHOWN: Final = 300
"""The number of characters of a statement in the log."""


@dataclass(frozen=True)
class UndoableChange:
    """A statement that has changed the rows of a table, or of one of its branches.

    Args:
        columns: the table's columns, with those that the statement added.
        handle: the table as the statement read it; None if it created it.
        keeps: whether the store keeps former versions.
        before: the version before the statement; None if the table had none.
        after: the version after it; ``before`` if columns alone changed and the store has no
            version for that.
        added: the names of new columns, which undo drops.
        type_changes: new types and fields, which undo leaves: path, former type, new type.
        branch: the changed branch; ``""`` for the table itself.
    """

    table: tuple[str, str, str]
    connector: str
    kind: str
    text: str
    count: int | None
    columns: Sequence[ColumnMetadata]
    handle: ConnectorTableHandle | None
    keeps: bool
    before: ConnectorTableVersion | None
    after: ConnectorTableVersion | None
    added: tuple[str, ...] = ()
    type_changes: tuple[tuple[str, str, str], ...] = ()
    branch: str = ""

    @property
    def words(self) -> str:
        return self.kind if self.count is None else f"{self.kind} of {plural(self.count, 'row')}"

    @property
    def lasting_types(self) -> str:
        """A sentence about the types that remain after undo, with a space before it."""
        types = [f"{path} {new}" for path, _, new in self.type_changes]
        return f" Types and fields that it changed remain: {join(types)}." if types else ""


class UndoLog(RunObserver):
    """The changes of one engine, the latest last. Threads may run statements side by side."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changes: list[UndoableChange] = []

    def at_end(self, run: StatementRun, result: Result | None) -> None:
        """Add the change of a statement, or remove the change that it took back.

        A statement with an unknown outcome is omitted. ALTER TABLE and COMMENT change no rows:
        their version replaces that of the change before.
        """
        if run.transaction.changed is not True:
            return
        change = _change_of(run)
        if change is None:
            return
        with self._lock:
            if change.kind == UNDO:
                self._take_back(change)
            elif change.kind in _OF_NO_ROWS:
                self._changes = _with_version(self._changes, change.before, change)
            else:
                self._changes = [*self._changes, change][-MOST:]

    def last(self, table: tuple[str, ...] | None) -> UndoableChange | None:
        changes = reversed(self._changes)
        if table is None:
            return next(changes, None)
        return next(
            (change for change in changes if change.table == table and not change.branch), None
        )

    def that_made(
        self, table: tuple[str, ...], version: ConnectorTableVersion | None
    ) -> UndoableChange | None:
        """Return the change that has made a version of a table, or None.

        If threads change one table side by side, the last change in the log need not be the last
        commit. A change of columns alone, or a restore, can end in the version of another change:
        the later one counts.
        """
        if version is None:
            return None
        changes = (
            change
            for change in reversed(self._changes)
            if (change.table, change.after) == (table, version)
        )
        return next(changes, None)

    def _take_back(self, undo: UndoableChange) -> None:
        """Remove the change that an undo took back: its version has the rows of the change before."""
        reverted = self.that_made(undo.table, undo.before)
        if reverted is not None:
            changes = [change for change in self._changes if change is not reverted]
            self._changes = _with_version(changes, reverted.before, undo)


def _with_version(
    changes: Sequence[UndoableChange], version: ConnectorTableVersion | None, later: UndoableChange
) -> list[UndoableChange]:
    """Replace a version of a table by a later one, which has the same rows."""
    return [
        (
            replace(change, after=later.after)
            if (change.table, change.after) == (later.table, version)
            else change
        )
        for change in changes
    ]


def _change_of(run: StatementRun) -> UndoableChange | None:
    analysis, version = run.analysis, run.transaction.version
    if not isinstance(
        analysis, RowChangeAnalysis | InsertAnalysis | DefinitionAnalysis | RestoreAnalysis
    ):
        return None
    name, target = target_name(analysis), analysis.target
    if name is None or target is None:
        return None
    if isinstance(analysis, DefinitionAnalysis) and isinstance(analysis.alteration, BRANCH_CHANGES):
        # A change of branches makes no rows.
        return None
    versions = run.versions
    merge = analysis if isinstance(analysis, MergeAnalysis) else None
    added = () if merge is None else tuple(column.name for column in merge.added)
    dropped = analysis.dropped if isinstance(analysis, RestoreAnalysis) else ()
    if versions.is_kept and version in {None, versions.before}:
        if not (added or dropped):
            return None
        version = versions.before
    count = run.account.row_count if run.account is not None and run.changes_rows else None
    text = shorten(analysis.text, MOST_SHOWN, placeholder=" ...")
    return UndoableChange(
        name,
        run.services.connector,
        kind_of(analysis),
        text,
        count,
        target.columns,
        target.handle,
        versions.is_kept,
        versions.before,
        version,
        added,
        () if merge is None else merge.type_changes,
        target.branch,
    )
