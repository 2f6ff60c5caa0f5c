"""A notice about rows without a clause because NULL made a condition unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.words import code, number
from rowmerge_nb.trace.journeys import NO_CLAUSE, case_numbers
from rowmerge_nb.trace.page_samples import Answer

if TYPE_CHECKING:
    from rowmerge_nb.trace.clause_record import Term
    from rowmerge_nb.trace.trace import Trace


def unknown_sentences(trace: Trace) -> str:
    """Return how many recorded rows without a clause have an unknown condition; "" if none."""
    pages = trace.samples.pages
    is_merge = trace.kind == "MERGE" and trace.state == StatementState.FINISHED
    if not is_merge or pages is None or pages.truths is None:
        return ""
    idle = case_numbers(pages) == NO_CLAUSE
    is_unknown, clauses = np.zeros(len(idle), np.bool_), []
    for clause in trace.clauses:
        if clause.condition is None or str(clause.number) not in pages.truths.schema.names:
            continue
        letters = pages.truths.column(str(clause.number))
        # The first letter is that of the whole condition.
        unknown = pc.starts_with(letters, Answer.UNKNOWN.value).fill_null(False)
        rows = idle & unknown.to_numpy(zero_copy_only=False)
        if rows.any():
            is_unknown |= rows
            clauses.append(clause)
    if not clauses:
        return ""
    scope = "" if pages.complete else "shown "
    numbers = " or ".join(str(clause.number) for clause in clauses)
    sentence = (
        f"For {number(int(is_unknown.sum()))} of the {scope}rows without a clause, the condition"
        f" of clause {numbers} was unknown, not false, because of NULL."
    )
    if any(_compares_difference(clause.condition) for clause in clauses if clause.condition):
        sentence += f" {code('IS DISTINCT FROM')} compares NULL too."
    return sentence


def _compares_difference(condition: Term) -> bool:
    return any(term.operator == "NOT" or term.has_difference for term in condition.walk())
