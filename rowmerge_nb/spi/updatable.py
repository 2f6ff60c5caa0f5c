"""Page sources that change the rows they read (the documents' page "Supporting DELETE and UPDATE").

They implement the older flow, ``flow="updatable"``: one instance per split reads pages, gets the
filtered and projected rows of each page back, and stores the changes.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.spi.page_source import ConnectorPageSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from rowmerge_nb.spi.handles import Fragments
    from rowmerge_nb.spi.page import Page


class UpdatablePageSource(ConnectorPageSource):
    """Reads a split and changes its rows, by means of the ordinary page source.

    The provider returns one for the table handles of ``begin_delete`` and ``begin_update``. Nothing
    may be visible before ``finish_delete`` or ``finish_update`` names it: a task may run again, and
    the fragments of one attempt count.

    >>> import pyarrow as pa
    >>> from rowmerge_nb.spi.page_source import PagesSource
    >>> class Deleting(UpdatablePageSource):
    ...     deleted = []
    ...     def delete_rows(self, row_ids):
    ...         self.deleted += row_ids.to_pylist()
    ...     def finish(self):
    ...         return [f"{len(self.deleted)} deleted".encode()]
    >>> source = Deleting(PagesSource([pa.RecordBatch.from_pydict({"row_id": [7, 8]})]))
    >>> page = source.get_next_page()
    >>> source.delete_rows(page.column(0).slice(1))
    >>> source.finish()
    [b'1 deleted']
    """

    def __init__(self, source: ConnectorPageSource) -> None:
        self.source = source

    def get_next_page(self) -> Page | None:
        """Return the next page of the ordinary source; override to add a computed row id."""
        return self.source.get_next_page()

    def delete_rows(self, row_ids: pa.Array) -> None:
        """Delete one or more rows of the last page, by row ids of the type of
        `get_delete_row_id_column_handle`.

        Raises:
            ConnectorError: NOT_SUPPORTED by default.
        """
        raise ConnectorError(
            f"This connector does not support row-level delete ({type(self).__name__} has no"
            " delete_rows)"
        )

    def update_rows(self, page: Page, column_value_and_row_id_channels: Sequence[int]) -> None:
        """Update one or more rows of the last page.

        Args:
            page: a channel per updated column, and the row id, of the type of
                `get_update_row_id_column_handle`.
            column_value_and_row_id_channels: entry i is the channel of the i-th column of
                ``begin_update``, the last entry that of the row id. The engine may order channels
                freely.

        Raises:
            ConnectorError: NOT_SUPPORTED by default.
        """
        raise ConnectorError(
            f"This connector does not support row update ({type(self).__name__} has no update_rows)"
        )

    @abstractmethod
    def finish(self) -> Fragments:
        """Return the fragments: a collection of bytes, or a future of one; called once, even if no
        row changed.
        """

    def abort(self) -> None:
        """Discard the changes; called once if the split fails, possibly in ``finish``."""

    def close(self) -> None:
        """Close the ordinary source; the last call, after ``finish`` or ``abort``."""
        self.source.close()


def values_and_row_ids(
    page: Page, column_value_and_row_id_channels: Sequence[int]
) -> tuple[list[pa.Array], pa.Array]:
    """Return the values of the updated columns in table order, and the row ids.

    >>> import pyarrow as pa
    >>> page = pa.RecordBatch.from_pydict({"row_id": [7], "b": ["x"], "a": [1]})
    >>> values, row_ids = values_and_row_ids(page, [2, 1, 0])
    >>> [value.to_pylist() for value in values], row_ids.to_pylist()
    ([[1], ['x']], [7])
    """
    *values, row_ids = (page.column(channel) for channel in column_value_and_row_id_channels)
    return values, row_ids
