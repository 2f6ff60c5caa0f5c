"""Why a row went to its writer: the rule of the exchange in a sentence, and per row its own values and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.report.words.values import cell, visible
from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.spi.values import python_values
from rowmerge_nb.trace.nodes import ExchangeFacts
from rowmerge_nb.words import join, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.trace.trace import Placement, Trace

__all__ = ["exchange_sentence", "placed_rows"]

_HASH, _FUNCTION, _EVEN = "hash", "function", "evenly"
_INSERTED: Final = (Operation.INSERT, Operation.UPDATE_INSERT)


def exchange_sentence(trace: Trace) -> str:
    """Say which writer a row goes to, and what its place is."""
    inserts, others = _rules(trace)
    columns = join(_columns(trace)) or "nothing"
    placement = None if trace.pages is None else trace.pages.placement
    spread = "the number of writers" if placement is None else number(placement.writers)
    if _EVEN in {inserts, others} and inserts == others:
        return "Spreads the rows evenly over the writers, a run of rows for each."
    alike = f"rows with the same {columns}" if inserts == _HASH else f"rows for which its function f({columns}) gives the same"
    head = f"A row's place is what the connector wants kept together, here {alike}: one place, one writer."
    writer = f"{_number_of(inserts, columns)} mod {spread}"
    if others == _EVEN:
        return f"{head} A row to insert goes to writer {writer}, others are spread evenly."
    if _by_row_id(trace):
        return f"{head} A row to insert goes to writer {writer}, a row to delete or update to writer {_number_of(others, 'row_id')} mod {spread}."
    return f"{head} A row goes to writer {writer}: one to delete by its old values, any other by its new ones."


def placed_rows(trace: Trace) -> list[str]:
    """Say of each row of the page after ``transform_page`` what led to its writer; nothing without an exchange."""
    pages = trace.pages
    if pages is None or _exchange(trace) is None or not pages.writers:
        return []
    inserts, others = _rules(trace)
    layout = pages.layout
    operations = pages.after.column(layout.after.operation).to_pylist()
    by_columns = _read(trace, layout.redistribution_columns)
    by_row_id = _read(trace, (layout.after.row_id,)) if _by_row_id(trace) else by_columns
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
    if rule == _EVEN:
        return "spread evenly: no value decides"
    if writer < 0:
        return f"{values}: a function of the connector's decides, and the run has shown no row of this place"
    if rule == _FUNCTION:
        return f"{values} \N{RIGHTWARDS ARROW} the connector's function{remainder} = writer {number(writer)}"
    return f"{values} \N{RIGHTWARDS ARROW} hash{remainder} = writer {number(writer)}"


def _exchange(trace: Trace) -> ExchangeFacts | None:
    return next((node.facts for node in trace.plan if isinstance(node.facts, ExchangeFacts)), None)


def _rules(trace: Trace) -> tuple[str, str]:
    """Give what decides over rows to insert, and over others."""
    facts = _exchange(trace)
    inserts = (facts.insert_rule if facts is not None else "") or _EVEN
    updates = facts.update_rule if facts is not None else ""
    return inserts, updates or (inserts if trace.era == Era.DOCUMENTS else _EVEN)


def _by_row_id(trace: Trace) -> bool:
    exchange = _exchange(trace)
    return exchange is not None and bool(exchange.update_rule)


def _number_of(rule: str, columns: str) -> str:
    return f"hash({columns})" if rule == _HASH else f"f({columns})"


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
