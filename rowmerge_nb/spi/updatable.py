"""The page source that changes what it has read (the documents' page "Supporting DELETE and UPDATE").

It belongs to the older flow of DELETE and UPDATE, ``flow="updatable"``: one instance per split reads pages on behalf of the engine, is
given the filtered and projected rows of each page back, and stores the changes. The newer flow has `ConnectorMergeSink` for that.
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
    """Reads a split and changes its rows; layered over the connector's ordinary page source.

    The page source provider returns one where the table handle is that of ``begin_delete`` or ``begin_update``. Nothing that it stores may be
    visible before ``finish_delete`` or ``finish_update`` names it: a task may be run again, and the fragments of one attempt count.

    Args:
        source: the ordinary page source of the split.

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
        """Return the next page of the ordinary source; connectors whose row id must be made first rebuild the page."""
        return self.source.get_next_page()

    def delete_rows(self, row_ids: pa.Array) -> None:
        """Delete rows of the page that this instance has given last; never none.

        Args:
            row_ids: one row id per row, of the type of ``get_delete_row_id_column_handle``.

        Raises:
            ConnectorError: NOT_SUPPORTED unless the connector overrides this method.
        """
        raise ConnectorError(f"This connector does not support row-level delete ({type(self).__name__} has no delete_rows)")

    def update_rows(self, page: Page, column_value_and_row_id_channels: Sequence[int]) -> None:
        """Update rows of the page that this instance has given last; never none.

        Args:
            page: one channel per updated column, and one for the row id, of the type of ``get_update_row_id_column_handle``.
            column_value_and_row_id_channels: which channel of the page is which: entry i is that of the i-th column given to
                ``begin_update``, the last entry is the row id's. The engine may order channels as it likes.

        Raises:
            ConnectorError: NOT_SUPPORTED unless the connector overrides this method.
        """
        raise ConnectorError(f"This connector does not support row update ({type(self).__name__} has no update_rows)")

    @abstractmethod
    def finish(self) -> Fragments:
        """Return what was stored: a collection of bytes, or a future of one.

        Called once, when all pages of the split have been processed; also where none of its rows was to be changed.
        """

    def abort(self) -> None:
        """Drop what was stored; called once where the split fails, be it in ``finish``, which is not called after it."""

    def close(self) -> None:
        """Close the ordinary source; the last call, whether the split was finished or aborted."""
        self.source.close()


def values_and_row_ids(page: Page, column_value_and_row_id_channels: Sequence[int]) -> tuple[list[pa.Array], pa.Array]:
    """Take a page apart as its list of channels says: the values of the updated columns in table order, and the row ids.

    >>> import pyarrow as pa
    >>> page = pa.RecordBatch.from_pydict({"row_id": [7], "b": ["x"], "a": [1]})
    >>> values, row_ids = values_and_row_ids(page, [2, 1, 0])
    >>> [value.to_pylist() for value in values], row_ids.to_pylist()
    ([[1], ['x']], [7])
    """
    *values, row_ids = (page.column(channel) for channel in column_value_and_row_id_channels)
    return values, row_ids
