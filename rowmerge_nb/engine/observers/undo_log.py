"""The changes of an engine, for undo: the versions that its statements were made from, and those
that they have made.
"""

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
        columns: the table's columns at that time, with those that it has added.
        handle: the table at that time; None for a table that the statement has made.
        before: the version that it was made from; None before the first one.
        after: the version that it has made; ``before`` if it has only added or dropped columns and
            its store makes no version of that.
        added: the names of its new columns, which end with it.
        type_changes: new types and fields that outlast it: path, former type, new type.
        branch: the branch that it has changed; ``""`` for the table itself.
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
        """Add what a statement has changed, or remove what it has taken back; a change with an
        unknown outcome is neither.

        ALTER TABLE and COMMENT change no rows: a version of theirs has the rows of the change
        before.
        """
        if run.transaction.changed is not True:
            return
        change = _change_of(run)
        if change is None:
            return
        with self._lock:
            if change.kind == UNDO:
                self._took_back(change)
            elif change.kind in _OF_NO_ROWS:
                self._moved(self._changes, change, change.before)
            else:
                self._changes = [*self._changes, change][-MOST:]

    def last(self, table: tuple[str, ...] | None) -> UndoableChange | None:
        changes = reversed(self._changes)
        if table is None:
            return next(changes, None)
        return next((one for one in changes if one.table == table and not one.branch), None)

    def that_made(
        self, table: tuple[str, ...], version: ConnectorTableVersion | None
    ) -> UndoableChange | None:
        """Return the change that has made a version of a table, or None.

        If threads change one table side by side, the last change in the log need not be the last
        commit. A change of columns alone and a restore leave the table in a version of another
        change: the later one counts.
        """
        changes = (
            change
            for change in reversed(self._changes)
            if version is not None and change.after == version
        )
        return next((change for change in changes if change.table == table), None)

    def _took_back(self, undone: UndoableChange) -> None:
        """Remove the change that was taken back; the rows of the change before it, if it is
        adjacent, are now in the new version.
        """

        def is_reverted(change: UndoableChange) -> bool:
            return (change.table, change.after) == (undone.table, undone.before)

        reverted = next((change for change in reversed(self._changes) if is_reverted(change)), None)
        if reverted is None:
            return
        self._moved(
            [change for change in self._changes if change is not reverted], undone, reverted.before
        )

    def _moved(
        self,
        changes: list[UndoableChange],
        later: UndoableChange,
        version: ConnectorTableVersion | None,
    ) -> None:
        """Set the changes; the one that made a version of the table has the same rows in the later
        version.
        """
        self._changes = [
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
        # It has made no rows: a version of the table is that of another change.
        return None
    versions = run.versions
    merge = analysis if isinstance(analysis, MergeAnalysis) else None
    added = () if merge is None else tuple(column.name for column in merge.added)
    dropped = analysis.dropped if isinstance(analysis, RestoreAnalysis) else ()
    if versions.is_kept and version in {None, versions.before}:
        if not (added or dropped):
            return None
        version = versions.before
    count = run.account.counted if run.account is not None and run.changes_rows else None
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
