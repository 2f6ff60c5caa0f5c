"""The join of target and source on pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowmerge_nb.base.ordering import other_rows
from rowmerge_nb.engine.tasks.arrow import GATHERED_BYTES, GATHERED_ROWS
from rowmerge_nb.engine.tasks.join_keys import JoinKeys
from rowmerge_nb.engine.tasks.joined_rows import NO_ROW, JoinedRows, JoinedSide
from rowmerge_nb.engine.tasks.key_index import SetsIndex
from rowmerge_nb.engine.tasks.range_index import RangeIndex, RangeKeys
from rowmerge_nb.engine.tasks.scan import POSITION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.page_program import PageEvaluator, PageExpression
    from rowmerge_nb.spi.page import Page


@dataclass(frozen=True)
class KeyJoin:
    """The join condition.

    Args:
        keys: sets of target keys and source keys. Rows match if the keys of one set are equal;
            without sets, all rows match.
        full: retain target rows without a source row.
    """

    keys: tuple[tuple[JoinKeys, JoinKeys], ...]
    rest: PageExpression | None
    full: bool
    ranges: tuple[RangeKeys, RangeKeys] | None = None

    def joined(self, target: Page, source: Page, evaluator: PageEvaluator) -> Iterator[JoinedRows]:
        """Join two pages in the order of the source; unmatched target rows come last, if `full`.

        All matches of a target row are in one piece.
        """
        pieces = self._pairs(target, source, evaluator)
        rows, partners = next(pieces)
        if next(pieces, None) is not None:
            yield from self.by_target([target], target.schema, source, evaluator)
            return
        if self.rest is not None and len(rows):
            pairs = JoinedRows(len(rows), (JoinedSide(target, partners), JoinedSide(source, rows)))
            true = evaluator.rows_where(self.rest, pairs.page(sorted(self.rest.reads)), pairs)
            rows, partners = rows[true], partners[true]
        unmatched_source = other_rows(source.num_rows, rows)
        order = np.argsort(np.concatenate([rows, unmatched_source]), kind="stable")
        rows = np.concatenate([rows, unmatched_source])[order]
        partners = np.concatenate([partners, np.full(len(unmatched_source), NO_ROW)])[order]
        if self.full:
            unmatched = other_rows(target.num_rows, partners[partners != NO_ROW])
            rows = np.concatenate([rows, np.full(len(unmatched), NO_ROW)])
            partners = np.concatenate([partners, unmatched])
        if len(rows):
            yield JoinedRows(len(rows), (JoinedSide(target, partners), JoinedSide(source, rows)))

    def by_target(
        self, pages: Iterable[Page], schema: pa.Schema, source: Page, evaluator: PageEvaluator
    ) -> Iterator[JoinedRows]:
        """Join target pages with the source; unmatched source rows come last."""
        matched = np.zeros(source.num_rows, bool)
        for rows in self.matches(pages, source, self.index(source, evaluator), evaluator):
            matched[rows.partners] = True
            yield rows
        unmatched = np.flatnonzero(~matched)
        if len(unmatched):
            yield without_target(schema, source, unmatched)

    def index(self, source: Page, evaluator: PageEvaluator) -> SetsIndex | RangeIndex:
        if self.ranges is not None:
            return RangeIndex(self.ranges[1].values(source, evaluator))
        return SetsIndex([keys.values(source, evaluator) for _, keys in self.keys])

    def matches(
        self,
        pages: Iterable[Page],
        source: Page,
        index: SetsIndex | RangeIndex,
        evaluator: PageEvaluator,
    ) -> Iterator[JoinedRows]:
        """Join target pages with the source, without unmatched source rows."""
        waiting: list[tuple[Page, npt.NDArray[np.int64]]] = []
        count = size = 0
        for page in pages:
            for part, rows in self._with_partners(page, index, evaluator):
                waiting.append((part, rows))
                count, size = count + len(rows), size + part.nbytes
                if count >= GATHERED_ROWS or size >= GATHERED_BYTES:
                    yield from self._checked(waiting, source, evaluator)
                    waiting, count, size = [], 0, 0
        if waiting:
            yield from self._checked(waiting, source, evaluator)

    def _with_partners(
        self, page: Page, index: SetsIndex | RangeIndex, evaluator: PageEvaluator
    ) -> Iterator[tuple[Page, npt.NDArray[np.int64]]]:
        is_matched = np.zeros(page.num_rows, bool)
        for partners, rows in self._partners_of(page, index, evaluator):
            is_matched[partners] = True
            if len(rows):
                whole = len(rows) == page.num_rows and bool(
                    (partners == np.arange(page.num_rows)).all()
                )
                yield page if whole else page.take(pa.array(partners)), rows
        if self.full and not is_matched.all():
            unmatched = np.flatnonzero(~is_matched)
            yield page.take(pa.array(unmatched)), np.full(len(unmatched), NO_ROW)

    def _partners_of(
        self, page: Page, index: SetsIndex | RangeIndex, evaluator: PageEvaluator
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        if isinstance(index, SetsIndex):
            return index.matches([keys.values(page, evaluator) for keys, _ in self.keys])
        assert self.ranges is not None
        return index.matches(self.ranges[0].values(page, evaluator))

    def _checked(
        self,
        parts: Sequence[tuple[Page, npt.NDArray[np.int64]]],
        source: Page,
        evaluator: PageEvaluator,
    ) -> Iterator[JoinedRows]:
        target = pa.concat_batches([page for page, _ in parts])
        rows = np.concatenate([rows for _, rows in parts])
        pairs = JoinedRows(len(rows), (JoinedSide(target), JoinedSide(source, rows)))
        if self.rest is not None:
            matched = np.flatnonzero(rows != NO_ROW)
            matched_pairs = pairs.picked(matched)
            true = matched[
                evaluator.rows_where(
                    self.rest, matched_pairs.page(sorted(self.rest.reads)), matched_pairs
                )
            ]
            pairs = self._with_unmatched(pairs, true) if self.full else pairs.picked(true)
        if pairs.count:
            yield pairs

    def _with_unmatched(self, pairs: JoinedRows, true: npt.NDArray[np.int64]) -> JoinedRows:
        """For a FULL join, retain target rows without a true pair, once and without a partner."""
        target, source = pairs.sides
        rows = source.rows
        assert rows is not None
        positions = target.page.column(POSITION).to_numpy()
        _, first = np.unique(positions, return_index=True)
        target_only = first[~np.isin(positions[first], positions[true])]
        retained = np.concatenate([true, target_only])
        partners = np.concatenate([rows[true], np.full(len(target_only), NO_ROW)])
        return JoinedRows(
            len(retained), (target.picked(retained), JoinedSide(source.page, partners))
        )

    def _pairs(
        self, target: Page, source: Page, evaluator: PageEvaluator
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        if self.ranges is not None:
            target_range, source_range = self.ranges
            rows_of = RangeIndex(target_range.values(target, evaluator))
            yield from rows_of.matches(source_range.values(source, evaluator))
            return
        if not self.keys:
            every = np.repeat(np.arange(source.num_rows), target.num_rows)
            yield every, np.tile(np.arange(target.num_rows), source.num_rows)
            return
        index = SetsIndex([keys.values(target, evaluator) for keys, _ in self.keys])
        yield from index.matches([keys.values(source, evaluator) for _, keys in self.keys])


def without_target(schema: pa.Schema, source: Page, rows: npt.NDArray[np.int64]) -> JoinedRows:
    """Build joined rows of unmatched source rows, with NULL in all target channels."""
    nothing = pa.RecordBatch.from_pylist([], schema=schema)
    return JoinedRows(
        len(rows), (JoinedSide(nothing, np.full(len(rows), NO_ROW)), JoinedSide(source, rows))
    )


def numbered(source: Page, first: int = 0) -> tuple[pa.Array, Page]:
    """Return the source's row numbers (a table's positions, or a count from `first`) and its other
    channels.
    """
    names = source.schema.names
    if POSITION in names:
        return source.column(POSITION), source.select([name for name in names if name != POSITION])
    return pa.array(np.arange(first, first + source.num_rows)), source
