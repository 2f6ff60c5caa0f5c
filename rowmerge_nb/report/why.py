"""Why rows went the way they did: what ``result.why()`` gives, as journeys, text and HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.base.words import plural
from rowmerge_nb.report.html import render_parts
from rowmerge_nb.report.model.journeys import JourneyRow, journey_row
from rowmerge_nb.report.sequence import ShownSequence
from rowmerge_nb.trace.journeys import Journey, asked_journeys, journeys_at, journeys_of, told_journeys, untouched_journeys
from rowmerge_nb.trace.picking import any_has_values, check_columns, in_words, picked, rows_like

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rowmerge_nb.trace.trace import Trace

    Ask = Callable[[Any, Any, Mapping[str, Any]], Trace]

MORE: Final = "There may be more of them: these are those that are known."


class Why(ShownSequence[Journey]):
    """The journeys of some rows; a sequence of `Journey` that shows itself as sentences."""

    def __init__(self, journeys: Sequence[Journey], *, joined: bool, more: bool = False) -> None:
        super().__init__(journeys)
        self._joined = joined
        self._more = more

    @classmethod
    def of(cls, trace: Trace, row: Any, source_row: Any, columns: Mapping[str, Any], ask: Ask | None = None) -> Why:
        """Look rows up in a trace, and elsewhere where it has not all of them.

        Args:
            trace: the trace.
            row: what `Result.why` takes without a name: the number of the source row, from 0, or values by columns.
            source_row: the number of the source row; None for any.
            columns: values that the source row or the target row has, by column.
            ask: takes ``row``, ``source_row`` and ``columns``, and gives a trace with these rows as the ones that were asked for; None where nobody can be asked.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if no row is like this, or no column has such a name; NOT_SUPPORTED where the trace has
                no rows with the values of both sides, and nobody else knows them.
        """
        held, asked = _rows_held(trace), asked_journeys(trace)
        sides = _sides(trace, asked)
        number, values = picked(row, source_row, columns, (name for side in sides for name in side))
        if number is None and not values:
            every = _with_others(journeys_of(trace) or (), asked)
            return cls(every or told_journeys(trace), joined=trace.kind == "MERGE")
        if held or asked:
            check_columns(values, sides)
        others = (*asked, *(untouched_journeys(trace) if number is None else ()))
        found = _found(trace, others, number, values)
        # Of target rows without a partner the trace of a small MERGE has those of stores that keep versions.
        lacking = not found and number is None and trace.kind == "MERGE" and trace.untouched is None
        complete = trace.joined == 0 or (trace.pages is not None and trace.pages.complete and trace.pages.witness is not None)
        if complete or ask is None:
            if not held and not others:
                told_journeys(trace)
            # Who writes no blanks means a char, which has them, only where nobody has the text as it is written.
            found = found or _found(trace, others, number, values, padded=True)
            if not found and lacking and ask is not None:
                found = _untouched_elsewhere(lambda: ask(row, source_row, columns))
            if not found:
                raise _none_is_like(trace, plural(held + len(asked), "row"), in_words(number, values))
            return cls(found, joined=trace.kind == "MERGE")
        return cls._asked(trace, lambda: ask(row, source_row, columns), in_words(number, values), found)

    @classmethod
    def _asked(cls, trace: Trace, ask: Callable[[], Trace], words: str, found: Sequence[Journey]) -> Why:
        """Look rows up where the trace has not all of them; those that it has are told where nobody else knows better."""
        try:
            asked = ask()
        except RowMergeError as error:
            if found and error.code == "NOT_SUPPORTED":
                return cls(found, joined=trace.kind == "MERGE", more=True)
            raise
        rows = (*asked_journeys(asked), *untouched_journeys(asked))
        if not rows:
            raise _none_is_like(trace, plural(trace.joined, "row") if trace.joined is not None else "rows", words)
        return cls(rows, joined=trace.kind == "MERGE", more=asked.asked is not None and asked.asked.more)

    @property
    def rows(self) -> tuple[JourneyRow, ...]:
        """The journeys as texts."""
        return tuple(journey_row(journey, self._joined) for journey in self._items)

    def __str__(self) -> str:
        blocks = [[row.head, *(f"  {reason}" for reason in row.reasons)] for row in self.rows]
        return "\n\n".join(["\n".join(block) for block in blocks] + ([MORE] if self._more else []))

    def __repr__(self) -> str:
        return f"<Why: {plural(len(self), 'row')}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        text = str(self)
        rows = [(row.head, row.reasons) for row in self.rows] + ([(MORE, ())] if self._more else [])
        return {"text/plain": text, "text/html": render_parts("why.html.j2", {"rows": rows}, text, text)}


def _rows_held(trace: Trace) -> int:
    """Return how many joined rows the trace has with the values of both sides."""
    return 0 if trace.pages is None or trace.pages.witness is None else trace.pages.before.num_rows


def _sides(trace: Trace, asked: Iterable[Journey]) -> list[Mapping[str, Any]]:
    """Return rows of either side, of the trace's own rows only the names of the columns."""
    witness = None if trace.pages is None else trace.pages.witness
    schema = [] if witness is None or not witness.num_rows else [field for field in witness.schema if field.name != "source_row"]
    names = [dict.fromkeys(field.type.names) for field in schema]
    return [*names, *(side for one in asked for side in (one.source, one.target) if side is not None)]


def _found(
    trace: Trace, others: Iterable[Journey], number: int | None, values: Mapping[str, Any], *, padded: bool = False
) -> list[Journey]:
    """Return the journeys of the trace's rows, and of other rows, that are from that source row and have these values."""
    pages = trace.pages
    held = () if pages is None or pages.witness is None else journeys_at(trace, rows_like(pages, number, values, padded=padded))
    return _with_others(held or (), _alike(others, number, values, padded=padded))


def _with_others(held: Sequence[Journey], others: Iterable[Journey]) -> list[Journey]:
    return [*held, *(one for one in others if not any(_same_row(one, other) for other in held))]


def _alike(rows: Iterable[Journey], number: int | None, values: Mapping[str, Any], *, padded: bool = False) -> list[Journey]:
    numbered = (one for one in rows if number in {None, one.source_row})
    return [one for one in numbered if any_has_values((one.source, one.target), values, padded=padded)]


def _untouched_elsewhere(ask: Callable[[], Trace]) -> list[Journey]:
    """Look target rows up that the trace does not have; none where nobody knows them."""
    try:
        return list(untouched_journeys(ask()))
    except RowMergeError as error:
        if error.code == "NOT_SUPPORTED":
            return []
        raise


def _same_row(one: Journey, other: Journey) -> bool:
    return (one.source_row, one.source, one.target) == (other.source_row, other.source, other.target)


def _none_is_like(trace: Trace, rows: str, words: str) -> RowMergeError:
    msg = f"None of the {rows} that took part is {words}"
    hint = "Rows that WHERE has not chosen are not among them."
    if trace.kind == "MERGE":
        hint = (
            "Values are compared as they are, and rows of the source are counted from 0. Target rows that no row of the source matches are "
            "among them where the store keeps versions."
        )
    return RowMergeError(msg, code="INVALID_ARGUMENTS", hint=hint)
