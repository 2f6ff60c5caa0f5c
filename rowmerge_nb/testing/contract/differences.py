"""Comparison of a table's rows with the expected ones, in words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowmerge_nb.base.words import plural
from rowmerge_nb.testing.contract.sample_values import identity
from rowmerge_nb.trace.cell_patterns import cell_patterns

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from rowmerge_nb.testing.contract.contract_statement import Row


class Kind(StrEnum):
    """How a row is wrong."""

    MISSING = "a row is missing"
    DOUBLED = "a row exists too often"
    NOT_DELETED = "a row should have been deleted but exists"
    UNEXPECTED = "an unexpected row exists"
    VALUES = "a row has other values"


@dataclass(frozen=True)
class DifferingKey:
    """The expected and actual rows of one key."""

    kind: Kind
    sentence: str
    expected: tuple[Row, ...]
    actual: tuple[Row, ...]

    @property
    def pair(self) -> tuple[tuple[Any, Any, bool], ...]:
        """The cells of the first row with other values: the actual value, the expected one, and
        whether they differ. Empty for other kinds.
        """
        if self.kind is not Kind.VALUES:
            return ()
        return tuple(
            (actual, expected, identity(actual) != identity(expected))
            for actual, expected in zip(*_unequal_pair(self.actual, self.expected), strict=True)
        )


class CommonCause(StrEnum):
    """What may explain all wrong rows of a table."""

    NO_FRAGMENT = "rows were stored without a fragment"
    EMPTY = "the table has no rows"
    AS_BEFORE = "the table is unchanged"


class RowsDiffer(AssertionError):
    """A table has other rows than expected.

    Args:
        causes: common causes of the differences, the likeliest first, each with its sentence.
        about: what the rows are, as the first line of the message.
        types: the Arrow types of the columns; with them, patterns of differing values are named.
    """

    def __init__(
        self,
        differing_keys: Sequence[DifferingKey],
        columns: Sequence[str],
        causes: Mapping[CommonCause, str] | None = None,
        about: str = "",
        types: Sequence[pa.DataType] = (),
    ) -> None:
        self.differences = tuple(differing_keys)
        self.columns = tuple(columns)
        self.causes = dict(causes or {})
        lines = [
            *filter(None, [about]),
            *self.causes.values(),
            *_patterns(differing_keys, columns, types),
            *(difference.sentence for difference in differing_keys),
        ]
        super().__init__("\n".join(lines))

    @property
    def kind(self) -> object:
        """What failures by the same bug have in common."""
        return next(iter(self.causes), None) or frozenset(
            difference.kind for difference in self.differences
        )


def _patterns(
    differing: Sequence[DifferingKey], columns: Sequence[str], types: Sequence[pa.DataType]
) -> tuple[str, ...]:
    pairs = [pair for difference in differing if (pair := difference.pair)]
    if not pairs or not types:
        return ()
    try:
        actual, expected = (
            pa.table(
                [
                    pa.array([pair[index][side] for pair in pairs], arrow_type)
                    for index, arrow_type in enumerate(types)
                ],
                list(columns),
            )
            for side in (0, 1)
        )
        return cell_patterns(expected, actual)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # A broken connector may return values of any type.
        return ()


def must_be(what: str, actual: object, expected: object) -> None:
    """Fail with both values unless they are equal."""
    __tracebackhide__ = True
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, seen {actual!r}")


def must_be_same(what: str, actual: Sequence[Any], expected: Sequence[Any]) -> None:
    """Fail with both lists unless their values are the same by `identity`, in order."""
    __tracebackhide__ = True
    if [*map(identity, actual)] != [*map(identity, expected)]:
        raise AssertionError(f"{what}: expected {[*expected]!r}, seen {[*actual]!r}")


def differences(
    expected: Sequence[Row],
    actual: Sequence[Row],
    columns: Sequence[str],
    before: Sequence[Row] = (),
) -> list[DifferingKey]:
    """Compare rows in any order, matched by their first column."""
    expected_by_key, seen_by_key, before_by_key = (
        _by_key(rows) for rows in (expected, actual, before)
    )
    keys = sorted(
        {
            key: row[0]
            for rows in (expected_by_key, seen_by_key)
            for key, (row, *_) in rows.items()
        }.items(),
        key=lambda pair: (
            not isinstance(pair[1], int),
            pair[1] if isinstance(pair[1], int) else repr(pair[1]),
        ),
    )
    return [
        difference
        for key, value in keys
        for difference in _of_key(
            value,
            expected_by_key.get(key, []),
            seen_by_key.get(key, []),
            columns,
            existed=key in before_by_key,
        )
    ]


def same_rows(one: Sequence[Row], other: Sequence[Row]) -> bool:
    """Return whether rows are the same by `identity`, in any order.

    >>> same_rows([(1, 0.0), (2, None)], [(2, None), (1, 0.0)]), same_rows([(1, 0.0)], [(1, -0.0)])
    (True, False)
    """
    return Counter(map(identity, one)) == Counter(map(identity, other))


def _by_key(rows: Sequence[Row]) -> dict[Hashable, list[Row]]:
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        groups.setdefault(identity(row[0]), []).append(row)
    return groups


def _of_key(
    key: Any,
    expected_rows: list[Row],
    seen_rows: list[Row],
    columns: Sequence[str],
    *,
    existed: bool,
) -> Iterator[DifferingKey]:
    if same_rows(expected_rows, seen_rows):
        return
    if not expected_rows and existed:
        row_kind, sentence = Kind.NOT_DELETED, f"row {key!r} should have been deleted but exists"
    elif not expected_rows and all(value is None for row in seen_rows for value in row):
        row_kind = Kind.UNEXPECTED
        sentence = f"unexpected: {plural(len(seen_rows), 'row')} of NULLs"
    elif not expected_rows:
        row_kind = Kind.UNEXPECTED
        sentence = f"unexpected row {seen_rows[0]!r}"
    elif not seen_rows:
        what = "is missing" if existed else "should have been inserted but is missing"
        row_kind, sentence = Kind.MISSING, f"row {key!r} {what}: {expected_rows[0]!r}"
    elif len(seen_rows) != len(expected_rows):
        row_kind = Kind.DOUBLED if len(seen_rows) > len(expected_rows) else Kind.MISSING
        sentence = (
            f"row {key!r} exists {_times(len(seen_rows))} and must exist"
            f" {_times(len(expected_rows))}"
        )
    else:
        pair = _unequal_pair(seen_rows, expected_rows)
        cells = [
            f"{name} is {actual!r} and must be {expected!r}"
            for name, actual, expected in zip(columns, *pair, strict=True)
            if identity(actual) != identity(expected)
        ]
        row_kind, sentence = Kind.VALUES, f"row {key!r}: {', '.join(cells)}"
    yield DifferingKey(row_kind, sentence, tuple(expected_rows), tuple(seen_rows))


def _unequal_pair(seen_rows: Sequence[Row], expected_rows: Sequence[Row]) -> tuple[Row, Row]:
    """Return the first row of each side that has no equal on the other."""
    expected_alone, seen_alone = [*expected_rows], []
    for row in seen_rows:
        match = next(
            (
                index
                for index, other in enumerate(expected_alone)
                if identity(other) == identity(row)
            ),
            None,
        )
        if match is None:
            seen_alone.append(row)
        else:
            del expected_alone[match]
    return seen_alone[0], expected_alone[0]


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
