"""The result of ``result.quiz()``."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.choices import ROW_CHANGES, RepeatedMatches
from rowmerge_nb.base.errors import DuplicateMatchError, RowMergeError
from rowmerge_nb.base.words import code, code_parts, plural
from rowmerge_nb.report.sequence import ShownSequence
from rowmerge_nb.report.words.display_values import row_text, visible
from rowmerge_nb.report.words.reasons import because_of, gist_of
from rowmerge_nb.report.words.side_names import names_in, with_side_names
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.trace.journeys import Fate, JoinResult, told_journeys
from rowmerge_nb.trace.page_samples import Answer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rowmerge_nb.trace.journeys import Journey
    from rowmerge_nb.trace.trace import Trace

MOST_ROWS: Final = 100
"""The maximum number of rows with questions."""
_TRUTHS: Final = {Answer.TRUE: "true", Answer.FALSE: "false", Answer.UNKNOWN: "unknown"}
_LAST: Final = "duplicates"
TOPICS: Final = ("join", "condition", "clause", "where", "page", "paradigm", "writer", _LAST)
"""What a quiz asks about: `where` is about UPDATE and DELETE; `page` and `paradigm` count rows that
leave ``transform_page``.
"""
_CHANGES: Final = frozenset({Operation.UPDATE, Operation.DELETE})
_TWICE: Final = {
    RepeatedMatches.TRINO: "The same clause may match a target row only once.",
    RepeatedMatches.STANDARD: "A target row may be changed only once.",
}
_OTHER: Final = {
    "DELETE_ROW_AND_INSERT_ROW": "CHANGE_ONLY_UPDATED_COLUMNS",
    "CHANGE_ONLY_UPDATED_COLUMNS": "DELETE_ROW_AND_INSERT_ROW",
}


@dataclass(frozen=True)
class Question:
    topic: str
    text: str
    choices: tuple[str, ...]
    answer: str
    because: str


@dataclass(frozen=True)
class AnswerMark:
    """The result of an answer.

    >>> print(AnswerMark(False, "unknown", "t.purchases is NULL."))
    No: unknown. t.purchases is NULL.
    """

    right: bool
    answer: str
    because: str

    def __str__(self) -> str:
        return f"{'Yes' if self.right else 'No'}: {self.answer}. {self.because}"

    def _repr_markdown_(self) -> str:
        return f"**{'Yes' if self.right else 'No'}**: {_plain(self.answer)}. {_plain(self.because)}"


class Quiz(ShownSequence[Question]):
    """Questions, displayed without their answers; `check` has them."""

    @classmethod
    def of(cls, trace: Trace, n: int, seed: int, allowed: Collection[str] = TOPICS) -> Quiz:
        """Build up to ``n`` questions from the trace of a row change; each topic comes before one
        is repeated.
        """
        choices = ", ".join(TOPICS)
        checked(allowed, "topics", (list, tuple, set), f"a list of some of {choices}")
        for name in allowed:
            checked(name, "topic", TOPICS.__contains__, f"one of {choices}")
        checked(
            n,
            "n",
            lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
            "a whole number from 1",
        )
        checked(seed, "seed", lambda value: isinstance(value, int), "a whole number")
        if trace.kind not in ROW_CHANGES:
            raise RowMergeError.unsupported(
                f"There is nothing to ask about this {trace.kind}",
                hint="A quiz is made of a MERGE, UPDATE or DELETE, a large one run with trace='full'.",
            )
        if trace.error is not None and trace.error.code == DuplicateMatchError.default_code:
            raise RowMergeError.unsupported(
                f"This MERGE failed ({trace.error.code}), so its rows have no outcome to ask about",
                hint=(
                    f"{code('result.verdicts()')} says what ten engines do with its rows, and"
                    f" {code('result.explore()')} shows them; for a quiz, repair the source."
                ),
            )
        journeys = with_side_names(told_journeys(trace, MOST_ROWS), names_in(trace))
        chance = random.Random(seed)  # noqa: S311 - a lottery of questions
        topics: dict[str, list[Question]] = {}
        for question in {
            question.text: question
            for question in (*_questions(trace, journeys), *_about_untouched(trace))
        }.values():
            if question.topic in allowed:
                topics.setdefault(question.topic, []).append(question)
        # Questions about another source come behind those about what has happened.
        last = topics.pop(_LAST, [])
        for questions in topics.values():
            chance.shuffle(questions)
        order = list(topics)
        chance.shuffle(order)
        if last:
            chance.shuffle(last)
            topics[_LAST] = last
            order.append(_LAST)
        selected = [
            topics[topic][turn]
            for turn in range(max(map(len, topics.values()), default=0))
            for topic in order
            if turn < len(topics[topic])
        ]
        return cls(selected[:n], requested=n)

    def __init__(self, items: Sequence[Question], *, requested: int = 0) -> None:
        super().__init__(items)
        self.requested = requested

    def check(self, number: int, answer: str) -> AnswerMark:
        """Return whether an answer, a choice or its letter, to question ``number``, from 1, is
        right, and why.
        """
        count = len(self)
        numbers = range(1, count + 1)
        checked(
            number,
            "number",
            lambda value: isinstance(value, int) and value in numbers,
            f"the number of a question, 1 to {count}",
        )
        question = self._items[number - 1]
        choices = dict(zip(_labels(question), question.choices, strict=True))
        text = str(answer).strip()
        words = {_words(option): option for option in question.choices}
        choice = choices.get(text.lower(), words.get(_words(text)))
        if choice is None:
            raise RowMergeError.invalid(
                f"'{visible(text)}' is no answer to question {number}",
                hint=(
                    "Its choices are: "
                    f"{'; '.join(f'{label}: {option}' for label, option in choices.items())}."
                ),
            )
        return AnswerMark(choice == question.answer, question.answer, question.because)

    def markdown(self, *, answers: bool = False) -> str:
        """Return the questions as Markdown, optionally with the answers at the end."""
        blocks = [_question_text(number, question) for number, question in enumerate(self, 1)]
        if answers:
            lines = [
                f"{number}. {_plain(question.answer)}. {_plain(question.because)}"
                for number, question in enumerate(self, 1)
            ]
            blocks.append("**Answers**\n\n" + "\n".join(lines))
        return "\n\n".join(blocks)

    def cells(self, name: str = "quiz") -> list[dict[str, Any]]:
        """Return notebook cells (nbformat 4.5): each question, followed by a cell for its answer;
        ``name`` is the quiz's variable there.
        """
        notebook_cells: list[dict[str, Any]] = []
        for number, question in enumerate(self, 1):
            question_cell = {
                "cell_type": "markdown",
                "id": f"question-{number}",
                "metadata": {},
                "source": _question_text(number, question),
            }
            code: dict[str, Any] = {
                "cell_type": "code",
                "metadata": {},
                "execution_count": None,
                "outputs": [],
            }
            notebook_cells += [
                question_cell,
                {**code, "id": f"answer-{number}", "source": f'{name}.check({number}, "?")'},
            ]
        return notebook_cells

    def __str__(self) -> str:
        count = len(self)
        if count >= self.requested:
            return self.markdown()
        return f"{self.markdown()}\n\n{count} of {self.requested}: there are no more questions."

    def __repr__(self) -> str:
        return f"<Quiz: {plural(len(self), 'question')}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/markdown": str(self)}


def _question_text(number: int, question: Question) -> str:
    choices = "\n".join(
        f"   - {letter}: {_plain(choice)}"
        for letter, choice in zip(_labels(question), question.choices, strict=True)
    )
    return f"{number}. {question.text}\n\n{choices}"


def _labels(question: Question) -> Sequence[str]:
    count = len(question.choices)
    return (
        ascii_lowercase[:count]
        if count <= len(ascii_lowercase)
        else [str(number) for number in range(1, count + 1)]
    )


def _words(choice: str) -> str:
    return choice.lower().replace("`", "")


def _plain(text: str) -> str:
    r"""Escape text for Markdown where a reader would see markup; code stays code.

    >>> _plain("a*b <i> of first_name <> 1 in `<i>`")
    'a\\*b &lt;i> of first_name <> 1 in `<i>`'
    """
    return "".join(_code(part) if is_code else _escaped(part) for part, is_code in code_parts(text))


def _escaped(text: str) -> str:
    entities = re.sub(r"&(?=#?\w+;)", "&amp;", text)
    without_tags = re.sub(r"<(?=[\w/!?])", "&lt;", entities)
    return re.sub(r"[\\`*\[\]|$#~]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", without_tags)


def _code(text: str) -> str:
    fence = "`" * (
        max((len(run) for run in "".join(c if c == "`" else " " for c in text).split()), default=0)
        + 1
    )
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{space}{visible(' '.join(text.split()))}{space}{fence}"


def _row(journey: Journey) -> str:
    parts = []
    if journey.source is not None:
        parts.append(f"the source row {_values(journey.source)}")
    if journey.target is not None:
        parts.append(f"the target row {_values(journey.target)}")
    return " with ".join(parts)


def _values(side: Mapping[str, Any]) -> str:
    return _code(row_text(side.values()))


def _questions(trace: Trace, journeys: Sequence[Journey]) -> Iterator[Question]:
    heads = {
        clause.number: (
            f"clause {clause.number}:"
            f" {code(visible(' '.join((clause.head or clause.text).split())))}"
        )
        for clause in trace.clauses
    }
    clauses = (
        *(heads[clause.number] for clause in trace.clauses if clause.number >= 0),
        "no clause",
    )
    for journey in journeys:
        yield from _about_row(trace, journey, heads, clauses)


def _about_untouched(trace: Trace) -> Iterator[Question]:
    rows = trace.samples.untouched_rows
    if trace.kind == "MERGE" or rows is None:
        return
    for row in rows.slice(0, MOST_ROWS).to_pylist():
        yield _about_where(trace, row, "no", "WHERE is not true for it.")


def _about_where(trace: Trace, row: Mapping[str, Any], answer: str, because: str) -> Question:
    text = f"Does the {trace.kind} choose the target row {_values(row)}?"
    return Question("where", text, ("yes", "no"), answer, because)


def _is_changed_twice(trace: Trace) -> bool:
    """Return whether the statement may fail in place: several changes of one row are an error."""
    patterns = trace.join.multiple_matches
    return patterns is None or any(pattern.acting > 1 for pattern in patterns)


def _about_row(
    trace: Trace, journey: Journey, heads: Mapping[int, str], clauses: tuple[str, ...]
) -> Iterator[Question]:
    row, why = _row(journey), gist_of(journey)
    if journey.source is not None:
        yield _about_partner(journey, journey.source)
    if journey.join is JoinResult.CHOSEN:
        yield _about_where(trace, journey.target or {}, "yes", why)
    else:
        takes = heads[journey.case_number] if journey.case_number >= 0 else "no clause"
        yield Question("clause", f"Which clause takes {row}?", clauses, takes, why)
        yield from _about_conditions(journey, row)
    yield from _about_repetition(trace, journey)
    yield _about_page(trace, journey, row)
    yield from _about_paradigm(trace, journey, row)
    yield from _about_writer(trace, journey, row)


def _about_partner(journey: Journey, source: Mapping[str, Any]) -> Question:
    has_partner = journey.join is JoinResult.MATCHED
    return Question(
        "join",
        f"Does the source row {_values(source)} have a partner in the target?",
        ("yes", "no"),
        "yes" if has_partner else "no",
        (
            "ON is true for it and a row of the target."
            if has_partner
            else "ON is true for no row of the target."
        ),
    )


def _about_conditions(journey: Journey, row: str) -> Iterator[Question]:
    for verdict in journey.verdicts:
        condition = verdict.condition
        if (
            condition is not None
            and condition.answer in _TRUTHS
            and verdict.fate is not Fate.NOT_REACHED
        ):
            yield Question(
                "condition",
                f"What is the value of {_code(condition.term.text)} for {row}?",
                tuple(_TRUTHS.values()),
                _TRUTHS[condition.answer],
                f"It is {_TRUTHS[condition.answer]}{because_of(condition)}.",
            )


def _about_repetition(trace: Trace, journey: Journey) -> Iterator[Question]:
    if (
        journey.join is JoinResult.MATCHED
        and journey.operation in _CHANGES
        and trace.settings.duplicates != RepeatedMatches.NONE
    ):
        yield Question(
            _LAST,
            f"What would the MERGE do if the source had {_values(journey.source or {})} twice?",
            ("fail", "change the target row once", "change the target row twice"),
            "fail",
            f"{_TWICE[trace.settings.duplicates]} The error is {code(DuplicateMatchError.default_code)}.",
        )


def _about_page(trace: Trace, journey: Journey, row: str) -> Question:
    rows = str(len(journey.becomes))
    reasons = {
        "0": "The row changes nothing, so no row leaves `transform_page`.",
        "1": f"{journey.operation.name} is one row under {code(trace.settings.paradigm)}.",
    }
    because = reasons.get(
        rows, "In this paradigm, an update is a delete of the old row and an insert of the new row."
    )
    return Question(
        "page", f"How many rows leave `transform_page` for {row}?", ("0", "1", "2"), rows, because
    )


def _about_paradigm(trace: Trace, journey: Journey, row: str) -> Iterator[Question]:
    other = _OTHER.get(trace.settings.paradigm)
    if (
        journey.operation is not Operation.UPDATE
        or other is None
        or (other == "CHANGE_ONLY_UPDATED_COLUMNS" and _is_changed_twice(trace))
    ):
        return
    answer = "2" if other == "DELETE_ROW_AND_INSERT_ROW" else "1"
    because = (
        "It deletes the old row and inserts the new one."
        if answer == "2"
        else "An update stays one row."
    )
    yield Question(
        "paradigm",
        f"How many rows would leave `transform_page` for {row} under `{other}`?",
        ("0", "1", "2"),
        answer,
        because,
    )


def _about_writer(trace: Trace, journey: Journey, row: str) -> Iterator[Question]:
    writers = sorted({writer.writer for writer in trace.writers})
    if len(writers) > 1 and len(journey.becomes) == 1 and journey.writers[0] >= 0:
        choices = tuple(f"writer {number}" for number in writers)
        because = (
            "Its partition or bucket decides: rows of one partition or bucket go to one writer."
        )
        yield Question(
            "writer", f"Which writer gets {row}?", choices, f"writer {journey.writers[0]}", because
        )
