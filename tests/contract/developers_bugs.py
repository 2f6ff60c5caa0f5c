"""Fifteen bugs that the author of a connector is likely to make, each in an otherwise correct connector.

``cause`` is the text of the first three lines of the kit's report, ``report`` that of a statement's own report; without it, the
store has the correct rows after a successful statement.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata
from rowmerge_nb.connectors.memory.writing import MemoryMergeSink
from rowmerge_nb.spi import Operation
from rowmerge_nb.spi.page import rows_with
from tests.contract.broken_tasks import Buckets, ByPlace, Changed, sinks
from tests.contract.exchangeable_store import Kit, Store

LEFT: list[str] = []
"""Represents files of sinks that no longer exist."""


class GivesNothing(MemoryMergeSink):
    def finish(self):
        return []


class FinishGivesAnEmptyList(Kit):
    parts = sinks(GivesNothing)
    cause = "finish() of a merge sink returned no fragment for 3 rows that it received"
    report = "returned no fragment for 5 rows."


class ForgetsToReturn(MemoryMergeSink):
    def finish(self):
        super().finish()


class FinishGivesNone(Kit):
    parts = sinks(ForgetsToReturn)
    cause = "finish() returned None; it must return a list of fragments, which are bytes"
    report = "ForgetsToReturn.finish() returned NoneType; it must return a collection of bytes"


class Twice(MemoryMergeSink):
    def store_merged_rows(self, page):
        super().store_merged_rows(page)
        again = rows_with(page, self._column_count, {Operation.UPDATE_INSERT, Operation.INSERT})
        if again.num_rows:
            super().store_merged_rows(again)


class TheNewRowOfAnUpdateIsStoredTwice(Kit):
    parts = sinks(Twice)
    cause = "exists twice and must exist once"
    report = "Row (1, NULL, 'x') exists more often than expected: it was expected after an update."


class TextIds(Changed):
    def page(self, page, columns):
        place = page.schema.get_field_index("$row_id")
        return (
            page
            if place < 0
            else page.set_column(place, "$row_id", pc.cast(page.column(place), pa.string()))
        )


class RowIdsAreOfAnotherType(Kit):
    layouts = {"plain": {}}
    parts = {"sources": TextIds}
    cause = "('$row_id') is string, but its handle has bigint (int64)"
    report = "channel 3 ('$row_id') has values of type string, but its handle has bigint"


class TakesAllForInserts(MemoryMergeSink):
    def store_merged_rows(self, page):
        values = page.column(self._column_count)
        page = page.set_column(
            self._column_count,
            page.schema.names[self._column_count],
            pa.array([Operation.INSERT] * page.num_rows, values.type),
        )
        super().store_merged_rows(page)


class TheOperationIsNotLookedAt(Kit):
    parts = sinks(TakesAllForInserts)
    cause = "row 1 should have been deleted but exists"
    report = "Row (2, NULL, 'b') should have been deleted but exists."


class Leaves(MemoryMergeSink):
    def store_merged_rows(self, page):
        LEFT.append("attempt-1.part")
        super().store_merged_rows(page)

    def finish(self):
        LEFT.clear()
        return super().finish()

    def abort(self):
        pass


class AbortDoesNotCleanUp(Kit):
    parts = sinks(Leaves)
    cause = "left behind by a finished statement: attempt-1.part"

    def leftovers(self, connector):
        left = [*LEFT]
        LEFT.clear()
        return left


class Misspelt(MemoryMergeSink):
    def store_merged_rows(self, page):
        super().store_merged_rows(pge)  # noqa: F821 - this is the bug


class ATypoInStoreMergedRows(Kit):
    parts = sinks(Misspelt)
    cause = "NameError: name 'pge' is not defined"
    report = "store_merged_rows failed: NameError: name 'pge' is not defined"
    line = "super().store_merged_rows(pge)"


class MisspeltFinish(MemoryMetadata):
    def finish_merge(self, session, handle, fragments):
        super().finish_merge(session, handle, fragmnts)  # noqa: F821 - this is the bug


class ATypoInFinishMerge(Kit):
    parts = {"metadata": MisspeltFinish}
    cause = "NameError: name 'fragmnts' is not defined"
    report = "finish_merge failed: NameError: name 'fragmnts' is not defined"
    line = "super().finish_merge(session, handle, fragmnts)"


class Stops(MemoryMergeSink):
    def store_merged_rows(self, page):
        breakpoint()  # noqa: T100 - this is the bug
        super().store_merged_rows(page)


class ABreakpointInASink(Kit):
    parts = sinks(Stops)
    cause = "breakpoint() was called, but the kit has no keyboard"
    line = "breakpoint()"


class ABucketFunctionThatIsOffByOne(Kit):
    parts = {"partitioning": type("ByPlaceBuckets", (Buckets,), {"function": ByPlace})}
    cause = "buckets of the insert layout for the same rows in another order: expected ["


HANDLES: list[Any] = []


class Stale(MemoryMetadata):
    """Returns the first handle that it has ever returned."""

    def get_table_handle(self, session, name):
        handle = super().get_table_handle(session, name)
        if handle is not None:
            HANDLES[:] = [known for known in HANDLES if known[0] is self.connector] or [
                (self.connector, handle)
            ]
            return HANDLES[0][1]
        return handle

    @property
    def connector(self):
        return next(value for value in vars(self).values() if isinstance(value, MemoryConnector))


class AStaleHandle(Kit):
    parts = {"metadata": Stale}
    cause = "the table is read as empty but must have 14"
    report = "Row (1, NULL, 'x') should have been inserted but is missing."


class NoLastPage(MemoryMergeSink):
    """Writes a page when the next one arrives."""

    waiting: Any = None

    def store_merged_rows(self, page):
        if self.waiting is not None:
            super().store_merged_rows(self.waiting)
        self.waiting = page


class TheLastPageIsLost(Kit):
    parts = sinks(NoLastPage)
    cause = "finish() of a merge sink returned no fragment for 1 row that it received"
    report = "returned no fragment for 5 rows."


EVERYBODYS: list[Any] = []


class Shared(MemoryMergeSink):
    """Keeps pages in a location shared by all sinks of a process."""

    def store_merged_rows(self, page):
        EVERYBODYS.append(page)

    def finish(self):
        for page in EVERYBODYS:
            super().store_merged_rows(page)
        return super().finish()


class RowsOfAnotherWriter(Kit):
    parts = sinks(Shared)
    cause = "exists twice and must exist once"

    def make_connector(self, folder):
        EVERYBODYS.clear()
        return super().make_connector(folder)


class Again(MemoryMetadata):
    def finish_merge(self, session, handle, fragments):
        super().finish_merge(session, handle, [*fragments, *fragments])


class FragmentsAreCommittedTwice(Kit):
    parts = {"metadata": Again}
    cause = "exists twice and must exist once"
    report = "Row (9, NULL, 'n') exists more often than expected: it should have been inserted."


class Shifted(MemoryMergeSink):
    def store_merged_rows(self, page):
        moved = [
            pc.add(column, pa.scalar(dt.timedelta(hours=1)))
            if pa.types.is_timestamp(column.type)
            else column
            for column in page.columns
        ]
        super().store_merged_rows(pa.RecordBatch.from_arrays(moved, names=page.schema.names))


class TimesAreShiftedByAnHour(Kit):
    columns = {"id": "bigint", "at": "timestamp(6)", "name": "varchar"}
    parts = sinks(Shifted)
    cause = "1:00:00 too late"
    report = "Column 'at' is 1:00:00 too late, which is the difference of two time zones"


BUGS = {
    name: kind
    for name, kind in list(globals().items())
    if isinstance(kind, type)
    and issubclass(kind, Kit)
    and hasattr(kind, "cause")
    and kind.__module__ == __name__
}
__all__ = ["BUGS", "Store"]
