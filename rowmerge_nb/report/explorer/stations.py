"""A row's panel at the steps distinct and finish_merge, at which other rows matter too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowmerge_nb.base.words import join
from rowmerge_nb.report.model.clauses import clause_label
from rowmerge_nb.spi.operations import Era

if TYPE_CHECKING:
    from rowmerge_nb.trace.journeys import Journey
    from rowmerge_nb.trace.page_samples import PageSample


def distinct_station(journey: Journey, pages: PageSample) -> tuple[str, str]:
    """Describe whether the row's pair of target row and clause repeats, in a word and in a
    sentence.
    """
    if journey.target is None:
        return (
            "does not count",
            (
                "It has no target row, so it belongs to no pair that could occur"
                " again: is_distinct has no effect on it."
            ),
        )
    if not pages.transformed:
        return "", "Its value of is_distinct is unknown."
    is_distinct = pages.before.column(pages.layout.before.is_distinct)[journey.page_row].as_py()
    clause = (
        f"with {clause_label(journey.case_number)}"
        if journey.case_number >= 0
        else "without a clause, which counts as a clause of its own"
    )
    # In current pages, rows after a pair's first one are marked; in pages of the documents, all of
    # them.
    once = "for the first time" if pages.layout.era is Era.CURRENT else "once"
    return (
        f"is_distinct {is_distinct}",
        f"This target row comes {once if is_distinct else 'more than once'} {clause}.",
    )


def finish_station(journey: Journey) -> tuple[str, str]:
    """Describe whose fragments contain the row's change, in a word and in a sentence."""
    if not journey.becomes:
        return "nothing of it", "Nothing of this row was stored, so no fragment refers to it."
    writers_of_row = sorted({writer for writer in journey.writers if writer >= 0})
    if not writers_of_row:
        return "some writer", "The fragments of one writer's sink describe what became of it."
    listed, one = join([str(writer) for writer in writers_of_row]), len(writers_of_row) == 1
    writers = f"writer {listed}" if one else f"writers {listed}"
    sinks = f"sink of {writers} returns" if one else f"sinks of {writers} return"
    predicate = "it has" if one else "they have"
    return (
        writers,
        (
            f"The fragments that the {sinks} at the end name what {predicate} stored of this row;"
            " finish_merge combines all fragments into one change."
        ),
    )
