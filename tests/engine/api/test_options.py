"""Options are plain texts whose words decide; an unknown word is refused with the valid ones."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from rowmerge_nb import RowMergeError
from rowmerge_nb.base.choices import CHOSEN_RULES, Dialect, Flow, TraceLevel
from rowmerge_nb.engine.api.statement_options import STATEMENT_OPTIONS, Options
from rowmerge_nb.notebook.cell_options import parse_line

WORDS = {"flow": Flow, "duplicates": CHOSEN_RULES, "dialect": Dialect, "trace": TraceLevel}


@pytest.mark.parametrize("name", WORDS)
def test_a_plain_text_is_accepted_and_compared(name: str) -> None:
    for word in WORDS[name]:
        chosen = getattr(Options().changed(**{name: word.value}), name)
        assert chosen is word
        assert (chosen, f"{chosen}") == (word.value, word.value)


@pytest.mark.parametrize("name", WORDS)
def test_an_unknown_word_is_refused_with_the_valid_ones(name: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        Options().changed(**{name: "none"})
    assert (caught.value.code, caught.value.message) == (
        "INVALID_ARGUMENTS",
        f"{name} = 'none' is not possible",
    )
    assert caught.value.hint == f"There are: {', '.join(WORDS[name])}."


def test_every_option_has_a_meaning_and_a_check() -> None:
    unchecked = [
        o.keyword
        for o in STATEMENT_OPTIONS.values()
        if not (o.meaning and (o.choices or o.expected or o.convert))
    ]
    assert unchecked == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("dry-run", "Did you mean 'dry_run'?"),
        ("chooser", f"There are: {', '.join(STATEMENT_OPTIONS)}."),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one_or_all(name: str, hint: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        Options().changed(**{name: None})
    assert (caught.value.code, caught.value.message) == (
        "INVALID_ARGUMENTS",
        f"There is no option '{name}'",
    )
    assert caught.value.hint == hint


def test_an_error_of_progress_is_reported_once_and_later_steps_are_skipped() -> None:
    told: list[str] = []

    def progress(step: str) -> None:
        told.append(step)
        raise ValueError("no place to draw")

    options = Options().changed(progress=progress)
    with pytest.warns(
        RuntimeWarning, match=r"at step 'parse'.*ValueError: no place to draw"
    ) as warned:
        options.step("parse")
    # Options derived from these have it as well.
    options.changed(trace="off").step("commit")
    assert len(warned) == 1
    assert told == ["parse"]


def test_an_error_of_progress_ends_nothing_even_if_warnings_are_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Options().changed(progress=lambda _: 1 // 0).step("commit")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("why", ""), ("why", " "), ("why", True), ("why", "id = '\ud800'")),
        *(
            ("dry_run", ""),
            ("dry_run", 0),
            ("dry_run", "False"),
            ("rehearse", "no"),
            ("rehearse", 1),
        ),
        *(("progress", 5), ("namespace", 5), ("rules_off", [[]]), ("rules_off", 5)),
        *(
            ("record", ""),
            ("record", "\ud800"),
            ("record", 5),
            ("record_bytes", 0),
            ("record_every", True),
        ),
        *(
            ("verify", "oracle"),
            ("near", -1),
            ("near", "many"),
            ("check", 1),
            ("parameters", "a"),
            ("fault", 5),
        ),
    ],
)
def test_values_of_a_wrong_type_are_refused(name: str, value: Any) -> None:
    with pytest.raises(RowMergeError) as caught:
        Options().changed(**{name: value})
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("word", "paradigm"),
    [
        ("delete+insert", "DELETE_ROW_AND_INSERT_ROW"),
        ("Delete-and-Insert", "DELETE_ROW_AND_INSERT_ROW"),
        ("delete_row_and_insert_row", "DELETE_ROW_AND_INSERT_ROW"),
        ("delete row and insert row", "DELETE_ROW_AND_INSERT_ROW"),
        ("change-columns", "CHANGE_ONLY_UPDATED_COLUMNS"),
        ("change-only-updated-columns", "CHANGE_ONLY_UPDATED_COLUMNS"),
    ],
)
def test_a_paradigm_has_short_spellings(word, paradigm):
    assert str(Options().changed(paradigm=word).paradigm) == paradigm
    line = parse_line(f'--paradigm "{word}" SELECT 1')
    assert (line.values["paradigm"], line.rest) == (paradigm, "SELECT 1")


@pytest.mark.parametrize("word", ["delete", "insert", "columns+rows", "+"])
def test_a_word_that_spells_no_paradigm_is_refused(word):
    with pytest.raises(RowMergeError, match="DELETE_ROW_AND_INSERT_ROW"):
        Options().changed(paradigm=word)
