"""The join keys of one side."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from rowmerge_nb.engine.tasks.comparable import key_parts
from rowmerge_nb.engine.tasks.page_program import AssignedColumn

if TYPE_CHECKING:
    import pyarrow as pa

    from rowmerge_nb.engine.tasks.page_program import PageEvaluator
    from rowmerge_nb.spi.page import Page


@dataclass(frozen=True)
class JoinKeys:
    """`nulls_meet` is true for IS NOT DISTINCT FROM."""

    columns: tuple[AssignedColumn, ...]
    nulls_meet: tuple[bool, ...]

    def values(self, page: Page, evaluator: PageEvaluator) -> list[pa.Array]:
        """Return the columns that are compared; a row with a NULL in one of them matches
        nothing.
        """
        computed = zip(evaluator.values_of(self.columns, page), self.nulls_meet, strict=True)
        return list(
            chain.from_iterable(
                key_parts(values, nulls_meet=nulls_meet) for values, nulls_meet in computed
            )
        )
