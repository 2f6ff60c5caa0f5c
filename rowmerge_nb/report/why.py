"""The result of ``result.why()``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import plural
from rowmerge_nb.report.html import render_parts
from rowmerge_nb.report.model.journeys import JourneyRow, journey_row
from rowmerge_nb.report.sequence import ShownSequence
from rowmerge_nb.report.words.side_names import names_in, with_side_names
from rowmerge_nb.trace.journeys import (
    Journey,
    asked_journeys,
    journeys_at,
    journeys_of,
    told_journeys,
    untouched_journeys,
)
from rowmerge_nb.trace.picking import any_has_values, check_columns, in_words, picked, rows_like

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rowmerge_nb.trace.trace import Trace

    Ask = Callable[[Any, Any, Mapping[str, Any]], Trace]

MORE: Final = "There may be more rows: these are the known ones."


class Why(ShownSequence[Journey]):
    """The journeys of some rows; a sequence of `Journey` that displays as sentences."""

    def __init__(self, journeys: Sequence[Journey], trace: Trace, *, more: bool = False) -> None:
        super().__init__(journeys)
        self._joined, self._names = trace.kind == "MERGE", names_in(trace)
        self._more = more

    @classmethod
    def of(
        cls,
        trace: Trace,
        row: Any,
        source_row: Any,
        columns: Mapping[str, Any],
        ask: Ask | None = None,
    ) -> Why:
        """Find rows in a trace, and request those that it lacks.

        Args:
            columns: values of the source row or the target row.
        """
        recorded_rows, requested = _rows_held(trace), asked_journeys(trace)
        sides = _sides(trace, requested)
        number, values = picked(row, source_row, columns, (name for side in sides for name in side))
        if number is None and not values:
            every = _with_others(journeys_of(trace) or (), requested)
            return cls(every or told_journeys(trace), trace)
        if recorded_rows or requested:
            check_columns(values, sides)
        others = (*requested, *(untouched_journeys(trace) if number is None else ()))
        matches = _matches(trace, others, number, values)
        # The trace of a small MERGE has the unmatched target rows if the store keeps versions.
        samples = trace.samples
        lacking = (
            not matches
            and number is None
            and trace.kind == "MERGE"
            and samples.untouched_rows is None
        )
        complete = trace.join.rows == 0 or samples.is_whole
        if complete or ask is None:
            if not recorded_rows and not others:
                told_journeys(trace)
            # A text without trailing blanks matches a padded char only if no row has the exact
            # text.
            matches = matches or _matches(trace, others, number, values, padded=True)
            if not matches and lacking and ask is not None:
                matches = _untouched_elsewhere(lambda: ask(row, source_row, columns))
            if not matches:
                raise _none_is_like(
                    trace, plural(recorded_rows + len(requested), "row"), in_words(number, values)
                )
            return cls(matches, trace)
        return cls._asked(
            trace, lambda: ask(row, source_row, columns), in_words(number, values), matches
        )

    @classmethod
    def _asked(
        cls, trace: Trace, ask: Callable[[], Trace], words: str, matches: Sequence[Journey]
    ) -> Why:
        try:
            answer = ask()
        except RowMergeError as error:
            if matches and error.code == "NOT_SUPPORTED":
                return cls(matches, trace, more=True)
            raise
        rows = (*asked_journeys(answer), *untouched_journeys(answer))
        if not rows:
            joined_rows = trace.join.rows
            count = plural(joined_rows, "row") if joined_rows is not None else "rows"
            raise _none_is_like(trace, count, words)
        request = answer.samples.requested_rows
        is_cut = request is not None and request.more
        return cls(rows, trace, more=is_cut)

    @property
    def rows(self) -> tuple[JourneyRow, ...]:
        journeys = with_side_names(self._items, self._names)
        return tuple(journey_row(journey, self._joined) for journey in journeys)

    def __str__(self) -> str:
        blocks = [[row.head, *(f"  {reason}" for reason in row.reasons)] for row in self.rows]
        return "\n\n".join(["\n".join(block) for block in blocks] + ([MORE] if self._more else []))

    def __repr__(self) -> str:
        return f"<Why: {plural(len(self), 'row')}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        text = str(self)
        rows = [(row.head, row.reasons) for row in self.rows] + ([(MORE, ())] if self._more else [])
        return {
            "text/plain": text,
            "text/html": render_parts("why.html.j2", {"rows": rows}, text, text),
        }


def _rows_held(trace: Trace) -> int:
    pages = trace.samples.pages
    return 0 if pages is None or pages.witness is None else pages.before.num_rows


def _sides(trace: Trace, requested: Iterable[Journey]) -> list[Mapping[str, Any]]:
    witness = None if trace.samples.pages is None else trace.samples.pages.witness
    schema = (
        []
        if witness is None or not witness.num_rows
        else [field for field in witness.schema if field.name != "source_row"]
    )
    names = [dict.fromkeys(field.type.names) for field in schema]
    return [
        *names,
        *(side for one in requested for side in (one.source, one.target) if side is not None),
    ]


def _matches(
    trace: Trace,
    others: Iterable[Journey],
    number: int | None,
    values: Mapping[str, Any],
    *,
    padded: bool = False,
) -> list[Journey]:
    pages = trace.samples.pages
    recorded = (
        ()
        if pages is None or pages.witness is None
        else journeys_at(trace, rows_like(pages, number, values, padded=padded))
    )
    return _with_others(recorded or (), _alike(others, number, values, padded=padded))


def _with_others(recorded: Sequence[Journey], others: Iterable[Journey]) -> list[Journey]:
    return [
        *recorded,
        *(one for one in others if not any(_same_row(one, other) for other in recorded)),
    ]


def _alike(
    rows: Iterable[Journey], number: int | None, values: Mapping[str, Any], *, padded: bool = False
) -> list[Journey]:
    numbered = (one for one in rows if number in {None, one.source_row})
    return [
        one for one in numbered if any_has_values((one.source, one.target), values, padded=padded)
    ]


def _untouched_elsewhere(ask: Callable[[], Trace]) -> list[Journey]:
    try:
        return list(untouched_journeys(ask()))
    except RowMergeError as error:
        if error.code == "NOT_SUPPORTED":
            return []
        raise


def _same_row(one: Journey, other: Journey) -> bool:
    return (one.source_row, one.source, one.target) == (
        other.source_row,
        other.source,
        other.target,
    )


def _none_is_like(trace: Trace, rows: str, words: str) -> RowMergeError:
    msg = f"None of the {rows} that took part is {words}"
    hint = "Rows that WHERE has not selected are not among them."
    if trace.kind == "MERGE":
        hint = (
            "Values are compared exactly, and rows of the source are counted from 0."
            " Unmatched target rows are included if the store keeps versions."
        )
    return RowMergeError.invalid(msg, hint=hint)
