"""What Trino's rule about repeated matches is beside that of the SQL standard, and what both say to the rows of a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.choices import RepeatedMatches
from rowmerge_nb.report.model.placing import DELETE_AND_INSERT
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.words import MINUS, code

if TYPE_CHECKING:
    from rowmerge_nb.trace.trace import Trace

__all__ = ["repeated_matches"]

_RULES: Final = (
    "Trino fails where a pair (unique_id, case_number) comes twice, the SQL standard where two source rows change one target row. So two "
    "clauses that each change the row pass in Trino alone, and two source rows for which no clause fires, the pair (unique_id, {none}) "
    "twice, fail in Trino alone. In everything else about rows and clauses the two agree."
)
_BOTH_CHANGE: Final = " Where rows are changed in place two clauses that change one row fail here as well: what is left would depend on their order."
_DECIDES: Final = {
    RepeatedMatches.TRINO: "",
    RepeatedMatches.STANDARD: f" {code('duplicates=standard')} has the standard's rule decide here.",
}


def repeated_matches(trace: Trace) -> str:
    """Say how the rules differ, which one decides, and what each answers; ``""`` where a plan has no such check."""
    if trace.kind != "MERGE" or trace.duplicates not in _DECIDES or all(node.kind != "DuplicateCheck" for node in trace.plan):
        return ""
    in_place = _BOTH_CHANGE if trace.paradigm != DELETE_AND_INSERT and trace.duplicates == RepeatedMatches.TRINO else ""
    none = "NULL" if trace.era == Era.CURRENT else f"{MINUS}1"
    return f"{_RULES.format(none=none)}{in_place}{_DECIDES[trace.duplicates]}{_answers(trace)}"


def _answers(trace: Trace) -> str:
    """Say what both rules answer, where it is known how often rows were matched."""
    patterns = trace.multiple_matches
    if patterns is None:
        return ""
    if not patterns:
        return " Here no target row is matched twice, so both let it pass."
    trino, standard = any(one.repeated for one in patterns), any(one.acting > 1 for one in patterns)
    if trino == standard:
        return " Here both fail." if trino else " Here both let it pass."
    passes, fails = ("the standard", "Trino's rule") if trino else ("Trino's rule", "the standard")
    return f" Here {passes} lets it pass, and {fails} fails."
