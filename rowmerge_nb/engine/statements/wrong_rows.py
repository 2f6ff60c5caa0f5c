"""The rows that a store holds wrongly after a commit, in words, with the calls of their changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.ordering import ascending, other_rows
from rowmerge_nb.base.words import plural
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.sql.analyzer.analysis import MergeAnalysis
from rowmerge_nb.sql.constants import constant_of
from rowmerge_nb.trace.bags import cell_codes, row_codes
from rowmerge_nb.trace.cell_patterns import cell_patterns, differing_cells
from rowmerge_nb.trace.change_patterns import (
    DELETES,
    INSERTS,
    UPDATES,
    Regions,
    WrongChanges,
    change_patterns,
)
from rowmerge_nb.trace.check_records import CommitCheck, WrongRow
from rowmerge_nb.trace.row_pairs import RowPairs, equal_rows, pair_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.statements.sink_changes import SinkChanges
    from rowmerge_nb.sql.analyzer.analysis import InsertAnalysis, RowChangeAnalysis

    Mask = npt.NDArray[np.bool_]
    Numbers = npt.NDArray[np.int64]

DIFFERS: Final = "differs"
SHOWN: Final = 5
"""The maximum number of listed rows."""
_MOST_TEXT: Final = 60
_MOST_CELLS: Final = 3
"""The maximum number of cells that a sentence lists."""
_MOST_COLUMNS: Final = 12
"""The maximum number of columns of a row in a sentence."""
_MOST_KEYS: Final = 8
"""The number of columns that are looked at for a key."""
_MOST_BUCKETS: Final = 1 << 16
"""Larger numbers of an exchange are hashes."""

_DOUBLED, _REMAINING, _REPEATED, _STRANGE = range(4)
"""Why an additional row is there: a new row, an old one, one that is not touched, or none of them."""


def wrong_sentence(count: int, reader: str = "") -> str:
    """Return the sentence about a number of wrong rows.

    >>> wrong_sentence(1)
    'Read back: 1 row is not as the statement should have left it.'
    """
    are, them = ("is", "it") if count == 1 else ("are", "them")
    return (
        f"Read back{reader}: {plural(count, 'row')} {are} not as the statement should have"
        f" left {them}."
    )


def key_columns(analysis: RowChangeAnalysis | InsertAnalysis, rows: pa.Table) -> tuple[int, ...]:
    """Return the indices of the columns that identify a row.

    These are the target's columns that ON compares, or the table's primary key, or the first column
    whose values are all different in the rows.
    """
    names = [column.name for column in analysis.target.columns]
    if isinstance(analysis, MergeAnalysis):
        symbols = {symbol for symbol, _ in analysis.key_columns}
        fields = [field.symbol for field in analysis.target_fields]
        if compared := [index for index, symbol in enumerate(fields) if symbol in symbols]:
            return tuple(compared)
    metadata = analysis.target.metadata
    properties = {} if metadata is None else metadata.properties
    key = {str(name) for name in properties.get("primary_key") or ()}
    if indices := [index for index, name in enumerate(names) if name in key]:
        return tuple(indices)
    for index, column in enumerate(rows.columns[:_MOST_KEYS]):
        if not column.null_count and len(ascending(cell_codes(column))) == rows.num_rows:
            return (index,)
    return ()


@dataclass(frozen=True)
class WrongRows:
    """The difference between a store's rows and the expected ones, row by row.

    Args:
        old_rows: per change the index of its old row in ``before``, or -1.
    """

    names: tuple[str, ...]
    keys: tuple[int, ...]
    before: pa.Table
    stays: Mask
    changes: SinkChanges
    old_rows: Numbers
    missing: pa.Table
    extra: pa.Table
    streams: Sequence[tuple[int, bytes, int]]

    def check(self, reader: str = "") -> CommitCheck:
        singles = len(self._single_extra) + len(self._single_missing)
        count = len(self._pairs.missing) + singles
        entries = [*self._entries()]
        expected, actual = (
            _batch(table, [entry[side] for entry in entries], self.names)
            for side, table in ((0, self.missing), (1, self.extra))
        )
        rows = tuple(self._row(*entry) for entry in entries)
        return CommitCheck(
            DIFFERS, wrong_sentence(count, reader), count, rows, expected, actual, self._patterns()
        )

    # -- what became of each change

    @cached_property
    def _codes(self) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        missing, extra, new, before = row_codes(
            self.missing, self.extra, self.changes.new_values, self.before
        )
        return missing, extra, new, before

    @cached_property
    def _new(self) -> Numbers:
        return np.flatnonzero(self.changes.is_new)

    @cached_property
    def _missing_changes(self) -> Numbers:
        """Per missing row the change that adds it, or -1."""
        missing, _, new, _ = self._codes
        changes = np.full(len(missing), -1, np.int64)
        rows, added = equal_rows(missing, new)
        changes[rows] = self._new[added]
        return changes

    @cached_property
    def _lost(self) -> Numbers:
        """The indices in ``before`` of the rows that are gone, and that no change touches."""
        missing, _, _, before = self._codes
        stays = np.flatnonzero(self.stays)
        _, rows = equal_rows(missing[self._missing_changes < 0], before[stays])
        return stays[rows]

    @cached_property
    def _extra(self) -> tuple[Numbers, Numbers]:
        """Per additional row why it is there, and the change that it comes from, or -1."""
        _, extra, new, before = self._codes
        reasons = np.full(len(extra), _STRANGE, np.int64)
        changes = np.full(len(extra), -1, np.int64)
        reasons[np.isin(extra, before[self.stays])] = _REPEATED
        removing = np.flatnonzero(self.old_rows >= 0)
        rows, old = equal_rows(extra, before[self.old_rows[removing]])
        reasons[rows], changes[rows] = _REMAINING, removing[old]
        is_new = np.isin(extra, new)
        order = np.argsort(new, kind="stable")
        first = order[np.searchsorted(new[order], extra[is_new])]
        reasons[is_new], changes[is_new] = _DOUBLED, self._new[first]
        return reasons, changes

    @cached_property
    def _calls(self) -> tuple[Numbers, Numbers, Numbers]:
        return self.changes.located(self.streams)

    @cached_property
    def _pairs(self) -> RowPairs:
        reasons, _ = self._extra
        pairs = pair_rows(self.missing, self.extra, self.keys, reasons == _STRANGE)
        changes = self._missing_changes[pairs.missing]
        keys = [np.where(changes < 0, -1, numbers[changes]) for numbers in self._calls]
        order = np.lexsort((changes, *reversed(keys))) if len(changes) else changes
        return RowPairs(pairs.missing[order], pairs.unexpected[order], pairs.exchanged)

    @cached_property
    def _single_extra(self) -> Numbers:
        return other_rows(self.extra.num_rows, self._pairs.unexpected)

    @cached_property
    def _single_missing(self) -> Numbers:
        return other_rows(self.missing.num_rows, self._pairs.missing)

    # -- patterns

    def _patterns(self) -> tuple[str, ...]:
        # A row that is only not replaced says nothing about values.
        reasons, _ = self._extra
        is_value = reasons[self._pairs.unexpected] == _STRANGE
        expected, actual = (
            table.take(indices[is_value]).rename_columns(list(self.names))
            for table, indices in (
                (self.missing, self._pairs.missing),
                (self.extra, self._pairs.unexpected),
            )
        )
        cells = cell_patterns(expected, actual) if expected.num_rows else ()
        return (*cells, *change_patterns(self._wrong_changes()))

    def _wrong_changes(self) -> WrongChanges:
        changes, size = self.changes, len(self.changes.operations)
        reasons, extra_changes = self._extra
        altered, absent, doubled, survivors = (np.zeros(size, np.bool_) for _ in range(4))
        is_value = reasons[self._pairs.unexpected] == _STRANGE
        stored_otherwise = self._missing_changes[self._pairs.missing[is_value]]
        altered[stored_otherwise[stored_otherwise >= 0]] = True
        absent[self._missing_changes[self._missing_changes >= 0]] = True
        absent &= ~altered
        doubled[extra_changes[reasons == _DOUBLED]] = True
        survivors[extra_changes[reasons == _REMAINING]] = True
        writers, calls, rows = self._calls
        classes = np.where(
            changes.is_update,
            UPDATES,
            np.where(changes.operations == int(Operation.DELETE), DELETES, INSERTS),
        )
        return WrongChanges(
            changes.method,
            classes,
            changes.is_new,
            changes.is_old,
            absent,
            altered,
            doubled,
            survivors,
            self._reborn(),
            writers,
            calls,
            rows,
            tuple(self._regions()),
            int(self.stays.sum()),
            self._lost,
            self.old_rows[survivors],
            int((reasons == _REPEATED).sum()),
            int((reasons[self._single_extra] == _STRANGE).sum()),
        )

    def _reborn(self) -> Mask:
        reborn = np.zeros(len(self.changes.operations), np.bool_)
        in_place = self.changes.operations == int(Operation.UPDATE)
        deleted = self.old_rows[(self.old_rows >= 0) & ~in_place]
        if self.keys and len(deleted):
            keys = list(self.keys)
            new_keys, old_keys = row_codes(
                self.changes.new_values.select(keys), self.before.take(deleted).select(keys)
            )
            reborn[self._new[np.isin(new_keys, old_keys)]] = True
        return reborn

    def _regions(self) -> Iterator[Regions]:
        changes = self.changes
        for index, column in enumerate(changes.layout_columns):
            values, name = changes.layout_values(index), self.names[column]
            yield Regions(cell_codes(values), partial(_partition, name, values))
        numbers = changes.numbers
        if (
            changes.layout_columns
            and numbers is not None
            and len(numbers)
            and (numbers >= 0).all()
            and numbers.max() < _MOST_BUCKETS
        ):
            yield Regions(numbers, lambda row: f"bucket {numbers[row]}")

    # -- rows in words

    def _entries(self) -> Iterator[tuple[int, int]]:
        """Yield the first wrong rows by their indices among the missing and the additional rows; -1
        for a row that is not there.
        """
        pairs = zip(self._pairs.missing, self._pairs.unexpected, strict=True)
        extra = ((-1, row) for row in self._single_extra)
        missing = ((row, -1) for row in self._single_missing)
        for entry in islice(chain(pairs, extra, missing), SHOWN):
            yield int(entry[0]), int(entry[1])

    def _row(self, missing: int, extra: int) -> WrongRow:
        if missing >= 0 and extra >= 0:
            return self._pair(missing, extra)
        return self._unexpected(extra) if extra >= 0 else self._absent(missing)

    def _pair(self, missing: int, extra: int) -> WrongRow:
        expected, actual = self.missing.slice(missing, 1), self.extra.slice(extra, 1)
        differing = np.flatnonzero(differing_cells(expected, actual)[0]).tolist()
        cells = [
            f"{self.names[index]} is {_cell(actual, index)} and must be {_cell(expected, index)}"
            for index in differing[:_MOST_CELLS]
        ]
        if rest := len(differing) - len(cells):
            cells.append(f"{plural(rest, 'other column')} {'differs' if rest == 1 else 'differ'}")
        change = int(self._missing_changes[missing])
        problem, old = "other values", ""
        if self._extra[0][extra] == _REMAINING:
            problem, old = "old values", ", and an old row exists"
        sentence = f"Row {_shown(expected)} {self._role(change)}{old}: {', '.join(cells)}."
        return self._wrong_row(sentence, problem, change, tuple(differing))

    def _unexpected(self, extra: int) -> WrongRow:
        row = self.extra.slice(extra, 1)
        reason, change = int(self._extra[0][extra]), int(self._extra[1][extra])
        role, problem = self._role(change), "too often"
        if reason == _DOUBLED:
            sentence = f"Row {_shown(row)} exists more often than expected: it {role}."
        elif reason == _REMAINING:
            problem = "still there"
            sentence = f"Row {_shown(row)} {self._old_role(change)} but exists."
        elif reason == _REPEATED:
            sentence = (
                f"Row {_shown(row)} exists more often than before; the statement does not touch it."
            )
        else:
            problem = "not requested"
            sentence = (
                "A row of NULLs exists that the statement does not add."
                if all(column.null_count for column in row.columns)
                else f"Row {_shown(row)} exists, but the statement does not add it."
            )
        return self._wrong_row(sentence, problem, change)

    def _absent(self, missing: int) -> WrongRow:
        text, change = _shown(self.missing.slice(missing, 1)), int(self._missing_changes[missing])
        sentence = (
            f"Row {text} is missing; the statement does not touch it."
            if change < 0
            else f"Row {text} {self._role(change)} but is missing."
        )
        return self._wrong_row(sentence, "missing", change)

    def _role(self, change: int) -> str:
        if change < 0:
            return "is not touched by the statement"
        if self.changes.is_update[change]:
            return "was expected after an update"
        return "should have been inserted"

    def _old_role(self, change: int) -> str:
        return f"should have been {'changed' if self.changes.is_update[change] else 'deleted'}"

    def _wrong_row(
        self, sentence: str, problem: str, change: int, differing: tuple[int, ...] = ()
    ) -> WrongRow:
        if change < 0:
            return WrongRow(sentence, problem, differing)
        numbers = [*(one[change] for one in self._calls), self.changes.joined_rows[change]]
        writer, call, row, joined = (None if at < 0 else int(at) for at in numbers)
        return WrongRow(sentence, problem, differing, writer, call, row, joined)


def _partition(name: str, values: pa.ChunkedArray, row: int) -> str:
    return f"the rows with {name} {_value(values[row].as_py())}"


def _batch(table: pa.Table, rows: Sequence[int], names: Sequence[str]) -> pa.RecordBatch:
    indices = pa.array([None if row < 0 else row for row in rows], pa.int64())
    columns = [
        column.combine_chunks().take(indices)
        if table.num_rows
        else pa.nulls(len(rows), column.type)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def _shown(row: pa.Table) -> str:
    cells = [_cell(row, index) for index in range(min(row.num_columns, _MOST_COLUMNS))]
    return f"({', '.join(cells)}{', ...' if row.num_columns > _MOST_COLUMNS else ''})"


def _cell(row: pa.Table, index: int) -> str:
    return _value(python_values(row.column(index))[0])


def _value(value: Any) -> str:
    text = constant_of(value) or str(value)
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}..."
