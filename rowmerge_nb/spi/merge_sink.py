"""The merge sink (design documents, "ConnectorMergeSink API")."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowmerge_nb.spi.handles import Fragments
    from rowmerge_nb.spi.page import Page


class ConnectorMergeSink(ABC):
    """Takes the rows of a merge, usually layered over the connector's `ConnectorPageSink` for what it inserts.

    A sink is made only where a page arrives. The order of rows in pages, and of pages, is indeterminate: a sink that
    needs an order (Hive: deletes ascending by row id) sorts.
    """

    @abstractmethod
    def store_merged_rows(self, page: Page) -> None:
        """Take a page of changed rows; never an empty one. The sink may keep it, and does not write into it.

        Args:
            page: all table columns in table order; ``operation`` (int8: 1 INSERT, 2 DELETE, 3 UPDATE; in the current era
                4 and 5 for the halves of an update); ``case_number`` (int32, in the current era only); ``row_id`` (the type
                of ``get_merge_row_id_column_handle``, NULL for inserts). With CHANGE_ONLY_UPDATED_COLUMNS an
                update is one row with operation 3 and all columns filled; with DELETE_ROW_AND_INSERT_ROW it arrives as two rows.
        """

    @abstractmethod
    def finish(self) -> Fragments:
        """Return what was stored: a collection of bytes, or a future of one.

        Called once all rows of this sink have been stored, for every attempt of the task, even for one whose input was
        cut short by a failure elsewhere: nothing may be visible before ``finish_merge`` names it.
        """

    def abort(self) -> None:
        """Drop what was stored; called when the task fails."""
