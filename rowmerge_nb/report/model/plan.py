"""The plan for display, with its rows, lanes and writers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import RepeatedMatches, StatementState
from rowmerge_nb.base.words import MINUS, number, number_or_blank, plural
from rowmerge_nb.report.model.clauses import (
    Lane,
    build_lanes,
    case_branches,
    case_text,
    operation_counts,
)
from rowmerge_nb.report.model.placing import DELETE_AND_INSERT, exchange_of, passage, writers_among
from rowmerge_nb.report.model.repeated import Repeated, build_repeated
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.report.words.phrases import style_of
from rowmerge_nb.spi.page import MERGE_ROW
from rowmerge_nb.trace.node_records import (
    JoinFacts,
    JoinType,
    MarkDistinctFacts,
    ProjectFacts,
    QueryFacts,
    ScanFacts,
    WriterFacts,
    explain_text,
)
from rowmerge_nb.trace.samples import count_row_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.base.words import KnownRows
    from rowmerge_nb.trace.contract_calls import WriterRecord
    from rowmerge_nb.trace.node_records import BranchRecord, NodeRecord
    from rowmerge_nb.trace.trace import Trace

CHANGERS: Final = frozenset({"DeleteRows", "UpdateRows"})
"""Operators that return rows to the page sources that read them."""
WRITERS: Final = frozenset({"MergeWriter", "TableWriter", *CHANGERS})
"""Operators that consume rows and produce fragments."""
_JOINED_KINDS: Final = frozenset({"Join", "MarkDistinct", "DuplicateCheck"})


@dataclass(frozen=True)
class Inner:
    """A node of a source query: its name, arguments, inputs, and row count (None if not counted)."""

    title: str
    arguments: str
    sources: tuple[Inner, ...]
    rows: int | None = None

    def upward(self) -> Iterator[Inner]:
        for source in self.sources:
            yield from source.upward()
        yield self


@dataclass(frozen=True)
class Operator:
    """A node of the plan.

    Args:
        kind: the node's kind; ``Case`` for the Project with the CASE.
        rows_in: input rows per source; ``rows_out``: output rows; None if unknown.
        takes: input other than rows: ``2 fragments``; ``carries``: such output.
        notes: facts of this run, one line each.
        short: the part of the arguments that distinguishes it from others of its kind.
        would: the expected output rows of a plan that was not run.
        passage: for ``transform_page``, how input rows become output rows.
        inside: the last node of a source query.
    """

    id: str
    kind: str
    title: str
    trino: str
    arguments: str
    sources: tuple[str, ...]
    rows_in: tuple[int | None, ...]
    rows_out: int | None
    takes: str
    carries: str
    notes: tuple[str, ...]
    meaning: str
    exchange: bool = False
    short: str = ""
    would: KnownRows | None = None
    passage: str = ""
    inside: Inner | None = None

    @property
    def rows_text(self) -> str:
        if self.rows_out is None and not self.carries:
            return self.would_text
        return self.carries or plural(self.rows_out or 0, "row")

    @property
    def would_text(self) -> str:
        return "" if self.would is None else f"would be {self.would}"

    @property
    def in_text(self) -> str:
        return self.takes or " + ".join(number(rows) for rows in self.rows_in if rows is not None)

    @property
    def out_text(self) -> str:
        return self.carries or number_or_blank(self.rows_out)


@dataclass(frozen=True)
class PlanWriter:
    """The rows that a writer stored, per letter D, U, I."""

    number: int
    rows: dict[str, int]
    pages: int
    fragments: int
    state: str

    @property
    def total(self) -> int:
        return sum(self.rows.values())


@dataclass(frozen=True)
class Plan:
    """A plan with the counts of its run.

    Args:
        operators: root first, depth first.
        outputs: rows out of ``transform_page`` per letter D, U, I; None if nothing ran, absent if
            no clause has the operation.
        dashed: the sinks are not reached (dry run).
        matched: joined rows with both sides; ``unmatched``: those without a target row.
        by_source: rows of a FULL join without a source row; None if nothing ran.
        unmatched_text: for other joins, a sentence about the unmatched target rows.
        printed: the EXPLAIN output of a plan that was not run.
    """

    operators: tuple[Operator, ...]
    lanes: tuple[Lane, ...]
    branches: tuple[BranchRecord, ...]
    outputs: dict[str, int | None]
    writers: tuple[PlanWriter, ...]
    has_counts: bool
    dashed: bool
    matched: int | None
    unmatched: int | None
    by_source: int | None
    join: JoinType | None
    unmatched_text: str
    case_lines: tuple[str, ...]
    legend: str
    paradigm: str
    printed: tuple[str, ...] = ()
    repeated: Repeated | None = None
    among: int | None = None

    @property
    def would(self) -> tuple[Operator, ...]:
        """The operators with expected rows, in execution order."""
        return tuple(operator for operator in self.in_order if operator.would is not None)

    @property
    def in_order(self) -> tuple[Operator, ...]:
        """The operators in execution order, the target's side first."""
        ordered: list[Operator] = []

        def visit(operator: Operator) -> None:
            for source in operator.sources:
                visit(self.get(source))
            ordered.append(operator)

        visit(self.operators[0])
        return tuple(ordered)

    def get(self, identity: str) -> Operator:
        return next(operator for operator in self.operators if operator.id == identity)

    def of_kind(self, kind: str) -> Operator | None:
        return next((operator for operator in self.operators if operator.kind == kind), None)


def build_plan(trace: Trace) -> Plan | None:
    if not trace.plan:
        return None
    outputs = _outputs(trace)
    has_counts = any(lane.rows is not None for lane in build_lanes(trace)) or any(
        out is not None for _, out in trace.rows.values()
    )
    legend = (
        "rows on the edges; D delete, U update, I insert, · none"
        if has_counts and trace.clauses
        else ""
    )
    unrun = trace.state in {StatementState.PLANNED, StatementState.EXPLAINED}
    if trace.state == StatementState.PLANNED:
        legend = "dashed: the sinks are not reached"
    return Plan(
        operators=tuple(_operator(record, trace) for record in trace.plan),
        lanes=build_lanes(trace),
        branches=case_branches(trace.plan),
        outputs=outputs,
        writers=tuple(_writer(record) for record in trace.writers),
        has_counts=has_counts,
        dashed=trace.state == StatementState.PLANNED,
        matched=trace.join.matched_rows,
        unmatched=trace.join.unmatched_rows,
        by_source=trace.join.unmatched_target_rows,
        join=next((_join_type(record) for record in trace.plan if record.kind == "Join"), None),
        unmatched_text=_alone(trace),
        case_lines=case_text(trace),
        legend=legend,
        paradigm=trace.settings.paradigm,
        printed=(
            tuple(visible(line) for line in explain_text(trace.plan).split("\n")) if unrun else ()
        ),
        repeated=build_repeated(trace),
        among=writers_among(trace),
    )


def _outputs(trace: Trace) -> dict[str, int | None]:
    """Return the rows out of ``transform_page``: under DELETE_ROW_AND_INSERT_ROW, an update is a
    delete and an insert.
    """
    counts = operation_counts(trace)
    unknown = None in counts.values()
    requested = {style: counts.get(style) or 0 for style in "DUI"}
    present = {style: style in counts for style in "DUI"}
    if trace.settings.paradigm == DELETE_AND_INSERT:
        requested = {"D": requested["D"] + requested["U"], "I": requested["I"] + requested["U"]}
        present = {"D": present["D"] or present["U"], "I": present["I"] or present["U"]}
    return {style: None if unknown else rows for style, rows in requested.items() if present[style]}


def _writer(record: WriterRecord) -> PlanWriter:
    rows: dict[str, int] = {}
    for operation, count in sorted(record.rows.items()):
        rows[style_of(operation)] = rows.get(style_of(operation), 0) + count
    ordered = {style: rows[style] for style in "DUI" if rows.get(style)}
    return PlanWriter(record.writer, ordered, record.pages, record.fragments, record.state)


def _alone(trace: Trace) -> str:
    """Count the unmatched target rows in words; ``""`` unless all joined rows were recorded."""
    sample = trace.samples.pages
    if (
        trace.kind != "MERGE"
        or trace.target.rows_before is None
        or sample is None
        or not sample.complete
        or trace.join.unmatched_target_rows is not None
    ):
        return ""
    unmatched_rows = trace.target.rows_before - count_row_ids(sample)
    return (
        f"{plural(unmatched_rows, 'target row')} without a partner"
        f" {'stays' if unmatched_rows == 1 else 'stay'} untouched"
        if unmatched_rows > 0
        else ""
    )


def _operator(record: NodeRecord, trace: Trace) -> Operator:
    rows_in, rows_out = _rows(record, trace)
    return Operator(
        id=record.id,
        kind="Case" if record.branches else record.kind,
        title=_title(record),
        trino=record.name,
        arguments=visible(_case_arguments(record) if record.branches else record.arguments),
        sources=record.sources,
        rows_in=rows_in,
        rows_out=rows_out,
        takes=_fragments(trace) if record.kind == "TableFinish" else "",
        carries=_carries(record, trace),
        notes=tuple(_notes(record, trace)),
        meaning=_CASE if len(record.branches) > 1 else record.meaning,
        exchange=_is_exchanged(record),
        short=visible(_short(record)),
        would=record.would,
        passage=(
            passage(trace, rows_in[0] or 0, rows_out or 0)
            if record.kind == "MergeProcessor" and rows_out is not None
            else ""
        ),
        inside=_inside(record.facts.nodes) if isinstance(record.facts, QueryFacts) else None,
    )


def _inside(nodes: Sequence[NodeRecord]) -> Inner | None:
    records = {record.id: record for record in nodes}

    def inner(record: NodeRecord) -> Inner:
        sources = (records[source] for source in record.sources)
        return Inner(
            visible(record.name), visible(record.arguments), tuple(map(inner, sources)), record.rows
        )

    return inner(nodes[0]) if nodes else None


def _is_exchanged(record: NodeRecord) -> bool:
    return isinstance(record.facts, MarkDistinctFacts) and record.facts.exchange


def _short(record: NodeRecord) -> str:
    if isinstance(record.facts, ScanFacts):
        return record.facts.name
    if isinstance(record.facts, ProjectFacts) and not record.branches:
        return next(iter(record.facts.assigned), "")
    return ""


_TITLES: Final = {
    "CheckConstraints": "CHECK",
    "MergeProcessor": "transform_page",
    "DuplicateCheck": "DuplicateCheck",
    "TableFinish": "TableFinish",
}


_CASE: Final = (
    "Tries the WHEN clauses in their order; the first that is true fills merge_row,"
    " and no later clause is tried."
)


def _case_arguments(record: NodeRecord) -> str:
    """A plan without conditions has no CASE: each row gets the same merge row."""
    return f"{MERGE_ROW} := row(…)" if len(record.branches) == 1 else ""


def _title(record: NodeRecord) -> str:
    if len(record.branches) == 1:
        return "Project"
    if record.kind == "Join":
        return f"{_join_type(record).name} JOIN"
    return "CASE" if record.branches else _TITLES.get(record.kind, record.name)


def _join_type(record: NodeRecord) -> JoinType:
    return record.facts.type if isinstance(record.facts, JoinFacts) else JoinType.RIGHT


def _rows(record: NodeRecord, trace: Trace) -> tuple[tuple[int | None, ...], int | None]:
    if record.kind in {*WRITERS, "TableFinish", "Output"}:
        # Above the writers, only fragments and one count are passed: see `_carries`.
        return (trace.rows.get(record.id, ((), None))[0] if record.kind in WRITERS else ()), None
    rows_in, rows_out = trace.rows.get(record.id, ((), None))
    if (
        rows_out is None
        and trace.join.rows is not None
        and (record.kind in _JOINED_KINDS or record.branches)
    ):
        rows_out = trace.join.rows
    return rows_in, rows_out


def _fragments(trace: Trace) -> str:
    return (
        plural(sum(writer.fragments for writer in trace.writers), "fragment")
        if trace.writers
        else ""
    )


def _carries(record: NodeRecord, trace: Trace) -> str:
    if record.kind in WRITERS:
        return _fragments(trace)
    return (
        f"row count {number(trace.count)}"
        if record.kind == "TableFinish" and trace.count is not None
        else ""
    )


def _notes(record: NodeRecord, trace: Trace) -> list[str]:
    join = trace.join
    if record.kind == "Join" and join.matched_rows is not None and join.unmatched_rows is not None:
        notes = [f"matched {number(join.matched_rows)}, not matched {number(join.unmatched_rows)}"]
        if join.unmatched_target_rows is not None:
            notes[0] += f" by target and {number(join.unmatched_target_rows)} by source"
        return [*notes, unmatched_rows] if (unmatched_rows := _alone(trace)) else notes
    if record.kind == "MarkDistinct":
        return ["rows are first exchanged by unique_id"] if _is_exchanged(record) else []
    if record.kind == "DuplicateCheck":
        return _check_notes(trace)
    if isinstance(record.facts, WriterFacts) and record.facts.fused:
        below = (
            "transform_page"
            if any(other.kind == "MergeProcessor" for other in trace.plan)
            else "the Project below it"
        )
        return [f"runs in one pass with {below}"]
    if record.kind in CHANGERS:
        return [
            (
                f"{'delete_rows' if record.kind == 'DeleteRows' else 'update_rows'}, on the page source"
                " that read the rows"
            )
        ]
    if record.kind == "Exchange":
        exchange = exchange_of(trace)
        by_old = (
            exchange is not None
            and not exchange.others
            and bool({"D", "U"} & operation_counts(trace).keys())
        )
        return ["a row to delete goes by its old values"] if by_old else []
    if record.kind == "TableFinish":
        return _count_notes(trace)
    return []


def _check_notes(trace: Trace) -> list[str]:
    groups, matched_rows = trace.join.duplicate_groups, trace.join.matched_rows
    is_finished = trace.state == StatementState.FINISHED
    if groups:
        return [f"{plural(len(groups), 'target row')} matched more than once"]
    if is_finished and trace.settings.duplicates == RepeatedMatches.STANDARD:
        return ["no target row is changed twice"]
    if is_finished and matched_rows is not None:
        return [f"{plural(matched_rows, 'matched row')}, no pair twice"]
    return (
        ["fails on a repeated key"]
        if trace.state in {StatementState.EXPLAINED, StatementState.PLANNED}
        else []
    )


def _count_notes(trace: Trace) -> list[str]:
    if not trace.writers or trace.count is None:
        return []
    positions = sum(sum(writer.rows.values()) for writer in trace.writers)
    derived = positions - sum(writer.counted for writer in trace.writers)
    sum_ = (
        f"{number(positions)} stored {MINUS} {plural(derived, 'insert half', 'insert halves')} of"
        " updates = "
        if derived
        else ""
    )
    return [f"{_fragments(trace)}, row count {sum_}{number(trace.count)}"]
