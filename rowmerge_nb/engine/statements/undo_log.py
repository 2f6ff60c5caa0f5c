"""What an engine has changed, so that it can take it back: by the versions that its statements were made from, and that they have made."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import plural
from rowmerge_nb.engine.statements.naming import kind_of, target_name
from rowmerge_nb.sql.analyzer.analysis import (
    DefinitionAnalysis,
    InsertAnalysis,
    MergeAnalysis,
    RestoreAnalysis,
    RowChangeAnalysis,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.statements.statement import StatementRun
    from rowmerge_nb.spi.handles import ConnectorTableHandle, ConnectorTableVersion
    from rowmerge_nb.spi.metadata import ColumnMetadata

UNDO: Final = "UNDO"
_OF_NO_ROWS: Final = ("ALTER TABLE", "COMMENT")
MOST: Final = 100
"""So many changes are remembered; a store may keep fewer versions."""
MOST_SHOWN: Final = 300
"""So many characters of a statement are told."""


@dataclass(frozen=True)
class Change:
    """A statement that has changed the rows of a table.

    Args:
        table: the table.
        connector: its kind of store.
        kind: the statement's first words, and ``text`` its text, of a long one the begin.
        count: how many rows it has changed; None where it does not say.
        columns: the table's columns when it was run, those among them that it has added.
        added: the names of those.
        handle: the table then; None of one that the statement has made.
        keeps: the store keeps versions.
        before: the version that it was made from; None for the time before the first one.
        after: the version that it has made; the one before, if it has added or dropped columns alone and its store makes none of that.
    """

    table: TableName
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

    @property
    def words(self) -> str:
        """Describe it in a few words: ``MERGE of 2 rows``."""
        return self.kind if self.count is None else f"{self.kind} of {plural(self.count, 'row')}"


class Changes:
    """The changes of one engine, the latest last; threads may run statements side by side."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: list[Change] = []

    def note(self, run: StatementRun) -> None:
        """Remember what a statement has changed, or forget what it has taken back; what may not be there is neither.

        ALTER TABLE and COMMENT change no rows: where they make a version, it has what the change before them has left.
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
                self._moved(self._made, change, change.before)
            else:
                self._made = [*self._made, change][-MOST:]

    def last(self, table: tuple[str, ...] | None) -> Change | None:
        """Return the last change of a table, or of any; None if there is none."""
        return next((change for change in reversed(self._made) if table in {None, change.table}), None)

    def that_made(self, table: tuple[str, ...], version: ConnectorTableVersion | None) -> Change | None:
        """Return the change that has made a version of a table, or None.

        Where threads change one table side by side, the change that was noted last need not be the one that was committed last. A change
        of columns alone and a restored version leave the table in a version that another change has made: the later one counts.
        """
        made = (change for change in reversed(self._made) if version is not None and change.after == version)
        return next((change for change in made if change.table == table), None)

    def _took_back(self, undone: Change) -> None:
        """Forget the change that was taken back; the one before it, if nobody came between, has its rows in the new version now."""

        def is_taken(change: Change) -> bool:
            return (change.table, change.after) == (undone.table, undone.before)

        taken = next((change for change in reversed(self._made) if is_taken(change)), None)
        if taken is None:
            return
        self._moved([change for change in self._made if change is not taken], undone, taken.before)

    def _moved(self, made: list[Change], later: Change, left: ConnectorTableVersion | None) -> None:
        """Keep changes; that of a table that has left a version has the same rows in the one that came later."""
        self._made = [
            replace(change, after=later.after) if (change.table, change.after) == (later.table, left) else change
            for change in made
        ]


def _change_of(run: StatementRun) -> Change | None:
    analysis, version = run.analysis, run.transaction.version
    if not isinstance(analysis, RowChangeAnalysis | InsertAnalysis | DefinitionAnalysis | RestoreAnalysis):
        return None
    name, target = target_name(analysis), analysis.target
    if name is None or target is None:
        return None
    keeps = run.keeps_versions
    added = tuple(column.name for column in analysis.added) if isinstance(analysis, MergeAnalysis) else ()
    dropped = analysis.dropped if isinstance(analysis, RestoreAnalysis) else ()
    if keeps and version in {None, run.version_before}:
        if not (added or dropped):
            return None
        version = run.version_before
    count = run.account.counted if run.account is not None and run.changes_rows else None
    text = shorten(analysis.text, MOST_SHOWN, placeholder=" ...")
    kind, columns = kind_of(analysis), target.columns
    return Change(name, run.connector, kind, text, count, columns, target.handle, keeps, run.version_before, version, added)
