"""The document's MERGE, run: its CASE, its pages before and after ``transform_page``, its counts, its calls."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.demo import SETUP, STATEMENT
from rowmerge_nb.plan.rules import RULES
from rowmerge_nb.spi import RowChangeParadigm

if TYPE_CHECKING:
    from rowmerge_nb.engine.api.result import Result

pytestmark = pytest.mark.spark

DELETE_AND_INSERT, CHANGE_ONLY = (
    RowChangeParadigm.DELETE_ROW_AND_INSERT_ROW,
    RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS,
)
AFTER = {
    ("Aaron", 11, "Arches"),
    ("Carol", 12, "Centreville"),
    ("Dave", 11, "Devon"),
    ("Ed", 7, "Etherville"),
    ("Gus", 2, "Gilroy"),
    ("Joe Shmoe", 112, "Jamestown"),
}


def merged(spark: Any, paradigm: RowChangeParadigm, **options: Any) -> tuple[Engine, Result]:
    engine = Engine(spark=spark)
    engine.run_script(SETUP)
    return engine, engine.run(options.pop("sql", STATEMENT), paradigm=paradigm, **options)


def content(engine: Engine) -> set[tuple[Any, ...]]:
    return {
        tuple(int(v) if isinstance(v, Decimal) else v for v in row.values())
        for row in engine.table("accounts").to_pylist()
    }


def pages(result: Result) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    assert result.pages is not None
    return result.pages.before, result.pages.after


@pytest.mark.parametrize("paradigm", RowChangeParadigm)
@pytest.mark.parametrize("era", ["documents", "current"])
def test_both_paradigms_and_eras_yield_the_same_table_and_count(
    spark: Any, paradigm: RowChangeParadigm, era: str
) -> None:
    # The document's own statement has the unqualified name `purchases`, which current Trino refuses; the rest is the same.
    engine, result = merged(
        spark, paradigm, era=era, sql=STATEMENT.replace("= purchases +", "= t.purchases +")
    )
    assert content(engine) == AFTER
    assert result.count == 6
    assert result.counts == {"INSERT": 2, "UPDATE": 3, "DELETE": 1, "none": 0}
    assert [clause.rows for clause in result.trace.clauses] == [1, 1, 2, 2, 0]
    assert (result.trace.target.rows_before, result.trace.target.rows_after) == (5, 6)


def test_the_statement_runs_unchanged_with_a_notice(spark: Any) -> None:
    engine, result = merged(spark, DELETE_AND_INSERT)
    assert content(engine) == AFTER
    (notice,) = result.trace.notices
    assert "purchases" in notice.message
    assert (notice.line, notice.column) == (6, 32)


def test_the_input_page_is_that_of_the_document(spark: Any) -> None:
    # "The write redistribution columns if any. For partitioned or bucketed tables, a long hash value column. The rowId column for the
    # row from the target table if matched, or null if not matched. The merge case RowBlock. The integer case number block. The
    # byte is_distinct block, with value 0 if not distinct."
    _, result = merged(spark, DELETE_AND_INSERT)
    before, _ = pages(result)
    assert before.schema.names == [
        "address",
        "hash",
        "row_id",
        "merge_row",
        "case_number",
        "is_distinct",
    ]
    assert [str(kind) for kind in before.schema.types] == [
        "string",
        "int64",
        "int64",
        "struct<customer: string, purchases: decimal128(38, 0), address: string, present: bool, operation: int8, case_number: int32>",
        "int32",
        "int8",
    ]
    rows = before.to_pylist()
    # "Null values for delete" (its partition column keeps the target's value); "Update column values"; "Insert column values".
    assert {tuple(r["merge_row"].values()) for r in rows} == {
        (None, None, "Buena", True, 2, 0),
        ("Joe Shmoe", Decimal(112), "Jamestown", True, 3, 1),
        ("Aaron", Decimal(11), "Arches", True, 3, 2),
        ("Carol", Decimal(12), "Centreville", True, 3, 2),
        ("Ed", Decimal(7), "Etherville", False, 1, 3),
        ("Gus", Decimal(2), "Gilroy", False, 1, 3),
    }
    for row in rows:
        matched = row["merge_row"]["present"]
        assert (row["row_id"] is not None) == matched
        assert (row["address"] is not None) == matched, (
            "the redistribution column holds the target's value, NULL if unmatched"
        )
        assert row["case_number"] == row["merge_row"]["case_number"]
        assert row["is_distinct"] == 1
    same_place = {row["hash"] for row in rows if row["address"] is None}
    assert len(same_place) == 1, "the hash is that of the old location"


def test_the_output_page_of_delete_and_insert_is_that_of_the_document(spark: Any) -> None:
    _, result = merged(spark, DELETE_AND_INSERT)
    _, after = pages(result)
    assert after.schema.names == [
        "customer",
        "purchases",
        "address",
        "operation",
        "row_id",
        "insert_from_update",
    ]
    assert {tuple(row.values()) for row in after.to_pylist()} == {
        (None, None, "Buena", 2, 1, 0),
        (None, None, "Jamestown", 2, 4, 0),
        ("Joe Shmoe", Decimal(112), "Jamestown", 1, None, 1),
        (None, None, "Antioch", 2, 0, 0),
        ("Aaron", Decimal(11), "Arches", 1, None, 1),
        (None, None, "Cambridge", 2, 2, 0),
        ("Carol", Decimal(12), "Centreville", 1, None, 1),
        ("Ed", Decimal(7), "Etherville", 1, None, 0),
        ("Gus", Decimal(2), "Gilroy", 1, None, 0),
    }
    assert after.num_rows - sum(after.column(5).to_pylist()) == result.count


def test_the_output_page_of_change_only_is_that_of_the_document(spark: Any) -> None:
    _, result = merged(spark, CHANGE_ONLY)
    _, after = pages(result)
    assert after.schema.names == [
        "customer",
        "purchases",
        "address",
        "operation",
        "row_id",
        "insert_from_update",
    ]
    assert {tuple(row.values()) for row in after.to_pylist()} == {
        (None, None, "Buena", 2, 1, 0),
        ("Joe Shmoe", Decimal(112), "Jamestown", 3, 4, 0),
        ("Aaron", Decimal(11), "Arches", 3, 0, 0),
        ("Carol", Decimal(12), "Centreville", 3, 2, 0),
        ("Ed", Decimal(7), "Etherville", 1, None, 0),
        ("Gus", Decimal(2), "Gilroy", 1, None, 0),
    }


def test_the_sink_gets_the_page_without_insert_from_update(spark: Any) -> None:
    _, result = merged(spark, DELETE_AND_INSERT)
    assert result.trace.samples.stored_pages
    for stored in result.trace.samples.stored_pages:
        assert stored.page.schema.names == [
            "customer",
            "purchases",
            "address",
            "operation",
            "row_id",
        ]
    assert sum(stored.total for stored in result.trace.samples.stored_pages) == 9


def test_rows_of_one_partition_share_a_sink_and_a_moving_row_is_split(spark: Any) -> None:
    _, result = merged(spark, DELETE_AND_INSERT)
    places: dict[str, set[int]] = {}
    for stored in result.trace.samples.stored_pages:
        for row in stored.page.to_pylist():
            places.setdefault(row["address"], set()).add(stored.writer)
    assert all(len(writers) == 1 for writers in places.values())
    moves = [("Antioch", "Arches"), ("Cambridge", "Centreville")]
    assert any(places[old] != places[new] for old, new in moves), (
        "the halves of some update go to different writers"
    )


def test_the_coordinators_calls_are_in_the_documents_order(spark: Any) -> None:
    _, result = merged(spark, DELETE_AND_INSERT)
    coordinator = [call.method for call in result.trace.calls if call.where == "coordinator"]
    assert coordinator == [
        "get_merge_row_id_column_handle",
        "get_row_change_paradigm",
        "get_insert_layout",
        "get_update_layout",
        "begin_merge",
        "finish_merge",
        "commit",
    ]
    for writer in ("writer 0", "writer 1"):
        calls = [call.method for call in result.trace.calls if call.where == writer]
        assert calls == ["create_merge_sink", "store_merged_rows", "finish"]


def test_explain_and_dry_run_never_begin(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.run_script(SETUP)
    logical = engine.explain(STATEMENT, kind="LOGICAL")
    distributed = engine.explain(STATEMENT)
    dry = engine.run(STATEMENT, dry_run=True)
    for result in (logical, distributed, dry):
        assert "begin_merge" not in [call.method for call in result.trace.calls]
        assert result.count is None
    names = [
        line.split("[")[0].lstrip(" │├└─")
        for line in str(logical).splitlines()
        if "[" in line and "Layout:" not in line
    ]
    assert [name for name in names if name.isalpha()] == [
        "Output",
        "TableCommit",
        "MergeWriter",
        "Exchange",
        "MergeProcessor",
        "Filter",
        "MarkDistinct",
        "Project",
        "Project",
        "RightJoin",
        "Project",
        "AssignUniqueId",
        "TableScan",
        "TableScan",
    ]
    assert "distribution = REPLICATED" in str(distributed)
    assert len(engine.table("accounts")) == 5


def test_the_whole_statement_is_one_spark_action(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.run_script(SETUP)
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))
    actions: list[int] = []
    frame = type(spark.range(1))
    real = frame.toArrow

    def counted(self: Any) -> Any:
        actions.append(1)
        return real(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frame, "toArrow", counted)
        for name in ("collect", "count", "toPandas", "take", "first", "show"):
            patch.setattr(frame, name, lambda *_: pytest.fail("a second action"))
        engine.run(STATEMENT)
    assert len(actions) == 1
    assert set(tracker.getJobIdsForGroup(None)) - before, "it was a real job"


def test_the_plan_of_the_document_without_any_rule_yields_the_same_table(spark: Any) -> None:
    for setup in (SETUP, SETUP.replace("WITH (partitioned_by = ARRAY['address'])", "")):
        engine = Engine(spark=spark)
        engine.run_script(setup)
        result = engine.run(STATEMENT, rules_off=list(RULES))
        assert result.count == 6
        assert content(engine) == AFTER


@pytest.mark.parametrize(
    ("era", "rules_off"), [("documents", ()), ("current", ()), ("documents", tuple(RULES))]
)
def test_a_trace_records_the_number_that_chose_the_writer_of_each_row(
    spark: Any, era: str, rules_off: tuple[str, ...]
) -> None:
    sql = STATEMENT.replace("= purchases +", "= t.purchases +")
    _, result = merged(spark, DELETE_AND_INSERT, sql=sql, era=era, rules_off=rules_off)
    trace = result.trace
    assert trace.samples.pages is not None
    assert trace.samples.pages.placement is not None
    assert trace.samples.pages.writers == trace.samples.pages.placement.chosen
    told = Counter(
        zip(
            trace.samples.pages.writers,
            map(
                repr, trace.samples.pages.layout.stored_page(trace.samples.pages.after).to_pylist()
            ),
            strict=True,
        )
    )
    assert told == Counter(
        (sample.writer, repr(row))
        for sample in trace.samples.stored_pages
        for row in sample.page.to_pylist()
    )
