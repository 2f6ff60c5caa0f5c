"""Explanations beside the explorer's steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import MINUS, TRINO_VERSION, code_parts, join
from rowmerge_nb.report.model.placing import (
    DELETE_AND_INSERT,
    EVENLY,
    exchange_of,
    rules_of,
    update_form,
)
from rowmerge_nb.report.model.repeated import build_repeated
from rowmerge_nb.report.model.terms import SINKS
from rowmerge_nb.report.words.display_values import visible
from rowmerge_nb.spi.operations import Era

if TYPE_CHECKING:
    from rowmerge_nb.trace.page_samples import PageSample
    from rowmerge_nb.trace.trace import Trace

CALLS: Final = {
    "get_merge_row_id_column_handle": "the type of the row id, by which the store finds a row",
    "get_row_change_paradigm": "the form of changes that the store accepts",
    "get_insert_layout": "how rows to insert are distributed over the writers",
    "get_update_layout": "how the other rows are distributed; if none, see the step exchange",
    "begin_merge": "returns the handle of the change, which every sink gets",
    "create_merge_sink": "makes the sink of one writer",
    "finish": "returns fragments, which describe to the coordinator what the sink stored",
    "finish_merge": "combines the fragments of all sinks into one change",
    "commit": "ends the transaction: from then on, readers see the whole change",
    "rollback": "drops the change",
}
"""The purposes of the calls of the contract."""
LEGENDS: Final = {
    "case": [["", "decided"]],
    "distinct": [["", "before"]],
    "transform": [["Before", "before"], ["After", "after"]],
    "exchange": [["", "after"]],
    "sinks": [["", "handed"]],
    "finish": [["", "handed"]],
    "commit": [["", "handed"]],
}
"""The legends of each step's pages, see `legends`, each with a title, ``""`` for a single page."""
_OF_DELETE: Final = [
    ["operation", "2 DELETE"],
    ["row_id", "of the row to delete; the store finds the row by it"],
]
"""The channels of a DELETE's page, which no processor produced."""


def asides(trace: Trace) -> dict[str, str]:
    """Return the explanation beside each step's sentence, by key."""
    texts = {}
    if rules := build_repeated(trace):
        text = " ".join(filter(None, [rules.rules, rules.here, rules.equality]))
        texts["distinct"] = "".join(part for part, _ in code_parts(text))
    pages = trace.samples.pages
    if pages is not None and pages.transformed and trace.kind != "DELETE":
        texts["transform"] = update_form(trace.settings.paradigm)
    texts["sinks"] = SINKS
    return texts


def examples(trace: Trace) -> list[list[str]]:
    """Return examples of repeated matches, each with Trino's answer and the standard's."""
    rules = build_repeated(trace)
    return (
        [[one.rows, one.trino, one.standard] for one in rules.examples] if rules is not None else []
    )


def legends(trace: Trace) -> dict[str, list[list[str]]]:
    """Return the meanings of channels and codes as pairs, by the names in `LEGENDS`."""
    pages = trace.samples.pages
    if pages is None:
        return {}
    if not pages.transformed:
        return {
            "after": [*_OF_DELETE, ["insert_from_update", "0 throughout; the sinks do not get it"]],
            "handed": _OF_DELETE,
        }
    before, after = _before(trace, pages), _after(trace, pages)
    # At the CASE, the channels of MarkDistinct do not exist yet.
    decided = [pair for pair in before if pair[0] not in {"is_distinct", "unique_id"}]
    # Sinks do not receive the last channel.
    return {"decided": decided, "before": before, "after": after, "handed": after[:-1]}


def _before(trace: Trace, pages: PageSample) -> list[list[str]]:
    return _of_merge(pages) if trace.kind == "MERGE" else _of_update(pages)


def _of_update(pages: PageSample) -> list[list[str]]:
    return [
        _merge_row(pages),
        *_old_place(pages),
        ["row_id", "by which the store finds the row"],
        ["columns", "the row as it will be"],
        ["present", "true: each of these rows is in the target"],
        ["operation", "3 UPDATE"],
        ["case_number", "0: the only clause is the UPDATE"],
        ["is_distinct", "1: without a join, no row occurs twice"],
    ]


def _merge_row(pages: PageSample) -> list[str]:
    channel = pages.layout.before.merge_row
    return [
        f"{channel}.0 and so on",
        f"the fields of one channel, merge_row: channel {channel} is one value of several fields",
    ]


def _old_place(pages: PageSample) -> list[list[str]]:
    channels = []
    if places := _places(pages):
        channels.append(
            [
                f"{places} (first)",
                "of the target row: the location of the old row; NULL without a target row",
            ]
        )
    if pages.layout.before.hash is not None:
        channels.append(
            [
                "hash",
                (
                    "its last digits; 42 for NULL. It does not select the writer: the"
                    " exchange computes a new hash of the row after transform_page"
                ),
            ]
        )
    return channels


def _of_merge(pages: PageSample) -> list[list[str]]:
    current = pages.layout.era is Era.CURRENT
    none = "NULL" if current else f"{MINUS}1"
    codes = f"1 INSERT, 2 DELETE, 3 UPDATE, {none} no clause"
    places = _places(pages)
    return [
        _merge_row(pages),
        *_old_place(pages),
        ["row_id", "by which the store finds the target row; NULL without one"],
        [
            "columns",
            (
                "the row that the clause makes; for a DELETE, the old row; without a clause, NULL"
                if current
                else (
                    "the row that the clause makes; for a DELETE or without a clause,"
                    f" NULL{f', except for the old {places}' if places else ''}"
                )
            ),
        ],
        [
            "present",
            (
                "the join found a target row; without a clause NULL, like all of merge_row"
                if current
                else (
                    "the join found a target row, also without a clause; the"
                    f" documents' example has false there, {TRINO_VERSION} a merge_row that is"
                    " NULL"
                )
            ),
        ],
        ["operation", codes],
        [
            "case_number",
            (
                f"the clause that fired, {none} where none did; after the CASE again"
                " beside merge_row, for is_distinct"
            ),
        ],
        [
            "is_distinct",
            (
                "0 if the pair of unique_id and case_number has occurred before; for"
                " rows without a target row, it is also 0 from the second row on, which has"
                " no effect"
                if current
                else (
                    "0 on every row of a pair of unique_id and case_number that"
                    " occurs more than once"
                )
            ),
        ],
        [
            "unique_id",
            (
                "the number that the engine assigned to each target row when it was"
                " read; here, only is_distinct remains"
            ),
        ],
    ]


def _after(trace: Trace, pages: PageSample) -> list[list[str]]:
    current = pages.layout.era is Era.CURRENT
    split = trace.settings.paradigm == DELETE_AND_INSERT
    codes = ["1 INSERT", "2 DELETE"]
    if not split:
        codes.append("3 UPDATE")
    elif current:
        codes += ["4 the INSERT of an UPDATE", "5 the DELETE of an UPDATE"]
    places = _places(pages)
    spread = exchange_of(trace)
    # The insert layout places a DELETE only without an update layout.
    decides = (
        ", which determines its writer,"
        if spread is not None and rules_of(trace, spread)[1] != EVENLY
        else ""
    )
    values_text = f"all but {places}{decides} are left empty" if places else "they are left empty"
    deleted = (
        "the row id identifies the row; the old values accompany it"
        if current and not split
        else (
            "the row id identifies the row, so its values are not needed:"
            f" {values_text}. Nothing is lost"
        )
    )
    keeps_ids = current or pages.layout.identifies_new_rows
    inserts = "a row that no UPDATE inserts" if split and keeps_ids else "a row to insert"
    channels = [
        ["operation", ", ".join(codes)],
        ["row_id", f"of the row to delete or update; NULL for {inserts}"],
        ["a DELETE", deleted],
    ]
    if pages.layout.after.case_number is not None:
        channels.append(
            [
                "case_number",
                (
                    "0 throughout: this paradigm's processor does not pass it on"
                    if split
                    else "the clause that fired"
                ),
            ]
        )
    return [
        *channels,
        [
            "insert_from_update",
            (
                "1 on the INSERT of an UPDATE, which is not counted again; the sinks do not get it"
                if split
                else "0 throughout, since an UPDATE stays one row; the sinks do not get it"
            ),
        ],
    ]


def _places(pages: PageSample) -> str:
    return join(
        [visible(pages.after.schema.names[index]) for index in pages.layout.redistribution_columns]
    )
