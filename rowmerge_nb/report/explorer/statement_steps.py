"""The steps of a statement, as the explorer lists them: a name and a sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.base.words import number, plural
from rowmerge_nb.report.explorer.legend import LEGENDS, asides, examples
from rowmerge_nb.report.model.places import place_sentence
from rowmerge_nb.report.model.placing import passage, writers_among, writers_phrase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowmerge_nb.trace.trace import Trace

_MARKED: Final = {
    RepeatedMatches.TRINO: (
        "Marks pairs of a target row and a clause that occur more than once: one such"
        " pair ends the statement."
    ),
    RepeatedMatches.STANDARD: (
        "Marks pairs of a target row and a clause that occur more than once. A target"
        " row that two source rows change ends the statement."
    ),
    RepeatedMatches.NONE: (
        "Marks pairs of a target row and a clause that occur more than once, and allows them."
    ),
}


def statement_steps(trace: Trace) -> list[dict[str, Any]]:
    aside_texts = asides(trace)
    return [
        {
            "key": key,
            "name": name,
            "says": says,
            "aside": aside_texts.get(key, ""),
            "examples": examples(trace) if key == "distinct" else [],
            "legend": LEGENDS.get(key, []),
        }
        for key, name, says in (*_rows_steps(trace), *_store_steps(trace))
    ]


def _rows_steps(trace: Trace) -> Iterator[tuple[str, str, str]]:
    """Yield key, name and sentence of the steps that find the changes."""
    if trace.kind != "MERGE":
        yield "read", "read", "Reads the table and keeps the rows for which WHERE is true."
        return
    yield "read", "read", "Reads both tables."
    yield "join", "join", _join_sentence(trace)
    yield "case", "CASE", _case_sentence(trace)
    yield (
        "distinct",
        "distinct",
        (
            f"{_MARKED[trace.settings.duplicates]} A row without a target row is in no such"
            f" pair.{_repeated(trace)}"
        ),
    )


def _store_steps(trace: Trace) -> Iterator[tuple[str, str, str]]:
    """Yield key, name and sentence of the steps that store the changes."""
    pages = trace.samples.pages
    if pages is not None and pages.transformed:
        yield (
            "transform",
            "transform_page",
            (
                "Filters out rows that change nothing, and converts each change to"
                " the connector's form:"
                f" {passage(trace, pages.total_before, pages.total_after)}."
            ),
        )
    if any(node.kind == "Exchange" for node in trace.plan):
        yield "exchange", "exchange", place_sentence(trace)
    yield "sinks", "sinks", _sinks_sentence(trace)
    fragments = sum(writer.fragments for writer in trace.writers)
    yield (
        "finish",
        "finish_merge",
        (
            f"The connector gets {plural(fragments, 'fragment')}, which"
            f" {'names' if fragments == 1 else 'name'} what the sinks stored."
        ),
    )
    if trace.committed:
        number_after = trace.target.version_after
        version = "" if number_after is None else f", as version {number_after} of the table"
        yield "commit", "commit", f"All of it becomes visible at once{version}."
    else:
        yield "commit", "rollback", "It was a rehearsal: all of it was rolled back."


def _case_sentence(trace: Trace) -> str:
    says = (
        "Tries the WHEN clauses in their order; the first that is true wins, and unknown is not"
        " true."
    )
    if trace.join.rows is None:
        return says
    taken_rows = sum(clause.rows or 0 for clause in trace.clauses if clause.number >= 0)
    joined = plural(trace.join.rows, "joined row")
    return f"{says} {number(taken_rows)} of {joined} are taken by a clause."


def _sinks_sentence(trace: Trace) -> str:
    stored_rows = sum(sum(writer.rows.values()) for writer in trace.writers)
    sinks = "its sink" if len(trace.writers) == 1 else "their sinks, one each"
    return f"{_hands(trace)} {plural(stored_rows, 'row')} to {sinks}, out of sight of readers."


def _hands(trace: Trace) -> str:
    among, writer_count = writers_among(trace), len(trace.writers)
    if among is not None and among > writer_count:
        return (
            f"{writers_phrase(trace)}; a writer without rows makes no sink."
            f" {'It hands' if writer_count == 1 else 'They hand'}"
        )
    return f"{plural(writer_count, 'writer')} {'hands' if writer_count == 1 else 'hand'}"


def _repeated(trace: Trace) -> str:
    patterns = trace.join.multiple_matches
    if patterns is None:
        return ""
    rows = sum(pattern.rows for pattern in patterns)
    if not rows:
        return " Here no target row is matched twice."
    return (
        f" Here {plural(rows, 'target row')} {'is' if rows == 1 else 'are'} matched more than once."
    )


def _join_sentence(trace: Trace) -> str:
    says = (
        "Pairs every source row with the target rows for which ON is true; one without stays, with"
        " NULLs"
    )
    join = trace.join
    if join.rows is None:
        return f"{says}."
    parts = [
        f"{number(join.matched_rows or 0)} matched",
        f"{number(join.unmatched_rows or 0)} not matched",
    ]
    if join.unmatched_target_rows is not None:
        parts.append(f"{number(join.unmatched_target_rows)} of the target without a partner")
    return f"{says}: {', '.join(parts)}."
