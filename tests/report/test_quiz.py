"""Questions about a statement: their answers are those of the trace, for any drawing, and a wrong answer gets its reason."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest

from rowmerge_nb import DuplicateMatchError, Engine, RowMergeError
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.report.quiz import Quiz
from rowmerge_nb.trace.journeys import journeys_of

pytestmark = pytest.mark.spark

MERGE = """MERGE INTO t USING (VALUES ('Aaron', 6), ('Bill', 9), ('Ed', 8), ('Gus', 3)) AS s (name, n) ON t.name = s.name
WHEN MATCHED AND s.n = 9 THEN DELETE
WHEN MATCHED AND s.n > t.n THEN UPDATE SET n = s.n
WHEN NOT MATCHED THEN INSERT VALUES (s.name, s.n, 'new')"""


@pytest.fixture(scope="module")
def result(spark: Any) -> Result:
    engine = Engine(spark=spark)
    rows = "VALUES (VARCHAR 'Aaron', 5, VARCHAR 'a'), ('Bill', 7, 'b'), ('Ed', NULL, 'c')"
    engine.run(
        f"CREATE TABLE t WITH (partitioned_by = ARRAY['part']) AS SELECT * FROM ({rows}) AS v (name, n, part)"
    )
    return engine.run(MERGE)


def test_every_topic_is_asked_before_one_repeats_and_the_seed_decides(result: Result) -> None:
    quiz = result.quiz(n=7, seed=3)
    assert sorted(question.topic for question in quiz) == [
        "clause",
        "condition",
        "duplicates",
        "join",
        "page",
        "paradigm",
        "writer",
    ]
    assert list(result.quiz(7, 3)) == list(quiz)
    assert list(result.quiz(7, 4)) != list(quiz)
    whole = result.quiz(n=1000)
    assert len(whole) == len({question.text for question in whole}) < 40
    assert len(result.quiz()) == 5


def test_every_answer_is_one_of_the_choices_and_that_of_the_trace(result: Result) -> None:
    answers = {(question.topic, question.text): question.answer for question in result.quiz(n=1000)}
    for question in result.quiz(n=1000):
        assert question.answer in question.choices
        assert question.because.endswith(".")
    [aaron, bill, ed, gus] = journeys_of(result.trace) or ()
    for journey, said in (
        (aaron, "clause 1"),
        (bill, "clause 0"),
        (ed, "no clause"),
        (gus, "clause 2"),
    ):
        [answer] = [
            told
            for (topic, text), told in answers.items()
            if topic == "clause" and str(journey.source["name"]) in text
        ]  # type: ignore[index]
        assert answer.startswith(said)
    truths = {text: answer for (topic, text), answer in answers.items() if topic == "condition"}
    assert (
        truths[
            "What is the value of `s.n > t.n` for the source row `(Ed, 8)` with the target row `(Ed, NULL, c)`?"
        ]
        == "unknown"
    )
    pages = {text: answer for (topic, text), answer in answers.items() if topic == "page"}
    assert sorted(pages.values()) == ["0", "1", "1", "2"]
    assert [answer for (topic, _), answer in answers.items() if topic == "paradigm"] == ["1"]


def test_the_answer_about_a_repeated_source_row_is_the_outcome(result: Result) -> None:
    questions = [question for question in result.quiz(n=1000) if question.topic == "duplicates"]
    rows = ["(Aaron, 6)", "(Bill, 9)"]
    assert [any(row in question.text for question in questions) for row in rows] == [True, True]
    assert {question.answer for question in questions} == {"fail"}
    for row in ("('Aaron', 6)", "('Bill', 9)"):
        with pytest.raises(DuplicateMatchError):
            result.what_if(MERGE.replace(row, f"{row}, {row}"))


def test_answers_are_checked_by_letter_or_by_word_and_wrong_ones_get_the_reason(
    result: Result,
) -> None:
    quiz = result.quiz(n=1000)
    at = next(number for number, question in enumerate(quiz, 1) if question.answer == "unknown")
    assert quiz.check(at, "unknown").right
    assert quiz.check(at, " C ").right
    mark = quiz.check(at, "a")
    assert not mark.right
    assert str(mark) == "No: unknown. It is unknown: s.n > t.n, since t.n is NULL."
    for number, answer, said in (
        (0, "a", "the number of a question, 1 to"),
        (999, "a", "1 to"),
        (at, "maybe", "'maybe' is no answer"),
    ):
        with pytest.raises(RowMergeError, match=said) as raised:
            quiz.check(number, answer)
        assert raised.value.code == "INVALID_ARGUMENTS"


def test_the_quiz_is_markdown_and_cells(result: Result) -> None:
    quiz = result.quiz(2, 1)
    assert quiz.markdown() == str(quiz)
    assert "**Answers**" not in quiz.markdown()
    assert quiz.markdown(answers=True).count("\n1. ") == 1
    cells = quiz.cells("q")
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code"] * 2
    assert cells[1]["source"] == 'q.check(1, "?")', "no letter, which may be right"
    nbformat.validate(nbformat.v4.new_notebook(cells=[nbformat.from_dict(cell) for cell in cells]))
    assert set(quiz._repr_mimebundle_()) == {"text/plain", "text/markdown"}


def test_each_question_is_self_contained_and_blanks_are_visible(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.run("CREATE TABLE t AS SELECT * FROM (VALUES (VARCHAR 'Eve ', 1)) AS v (name, n)")
    quiz = engine.run(
        "MERGE INTO t USING (VALUES ('Eve ')) AS s (name) ON t.name = s.name WHEN MATCHED THEN UPDATE SET n = 2"
    ).quiz(99)
    texts = {question.topic: question.text for question in quiz}
    assert texts["paradigm"].startswith(
        "How many rows would leave `transform_page` for the source row `(Eve\N{OPEN BOX})`"
    )
    assert all("(Eve\N{OPEN BOX}" in text for text in texts.values())


def test_names_and_values_with_markup_are_text(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.run("""CREATE TABLE t AS SELECT * FROM (VALUES (1, VARCHAR '`<b>*x*')) AS v (id, n)""")
    text = (
        engine.run(
            "MERGE INTO t USING (VALUES 1) AS s (id) ON t.id = s.id WHEN MATCHED AND n <> '<i>' THEN DELETE"
        )
        .quiz(99)
        .markdown(answers=True)
    )
    assert "``(1, `<b>*x*)``" in text, "code, in which nothing is markup"
    assert "clause 0: `WHEN MATCHED AND n <> '<i>'" in text


@pytest.mark.parametrize(("n", "seed"), [(0, 0), (True, 0), ("5", 0), (5, "x")])
def test_an_invalid_number_is_refused(result: Result, n: Any, seed: Any) -> None:
    with pytest.raises(RowMergeError, match="INVALID_ARGUMENTS"):
        result.quiz(n, seed)


def test_a_quiz_without_joined_rows_has_no_questions(result: Result, spark: Any) -> None:
    engine = Engine(spark=spark)
    for told in (engine.run("SELECT 1"), engine.run("CREATE TABLE t (id bigint)")):
        with pytest.raises(RowMergeError, match="There is nothing to ask about this") as raised:
            told.quiz()
        assert raised.value.code == "NOT_SUPPORTED"
    assert repr(Quiz([])) == "<Quiz: 0 questions>"


def test_no_question_repeats_and_every_choice_has_a_label(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 1), (2, 2), (3, 3)) AS v (id, n)")
    quiz = engine.run(
        "MERGE INTO t USING (VALUES 1) AS q (m) ON true WHEN MATCHED AND t.n > 1 THEN DELETE",
        rehearse=True,
    ).quiz(100)
    assert len({question.text for question in quiz}) == len(quiz)
    clauses = " ".join(
        f"WHEN MATCHED AND n = {number} THEN UPDATE SET n = {number}"
        for number in range(40, 11, -1)
    )
    quiz = engine.run(
        f"MERGE INTO t USING (VALUES 1) AS q (id) ON t.id = q.id {clauses} WHEN MATCHED THEN DELETE",
        rehearse=True,
    ).quiz(100)
    [at] = [number for number, question in enumerate(quiz, 1) if question.topic == "clause"]
    assert quiz.check(at, "30").right
    assert "   - 30: clause 29: `WHEN MATCHED" in quiz.markdown()


TWO_ROWS = "MERGE INTO t USING (VALUES (1, 1), (1, 2)) AS q (id, n) ON t.id = q.id"


def test_the_other_paradigm_is_not_asked_if_the_statement_would_fail_under_it(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 1), (2, 2)) AS v (id, n)")
    result = engine.run(
        f"{TWO_ROWS} WHEN MATCHED AND q.n = 1 THEN UPDATE SET n = 8 WHEN MATCHED THEN UPDATE SET n = 9",
        rehearse=True,
    )
    assert "page" in {question.topic for question in result.quiz(99)}
    assert "paradigm" not in {question.topic for question in result.quiz(99)}
    assert "there are no more questions" not in str(result.quiz(2))
    count = len(result.quiz(99))
    assert str(result.quiz(99)).endswith(f"\n\n{count} of 99: there are no more questions.")
    assert "there are no more questions" not in result.quiz(99).markdown()


def test_a_merge_that_failed_by_repeated_matches_is_sent_to_its_verdicts(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.run("CREATE TABLE t AS SELECT * FROM (VALUES (1, 1), (2, 2)) AS v (id, n)")
    with pytest.raises(RowMergeError) as failed:
        engine.run(f"{TWO_ROWS} WHEN MATCHED THEN DELETE")
    result = failed.value.result
    assert result is not None
    with pytest.raises(RowMergeError, match="no outcome to ask about") as raised:
        result.quiz()
    assert "result.verdicts()" in str(raised.value.hint)
    assert result.verdicts()
    result.explore()


@pytest.mark.parametrize(
    ("statement", "chosen"),
    [("UPDATE t SET n = 0 WHERE n > 5", "Bill"), ("DELETE FROM t WHERE n > 5", "Bill")],
)
def test_an_update_and_a_delete_are_asked_for_the_rows_they_choose(
    spark: Any, statement: str, chosen: str
) -> None:
    engine = Engine(spark=spark)
    engine.run(
        "CREATE TABLE t AS SELECT * FROM (VALUES ('Aaron', 5), ('Bill', 7), ('Ed', NULL)) AS v (name, n)"
    )
    quiz = engine.run(statement).quiz(100)
    answers = {question.text: question.answer for question in quiz if question.topic == "where"}
    assert len(answers) == 3
    assert [text for text, answer in answers.items() if answer == "yes"] == [
        f"Does the {statement[:6]} choose the target row `({chosen}, 7)`?"
    ]
    assert {question.topic for question in quiz} == {"where", "page"} | (
        {"paradigm"} if statement.startswith("UPDATE") else set()
    )
