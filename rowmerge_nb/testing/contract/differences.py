"""What is wrong with the rows of a table: seen beside expected, row by row and in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rowmerge_nb.base.words import plural
from rowmerge_nb.testing.contract.sample_values import identity

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from rowmerge_nb.testing.contract.contract_statement import Row


class Kind(StrEnum):
    """In what way a row is not as it should be."""

    MISSING = "a row is missing"
    DOUBLED = "a row is there too often"
    NOT_DELETED = "a row was to be deleted and is there"
    NOBODYS = "a row is there that nobody asked for"
    VALUES = "a row has other values"


@dataclass(frozen=True)
class Difference:
    """One row, by its first column, that is not as it should be.

    Args:
        kind: in what way.
        sentence: that, with the row's values.
        expected: the rows of this key that should be there.
        seen: the rows of this key that are there.
    """

    kind: Kind
    sentence: str
    expected: tuple[Row, ...]
    seen: tuple[Row, ...]


class Cause(StrEnum):
    """What all wrong rows of a table may have in common."""

    NO_FRAGMENT = "rows were stored without a fragment"
    EMPTY = "the table has no rows"
    AS_BEFORE = "the table is as it was"


class RowsDiffer(AssertionError):
    """A table has not the rows that it should have.

    Args:
        found: the rows that are wrong, one at least.
        columns: the names of the table's columns.
        causes: what they have in common, each with a sentence, the likeliest first.
        about: what the rows were looked at for; ``""`` if that is plain.
    """

    def __init__(
        self, found: Sequence[Difference], columns: Sequence[str], causes: Mapping[Cause, str] | None = None, about: str = ""
    ) -> None:
        self.differences, self.columns, self.causes = tuple(found), tuple(columns), dict(causes or {})
        lines = [*filter(None, [about]), *self.causes.values(), *(difference.sentence for difference in found)]
        super().__init__("\n".join(lines))

    @property
    def kind(self) -> object:
        """What it has in common with others that the same bug makes."""
        return next(iter(self.causes), None) or frozenset(difference.kind for difference in self.differences)


def must_be(what: str, seen: object, expected: object) -> None:
    """Fail unless two values are equal, and show both."""
    __tracebackhide__ = True
    if seen != expected:
        raise AssertionError(f"{what}: expected {expected!r}, seen {seen!r}")


def must_be_same(what: str, seen: Sequence[Any], expected: Sequence[Any]) -> None:
    """Fail unless values are the same in the same order, by `identity`, and show both."""
    __tracebackhide__ = True
    if [*map(identity, seen)] != [*map(identity, expected)]:
        raise AssertionError(f"{what}: expected {[*expected]!r}, seen {[*seen]!r}")


def differences(
    expected: Sequence[Row], seen: Sequence[Row], columns: Sequence[str], before: Sequence[Row] = ()
) -> list[Difference]:
    """Compare rows, in any order; the first column says which are the same.

    Args:
        expected: the rows that should be there.
        seen: the rows that are there.
        columns: the names of the columns.
        before: the rows before the statement.

    >>> [d.sentence for d in differences([(1, "a"), (3, "c")], [(1, "b"), (2, "x"), (3, "c"), (3, "c")], ("id", "v"), [(2, "x")])]
    ["row 1: v is 'b' and must be 'a'", 'row 2 was to be deleted and is there', 'row 3 is there twice and must be there once']
    """
    wanted, there, known = (_by_key(rows) for rows in (expected, seen, before))
    keys = sorted(
        {key: row[0] for rows in (wanted, there) for key, (row, *_) in rows.items()}.items(),
        key=lambda pair: (not isinstance(pair[1], int), pair[1] if isinstance(pair[1], int) else repr(pair[1])),
    )
    return [
        difference
        for key, value in keys
        for difference in _of_key(value, wanted.get(key, []), there.get(key, []), columns, known=key in known)
    ]


def same_rows(one: Sequence[Row], other: Sequence[Row]) -> bool:
    """Return whether rows are the same, each as often, in any order.

    >>> same_rows([(1, 0.0), (2, None)], [(2, None), (1, 0.0)]), same_rows([(1, 0.0)], [(1, -0.0)])
    (True, False)
    """
    return Counter(map(identity, one)) == Counter(map(identity, other))


def _by_key(rows: Sequence[Row]) -> dict[Hashable, list[Row]]:
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        groups.setdefault(identity(row[0]), []).append(row)
    return groups


def _of_key(key: Any, wanted: list[Row], there: list[Row], columns: Sequence[str], *, known: bool) -> Iterator[Difference]:
    if same_rows(wanted, there):
        return
    if not wanted and known:
        kind, sentence = Kind.NOT_DELETED, f"row {key!r} was to be deleted and is there"
    elif not wanted and all(value is None for row in there for value in row):
        kind, sentence = Kind.NOBODYS, f"{plural(len(there), 'row')} of NULLs that nobody asked for"
    elif not wanted:
        kind, sentence = Kind.NOBODYS, f"row {there[0]!r} is there, and nobody asked for it"
    elif not there:
        what = "is missing" if known else "was to be inserted and is not there"
        kind, sentence = Kind.MISSING, f"row {key!r} {what}: {wanted[0]!r}"
    elif len(there) > len(wanted):
        kind, sentence = Kind.DOUBLED, f"row {key!r} is there {_times(len(there))} and must be there {_times(len(wanted))}"
    elif len(there) < len(wanted):
        kind, sentence = Kind.MISSING, f"row {key!r} is there {_times(len(there))} and must be there {_times(len(wanted))}"
    else:
        row, right = _unequal_pair(there, wanted)
        wrong = [
            f"{name} is {value!r} and must be {other!r}"
            for name, value, other in zip(columns, row, right, strict=True)
            if identity(value) != identity(other)
        ]
        kind, sentence = Kind.VALUES, f"row {key!r}: {', '.join(wrong)}"
    yield Difference(kind, sentence, tuple(wanted), tuple(there))


def _unequal_pair(there: Sequence[Row], wanted: Sequence[Row]) -> tuple[Row, Row]:
    """Return a row that should not be there, and one that is missing; equally many rows are not all the same."""
    rest = [*wanted]
    strange = []
    for row in there:
        match = next((index for index, other in enumerate(rest) if identity(other) == identity(row)), None)
        if match is None:
            strange.append(row)
        else:
            del rest[match]
    return strange[0], rest[0]


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
