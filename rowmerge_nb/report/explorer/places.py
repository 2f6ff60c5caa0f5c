"""Why a row went to its writer: the rule of the exchange in a sentence, and per row its own values and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.report.model.placing import EVENLY, FUNCTION, HASH, IN_TURN, exchange_of, exchange_sentence, rules_of
from rowmerge_nb.report.words.values import cell, visible
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.words import join, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.trace.trace import Placement, Trace

__all__ = ["place_sentence", "placed_rows"]

_INSERTED: Final = (Operation.INSERT, Operation.UPDATE_INSERT)


def place_sentence(trace: Trace) -> str:
    """Say what the place of a row is, and which writer it goes to; ``""`` without an exchange."""
    exchange = exchange_of(trace)
    if exchange is None or exchange.insert_rule == "":
        return exchange_sentence(trace)
    columns = join(_columns(trace)) or "nothing"
    # Other languages give -5 mod 2 as -1.
    counted = " The hash is Spark's xxhash64, and mod is never below zero." if exchange.insert_rule == HASH else ""
    rows = "rows to insert" if rules_of(trace, exchange)[1] == EVENLY else "rows"
    alike = (
        f"{rows} with the same {columns}"
        if exchange.insert_rule == HASH
        else f"{rows} for which its function of {columns} gives the same"
    )
    return f"A row's place is what the connector wants kept together, here {alike}: one place, one writer. {exchange_sentence(trace)}{counted}"


def placed_rows(trace: Trace) -> list[str]:
    """Say of each row of the page after ``transform_page`` what led to its writer; nothing without an exchange."""
    pages, exchange = trace.pages, exchange_of(trace)
    if pages is None or exchange is None or not pages.writers:
        return []
    inserts, others = rules_of(trace, exchange)
    layout = pages.layout
    operations = pages.after.column(layout.after.operation).to_pylist()
    by_columns = _read(trace, layout.redistribution_columns)
    by_row_id = _read(trace, (layout.after.row_id,)) if exchange.update_rule else by_columns
    told = []
    for at, (operation, writer) in enumerate(zip(operations, pages.writers, strict=True)):
        inserted = operation in _INSERTED
        rule, values = (inserts, by_columns[at]) if inserted else (others, by_row_id[at])
        told.append(_told(rule, values, writer, _remainder(pages.placement, at)))
    return told


def _remainder(placement: Placement | None, row: int) -> str:
    # As the channel `hash` has it, without marks between thousands.
    return "" if placement is None else f" {placement.numbers[row]} \N{RIGHTWARDS ARROW} mod {number(placement.writers)}"


def _told(rule: str, values: str, writer: int, remainder: str) -> str:
    if rule == EVENLY:
        return f"to {IN_TURN}: no value decides"
    if writer < 0:
        return f"{values}: a function of the connector's decides, and the run has shown no row of this place"
    if rule == FUNCTION:
        return f"{values} \N{RIGHTWARDS ARROW} the connector's function{remainder} = writer {number(writer)}"
    return f"{values} \N{RIGHTWARDS ARROW} hash{remainder} = writer {number(writer)}"


def _columns(trace: Trace) -> list[str]:
    pages = trace.pages
    return [] if pages is None else [visible(pages.after.schema.names[index]) for index in pages.layout.redistribution_columns]


def _read(trace: Trace, channels: Sequence[int]) -> list[str]:
    """Print what the rows have in some channels: ``address = 'Gilroy'``."""
    pages = trace.pages
    assert pages is not None
    names = [visible(pages.after.schema.names[index]) for index in channels]
    rows = zip(*(python_values(pages.after.column(index)) for index in channels), strict=True)
    return (
        [", ".join(f"{name} = {_text(value)}" for name, value in zip(names, row, strict=True)) for row in rows]
        if names
        else ["no column decides"] * pages.after.num_rows
    )


def _text(value: object) -> str:
    made = cell(value)
    if made.null:
        return "NULL"
    return f"'{made.text}'" if isinstance(value, str) else made.text
