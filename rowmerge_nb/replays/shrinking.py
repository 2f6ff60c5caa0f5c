"""Delta debugging of replays.

A step is accepted if the same line raises the same error in the same call, or if rows differ as
before.
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

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.choices import Flow
from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.ordering import ascending, other_rows
from rowmerge_nb.base.words import plural
from rowmerge_nb.replays.rows import NamedRows
from rowmerge_nb.replays.run import Replay, replay
from rowmerge_nb.spi.types import is_number
from rowmerge_nb.trace.record import HandedPage, Record

if TYPE_CHECKING:
    import numpy.typing as npt

    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.replays.origin import ReplayOrigin


def shrink(
    record: Record | Result | str | Path, connector: Any, *, seconds: float = 30.0, **options: Any
) -> Replay:
    """Replay a record, and return the smallest replay with the same failure, or raise NOT_SUPPORTED
    if it does not fail.

    Args:
        record: as for `replay`.
        connector: as for `replay`; a factory creates a new connector for every try.
        seconds: the time limit, after which the best replay is returned.
        options: ``writer``, ``split``, ``call`` and ``make_table``, as for `replay`.
    """
    return shrunk(replay(record, connector, **options), seconds)


def shrunk(failing: Replay, seconds: float) -> Replay:
    checked(
        seconds,
        "seconds",
        lambda value: isinstance(value, int | float) and value > 0,
        "a number of seconds",
    )
    if not failing.failed:
        raise RowMergeError.unsupported(
            "This replay does not fail, so there is nothing to shrink",
            hint=(
                "A record of all pages, replayed on a function that creates a"
                " connector, also compares the resulting rows."
            ),
        )
    over = ""
    with failing.origin.kept() as origin:
        trial = _Trial(failing, origin, time.monotonic() + seconds)
        try:
            for step in (_whole_pages, _page_rows, _target_rows, _whole_pages, _columns, _values):
                step(trial)
        except _TimeIsUpError:
            over = f"; it was not finished after {seconds:g} seconds"
    before, after = _sizes(failing.record), _sizes(trial.best.record)
    tries = f"in {plural(trial.tries, 'replay')}{over}"
    notice = (
        f"Nothing smaller fails in the same way: {before}, {tries}"
        if before == after
        else f"Shrunk from {before} to {after}, {tries}"
    )
    return replace(trial.best, origin=failing.origin, notices=(*trial.best.notices, notice))


def fewest(
    items: npt.NDArray[np.int64], fails: Callable[[npt.NDArray[np.int64]], bool]
) -> npt.NDArray[np.int64]:
    """Return a minimal subset that still fails (Zeller and Hildebrandt, "Simplifying and isolating
    failure-inducing input").
    """
    if len(items) and fails(items[:0]):
        return items[:0]
    parts = 2
    while len(items) >= 2:
        pieces = np.array_split(items, parts)
        rests = (
            [np.concatenate([*pieces[:i], *pieces[i + 1 :]]) for i in range(parts)]
            if parts > 2
            else []
        )
        reduced = next(((piece, 2) for piece in pieces if fails(piece)), None)
        reduced = reduced or next(
            ((rest, max(parts - 1, 2)) for rest in rests if fails(rest)), None
        )
        if reduced is not None:
            items, parts = reduced
            parts = min(parts, max(len(items), 2))
        elif parts >= len(items):
            break
        else:
            parts = min(2 * parts, len(items))
    return items


class _TimeIsUpError(Exception):
    """The time limit is reached."""


class _Trial:
    def __init__(self, failing: Replay, origin: ReplayOrigin, deadline: float) -> None:
        self.best = failing
        self._origin = origin
        self.tries = 0
        self._deadline = deadline
        self._failure = _signature(failing)

    @property
    def record(self) -> Record:
        return self.best.record

    def fails(self, record: Record) -> bool:
        if time.monotonic() > self._deadline:
            raise _TimeIsUpError
        self.tries += 1
        try:
            attempt = replay(
                record, self._origin, call=self.best.call, make_table=self.best.make_table
            )
        except RowMergeError:
            # For instance, the table cannot be created without this column.
            return False
        same = _signature(attempt) == self._failure
        if same:
            self.best = attempt
        return same


def _signature(result: Replay) -> tuple[Any, ...]:
    """Return what identifies a failure, regardless of values."""
    if result.error is None:
        differs = [
            rows is not None and bool(rows.num_rows) for rows in (result.missing, result.extra)
        ]
        return (result.compared, result.has_rows, *differs)
    code_error = getattr(result.error, "code_error", None)
    if code_error is not None:
        # Code in another language: the traceback of Python is the same for all its errors.
        return result.has_rows, result.step, code_error.error, code_error.frames[-1:]
    frame = result.error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    location = (frame.tb_frame.f_code.co_filename, frame.tb_lineno) if frame is not None else None
    return result.has_rows, result.step, type(result.error).__qualname__, location


def _whole_pages(trial: _Trial) -> None:
    record = trial.record
    pages = tuple(page for page in record.pages if page.number in trial.best.numbers)
    if len(pages) < len(record.pages):
        trial.fails(replace(record, pages=pages))
    for number in trial.record.writers if len(trial.record.writers) > 1 else ():
        if trial.fails(
            replace(
                trial.record,
                pages=tuple(page for page in trial.record.pages if page.number == number),
            )
        ):
            break
    if len(trial.record.pages) > len(trial.record.writers):
        together = [
            HandedPage(
                number,
                pa.concat_batches(
                    [page.page for page in trial.record.pages if page.number == number]
                ),
            )
            for number in trial.record.writers
        ]
        trial.fails(replace(trial.record, pages=tuple(together)))


def _page_rows(trial: _Trial) -> None:
    only_named = trial.fails(_with_named_rows(trial.record))
    whole = trial.record

    def fails(rows: npt.NDArray[np.int64]) -> bool:
        some = _with_page_rows(whole, rows)
        return trial.fails(_with_named_rows(some) if only_named else some)

    fewest(np.arange(whole.page_rows), fails)


def _with_page_rows(record: Record, indexes: npt.NDArray[np.int64]) -> Record:
    pages, start = [], 0
    for handed_page in record.pages:
        own = indexes[(indexes >= start) & (indexes < start + handed_page.page.num_rows)] - start
        start += handed_page.page.num_rows
        if own.size:
            pages.append(HandedPage(handed_page.number, handed_page.page.take(pa.array(own))))
    return replace(record, pages=tuple(pages), left_out={})


def _referenced_rows(record: Record) -> npt.NDArray[np.int64]:
    rows_named = NamedRows(record)
    targets = [rows_named.of(handed_page.page) for handed_page in record.pages]
    places = ascending(np.concatenate([np.zeros(0, np.int64), *targets]))
    return places[places >= 0]


def _with_named_rows(record: Record) -> Record:
    return _with_target_rows(record, _referenced_rows(record))


def _with_target_rows(record: Record, indexes: npt.NDArray[np.int64]) -> Record:
    if record.rows is None:
        return record
    rows = record.rows.take(pa.array(np.sort(indexes)))
    return replace(record, rows=rows, row_count=rows.num_rows)


def _target_rows(trial: _Trial) -> None:
    whole = trial.record
    if whole.rows is None:
        return
    referenced = _referenced_rows(whole)
    others = other_rows(whole.rows.num_rows, referenced)
    if others.size:
        fewest(
            others,
            lambda some: trial.fails(_with_target_rows(whole, np.concatenate([referenced, some]))),
        )


def _columns(trial: _Trial) -> None:
    for column in reversed(trial.record.columns):
        if (smaller := _without_column(trial.record, column.name)) is not None:
            trial.fails(smaller)


def _without_column(record: Record, name: str) -> Record | None:
    names = [column.name for column in record.columns]
    index = names.index(name)
    is_named = any(name.lower() in str(value).lower() for value in record.properties.values())
    if len(names) == 1 or index in record.redistribution or is_named:
        return None
    updated = {
        number: tuple(n for n in assigned if n != name)
        for number, assigned in record.updated.items()
    }
    rows = record.rows.remove_column(index) if record.rows is not None else None
    if record.flow is Flow.UPDATABLE:
        # Pages have only updated columns, and channels are indexes: updated columns stay.
        if name in record.updated.get(0, ()):
            return None
        pages = record.pages
    else:
        pages = tuple(
            HandedPage(handed_page.number, handed_page.page.remove_column(index))
            for handed_page in record.pages
        )
    return replace(
        record,
        columns=tuple(column for column in record.columns if column.name != name),
        redistribution=tuple(position - (position > index) for position in record.redistribution),
        updated=updated,
        rows=rows,
        pages=pages,
    )


def _values(trial: _Trial) -> None:
    if trial.record.flow is Flow.UPDATABLE:
        return
    for index in range(len(trial.record.columns)):
        for simpler in _simpler(trial.record, index):
            if trial.fails(simpler):
                break
        column, rows = trial.record.columns[index], trial.record.rows
        if column.nullable and rows is not None and rows.column(index).null_count < rows.num_rows:
            nothing = rows.set_column(
                index,
                rows.schema.field(index),
                pa.nulls(rows.num_rows, rows.schema.field(index).type),
            )
            trial.fails(replace(trial.record, rows=nothing))


def _simpler(record: Record, index: int) -> Iterator[Record]:
    column = record.columns[index]
    arrow_type = column.sql_type.arrow
    arrays = [page.page.column(index) for page in record.pages] + (
        [record.rows.column(index)] if record.rows is not None else []
    )
    there = (
        pa.concat_arrays([array.cast(arrow_type) for array in arrays])
        if arrays
        else pa.nulls(0, arrow_type)
    )
    if there.null_count < len(there) and column.nullable:
        yield _mapped(record, index, lambda array: pa.nulls(len(array), arrow_type))
    if pa.types.is_nested(arrow_type):
        return
    distinct = pc.unique(there.drop_null())
    simple = _simple(len(distinct), arrow_type)
    if simple is not None and not simple.equals(distinct):
        yield _mapped(
            record, index, lambda array: simple.take(pc.index_in(array, value_set=distinct))
        )


def _simple(count: int, arrow_type: pa.DataType) -> pa.Array | None:
    if pa.types.is_string(arrow_type):
        letters = string.ascii_lowercase
        return pa.array([letters[i % 26] * (i // 26 + 1) for i in range(count)], arrow_type)
    numbers = pa.array(np.arange(1, count + 1), pa.int32())
    try:
        if pa.types.is_date(arrow_type):
            return pc.add(numbers, _FIRST_DAY).cast(pa.int32()).cast(arrow_type)
        if is_number(arrow_type):
            return numbers.cast(arrow_type)
    except pa.ArrowInvalid:
        return None
    return None


_FIRST_DAY: Final = 10956
"""The day before 2000-01-01, in days since 1970."""


def _mapped(record: Record, index: int, change: Callable[[pa.Array], pa.Array]) -> Record:
    def of(page: pa.RecordBatch) -> pa.RecordBatch:
        arrays = list(page.columns)
        arrays[index] = change(arrays[index])
        return pa.RecordBatch.from_arrays(arrays, schema=page.schema)

    pages = tuple(
        HandedPage(handed_page.number, of(handed_page.page)) for handed_page in record.pages
    )
    return replace(record, pages=pages, rows=of(record.rows) if record.rows is not None else None)


def _sizes(record: Record) -> str:
    target = 0 if record.rows is None else record.rows.num_rows
    return (
        f"{plural(record.page_rows, 'row')} in {plural(len(record.pages), 'page')},"
        f" {plural(target, 'row')} of the target and {plural(len(record.columns), 'column')}"
    )
