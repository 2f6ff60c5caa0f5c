"""A notice about source rows that were probably meant to match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rowmerge_nb.base.words import plural
from rowmerge_nb.report.words.near_sentences import is_likely_mistake, near_sentence

if TYPE_CHECKING:
    from rowmerge_nb.trace.trace import Trace

MOST_SENTENCES: Final = 5


@dataclass(frozen=True)
class NearNotice:
    sentences: tuple[str, ...]


def build_near(trace: Trace) -> NearNotice | None:
    near = trace.samples.near_misses
    if near is None or near.source is None:
        return None
    rows = [row for row in near.source.told if is_likely_mistake(row)]
    if not rows:
        return None
    sentences = [near_sentence(row, near.terms, "source") for row in rows[:MOST_SENTENCES]]
    if len(rows) > MOST_SENTENCES:
        rest = plural(len(rows) - MOST_SENTENCES, "more row")
        sentences.append(
            f"{rest} of the source {'is' if len(rows) == MOST_SENTENCES + 1 else 'are'} near a key"
            " of the target: result.near() lists them."
        )
    return NearNotice(tuple(sentences))
