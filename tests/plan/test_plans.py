"""Plans and their rewrites, without Spark: the drawn plan is the executed one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, HiveAcidConnector
from rowmerge_nb.engine.statements import statement
from rowmerge_nb.plan.plan_nodes import PlanNode, Project
from rowmerge_nb.plan.records import describe
from rowmerge_nb.plan.rules import RULES, RuleSettings
from rowmerge_nb.sql.spark.printer import print_spark
from rowmerge_nb.trace.node_records import JoinFacts, JoinType, ScanFacts

if TYPE_CHECKING:
    from pathlib import Path

    from rowmerge_nb.trace.node_records import NodeRecord

MERGE = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.v > 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
LARGE = RuleSettings(small_rows=2)


def records(
    sql: str = MERGE,
    settings: RuleSettings | None = None,
    table: dict[str, Any] | None = None,
    **options: Any,
) -> dict[str, NodeRecord]:
    engine = Engine(rule_settings=settings)
    engine.register(
        "t",
        pa.table({"id": [1, 2, 3, 4], "v": [1, 2, 3, 4], "p": list("abcd")}),
        not_null=["id"],
        **(table or {}),
    )
    engine.register("s", pa.table({"id": [1, 2, 3], "v": [1, 2, 3], "unused": [1, 2, 3]}))
    plan = engine.run(sql, dry_run=True, **options).trace.plan
    return {
        f"{record.kind}{'' if record.kind not in {'Project', 'TableScan'} else record.id}": record
        for record in plan
    }


def one(plan: dict[str, NodeRecord], kind: str) -> NodeRecord:
    (record,) = (record for record in plan.values() if record.kind == kind)
    return record


def facts_of(record: NodeRecord) -> Any:
    return record.facts


def kinds(plan: dict[str, NodeRecord]) -> list[str]:
    return [record.kind for record in plan.values()]


def test_a_merge_has_the_nodes_of_the_document_in_its_order() -> None:
    assert kinds(records(rules_off=list(RULES))) == [
        "Output",
        "TableFinish",
        "MergeWriter",
        "MergeProcessor",
        "DuplicateCheck",
        "MarkDistinct",
        "Project",
        "Project",
        "Join",
        "Project",
        "AssignUniqueId",
        "TableScan",
        "TableScan",
    ]


def test_the_case_has_a_branch_per_clause_and_an_else() -> None:
    (case,) = (record for record in records().values() if record.branches)
    assert [(b.number, b.operation.name, b.condition) for b in case.branches] == [
        (0, "DELETE", "present AND s.v > 1"),
        (1, "UPDATE", "present"),
        (2, "INSERT", "present IS NULL"),
        (-1, "NONE", "ELSE"),
    ]
    assert [b.values for b in case.branches] == [
        ("NULL", "NULL", "NULL"),
        ("t.id", "s.v", "t.p"),
        ("COALESCE(s.id, fail('NULL value not allowed for NOT NULL column: id'))", "NULL", "NULL"),
        ("NULL", "NULL", "NULL"),
    ]


def test_a_delete_keeps_the_redistribution_columns_and_in_the_current_era_all() -> None:
    for era, kept in (("documents", ("NULL", "NULL", "t.p")), ("current", ("t.id", "t.v", "t.p"))):
        plan = records(table={"partitioned_by": ["p"]}, era=era)
        (case,) = (record for record in plan.values() if record.branches)
        assert case.branches[0].values == kept
        assert bool(case.branches[-1].values) == (era == "documents"), (
            "a row without a clause is a NULL row today"
        )
        processor = one(plan, "MergeProcessor")
        assert [name for name, _ in processor.layout] == [
            "id",
            "v",
            "p",
            "operation",
            *(["case_number"] if era == "current" else []),
            "row_id",
            "insert_from_update",
        ]


def test_a_not_null_column_is_checked_inside_the_branch_that_assigns_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plans: list[PlanNode] = []

    def kept(plan: PlanNode, *more: Any) -> tuple[NodeRecord, ...]:
        plans.append(plan)
        return describe(plan, *more)

    monkeypatch.setattr(statement, "describe", kept)
    records()
    (case,) = (
        node.case for node in every_node(plans[0]) if isinstance(node, Project) and node.case
    )
    assert "NOT NULL column: id" in print_spark(case.branches[2].expressions[0])
    assert "NOT NULL" not in print_spark(case.branches[1].expressions[0]), (
        "an update that leaves the column alone needs no check"
    )


def every_node(plan: PlanNode) -> list[PlanNode]:
    return [plan, *(inner for source in plan.sources for inner in every_node(source))]


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"partitioned_by": ["p"]}, "insert = hash(p)"),
        (
            {"bucketed_by": ["id"], "bucket_count": 4},
            "insert = bucket(id), update = bucket(row_id)",
        ),
        (
            {"partitioned_by": ["p"], "bucketed_by": ["id"], "bucket_count": 4},
            "insert = bucket(id, p), update = bucket(row_id)",
        ),
    ],
)
def test_a_layout_puts_an_exchange_between_processor_and_writer(
    table: dict[str, Any], text: str
) -> None:
    plan = records(table=table)
    assert one(plan, "Exchange").arguments == text
    assert not facts_of(one(plan, "MergeWriter")).fused
    assert one(plan, "MergeProcessor").sources == (one(plan, "DuplicateCheck").id,)


def test_processor_and_writer_are_one_pass_without_a_layout() -> None:
    plan = records()
    assert "Exchange" not in kinds(plan)
    assert facts_of(one(plan, "MergeWriter")).fused
    assert not facts_of(one(records(rules_off=["fuse_processor_and_writer"]), "MergeWriter")).fused


def test_small_sides_are_replicated_and_read_in_one_partition() -> None:
    plan = records()
    assert facts_of(one(plan, "Join")) == JoinFacts(
        "SINGLE", replicate_target=True, type=JoinType.RIGHT
    )
    assert not facts_of(one(plan, "MarkDistinct")).exchange


def test_large_sides_are_partitioned_by_their_keys_and_the_target_pruned() -> None:
    plan = records(settings=LARGE, rules_off=["change_in_task"])
    assert facts_of(one(plan, "Join")).distribution == "PARTITIONED"
    assert not facts_of(one(plan, "MarkDistinct")).exchange
    assert one(plan, "AssignUniqueId").sources == (one(plan, "SemiJoin").id,), (
        "rows are numbered after they were pruned"
    )


def test_a_source_that_every_task_has_is_replicated() -> None:
    plan = records(settings=LARGE)
    assert facts_of(one(plan, "Join")).distribution == "REPLICATED"
    assert not facts_of(one(plan, "MarkDistinct")).exchange


def test_a_source_of_a_quarter_of_the_target_lets_both_sides_travel_by_their_keys() -> None:
    large = replace(LARGE, one_task_bytes=0, packed_bytes=0, source_bytes=1 << 30)
    details = one(records(settings=large), "MergeWriter").details
    assert any("by their keys: the target has" in detail for detail in details)


def test_a_join_without_equal_keys_marks_after_an_exchange() -> None:
    plan = records(MERGE.replace("t.id = s.id", "t.id <> s.id"), settings=LARGE)
    assert facts_of(one(plan, "Join")).distribution == "AUTOMATIC"
    assert facts_of(one(plan, "MarkDistinct")).exchange
    assert "SemiJoin" not in kinds(plan)


def test_no_exchange_is_dropped_without_the_co_location_rule() -> None:
    by_spark = records(rules_off=["co_locate_matches", "change_in_task"])
    assert facts_of(one(by_spark, "MarkDistinct")).exchange


@pytest.mark.parametrize("settings", [RuleSettings(), LARGE], ids=["one task", "many tasks"])
def test_tasks_that_are_sent_the_answer_of_a_subquery_have_all_matches_of_a_row(
    settings: RuleSettings,
) -> None:
    statement = MERGE.replace("s.v > 1", "s.v > (SELECT min(v) FROM s)")
    assert not facts_of(one(records(statement, settings=settings), "MarkDistinct")).exchange
    assert facts_of(
        one(records(statement, settings=settings, rules_off=["change_in_task"]), "MarkDistinct")
    ).exchange


def test_a_source_that_may_differ_when_read_twice_prunes_nothing() -> None:
    random = MERGE.replace("USING s", "USING (SELECT id, v FROM s WHERE random() < 0.5) s")
    settings = RuleSettings(small_rows=2)
    assert "SemiJoin" not in kinds(records(random, settings=settings))
    stable = MERGE.replace("USING s", "USING (SELECT id, v FROM s WHERE v < 5) s")
    assert "SemiJoin" in kinds(records(stable, settings=settings))


def test_only_the_source_columns_that_are_needed_are_read() -> None:
    scans = [record for record in records().values() if record.kind == "TableScan"]
    assert [name for name, _ in scans[-1].layout] == ["id_0", "v_0"]
    assert len(scans[0].layout) == 4, "of the target all columns and the row id"


def test_explain_prints_the_tree_with_the_arguments_of_trino() -> None:
    engine = Engine()
    engine.register("t", pa.table({"id": [1], "v": [1]}))
    text = str(
        engine.explain(
            "MERGE INTO t USING t s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v",
            kind="LOGICAL",
        )
    )
    for part in (
        "Output[columnNames = [rows]]",
        "└─ TableCommit[target = t]",
        "MarkDistinct[distinct = [unique_id:bigint, case_number:integer], marker = is_distinct]",
        "RightJoin[criteria = (t.id = s.id)]",
        "merge row column: merge_row",
        "row id column: row_id",
        "redistribution columns: []",
        "data columns: [id, v]",
        "present := true",
        "Layout: [rows:bigint]",
    ):
        assert part in text
    assert str(engine.explain("SELECT 1", kind="VALIDATE")) == "true"


def test_an_insert_of_values_is_small_for_any_target(tmp_path: Path) -> None:
    engine = Engine()
    engine.add_catalog("hive", HiveAcidConnector(tmp_path))
    engine.run(
        "CREATE TABLE hive.default.t (id bigint, p varchar) WITH (partitioned_by = ARRAY['p'])"
    )
    few = engine.run(
        "INSERT INTO hive.default.t VALUES (1, 'a'), (2, 'b')", dry_run=True
    ).trace.plan
    made = "SELECT n, p FROM hive.default.t CROSS JOIN UNNEST(sequence(1, id)) AS u (n)"
    unknown = engine.run(f"INSERT INTO hive.default.t {made}", dry_run=True).trace.plan
    assert "Exchange" not in [record.kind for record in few]
    assert "Exchange" in [record.kind for record in unknown], (
        "nothing is known of the rows that it makes"
    )


@pytest.mark.parametrize(
    ("sql", "flow", "call"),
    [
        (MERGE, "merge", "finish_merge"),
        ("DELETE FROM t WHERE id = 1", "merge", "finish_merge"),
        ("DELETE FROM t WHERE id = 1", "updatable", "finish_delete"),
        ("UPDATE t SET v = 1", "updatable", "finish_update"),
        ("INSERT INTO t (id) VALUES (1)", "merge", "finish_insert"),
    ],
)
def test_the_last_step_is_shown_with_its_call(sql: str, flow: str, call: str) -> None:
    assert (
        f"all fragments to {call}, which combines them into one change"
        in one(records(sql, flow=flow), "TableFinish").meaning
    )


def test_a_name_within_a_text_is_not_a_column_to_read() -> None:
    plan = records(
        "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, p) VALUES (s.id, '`unused`')"
    )
    (scan,) = (
        record
        for record in plan.values()
        if isinstance(record.facts, ScanFacts) and not record.facts.target
    )
    assert [name for name, _ in scan.layout] == ["id_0"]


@pytest.mark.parametrize(
    ("source", "distribution"),
    [
        ("(SELECT id, cardinality(sequence(1, 3)) AS v FROM s) s", "SINGLE"),
        ("(SELECT id, v FROM s WHERE id IN (SELECT id FROM s)) s", "SINGLE"),
        ("(SELECT id, x AS v FROM s CROSS JOIN UNNEST(sequence(1, v)) u(x)) s", "PARTITIONED"),
    ],
)
def test_the_rows_of_a_query_are_bounded_by_its_tables_and_not_by_its_words(
    source: str, distribution: str
) -> None:
    sql = f"MERGE INTO t USING {source} ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v"
    assert facts_of(one(records(sql), "Join")).distribution == distribution


CHECKED = {"check_constraints": ["v > 0", "p <> 'x'"]}
INSERT = "INSERT INTO t (id, v) SELECT id, v FROM s"


@pytest.mark.parametrize(
    ("sql", "above", "below"),
    [
        (MERGE, "Project", "Project"),
        ("UPDATE t SET v = 1", "MergeProcessor", "Project"),
        (INSERT, "TableWriter", "Source"),
    ],
)
def test_check_constraints_are_a_filter_above_the_new_rows(
    sql: str, above: str, below: str
) -> None:
    plan = records(sql, table=CHECKED, rules_off=list(RULES))
    order = kinds(plan)
    at = order.index("CheckConstraints")
    assert (order[at - 1], order[at + 1]) == (above, below)
    checks = one(plan, "CheckConstraints")
    assert checks.name == "Filter"
    assert checks.arguments == "(v > 0) AND (p <> 'x')"
    assert checks.trino == (
        "filterPredicate = CASE WHEN COALESCE((v > 0), true) THEN true ELSE fail(CONSTRAINT_VIOLATION) END AND "
        "CASE WHEN COALESCE((p <> 'x'), true) THEN true ELSE fail(CONSTRAINT_VIOLATION) END"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t WHERE id = 1",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "SELECT * FROM t",
    ],
)
def test_statements_that_store_no_row_evaluate_no_check_constraint(sql: str) -> None:
    assert "CheckConstraints" not in kinds(records(sql, table=CHECKED))


def test_the_older_flow_reads_the_columns_of_check_constraints() -> None:
    plan = records("UPDATE t SET v = id", LARGE, table=CHECKED, flow="updatable")
    assert kinds(plan)[2:] == [
        "UpdateRows",
        "CheckConstraints",
        "Project",
        "UpdatablePageSourceScan",
    ]
    assert [name for name, _ in one(plan, "UpdatablePageSourceScan").layout] == [
        "id",
        "v",
        "p",
        "row_id",
    ]
