"""Options are given as plain texts, are decided on by their words, and an unknown word is refused with those that there are."""

from __future__ import annotations

import pytest

from rowmerge_nb import RowMergeError
from rowmerge_nb.choices import Dialect, Flow, RepeatedMatches, TraceLevel
from rowmerge_nb.engine.options import Options

WORDS = {"flow": Flow, "duplicates": RepeatedMatches, "dialect": Dialect, "trace": TraceLevel}


@pytest.mark.parametrize("name", WORDS)
def test_a_plain_text_is_taken_and_compared(name: str) -> None:
    for word in WORDS[name]:
        chosen = getattr(Options().changed(**{name: word.value}), name)
        assert chosen is word
        assert (chosen, f"{chosen}") == (word.value, word.value)


@pytest.mark.parametrize("name", WORDS)
def test_an_unknown_word_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        Options().changed(**{name: "none"})
    assert (caught.value.code, caught.value.message) == ("INVALID_ARGUMENTS", f"{name} = 'none' is not possible")
    assert caught.value.hint == f"There are: {', '.join(WORDS[name])}."
