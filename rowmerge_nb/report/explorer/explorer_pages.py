"""The pages of the explorer: rows after the join and the CASE, rows for the sinks, stored rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.words import number, plural
from rowmerge_nb.report.model.pages import Channel
from rowmerge_nb.report.words.display_values import cell, tail, visible
from rowmerge_nb.report.words.phrases import style_of
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.words import operation_letters

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rowmerge_nb.report.model.report import Report
    from rowmerge_nb.report.words.display_values import Cell
    from rowmerge_nb.spi.page import PageLayout
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.trace import Trace

NO_PAGE: Final[Mapping[str, Any]] = {"channels": [], "rows": [], "handed": 0, "decided": 0}


def values_of(side: Mapping[str, Any] | None) -> list[str | None] | None:
    return None if side is None else [value_text(value) for value in side.values()]


def value_text(value: Any) -> str | None:
    return cell_text(cell(value))


def cell_text(display_cell: Cell) -> str | None:
    return None if display_cell.null else display_cell.text


def _before_channels(report: Report, pages: PageSample) -> Sequence[Channel]:
    if report.pages is not None and pages.transformed:
        return report.pages.channels.before
    return [Channel(str(index), name, "") for index, name in enumerate(pages.before.schema.names)]


def before_page(report: Report, pages: PageSample) -> dict[str, Any]:
    """Return the page before ``transform_page``, with the fields of its merge row as channels."""
    channels, page, unfolded = _before_channels(report, pages), pages.before, pages.transformed
    columns: list[list[Any]] = []
    for index in range(page.num_columns):
        column = page.column(index)
        if unfolded and index == pages.layout.before.merge_row:
            columns += [python_values(field) for field in column.flatten()]
        else:
            columns.append(python_values(column))
    if unfolded:
        _write_codes(columns, pages.layout)
    rows = list(zip(*columns, strict=True))
    hashed = pages.layout.before.hash if unfolded else None
    return {
        "channels": [_channel(channel) for channel in channels],
        # The number of channels after the CASE; the last ones are the merge row.
        "decided": (
            pages.layout.before.merge_row
            + page.column(pages.layout.before.merge_row).type.num_fields
            if unfolded
            else len(channels)
        ),
        "rows": [
            {
                "of": at,
                "cells": [
                    cell_text(tail(value)) if channel == hashed else value_text(value)
                    for channel, value in enumerate(row)
                ],
            }
            for at, row in enumerate(rows)
        ],
    }


def _write_codes(columns: list[list[Any]], layout: PageLayout) -> None:
    first, fields = layout.before.merge_row, layout.merge_row
    for index in (
        first + fields.operation,
        first + fields.case_number,
        layout.before.case_number + fields.case_number,
    ):
        columns[index] = [None if value is None else number(value) for value in columns[index]]


def _channel(channel: Channel) -> dict[str, Any]:
    return {"number": channel.number, "name": visible(channel.name), "right": channel.right}


def after_page(report: Report, pages: PageSample, placements: Sequence[str]) -> dict[str, Any]:
    channels = (
        report.pages.channels.after
        if report.pages is not None
        else [Channel(str(index), name, "") for index, name in enumerate(pages.after.schema.names)]
    )
    page = pages.after
    origins = [index for index, produced in enumerate(pages.produced) for _ in range(produced)]
    operations = [
        Operation(operation) for operation in page.column(pages.layout.after.operation).to_pylist()
    ]
    values = zip(*(python_values(column) for column in page.columns), strict=True)
    rows = [
        {
            "of": index,
            "cells": [value_text(value) for value in row],
            "letter": operation.letter,
            "style": style_of(operation),
            "writer": pages.writers[at],
            "placed": placements[at] if placements else "",
        }
        for at, (index, operation, row) in enumerate(zip(origins, operations, values, strict=True))
    ]
    # Sinks receive the channels before this one.
    handed_count = pages.layout.after.insert_from_update if pages.transformed else page.num_columns
    return {
        "channels": [_channel(channel) for channel in channels],
        "rows": rows,
        "handed": handed_count,
    }


def stored_pages(report: Report, trace: Trace) -> list[dict[str, Any]]:
    pages = {page.writer: page for page in report.stored.pages} if report.stored is not None else {}
    channels = (
        [_channel(channel) for channel in report.stored.channels]
        if report.stored is not None
        else []
    )
    writers = []
    for writer in trace.writers:
        page = pages.get(writer.writer)
        writers.append(
            {
                "number": writer.writer,
                "rows": operation_letters(writer.rows),
                "stored": (
                    f"{plural(writer.fragments, 'fragment')},"
                    f" {plural(writer.fragment_bytes, 'byte')}"
                ),
                "channels": channels,
                "page": (
                    [
                        {
                            "style": row.style,
                            "cells": [cell_text(display_cell) for display_cell in row.cells],
                        }
                        for row in page.rows
                    ]
                    if page
                    else []
                ),
                "total": page.total if page else 0,
            }
        )
    return writers
