"""Reasons for the outcome of a row: the reported conditions are those that the engine evaluated, never a guess."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from rowmerge_nb import Engine, RowMergeError, load_trace, save_trace
from rowmerge_nb.engine.observers import row_reasons as reasons
from rowmerge_nb.plan.rules import RuleSettings
from rowmerge_nb.trace.journeys import Fate, Journey, journeys_of
from tests.trace.parts import with_parts

pytestmark = pytest.mark.spark

MERGE = """MERGE INTO t USING (VALUES (1, 2), (2, 3), (NULL, 4), (3, 9), (4, 200)) AS q (id, m) ON t.id = q.id
WHEN MATCHED AND (n <> 0 AND 10 / n > 3 OR s = 'x') THEN DELETE
WHEN MATCHED AND NOT s = 'c' THEN UPDATE SET n = m
WHEN NOT MATCHED AND m > 100 THEN INSERT VALUES (q.id, m, 'new')"""


@pytest.fixture
def engine(spark: Any) -> Engine:
    engine = Engine(spark=spark, dialect="extended")
    engine.run(
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 0, VARCHAR 'a'), (2, 5, NULL), (3, 7, 'c')) AS v (id, n, s)"
    )
    return engine


def journey(engine: Engine, statement: str, row: int, **options: Any) -> Journey:
    found = journeys_of(engine.run(statement, **options).trace)
    assert found is not None
    return found[row]


def told(found: Journey) -> list[tuple[str, list[str]]]:
    """Return per clause its outcome and the deciding parts of its condition."""
    return [
        (v.fate.value, [part.term.text for part in v.condition.deciding] if v.condition else [])
        for v in found.verdicts
    ]


def test_a_part_of_a_condition_knows_whether_it_is_a_test_for_difference(engine: Engine) -> None:
    condition = engine.run(MERGE).trace.clauses[0].condition
    assert condition is not None
    assert [part.text for part in condition.walk() if part.has_difference] == ["n <> 0"]


def test_every_clause_reports_its_outcome_and_the_deciding_part(engine: Engine) -> None:
    result = engine.run(MERGE)
    found = journeys_of(result.trace)
    assert found is not None
    assert [told(row) for row in found] == [
        [("false", ["n <> 0", "s = 'x'"]), ("fires", ["s = 'c'"]), ("not applicable", [])],
        [("unknown", ["s = 'x'"]), ("unknown", ["s = 'c'"]), ("not applicable", [])],
        [("not applicable", []), ("not applicable", []), ("false", ["m > 100"])],
        [("false", ["10 / n > 3", "s = 'x'"]), ("false", ["s = 'c'"]), ("not applicable", [])],
        [("not applicable", []), ("not applicable", []), ("fires", ["m > 100"])],
    ]
    assert str(result.why(id=2)).splitlines() == [
        "Source row 1 (2, 3): no clause fired",
        "  It has a partner: ON is true: t.id = q.id (q.id = 2, t.id = 2).",
        "  Clause 0 is unknown: s = 'x', since t.s is NULL.",
        "  Clause 1 is unknown: s = 'c', since t.s is NULL.",
        "  No clause fires, so the row does nothing.",
    ]


def test_new_values_and_the_texts_that_they_were_computed_from_are_there(engine: Engine) -> None:
    trace = engine.run(MERGE).trace
    assert [clause.values for clause in trace.clauses] == [
        (),
        (("n", "m"),),
        (("id", "q.id"), ("n", "m"), ("s", "'new'")),
        (),
    ]
    found = journeys_of(trace)
    assert found is not None
    assert [row.made for row in found] == [
        {"id": 1, "n": 2, "s": "a"},
        None,
        None,
        None,
        {"id": 4, "n": 200, "s": "new"},
    ]


@pytest.mark.parametrize("era", ["documents", "current"])
@pytest.mark.parametrize("form", [{}, {"rules_off": {"change_in_task"}}])
def test_the_executor_of_the_statement_makes_no_difference(
    engine: Engine, era: str, form: dict[str, Any]
) -> None:
    found = [told(journey(engine, MERGE, row, rehearse=True, era=era, **form)) for row in (1, 3)]
    assert found == [told(journey(engine, MERGE, row, rehearse=True)) for row in (1, 3)]


def test_rows_of_no_source_and_rows_that_do_nothing_on_purpose(engine: Engine) -> None:
    statement = """MERGE INTO t USING (VALUES 1) AS q (id) ON t.id = q.id WHEN MATCHED THEN DO NOTHING
        WHEN NOT MATCHED BY SOURCE AND n > 6 THEN DELETE WHEN NOT MATCHED BY SOURCE AND s IS NULL THEN UPDATE SET s = 'none'"""
    result = engine.run(statement)
    found = journeys_of(result.trace)
    assert found is not None
    assert [told(row) for row in found] == [
        [("fires", []), ("not applicable", []), ("not applicable", [])],
        [("not applicable", []), ("false", ["n > 6"]), ("fires", ["s IS NULL"])],
        [("not applicable", []), ("fires", ["n > 6"]), ("not reached", [])],
    ]
    assert "No source row matches it." in str(result.why(id=3))


@pytest.mark.parametrize("flow", ["merge", "updatable"])
@pytest.mark.parametrize(
    "statement",
    ["UPDATE t SET n = 0 WHERE n > 4 AND id < 3", "DELETE FROM t WHERE n > 4 AND id < 3"],
)
def test_the_where_condition_of_update_and_delete_is_explained(
    engine: Engine, statement: str, flow: str
) -> None:
    [row] = journeys_of(engine.run(statement, flow=flow).trace) or ()
    assert told(row) == [("fires", ["n > 4", "id < 3"])]


@pytest.mark.parametrize(
    "condition", ["t.n > (SELECT min(n) FROM t)", "random() >= 0", "format('%s', n) <> ''"]
)
def test_conditions_that_pages_cannot_compute_are_not_explained(
    engine: Engine, condition: str
) -> None:
    statement = f"MERGE INTO t USING (VALUES 2) AS q (id) ON t.id = q.id WHEN MATCHED AND NOT ({condition}) THEN DELETE"
    result = engine.run(statement, rehearse=True)
    [row] = journeys_of(result.trace) or ()
    assert [(v.fate, v.condition) for v in row.verdicts] in (
        [(Fate.NOT_TRUE, None)],
        [(Fate.FIRES, None)],
    )
    assert row.verdicts[0].condition is None


def test_an_unknown_part_does_not_affect_the_others(engine: Engine) -> None:
    condition = "n = 5 OR format('%s', n) = 'x'"
    statement = f"MERGE INTO t USING (VALUES 1) AS q (id) ON t.id = q.id AND t.n < 9 WHEN MATCHED AND ({condition}) THEN DELETE"
    [row] = journeys_of(engine.run(statement).trace) or ()
    assert row.on is not None
    assert [part.term.text for part in row.on.deciding] == ["t.id = q.id", "t.n < 9"]
    assert row.verdicts[0].condition is None


def test_reasons_that_contradict_the_run_are_not_reported(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = reasons._answers
    monkeypatch.setattr(reasons, "_answers", lambda truths: answers(pc.invert(truths)))
    found = journeys_of(engine.run(MERGE).trace)
    assert found is not None
    assert [verdict.fate.value for verdict in found[0].verdicts[:2]] == ["not true", "fires"]
    assert {verdict.condition for verdict in found[0].verdicts} == {None}


def test_a_condition_with_very_many_parts_is_explained_as_a_whole(engine: Engine) -> None:
    many = " OR ".join(f"n = {number}" for number in range(100, 200))
    row = journey(
        engine,
        f"MERGE INTO t USING (VALUES 1) AS q (id) ON t.id = q.id WHEN MATCHED AND ({many}) THEN DELETE",
        0,
    )
    assert row.verdicts[0].fate is Fate.FALSE
    assert row.verdicts[0].condition is not None
    assert row.verdicts[0].condition.terms == ()


def test_nothing_is_computed_without_a_trace_or_for_large_statements(engine: Engine) -> None:
    with pytest.raises(RowMergeError, match="trace='full'"):
        engine.run(MERGE, trace="off", rehearse=True).why()
    large = Engine(spark=engine.spark, rule_settings=RuleSettings(small_rows=0))
    large.run(
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 0, VARCHAR 'a'), (2, 5, NULL), (3, 7, 'c')) AS v (id, n, s)"
    )
    with pytest.raises(RowMergeError, match="NOT_SUPPORTED"):
        large.run(MERGE, rehearse=True).why()
    assert told(journey(large, MERGE, 1, trace="full"))[0] == ("unknown", ["s = 'x'"])


def test_a_saved_trace_answers_without_spark(engine: Engine, tmp_path: Path) -> None:
    trace = engine.run(MERGE).trace
    save_trace(trace, tmp_path / "trace.json")
    assert journeys_of(load_trace(tmp_path / "trace.json")) == journeys_of(trace)


def test_a_request_for_a_missing_row_lists_the_available_rows(engine: Engine) -> None:
    result = engine.run(MERGE)
    assert len(result.why()) == 5
    assert [row.source_row for row in result.why(4)] == [4]
    assert [row.source_row for row in result.why(source_row=0, ID=1)] == [0]
    assert result.why(s="c")[0].target == {"id": 3, "n": 7, "s": "c"}
    for wrong, said in (
        ({"custmer": 1}, "Neither side has a column 'custmer'"),
        ({"id": 77}, "None of the 5 rows that took part is id = 77"),
        ({"source_row": 9}, "None of the 5 rows that took part is source row 9"),
        ({"source_row": "x"}, "source_row = 'x'"),
        ({"source_row": True}, "source_row = True"),
    ):
        with pytest.raises(RowMergeError, match=said) as raised:
            result.why(**wrong)
        assert raised.value.code == "INVALID_ARGUMENTS"
    with pytest.raises(RowMergeError, match="NOT_SUPPORTED"):
        engine.run("SELECT 1").why()


def test_a_trace_without_journeys_names_the_reason_and_the_remedy(engine: Engine) -> None:
    engine.run("CREATE TABLE quotients (n bigint)")
    engine.run("INSERT INTO quotients VALUES 0")
    with pytest.raises(RowMergeError) as failed:
        engine.run("UPDATE quotients SET n = 1 / n")
    planned = engine.run("UPDATE quotients SET n = 1", dry_run=True)
    for result, said in (
        (
            failed.value.result,
            "This UPDATE failed (DIVISION_BY_ZERO) before its rows were returned",
        ),
        (
            planned,
            "This UPDATE was planned but not run, so no rows were joined. rehearse=True runs it",
        ),
        (
            engine.run("DELETE FROM quotients WHERE n = 5"),
            "This DELETE had no rows to process",
        ),
        (
            engine.run("SELECT 1"),
            "A trace of SELECT has no joined rows. Call it for a MERGE, UPDATE or DELETE",
        ),
        (
            engine.run("UPDATE quotients SET n = 1", trace="off"),
            "Run it with trace='full', or with why=",
        ),
    ):
        assert result is not None
        with pytest.raises(RowMergeError, match=re.escape(said)) as raised:
            result.why()
        assert raised.value.code == "NOT_SUPPORTED"


def test_names_and_values_with_markup_are_text(engine: Engine) -> None:
    engine.run(
        """CREATE TABLE odd AS SELECT * FROM (VALUES (1, VARCHAR '<img src=x onerror=alert(1)>')) AS v (id, "<b>c</b>")"""
    )
    result = engine.run(
        """MERGE INTO odd USING (VALUES 1) AS q (id) ON odd.id = q.id WHEN MATCHED AND "<b>c</b>" = '<script>' THEN DELETE"""
    )
    html = result.why()._repr_mimebundle_()["text/html"]
    assert "<img" not in html
    assert "<script" not in html
    assert "<b>c" not in html
    assert "&lt;img src=x" in html


def test_a_row_without_reasons_shows_its_journey_anyway(engine: Engine) -> None:
    trace = engine.run(MERGE).trace
    assert trace.samples.pages is not None
    bare = with_parts(trace, samples={"pages": replace(trace.samples.pages, truths=None)})
    found = journeys_of(bare)
    assert found is not None
    assert [v.fate.value for v in found[0].verdicts] == ["not true", "fires", "not applicable"]


def test_conditions_over_nested_values_are_explained_like_others(engine: Engine) -> None:
    engine.run(
        "CREATE TABLE nested AS SELECT * FROM (VALUES (1, ARRAY[1], ROW(1, VARCHAR 'x')), (2, NULL, NULL)) AS v (id, a, r)"
    )
    result = engine.run(
        "MERGE INTO nested t USING (VALUES 1, 2) AS q (id) ON t.id = q.id WHEN MATCHED AND r IS NULL THEN DELETE",
        rehearse=True,
    )
    assert "Clause 0 fires: r IS NULL (t.r = NULL)." in str(result.why(id=2))
    assert "Row journeys" in result.text()
    assert len(result.quiz(99)) > 5
    assert result.explore().state["rows"][0]["fate"] == "none"
    update = engine.run(
        "UPDATE nested SET id = 3 WHERE a IS NOT NULL AND r IS NOT NULL", rehearse=True
    )
    assert (
        "WHERE is true: a IS NOT NULL (nested.a = [1]); r IS NOT NULL (nested.r = (1, x))."
        in str(update.why())
    )


def test_a_failed_explanation_does_not_fail_the_statement(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("rowmerge_nb.engine.observers.row_reasons.with_truths", fails)
    result = engine.run(MERGE)
    assert result.count == 2
    assert told(result.why(0)[0])[0] == ("not true", [])


def test_a_condition_that_is_nested_deeply_is_explained_or_not_and_the_statement_runs(
    engine: Engine,
) -> None:
    nested = "n > 100"
    for level in range(150):
        nested = f"(n > {level} {'AND' if level % 2 else 'OR'} {nested})"
    result = engine.run(
        f"MERGE INTO t USING (VALUES 1) AS q (id) ON t.id = q.id WHEN MATCHED AND {nested} THEN DELETE",
        rehearse=True,
    )
    assert len(result.why()) == 1


def test_update_and_delete_refer_to_where(engine: Engine) -> None:
    def said(statement: str) -> str:
        return str(engine.run(statement, rehearse=True).why(id=3))

    assert "  WHERE is true: n > 5 (t.n = 7)." in said("DELETE FROM t WHERE n > 5")
    assert "  WHERE is true." in said("UPDATE t SET n = 1 WHERE n > (SELECT min(n) FROM t)")
    assert "  There is no WHERE, so every row is chosen." in said("UPDATE t SET n = 1")


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("s = 'x' AND q.m > 0", "s = 'x', since t.s is NULL"),
        ("n + q.m > 0 AND s < 'x'", "s < 'x', since t.s is NULL"),
        ("coalesce(s, 'x') = CAST(NULLIF(q.m, 3) AS varchar)", "(q.m = 3, t.s = NULL)"),
        ("n IN (4, NULL)", "n IN (4, NULL) (t.n = 5)"),
    ],
)
def test_a_null_is_blamed_only_if_it_is_the_cause(
    engine: Engine, condition: str, said: str
) -> None:
    statement = f"MERGE INTO t USING (VALUES (2, 3)) AS q (id, m) ON t.id = q.id WHEN MATCHED AND {condition} THEN DELETE"
    text = str(engine.run(statement, rehearse=True).why())
    assert "Clause 0 is unknown: " in text
    assert said in text


def test_each_of_many_rows_is_explained_if_a_part_fails_for_some(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.run(
        "CREATE TABLE big AS SELECT n AS id, n % 20 AS m FROM UNNEST(sequence(1, 60)) AS u (n)"
    )
    result = engine.run(
        "MERGE INTO big t USING big q ON t.id = q.id WHEN MATCHED AND t.m <> 0 AND 10 / t.m > 5 THEN DELETE",
        rehearse=True,
    )
    assert "Clause 0 fires: t.m <> 0 (t.m = 1); 10 / t.m > 5 (t.m = 1)." in str(result.why(id=41))
    assert "Clause 0 is false: t.m <> 0 (t.m = 0)." in str(result.why(id=60))


def test_a_statement_without_joined_rows_is_reported_as_such(engine: Engine) -> None:
    result = engine.run(
        "MERGE INTO t USING (SELECT 1 AS id WHERE false) AS q ON t.id = q.id WHEN MATCHED THEN DELETE"
    )
    for ask in (result.why, result.quiz, result.explore, result.journeys):
        with pytest.raises(RowMergeError, match="had no rows to process"):
            ask()
