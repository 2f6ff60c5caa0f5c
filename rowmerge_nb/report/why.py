"""Why rows went the way they did: what ``result.why()`` gives, as journeys, text and HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rowmerge_nb.errors import RowMergeError
from rowmerge_nb.report.html import render_parts
from rowmerge_nb.report.model.journeys import JourneyRow, journey_row
from rowmerge_nb.report.picking import any_has_values, check_columns, check_source_row, in_words
from rowmerge_nb.report.sequence import ShownSequence
from rowmerge_nb.trace.journeys import Journey, told_journeys
from rowmerge_nb.words import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.trace.trace import Trace

__all__ = ["Why", "head_of"]


class Why(ShownSequence[Journey]):
    """The journeys of some rows; a sequence of `Journey` that shows itself as sentences."""

    def __init__(self, journeys: Sequence[Journey], *, joined: bool) -> None:
        super().__init__(journeys)
        self._joined = joined

    @classmethod
    def of(cls, trace: Trace, source_row: int | None, columns: Mapping[str, Any]) -> Why:
        """Look rows up in a trace.

        Args:
            trace: the trace.
            source_row: the number of the source row, from 0; None for any.
            columns: values that the source row or the target row has, by column.

        Raises:
            RowMergeError: INVALID_ARGUMENTS if no row is like this, or no column has such a name; NOT_SUPPORTED where the trace has
                no rows with the values of both sides.
        """
        check_source_row(source_row)
        journeys = told_journeys(trace)
        check_columns(columns, (side for journey in journeys for side in (journey.source, journey.target)))
        found = [
            journey
            for journey in journeys
            if (source_row is None or journey.source_row == source_row)
            and any_has_values((journey.source, journey.target), columns)
        ]
        if not found:
            msg = f"None of the {plural(len(journeys), 'row')} that the trace holds is {in_words(source_row, columns)}"
            hint = "The trace of a large statement holds the first rows of each clause, with trace='full' all; a target row that no row of the source matches is not among them."
            raise RowMergeError(msg, code="INVALID_ARGUMENTS", hint=hint)
        return cls(found, joined=trace.kind == "MERGE")

    @property
    def rows(self) -> tuple[JourneyRow, ...]:
        """The journeys as texts."""
        return tuple(journey_row(journey, self._joined) for journey in self._items)

    def __str__(self) -> str:
        blocks = [[head_of(row), *(f"  {reason}" for reason in row.reasons)] for row in self.rows]
        return "\n\n".join("\n".join(block) for block in blocks)

    def __repr__(self) -> str:
        return f"<Why: {plural(len(self), 'row')}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        text = str(self)
        rows = [(head_of(row), row.reasons) for row in self.rows]
        return {"text/plain": text, "text/html": render_parts("why.html.j2", {"rows": rows}, text, text)}


def head_of(row: JourneyRow) -> str:
    """Name a row: of the source, or where it has none of the target; and what becomes of it."""
    which = f"Source row {row.source}" if row.source else f"Target row {row.target}"
    return f"{which}: {row.clause}"
