"""Changed rows out of a trace: channels are found where its layout has them, whatever the table's columns are called."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from rowmerge_nb.spi import Era
from rowmerge_nb.trace.changed_rows import changed_rows
from rowmerge_nb.trace.comparison import _changes
from tests.report.building import Setup, merge_trace
from tests.report.traces import updatable_trace
from tests.trace.parts import with_parts


@pytest.mark.parametrize("era", Era)
def test_changed_rows_have_operation_clause_and_both_values(era: Era) -> None:
    changed = changed_rows(merge_trace(Setup(era=str(era))))
    assert [(row["operation"], row["case_number"]) for row in changed][:3] == [
        ("UPDATE", 2),
        ("DELETE", 0),
        ("UPDATE", 2),
    ]
    assert list(changed[0]) == [
        *("operation", "case_number", "source_row"),
        *(
            f"{side}.{name}"
            for name in ("customer", "purchases", "address")
            for side in ("old", "new")
        ),
    ]


@pytest.mark.parametrize("name", ["merge_row", "operation", "row_id", "case_number"])
def test_an_older_update_of_a_table_with_a_column_called_like_a_channel_is_told_all_the_same(
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
    assert [
        (row["operation"], row[f"new.{name}"], row["new.address"]) for row in changed_rows(trace)
    ] == [
        ("UPDATE", "Aaron", "ANTIOCH"),
        ("UPDATE", "Bill", "BUENA"),
    ]
    assert len(_changes(trace)["adds"]) == 2
