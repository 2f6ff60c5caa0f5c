"""Tests of `rowmerge_nb.report.model.spi_calls`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rowmerge_nb.report.model.spi_calls import build_calls, given_and_gave
from rowmerge_nb.trace.contract_calls import Call
from tests.report.building import Setup, merge_trace


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            ("get_merge_row_id_column_handle", "", "$row_id bigint"),
            ("the table handle", "$row_id bigint"),
        ),
        (("get_update_layout", "", "none"), ("the table handle", "none")),
        (
            ("begin_merge", "table a.b.c", "Mine"),
            ("the table handle of lake.default.accounts", "the merge handle, a Mine"),
        ),
        (("begin_merge",), ("the table handle of lake.default.accounts", "the merge handle")),
        (("create_merge_sink", "Mine"), ("the merge handle", "the sink")),
        (("store_merged_rows", "D 2, I 4"), ("a page: D 2, I 4", "")),
        (("finish", "", "2 fragments"), ("", "2 fragments")),
        (
            ("finish_merge", "2 fragments", "1 delta file"),
            ("the merge handle, 2 fragments", "1 delta file"),
        ),
        (("finish_update", "1 fragment"), ("1 fragment", "")),
        (
            ("commit", "the transaction of catalog c", "version 5"),
            ("the transaction of catalog c", "version 5"),
        ),
        (("commit",), ("the transaction", "")),
        (("rollback", "the transaction of catalog c"), ("the transaction of catalog c", "")),
        (("get_next_page", "", "end"), ("", "end")),
        (("get_evolved_table_handle", "a bigint"), ("a bigint", "")),
        (("update_rows", "U 2, channels [1]"), ("U 2, channels [1]", "")),
    ],
)
def test_arguments_of_a_call_are_shown_apart_from_its_result(
    call: tuple[str, ...], said: tuple[str, str]
) -> None:
    assert (
        given_and_gave(
            merge_trace(target={"qualified_name": "lake.default.accounts"}),
            Call(1, "coordinator", *call),
        )
        == said
    )


def test_current_trino_passes_the_columns_that_each_clause_updates() -> None:
    given, _ = given_and_gave(
        merge_trace(Setup(era="current")), Call(1, "coordinator", "begin_merge")
    )
    assert "and the columns that are updated: " in given
    assert " by clause 1; " in given


def test_a_fault_that_raised_nothing_is_shown_beside_the_result_of_the_call() -> None:
    trace = merge_trace()
    struck = replace(
        trace,
        calls=tuple(
            replace(call, injected="finish:1:twice")
            for call in trace.calls
            if call.method == "finish"
        ),
    )
    told = build_calls(struck)
    assert told is not None
    assert {row.gave for row in told.rows} == {"1 fragment, injected: finish:1:twice"}


def test_a_failed_call_has_no_result() -> None:
    trace = merge_trace()
    failed = replace(trace, calls=tuple(replace(call, error="no room") for call in trace.calls))
    told = build_calls(failed)
    assert told is not None
    assert {row.gave for row in told.rows} == {""}
    assert {row.error for row in told.rows} == {"no room"}
