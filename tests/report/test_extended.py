"""FULL joins, DO NOTHING and RETURNING in reports."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.report import build_report, dot_to_svg, plan_dot
from rowmerge_nb.report.plain_text import render_text
from rowmerge_nb.report.words.phrases import phrase_text
from rowmerge_nb.trace.trace import Trace
from tests.trace.parts import with_parts

MERGE = (
    "MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.v > 1 THEN DELETE "
    "WHEN MATCHED AND s.v = 1 THEN DO NOTHING WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT * "
    "RETURNING merge_action(), t.id"
)


@pytest.fixture(scope="module")
def planned() -> Trace:
    engine = Engine(dialect="extended")
    engine.register("t", pa.table({"id": [1, 2], "v": [1, 2]}))
    engine.register("s", pa.table({"id": [2, 3], "v": [1, 2]}))
    return engine.run(MERGE, dry_run=True).trace


def finished(planned: Trace) -> Trace:
    """Return the numbers of a run: one row by source, one that does nothing, one inserted, two without a clause."""
    rows = {0: 1, 1: 1, 2: 0, 3: 1, -1: 2}
    clauses = tuple(replace(clause, rows=rows[clause.number]) for clause in planned.clauses)
    return with_parts(
        planned,
        state="finished",
        clauses=clauses,
        join={
            "rows": 5,
            "matched_rows": 1,
            "unmatched_rows": 1,
            "unmatched_target_rows": 3,
            "source_rows": 5,
        },
        count=2,
        returned=2,
    )


def test_the_text_of_a_plan_has_the_full_join_and_both_marks(planned: Trace) -> None:
    text = " ".join(render_text(build_report(planned)).split())
    for part in (
        "FULL JOIN t.id = s.id",
        "Project source_present := true",
        "clause 0 D source_present IS NULL AND t.v > 1",
        "clause 1 · present AND source_present AND s.v = 1",
        "Project returning := row(merge_action(), t.id)",
    ):
        assert part in text


def test_the_drawing_has_an_outlet_for_each_kind_of_row(planned: Trace) -> None:
    drawn = dot_to_svg(plan_dot(build_report(planned)), standalone=True).replace(
        "\N{NO-BREAK SPACE}", " "
    )
    for part in (
        "FULL JOIN",
        "not matched by target",
        "not matched by source",
        "source_present IS NULL",
    ):
        assert part in drawn
    ordinary = "MERGE INTO t USING t s ON t.id = s.id WHEN MATCHED THEN DELETE"
    engine = Engine()
    engine.register("t", pa.table({"id": [1], "v": [1]}))
    other = plan_dot(build_report(engine.run(ordinary, dry_run=True).trace)).replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert "RIGHT JOIN" in other
    assert "by source" not in other


def test_all_columns_are_written_by_set_star(planned: Trace) -> None:
    clauses = build_report(planned).clauses
    assert clauses is not None
    assert [row.writes for row in clauses.rows] == [
        "row removed",
        "nothing",
        "id, v",
        "id, v",
        "nothing",
    ]


def test_rows_that_do_nothing_are_distinguished_from_rows_that_no_clause_takes(
    planned: Trace,
) -> None:
    report = build_report(finished(planned))
    assert phrase_text(report.outcome.sentence).startswith(
        "1 row inserted, 1 deleted; no clause fired for 2 joined rows; 1 joined row took DO NOTHING; 2 rows returned."
    )
    assert report.clauses is not None
    assert report.clauses.total_label == "joined rows"


def test_the_join_counts_what_each_side_lacks(planned: Trace) -> None:
    report = build_report(finished(planned))
    assert report.plan is not None
    join = report.plan.of_kind("Join")
    assert join is not None
    assert join.notes == ("matched 1, not matched 1 by target and 3 by source",)
    assert (report.plan.by_source, report.plan.unmatched_text) == (3, "")


def test_the_case_shows_do_nothing(planned: Trace) -> None:
    report = build_report(planned)
    assert report.plan is not None
    assert any(line.endswith("-- clause 1, DO NOTHING") for line in report.plan.case_lines)
