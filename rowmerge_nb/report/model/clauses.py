"""The WHEN clauses of a statement, and their lanes in a drawing."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import number, plural
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.report.words.phrases import operation_word, style_of
from rowmerge_nb.spi.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.trace.clause_record import ClauseRecord
    from rowmerge_nb.trace.node_records import BranchRecord, NodeRecord
    from rowmerge_nb.trace.trace import Trace

MOST_LANES: Final = 6
"""With more clauses, a drawing has one lane per operation."""
MOST_LINES: Final = 16
"""The maximum number of lines shown before the clauses: a source may be a thousand rows of VALUES.
"""
MOST_LETTERS: Final = 600
"""The maximum number of characters shown of a line."""


@dataclass(frozen=True)
class ClauseRow:
    """A row of the clauses table.

    Args:
        number: the case number; ``label`` is its display form.
        lines: the clause as written, continuation lines indented by two.
    """

    number: int
    label: str
    word: str
    style: str
    letter: str
    lines: tuple[str, ...]
    writes: str
    line: int | None
    rows: int | None
    share: float


@dataclass(frozen=True)
class ClauseTable:
    """The clauses in the order tried, rows without a clause last, with the statement's other lines."""

    rows: tuple[ClauseRow, ...]
    total: int | None
    total_label: str
    head: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    tail_line: int = 1


@dataclass(frozen=True)
class Lane:
    """A path through the drawing: ``clause 0``, ``none −1``, or ``3 clauses`` of one operation."""

    label: str
    operation: Operation
    cases: tuple[int, ...]
    rows: int | None

    @property
    def style(self) -> str:
        return style_of(self.operation)


def build_clauses(trace: Trace) -> ClauseTable | None:
    if not trace.clauses or trace.kind != "MERGE":
        return None
    counts = [record.rows for record in trace.clauses]
    total = (
        sum(rows for rows in counts if rows is not None)
        if all(rows is not None for rows in counts)
        else None
    )
    writes = _writes(trace.plan)
    rows = tuple(_row(record, total, writes) for record in trace.clauses)
    joined = trace.join.unmatched_target_rows is not None or (
        trace.join.source_rows is not None and total is not None and total != trace.join.source_rows
    )
    head, tail, tail_line = _around(trace)
    return ClauseTable(
        rows, total, "joined rows" if joined else "source rows", head, tail, tail_line
    )


def _around(trace: Trace) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    clauses = [record for record in trace.clauses if record.number >= 0]
    starts = [_start(trace.statement, record) for record in clauses]
    if not clauses or min(starts) < 0:
        return (), (), 1
    end = starts[-1] + len(clauses[-1].text)
    behind = trace.statement[end:]
    line = trace.statement.count("\n", 0, end + len(behind) - len(behind.lstrip())) + 1
    return _written(trace.statement[: starts[0]]), _written(behind), line


def _start(statement: str, record: ClauseRecord) -> int:
    before = "\n".join(statement.split("\n")[: record.line - 1])
    return statement.find(record.text, len(before))


def _written(text: str) -> tuple[str, ...]:
    lines = [
        line.rstrip()
        for line in text.expandtabs(4).replace("\r", "").strip().split("\n")
        if line.strip()
    ]
    if len(lines) > MOST_LINES:
        rest = len(lines) - MOST_LINES + 1
        lines = [*lines[: MOST_LINES - 2], f"… {plural(rest, 'more line')} …", lines[-1]]
    return tuple(visible(_cut(line)) for line in lines)


def _cut(line: str) -> str:
    """Cut the middle of a long line: the name of a source is at its end."""
    if len(line) <= MOST_LETTERS:
        return line
    half = MOST_LETTERS // 2
    return f"{line[:half]} … {number(len(line) - 2 * half)} more letters … {line[-half:]}"


def _row(record: ClauseRecord, total: int | None, writes: Mapping[int, str]) -> ClauseRow:
    none = record.number < 0
    text = (
        "no clause fires: target row stays, source row unused"
        if record.rows is None
        else "no clause fired: target row stays, source row unused"
    )
    return ClauseRow(
        number=record.number,
        label=number(record.number),
        word=operation_word(record.operation),
        style=style_of(record.operation),
        letter=record.operation.letter,
        lines=(text,) if none else _clause_lines(record.text),
        writes="nothing" if none else writes.get(record.number, ""),
        line=None if none else record.line,
        rows=record.rows,
        share=record.rows / total if record.rows and total else 0.0,
    )


def _clause_lines(text: str) -> tuple[str, ...]:
    first, _, rest = text.expandtabs(4).replace("\r", "").strip().partition("\n")
    following = textwrap.dedent(rest).split("\n")
    return (
        visible(_cut(first.rstrip())),
        *(f"  {visible(_cut(line.rstrip()))}" for line in following if line.strip()),
    )


def case_branches(plan: Sequence[NodeRecord]) -> tuple[BranchRecord, ...]:
    """Return the branches of the plan's CASE, ELSE last; empty without one."""
    return next((record.branches for record in plan if record.branches), ())


def _writes(plan: Sequence[NodeRecord]) -> dict[int, str]:
    processor = next((record for record in plan if record.kind == "MergeProcessor"), None)
    if processor is None:
        return {}
    names = [name for name, _ in processor.layout]
    result = {}
    for branch in case_branches(plan):
        if branch.operation is Operation.NONE:
            result[branch.number] = "nothing"
        elif branch.operation is Operation.DELETE:
            result[branch.number] = "row removed"
        elif branch.operation is Operation.UPDATE:
            result[branch.number] = ", ".join(branch.assigned)
        elif branch.operation is Operation.INSERT:
            # In table order, as the row is written.
            result[branch.number] = ", ".join(name for name in names if name in branch.assigned)
    return result


def build_lanes(trace: Trace) -> tuple[Lane, ...]:
    """Return one lane per clause, or per operation if there are too many clauses."""
    if len(trace.clauses) <= MOST_LANES + 1:
        return tuple(
            Lane(clause_label(record.number), record.operation, (record.number,), record.rows)
            for record in trace.clauses
        )
    lanes = []
    # Deletes, updates, inserts: an update between the two splits into both without a crossing.
    for operation in sorted(
        {record.operation for record in trace.clauses}, key=lambda op: "DUI·".index(op.letter)
    ):
        records = [record for record in trace.clauses if record.operation is operation]
        rows = (
            None
            if any(record.rows is None for record in records)
            else sum(record.rows or 0 for record in records)
        )
        label = clause_label(records[0].number) if len(records) == 1 else f"{len(records)} clauses"
        lanes.append(Lane(label, operation, tuple(record.number for record in records), rows))
    return tuple(lanes)


def clause_label(case_number: int) -> str:
    """Return the display name of a clause, by Trino's case number.

    >>> clause_label(0), clause_label(-1)
    ('clause 0', 'none −1')
    """
    return f"clause {case_number}" if case_number >= 0 else f"none {number(case_number)}"


def operation_counts(trace: Trace) -> dict[str, int | None]:
    """Count joined rows per style (D, U, I, N) of the clauses; None if nothing ran."""
    counts: dict[str, int | None] = {}
    for record in trace.clauses:
        style = style_of(record.operation)
        counts[style] = None if record.rows is None else (counts.get(style) or 0) + record.rows
    return counts


def condition_text(branch: BranchRecord) -> str:
    return visible(" ".join(branch.condition.split()))


def case_text(trace: Trace) -> tuple[str, ...]:
    """Return the lines of the searched CASE as the engine evaluates it; empty without one."""
    branches = case_branches(trace.plan)
    if not branches:
        return ()
    if len(branches) == 1:
        return (
            visible(
                f"row({', '.join([*branches[0].values, 'true', str(int(branches[0].operation)), '0'])})"
                " AS merge_row"
            ),
        )
    lines = ["CASE"]
    for branch in branches:
        values = ", ".join(
            [*branch.values, branch.present, str(int(branch.operation)), str(branch.number)]
        )
        head = "  ELSE" if branch.matched is None else f"  WHEN {condition_text(branch)} THEN"
        word = "DO NOTHING" if branch.operation is Operation.NONE else branch.operation.name
        note = "none" if branch.number < 0 else f"clause {branch.number}, {word}"
        whole_null = trace.settings.era == "current" and branch.matched is None
        lines += [
            head,
            (
                "    NULL"
                if whole_null
                else visible(f"    row({' '.join(values.split())})  -- {note}")
            ),
        ]
    return (*lines, "END AS merge_row")
