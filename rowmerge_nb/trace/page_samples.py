"""Recorded rows of a statement as Arrow pages."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from rowmerge_nb.spi.page import PageLayout


class Answer(StrEnum):
    """The result of a condition for a row: the letters of `PageSample.truths`."""

    TRUE = "t"
    FALSE = "f"
    UNKNOWN = "u"
    FAILED = "e"
    NOT_KNOWN = "?"


@dataclass(frozen=True)
class Placement:
    """How an exchange assigned sampled rows to writers: the row's number modulo ``writers``, which
    includes idle ones.

    Args:
        numbers: per row of `PageSample.after` the engine's hash, the connector's bucket, or, for an
            even spread, the number of the run.

    >>> Placement(2, (-3, 4)).chosen
    (1, 0)
    """

    writers: int
    numbers: tuple[int, ...]

    @property
    def chosen(self) -> tuple[int, ...]:
        return tuple(number % self.writers for number in self.numbers)


@dataclass(frozen=True)
class PageSample:
    """Rows of the page before ``transform_page``, and their output rows.

    Args:
        before: sampled rows, all channels, in the layout of the connector documents.
        after: the output rows, grouped by input row, the DELETE half first.
        produced: output rows per row of ``before`` (0, 1 or 2).
        writers: the writer (older flow: split) per row of ``after``; -1 if unknown.
        witness: both sides' values per row of ``before``: structs ``source`` and ``target`` (NULL
            if unmatched), int64 ``source_row`` (position in the source). None if rows do not carry
            it.
        transformed: False without ``transform_page`` (DELETE and the older flow): ``before`` equals
            ``after``.
        truths: a text channel per condition (``on`` or the clause's number), with a letter for each
            part in the order of `Term.walk`: ``t`` true, ``f`` false, ``u`` unknown, ``e`` failed,
            ``?`` not known. NULL if not evaluated for the row. None without a witness.
    """

    before: pa.RecordBatch
    after: pa.RecordBatch
    produced: tuple[int, ...]
    writers: tuple[int, ...]
    witness: pa.RecordBatch | None
    total_before: int
    total_after: int
    complete: bool
    layout: PageLayout
    transformed: bool = True
    truths: pa.RecordBatch | None = None
    tasks: tuple[int, ...] = ()
    placement: Placement | None = None

    @property
    def row_ids(self) -> pa.Array:
        return self.before.column(
            self.layout.before.row_id if self.transformed else self.layout.after.row_id
        )


@dataclass(frozen=True)
class AskedRows:
    """Joined rows that the user requested by a condition, however large the statement is.

    Args:
        pages: both sides' values; None if there are none or they are not known.
    """

    condition: str
    pages: PageSample | None = None
    more: bool = False
    problem: str = ""


@dataclass(frozen=True)
class StoredSample:
    """First rows of one sink's pages.

    In the older flow, ``writer`` is the split, and the page has the row ids and the new values of
    an UPDATE.
    """

    writer: int
    page: pa.RecordBatch
    total: int
    layout: PageLayout | None = None
