"""The positions of channels in both eras, and pages split by them."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from rowmerge_nb.spi import Era, PageLayout, operations_of, row_ids_of, split_page

COLUMNS = pa.schema(
    [
        pa.field("customer", pa.string()),
        pa.field("purchases", pa.decimal128(38, 0)),
        pa.field("address", pa.string()),
        pa.field("$row_id", pa.int64()),
    ]
)


def test_the_input_page_has_the_channels_of_the_document_in_its_order() -> None:
    # "The write redistribution columns if any; for partitioned or bucketed tables, a long hash value column; the rowId column ...;
    # the merge case RowBlock; the integer case number block; the byte is_distinct block"
    schema = PageLayout(3, (2,)).input_schema(COLUMNS)
    assert schema.names == ["address", "hash", "row_id", "merge_row", "case_number", "is_distinct"]
    assert [str(field.type) for field in schema][1:3] == ["int64", "int64"]
    assert [str(field.type) for field in schema][4:] == ["int32", "int8"]


def test_the_merge_row_has_the_columns_then_present_operation_and_case_number() -> None:
    layout = PageLayout(3, (2,))
    fields = list(layout.input_schema(COLUMNS).field(layout.before.merge_row).type)
    assert [field.name for field in fields] == [
        "customer",
        "purchases",
        "address",
        "present",
        "operation",
        "case_number",
    ]
    assert [str(field.type) for field in fields][3:] == ["bool", "int8", "int32"]


def test_a_table_without_layout_has_neither_redistribution_columns_nor_hash() -> None:
    assert PageLayout(3).input_schema(COLUMNS).names == [
        "row_id",
        "merge_row",
        "case_number",
        "is_distinct",
    ]


@pytest.mark.parametrize("era", Era)
@pytest.mark.parametrize("redistribution", [(), (2,), (0, 2)])
def test_every_channel_is_at_the_position_of_its_name_in_the_schemas(
    era: Era, redistribution: tuple[int, ...]
) -> None:
    layout = PageLayout(3, redistribution, era)
    before, after = layout.input_schema(COLUMNS), layout.output_schema(COLUMNS)
    for channels, schema in ((layout.before, before), (layout.after, after)):
        assert channels.count == len(schema)
        for name in (
            "hash",
            "row_id",
            "merge_row",
            "case_number",
            "is_distinct",
            "operation",
            "insert_from_update",
        ):
            place = getattr(channels, name, None)
            assert (place is None) == (name not in schema.names), name
            assert place is None or schema.names[place] == name
    assert [before.names[place] for place in layout.before.write_redistribution_columns] == [
        COLUMNS.names[place] for place in redistribution
    ]
    fields = [field.name for field in before.field(layout.before.merge_row).type]
    assert len(fields) == layout.merge_row.count
    for name in ("present", "operation", "case_number"):
        assert fields[getattr(layout.merge_row, name)] == name
    for names, columns in ((fields, layout.merge_row.columns), (after.names, layout.after.columns)):
        assert [names[place] for place in columns] == ["customer", "purchases", "address"]


@pytest.mark.parametrize("era", Era)
def test_the_sink_gets_all_but_insert_from_update_and_its_page_shows_the_era(era: Era) -> None:
    layout = PageLayout(3, (2,), era)
    page = pa.RecordBatch.from_pylist([{"row_id": 7}], schema=layout.output_schema(COLUMNS))
    stored = layout.stored_page(page)
    assert stored.schema.names == page.schema.names[:-1]
    assert PageLayout.of_stored(stored, 3) == PageLayout(3, era=era)
    assert PageLayout.of_output(page.num_columns, (2,), era) == layout
    assert row_ids_of(stored).to_pylist() == [7]


@pytest.mark.parametrize("name", ["operation", "case_number", "row_id"])
def test_columns_of_the_table_may_be_called_as_channels_are(name: str) -> None:
    columns = pa.schema([pa.field(name, pa.int64()), pa.field("$row_id", pa.int64())])
    layout = PageLayout(1, era=Era.CURRENT)
    values = [
        pa.array([5]),
        pa.array([2], pa.int8()),
        pa.array([0], pa.int32()),
        pa.array([7]),
        pa.array([0], pa.int8()),
    ]
    page = layout.stored_page(
        pa.RecordBatch.from_arrays(values, schema=layout.output_schema(columns))
    )
    assert operations_of(page, 1).to_pylist() == [2]
    deletions = split_page(page, 1).deletions
    assert deletions is not None
    assert [column.to_pylist() for column in deletions.columns] == [[5], [7]]


def test_a_layout_travels_and_is_the_same() -> None:
    layout = PageLayout(3, (2,))
    assert layout.before.hash == 1
    assert pickle.loads(pickle.dumps(layout)) == layout


def test_another_number_of_channels_is_refused_with_both_numbers() -> None:
    page = pa.RecordBatch.from_pydict({"a": [1], "b": [2]})
    with pytest.raises(
        ValueError, match="has 1 table columns and 2 or 3 more; this one has 2 channels"
    ):
        split_page(page, 1)
