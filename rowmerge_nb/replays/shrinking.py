"""The fewest pages, rows and columns with which a replay still fails in the same way, by delta debugging.

Rows of the pages come first, then rows of the target, columns, and values, which are made simple. Each step is tried on a new table, and kept
if the same call raises the same error in the same line, or if rows are missing, or too many, as before.
"""

from __future__ import annotations

import string
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.errors import RowMergeError, checked
from rowmerge_nb.base.words import plural
from rowmerge_nb.replays.rows import NamedRows
from rowmerge_nb.replays.run import Replay, replay
from rowmerge_nb.trace.record import HandedPage, Record

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.engine.result import Result

Places = "npt.NDArray[np.int64]"


def shrink(record: Record | Result | str | Path, connector: Any, *, seconds: float = 30.0, **chosen: Any) -> Replay:
    """Replay a record, and give a replay of the fewest rows, pages and columns that fails in the same way.

    Args:
        record: as for `replay`.
        connector: as for `replay`; what makes a connector gives a new one for every try.
        seconds: when the time is over, what was found by then is given, and says so.
        chosen: ``writer``, ``split``, ``call`` and ``make_table``, as for `replay`.

    Raises:
        RowMergeError: NOT_SUPPORTED if the replay does not fail.
    """
    return shrunk(replay(record, connector, **chosen), seconds)


def shrunk(done: Replay, seconds: float) -> Replay:
    """Shrink a replay that fails; see `shrink`."""
    checked(seconds, "seconds", lambda value: isinstance(value, int | float) and value > 0, "a number of seconds")
    if not done.failed:
        raise RowMergeError(
            "This replay does not fail, so there is nothing to shrink",
            code="NOT_SUPPORTED",
            hint="A record of all pages, replayed on what makes a connector, compares the rows that are left as well.",
        )
    trial = _Trial(done, time.monotonic() + seconds)
    over = ""
    try:
        for step in (_whole_pages, _page_rows, _target_rows, _whole_pages, _columns, _values):
            step(trial)
    except _TimeIsUpError:
        over = f"; after {seconds:g} seconds it was not finished"
    before, after = _sizes(done.record), _sizes(trial.best.record)
    told = f"Shrunk from {before} to {after}, in {plural(trial.tries, 'replay')}{over}"
    return replace(trial.best, notices=(*trial.best.notices, told))


def fewest(items: npt.NDArray[np.int64], fails: Callable[[npt.NDArray[np.int64]], bool]) -> npt.NDArray[np.int64]:
    """Return as few of some items as still fail: delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input").

    Args:
        items: items that fail together.
        fails: tells whether some of them do.

    >>> fewest(np.arange(1000), lambda some: {17, 800} <= set(some.tolist())).tolist()
    [17, 800]
    """
    if len(items) and fails(items[:0]):
        return items[:0]
    parts = 2
    while len(items) >= 2:
        pieces = np.array_split(items, parts)
        rests = [np.concatenate([*pieces[:i], *pieces[i + 1 :]]) for i in range(parts)] if parts > 2 else []
        found = next(((piece, 2) for piece in pieces if fails(piece)), None)
        found = found or next(((rest, max(parts - 1, 2)) for rest in rests if fails(rest)), None)
        if found is not None:
            items, parts = found
            parts = min(parts, max(len(items), 2))
        elif parts >= len(items):
            break
        else:
            parts = min(2 * parts, len(items))
    return items


class _TimeIsUpError(Exception):
    """The time for shrinking is over."""


class _Trial:
    """A replay that fails, and tries to make it smaller."""

    def __init__(self, done: Replay, deadline: float) -> None:
        self.best = done
        self.tries = 0
        self._deadline = deadline
        self._wanted = _signature(done)

    @property
    def record(self) -> Record:
        return self.best.record

    def fails(self, record: Record) -> bool:
        """Replay another record; if it fails in the same way, it is the best one so far."""
        if time.monotonic() > self._deadline:
            raise _TimeIsUpError
        self.tries += 1
        try:
            again = replay(record, self.best.origin, call=self.best.call, make_table=self.best.make_table)
        except RowMergeError:
            # Without this column, for instance, the table cannot be made.
            return False
        same = _signature(again) == self._wanted
        if same:
            self.best = again
        return same


def _signature(done: Replay) -> tuple[Any, ...]:
    """Describe in which way a replay fails, whatever the values are."""
    if done.error is None:
        differs = [rows is not None and bool(rows.num_rows) for rows in (done.missing, done.extra)]
        return (done.compared, done.has_rows, *differs)
    found = done.error.__traceback__
    while found is not None and found.tb_next is not None:
        found = found.tb_next
    place = (found.tb_frame.f_code.co_filename, found.tb_lineno) if found is not None else None
    return done.has_rows, done.step, type(done.error).__qualname__, place


def _whole_pages(trial: _Trial) -> None:
    """Leave out the writers that were not asked for, then all but one of them; put the pages of a writer together."""
    record = trial.record
    chosen = tuple(page for page in record.pages if page.number in trial.best.numbers)
    if len(chosen) < len(record.pages):
        trial.fails(replace(record, pages=chosen))
    for number in trial.record.writers if len(trial.record.writers) > 1 else ():
        if trial.fails(replace(trial.record, pages=tuple(page for page in trial.record.pages if page.number == number))):
            break
    if len(trial.record.pages) > len(trial.record.writers):
        together = [
            HandedPage(number, pa.concat_batches([page.page for page in trial.record.pages if page.number == number]))
            for number in trial.record.writers
        ]
        trial.fails(replace(trial.record, pages=tuple(together)))


def _page_rows(trial: _Trial) -> None:
    """Leave out rows of the pages, and with them the rows of the target that no page speaks of any more, if that is possible."""
    named = trial.fails(_with_named_rows(trial.record))
    whole = trial.record

    def fails(rows: npt.NDArray[np.int64]) -> bool:
        some = _with_page_rows(whole, rows)
        return trial.fails(_with_named_rows(some) if named else some)

    fewest(np.arange(whole.page_rows), fails)


def _with_page_rows(record: Record, kept: npt.NDArray[np.int64]) -> Record:
    pages, start = [], 0
    for handed in record.pages:
        own = kept[(kept >= start) & (kept < start + handed.page.num_rows)] - start
        start += handed.page.num_rows
        if own.size:
            pages.append(HandedPage(handed.number, handed.page.take(pa.array(own))))
    return replace(record, pages=tuple(pages), left_out={})


def _named(record: Record) -> npt.NDArray[np.int64]:
    """Return the places of the target's rows that the pages speak of."""
    rows_named = NamedRows(record)
    found = [rows_named.of(handed.page) for handed in record.pages]
    places = np.unique(np.concatenate([np.zeros(0, np.int64), *found]))
    return places[places >= 0]


def _with_named_rows(record: Record) -> Record:
    return _with_target_rows(record, _named(record))


def _with_target_rows(record: Record, kept: npt.NDArray[np.int64]) -> Record:
    if record.rows is None:
        return record
    rows = record.rows.take(pa.array(np.sort(kept)))
    return replace(record, rows=rows, row_count=rows.num_rows)


def _target_rows(trial: _Trial) -> None:
    """Leave out rows of the target that no page speaks of."""
    whole = trial.record
    if whole.rows is None:
        return
    named = _named(whole)
    others = np.setdiff1d(np.arange(whole.rows.num_rows), named)
    if others.size:
        fewest(others, lambda some: trial.fails(_with_target_rows(whole, np.concatenate([named, some]))))


def _columns(trial: _Trial) -> None:
    """Leave out columns, the last one first."""
    for column in reversed(trial.record.columns):
        if (smaller := _without_column(trial.record, column.name)) is not None:
            trial.fails(smaller)


def _without_column(record: Record, name: str) -> Record | None:
    """Return a record without a column; None where it is needed to place rows, and of the last one."""
    names = [column.name for column in record.columns]
    index = names.index(name)
    spoken = any(name.lower() in str(value).lower() for value in record.properties.values())
    if len(names) == 1 or index in record.redistribution or spoken:
        return None
    updated = {number: tuple(n for n in assigned if n != name) for number, assigned in record.updated.items()}
    rows = record.rows.remove_column(index) if record.rows is not None else None
    if record.flow is Flow.UPDATABLE:
        # What a page has of a column is there only if it is updated, and channels are counted: such columns stay.
        if name in record.updated.get(0, ()):
            return None
        pages = record.pages
    else:
        pages = tuple(HandedPage(handed.number, handed.page.remove_column(index)) for handed in record.pages)
    return replace(
        record,
        columns=tuple(column for column in record.columns if column.name != name),
        redistribution=tuple(place - (place > index) for place in record.redistribution),
        updated=updated,
        rows=rows,
        pages=pages,
    )


def _values(trial: _Trial) -> None:
    """Make the values of each column simple, everywhere in the same way: NULL, else small numbers and single letters; then NULL in the target alone."""
    if trial.record.flow is Flow.UPDATABLE:
        return
    for index in range(len(trial.record.columns)):
        for simpler in _simpler(trial.record, index):
            if trial.fails(simpler):
                break
        column, rows = trial.record.columns[index], trial.record.rows
        if column.nullable and rows is not None and rows.column(index).null_count < rows.num_rows:
            nothing = rows.set_column(index, rows.schema.field(index), pa.nulls(rows.num_rows, rows.schema.field(index).type))
            trial.fails(replace(trial.record, rows=nothing))


def _simpler(record: Record, index: int) -> Iterator[Record]:
    """Yield records with other values in a column, the simplest first."""
    column = record.columns[index]
    kind = column.sql_type.arrow
    arrays = [page.page.column(index) for page in record.pages] + ([record.rows.column(index)] if record.rows is not None else [])
    there = pa.concat_arrays([array.cast(kind) for array in arrays]) if arrays else pa.nulls(0, kind)
    if there.null_count < len(there) and column.nullable:
        yield _mapped(record, index, lambda array: pa.nulls(len(array), kind))
    if pa.types.is_nested(kind):
        return
    known = pc.unique(there.drop_null())
    simple = _simple(len(known), kind)
    if simple is not None and not simple.equals(known):
        yield _mapped(record, index, lambda array: simple.take(pc.index_in(array, value_set=known)))


def _simple(count: int, kind: pa.DataType) -> pa.Array | None:
    """Return as many different simple values of a type; None where there are none."""
    if pa.types.is_string(kind):
        letters = string.ascii_lowercase
        return pa.array([letters[i % 26] * (i // 26 + 1) for i in range(count)], kind)
    numbers = pa.array(np.arange(1, count + 1), pa.int32())
    try:
        if pa.types.is_date(kind):
            return pc.add(numbers, _FIRST_DAY).cast(pa.int32()).cast(kind)
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return numbers.cast(kind)
    except pa.ArrowInvalid:
        return None
    return None


_FIRST_DAY: Final = 10956
"""The day before 2000-01-01, counted from 1970."""


def _mapped(record: Record, index: int, change: Callable[[pa.Array], pa.Array]) -> Record:
    """Return a record with another channel in the place of a column's, in the target and in all pages."""

    def of(page: pa.RecordBatch) -> pa.RecordBatch:
        arrays = list(page.columns)
        arrays[index] = change(arrays[index])
        return pa.RecordBatch.from_arrays(arrays, schema=page.schema)

    pages = tuple(HandedPage(handed.number, of(handed.page)) for handed in record.pages)
    return replace(record, pages=pages, rows=of(record.rows) if record.rows is not None else None)


def _sizes(record: Record) -> str:
    target = 0 if record.rows is None else record.rows.num_rows
    return (
        f"{plural(record.page_rows, 'row')} in {plural(len(record.pages), 'page')}, {plural(target, 'row')} of the target "
        f"and {plural(len(record.columns), 'column')}"
    )
