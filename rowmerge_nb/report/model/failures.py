"""A failed statement: error, position, state of the table, and hint."""

from __future__ import annotations

import decimal
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import RowMergeError, position_text
from rowmerge_nb.base.words import join, number, plural
from rowmerge_nb.report.model.clauses import clause_label
from rowmerge_nb.report.model.raised import ShownRaised, all_raised, raised_text
from rowmerge_nb.report.words.columns import columns_of, width_of
from rowmerge_nb.report.words.display_values import Cell, cell, visible
from rowmerge_nb.report.words.phrases import style_of
from rowmerge_nb.trace.error_record import Consequence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.trace.error_record import ErrorRecord
    from rowmerge_nb.trace.join_record import DuplicateGroup
    from rowmerge_nb.trace.raised import Raised
    from rowmerge_nb.trace.trace import Trace

MOST_GROUPS: Final = 10
MOST_SOURCES: Final = 10


@dataclass(frozen=True)
class Excerpt:
    """Lines around the error; ``length`` carets begin at the 1-based ``column`` of the last one."""

    lines: tuple[tuple[int, str], ...]
    column: int
    length: int


@dataclass(frozen=True)
class DuplicateRow:
    """A target row, or a source row that matched it; cells are None for columns that it lacks."""

    side: str
    row: Cell
    cells: tuple[Cell | None, ...]
    clause: str
    style: str
    letter: str


@dataclass(frozen=True)
class DuplicateTable:
    """Target rows with several matches, each followed by its source rows."""

    columns: tuple[str, ...]
    right: frozenset[int]
    groups: tuple[tuple[DuplicateRow, ...], ...]
    title: str
    summary: str


@dataclass(frozen=True)
class Failure:
    """An error for display; line and column are within the statement.

    Args:
        consequences: sentences about the state of the table.
    """

    code: str
    message: str
    line: int | None
    column: int | None
    consequences: tuple[str, ...]
    hint: str
    excerpt: Excerpt | None
    duplicates: DuplicateTable | None
    raised: tuple[ShownRaised, ...] = ()

    def place(self, first_line: int) -> str:
        if self.line is None:
            return ""
        return f"{position_text(self.line, self.column, first_line).capitalize()}."


def build_failure(trace: Trace) -> Failure:
    error = trace.error
    if error is None:
        raise ValueError("The trace has no error")
    return _failure(
        error,
        trace.statement,
        _consequences(error, trace),
        _duplicates(trace.join.duplicate_groups, trace),
        error.raised,
    )


def failure_of_error(error: RowMergeError, trace: Trace | None) -> Failure:
    groups: Sequence[DuplicateGroup] = tuple(getattr(error, "groups", ())) or (
        trace.join.duplicate_groups if trace else ()
    )
    recorded = trace.error if trace is not None else None
    statement = (
        error.statement if error.statement is not None else trace.statement if trace else None
    )
    if trace is None:
        consequences: tuple[str, ...] = ()
    elif recorded is None and error.changed is not False:
        # A late interrupt: the statement of the trace finished.
        consequences = _changed(error.changed, trace)
    else:
        consequences = _consequences(recorded, trace)
    return _failure(error, statement, consequences, _duplicates(groups, trace), error.raised)


def _failure(
    error: RowMergeError | ErrorRecord,
    statement: str | None,
    consequences: tuple[str, ...],
    duplicates: DuplicateTable | None,
    raised: tuple[Raised, ...],
) -> Failure:
    # A record already has the display position.
    line, column, length = (
        error.shown
        if isinstance(error, RowMergeError)
        else (error.line, error.column, error.length)
    )
    return Failure(
        code=error.code,
        message=visible(error.message),
        line=line,
        column=column,
        consequences=consequences,
        hint=visible(_sentence(error.hint or "")),
        excerpt=_excerpt(statement, line, column, length),
        duplicates=duplicates,
        raised=all_raised(raised),
    )


_WIDEST: Final = 1_000
"""The maximum number of characters shown of a line."""


def _excerpt(
    statement: str | None, line: int | None, column: int | None, length: int
) -> Excerpt | None:
    if statement is None or line is None or column is None:
        return None
    lines = [text.rstrip("\r").replace("\t", " ") for text in statement.split("\n")]
    if not 1 <= line <= len(lines):
        return None
    room = max(1, min(length, len(lines[line - 1]) - column + 1, _WIDEST // 2))
    before = [(line - 1, _cut(lines[line - 2], 1)[0])] if line > 1 else []
    text, column = _cut(lines[line - 1], column)
    return Excerpt((*before, (line, text)), column, room)


def _cut(line: str, column: int) -> tuple[str, int]:
    if len(line) <= _WIDEST:
        return line, column
    start = max(0, column - 1 - _WIDEST // 4)
    cut = f"{'... ' if start else ''}{line[start : start + _WIDEST]}{' ...' if start + _WIDEST < len(line) else ''}"
    return cut, column - start + (len("... ") if start else 0)


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "?", "!")) else text + "."


def _consequences(error: ErrorRecord | None, trace: Trace) -> tuple[str, ...]:
    facts = error.consequences if error is not None else ()
    if error is not None and error.changed is not False:
        return (*_changed(error.changed, trace), *(f"{_sentence_of(fact)}." for fact in facts))
    facts = facts or _from_calls(trace, is_complete=error is None or error.evidence is not None)
    sentences = []
    name, rows_before = trace.target.name, trace.target.rows_before
    if name and (trace.calls or rows_before is not None):
        sentences.append(_state_of_table(error, trace))
    if not sentences and not facts:
        return ("Nothing was read or written.",)
    if facts:
        rest = "".join(f"; {_shown(fact)}" for fact in facts[1:])
        sentences.append(f"{_sentence_of(facts[0])}{rest}.")
    if trace.join.duplicate_groups and trace.join.rows is not None:
        repeated = plural(len(trace.join.duplicate_groups), "target row")
        sentences.append(
            f"{plural(trace.join.rows, 'joined row')} checked, {repeated} matched more than once."
        )
    return tuple(sentences)


def _shown(fact: Consequence) -> str:
    return visible(str(fact).rstrip("."))


def _sentence_of(fact: Consequence) -> str:
    text = _shown(fact)
    # A sentence begins with a capital, unless it begins with a name of the contract.
    return text if fact.method else text[0].upper() + text[1:]


def _state_of_table(error: ErrorRecord | None, trace: Trace) -> str:
    name, rows_before = visible(trace.target.name), trace.target.rows_before
    if error is not None and error.evidence is None:
        return f"{name} was not read afterwards."
    rows = f" ({plural(rows_before, 'row')})" if rows_before is not None else ""
    return f"{name} is unchanged{rows}."


def _changed(changed: bool | None, trace: Trace) -> tuple[str, ...]:
    name = visible(trace.target.name) or "The table"
    if changed is None:
        return (f"Whether {name} is changed is not known.",)
    return (f"{name} is changed.",)


def _from_calls(trace: Trace, *, is_complete: bool) -> tuple[Consequence, ...]:
    methods = [call.method for call in trace.calls]
    if not methods:
        return ()
    completed = [call.method for call in trace.calls if call.error is None]
    begins = [name for name in dict.fromkeys(completed) if name.startswith("begin_")]
    sinks = sum(name in {"create_merge_sink", "create_page_sink"} for name in completed)
    aborted = completed.count("abort")
    facts = [
        (
            Consequence("was called", join(begins))
            if begins
            else Consequence("was not called", "begin_merge")
        )
    ]
    created = f"{plural(sinks, 'sink')} created"
    if not sinks:
        created = "no sink was created" if is_complete else "no sink is known to be created"
    facts.append(Consequence(f"{created}, {number(aborted)} aborted" if aborted else created))
    if not any(name.startswith("finish_") for name in methods):
        facts.append(Consequence("was not called", "finish_merge"))
    if "rollback" in methods:
        facts.append(Consequence("the transaction was rolled back"))
    return tuple(facts)


def _duplicates(groups: Sequence[DuplicateGroup], trace: Trace | None) -> DuplicateTable | None:
    if not groups:
        return None
    columns: dict[str, None] = {}
    for group in groups:
        columns |= dict.fromkeys(group.target)
    for group in groups:
        for source in group.sources:
            columns |= dict.fromkeys(source.values)
    rows = tuple(_group(group, tuple(columns), trace) for group in groups[:MOST_GROUPS])
    times = (
        "Target row matched more than once"
        if len(groups) == 1
        else "Target rows matched more than once"
    )
    same = all(group.case_number is not None for group in groups)
    summary = "by the same clause" if same else "by several clauses"
    if len(groups) > MOST_GROUPS:
        summary += f"; first {MOST_GROUPS} of {number(len(groups))}"
    values = {
        name: [row.get(name) for group in groups for row in _rows_of(group)] for name in columns
    }
    right = frozenset(
        i for i, name in enumerate(columns) if all(_number_or_null(value) for value in values[name])
    )
    return DuplicateTable(tuple(map(visible, columns)), right, rows, times, summary)


def _rows_of(group: DuplicateGroup) -> list[Mapping[str, Any]]:
    return [group.target, *(source.values for source in group.sources)]


def _number_or_null(value: Any) -> bool:
    return value is None or (
        isinstance(value, (int, float, decimal.Decimal)) and not isinstance(value, bool)
    )


def _group(
    group: DuplicateGroup, columns: tuple[str, ...], trace: Trace | None
) -> tuple[DuplicateRow, ...]:
    target = DuplicateRow(
        "target", _row_name("row_id", group.row_id), _cells(group.target, columns), "", "", ""
    )
    rows = [target]
    for source in group.sources[:MOST_SOURCES]:
        clause, style, letter = _clause(source.case_number, trace)
        name = _row_name("row", source.source_row) if source.source_row is not None else Cell("")
        rows.append(
            DuplicateRow("source", name, _cells(source.values, columns), clause, style, letter)
        )
    more = max(group.total, len(group.sources)) - min(len(group.sources), MOST_SOURCES)
    if more > 0:
        summary = Cell(f"and {plural(more, 'more source row')}")
        rows.append(DuplicateRow("source", summary, (None,) * len(columns), "", "", ""))
    return tuple(rows)


def _row_name(word: str, value: Any) -> Cell:
    display_value = cell(value)
    return Cell(f"{word} {display_value.text}", title=display_value.title)


def _cells(values: Mapping[str, Any], columns: tuple[str, ...]) -> tuple[Cell | None, ...]:
    return tuple(cell(values[name]) if name in values else None for name in columns)


def _clause(case_number: int, trace: Trace | None) -> tuple[str, str, str]:
    record = (
        next((record for record in trace.clauses if record.number == case_number), None)
        if trace
        else None
    )
    if case_number < 0:
        return f"{number(case_number)}, no clause fired", "N", "·"
    if record is None:
        return clause_label(case_number), "", ""
    # The clause up to its operation identifies it; its assignments are in the statement.
    words = cell(" ".join(record.head.split()), 72).text
    return (
        f"{clause_label(case_number)}, {words}",
        style_of(record.operation),
        record.operation.letter,
    )


def failure_text(failure: Failure, first_line: int, width: int) -> list[str]:
    lines = textwrap.wrap(f"{failure.code}: {failure.message}", width)
    context = " ".join(part for part in (failure.place(first_line), *failure.consequences) if part)
    lines += textwrap.wrap(context, width)
    if failure.excerpt is not None:
        lines += ["", *_excerpt_lines(failure.excerpt, first_line)]
    if failure.duplicates is not None:
        lines += [
            "",
            f"{failure.duplicates.title}, {failure.duplicates.summary}",
            *_duplicate_lines(failure.duplicates),
        ]
    for raised in failure.raised:
        lines += ["", *raised_text(raised, width)]
    if failure.hint:
        lines += ["", *textwrap.wrap(failure.hint, width)]
    return lines


def _excerpt_lines(excerpt: Excerpt, first_line: int) -> list[str]:
    width = len(str(excerpt.lines[-1][0] + first_line - 1))
    lines = [
        f"{at + first_line - 1:>{width}}  {visible(text)}".rstrip() for at, text in excerpt.lines
    ]
    before = visible(excerpt.lines[-1][1][: excerpt.column - 1])
    return [*lines, " " * (width + 2 + width_of(before)) + "^" * excerpt.length]


def _duplicate_lines(table: DuplicateTable) -> list[str]:
    grid = [["", "row", *table.columns, "clause"]]
    for group in table.groups:
        for row in group:
            cells = ["" if value is None else value.text for value in row.cells]
            grid.append([row.side, row.row.text, *cells, f"{row.letter} {row.clause}".strip()])
    return columns_of(grid, right={index + 2 for index in table.right})
