"""The plan as a drawing: from the scans at the top to ``finish_merge`` at the bottom, one lane per
WHEN clause.

CASE, MarkDistinct and transform_page have equal cells, so that lanes are straight.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import number, plural
from rowmerge_nb.report.drawing.channel_map import channel_map_dot
from rowmerge_nb.report.drawing.dot import (
    GAP,
    Box,
    TextRun,
    bold,
    edge,
    identifier,
    mono,
    muted,
    new_graph,
    node,
    plain,
)
from rowmerge_nb.report.drawing.writers import Arrival, draw_writers
from rowmerge_nb.report.model.clauses import condition_text
from rowmerge_nb.report.model.plan import WRITERS
from rowmerge_nb.report.words.display_values import cell
from rowmerge_nb.report.words.phrases import operation_word, style_of
from rowmerge_nb.trace.node_records import JoinType

if TYPE_CHECKING:
    from collections.abc import Iterator

    import graphviz

    from rowmerge_nb.report.model.clauses import Lane
    from rowmerge_nb.report.model.plan import Inner, Operator, Plan
    from rowmerge_nb.report.model.report import Report

MOST_PREDICATES: Final = 12
PREDICATE: Final = 46
LANE: Final = 96
MONO: Final = 7.2
"""The width of a character of a predicate."""
LABEL: Final = 13
"""The number of characters before a predicate and in the margins."""
ARGUMENTS: Final = 36
MOST_STEPS: Final = 10
"""The maximum number of nodes drawn of a source query."""


@dataclass(frozen=True)
class Stream:
    """Rows between two nodes."""

    port: str
    style: str
    rows: int | None
    label: str
    width: int = LANE


def plan_dot(report: Report, *, with_conditions: bool = True) -> str:
    if report.plan is None:
        raise ValueError(f"The report of a {report.kind} has no plan to draw")
    return _Drawing(report.plan, with_conditions=with_conditions).dot()


def pages_dot(report: Report) -> str:
    if report.pages is None:
        raise ValueError(f"The report of a {report.kind} has no pages to draw")
    return channel_map_dot(report.pages)


def plan_description(plan: Plan) -> str:
    names = [f"{operator.title} {operator.arguments}".strip() for operator in plan.in_order]
    lanes = [
        f"{lane.label} {operation_word(lane.operation)}{_rows_words(lane.rows)}"
        for lane in plan.lanes
    ]
    writers = [
        f"writer {writer.number} stores {plural(writer.total, 'row')}" for writer in plan.writers
    ]
    return (
        "; ".join(
            part
            for part in ("Steps: " + ", ".join(names), ", ".join(lanes), ", ".join(writers))
            if part
        )
        + "."
    )


def _rows_words(rows: int | None) -> str:
    return "" if rows is None else f" {plural(rows, 'row')}"


class _Drawing:
    def __init__(self, plan: Plan, *, with_conditions: bool) -> None:
        self.plan = plan
        self.with_conditions = with_conditions
        self.graph: graphviz.Digraph = new_graph(
            "plan", nodesep="0.28", ranksep="0.17" if plan.has_counts else "0.28"
        )
        self.lane_width = self._lane_width()

    def dot(self) -> str:
        spine = [self.plan.operators[0]]
        while len(spine[-1].sources) == 1:
            spine.append(self.plan.get(spine[-1].sources[0]))
        if spine[-1].sources:
            streams = self._join(spine.pop())
        else:
            # Without a join, the spine ends in a scan and the operators above it that share its
            # node.
            leaf = [spine.pop()]
            while spine and spine[-1].kind not in _OWN_NODE:
                leaf.insert(0, spine.pop())
            streams = [self._leaves("source", leaf)]
        steps = [operator for operator in reversed(spine) if operator.kind != "Output"]
        while steps:
            count, streams = self._step(steps, streams)
            del steps[:count]
        return str(self.graph.source)

    def _step(self, steps: list[Operator], streams: list[Stream]) -> tuple[int, list[Stream]]:
        first = steps[0]
        if first.kind == "Case" and self.plan.lanes:
            projects = list(takewhile(lambda step: step.kind == "Project", steps[1:]))
            return 1 + len(projects), self._case(projects, streams)
        if first.kind in {"MarkDistinct", "DuplicateCheck"} and self.plan.lanes:
            together = [first, *(step for step in steps[1:2] if step.kind == "DuplicateCheck")]
            return len(together), self._distinct(together, streams)
        if first.kind == "MergeProcessor" and self.plan.lanes:
            return 1, self._transform(first, streams)
        # In a saved trace, rows may arrive here ungrouped.
        by_operation = all(stream.style in self.plan.outputs for stream in streams)
        exchange = (
            first if first.kind == "Exchange" and self.plan.outputs and by_operation else None
        )
        writer = next((step for step in steps[:2] if step.kind in WRITERS), None)
        if writer is not None and (exchange is not None or writer is first):
            arrivals = [Arrival(s.port, s.style, s.rows, _label(s), s.width) for s in streams]
            ports = draw_writers(self.graph, self.plan, writer, exchange, arrivals)
            return 1 + (exchange is not None), [
                Stream(port, "line", None, label) for port, label in ports
            ]
        return 1, self._plain(first, streams)

    def _lane_width(self) -> int:
        """Return the width of all lanes: enough for their texts, and even, since an UPDATE splits
        in the middle.
        """
        lanes = self.plan.lanes
        if not lanes:
            return LANE
        texts = [Box([self._predicate(i)]).least for i in range(len(self._branches()))]
        heads = (
            self._lane_head(operator)
            for operator in self.plan.operators
            if operator.kind in _LANE_NODES
        )
        texts += [Box([head]).least for head in heads]
        cells = [Box(lines).least for lane in lanes for lines in self._becomes(lane, 1)]
        width = max(
            LANE if len(lanes) <= 5 else 88, *(text // len(lanes) + 1 for text in texts), *cells
        )
        return width + width % 2

    def _branches(self) -> list[tuple[str, str, str]]:
        if len(self.plan.branches) == 1 or not self.with_conditions:
            return []
        lines = []
        # Predicates may be as wide as all lanes together.
        room = max(PREDICATE, int(len(self.plan.lanes) * LANE / MONO) - LABEL)
        for branch in self.plan.branches:
            text = "ELSE" if branch.matched is None else f"WHEN {condition_text(branch)}"
            short = text if len(text) <= room else text[: room - 1] + "…"
            lines.append(
                (
                    f"{number(branch.number):>2}  {operation_word(branch.operation):<6}  ",
                    short,
                    style_of(branch.operation),
                )
            )
        if len(lines) <= MOST_PREDICATES:
            return lines
        omitted = len(lines) - MOST_PREDICATES
        return [
            *lines[: MOST_PREDICATES - 1],
            ("", f"… {omitted} more clauses, listed under Clauses", "N"),
            lines[-1],
        ]

    def _predicate(self, index: int) -> list[TextRun]:
        label, text, style = self._branches()[index]
        return [mono(label, style, strong=True), mono(text) if label else muted(text)]

    def _head(self, operator: Operator) -> list[Box]:
        arguments = cell(operator.arguments, ARGUMENTS).text
        line = [bold(operator.title), *([mono(GAP + arguments)] if arguments else [])]
        rows = operator.rows_text
        return [
            Box([line]),
            Box([[plain(f"{GAP}{rows}")]] if rows else (), align="RIGHT", height=0),
        ]

    def _leaves(self, name: str, operators: list[Operator]) -> Stream:
        rows = [
            row
            for operator in reversed(operators)
            for row in (*_inside(operator), self._head(operator))
        ]
        last = operators[0]
        node(self.graph, name, rows)
        return Stream(name, "line", last.rows_out, last.rows_text)

    def _join(self, join: Operator) -> list[Stream]:
        streams = []
        for name, source in zip(("target", "source"), join.sources, strict=False):
            chain = [self.plan.get(source)]
            while chain[-1].sources:
                chain.append(self.plan.get(chain[-1].sources[0]))
            streams.append(self._leaves(name, chain))
        outlet_texts = _KINDS_OF_FULL if self.plan.join is JoinType.FULL else _KINDS
        parts = list(
            zip("mus", (self.plan.matched, self.plan.unmatched, self.plan.by_source), strict=True)
        )[: len(outlet_texts)]
        notes = (
            [[Box([[muted(self.plan.unmatched_text)]], span=len(outlet_texts))]]
            if self.plan.unmatched_text
            else []
        )
        # Outlets are equally wide, and wide enough for the criteria above them.
        width = max(200, (Box([self._title(join)]).least + 1) // len(outlet_texts))
        outlets = [
            Box(
                [[plain(caption + GAP), mono(mark, "mut")]],
                align="CENTER",
                port=port,
                fill="Nt",
                width=width,
            )
            for (port, _), (caption, mark) in zip(parts, outlet_texts, strict=True)
        ]
        node(
            self.graph,
            "join",
            [[Box([self._title(join)], span=len(outlet_texts))], *notes, outlets],
        )
        for stream in streams:
            edge(self.graph, stream.port, "join", label=_label(stream), rows=stream.rows)
        return [
            Stream(f"join:{port}:s", "line", rows, "" if rows is None else plural(rows, "row"))
            for port, rows in parts
        ]

    def _title(self, operator: Operator) -> list[TextRun]:
        return [bold(operator.title), mono(GAP + cell(operator.arguments, ARGUMENTS + 24).text)]

    def _case(self, projects: list[Operator], streams: list[Stream]) -> list[Stream]:
        lanes, width = self.plan.lanes, self.lane_width
        columns = 2 * len(lanes)
        count = len(streams)
        # Inlets share the columns; the last one takes the rest.
        spans = [columns // count] * (count - 1) + [columns - columns // count * (count - 1)]
        inlets = [
            Box(port=f"i{i}", fill="Nt", span=span, width=span * width // 2)
            for i, span in enumerate(spans)
        ]
        rows = [inlets] if count > 1 else []
        decided = len(self.plan.branches) > 1
        title = [bold("CASE"), muted(GAP + "first true wins; writes merge_row")]
        undecided = [bold("Project"), muted(GAP + "every row gets its merge_row")]
        rows.append([Box([title if decided else undecided], span=columns)])
        rows += [
            [Box([self._predicate(index)], span=columns)] for index in range(len(self._branches()))
        ]
        rows += [
            [
                Box(
                    [[bold("Project"), mono(GAP + cell(project.arguments, ARGUMENTS + 24).text)]],
                    span=columns,
                )
            ]
            for project in projects
        ]
        rows.append(
            [
                Box([[bold(lane.label, lane.style)]], "CENTER", f"c{i}", lane.style + "t", 2, width)
                for i, lane in enumerate(lanes)
            ]
        )
        node(self.graph, "case", rows)
        for index, stream in enumerate(streams):
            head = f"case:i{index}:n" if count > 1 else "case"
            edge(self.graph, stream.port, head, label=_label(stream), rows=stream.rows)
        return self._lane_streams("case")

    def _lane_streams(self, name: str) -> list[Stream]:
        return [
            Stream(f"{name}:c{i}:s", lane.style, lane.rows, _count(lane.style, lane.rows))
            for i, lane in enumerate(self.plan.lanes)
        ]

    def _lane_bars(self, port: str) -> list[Box]:
        return [
            Box(port=f"{port}{i}", fill=lane.style + "t", span=2, width=self.lane_width)
            for i, lane in enumerate(self.plan.lanes)
        ]

    def _distinct(self, operators: list[Operator], streams: list[Stream]) -> list[Stream]:
        columns = 2 * len(self.plan.lanes)
        rows = [self._lane_bars("i")]
        if any(operator.exchange for operator in operators):
            text = [
                bold("Exchange"),
                mono(GAP + "hash(unique_id)"),
                muted(GAP + "a target row's matches meet"),
            ]
            rows.append([Box([text], span=columns, fill="Nt")])
        rows += [[Box([self._lane_head(operator)], span=columns)] for operator in operators]
        rows.append(self._lane_bars("c"))
        node(self.graph, "distinct", rows)
        self._arrive("distinct", streams, 9)
        return self._lane_streams("distinct")

    def _lane_head(self, operator: Operator) -> list[TextRun]:
        line = [bold(operator.title), mono(GAP + operator.arguments)]
        if operator.kind == "DuplicateCheck":
            return [
                *line,
                *(
                    (plain if self.plan.has_counts else muted)(GAP + note)
                    for note in operator.notes
                ),
            ]
        return [*line, *([plain(GAP + operator.passage)] if operator.passage else [])]

    def _arrive(self, name: str, streams: list[Stream], weight: int) -> None:
        for index, stream in enumerate(streams):
            edge(
                self.graph,
                stream.port,
                f"{name}:i{index}:n",
                color=stream.style,
                label=_label(stream),
                rows=stream.rows,
                weight=weight,
            )

    def _groups(self) -> list[tuple[Lane, int]]:
        groups: list[tuple[Lane, int]] = []
        for lane in self.plan.lanes:
            if groups and groups[-1][0].operation is lane.operation:
                before, count = groups.pop()
                rows = None if before.rows is None or lane.rows is None else before.rows + lane.rows
                groups.append(
                    (
                        type(lane)(before.label, before.operation, before.cases + lane.cases, rows),
                        count + 1,
                    )
                )
            else:
                groups.append((lane, 1))
        return groups

    def _becomes(self, lane: Lane, count: int) -> list[list[list[TextRun]]]:
        rows = "" if lane.rows is None else f" {number(lane.rows)}"
        splits = lane.style == "U" and "U" not in self.plan.outputs
        amount = "" if lane.rows is None else f"{number(lane.rows)} "
        if lane.style == "N":
            result = "no row"
        elif splits:
            # One lane alone is too narrow for the words.
            result = f"{amount}DELETE + {amount}INSERT" if count > 1 else f"{amount}D + {amount}I"
        else:
            result = f"{amount}{operation_word(lane.operation)}"
        return [[[bold(operation_word(lane.operation) + rows, lane.style)], [plain("→ " + result)]]]

    def _transform(self, operator: Operator, streams: list[Stream]) -> list[Stream]:
        columns = 2 * len(self.plan.lanes)
        cells: list[Box] = []
        bars: list[Box] = []
        leaving: list[Stream] = []
        for lane, count in self._groups():
            width = count * self.lane_width
            cells.append(
                Box(self._becomes(lane, count)[0], "CENTER", "", lane.style + "t", 2 * count, width)
            )
            results = (
                ""
                if lane.style == "N"
                else "DI"
                if lane.style == "U" and "U" not in self.plan.outputs
                else lane.style
            )
            for result in results:
                bars.append(
                    Box(
                        port=f"o{len(bars)}",
                        fill=result,
                        span=2 * count // len(results),
                        width=width // len(results),
                    )
                )
                port = f"transform:o{len(bars) - 1}:s"
                leaving.append(
                    Stream(
                        port, result, lane.rows, _count(result, lane.rows), width // len(results)
                    )
                )
            if not results:
                bars.append(Box(port=f"o{len(bars)}", fill="Nt", span=2 * count, width=width))
        node(
            self.graph,
            "transform",
            [self._lane_bars("i"), [Box([self._lane_head(operator)], span=columns)], cells, bars],
        )
        self._arrive("transform", streams, 6)
        return leaving

    def _plain(self, operator: Operator, streams: list[Stream]) -> list[Stream]:
        line = [
            bold(operator.title),
            *([mono(GAP + cell(operator.arguments, ARGUMENTS).text)] if operator.arguments else []),
        ]
        rows = [[Box([line])]]
        rows += [
            [Box([[plain(note)]])] for note in operator.notes if operator.kind == "TableFinish"
        ]
        if operator.kind == "TableFinish" and self.plan.dashed:
            rows.append([Box([[muted("not called")]])])
        name = identifier(operator.id)
        node(self.graph, name, rows)
        for stream in streams:
            dashed = self.plan.dashed and operator.kind == "TableFinish"
            edge(
                self.graph,
                stream.port,
                name,
                color=stream.style,
                label=_label(stream),
                rows=stream.rows,
                dashed=dashed,
            )
        rows_out = operator.rows_out
        if operator.kind == "DeleteProject":
            return [Stream(name, "D", rows_out, _count("D", rows_out), 2 * LANE)]
        return [Stream(name, "line", rows_out, "" if rows_out is None else plural(rows_out, "row"))]


def _inside(operator: Operator) -> list[list[Box]]:
    lines = list(_lines(operator.inside, "")) if operator.inside is not None else []
    if omitted := max(len(lines) - MOST_STEPS, 0):
        lines[:omitted] = [[muted(f"… {plural(omitted, 'more node')}, which EXPLAIN shows")]]
    # The head below it has two cells.
    return [[Box([line], span=2)] for line in lines]


def _lines(step: Inner, indent: str) -> Iterator[list[TextRun]]:
    for source in step.sources:
        yield from _lines(source, indent + 2 * GAP if len(step.sources) > 1 else indent)
    arguments = cell(step.arguments, ARGUMENTS).text
    rows = [] if step.rows is None else [muted(f"{GAP}{plural(step.rows, 'row')}")]
    yield [plain(indent + step.title), *([mono(GAP + arguments)] if arguments else []), *rows]


_OWN_NODE: Final = frozenset(
    {
        *WRITERS,
        "Exchange",
        "MergeProcessor",
        "MarkDistinct",
        "TableFinish",
        "Case",
        "Output",
        "DeleteProject",
    }
)
_KINDS: Final = (("matched", "present"), ("not matched", "present IS NULL"))
_KINDS_OF_FULL: Final = (
    ("matched", "present AND source_present"),
    ("not matched by target", "present IS NULL"),
    ("not matched by source", "source_present IS NULL"),
)
_LANE_NODES: Final = frozenset({"MarkDistinct", "DuplicateCheck", "MergeProcessor"})


def _count(style: str, rows: int | None) -> str:
    return "" if rows is None else f"{'·' if style == 'N' else style} {number(rows)}"


def _label(stream: Stream) -> TextRun | None:
    if not stream.label:
        return None
    return plain(stream.label) if stream.style == "line" else bold(stream.label, stream.style)
