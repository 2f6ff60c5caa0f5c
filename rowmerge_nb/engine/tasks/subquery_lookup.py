"""Values of subqueries for rows of pages, from an index of the subquery's rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.base.errors import ExecutionError
from rowmerge_nb.engine.tasks.arrow import conform
from rowmerge_nb.engine.tasks.comparable import key_parts
from rowmerge_nb.engine.tasks.key_index import KeyIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.join_keys import JoinKeys
    from rowmerge_nb.engine.tasks.page_program import PageEvaluator, PageQuery
    from rowmerge_nb.spi.page import Page

    Flags = npt.NDArray[np.bool_]


@dataclass
class SubqueryLookup:
    query: PageQuery
    rows: pa.StructArray

    def values(self, page: Page | pa.Table, evaluator: PageEvaluator) -> pa.Array:
        assert self.query.keys is not None
        columns = [
            column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            for column in page.columns
        ]
        whole = pa.RecordBatch.from_arrays(columns, page.schema.names)
        keys = evaluator.values_of(self.query.keys.columns, whole)
        partners = self._partners(_parts(keys, self.query.keys), whole, evaluator)
        if self.query.kind == "exists":
            return pa.array(partners >= 0)
        if self.query.kind == "in":
            return self._memberships(partners >= 0, keys)
        partner_values = self._values.take(pa.array(partners, mask=partners < 0))
        if self.query.default is None:
            return partner_values
        (default,) = evaluator.values_of((self.query.default,), whole)
        return pc.if_else(pa.array(partners >= 0), partner_values, default)

    def _memberships(self, is_member: Flags, keys: Sequence[pa.Array]) -> pa.Array:
        """Return whether values are in the list; NULL if they are not, and either the value or a
        member of the list is NULL.

        The last key is the value.
        """
        if not len(self.rows):
            return pa.array(is_member)
        is_null = keys[-1].is_null().to_numpy(zero_copy_only=False)
        if len(keys) == 1:
            has_null = self.rows.flatten()[0].null_count > 0
            return pa.array(is_member, mask=~is_member & (is_null | has_null))
        assert self.query.keys is not None
        others = _parts(keys[:-1], self.query.keys)
        lists, lists_with_null = self._lists
        is_unknown = (is_null & _occurs(lists, others)) | _occurs(lists_with_null, others)
        return pa.array(is_member, mask=~is_member & is_unknown)

    def _partners(
        self, keys: list[pa.Array], page: pa.RecordBatch, evaluator: PageEvaluator
    ) -> npt.NDArray[np.int64]:
        partners = np.full(page.num_rows, -1, np.int64)
        for rows, matches in self._pairs(keys, page, evaluator):
            if self.query.kind == "scalar" and (np.diff(rows) == 0).any():
                raise ExecutionError(
                    "Scalar sub-query has returned multiple rows",
                    code="SUBQUERY_MULTIPLE_ROWS",
                    step="Project",
                )
            partners[rows] = matches
        return partners

    def _pairs(
        self, keys: list[pa.Array], page: pa.RecordBatch, evaluator: PageEvaluator
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Yield pairs of rows with equal keys that satisfy the condition; see `KeyIndex.matches`."""
        condition = self.query.rest
        names = [] if condition is None else sorted(condition.reads)
        own_columns = dict(zip(_names_of(self.rows), self.rows.flatten(), strict=True))
        for rows, matches in self._index.matches(keys):
            if condition is None or not len(rows):
                yield rows, matches
                continue
            columns = [
                own_columns[name].take(pa.array(matches))
                if name in own_columns
                else page.column(name).take(pa.array(rows))
                for name in names
            ]
            true = evaluator.rows_where(condition, pa.RecordBatch.from_arrays(columns, names))
            yield rows[true], matches[true]

    @cached_property
    def _lists(self) -> tuple[KeyIndex, KeyIndex]:
        """The keys of the lists of IN, each once, and those of lists with NULL."""
        assert self.query.keys is not None
        *keys, values = self.rows.flatten()[: len(self.query.keys.columns)]
        parts = _parts(keys, self.query.keys)
        names = [str(index) for index in range(len(parts))]
        table = pa.table([*parts, values.is_null()], [*names, "null"])
        groups = table.group_by(names).aggregate([("null", "any")])
        lists, lists_with_null = (
            KeyIndex([rows.column(name).combine_chunks() for name in names])
            for rows in (groups, groups.filter(groups.column("null_any")))
        )
        return lists, lists_with_null

    @cached_property
    def _index(self) -> KeyIndex:
        assert self.query.keys is not None
        keys = self.rows.flatten()[: len(self.query.keys.columns)]
        return KeyIndex(_parts(keys, self.query.keys))

    @cached_property
    def _values(self) -> pa.Array:
        assert self.query.keys is not None
        return conform(self.rows.flatten()[len(self.query.keys.columns)], self.query.type)


def _occurs(index: KeyIndex, keys: Sequence[pa.Array]) -> Flags:
    flags = np.zeros(len(keys[0]), np.bool_)
    for rows, _ in index.matches(keys):
        flags[rows] = True
    return flags


def _names_of(rows: pa.StructArray) -> list[str]:
    return [rows.type.field(index).name for index in range(rows.type.num_fields)]


def _parts(columns: Sequence[pa.Array], keys: JoinKeys) -> list[pa.Array]:
    pairs = zip(columns, keys.nulls_meet, strict=False)
    return list(
        chain.from_iterable(
            key_parts(column, nulls_meet=nulls_meet) for column, nulls_meet in pairs
        )
    )
