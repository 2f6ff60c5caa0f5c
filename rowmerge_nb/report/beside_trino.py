"""Our run of a statement beside Trino's, as text and HTML."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rowmerge_nb.base.words import number_or_blank
from rowmerge_nb.report.html import render_parts
from rowmerge_nb.report.plain_text import WIDTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rowmerge_nb.report.model.beside_trino import BesideTrino

HEADS = ("rows of", "here", "rows", "Trino", "rows")


def beside_trino_bundle(comparison: BesideTrino) -> dict[str, str]:
    rows = [
        (
            step.name,
            step.ours or "–",
            number_or_blank(step.our_rows),
            step.trino or "–",
            number_or_blank(step.trino_rows),
            step is comparison.first,
        )
        for step in comparison.steps
    ]
    only_rows = [
        (
            f"Only {where}",
            ", ".join(f"{name} {number_or_blank(count)}".strip() for name, count in operators),
        )
        for where, operators in (
            ("here", comparison.only_ours),
            ("in Trino", comparison.only_trino),
        )
        if operators
    ]
    sentence = _sentence(comparison)
    text = "\n".join(_lines(sentence, rows, only_rows, comparison.notices))
    names = {
        "sentence": sentence,
        "parts": comparison.first is not None,
        "heads": HEADS,
        "rows": rows,
        "alone": only_rows,
        "notices": comparison.notices,
    }
    return {
        "text/plain": text,
        "text/html": render_parts("beside_trino.html.j2", names, text, comparison.query.statement),
    }


def _sentence(comparison: BesideTrino) -> str:
    query = f"Trino's query {comparison.query.id}"
    compared = sum(
        step.our_rows is not None and step.trino_rows is not None for step in comparison.steps
    )
    if comparison.first is not None:
        step = comparison.first
        return (
            f"{query} diverges from this run at {step.name}:"
            f" {number_or_blank(step.our_rows)} here, {number_or_blank(step.trino_rows)} in"
            " Trino."
        )
    if comparison.is_failed:
        return f"{query} and this run: at least one of them failed, so their rows may differ."
    if not compared:
        return f"{query} and this run: there are no rows to compare."
    return f"{query} and this run have the same rows in all {compared} steps that both counted."


def _lines(
    sentence: str,
    rows: Sequence[tuple[str, str, str, str, str, bool]],
    only_rows: Sequence[tuple[str, str]],
    notices: Sequence[str],
) -> Iterator[str]:
    yield from textwrap.wrap(sentence, WIDTH)
    yield ""
    table = [HEADS, *(row[:5] for row in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(5)]
    for number_of, row in enumerate(table):
        cells = [
            cell.rjust(width) if i in {2, 4} else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        mark = "  ◀ first to part" if number_of and rows[number_of - 1][5] else ""
        yield f"{'  '.join(cells).rstrip()}{mark}"
    for head, operators in only_rows:
        yield from textwrap.wrap(f"{head}: {operators}", WIDTH, subsequent_indent="  ")
    for notice in notices:
        yield from textwrap.wrap(f"Notice: {notice}", WIDTH, subsequent_indent="  ")
