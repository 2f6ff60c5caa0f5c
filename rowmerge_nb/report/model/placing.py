"""Sentences about how changed rows find their writers, and about the other row change paradigm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.choices import RepeatedMatches
from rowmerge_nb.base.words import MINUS, code, join, number, plural
from rowmerge_nb.report.model.clauses import operation_counts
from rowmerge_nb.spi.operations import Era
from rowmerge_nb.trace.node_records import ExchangeFacts
from rowmerge_nb.trace.words import letters

if TYPE_CHECKING:
    from rowmerge_nb.trace.trace import Trace

DELETE_AND_INSERT: Final = "DELETE_ROW_AND_INSERT_ROW"
CHANGE_ONLY: Final = "CHANGE_ONLY_UPDATED_COLUMNS"
HASH, FUNCTION, EVENLY = "hash", "function", "evenly"
"""What selects a row's writer: the engine's hash, a function of the connector, or no value of the
row.
"""
MOST_NAMED: Final = 3
"""The maximum number of writers listed by number."""
ROOM: Final = 40
"""The maximum number of characters of a rule in a sentence; the plan shows all of it."""
IN_TURN: Final = "the writers in turn, some thousand rows at a time"
COMPARED: Final = (
    f" {code('--compare paradigms')} runs both; if a store supports only one, on a"
    " copy of the target in memory."
)
BY_ORDER: Final = "the result would depend on their order"
"""Why two clauses may not change one row in place."""
_TWO_ROWS: Final = (
    "DELETE_ROW_AND_INSERT_ROW: the connector takes rows to delete and rows to insert and changes"
    " none in place. So an UPDATE is two rows: a DELETE of the old row, by its row id, and an"
    " INSERT of the new one."
)
_ONE_ROW: Final = (
    "CHANGE_ONLY_UPDATED_COLUMNS: the connector changes rows in place. So an UPDATE stays one row:"
    " the row id, by which its writer finds the old row wherever it lies, and all columns. Those"
    " that no clause sets carry their old values, since all rows of a page have the same columns."
)


def exchange_of(trace: Trace) -> ExchangeFacts | None:
    exchanges = (record.facts for record in trace.plan if record.kind == "Exchange")
    return next((facts for facts in exchanges if isinstance(facts, ExchangeFacts)), None)


def rules_of(trace: Trace, exchange: ExchangeFacts) -> tuple[str, str]:
    inserts = exchange.insert_rule or EVENLY
    updates = inserts if trace.settings.era == Era.DOCUMENTS else EVENLY
    return inserts, exchange.update_rule or updates


def writers_among(trace: Trace) -> int | None:
    placement = None if trace.samples.pages is None else trace.samples.pages.placement
    return None if placement is None else placement.writers


def writers_phrase(trace: Trace) -> str:
    """Count the writers, and name those with rows: ``2 writers, of which writer 1 got rows``."""
    numbers = [record.writer for record in trace.writers]
    among = writers_among(trace)
    if among is None or among <= len(numbers):
        return plural(len(numbers), "writer")
    which = (
        f"{'writer' if len(numbers) == 1 else 'writers'}"
        f" {join([number(writer) for writer in numbers])}"
        if len(numbers) <= MOST_NAMED
        else number(len(numbers))
    )
    return f"{plural(among, 'writer')}, of which {which} got rows"


def writers_word(trace: Trace) -> str:
    """Return the divisor of the exchange: `` mod 2``; ``""`` if unknown."""
    among = writers_among(trace)
    return "" if among is None else f" mod {number(among)}"


def number_head(trace: Trace) -> str:
    exchange = exchange_of(trace)
    if trace.samples.pages is None or trace.samples.pages.placement is None:
        return ""
    return (
        _rule(exchange.inserts)
        if exchange is not None and _all_alike(trace, exchange)
        else "its number"
    )


def _all_alike(trace: Trace, exchange: ExchangeFacts) -> bool:
    inserts, others = rules_of(trace, exchange)
    return not exchange.update_rule and inserts == others


def exchange_sentence(trace: Trace) -> str:
    """Describe which writer the exchange sends a row to; ``""`` without an exchange."""
    exchange = exchange_of(trace)
    if exchange is None:
        return ""
    inserts, others = rules_of(trace, exchange)
    to = _writer(trace, inserts, exchange.inserts)
    if not _all_alike(trace, exchange):
        return (
            f"An INSERT goes to {to}, a DELETE or UPDATE to"
            f" {_writer(trace, others, exchange.others)}."
        )
    if inserts == EVENLY:
        return f"A row goes to {to}."
    update = "" if trace.settings.paradigm == DELETE_AND_INSERT else " or UPDATE"
    old = "a DELETE by the old values, which its row keeps for that (there is no update layout)"
    return f"A row goes to {to}: an INSERT{update} by the new values, {old}."


def _writer(trace: Trace, rule: str, words: str) -> str:
    return IN_TURN if rule == EVENLY else f"writer {_rule(words)}{writers_word(trace)}"


def _rule(rule: str) -> str:
    return rule if len(rule) <= ROOM else "(connector's bucket)"


def update_form(paradigm: str) -> str:
    return _TWO_ROWS if paradigm == DELETE_AND_INSERT else _ONE_ROW


def other_paradigm(trace: Trace) -> str:
    if trace.settings.paradigm not in {DELETE_AND_INSERT, CHANGE_ONLY}:
        return ""
    other = CHANGE_ONLY if trace.settings.paradigm == DELETE_AND_INSERT else DELETE_AND_INSERT
    counts = operation_counts(trace)
    if counts and counts.get("U", 0) == 0:
        return (
            f"With {other}, the same number of rows would leave, since none is updated.{COMPARED}"
        )
    shape = (
        "stay one row: operation 3, the row id and all columns, since all rows of a"
        " page have the same columns, regardless of what a clause sets"
        if other == CHANGE_ONLY
        else "be two rows, a DELETE with the row id and an INSERT"
    )
    return (
        f"By {other} an UPDATE would"
        f" {shape}.{_going(trace, other)}{_as_rows(trace, counts)}{_left(trace, other)}{COMPARED}"
    )


def _left(trace: Trace, other: str) -> str:
    patterns = trace.join.multiple_matches
    if trace.kind == "MERGE" and patterns is None:
        return ""
    if trace.kind == "MERGE" and patterns and any(pattern.acting > 1 for pattern in patterns):
        fails = other == CHANGE_ONLY and trace.settings.duplicates == RepeatedMatches.TRINO
        return (
            f" But the statement would fail, since two clauses change one row in place: {BY_ORDER}."
            if fails
            else ""
        )
    return " The table would have the same rows."


def _as_rows(trace: Trace, counts: dict[str, int | None]) -> str:
    if not counts or None in counts.values():
        return ""
    deleted, updated, inserted = (counts.get(style) or 0 for style in "DUI")
    one, two = deleted + updated + inserted, deleted + 2 * updated + inserted
    would, does = (one, two) if trace.settings.paradigm == DELETE_AND_INSERT else (two, one)
    split = {"D": deleted + updated, "I": inserted + updated}
    rows = {"D": deleted, "U": updated, "I": inserted} if would == one else split
    return (
        f" {plural(would, 'row')} ({letters(rows)}) would leave and reach the writers, not"
        f" {number(does)}."
    )


def _going(trace: Trace, other: str) -> str:
    exchange = exchange_of(trace)
    if exchange is None:
        return ""
    if other == DELETE_AND_INSERT:
        return ""
    if rules_of(trace, exchange)[1] == EVENLY:
        return " It might go to any writer."
    by = (
        _rule(exchange.others)
        if exchange.update_rule
        else f"{_rule(exchange.inserts)} of its new values"
    )
    return f" It would go by {by}."


def passage(trace: Trace, before: int, after: int) -> str:
    """Describe how input rows become output rows: ``8 rows − 2 unchanged + 2 split = 8``."""
    counts = operation_counts(trace)
    idle = counts.get("N") or 0
    split = after - (before - idle)
    if not counts or None in counts.values() or split < 0 or not (idle or split):
        return f"{plural(before, 'row')} in, {number(after)} out"
    parts = [f" {MINUS} {number(idle)} unchanged"] * bool(idle) + [
        f" + {number(split)} split"
    ] * bool(split)
    return f"{plural(before, 'row')}{''.join(parts)} = {number(after)}"
