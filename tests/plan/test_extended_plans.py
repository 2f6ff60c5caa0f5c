"""Plans of the extended dialect, without Spark: the FULL join, its rules, DO NOTHING, and the row of RETURNING."""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb.plan.rules import RULES, RuleSettings
from rowmerge_nb.trace.node_records import BranchRecord, JoinType, NodeRecord
from tests.plan.test_plans import kinds, one, records

MERGE = (
    "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.v > 1 THEN UPDATE SET v = v + 1 "
    "WHEN MATCHED AND s.v = 1 THEN DO NOTHING WHEN MATCHED THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN DO NOTHING"
)
UNEQUAL = MERGE.replace("t.id = s.id", "t.id < s.id")


def planned(
    sql: str = MERGE, settings: RuleSettings | None = None, **options: Any
) -> dict[str, NodeRecord]:
    return records(sql, settings, dialect="extended", **options)


def facts(plan: dict[str, NodeRecord], kind: str) -> Any:
    return one(plan, kind).facts


def branches(plan: dict[str, NodeRecord]) -> tuple[BranchRecord, ...]:
    return next(record.branches for record in plan.values() if record.branches)


def test_the_join_is_full_only_if_a_clause_is_about_unmatched_target_rows() -> None:
    assert (one(planned(), "Join").name, facts(planned(), "Join").type) == (
        "FullJoin",
        JoinType.FULL,
    )
    other = planned("MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DO NOTHING")
    assert "either side" in one(planned(), "Join").meaning
    assert (one(other, "Join").name, facts(other, "Join").type) == ("RightJoin", JoinType.RIGHT)
    assert "source_present" not in str(other)


def test_case_numbers_follow_the_text_over_all_kinds_of_clauses() -> None:
    assert [
        (b.number, b.operation.name, b.condition, b.present, b.by_source)
        for b in branches(planned())
    ] == [
        (0, "UPDATE", "source_present IS NULL AND t.v > 1", "true", True),
        (1, "NONE", "present AND source_present AND s.v = 1", "true", False),
        (2, "DELETE", "present AND source_present", "true", False),
        (3, "DELETE", "source_present IS NULL", "true", True),
        (4, "NONE", "present IS NULL", "false", False),
        (-1, "NONE", "ELSE", "present IS NOT NULL", False),
    ]


@pytest.mark.parametrize("era", ["documents", "current"])
def test_a_clause_that_does_nothing_creates_a_row_that_keeps_its_partition_and_its_number(
    era: str,
) -> None:
    plan = planned(table={"partitioned_by": ["p"]}, era=era)
    assert branches(plan)[1].values == ("NULL", "NULL", "t.p")
    assert "ROW (NULL, NULL, t.p, true, -1, 1)" in str(plan)


SMALL_SOURCE = RuleSettings(small_rows=3)
FORMS = [
    (MERGE, RuleSettings(), ("SINGLE", False, False)),
    (MERGE, SMALL_SOURCE, ("SINGLE", False, False)),
    (MERGE, RuleSettings(small_rows=2), ("PARTITIONED", False, False)),
    (UNEQUAL, RuleSettings(), ("SINGLE", True, False)),
    (UNEQUAL, SMALL_SOURCE, ("REPLICATED", False, False)),
    (UNEQUAL, RuleSettings(small_rows=2), ("AUTOMATIC", False, True)),
]


@pytest.mark.parametrize(("sql", "settings", "form"), FORMS)
def test_the_form_of_a_full_join_keeps_all_matches_of_a_target_row_together(
    sql: str, settings: RuleSettings, form: tuple[str, bool, bool]
) -> None:
    plan = planned(sql, settings, rules_off=["change_in_task"])
    join = facts(plan, "Join")
    assert (join.distribution, join.replicate_target, facts(plan, "MarkDistinct").exchange) == form


@pytest.mark.parametrize("off", [[], *([rule] for rule in RULES if rule != "prune_target")])
def test_target_rows_are_never_pruned_under_a_full_join(off: list[str]) -> None:
    settings = RuleSettings(small_rows=2)
    assert "SemiJoin" not in kinds(planned(settings=settings, rules_off=off))
    right = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    assert "SemiJoin" in kinds(planned(right, settings)), "under a RIGHT join they are"


def test_source_columns_are_pruned_below_the_mark() -> None:
    plan = planned()
    scan = [record for record in plan.values() if record.kind == "TableScan"][-1]
    mark = next(record for record in plan.values() if record.arguments == "source_present := true")
    assert [name for name, _ in scan.layout] == ["id_0", "v_0"]
    assert [name for name, _ in mark.layout] == ["id_0", "v_0", "source_present"]


def test_returning_is_computed_above_the_merge_row_and_reads_only_what_it_needs() -> None:
    plan = planned(f"{MERGE} RETURNING merge_action(), t.id, old.v, s.v AS sv")
    row = next(record for record in plan.values() if record.arguments.startswith("returning :="))
    assert row.arguments == "returning := row(merge_action(), t.id, old.v, s.v)"
    assert [name for name, _ in row.layout] == [
        "unique_id",
        "row_id",
        "merge_row",
        "source_present",
        "case_number",
        "returning",
    ]
    case = next(record for record in plan.values() if record.branches)
    assert [name for name, _ in case.layout][-4:] == ["source_present", "id", "v", "v_0"]
    assert [name for name, _ in plan["Output"].layout] == ["merge_action", "id", "v", "sv"]


def test_a_redistribution_column_that_is_returned_is_there_once() -> None:
    plan = planned(f"{MERGE} RETURNING old.p", table={"partitioned_by": ["p"]})
    case = next(record for record in plan.values() if record.branches)
    names = [name for name, _ in case.layout]
    assert names.count("p") == 1
    assert names[:2] == ["p", "hash"]


def test_a_subquery_in_returning_keeps_the_exchange_of_mark_distinct() -> None:
    plain, nested = (
        planned(f"{MERGE} RETURNING {value}")
        for value in ("s.v", "(SELECT max(v) FROM s x WHERE x.id < s.id)")
    )
    assert not facts(plain, "MarkDistinct").exchange
    assert facts(nested, "MarkDistinct").exchange


def test_the_commit_names_the_columns_it_adds_and_the_scan_has_them_as_null() -> None:
    sql = "MERGE WITH SCHEMA EVOLUTION INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE * WHEN NOT MATCHED THEN INSERT *"
    plan = planned(sql)
    assert one(plan, "TableFinish").details == ("Adds the columns: [unused:bigint]",)
    assert [branch.values[1:] for branch in branches(plan)[:2]] == [
        ("s.v", "t.p", "s.unused"),
        ("s.v", "NULL", "s.unused"),
    ]
    idle = planned(
        "MERGE WITH SCHEMA EVOLUTION INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE"
    )
    assert one(idle, "TableFinish").details == ()
