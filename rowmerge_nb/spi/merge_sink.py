"""The merge sink (design documents, "ConnectorMergeSink API")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowmerge_nb.spi.handles import Fragments
    from rowmerge_nb.spi.page import Page


class ConnectorMergeSink(ABC):
    """Stores the rows of a merge, usually with the connector's `ConnectorPageSink` for inserts.

    It is created when its first page arrives. The order of rows and pages is indeterminate.
    """

    @abstractmethod
    def store_merged_rows(self, page: Page) -> None:
        """Store a page of changed rows, never empty.

        The sink may keep the page, but must not modify it.

        Args:
            page: all table columns in table order; ``operation`` (int8: 1 INSERT, 2 DELETE, 3
                UPDATE; in the current era 4 and 5 for the halves of an update); ``case_number``
                (int32, current era only); ``row_id`` (the type of `get_merge_row_id_column_handle`,
                NULL for inserts). The new row of an update has the row id of its old row in the
                current era, or if the row id `identifies_new_rows`. An update is one complete row
                with operation 3 under CHANGE_ONLY_UPDATED_COLUMNS, and two rows under
                DELETE_ROW_AND_INSERT_ROW.
        """

    @abstractmethod
    def finish(self) -> Fragments:
        """Return the fragments: a collection of bytes, or a future of one.

        Called after the last page, for every attempt of the task, even if its input was cut short.
        Nothing may be visible before ``finish_merge`` names it.
        """

    def abort(self) -> None:
        """Discard the stored rows, since the task failed."""
