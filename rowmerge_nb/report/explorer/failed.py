"""The explorer's view of a failed statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.base.errors import position_text
from rowmerge_nb.base.words import code_parts, plural
from rowmerge_nb.report.model.clauses import clause_label
from rowmerge_nb.report.model.raised import all_raised
from rowmerge_nb.report.words.display_values import cell, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rowmerge_nb.trace.trace import Trace

_NODES: Final = {
    "TableScan": "read",
    "Join": "join",
    "SemiJoin": "join",
    "Project": "case",
    "MarkDistinct": "distinct",
    "DuplicateCheck": "distinct",
    "MergeProcessor": "transform",
    "Exchange": "exchange",
    "MergeWriter": "sinks",
    "commit": "commit",
}
"""The step of a plan node, or of the error's own step name."""


def ended_steps(trace: Trace, steps: list[dict[str, Any]], first_line: int) -> list[dict[str, Any]]:
    error = trace.error
    assert error is not None
    keys = [step["key"] for step in steps]
    key = _key(trace)
    if key not in keys and error.step in _NODES and trace.kind != "MERGE":
        # An UPDATE or DELETE has no CASE: it computes while reading.
        key = "read"
    position = (
        f"{position_text(error.line, error.column, first_line)}: " if error.line is not None else ""
    )
    hint = f" {error.hint}" if error.hint else ""
    text = f"It failed here. {position}{error.code}: {error.message}.{hint}".replace("..", ".")
    says = visible("".join(part for part, _ in code_parts(text)))
    if key in keys:
        at = keys.index(key)
        return [*steps[:at], {**steps[at], "says": says}]
    # Steps without rows: the begin call, planning, an interrupt.
    reached = len(steps) if trace.samples.pages is not None else 0
    return [
        *steps[:reached],
        {
            "key": "failed",
            "name": visible(error.step) or "failed",
            "says": says,
            "aside": "",
            "examples": [],
            "legend": [],
        },
    ]


def _key(trace: Trace) -> str:
    assert trace.error is not None
    step = trace.error.step
    if step.startswith("finish_"):
        return "finish"
    if any(call.error is not None and call.number is not None for call in trace.calls):
        return "sinks"
    return _NODES.get(step, "failed")


def absent_parts(trace: Trace) -> list[str]:
    """Return sentences about the parts that a failed statement's trace lacks."""
    if trace.state != StatementState.FAILED:
        return []
    sentences = []
    if trace.samples.pages is None:
        sentences.append(
            "No page is shown: tasks return their pages when they finish, and they did not finish."
        )
        if trace.join.duplicate_groups:
            sentences.append("The rows are those of the error. The others are unknown.")
        else:
            sentences.append(
                "Rows are neither shown nor counted, for the same reason. If the error is about a"
                " row, the message names the first one."
            )
    if not any(call.number is not None for call in trace.calls):
        sentences.append("The calls are the coordinator's: no task reported any.")
    return sentences


def raised_parts(trace: Trace) -> list[dict[str, Any]]:
    return [
        {
            "call": f"{error.method}, {error.where}",
            "what": error.what,
            "places": [*error.ways, *([error.place] if error.place else [])],
            "code": [[at, text, marked] for at, text, marked in error.code],
            "causes": [{"what": words, "places": [*places]} for words, places in error.causes],
            "stack": {"title": error.stack_title, "text": "\n".join(error.stack)},
            "title": error.page.title if error.page is not None else "",
            "columns": (
                [
                    {"name": name, "right": index in error.page.right}
                    for index, name in enumerate(error.page.columns)
                ]
                if error.page is not None
                else []
            ),
            "rows": (
                [[None if value.null else value.text for value in row] for row in error.page.rows]
                if error.page is not None
                else []
            ),
            "handle": error.handle,
        }
        for error in all_raised(() if trace.error is None else trace.error.raised)
    ]


def sides_of_groups(trace: Trace) -> dict[str, list[dict[str, Any]]]:
    """Return the columns of the rows from `matched_rows`."""
    sources = (source.values for group in trace.join.duplicate_groups for source in group.sources)
    targets = (group.target for group in trace.join.duplicate_groups)
    return {"source": _columns(sources), "target": _columns(targets)}


def _columns(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    first: Mapping[str, Any] = next(iter(rows), {})
    return [
        {"name": visible(name), "right": isinstance(value, int | float)}
        for name, value in first.items()
    ]


def matched_rows(trace: Trace, most: int) -> list[dict[str, Any]]:
    """Return up to ``most`` source rows whose repeated matches ended the statement."""
    return [row for row, _ in zip(_matched(trace), range(most), strict=False)]


def _matched(trace: Trace) -> Iterator[dict[str, Any]]:
    for partner, group in enumerate(trace.join.duplicate_groups):
        for source in group.sources:
            clause = next((one for one in trace.clauses if one.number == source.case_number), None)
            word = clause.operation.name if clause is not None and clause.number >= 0 else "none"
            takes = (
                f"{clause_label(source.case_number)} takes it"
                if source.case_number >= 0
                else "no clause takes it"
            )
            values = _texts(source.values)
            yield {
                "number": source.source_row,
                "name": values[0] if values else None,
                "group": "matched more than once",
                "source": values or None,
                "target": _texts(group.target) or None,
                "marks": [],
                "style": word[0] if word != "none" else "N",
                "fate": word,
                "clause": source.case_number,
                "gist": (
                    f"One of {plural(group.total, 'source row')} that match this target row;"
                    f" {takes}. This ended the statement."
                ),
                "reasons": [],
                "on": None,
                "near": "",
                "verdicts": [],
                "values": [],
                "distinct": ["", "This row is one of those that ended the statement."],
                "becomes": [],
                "writers": [],
                "finish": [],
                "made": None,
                "partner": partner,
            }


def _texts(values: Mapping[str, Any]) -> list[str | None]:
    return [
        None if (display_cell := cell(value)).null else display_cell.text
        for value in values.values()
    ]
