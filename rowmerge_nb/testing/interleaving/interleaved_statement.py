"""One of two statements, with a thread of its own: a store may block it until the other ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.errors import RowMergeError, error_text, message_of
from rowmerge_nb.testing.contract.contract_statement import (
    Changes,
    PageStatement,
    Row,
    expected_rows,
)

if TYPE_CHECKING:
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.spi.handles import SchemaTableName
    from rowmerge_nb.spi.page import Page

Asked = Callable[[Sequence[Row]], Changes]
"""A statement: its changes as a function of the rows that it read."""


@dataclass(frozen=True)
class LedgerRow:
    """A changed row, before and after; None for a row that does not exist."""

    operation: str
    row_id: Any
    before: Row | None
    after: Row | None


def upsert(*rows: Row) -> Asked:
    """Return a MERGE by the first column: existing rows are updated, others inserted.

    >>> upsert((1, "new"), (9, "nine"))([(1, "old")])
    Changes(deleted=(), updated=((1, {1: 'new'}),), inserted=((9, 'nine'),))
    """

    def changes(read: Sequence[Row]) -> Changes:
        existing_keys = {row[0] for row in read}
        # Column names are not known yet; `by_names` replaces the positions.
        updated: tuple[tuple[Any, Mapping[Any, Any]], ...] = tuple(
            (row[0], dict(enumerate(row[1:], 1))) for row in rows if row[0] in existing_keys
        )
        return Changes((), updated, tuple(row for row in rows if row[0] not in existing_keys))

    return changes


def by_names(changes: Changes, names: Sequence[str]) -> Changes:
    """Return changes with column positions replaced by names."""

    def named(new: Mapping[Any, Any]) -> dict[str, Any]:
        return {
            names[column] if isinstance(column, int) else column: value
            for column, value in new.items()
        }

    return replace(changes, updated=[(key, named(new)) for key, new in changes.updated])


def fixed(changes: Changes) -> Asked:
    """Return a statement with constant changes; changes of missing rows are ignored."""

    def present(read: Sequence[Row]) -> Changes:
        existing_keys = {row[0] for row in read}
        return replace(
            changes,
            deleted=tuple(key for key in changes.deleted if key in existing_keys),
            updated=tuple((key, new) for key, new in changes.updated if key in existing_keys),
        )

    return present


def left_of(rows: Sequence[Row], columns: Sequence[str], *statements: Asked) -> list[Row]:
    """Return the rows after statements that run one after the other."""
    rows_after = list(rows)
    for changes in statements:
        rows_after = expected_rows(rows_after, columns, by_names(changes(rows_after), columns))
    return rows_after


@dataclass
class InterleavedSide:
    """One of the two statements; ``changes_for`` returns its changes for the rows that it read."""

    connector: Connector
    table: SchemaTableName
    changes_for: Asked
    paradigm: str | None = None
    ledger: tuple[LedgerRow, ...] = ()
    failure: str = ""
    code: str = ""
    committed: bool = False
    _statement: PageStatement | None = None
    _pages: dict[int, list[Page]] = field(default_factory=dict)
    _fragments: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "interleaved")

    def start(self, step: str) -> Future[None]:
        """Begin a step in the statement's own thread; an error rolls the statement back and is
        recorded.
        """
        return self._thread.submit(self._make, step)

    def close(self) -> None:
        """End the thread; a hanging call is abandoned."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _make(self, step: str) -> None:
        try:
            getattr(self, f"_{step}")()
        except Exception as error:  # noqa: BLE001 - failures are results
            self.failure = message_of(error)
            self.code = error.code if isinstance(error, RowMergeError) else type(error).__name__
            self._roll_back()

    def _roll_back(self) -> None:
        if self._statement is None:
            return
        try:
            self._statement.rollback()
        except Exception as error:  # noqa: BLE001 - as above
            self.failure += f"; and the rollback failed: {error_text(error)}"

    @property
    def statement(self) -> PageStatement:
        """The statement, once begun."""
        assert self._statement is not None
        return self._statement

    def _begin_transaction(self) -> None:
        self._statement = PageStatement(self.connector, self.table, paradigm=self.paradigm)

    def _begin_merge(self) -> None:
        self.statement.begin()

    def _get_next_page(self) -> None:
        read = self.statement.read(row_id=True)
        *data, row_ids = (column.to_pylist() for column in read.columns)
        rows: list[Row] = list(zip(*data, strict=True))
        changes = self.changes_for(rows)
        names = [column.name for column in self.statement.columns]
        by_key, ids = {row[0]: row for row in rows}, dict(zip(data[0], row_ids, strict=True))
        changes = by_names(changes, names)
        deleted = [LedgerRow("DELETE", ids[key], by_key[key], None) for key in changes.deleted]
        updated = [
            LedgerRow(
                "UPDATE",
                ids[key],
                by_key[key],
                tuple(new.get(n, v) for n, v in zip(names, by_key[key], strict=True)),
            )
            for key, new in changes.updated
        ]
        self.ledger = (
            *deleted,
            *updated,
            *(LedgerRow("INSERT", None, None, row) for row in changes.inserted),
        )
        if self.ledger:
            self._pages = self.statement.sink_pages(changes)

    def _store_merged_rows(self) -> None:
        self._fragments = [
            fragment
            for writer, pages in self._pages.items()
            for fragment in self.statement.attempt(writer, pages)
        ]

    def _finish_merge(self) -> None:
        self.statement.finish(self._fragments)
        if self.connector.commits_in_finish:
            self._commit()

    def _commit(self) -> None:
        self.statement.commit()
        self.committed = True
