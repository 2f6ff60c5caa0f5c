"""The topics of a quiz, its choices, and its text, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from rowmerge_nb import RowMergeError
from rowmerge_nb.engine.api.result import Result
from rowmerge_nb.report.quiz import TOPICS
from tests.report.traces import Setup, merge_trace


@pytest.fixture
def result() -> Result:
    return Result(merge_trace(Setup()))


def test_a_teacher_chooses_the_topics(result: Result) -> None:
    assert {question.topic for question in result.quiz(99)} <= set(TOPICS)
    quiz = result.quiz(99, topics=["join", "clause"])
    assert {question.topic for question in quiz} == {"join", "clause"}
    assert "transform_page" not in quiz.markdown(answers=True)
    assert len(result.quiz(topics=[])) == 0


@pytest.mark.parametrize(
    ("topics", "words"),
    [
        ("join", "topics = 'join' is of type str.*a list of some of join, condition, clause"),
        (3, "topics = 3 is of type int.*a list of some of join, condition, clause"),
        (["join", "pages"], "topic = 'pages' is not possible.*one of join, condition, clause"),
    ],
)
def test_an_unknown_topic_is_refused_with_the_available_ones(
    result: Result, topics: Any, words: str
) -> None:
    with pytest.raises(RowMergeError, match=words) as raised:
        result.quiz(topics=topics)
    assert raised.value.code == "INVALID_ARGUMENTS"


def test_an_answer_outside_the_choices_lists_the_letters(result: Result) -> None:
    quiz = result.quiz(1, topics=["join"])
    for answer in ("?", "z"):
        with pytest.raises(RowMergeError, match=r"Its choices are: a: yes; b: no\."):
            quiz.check(1, answer)


def test_clauses_and_names_are_code_that_can_be_printed(result: Result) -> None:
    quiz = result.quiz(99)
    text = quiz.markdown(answers=True)
    assert "clause 0: `WHEN MATCHED" in text
    assert "\\_" not in text
    [(number, question), *_] = [
        (number, question) for number, question in enumerate(quiz, 1) if question.topic == "clause"
    ]
    assert quiz.check(number, question.answer.replace("`", "")).right, "the words without marks"
