"""The rows of a statement that its trace holds, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from rowmerge_nb.trace.near import NearKeys
from rowmerge_nb.trace.page_samples import AskedRows, PageSample, StoredSample


@dataclass(frozen=True, kw_only=True)
class RowSamples:
    """The rows of a statement that its trace holds.

    Args:
        pages: input and output of ``transform_page``; in the older flow, the changed rows on both
            sides.
        untouched_rows: the first target rows that were not joined or not selected by WHERE; None if
            unknown.
        near_misses: unmatched rows with the nearest keys of the other side; None if not requested.
    """

    pages: PageSample | None = None
    requested_rows: AskedRows | None = None
    untouched_rows: pa.RecordBatch | None = None
    stored_pages: tuple[StoredSample, ...] = ()
    near_misses: NearKeys | None = None

    @property
    def is_whole(self) -> bool:
        """Whether all joined rows are among them, with the values of both sides."""
        return self.pages is not None and self.pages.complete and self.pages.witness is not None
