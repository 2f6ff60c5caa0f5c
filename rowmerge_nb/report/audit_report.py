"""An audit as text and HTML."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import MINUS, join, number, plural
from rowmerge_nb.report.html import render_parts, render_standing_alone
from rowmerge_nb.report.model.journeys import journey_row
from rowmerge_nb.report.plain_text import WIDTH
from rowmerge_nb.report.words.columns import columns_of
from rowmerge_nb.report.words.display_values import cell, is_number
from rowmerge_nb.report.words.reasons import because_of
from rowmerge_nb.report.words.side_names import renamed, side_names, with_side_names
from rowmerge_nb.trace.audit import RowFate
from rowmerge_nb.trace.page_samples import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rowmerge_nb.report.words.display_values import Cell
    from rowmerge_nb.trace.audit import Audit, AuditedRow

SHOWN: Final = 10
"""The maximum number of keys whose rows are shown; `Audit.rows` has all."""
_SIDES: Final = 3
"""The maximum number of rows shown per key and side."""
_WORDS: Final = {
    Answer.TRUE: "true",
    Answer.FALSE: "false",
    Answer.UNKNOWN: "unknown",
    Answer.FAILED: "an error",
    Answer.NOT_KNOWN: "not known",
}
_KINDS: Final = (("before", "was"), ("missing", "missing"), ("unexpected", "unexpected"))


@dataclass(frozen=True)
class ShownRow:
    """The rows of one key: state, values and reasons."""

    head: str
    lines: tuple[tuple[str, tuple[Cell, ...]], ...]
    about: tuple[tuple[str, tuple[str, ...]], ...]


def audit_bundle(audit: Audit) -> dict[str, str]:
    text = "\n".join(_lines(audit))
    names: dict[str, Any] = {
        "audit": audit,
        "states": _states(audit),
        "numbers": _numbers(audit),
        "clauses": _clauses(audit),
        "explained": [
            (_share(one), f"{one.cause}: {one.sentence}.", one.statement)
            for one in audit.explanations
        ],
        "unexplained": _unexplained(audit),
        "columns": [name for name, _ in audit.columns],
        "right": _right(audit),
        "rows": [_shown(audit, row) for row in audit.rows[:SHOWN]],
        "more": _more(audit),
        "notices": _notices(audit),
    }
    return {
        "text/plain": text,
        "text/html": render_parts("audit.html.j2", names, text, audit.statement),
    }


def audit_page(audit: Audit) -> str:
    return render_standing_alone(
        f"Audit of {audit.table}", audit.statement, audit_bundle(audit)["text/html"]
    )


def _states(audit: Audit) -> str:
    return (
        f"{audit.kind} evaluated on {audit.before}, compared with {audit.after}. Nothing was begun"
        " or written."
    )


def _numbers(audit: Audit) -> list[tuple[str, str, str]]:
    counts = audit.counts
    expected = counts.before - counts.to_remove + counts.to_add
    return [
        ("rows before", number(counts.before), number(counts.before)),
        ("taken away", _signed(counts.to_remove, MINUS), _signed(counts.removed, MINUS)),
        ("put in", _signed(counts.to_add, "+"), _signed(counts.added, "+")),
        ("rows after", number(expected), number(counts.after)),
    ]


def _signed(count: int, sign: str) -> str:
    return f"{sign}{number(count)}" if count else "0"


def _clauses(audit: Audit) -> list[tuple[str, str, str, str]]:
    if audit.kind != "MERGE":
        return []
    return [
        (str(c.number), c.operation.name, number(c.rows or 0), " ".join((c.head or c.text).split()))
        for c in audit.clauses
    ]


def _share(one: Any) -> str:
    return f"{number(one.rows)} of {plural(one.of, 'row')}"


def _unexplained(audit: Audit) -> str:
    if audit.agrees or any(one.rows == one.of for one in audit.explanations):
        return ""
    if not audit.explanations:
        return (
            "No known difference explains these rows: check the other engine's"
            " statement and other writers of the table."
        )
    return "No known difference explains the other rows."


def _notices(audit: Audit) -> list[str]:
    sentences = []
    if audit.repeated:
        rows = sum(pattern.rows for pattern in audit.repeated)
        sentences.append(
            f"Several source rows match {plural(rows, 'target row')}: Trino ends such"
            " a statement, or leaves a version of the row for each clause that fires. The"
            " result of each source row is compared."
        )
    return [*sentences, *audit.notices]


def _more(audit: Audit) -> str:
    displayed = sum(len(row.missing) + len(row.unexpected) for row in audit.rows[:SHOWN])
    rest = audit.differing - displayed
    return f"and {plural(rest, 'row')} more" if rest > 0 else ""


def _right(audit: Audit) -> set[int]:
    return {at for at, (_, sql_type) in enumerate(audit.columns) if is_number(sql_type)}


def _shown(audit: Audit, row: AuditedRow) -> ShownRow:
    names = [name for name, _ in audit.columns]
    lines = tuple(
        (word, tuple(cell(values[name]) for name in names))
        for side, word in _KINDS
        for values in getattr(row, side)[:_SIDES]
    )
    about = [
        (one.head, one.reasons)
        for one in (
            journey_row(way, audit.kind == "MERGE")
            for way in with_side_names(row.journeys, _names(audit))
        )
    ] or [_without_journey(audit, row)]
    return ShownRow(_head(row), lines, tuple(about))


def _names(audit: Audit) -> Mapping[str, str]:
    return side_names(audit.target_alias, audit.source_alias)


def _head(row: AuditedRow) -> str:
    key = ", ".join(f"{name} = {cell(value).text}" for name, value in row.key.items())
    explained = (
        f" ({join([str(cause) for cause in row.causes])}{': ' + row.remark if row.remark else ''})"
        if row.causes
        else ""
    )
    return f"{key}: {_fate(row)}{explained}"


def _fate(row: AuditedRow) -> str:
    if row.fate is RowFate.OTHER_VALUES:
        expected, actual = row.missing[0], row.unexpected[0]
        columns = [name for name in expected if repr(expected[name]) != repr(actual[name])]
        return (
            f"other {'value' if len(columns) == 1 else 'values'} in {join(columns)}"
            if columns
            else "other values"
        )
    changed = row.before and row.unexpected and row.unexpected[0] not in row.before
    sentences: Mapping[RowFate, str] = {
        RowFate.NOT_THERE: "should exist but does not",
        RowFate.NOT_CHANGED: "should have been changed but is unchanged",
        RowFate.STILL_THERE: (
            f"should have been deleted but still exists{', with other values' if changed else ''}"
        ),
        RowFate.TOO_OFTEN: f"exists {plural(len(row.unexpected), 'time')} too often",
        RowFate.TOO_RARE: f"exists {plural(len(row.missing), 'time')} too rarely",
        RowFate.NOT_ASKED_FOR: "exists, but no clause created it",
    }
    return sentences[row.fate]


def _without_journey(audit: Audit, row: AuditedRow) -> tuple[str, tuple[str, ...]]:
    if row.where is not None:
        reason = because_of(renamed(row.where, _names(audit)))
        return "It is not chosen", (f"WHERE is {_WORDS[row.where.answer]}{reason}.",)
    if not row.before:
        return "Nothing makes it", (
            "No row that took part has this key, and the table did not have it before.",
        )
    if audit.kind == "MERGE":
        return "It is unchanged", ("No source row matches it.",)
    return "It is unchanged", ("The statement does not select it.",)


def _lines(audit: Audit) -> Iterator[str]:
    yield from textwrap.wrap(audit.sentence, WIDTH)
    yield from textwrap.wrap(_states(audit), WIDTH)
    for notice in _notices(audit):
        yield from textwrap.wrap(f"Notice: {notice}", WIDTH)
    yield ""
    yield from columns_of([("", "the statement", "the table"), *_numbers(audit)], right={1, 2})
    if clauses := _clauses(audit):
        yield ""
        table = columns_of([("clause", "operation", "rows", ""), *clauses], right={0, 2})
        yield from (line[:WIDTH].rstrip() for line in table)
    if audit.explanations or _unexplained(audit):
        yield from ("", "What explains it")
    for one in audit.explanations:
        yield from textwrap.wrap(f"{_share(one)}: {one.cause}: {one.sentence}.", WIDTH)
        if one.statement:
            yield from (
                "  For these rows, the table holds the result of this statement:",
                *_indented(one.statement),
            )
    yield from textwrap.wrap(_unexplained(audit), WIDTH)
    for row in audit.rows[:SHOWN]:
        yield from ("", *_row_lines(audit, _shown(audit, row)))
    yield from [_more(audit)] if _more(audit) else []


def _row_lines(audit: Audit, row: ShownRow) -> Iterator[str]:
    yield row.head
    names = [name for name, _ in audit.columns]
    table = [["", *names], *([word, *(one.text for one in cells)] for word, cells in row.lines)]
    yield from columns_of(table, right={at + 1 for at in _right(audit)})
    for head, reasons in row.about:
        yield head
        yield from (f"  {reason}" for reason in reasons)


def _indented(statement: str) -> Sequence[str]:
    return [f"    {line}".rstrip() for line in statement.split("\n")]
