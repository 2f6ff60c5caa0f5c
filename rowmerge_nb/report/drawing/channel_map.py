"""A drawing of the channels of both pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import plural
from rowmerge_nb.report.drawing.dot import (
    Box,
    TextRun,
    bold,
    edge,
    mono,
    muted,
    new_graph,
    node,
    plain,
)
from rowmerge_nb.report.model.pages import TYPE_ROOM
from rowmerge_nb.report.model.placing import DELETE_AND_INSERT
from rowmerge_nb.spi.page import PageLayout

if TYPE_CHECKING:
    from rowmerge_nb.report.model.pages import Channel, Channels, Pages

MOST_COLUMNS: Final = 7
_NAME: Final = 22
_BLANK: Final = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class DrawnColumn:
    """A table column in the drawing, or several hidden ones."""

    index: int
    omitted: int = 0


@dataclass(frozen=True)
class Half:
    """The content of a row after ``transform_page``, None for NULL."""

    label: str
    style: str
    columns: tuple[str | None, ...]
    operation: str
    case: str
    row_id: str | None
    from_update: str


def channel_map_dot(pages: Pages) -> str:
    channels = pages.channels
    slots = _slots(channels)
    graph = new_graph("pages", nodesep="0.2", ranksep="0.5", splines="line")
    node(graph, "before", _before(pages, slots), spacing=1, fill="")
    halves = _halves(pages, slots)
    node(graph, "after", _after(pages, slots, halves), spacing=1, fill="")
    for tail, head, style in _wires(pages, slots):
        edge(graph, f"before:{tail}:s", f"after:{head}:n", color=style)
    return str(graph.source)


def channel_map_description(pages: Pages) -> str:
    before = ", ".join(f"{channel.number} {channel.name}" for channel in pages.channels.before)
    after = ", ".join(f"{channel.number} {channel.name}" for channel in pages.channels.after)
    return f"Before: {before}. After: {after}."


def _slots(channels: Channels) -> list[DrawnColumn]:
    count = len(channels.columns)
    if count <= MOST_COLUMNS:
        return [DrawnColumn(index) for index in range(count)]
    redistribution = {channel.name for channel in channels.redistribution}
    keep = {0, 1, 2, count - 1} | {
        i for i, channel in enumerate(channels.columns) if channel.name in redistribution
    }
    slots: list[DrawnColumn] = []
    for index in range(count):
        if index in keep:
            slots.append(DrawnColumn(index))
        elif slots and slots[-1].omitted:
            slots.append(DrawnColumn(slots[-1].index, slots.pop().omitted + 1))
        else:
            slots.append(DrawnColumn(index, 1))
    return slots


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _channel(channel: Channel, port: str, fill: str, width: int, fate: str | None = None) -> Box:
    cut = (
        channel.type.partition("(")[0] + "(…)"
        if "(" in channel.type
        else _cut(channel.type, TYPE_ROOM)
    )
    type_text = channel.type if len(channel.type) <= TYPE_ROOM else cut
    lines = [
        [mono(channel.number, "mut", size=11)],
        [bold(_cut(channel.name, _NAME))],
        [mono(type_text, "mut", size=11)],
    ]
    if fate is not None:
        lines.append([TextRun(fate or _BLANK, "mut", size=11)])
    return Box(lines, "CENTER", port, fill, 1, width)


def _hidden(slot: DrawnColumn, port: str, fill: str) -> Box:
    return Box([[muted("…")], [muted(plural(slot.omitted, "more column"))]], "CENTER", port, fill)


def _splits(pages: Pages) -> bool:
    return pages.paradigm == DELETE_AND_INSERT


def _before(pages: Pages, slots: list[DrawnColumn]) -> list[list[Box]]:
    channels = pages.channels
    location = channels.location
    total = "" if pages.total_before is None else f", {plural(pages.total_before, 'row')}"
    merge_row: list[TextRun] = [
        mono(channels.merge_row.number, "mut", size=11),
        bold(_BLANK + channels.merge_row.name),
    ]
    head = [
        Box([[muted(f"before{total}")]], span=len(location)),
        Box([merge_row], "CENTER", "", "Nt", PageLayout(len(slots)).merge_row.count),
        Box([[plain(_BLANK)]], span=2),
    ]
    wired = (*(channels.redistribution if _splits(pages) else ()), channels.row_id)
    cells = [
        _channel(channel, f"p{i}", "node", 44, "" if channel in wired else "ends here")
        for i, channel in enumerate(location)
    ]
    for at, slot in enumerate(slots):
        cells.append(
            _hidden(slot, f"f{at}", "Nt")
            if slot.omitted
            else _channel(channels.fields[slot.index], f"f{at}", "Nt", 44, "")
        )
    cells += [
        _channel(channels.present, "", "Nt", 44, "ends here"),
        _channel(channels.operation, "", "Nt", 44, "decides"),
        _channel(
            channels.case,
            "c",
            "Nt",
            44,
            "" if channels.after_case and not _splits(pages) else "ends here",
        ),
        _channel(channels.case_number, "", "node", 44, "ends here"),
        _channel(channels.is_distinct, "", "node", 44, "ends here"),
    ]
    return [head, cells]


def _after(pages: Pages, slots: list[DrawnColumn], halves: list[Half]) -> list[list[Box]]:
    channels = pages.channels
    others = channels.others
    count = len(slots) + len(others)
    bars = [Box(height=5), *(Box(port=f"s{i}", fill="node", height=5) for i in range(count))]
    total = "" if pages.total_after is None else f", {plural(pages.total_after, 'row')}"
    cells = [Box([[muted(f"after{total}")]])]
    cells += [
        (
            _hidden(slot, "", "node")
            if slot.omitted
            else _channel(channels.columns[slot.index], "", "node", 80)
        )
        for slot in slots
    ]
    cells += [_channel(channel, "", "node", 80) for channel in others]
    rows = [bars, cells]
    for half in halves:
        values = [
            *half.columns,
            half.operation,
            *([half.case] if channels.after_case else []),
            half.row_id,
            half.from_update,
        ]
        boxes = [
            Box(
                [[muted("NULL") if value is None else plain(value)]], "CENTER", "", half.style + "t"
            )
            for value in values
        ]
        rows.append([Box([[bold(half.label, half.style)]]), *boxes])
    passed_to_sink = ["yes"] * (count - 1) + ["no"]
    return [
        *rows,
        [
            Box([[muted("the sink gets")]]),
            *(Box([[muted(word)]], "CENTER") for word in passed_to_sink),
        ],
    ]


def _halves(pages: Pages, slots: list[DrawnColumn]) -> list[Half]:
    channels = pages.channels
    redistribution = {channel.name: channel.number for channel in channels.redistribution}
    new = tuple(
        "…" if slot.omitted else f"from {channels.fields[slot.index].number}" for slot in slots
    )
    old = tuple(
        (
            "…"
            if slot.omitted
            else (
                f"from {redistribution[name]}"
                if (name := channels.columns[slot.index].name) in redistribution
                else None
            )
        )
        for slot in slots
    )
    row_id, case = f"from {channels.row_id.number}", f"from {channels.case.number}"
    current = channels.after_case is not None
    if _splits(pages):
        new_row_id = row_id if current or channels.layout.identifies_new_rows else None
        updates = [
            Half("UPDATE, DELETE half", "D", old, "5" if current else "2", "0", row_id, "0"),
            Half("UPDATE, INSERT half", "I", new, "4" if current else "1", "0", new_row_id, "1"),
        ]
        others = [
            Half("DELETE", "D", old, "2", "0", row_id, "0"),
            Half("INSERT", "I", new, "1", "0", None, "0"),
        ]
    else:
        updates = [Half("UPDATE", "U", new, "3", case, row_id, "0")]
        # A DELETE's merge row already has only the kept values.
        others = [
            Half("DELETE", "D", new, "2", case, row_id, "0"),
            Half("INSERT", "I", new, "1", case, None, "0"),
        ]
    # An UPDATE statement has no other operations.
    return updates if pages.updates_only else [*updates, *others]


def _wires(pages: Pages, slots: list[DrawnColumn]) -> list[tuple[str, str, str]]:
    channels = pages.channels
    # The drawing is that of a table with one column per slot.
    slot_layout = PageLayout(len(slots), era=channels.layout.era).after
    tail, row_id = f"p{channels.layout.before.row_id}", f"s{slot_layout.row_id}"
    if not _splits(pages):
        number = (
            [("c", f"s{slot_layout.case_number}", "U")]
            if slot_layout.case_number is not None
            else []
        )
        return [
            (tail, row_id, "U"),
            *((f"f{at}", f"s{at}", "U") for at in slot_layout.columns),
            *number,
        ]
    by_name = {
        channels.columns[slot.index].name: at for at, slot in enumerate(slots) if not slot.omitted
    }
    old = [
        (f"p{i}", f"s{by_name[c.name]}", "D")
        for i, c in enumerate(channels.redistribution)
        if c.name in by_name
    ]
    return [*old, (tail, row_id, "D"), *((f"f{at}", f"s{at}", "I") for at in slot_layout.columns)]
