"""The join of target and source on pages: by equal keys, and by what else ON asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowmerge_nb.engine.tasks.arrow import GATHERED_BYTES, GATHERED_ROWS
from rowmerge_nb.engine.tasks.join_keys import JoinKeys
from rowmerge_nb.engine.tasks.joined_rows import NO_ROW, JoinedRows, Side
from rowmerge_nb.engine.tasks.key_index import SetsIndex
from rowmerge_nb.engine.tasks.scan import POSITION

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.page_program import PageEvaluator, PageExpression
    from rowmerge_nb.spi.page import Page


@dataclass(frozen=True)
class KeyJoin:
    """How the rows of both sides meet.

    Args:
        keys: sets of keys, each of the target and as many of the source. Rows meet if those of one set are equal; without any set, all do.
        rest: what ON asks for beside that; None for nothing.
        full: target rows without a source row stay.
    """

    keys: tuple[tuple[JoinKeys, JoinKeys], ...]
    rest: PageExpression | None
    full: bool

    def joined(self, target: Page, source: Page, evaluator: PageEvaluator) -> Iterator[JoinedRows]:
        """Join two pages: source row by source row, and last the target rows without one if they stay.

        Where very many rows meet, target row by target row instead, in pieces, and last the source rows without one. Either way a target
        row has all that it meets in one piece.

        Raises:
            ExecutionError: ON cannot be computed for a pair whose keys are equal; with its place.
        """
        pieces = self._pairs(target, source, evaluator)
        rows, partners = next(pieces)
        if next(pieces, None) is not None:
            yield from self.by_target([target], target.schema, source, evaluator)
            return
        if self.rest is not None and len(rows):
            pairs = JoinedRows(len(rows), (Side(target, partners), Side(source, rows)))
            true = evaluator.rows_where(self.rest, pairs.page(sorted(self.rest.reads)), pairs)
            rows, partners = rows[true], partners[true]
        alone = np.setdiff1d(np.arange(source.num_rows), rows)
        order = np.argsort(np.concatenate([rows, alone]), kind="stable")
        rows = np.concatenate([rows, alone])[order]
        partners = np.concatenate([partners, np.full(len(alone), NO_ROW)])[order]
        if self.full:
            unmatched = np.setdiff1d(np.arange(target.num_rows), partners)
            rows, partners = np.concatenate([rows, np.full(len(unmatched), NO_ROW)]), np.concatenate([partners, unmatched])
        if len(rows):
            yield JoinedRows(len(rows), (Side(target, partners), Side(source, rows)))

    def by_target(self, pages: Iterable[Page], schema: pa.Schema, source: Page, evaluator: PageEvaluator) -> Iterator[JoinedRows]:
        """Join pages of the target with the source, and last give the source rows without a partner.

        Args:
            pages: all of the target.
            schema: the target's channels.
            source: all of the source.
            evaluator: computes what else ON asks for.

        Raises:
            ExecutionError: as `matches` does.
        """
        matched = np.zeros(source.num_rows, bool)
        for rows in self.matches(pages, source, self.index(source, evaluator), evaluator):
            matched[rows.partners] = True
            yield rows
        alone = np.flatnonzero(~matched)
        if len(alone):
            yield without_target(schema, source, alone)

    def index(self, source: Page, evaluator: PageEvaluator) -> SetsIndex:
        """Return what finds the source rows of a page's keys.

        Raises:
            ExecutionError: a key cannot be computed for a source row; with its place.
        """
        return SetsIndex([keys.values(source, evaluator) for _, keys in self.keys])

    def matches(self, pages: Iterable[Page], source: Page, index: SetsIndex, evaluator: PageEvaluator) -> Iterator[JoinedRows]:
        """Join pages of the target with the source; the source's rows without a partner are left out.

        Small pages are put together.

        Raises:
            ExecutionError: a key cannot be computed for a row, or ON for a pair whose keys are equal; with its place.
        """
        waiting: list[tuple[Page, npt.NDArray[np.int64]]] = []
        count = size = 0
        for page in pages:
            for part, rows in self._met(page, index, evaluator):
                waiting.append((part, rows))
                count, size = count + len(rows), size + part.nbytes
                if count >= GATHERED_ROWS or size >= GATHERED_BYTES:
                    yield from self._checked(waiting, source, evaluator)
                    waiting, count, size = [], 0, 0
        if waiting:
            yield from self._checked(waiting, source, evaluator)

    def _met(self, page: Page, index: SetsIndex, evaluator: PageEvaluator) -> Iterator[tuple[Page, npt.NDArray[np.int64]]]:
        """Yield what is kept of a page, a row for each of its partners, and these."""
        kept = np.zeros(page.num_rows, bool)
        for partners, rows in index.matches([keys.values(page, evaluator) for keys, _ in self.keys]):
            kept[partners] = True
            if len(rows):
                whole = len(rows) == page.num_rows and bool((partners == np.arange(page.num_rows)).all())
                yield page if whole else page.take(pa.array(partners)), rows
        if self.full and not kept.all():
            alone = np.flatnonzero(~kept)
            yield page.take(pa.array(alone)), np.full(len(alone), NO_ROW)

    def _checked(
        self, parts: Sequence[tuple[Page, npt.NDArray[np.int64]]], source: Page, evaluator: PageEvaluator
    ) -> Iterator[JoinedRows]:
        """Yield the pairs for which the rest of ON is true, too."""
        target, rows = pa.concat_batches([page for page, _ in parts]), np.concatenate([rows for _, rows in parts])
        pairs = JoinedRows(len(rows), (Side(target), Side(source, rows)))
        if self.rest is not None:
            met = np.flatnonzero(rows != NO_ROW)
            asked = pairs.picked(met)
            true = met[evaluator.rows_where(self.rest, asked.page(sorted(self.rest.reads)), asked)]
            pairs = self._with_the_rest(pairs, true) if self.full else pairs.picked(true)
        if pairs.count:
            yield pairs

    def _with_the_rest(self, pairs: JoinedRows, true: npt.NDArray[np.int64]) -> JoinedRows:
        """Keep of a FULL join each target row without a true pair, once and without a partner."""
        target, source = pairs.sides
        rows = source.rows
        assert rows is not None
        positions = target.page.column(POSITION).to_numpy()
        left = np.setdiff1d(positions, positions[true])
        _, first = np.unique(positions, return_index=True)
        alone = first[np.isin(positions[first], left)]
        kept = np.concatenate([true, alone])
        partners = np.concatenate([rows[true], np.full(len(alone), NO_ROW)])
        return JoinedRows(len(kept), (target.picked(kept), Side(source.page, partners)))

    def _pairs(
        self, target: Page, source: Page, evaluator: PageEvaluator
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Yield the pairs with equal keys, in pieces: rows of the source, rows of the target."""
        if not self.keys:
            every = np.repeat(np.arange(source.num_rows), target.num_rows)
            yield every, np.tile(np.arange(target.num_rows), source.num_rows)
            return
        index = SetsIndex([keys.values(target, evaluator) for keys, _ in self.keys])
        yield from index.matches([keys.values(source, evaluator) for _, keys in self.keys])


def without_target(schema: pa.Schema, source: Page, rows: npt.NDArray[np.int64]) -> JoinedRows:
    """Return source rows that have met no target row: all channels of the target are NULL.

    Args:
        schema: the target's channels.
        source: the source.
        rows: which rows of it.
    """
    nothing = pa.RecordBatch.from_pylist([], schema=schema)
    return JoinedRows(len(rows), (Side(nothing, np.full(len(rows), NO_ROW)), Side(source, rows)))


def numbered(source: Page, first: int = 0) -> tuple[pa.Array, Page]:
    """Return the numbers of a source's rows and its other channels: a table's rows have a position, others are counted."""
    names = source.schema.names
    if POSITION in names:
        return source.column(POSITION), source.select([name for name in names if name != POSITION])
    return pa.array(np.arange(first, first + source.num_rows)), source
