"""A quick check whether unmatched rows may have near keys, which decides whether small statements
run a search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.engine.observers.near.normal_forms import LETTERS, normal_form
from rowmerge_nb.engine.observers.near.on import TEXT, key_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rowmerge_nb.engine.observers.near.on import On
    from rowmerge_nb.engine.observers.near.search import SideRows
    from rowmerge_nb.sql.typed.expressions import Typed

MOST_LETTERS: Final = 20_000
"""Maximum characters of both sides; above it, a search is faster."""
_BETWEEN, _NULL = "\x00", "\x02"


def may_be_near(on: On, source: SideRows, target: SideRows) -> bool:
    """Return whether an unmatched source row equals a target key in normal form, or up to one
    inserted or deleted letter.
    """
    assert source.matched is not None
    unmatched = source.columns.filter(pa.array(~source.matched))
    sides = [
        (unmatched, [key.source for key in on.keys]),
        (target.columns, [key.target for key in on.keys]),
    ]
    forms = [_forms(rows, trees) for rows, trees in sides]
    if pc.any(pc.is_in(forms[0], value_set=forms[1])).as_py():
        return True
    texts = [
        [_texts(rows, tree) for tree in trees if tree.type.base in TEXT] for rows, trees in sides
    ]
    if sum(sum(map(len, some)) for side in texts for some in side) > MOST_LETTERS:
        return True
    return any(
        not _shortened(one).isdisjoint(_shortened(other)) for one, other in zip(*texts, strict=True)
    )


def _forms(rows: pa.RecordBatch, trees: Sequence[Typed]) -> pa.Array:
    forms = []
    for tree in trees:
        key = key_values(tree, rows)
        values = key.values if key.clocks is None else key.clocks
        forms.append(normal_form(values) if tree.type.base in TEXT else values)
    if len(forms) == 1:
        return forms[0]
    texts = [form if pa.types.is_string(form.type) else form.cast(pa.string()) for form in forms]
    return pc.binary_join_element_wise(
        *texts, _BETWEEN, null_handling="replace", null_replacement=_NULL
    )


def _texts(rows: pa.RecordBatch, tree: Typed) -> list[str]:
    low, high = LETTERS
    texts = key_values(tree, rows).values
    lengths = pc.utf8_length(texts)
    candidates: list[str] = texts.filter(
        pc.and_(pc.greater_equal(lengths, low), pc.less_equal(lengths, high))
    ).to_pylist()
    return candidates


def _shortened(texts: Iterable[str]) -> set[str]:
    """Return texts, and each without one of its letters.

    >>> sorted(_shortened(["a1b"]))
    ['1b', 'a1', 'a1b']
    """
    return {
        text[:at] + text[at + 1 :]
        for text in texts
        for at, letter in enumerate(text)
        if letter.isalpha()
    } | set(texts)
