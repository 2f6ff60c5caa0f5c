"""How a row got its writer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import MINUS, join, number
from rowmerge_nb.report.model.placing import (
    EVENLY,
    FUNCTION,
    HASH,
    IN_TURN,
    exchange_of,
    exchange_sentence,
    rules_of,
)
from rowmerge_nb.report.words.display_values import cell, visible
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.trace.trace import Trace

_INSERTED: Final = (Operation.INSERT, Operation.UPDATE_INSERT)
_EVENLY: Final = f"to {IN_TURN}: no value decides"
NOT_SHOWN: Final = "a function of the connector decides, and no row of the run shows its result"
"""Why the writer of a row is unknown."""


@dataclass(frozen=True)
class WriterChoice:
    """How a row got its writer.

    Args:
        number: its result for the values; None if unknown.
        among: the number of writers, the divisor.
        writer: the remainder, which is the writer; -1 if unknown.
    """

    rule: str
    values: str
    number: int | None
    among: int | None
    writer: int

    @property
    def cells(self) -> tuple[str, str, str]:
        if self.rule == EVENLY:
            return _EVENLY, "", number(self.writer) if self.writer >= 0 else ""
        if self.writer < 0:
            return f"{self.values}: {NOT_SHOWN}", "", ""
        # Like the channel `hash`, without thousands separators.
        return (
            self.values,
            "" if self.number is None else str(self.number).replace("-", MINUS),
            number(self.writer),
        )

    @property
    def sentence(self) -> str:
        if self.rule == EVENLY:
            return _EVENLY
        if self.writer < 0:
            return f"{self.values}: {NOT_SHOWN}"
        remainder = (
            ""
            if self.number is None
            else f" {self.number} \N{RIGHTWARDS ARROW} mod {number(self.among or 0)}"
        )
        by = "the connector's function" if self.rule == FUNCTION else "hash"
        return f"{self.values} \N{RIGHTWARDS ARROW} {by}{remainder} = writer {number(self.writer)}"


def place_sentence(trace: Trace) -> str:
    exchange = exchange_of(trace)
    if exchange is None or exchange.insert_rule == "":
        return exchange_sentence(trace)
    columns = join(_columns(trace)) or "nothing"
    # Other languages give -5 mod 2 as -1.
    hash_note = (
        " The hash is Spark's xxhash64, and mod is never below zero."
        if exchange.insert_rule == HASH
        else ""
    )
    rows = "rows to insert" if rules_of(trace, exchange)[1] == EVENLY else "rows"
    alike = (
        f"{rows} with the same {columns}"
        if exchange.insert_rule == HASH
        else f"{rows} for which its function of {columns} returns the same value"
    )
    return (
        f"A row's place is what the connector keeps together, here {alike}: one place,"
        f" one writer. {exchange_sentence(trace)}{hash_note}"
    )


def placed_rows(trace: Trace) -> list[str]:
    return [one.sentence for one in places_of(trace)]


def places_of(trace: Trace) -> list[WriterChoice]:
    pages, exchange = trace.samples.pages, exchange_of(trace)
    if pages is None or exchange is None or not pages.writers:
        return []
    inserts, others = rules_of(trace, exchange)
    layout = pages.layout
    operations = pages.after.column(layout.after.operation).to_pylist()
    by_columns = _read(trace, layout.redistribution_columns)
    by_row_id = _read(trace, (layout.after.row_id,)) if exchange.update_rule else by_columns
    placement = pages.placement
    places = []
    for at, (operation, writer) in enumerate(zip(operations, pages.writers, strict=True)):
        inserted = operation in _INSERTED
        rule, values = (inserts, by_columns[at]) if inserted else (others, by_row_id[at])
        placed_number, among = (
            (None, None) if placement is None else (placement.numbers[at], placement.writers)
        )
        places.append(WriterChoice(rule, values, placed_number, among, writer))
    return places


def _columns(trace: Trace) -> list[str]:
    pages = trace.samples.pages
    return (
        []
        if pages is None
        else [
            visible(pages.after.schema.names[index])
            for index in pages.layout.redistribution_columns
        ]
    )


def _read(trace: Trace, channels: Sequence[int]) -> list[str]:
    pages = trace.samples.pages
    assert pages is not None
    names = [visible(pages.after.schema.names[index]) for index in channels]
    rows = zip(*(python_values(pages.after.column(index)) for index in channels), strict=True)
    return (
        [
            ", ".join(f"{name} = {_text(value)}" for name, value in zip(names, row, strict=True))
            for row in rows
        ]
        if names
        else ["no column decides"] * pages.after.num_rows
    )


def _text(value: object) -> str:
    display_cell = cell(value)
    if display_cell.null:
        return "NULL"
    return f"'{display_cell.text}'" if isinstance(value, str) else display_cell.text
