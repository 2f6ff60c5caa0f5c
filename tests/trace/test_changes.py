"""Changed rows from a trace: its layout locates channels, for any names of the table's columns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowmerge_nb.base.choices import StatementState
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.spi import Era, Operation
from rowmerge_nb.trace.changed_rows import changed_rows
from rowmerge_nb.trace.comparison import Comparison, Side, _changes
from tests.report.building import Setup, merge_trace
from tests.report.traces import updatable_trace
from tests.trace.parts import with_parts

if TYPE_CHECKING:
    from rowmerge_nb.trace.trace import Trace


@pytest.mark.parametrize("era", Era)
def test_changed_rows_have_operation_clause_and_both_values(era: Era) -> None:
    changed = changed_rows(merge_trace(Setup(era=str(era))))
    columns = (changed[name].to_pylist() for name in ("operation", "case_number"))
    assert list(zip(*columns, strict=True))[:3] == [
        ("UPDATE", 2),
        ("DELETE", 0),
        ("UPDATE", 2),
    ]
    assert list(changed) == [
        *("operation", "case_number", "source_row"),
        *(
            f"{side}.{name}"
            for name in ("customer", "purchases", "address")
            for side in ("old", "new")
        ),
    ]


@pytest.mark.parametrize("name", ["merge_row", "operation", "row_id", "case_number"])
def test_an_older_update_of_a_table_with_a_column_named_like_a_channel_is_reported_anyway(
    name: str,
) -> None:
    trace = updatable_trace()
    assert trace.samples.pages is not None
    after = trace.samples.pages.after.rename_columns(
        [name, *trace.samples.pages.after.schema.names[1:]]
    )
    assert trace.samples.pages.witness is not None
    target = trace.samples.pages.witness.column("target")
    renamed = pa.StructArray.from_arrays(
        target.flatten(), fields=[target.type.field(0).with_name(name), *list(target.type)[1:]]
    )
    witness = trace.samples.pages.witness.set_column(1, "target", renamed)
    trace = with_parts(
        trace,
        samples={"pages": replace(trace.samples.pages, before=after, after=after, witness=witness)},
    )
    changed = changed_rows(trace)
    columns = ("operation", f"new.{name}", "new.address")
    assert list(zip(*(changed[column].to_pylist() for column in columns), strict=True)) == [
        ("UPDATE", "Aaron", "ANTIOCH"),
        ("UPDATE", "Bill", "BUENA"),
    ]
    changes = _changes(trace)
    assert changes is not None
    assert changes["adds"].num_rows == 2


def side(name: str, rows: pa.Table | None = None, trace: Trace | None = None) -> Side:
    trace = trace or merge_trace()
    return Side(name, Result(replace(trace, state=StatementState.FINISHED, error=None)), rows)


def compared(one: pa.Table, other: pa.Table) -> list[tuple[str, tuple[Any, ...], int]]:
    comparison = Comparison("flows", "", one.column_names, side("a", one), side("b", other))
    assert comparison.compared == "rows"
    return [(found.side, found.row, found.times) for found in comparison.differences]


def test_rows_of_both_sides_differ_by_how_often_each_occurs() -> None:
    one = pa.table({"id": [1, None, None, 2], "parts": [[1], None, None, [2, None]]})
    other = pa.table({"id": [None, 1, 3], "parts": [None, [1], []]})
    assert compared(one, one.take([3, 1, 0, 2])) == []
    assert compared(one, other) == [
        ("a", (None, None), 1),
        ("a", (2, [2, None]), 1),
        ("b", (3, []), 1),
    ]


def test_rows_of_other_types_are_compared_as_texts() -> None:
    one = pa.table({"id": pa.array([1, 2, None], pa.int32())})
    assert compared(one, pa.table({"id": pa.array([2, 1, None], pa.int64())})) == []
    assert compared(one, pa.table({"id": ["1", "x", None]})) == [("a", ("2",), 1), ("b", ("x",), 1)]


def test_changes_of_runs_are_compared_by_the_rows_that_they_remove_and_add() -> None:
    trace = merge_trace()
    assert trace.samples.pages is not None
    pages = trace.samples.pages
    rows = pages.after.num_rows
    operations = pages.after.column(pages.layout.after.operation).to_pylist()
    added = next(row for row in range(rows) if Operation(operations[row]).letter == "I")
    column = pages.after.column(0).to_pylist()
    column[added] = "Zoe"
    after = pages.after.set_column(0, pages.after.schema.field(0), pa.array(column))
    changed = with_parts(trace, samples={"pages": replace(pages, after=after, complete=True)})
    same = with_parts(trace, samples={"pages": replace(pages, complete=True)})
    assert Comparison("flows", "", (), side("a", trace=same), side("b", trace=same)).same
    differing = Comparison("flows", "", (), side("a", trace=same), side("b", trace=changed))
    assert differing.compared == "changes"
    assert [(d.side, d.what, d.times) for d in differing.differences] == [
        ("a", "adds", 1),
        ("b", "adds", 1),
    ]
    assert differing.differences[1].row[0] == "Zoe"


def test_changes_that_are_not_complete_are_not_compared() -> None:
    trace = merge_trace()
    assert trace.samples.pages is not None
    part = with_parts(trace, samples={"pages": replace(trace.samples.pages, complete=False)})
    comparison = Comparison("flows", "", (), side("a", trace=part), side("b", trace=part))
    assert (comparison.compared, comparison.same) == ("", None)
