"""The plan as a report shows it: operators with their rows, lanes through the CASE, and what went to which writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import RepeatedMatches, StatementState
from rowmerge_nb.base.words import MINUS, number, plural
from rowmerge_nb.report.model.clauses import Lane, build_lanes, case_branches, case_text, operation_counts
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
    from rowmerge_nb.trace.node_records import BranchRecord, NodeRecord
    from rowmerge_nb.trace.trace import Trace, WriterRecord

CHANGERS: Final = frozenset({"DeleteRows", "UpdateRows"})
"""The kinds of operators that give rows back to the page sources which read them."""
WRITERS: Final = frozenset({"MergeWriter", "TableWriter", *CHANGERS})
"""The kinds of operators that rows go into and fragments come out of."""
_JOINED_KINDS: Final = frozenset({"Join", "MarkDistinct", "DuplicateCheck"})


@dataclass(frozen=True)
class Inner:
    """A node of a source query.

    Args:
        title: its name.
        arguments: what stands behind it.
        sources: the nodes that it takes rows of.
        rows: rows that came out; None if they were not counted.
    """

    title: str
    arguments: str
    sources: tuple[Inner, ...]
    rows: int | None = None

    def upward(self) -> Iterator[Inner]:
        """Yield all nodes below it, and then the node."""
        for source in self.sources:
            yield from source.upward()
        yield self


@dataclass(frozen=True)
class Operator:
    """A node of the plan.

    Args:
        id: its id in the plan, ``sources`` those of the nodes below.
        kind: the node's kind; ``case`` for the Project with the CASE.
        title: what it is called in the report; ``trino`` the name that Trino prints.
        arguments: what stands behind the name.
        rows_in: rows from each source, ``rows_out`` rows that came out; None where not known.
        takes: what goes in where it is no rows: ``2 fragments``; ``carries`` what comes out.
        notes: facts of this run, one line each.
        meaning: one sentence for those who see it the first time.
        exchange: its rows are redistributed before it.
        short: enough of the arguments to tell it from others of its kind.
        would: of a plan that was not run: how many rows would come out, as far as that is known.
        passage: of ``transform_page``: how the rows that go in become those that come out.
        inside: of a source query its last node, with those below it.
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
        """What came out, or would, in words; ``""`` where nothing is known."""
        if self.rows_out is None and not self.carries:
            return self.would_text
        return self.carries or plural(self.rows_out or 0, "row")

    @property
    def would_text(self) -> str:
        """What would come out, in words; ``""`` where nothing is known, or it was run."""
        return "" if self.would is None else f"would be {self.would}"

    @property
    def in_text(self) -> str:
        """What goes in, rows of several sources as a sum."""
        return self.takes or " + ".join(number(rows) for rows in self.rows_in if rows is not None)

    @property
    def out_text(self) -> str:
        """What came out, in short."""
        return self.carries or ("" if self.rows_out is None else number(self.rows_out))


@dataclass(frozen=True)
class Writer:
    """What one writer stored, per letter D, U, I."""

    number: int
    rows: dict[str, int]
    pages: int
    fragments: int
    state: str

    @property
    def total(self) -> int:
        """Rows in all."""
        return sum(self.rows.values())


@dataclass(frozen=True)
class Plan:
    """A plan with what ran through it.

    Args:
        operators: root first, depth first.
        lanes: the ways through the CASE.
        branches: the CASE's branches, ELSE last.
        outputs: per letter D, U, I the rows that left ``transform_page``; None where nothing ran, absent where no clause asks for it.
        writers: one per sink.
        counted: numbers are there.
        dashed: the sinks are not reached (dry run).
        matched: rows out of the join with both sides, and ``unmatched`` without a target row.
        by_source: rows out of a FULL join without a source row; None where nothing ran.
        join: which rows without a partner the join keeps; None without a join.
        alone: of another join, how many target rows met no source row.
        case_lines: the CASE as the engine evaluates it.
        legend: how to read the drawing.
        paradigm: the row change paradigm.
        printed: of a plan that was not run: what EXPLAIN prints of it, line by line.
        repeated: what Trino's rule about repeated matches is beside that of the SQL standard; None where nothing is checked.
        among: how many writers the exchange chose among; None where that is not known.
    """

    operators: tuple[Operator, ...]
    lanes: tuple[Lane, ...]
    branches: tuple[BranchRecord, ...]
    outputs: dict[str, int | None]
    writers: tuple[Writer, ...]
    counted: bool
    dashed: bool
    matched: int | None
    unmatched: int | None
    by_source: int | None
    join: JoinType | None
    alone: str
    case_lines: tuple[str, ...]
    legend: str
    paradigm: str
    printed: tuple[str, ...] = ()
    repeated: Repeated | None = None
    among: int | None = None

    @property
    def would(self) -> tuple[Operator, ...]:
        """The operators, in the order of `in_order`, of which it is known how many rows would come out."""
        return tuple(operator for operator in self.in_order if operator.would is not None)

    @property
    def in_order(self) -> tuple[Operator, ...]:
        """The operators in the order in which rows go through them: the target's side, the source's side, then the rest."""
        done: list[Operator] = []

        def visit(operator: Operator) -> None:
            for source in operator.sources:
                visit(self.get(source))
            done.append(operator)

        visit(self.operators[0])
        return tuple(done)

    def get(self, identity: str) -> Operator:
        """Return the operator of an id."""
        return next(operator for operator in self.operators if operator.id == identity)

    def of_kind(self, kind: str) -> Operator | None:
        """Return the first operator of a kind."""
        return next((operator for operator in self.operators if operator.kind == kind), None)


def build_plan(trace: Trace) -> Plan | None:
    """Make the plan part; None for statements without a plan."""
    if not trace.plan:
        return None
    outputs = _outputs(trace)
    counted = any(lane.rows is not None for lane in build_lanes(trace)) or any(out is not None for _, out in trace.rows.values())
    legend = "rows on the edges; D delete, U update, I insert, · none" if counted and trace.clauses else ""
    unrun = trace.state in {StatementState.PLANNED, StatementState.EXPLAINED}
    if trace.state == StatementState.PLANNED:
        legend = "dashed: the sinks are not reached"
    return Plan(
        operators=tuple(_operator(record, trace) for record in trace.plan),
        lanes=build_lanes(trace),
        branches=case_branches(trace.plan),
        outputs=outputs,
        writers=tuple(_writer(record) for record in trace.writers),
        counted=counted,
        dashed=trace.state == StatementState.PLANNED,
        matched=trace.matched,
        unmatched=trace.unmatched,
        by_source=trace.alone,
        join=next((_join_type(record) for record in trace.plan if record.kind == "Join"), None),
        alone=_alone(trace),
        case_lines=case_text(trace),
        legend=legend,
        paradigm=trace.paradigm,
        printed=tuple(visible(line) for line in explain_text(trace.plan).split("\n")) if unrun else (),
        repeated=build_repeated(trace),
        among=writers_among(trace),
    )


def _outputs(trace: Trace) -> dict[str, int | None]:
    """Return what leaves ``transform_page``: under DELETE_ROW_AND_INSERT_ROW an update is a delete and an insert."""
    counts = operation_counts(trace)
    unknown = None in counts.values()
    asked = {style: counts.get(style) or 0 for style in "DUI"}
    there = {style: style in counts for style in "DUI"}
    if trace.paradigm == DELETE_AND_INSERT:
        asked = {"D": asked["D"] + asked["U"], "I": asked["I"] + asked["U"]}
        there = {"D": there["D"] or there["U"], "I": there["I"] or there["U"]}
    return {style: None if unknown else rows for style, rows in asked.items() if there[style]}


def _writer(record: WriterRecord) -> Writer:
    rows: dict[str, int] = {}
    for operation, count in sorted(record.rows.items()):
        rows[style_of(operation)] = rows.get(style_of(operation), 0) + count
    ordered = {style: rows[style] for style in "DUI" if rows.get(style)}
    return Writer(record.writer, ordered, record.pages, record.fragments, record.state)


def _alone(trace: Trace) -> str:
    """Return how many target rows nobody matched; told only where every joined row was recorded.

    Two source rows may match one target row by different clauses, so joined rows are not counted: row ids are.
    """
    sample = trace.pages
    if trace.kind != "MERGE" or trace.rows_before is None or sample is None or not sample.complete or trace.alone is not None:
        return ""
    alone = trace.rows_before - count_row_ids(sample)
    return f"{plural(alone, 'target row')} without a partner {'stays' if alone == 1 else 'stay'} untouched" if alone > 0 else ""


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
        passage=passage(trace, rows_in[0] or 0, rows_out or 0)
        if record.kind == "MergeProcessor" and rows_out is not None
        else "",
        inside=_inside(record.facts.nodes) if isinstance(record.facts, QueryFacts) else None,
    )


def _inside(nodes: Sequence[NodeRecord]) -> Inner | None:
    """Return the last node of a query with those below it."""
    records = {record.id: record for record in nodes}

    def inner(record: NodeRecord) -> Inner:
        sources = (records[source] for source in record.sources)
        return Inner(visible(record.name), visible(record.arguments), tuple(map(inner, sources)), record.rows)

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


_CASE: Final = "Tries the WHEN clauses in their order; the first that holds fills merge_row, and no later one is tried."


def _case_arguments(record: NodeRecord) -> str:
    """Without anything to decide there is no CASE: each row gets its merge row."""
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
    """Take the counts of the trace; what it leaves out follows from its totals."""
    if record.kind in {*WRITERS, "TableFinish", "Output"}:
        # Above the writers no rows travel but fragments and one count: see `_carries`.
        return (trace.rows.get(record.id, ((), None))[0] if record.kind in WRITERS else ()), None
    rows_in, rows_out = trace.rows.get(record.id, ((), None))
    if rows_out is None and trace.joined is not None and (record.kind in _JOINED_KINDS or record.branches):
        rows_out = trace.joined
    return rows_in, rows_out


def _fragments(trace: Trace) -> str:
    return plural(sum(writer.fragments for writer in trace.writers), "fragment") if trace.writers else ""


def _carries(record: NodeRecord, trace: Trace) -> str:
    if record.kind in WRITERS:
        return _fragments(trace)
    return f"row count {number(trace.count)}" if record.kind == "TableFinish" and trace.count is not None else ""


def _notes(record: NodeRecord, trace: Trace) -> list[str]:
    if record.kind == "Join" and trace.matched is not None and trace.unmatched is not None:
        notes = [f"matched {number(trace.matched)}, not matched {number(trace.unmatched)}"]
        if trace.alone is not None:
            notes[0] += f" by target and {number(trace.alone)} by source"
        return [*notes, alone] if (alone := _alone(trace)) else notes
    if record.kind == "MarkDistinct":
        return ["rows are first exchanged by unique_id"] if _is_exchanged(record) else []
    if record.kind == "DuplicateCheck":
        return _check_notes(trace)
    if isinstance(record.facts, WriterFacts) and record.facts.fused:
        below = "transform_page" if any(other.kind == "MergeProcessor" for other in trace.plan) else "the Project below it"
        return [f"runs in one pass with {below}"]
    if record.kind in CHANGERS:
        return [f"{'delete_rows' if record.kind == 'DeleteRows' else 'update_rows'}, on the page source that read the rows"]
    if record.kind == "Exchange":
        exchange = exchange_of(trace)
        by_old = exchange is not None and not exchange.others and bool({"D", "U"} & operation_counts(trace).keys())
        return ["a row to delete goes by its old values"] if by_old else []
    if record.kind == "TableFinish":
        return _count_notes(trace)
    return []


def _check_notes(trace: Trace) -> list[str]:
    if trace.duplicate_groups:
        return [f"{plural(len(trace.duplicate_groups), 'target row')} matched more than once"]
    if trace.state == StatementState.FINISHED and trace.duplicates == RepeatedMatches.STANDARD:
        return ["no target row is changed twice"]
    if trace.state == StatementState.FINISHED and trace.matched is not None:
        return [f"{plural(trace.matched, 'matched row')}, no pair twice"]
    return ["fails on a repeated key"] if trace.state in {StatementState.EXPLAINED, StatementState.PLANNED} else []


def _count_notes(trace: Trace) -> list[str]:
    """Show where the row count comes from: positions without those that are the second half of an update."""
    if not trace.writers or trace.count is None:
        return []
    positions = sum(sum(writer.rows.values()) for writer in trace.writers)
    derived = positions - sum(writer.counted for writer in trace.writers)
    sum_ = (
        f"{number(positions)} stored {MINUS} {plural(derived, 'insert half', 'insert halves')} of updates = " if derived else ""
    )
    return [f"{_fragments(trace)}, row count {sum_}{number(trace.count)}"]
