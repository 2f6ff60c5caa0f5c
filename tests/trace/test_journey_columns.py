"""Journeys column by column match those of the rows one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi import Era
from rowmerge_nb.trace.journeys import journey_columns, journeys_of
from tests.report.building import Setup, merge_trace
from tests.report.traces import (
    explain_trace,
    many_clauses_trace,
    updatable_trace,
    wide_trace,
)
from tests.trace.parts import with_parts

if TYPE_CHECKING:
    from rowmerge_nb.trace.trace import Trace


def row_by_row(trace: Trace) -> list[dict[str, Any]]:
    return [
        {
            "source_row": journey.source_row,
            **{f"source.{name}": value for name, value in (journey.source or {}).items()},
            "join": journey.join,
            **{f"target.{name}": value for name, value in (journey.target or {}).items()},
            "passed": journey.passed,
            "case_number": journey.case_number,
            "operation": journey.operation.name,
            "becomes": journey.becomes,
            "writers": journey.writers,
        }
        for journey in journeys_of(trace) or ()
    ]


@pytest.mark.parametrize(
    "trace",
    [
        merge_trace(),
        merge_trace(Setup(era=str(Era.CURRENT))),
        many_clauses_trace(),
        wide_trace(),
        updatable_trace(),
    ],
    ids=["merge", "current era", "many clauses", "wide", "older flow"],
)
def test_columns_are_those_of_single_journeys(trace: Trace) -> None:
    expected, columns = row_by_row(trace), journey_columns(trace)
    assert expected
    assert set(columns) == {name for row in expected for name in row}
    for name, values in columns.items():
        assert values == [row.get(name) for row in expected], name


def test_rows_have_no_writer_without_writers() -> None:
    trace = merge_trace()
    assert trace.samples.pages is not None
    trace = with_parts(trace, samples={"pages": replace(trace.samples.pages, writers=())})
    columns = journey_columns(trace)
    assert columns["writers"] == [()] * len(columns["join"])
    assert columns["becomes"] == [row["becomes"] for row in row_by_row(trace)]


def test_a_plan_has_no_journeys() -> None:
    with pytest.raises(RowMergeError) as caught:
        journey_columns(explain_trace())
    assert caught.value.code == "NOT_SUPPORTED"
