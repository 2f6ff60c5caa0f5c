"""The lower end of a plan's drawing: exchange, writers and sinks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import number, plural
from rowmerge_nb.report.drawing.dot import GAP, Box, TextRun, bold, edge, mono, muted, node, plain
from rowmerge_nb.report.model.plan import CHANGERS
from rowmerge_nb.report.words.display_values import cell
from rowmerge_nb.report.words.phrases import by_operation, operation_word

if TYPE_CHECKING:
    import graphviz

    from rowmerge_nb.report.model.plan import Operator, Plan, PlanWriter

MOST_WRITERS: Final = 3
_SINKS: Final = {
    "MergeWriter": ("ConnectorMergeSink", "store_merged_rows"),
    "TableWriter": ("ConnectorPageSink", "append_page"),
    "DeleteRows": ("UpdatablePageSource", "delete_rows"),
    "UpdateRows": ("UpdatablePageSource", "update_rows"),
}
"""The receiver of a writer's rows, and the call."""
_OPERATIONS: Final = {"D": 2, "U": 3, "I": 1}


@dataclass(frozen=True)
class Arrival:
    port: str
    style: str
    rows: int | None
    label: TextRun | None
    width: int


def draw_writers(
    graph: graphviz.Digraph,
    plan: Plan,
    writer: Operator,
    exchange: Operator | None,
    arrivals: list[Arrival],
) -> list[tuple[str, str]]:
    """Draw the nodes between ``transform_page`` and ``TableFinish``; return the ports of fragments
    with labels.
    """
    sinks = _sinks(plan)
    if exchange is None:
        return [_one_node(graph, plan, writer, arrivals)]
    styles = list(plan.outputs)
    ordered = sorted(arrivals, key=lambda arrival: styles.index(arrival.style))
    outlets = _outlets(sinks, styles, sum(arrival.width for arrival in ordered))
    _exchange_node(graph, plan, exchange, ordered, outlets, [_name(sink) for sink in sinks])
    for index, arrival in enumerate(ordered):
        head = f"exchange:i{index}:n"
        edge(
            graph,
            arrival.port,
            head,
            color=arrival.style,
            label=arrival.label,
            rows=arrival.rows,
            weight=4,
        )
    for at, sink in enumerate(sinks):
        _sink_node(graph, plan, f"w{at}", sink, styles)
    for at, style, _ in outlets:
        sink = sinks[at]
        rows = sink.rows.get(style, 0) if sink is not None else None
        label = bold(f"{style} {number(rows)}", style) if rows is not None else None
        dashed = plan.dashed or (plan.has_counts and sink is None)
        tail, head = f"exchange:o{at}{style}:s", f"w{at}:i{style}:n"
        edge(graph, tail, head, color=style, label=label, rows=rows, dashed=dashed, weight=9)
    return [
        (f"w{at}", plural(sink.fragments, "fragment") if sink is not None else "")
        for at, sink in enumerate(sinks)
    ]


def _sinks(plan: Plan) -> list[PlanWriter | None]:
    """Return the writers with a node of their own; the last one may represent many.

    None: no known writer.
    """
    writers = plan.writers
    if not writers:
        return [None]
    if len(writers) <= MOST_WRITERS:
        return list(writers)
    rest = writers[MOST_WRITERS - 1 :]
    rows = {style: sum(writer.rows.get(style, 0) for writer in rest) for style in "DUI"}
    pages = sum(writer.pages for writer in rest)
    fragments = sum(writer.fragments for writer in rest)
    together = type(rest[0])(
        -len(rest), {style: n for style, n in rows.items() if n}, pages, fragments, "finished"
    )
    return [*writers[: MOST_WRITERS - 1], together]


def _exchange_node(
    graph: graphviz.Digraph,
    plan: Plan,
    exchange: Operator,
    arrivals: list[Arrival],
    outlets: list[tuple[int, str, int]],
    names: list[str],
) -> None:
    styles = list(dict.fromkeys(arrival.style for arrival in arrivals))
    rooms = [
        sum(arrival.width for arrival in arrivals if arrival.style == style) for style in styles
    ]
    ends = [
        list(accumulate(widths))
        for widths in ([a.width for a in arrivals], rooms, [width for _, _, width in outlets])
    ]
    # The rows of the node are divided at different positions: its columns lie between neighboring
    # cuts.
    cuts = sorted({0, *(end for row in ends for end in row)})

    def spans(row: list[int]) -> list[int]:
        return [cuts.index(end) - cuts.index(start) for start, end in pairwise([0, *row])]

    inlets = [
        Box(port=f"i{i}", fill=a.style + "t", span=span, width=a.width)
        for i, (a, span) in enumerate(zip(arrivals, spans(ends[0]), strict=True))
    ]
    groups = [
        Box(
            [[muted("in: "), bold(_named(style, plan.outputs[style]), style)]],
            "CENTER",
            "",
            style + "t",
            span,
            room,
        )
        for style, room, span in zip(styles, rooms, spans(ends[1]), strict=True)
    ]
    bars = [
        Box(port=f"o{at}{style}", fill=style, span=span, width=width)
        for (at, style, width), span in zip(outlets, spans(ends[2]), strict=True)
    ]
    ruler = [Box(width=end - start, height=1) for start, end in pairwise(cuts)]
    head = _exchange_head(plan, exchange)
    notes = [[Box([[muted(note)]], span=len(ruler))] for note in exchange.notes]
    rows = [inlets, [Box([head], span=len(ruler))], *notes, groups]
    if len(names) > 1:
        ends_of = [
            max(end for (at, _, _), end in zip(outlets, ends[2], strict=True) if at == mine)
            for mine in range(len(names))
        ]
        widths = [end - start for start, end in pairwise([0, *ends_of])]
        marks = zip(names, spans(ends_of), widths, strict=True)
        rows.append(
            [
                Box([[muted(f"out: {name}")]], "CENTER", "", "", span, width)
                for name, span, width in marks
            ]
        )
    node(graph, "exchange", [*rows, bars, ruler])


def _exchange_head(plan: Plan, exchange: Operator) -> list[TextRun]:
    head = [bold(exchange.title), mono(GAP + cell(exchange.arguments, 44).text)]
    if plan.writers:
        among = (
            f"{number(len(plan.writers))} of "
            if plan.among is not None and plan.among > len(plan.writers)
            else ""
        )
        head.append(
            plain(f"{GAP}→ {among}{plural(max(plan.among or 0, len(plan.writers)), 'writer')}")
        )
    return head


def _named(style: str, rows: int | None) -> str:
    return operation_word(_OPERATIONS[style]) + ("" if rows is None else f" {number(rows)}")


def _outlets(
    sinks: list[PlanWriter | None], styles: list[str], total: int
) -> list[tuple[int, str, int]]:
    """Divide the lower edge of the exchange by writer and operation, so that no edges cross."""
    styles_of_sinks = [
        (at, [style for style in styles if sink is None or sink.rows.get(style)])
        for at, sink in enumerate(sinks)
    ]
    outlets: list[tuple[int, str, int]] = []
    for at, mine in styles_of_sinks:
        start_of, end_of = total * at // len(sinks), total * (at + 1) // len(sinks)
        edges = (
            [start_of + (end_of - start_of) * i // len(mine) for i in range(len(mine) + 1)]
            if mine
            else []
        )
        outlets += [
            (at, style, end - start)
            for style, (start, end) in zip(mine, pairwise(edges), strict=True)
        ]
    return outlets


def _name(sink: PlanWriter | None) -> str:
    if sink is None:
        return ""
    return f"writer {sink.number}" if sink.number >= 0 else plural(-sink.number, "more writer")


def _sink_node(
    graph: graphviz.Digraph, plan: Plan, name: str, sink: PlanWriter | None, styles: list[str]
) -> None:
    mine = [style for style in styles if sink is None or sink.rows.get(style)]
    span = len(mine)
    bars = [Box(port=f"i{style}", fill=style + "t") for style in mine]
    if sink is None:
        none = (
            "one per writer"
            if not plan.has_counts or plan.dashed
            else "no row arrived: no sink was created"
        )
        rows = [[Box([[bold("ConnectorMergeSink"), plain(GAP + none)]], span=span)]]
        call = [
            mono("store_merged_rows"),
            *([muted(GAP + "not called")] if plan.dashed or plan.has_counts else []),
        ]
    else:
        rows = [
            [Box([[bold("MergeWriter"), plain(GAP + _name(sink))]], span=span)],
            [Box([[muted("hands its rows to its ConnectorMergeSink")]], span=span)],
        ]
        aborted = "" if sink.state == "finished" else f", {sink.state}"
        call = [
            mono("store_merged_rows"),
            plain(f"{GAP}{plural(sink.pages, 'page')}, {plural(sink.total, 'row')}{aborted}"),
        ]
    node(graph, name, [bars, *rows, [Box([call], span=span)]])


def _one_node(
    graph: graphviz.Digraph, plan: Plan, writer: Operator, arrivals: list[Arrival]
) -> tuple[str, str]:
    rows = _sink_rows(plan, writer, arrivals)
    node(graph, "writers", rows)
    for index, arrival in enumerate(arrivals):
        head = f"writers:i{index}:n"
        color, rows_in = arrival.style, arrival.rows
        edge(
            graph,
            arrival.port,
            head,
            color=color,
            label=arrival.label,
            rows=rows_in,
            dashed=plan.dashed or (plan.has_counts and not plan.writers),
            weight=4,
        )
    return "writers", writer.carries


def _sink_rows(plan: Plan, writer: Operator, arrivals: list[Arrival]) -> list[list[Box]]:
    name, method = _SINKS[writer.kind]
    word = "split" if writer.kind in CHANGERS else "writer"
    span = max(len(arrivals), 1)
    rows = [
        [
            Box(port=f"i{i}", fill="Nt" if arrival.style == "line" else arrival.style + "t")
            for i, arrival in enumerate(arrivals)
        ]
    ]
    count = plural(len(plan.writers), word) if plan.writers else f"one per {word}"
    if plan.has_counts and not plan.writers and not plan.dashed:
        count = "no row arrived: no sink was created" if word == "writer" else "there is no split"
    rows.append([Box([[bold(name), plain(GAP + count)]], span=span)])
    rows += [[Box([[muted(note)]], span=span)] for note in writer.notes]
    if not plan.writers:
        rows.append(
            [
                Box(
                    [
                        [
                            mono(method),
                            *(
                                [muted(GAP + "not called")]
                                if plan.dashed or plan.has_counts
                                else []
                            ),
                        ]
                    ],
                    span=span,
                )
            ]
        )
    for sink in plan.writers[: 2 * MOST_WRITERS]:
        text = (
            f"{GAP}{word} {sink.number}: {plural(sink.pages, 'page')},"
            f" {by_operation(sink.total, dict(sink.rows))}"
        )
        rows.append([Box([[mono(method), plain(text)]], span=span)])
    if len(plan.writers) > 2 * MOST_WRITERS:
        rows.append(
            [
                Box(
                    [[muted(f"… {plural(len(plan.writers) - 2 * MOST_WRITERS, f'more {word}')}")]],
                    span=span,
                )
            ]
        )
    return rows
