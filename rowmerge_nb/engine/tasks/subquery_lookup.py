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
    from collections.abc import Sequence

    import numpy.typing as npt

    from rowmerge_nb.engine.tasks.join_keys import JoinKeys
    from rowmerge_nb.engine.tasks.page_program import PageEvaluator, PageQuery
    from rowmerge_nb.spi.page import Page


@dataclass
class SubqueryLookup:
    """Finds the values of a correlated subquery, or of IN, by key.

    Args:
        rows: its keys and, if it is scalar, the value: one struct per row.
    """

    query: PageQuery
    rows: pa.StructArray

    def values(self, page: Page | pa.Table, evaluator: PageEvaluator) -> pa.Array:
        """Return the value for each row of a page.

        Raises:
            ExecutionError: SUBQUERY_MULTIPLE_ROWS.
        """
        assert self.query.keys is not None
        columns = [
            column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            for column in page.columns
        ]
        whole = pa.RecordBatch.from_arrays(columns, page.schema.names)
        keys = evaluator.values_of(self.query.keys.columns, whole)
        partners = self._partners(_parts(keys, self.query.keys))
        if self.query.kind == "exists":
            return pa.array(partners >= 0)
        if self.query.kind == "in":
            return self._memberships(partners, keys[0])
        partner_values = self._values.take(pa.array(partners, mask=partners < 0))
        if self.query.default is None:
            return partner_values
        (default,) = evaluator.values_of((self.query.default,), whole)
        return pc.if_else(pa.array(partners >= 0), partner_values, default)

    def _memberships(self, partners: npt.NDArray[np.int64], values: pa.Array) -> pa.Array:
        """Return whether values are in the list; NULL if they are not, and either the value or a
        member of the list is NULL.
        """
        is_member = partners >= 0
        if not len(self.rows):
            return pa.array(is_member)
        if self.rows.flatten()[0].null_count:
            return pa.array(is_member, mask=~is_member)
        return pa.array(
            is_member, mask=~is_member & values.is_null().to_numpy(zero_copy_only=False)
        )

    def _partners(self, keys: list[pa.Array]) -> npt.NDArray[np.int64]:
        partners = np.full(len(keys[0]), -1, np.int64)
        for rows, matches in self._index.matches(keys):
            if self.query.kind == "scalar" and (np.diff(rows) == 0).any():
                raise ExecutionError(
                    "Scalar sub-query has returned multiple rows",
                    code="SUBQUERY_MULTIPLE_ROWS",
                    step="Project",
                )
            partners[rows] = matches
        return partners

    @cached_property
    def _index(self) -> KeyIndex:
        assert self.query.keys is not None
        return KeyIndex(_parts(self.rows.flatten(), self.query.keys))

    @cached_property
    def _values(self) -> pa.Array:
        return conform(self.rows.flatten()[-1], self.query.type)


def _parts(columns: Sequence[pa.Array], keys: JoinKeys) -> list[pa.Array]:
    pairs = zip(columns, keys.nulls_meet, strict=False)
    return list(
        chain.from_iterable(
            key_parts(column, nulls_meet=nulls_meet) for column, nulls_meet in pairs
        )
    )
