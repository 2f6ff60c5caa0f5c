"""A report as plain text, for terminals, GitHub and untrusted notebooks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import ROW_CHANGES, StatementState
from rowmerge_nb.base.words import join, number, number_or_blank, plural
from rowmerge_nb.report.model.clauses import clause_label, condition_text
from rowmerge_nb.report.model.failures import failure_text
from rowmerge_nb.report.model.plan import CHANGERS, WRITERS
from rowmerge_nb.report.model.report import missing_parts, parts_to_show
from rowmerge_nb.report.words.columns import columns_of, width_of
from rowmerge_nb.report.words.display_values import Cell, cell
from rowmerge_nb.report.words.phrases import by_operation, phrase_text
from rowmerge_nb.trace.words import letters

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rowmerge_nb.report.model.changed_rows import ChangeCell, Stored
    from rowmerge_nb.report.model.pages import AfterRow, Channel, Pages, TransformedRow
    from rowmerge_nb.report.model.plan import Inner, Operator, Plan
    from rowmerge_nb.report.model.report import Report, ShownNotice
    from rowmerge_nb.trace.verdicts import EngineVerdict

WIDTH: Final = 88
_BAR: Final = 24
_MOST_COLUMNS: Final = 8
_CLAUSE: Final = 80
_BRIEF: Final = frozenset({"outcome", "check", "diff", "clauses", "near"})
"""The parts that fit into a screen, if a statement has succeeded."""


def render_text(
    report: Report,
    *,
    show: str | Iterable[str] | None = None,
    timings: bool = False,
    first_line: int = 1,
    brief: bool = False,
) -> str:
    """Return a report as text, without a newline at the end.

    ``show`` lists parts, see `rowmerge_nb.report.model.report.PARTS`; ``first_line`` is the
    statement's line in the cell. A ``brief`` text of a successful statement names the call that
    returns its other parts.

    >>> from rowmerge_nb.trace.target_record import TargetRecord
    >>> from rowmerge_nb.trace.trace import Trace
    >>> from rowmerge_nb.report.model.report import build_report
    >>> trace = Trace(statement="INSERT ...", kind="INSERT", state="finished", target=TargetRecord(name="accounts"), count=5)
    >>> print(render_text(build_report(trace)))
    5 rows inserted into accounts.
    """
    parts = parts_to_show(report, show)
    absent = missing_parts(report, show)
    if brief and report.state == StatementState.FINISHED and report.kind in ROW_CHANGES:
        # Rows that were asked for with the run are shown.
        short = _BRIEF | ({"journeys"} if report.journeys and report.journeys.condition else set())
        others = [part for part in parts if part not in short and part != "words"]
        parts = tuple(part for part in parts if part in short)
        absent = (_more(others),) if others else ()
    # The unchanged rows already include those that took no part.
    listed = "diff" in parts and report.diff is not None and bool(report.diff.same)
    writers = {
        "check": lambda: _check(report),
        "clauses": lambda: _clauses(report, first_line),
        "plan": lambda: _plan(report),
        "pages": lambda: _pages(report),
        "stored": lambda: _stored(report),
        "calls": lambda: _calls(report, timings),
        "diff": lambda: diff_lines(report),
        "journeys": lambda: _journeys(report, listed=listed),
        "near": lambda: _near(report),
        # In text, terms are shown on request only.
        "words": lambda: _words(report) if show is not None else [],
        "verdicts": lambda: verdict_lines(report.verdicts or ()),
    }
    blocks = [_outcome(report, timings, first_line)]
    blocks += [writers[part]() for part in parts if part != "outcome"]
    blocks += [textwrap.wrap(sentence, WIDTH) for sentence in absent]
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks if block)


def _more(parts: list[str]) -> str:
    return f"print(result.text()) adds {join(parts)}; after a cell, the result is _merge."


def verdict_lines(verdicts: Iterable[EngineVerdict]) -> list[str]:
    grid = [
        ["engine", "answer", "because"],
        *([verdict.engine, verdict.answer, verdict.reason] for verdict in verdicts),
    ]
    return ["Results of other rules for repeated matches", *columns_of(grid, right=set())]


def _outcome(report: Report, timings: bool, first_line: int) -> list[str]:
    outcome = report.outcome
    if report.failure is not None:
        return [
            *failure_text(report.failure, first_line, WIDTH),
            *notice_lines(report.notices, first_line),
        ]
    sentence = phrase_text(outcome.sentence)
    if timings and outcome.elapsed is not None:
        sentence += f" {outcome.elapsed:.2f} s"
    tag = f"[{outcome.tag}] " if outcome.tag else ""
    head = (
        f"{tag}{sentence}"
        if outcome.tag or report.kind != "MERGE"
        else f"{outcome.subject}: {sentence}"
    )
    lines = textwrap.wrap(head, WIDTH)
    lines += textwrap.wrap(phrase_text(outcome.meta), WIDTH)
    if outcome.balance is not None:
        lines += textwrap.wrap(outcome.balance.text, WIDTH)
    if timings and report.timings:
        lines.append(
            ", ".join(f"{step} {seconds * 1000:.0f} ms" for step, seconds in report.timings)
        )
    return [*lines, *notice_lines(report.notices, first_line)]


def notice_lines(notices: Iterable[ShownNotice], first_line: int) -> list[str]:
    lines = []
    for notice in notices:
        where = f"line {notice.line + first_line - 1}: " if notice.line is not None else ""
        lines += textwrap.wrap(f"Notice: {where}{notice.message}", WIDTH, subsequent_indent="  ")
    return lines


def _clauses(report: Report, first_line: int) -> list[str]:
    table = report.clauses
    if table is None:
        return []
    has_counts = table.total is not None
    most = max((row.rows or 0 for row in table.rows), default=0)
    grid = [["clause", "operation", "line", *(["rows", ""] if has_counts else []), "as written"]]
    if table.head:
        grid.append(
            [
                "",
                "",
                str(first_line),
                *(["", ""] if has_counts else []),
                cell(" ".join(table.head), _CLAUSE).text,
            ]
        )
    for row in table.rows:
        # The bar has one sign per row if that fits, else it is proportional; one row is always
        # visible.
        full = max(most, 1) if most * 2 > _BAR else _BAR / 2
        bar = "■" * max(round((row.rows or 0) * _BAR / full), bool(row.rows))
        line = "" if row.line is None else str(row.line + first_line - 1)
        rows = [number(row.rows or 0), bar] if has_counts else []
        clause = cell(row.lines[0].removesuffix(" THEN"), _CLAUSE).text
        grid.append([row.label, f"{row.letter} {row.word}", line, *rows, clause])
    if has_counts:
        grid.append(["", "", "", number(table.total or 0), "", table.total_label])
    return columns_of(grid, right={0, 2, *([3] if has_counts else [])})


def _plan(report: Report) -> list[str]:
    plan = report.plan
    if plan is None:
        return []
    lines: list[str] = []
    _tree(plan, plan.operators[0], "", "", lines)
    if plan.repeated is not None:
        lines += [
            "",
            *textwrap.wrap(f"Trino and the SQL standard: {plan.repeated.sentence}", WIDTH),
        ]
    return lines


def _tree(plan: Plan, operator: Operator, lead: str, below: str, lines: list[str]) -> None:
    arguments = f" {cell(operator.arguments, 60).text}" if operator.arguments else ""
    rows = f"   {operator.rows_text}" if operator.rows_text else ""
    lines.append(f"{lead}{operator.title}{arguments}{rows}")
    bar = "│" if operator.sources else " "
    lines += [f"{below}{bar}  {note}" for note in (*operator.notes, *_more_notes(plan, operator))]
    for index, source in enumerate(operator.sources):
        last = index == len(operator.sources) - 1
        _tree(
            plan,
            plan.get(source),
            below + ("└─ " if last else "├─ "),
            below + ("   " if last else "│  "),
            lines,
        )


def _more_notes(plan: Plan, operator: Operator) -> list[str]:
    if operator.kind == "Case":
        lines = []
        for branch in plan.branches:
            rows = next((lane.rows for lane in plan.lanes if lane.cases == (branch.number,)), None)
            count = "" if rows is None else f" {number(rows)}"
            lines.append(
                f"{clause_label(branch.number):<9}  {branch.operation.letter}{count} "
                f" {cell(condition_text(branch), _CLAUSE).text}"
            )
        return lines
    if operator.kind == "MergeProcessor":
        return [_becomes(plan)] if plan.lanes else []
    if operator.kind == "Exchange" and plan.has_counts:
        return [text] if (text := letters(plan.outputs)) else []
    if operator.inside is not None:
        return list(_inside(operator.inside, "", ""))
    if operator.kind in WRITERS:
        word = "split" if operator.kind in CHANGERS else "writer"
        aborted = {
            writer.number: f"; {writer.state}"
            for writer in plan.writers
            if writer.state != "finished"
        }
        return [
            f"{word} {writer.number}  "
            f" {by_operation(writer.total, dict(writer.rows))}{aborted.get(writer.number, '')}"
            for writer in plan.writers
        ]
    return []


def _inside(step: Inner, lead: str, below: str) -> Iterator[str]:
    rows = "" if step.rows is None else f"   {plural(step.rows, 'row')}"
    yield f"{lead}{step.title} {cell(step.arguments, 60).text}".rstrip() + rows
    for index, source in enumerate(step.sources):
        last = index == len(step.sources) - 1
        yield from _inside(
            source, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")
        )


def _becomes(plan: Plan) -> str:
    split = "D" in plan.outputs and "U" not in plan.outputs
    counts: dict[str, int | None] = {}
    for lane in plan.lanes:
        counts[lane.style] = (
            None if lane.rows is None else (counts.get(lane.style) or 0) + lane.rows
        )
    parts = []
    for style, rows in counts.items():
        n = "" if rows is None else f" {number(rows)}"
        result = (
            "no row"
            if style == "N"
            else f"D{n} + I{n}"
            if style == "U" and split
            else f"{style}{n}"
        )
        parts.append(f"{'·' if style == 'N' else style}{n} → {result}")
    return "   ".join(parts)


def _pages(report: Report) -> list[str]:
    pages = report.pages
    if pages is None:
        return []
    channels = pages.channels
    before = [
        *channels.redistribution,
        *([channels.hash] if channels.hash else []),
        channels.row_id,
    ]
    before += [channels.merge_row, channels.case_number, channels.is_distinct]
    lines = [f"Pages; {pages.summary}"]
    lines += _channel_lines("before", before)
    lines += _channel_lines("after", list(channels.after))
    for remark in pages.remarks:
        lines += textwrap.wrap(remark, WIDTH, initial_indent="  ", subsequent_indent="  ")
    if pages.rows:
        lines += ["", *_ledger(pages)]
    return lines


def _channel_lines(word: str, channels: list[Channel]) -> list[str]:
    lines, line = [], f"{word:<8}"
    for channel in channels:
        item = f"{channel.number} {channel.name} {channel.type}"
        if width_of(line) > 8 and width_of(line) + 3 + width_of(item) > WIDTH:
            lines.append(line)
            line = " " * 8
        line += ("   " if width_of(line) > 8 else "") + item
        if width_of(line) > WIDTH:
            wrapped = textwrap.wrap(line, WIDTH, subsequent_indent=" " * 12)
            lines += wrapped[:-1]
            line = wrapped[-1]
    return [*lines, line]


def _ledger(pages: Pages) -> list[str]:
    columns = pages.channels.columns
    indexes = _pick(
        len(columns),
        [i for i, column in enumerate(columns) if column.name in _redistribution(pages)],
    )
    names = [columns[i].name for i in indexes]
    with_numbers = bool(pages.number_head)
    grid = [
        [
            pages.row_word,
            "operation",
            "row_id",
            *names,
            "from update",
            *([pages.number_head] * with_numbers),
            pages.writer_head,
        ]
    ]
    for row in pages.rows:
        grid += _ledger_lines(row, indexes, with_numbers)
    right = {2, *(len(names) + at for at in (3, 4, 5))} | {
        at for at, i in enumerate(indexes, 3) if columns[i].right
    }
    lines = columns_of(grid, right=right)
    if pages.sample:
        lines.append(pages.sample)
    if len(columns) > len(names):
        lines.append(f"{plural(len(columns) - len(names), 'more column')} not shown here")
    return lines


def _redistribution(pages: Pages) -> set[str]:
    return {channel.name for channel in pages.channels.redistribution}


def _pick(count: int, first: list[int]) -> list[int]:
    order = dict.fromkeys([0, *first, *range(count)]) if count else {}
    return sorted(list(order)[:_MOST_COLUMNS])


def _ledger_lines(row: TransformedRow, indexes: list[int], with_numbers: bool) -> list[list[str]]:
    name = (
        " ".join(part for part in (row.source, row.name.text if row.name else "") if part) or "row"
    )
    lines = [[name, f"{row.letter} {row.word}", row.row_id.text]]
    lines += [_after_line(half, indexes, with_numbers) for half in row.after] or [["", "→ no row"]]
    return lines


def _after_line(half: AfterRow, indexes: list[int], with_numbers: bool) -> list[str]:
    writer = "" if half.writer is None else str(half.writer)
    values = [half.columns[i].text for i in indexes]
    return [
        "",
        f"→ {half.letter} {half.code}",
        half.row_id.text,
        *values,
        half.insert_from_update.text,
        *([half.number] * with_numbers),
        writer,
    ]


def _stored(report: Report) -> list[str]:
    return (
        []
        if report.stored is None
        else [f"{report.stored.title}: {report.stored.summary}", *stored_lines(report.stored)]
    )


def stored_lines(pages_of_sinks: Stored) -> list[str]:
    channels = pages_of_sinks.channels
    indexes = list(range(len(channels)))
    if len(channels) > _MOST_COLUMNS + 2:
        last = len(channels) if pages_of_sinks.operation is None else pages_of_sinks.operation
        indexes = [*range(_MOST_COLUMNS), *range(last, len(channels))]
    lines = textwrap.wrap(pages_of_sinks.remark, WIDTH, initial_indent="  ", subsequent_indent="  ")
    grid = [[pages_of_sinks.caller, *(channels[i].name for i in indexes)]]
    for page in pages_of_sinks.pages:
        grid += [[str(page.writer), *(row.cells[i].text for i in indexes)] for row in page.rows]
        if len(page.rows) < page.total:
            grid.append(
                [str(page.writer), f"first {len(page.rows)} of {plural(page.total, 'row')}"]
            )
    right = {0} | {at for at, i in enumerate(indexes, 1) if channels[i].right}
    return [*lines, *columns_of(grid, right=right)]


def _calls(report: Report, timings: bool) -> list[str]:
    calls = report.calls
    if calls is None:
        return []
    grid = [
        [
            "#",
            "where",
            "call",
            "arguments",
            "result",
            "rows",
            "bytes",
            *(["at ms", "took"] if timings else []),
        ]
    ]
    for row in calls.rows:
        counts = [number_or_blank(row.rows), number_or_blank(row.bytes)]
        times = [f"{row.at_ms:.0f}", f"{row.took_ms:.0f}"] if timings else []
        gave = f"failed: {row.error}" if row.error else row.gave
        grid.append([str(row.order), row.where, row.method, row.given, gave, *counts, *times])
    return [f"Connector calls: {calls.summary}", *columns_of(grid, right={0, 5, 6, 7, 8})]


def diff_lines(report: Report) -> list[str]:
    diff = report.diff
    if diff is None:
        return []
    changed = [
        i
        for i in range(len(diff.columns))
        if any(row.cells[i].changed for row in diff.rows if row.style == "U")
    ]
    redistribution = _redistribution(report.pages) if report.pages is not None else set()
    indexes = _pick(
        len(diff.columns),
        [*(i for i, column in enumerate(diff.columns) if column.name in redistribution), *changed],
    )
    lines = [f"Changed rows: {diff.summary}", *([diff.remark] if diff.remark else [])]
    sizes = textwrap.wrap(diff.sizes, WIDTH)
    if not diff.rows and not diff.same:
        return [*lines, *sizes]
    grid = [
        [
            "",
            *(diff.columns[i].name for i in indexes),
            *(["case", "source row"] if diff.joined else []),
        ]
    ]
    for row in diff.rows:
        values = [_change(row.cells[i]) for i in indexes]
        grid.append([row.sign, *values, *([row.case, row.source] if diff.joined else [])])
    for same in diff.same:
        numbers = [same.case, same.source] if diff.joined else []
        grid.append(["=", *(same.cells[i].text for i in indexes), *numbers])
    lines += [*columns_of(grid, right={len(indexes) + 1, len(indexes) + 2}), *sizes]
    if len(diff.columns) > len(indexes):
        lines.append(f"{plural(len(diff.columns) - len(indexes), 'more column')} not shown here")
    return lines


def _journeys(report: Report, *, listed: bool) -> list[str]:
    journeys = report.journeys
    if journeys is None:
        return []
    lines = [f"Row journeys: {journeys.summary}"]
    if journeys.rows:
        lines += columns_of(
            [list(journeys.heads), *(list(journeys.values(row)) for row in journeys.rows)]
        )
        lines += textwrap.wrap(f"Clauses: {journeys.marks}.", WIDTH) if journeys.joined else []
        for row in journeys.rows if not journeys.condition else ():
            if row.by_null:
                lines += textwrap.wrap(f"{row.which}: {row.gist}", WIDTH, subsequent_indent="  ")
    lines += textwrap.wrap(journeys.remark, WIDTH)
    if journeys.condition:
        for row in journeys.rows:
            lines += ["", row.head, *(f"  {reason}" for reason in row.sentences)]
    if journeys.others:
        lines += (
            [f"{journeys.apart}."]
            if listed
            else [f"{journeys.apart}:", *(f"  {row}" for row in journeys.others)]
        )
    return lines


def _check(report: Report) -> list[str]:
    if report.check is None:
        return []
    lines = textwrap.wrap(report.check.message, WIDTH)
    for pattern in report.check.patterns:
        lines += textwrap.wrap(pattern, WIDTH)
    for row in report.check.rows:
        lines += textwrap.wrap(row.sentence, WIDTH, initial_indent="- ", subsequent_indent="  ")
        details = "; ".join(filter(None, [row.call, row.way]))
        lines += (
            textwrap.wrap(details, WIDTH, initial_indent="  ", subsequent_indent="  ")
            if details
            else []
        )
    return [*lines, f"and {report.check.more}"] if report.check.more else lines


def _near(report: Report) -> list[str]:
    if report.near is None:
        return []
    return [
        line
        for sentence in report.near.sentences
        for line in textwrap.wrap(f"Near miss: {sentence}", WIDTH, subsequent_indent="  ")
    ]


def _words(report: Report) -> list[str]:
    lines = ["Words"]
    for word, meaning in () if report.words is None else report.words.rows:
        lines += textwrap.wrap(
            f"{word}: {meaning}", WIDTH, initial_indent="  ", subsequent_indent="    "
        )
    return lines


def _change(change: ChangeCell) -> str:
    old, new = change.old or Cell(""), change.new or Cell("")
    if change.old is not None and change.new is not None and change.changed:
        return f"{old.text} → {new.text}"
    return new.text or old.text
