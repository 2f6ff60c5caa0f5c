"""The pages of both processors, in the layout of the document."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from rowmerge_nb.engine.tasks.processors import (
    ChangeOnlyUpdatedColumnsMergeProcessor,
    DeleteAndInsertMergeProcessor,
    RowChangeProcessor,
    create_processor,
)
from rowmerge_nb.spi import Era, PageLayout, RowChangeParadigm

COLUMNS = pa.schema(
    [
        pa.field("customer", pa.string()),
        pa.field("purchases", pa.decimal128(38, 0)),
        pa.field("address", pa.string()),
        pa.field("row_id", pa.int64()),
    ]
)


def layout(era: Era = Era.DOCUMENTS) -> PageLayout:
    return PageLayout(3, (2,), era)


def processor_of(paradigm: RowChangeParadigm, era: Era = Era.DOCUMENTS) -> RowChangeProcessor:
    return create_processor(paradigm, layout(era), COLUMNS)


def row(
    customer: str | None,
    purchases: int | None,
    address: str | None,
    present: bool,
    operation: int,
    case: int,
) -> dict[str, object]:
    amount = None if purchases is None else Decimal(purchases)
    control = {"present": present, "operation": operation, "case_number": case}
    return {"customer": customer, "purchases": amount, "address": address, **control}


# One row per branch of the document's SELECT CASE; the target is partitioned by address.
BRANCHES = [
    ("Buena", 1, row(None, None, "Buena", True, 2, 0)),
    ("Jamestown", 4, row("Joe Shmoe", 112, "Jamestown", True, 3, 1)),
    ("Antioch", 0, row("Aaron", 11, "Arches", True, 3, 2)),
    (None, None, row("Ed", 7, "Etherville", False, 1, 3)),
    (None, None, row(None, None, None, False, -1, -1)),
]


def page(
    of: PageLayout, rows: list[tuple[object, object, dict[str, object] | None]] = BRANCHES
) -> pa.RecordBatch:
    entries = [
        {
            "address": place,
            "hash": 7,
            "row_id": row_id,
            "merge_row": merge_row,
            "case_number": merge_row["case_number"] if merge_row else None,
            "is_distinct": 1,
        }
        for place, row_id, merge_row in rows
    ]
    return pa.RecordBatch.from_pylist(entries, schema=of.input_schema(COLUMNS))


@pytest.mark.parametrize("paradigm", RowChangeParadigm)
def test_the_output_page_has_the_columns_operation_row_id_and_insert_from_update(
    paradigm: RowChangeParadigm,
) -> None:
    # "All table columns, in table column order. The merge case operation block. The rowId block. A byte block containing 1 if the
    # row is an insert derived from an update operation, and 0 otherwise."
    out = processor_of(paradigm).transform_page(page(layout()))
    assert out.schema.names == [
        "customer",
        "purchases",
        "address",
        "operation",
        "row_id",
        "insert_from_update",
    ]
    assert [str(kind) for kind in out.schema.types[3:]] == ["int8", "int64", "int8"]


def test_delete_and_insert_turns_an_update_into_a_delete_and_an_insert() -> None:
    out = DeleteAndInsertMergeProcessor(layout(), COLUMNS).transform_page(page(layout()))
    assert [tuple(r.values()) for r in out.to_pylist()] == [
        (None, None, "Buena", 2, 1, 0),
        (None, None, "Jamestown", 2, 4, 0),
        ("Joe Shmoe", Decimal(112), "Jamestown", 1, None, 1),
        (None, None, "Antioch", 2, 0, 0),
        ("Aaron", Decimal(11), "Arches", 1, None, 1),
        ("Ed", Decimal(7), "Etherville", 1, None, 0),
    ]


def test_change_only_keeps_an_update_as_one_row_with_all_columns() -> None:
    out = ChangeOnlyUpdatedColumnsMergeProcessor(layout(), COLUMNS).transform_page(page(layout()))
    assert [tuple(r.values()) for r in out.to_pylist()] == [
        (None, None, "Buena", 2, 1, 0),
        ("Joe Shmoe", Decimal(112), "Jamestown", 3, 4, 0),
        ("Aaron", Decimal(11), "Arches", 3, 0, 0),
        ("Ed", Decimal(7), "Etherville", 1, None, 0),
    ]


@pytest.mark.parametrize("paradigm", RowChangeParadigm)
@pytest.mark.parametrize("era", Era)
def test_rows_changed_are_positions_minus_the_sum_of_insert_from_update(
    paradigm: RowChangeParadigm, era: Era
) -> None:
    out = processor_of(paradigm, era).transform_page(page(layout(era)))
    flags = out.column(layout(era).after.insert_from_update).to_pylist()
    assert out.num_rows - sum(flags) == 4


def test_the_current_era_numbers_the_halves_of_an_update_and_adds_the_case_number() -> None:
    current = layout(Era.CURRENT)
    out = DeleteAndInsertMergeProcessor(current, COLUMNS).transform_page(
        page(current, [BRANCHES[2], BRANCHES[3], ("x", 9, None)])
    )
    assert out.schema.names == [
        "customer",
        "purchases",
        "address",
        "operation",
        "case_number",
        "row_id",
        "insert_from_update",
    ]
    assert [
        (r["operation"], r["case_number"], r["row_id"], r["insert_from_update"])
        for r in out.to_pylist()
    ] == [
        (5, 0, 0, 0),
        (4, 0, 0, 1),
        (1, 0, None, 0),
    ]


def test_change_only_of_the_current_era_passes_the_case_number_on() -> None:
    current = layout(Era.CURRENT)
    out = ChangeOnlyUpdatedColumnsMergeProcessor(current, COLUMNS).transform_page(
        page(current, [BRANCHES[2], ("x", 9, None), BRANCHES[3]])
    )
    assert [(r["operation"], r["case_number"]) for r in out.to_pylist()] == [(3, 2), (1, 3)]


@pytest.mark.parametrize("paradigm", RowChangeParadigm)
def test_rows_without_a_fired_clause_never_leave(paradigm: RowChangeParadigm) -> None:
    nothing = [("Devon", 3, row(None, None, "Devon", True, -1, -1))] * 3
    out = processor_of(paradigm).transform_page(page(layout(), nothing))
    assert out.num_rows == 0
    assert out.schema == layout().output_schema(COLUMNS)


@pytest.mark.parametrize("paradigm", RowChangeParadigm)
def test_rows_produced_maps_outputs_to_inputs(
    paradigm: RowChangeParadigm,
) -> None:
    processor = processor_of(paradigm)
    produced = processor.rows_produced(page(layout())).tolist()
    assert produced == (
        [1, 2, 2, 1, 0]
        if paradigm is RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW
        else [1, 1, 1, 1, 0]
    )
    assert sum(produced) == processor.transform_page(page(layout())).num_rows


@pytest.mark.parametrize("paradigm", RowChangeParadigm)
def test_an_unknown_operation_is_refused_with_its_number(paradigm: RowChangeParadigm) -> None:
    with pytest.raises(ValueError, match=r"\[4, 9\]"):
        processor_of(paradigm).transform_page(
            page(
                layout(),
                [
                    (None, None, row("a", 1, "b", False, 4, 0)),
                    (None, None, row("a", 1, "b", False, 9, 0)),
                ],
            )
        )


@pytest.mark.parametrize("paradigm", RowChangeParadigm)
def test_empty_pages_and_wrong_channels_are_refused(paradigm: RowChangeParadigm) -> None:
    processor = processor_of(paradigm)
    with pytest.raises(ValueError, match="empty"):
        processor.transform_page(page(layout(), []))
    with pytest.raises(ValueError, match=r"takes 6 channels .*; got 5"):
        processor.transform_page(page(layout()).select([0, 1, 2, 3, 4]))


def test_a_null_merge_row_is_refused_in_the_documents_era() -> None:
    with pytest.raises(ValueError, match="1 of 1"):
        DeleteAndInsertMergeProcessor(layout(), COLUMNS).transform_page(
            page(layout(), [("x", 9, None)])
        )


def test_composite_row_ids_nested_columns_and_several_redistribution_columns() -> None:
    fields = (
        pa.field("a", pa.list_(pa.int32())),
        pa.field("p", pa.string()),
        pa.field("m", pa.map_(pa.string(), pa.int64())),
        pa.field("d", pa.date32()),
        pa.field("w", pa.struct([("x", pa.int8())])),
    )
    row_id = pa.struct([("bucket", pa.int32()), ("position", pa.int64())])
    columns = pa.schema([*fields, pa.field("row_id", row_id)])
    wide = DeleteAndInsertMergeProcessor(PageLayout(len(fields), (1, 3)), columns)
    value = {
        "a": [1, None],
        "p": "new",
        "m": [("k", 5)],
        "d": None,
        "w": {"x": 1},
        "present": True,
        "operation": 3,
        "case_number": 0,
    }
    entry = {
        "p": "old",
        "d": None,
        "hash": 1,
        "row_id": {"bucket": 2, "position": 3},
        "merge_row": value,
        "case_number": 0,
        "is_distinct": 1,
    }
    out = wide.transform_page(
        pa.RecordBatch.from_pylist([entry], schema=wide.input_schema)
    ).to_pylist()
    assert out[0] == {
        **dict.fromkeys("amdw"),
        "p": "old",
        "operation": 2,
        "row_id": {"bucket": 2, "position": 3},
        "insert_from_update": 0,
    }
    assert out[1]["p"] == "new"
    assert out[1]["m"] == [("k", 5)]
    assert out[1]["row_id"] is None
