"""Sentences about what the wrong changes of a statement have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from rowmerge_nb.base.ordering import ascending
from rowmerge_nb.base.words import number, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]

INSERTS, UPDATES, DELETES = 0, 1, 2
_CLASSES: Final = {INSERTS: "inserts", UPDATES: "updates", DELETES: "deletes"}


@dataclass(frozen=True)
class Regions:
    """Where a store puts rows: its partitions or buckets.

    Args:
        describe: returns the words for the region of a change, such as ``bucket 3``.
    """

    codes: Numbers
    describe: Callable[[int], str]


@dataclass(frozen=True)
class WrongChanges:
    """The changes that sinks received, one per row of their pages, and what became of them.

    Args:
        classes: INSERTS, UPDATES or DELETES; both halves of an update are UPDATES.
        is_new: the change adds a row.
        is_old: the change removes a row.
        absent: its new row is not in the store, or only its old one.
        altered: its new row has other values in the store.
        doubled: its new row is in the store too often.
        survivors: its old row is still in the store.
        reborn: its new row has the key of a row that the statement deletes.
        untouched: the number of rows that the statement does not touch.
        lost_rows: the indices before the statement of untouched rows that are gone.
        surviving_rows: the indices before the statement of the rows of `survivors`.
        repeated: the number of untouched rows that are there more often than before.
        strange: the number of further rows that are neither new nor old, nor paired.
    """

    method: str
    classes: Numbers
    is_new: Mask
    is_old: Mask
    absent: Mask
    altered: Mask
    doubled: Mask
    survivors: Mask
    reborn: Mask
    writers: Numbers
    calls: Numbers
    rows: Numbers
    regions: tuple[Regions, ...] = ()
    untouched: int = 0
    lost_rows: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    surviving_rows: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    repeated: int = 0
    strange: int = 0

    @property
    def wrong(self) -> Mask:
        """The changes that the store does not hold as it must."""
        return self.absent | self.altered | self.doubled | self.survivors

    @property
    def only_changes(self) -> bool:
        return not (len(self.lost_rows) or self.repeated or self.strange)


def change_patterns(changes: WrongChanges) -> tuple[str, ...]:
    """Return a sentence for each pattern of the wrong changes, and of other wrong rows.

    >>> no, yes = np.zeros(3, bool), np.ones(3, bool)
    >>> print(*change_patterns(WrongChanges("append_page", np.zeros(3, int), yes, no, np.array([False, False, True]),
    ...     no, no, no, no, np.zeros(3, int), np.array([1, 1, 2]), np.array([0, 1, 0]))))
    The wrong change is all of the last page of writer 0, and no other change is wrong.
    """
    others = tuple(_of_others(changes))
    if _took_other_row_ids(changes):
        return others
    return (*others, *_of_kinds(changes), *_of_places(changes))


def _took_other_row_ids(changes: WrongChanges) -> bool:
    return 0 < len(changes.lost_rows) == len(changes.surviving_rows)


def _of_others(changes: WrongChanges) -> Iterator[str]:
    count = len(changes.lost_rows)
    if _took_other_row_ids(changes):
        yield (
            f"{plural(count, 'untouched row')} {'is' if count == 1 else 'are'} gone, and the same"
            " number of changed rows still exist: row ids were mistaken for other"
            f" rows{_step(changes)}."
        )
    elif count and count == changes.untouched:
        yield (
            "All rows that the statement does not touch are gone, as if its new rows had replaced"
            " the table."
        )
    missing = count or changes.absent.any() or changes.altered.any()
    if changes.repeated and not missing and not changes.strange:
        yield (
            "The additional rows were in the table before, as if rows of an earlier statement were"
            " stored again."
        )
    if changes.strange and not missing and not changes.repeated:
        yield (
            "The additional rows are neither from this statement nor were they in the"
            " table before, as if a sink had kept rows of an earlier statement."
        )


def _step(changes: WrongChanges) -> str:
    """Return how far the rows are from those that the row ids name, if it is one distance."""
    apart = ascending(np.sort(changes.lost_rows) - np.sort(changes.surviving_rows))
    if len(apart) != 1:
        return ""
    step = int(apart[0])
    return f", each {plural(abs(step), 'row')} {'further on' if step > 0 else 'further back'}"


def _of_kinds(changes: WrongChanges) -> Iterator[str]:
    if not changes.wrong.any():
        return
    is_plain = not changes.altered.any() and not changes.doubled.any()
    if (
        is_plain
        and changes.only_changes
        and np.array_equal(changes.absent, changes.is_new)
        and np.array_equal(changes.survivors, changes.is_old)
    ):
        yield "The table is unchanged by the statement."
        return
    if (
        is_plain
        and changes.only_changes
        and not changes.survivors.any()
        and changes.reborn.any()
        and np.array_equal(changes.absent, changes.reborn)
    ):
        yield (
            "The missing rows are the new rows with a key that the statement also deletes, as if"
            " deletes were applied after inserts, or UPDATE_INSERT (operation 4) were ignored."
        )
        return
    wrong_classes = ascending(changes.classes[changes.wrong])
    if len(wrong_classes) > 1:
        if (
            is_plain
            and not changes.absent.any()
            and np.array_equal(changes.survivors, changes.is_old)
        ):
            yield "All rows that the statement deletes or replaces still exist."
        elif (
            is_plain
            and not changes.survivors.any()
            and np.array_equal(changes.absent, changes.is_new)
        ):
            yield "The table has no new row of the statement."
        return
    of_class = changes.classes == wrong_classes[0]
    name = _CLASSES[int(wrong_classes[0])]
    rows = changes.is_old if name == "deletes" else changes.is_new
    wrong = int((changes.wrong & of_class & rows).sum()) or int((changes.wrong & of_class).sum())
    total = int((of_class & rows).sum())
    detail = _fate(changes, of_class, name)
    count = f"({number(wrong)} of {number(total)})"
    why = f": {detail}" if detail else ""
    if not of_class.all():
        yield f"Only {name} are wrong {count}{why}."
    elif detail and wrong > 1:
        yield f"The {name} are wrong {count}{why}."


def _fate(changes: WrongChanges, of_class: Mask, name: str) -> str:
    absent, survives, doubled, altered = (
        bool((mask & of_class).any())
        for mask in (changes.absent, changes.survivors, changes.doubled, changes.altered)
    )
    if altered or not changes.only_changes:
        return ""
    if doubled:
        return "" if absent or survives else "their new rows exist too often"
    if name == "deletes":
        return "their rows still exist"
    if name == "inserts":
        return "their rows are missing"
    if absent and survives:
        return "their old rows exist instead of the new ones"
    return (
        "their old rows are gone, and the new ones are missing"
        if absent
        else "their old rows still exist beside the new ones"
    )


def _of_places(changes: WrongChanges) -> Iterator[str]:
    wrong = changes.wrong
    if not wrong.any():
        return
    classes = ascending(changes.classes[wrong])
    among = np.isin(changes.classes, classes)
    noun = "" if among.all() else " and ".join(_CLASSES[one] for one in classes.tolist())
    for side, name in ((changes.is_old, "new rows"), (changes.is_new, "old rows")):
        if not (wrong & side).any() and (among & side & ~wrong).any():
            among, noun = among & ~side, f"{name} of {noun}" if noun else name
    if wrong[among].all():
        return
    words = next(_places(changes, among, f"all {noun} of" if noun else "all of"), "")
    if words:
        count = int(wrong.sum())
        are = "change is" if count == 1 else f"{number(count)} changes are"
        yield f"The wrong {are} {words}, and no other change is wrong."


def _places(changes: WrongChanges, among: Mask, all_of: str) -> Iterator[str]:
    wrong = changes.wrong
    is_known = changes.writers >= 0
    if is_known.all() and (numbers := _groups(changes.writers, wrong, among)) is not None:
        yield f"{all_of} {'writer' if len(numbers) == 1 else 'writers'} {_list(numbers)}"
    for regions in changes.regions:
        # A region of one row says nothing.
        is_shared = len(ascending(regions.codes[among])) * 3 <= among.sum()
        groups = _groups(regions.codes, wrong, among) if is_shared else None
        if groups is not None and len(groups) == 1:
            yield f"{all_of} {regions.describe(int(np.flatnonzero(wrong)[0]))}"
    if not is_known.all() or (changes.calls < 0).any():
        return
    pages = changes.writers * (int(changes.calls.max()) + 1) + changes.calls
    last_calls = np.zeros(int(changes.writers.max()) + 1, np.int64)
    np.maximum.at(last_calls, changes.writers, changes.calls)
    is_last = (changes.calls == last_calls[changes.writers]) & (changes.calls > 1)
    numbers = ascending(changes.writers[wrong]).tolist()
    if np.array_equal(wrong, is_last & among & np.isin(changes.writers, numbers)):
        yield f"{all_of} the last page of {'writer' if len(numbers) == 1 else 'writers'} {_list(numbers)}"
    if (groups := _groups(pages, wrong, among)) is not None and len(groups) == 1:
        first = int(np.flatnonzero(wrong)[0])
        yield (
            f"{all_of} {changes.method}, call {number(int(changes.calls[first]))} of writer"
            f" {changes.writers[first]}"
        )
    if len(ascending(pages)) == 1 and wrong.sum() == 1:
        # One wrong row of one page is no pattern.
        return
    sizes = np.zeros(int(pages.max()) + 1, np.int64)
    np.maximum.at(sizes, pages, changes.rows)
    if np.array_equal(wrong, among & (changes.rows == 0)):
        yield "the first row of each page"
    if np.array_equal(wrong, among & (changes.rows == sizes[pages])):
        yield "the last row of each page"


def _groups(codes: Numbers, wrong: Mask, among: Mask) -> list[int] | None:
    groups = ascending(codes[wrong])
    in_groups = among & np.isin(codes, groups)
    if not np.array_equal(in_groups, wrong) or len(groups) == len(ascending(codes[among])):
        return None
    numbers: list[int] = groups.tolist()
    return numbers


def _list(numbers: list[int]) -> str:
    first = ", ".join(map(str, numbers[:5]))
    return first if len(numbers) <= 5 else f"{first} and {plural(len(numbers) - 5, 'other')}"
