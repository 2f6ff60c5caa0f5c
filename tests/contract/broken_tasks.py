"""Connectors with one bug each in code of tasks: page sources, row ids, layouts, sinks.

``caught_by`` of each class lists the checks that must fail because of its bug; `test_broken_stores.py` runs them in a separate pytest.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb.connectors.memory.memory_connector import MemorySplitManager
from rowmerge_nb.connectors.memory.partitioning import (
    MemoryBucketFunction,
    MemoryPartitioningProvider,
)
from rowmerge_nb.connectors.memory.reading import MemoryPageSourceProvider, MemoryRowIdColumn
from rowmerge_nb.connectors.memory.updatable_pages import MemoryUpdatablePageSource
from rowmerge_nb.connectors.memory.writing import MemoryMergeSink
from rowmerge_nb.spi import Operation, PagesSource
from tests.contract.exchangeable_store import STORES, TABLE, Kit, Sinks

pytestmark = pytest.mark.filterwarnings("error")


# -- reading


class Changed(MemoryPageSourceProvider):
    """Opens sources with wrong pages."""

    def create_page_source(self, transaction_handle, session, split, table_handle, columns):
        source = super().create_page_source(
            transaction_handle, session, split, table_handle, columns
        )
        return PagesSource(
            filter(None, (self.page(page, columns) for page in iter(source.get_next_page, None)))
        )

    def page(self, page, columns):
        return page


class NullsAsZero(Changed):
    def page(self, page, columns):
        filled = [
            c
            if c.type != pa.float64()
            else pa.array(np.nan_to_num(c.to_numpy(zero_copy_only=False)))
            for c in page.columns
        ]
        return pa.RecordBatch.from_arrays(filled, names=page.schema.names)


class TestNullIsReadAsZero(Kit):
    parts = {"sources": NullsAsZero}
    caught_by = {
        "rows_come_back_as_they_were_written",
        "a_merge_deletes_updates_and_inserts_the_right_rows",
    }


class TableOrder(Changed):
    def page(self, page, columns):
        order = sorted(
            range(page.num_columns),
            key=lambda i: (page.schema.names[i] == "$row_id", page.schema.names[i]),
        )
        return page.select(order)


class TestColumnsComeInAnOrderOfTheirOwn(Kit):
    parts = {"sources": TableOrder}
    caught_by = {"only_the_requested_columns_are_read_in_the_order_of_the_request"}


class AnyOrder(Changed):
    def page(self, page, columns):
        return page.take(pa.array(random.sample(range(page.num_rows), page.num_rows)))


class TestRowsComeInAnotherOrderEveryTime(Kit):
    parts = {"sources": AnyOrder}
    caught_by = {"pages_come_in_the_same_order_every_time"}


class Skipping(MemorySplitManager):
    def get_splits(self, transaction_handle, session, table_handle, constraint):
        return (
            ()
            if constraint.domains
            else super().get_splits(transaction_handle, session, table_handle, constraint)
        )


class TestAConstraintSkipsTooMuch(Kit):
    parts = {"splits": Skipping}
    caught_by = {"a_constraint_hides_no_row_that_satisfies_it"}


class Unpicklable(MemorySplitManager):
    def get_splits(self, *arguments):
        splits = super().get_splits(*arguments)
        for split in splits:
            object.__setattr__(split, "opener", (line for line in ()))
        return splits


class TestSplitsDoNotTravel(Kit):
    parts = {"splits": Unpicklable}
    caught_by = {"what_tasks_need_travels_to_them", "rows_come_back_as_they_were_written"}


# -- row ids

NUMBERS = itertools.count()


def with_row_ids(page: Any, columns: Any, number: Any) -> Any:
    """Return a page with other positions in its row ids."""
    place = next(
        (i for i, column in enumerate(columns) if isinstance(column, MemoryRowIdColumn)), None
    )
    if place is None:
        return page
    ids = page.column(place)
    if not pa.types.is_struct(ids.type):
        return page.set_column(
            place,
            page.schema.names[place],
            pa.array([number(position) for position in ids.to_pylist()], pa.int64()),
        )
    positions = pa.array(
        [number(position) for position in ids.field("position").to_pylist()], pa.int64()
    )
    return page.set_column(
        place,
        page.schema.names[place],
        pa.StructArray.from_arrays([ids.field("bucket"), positions], ["bucket", "position"]),
    )


class FreshIds(Changed):
    def page(self, page, columns):
        return with_row_ids(page, columns, lambda _: next(NUMBERS))


class TestRowIdsAreNewEveryTime(Kit):
    parts = {"sources": FreshIds}
    caught_by = {
        "row_ids_are_the_same_however_often_a_handle_is_read",
        "row_ids_are_the_same_once_the_merge_has_begun",
    }


class SharedIds(Changed):
    def page(self, page, columns):
        return with_row_ids(page, columns, lambda position: position // 2)


class TestTwoRowsShareARowId(Kit):
    layouts = {"plain": {}}
    parts = {"sources": SharedIds}
    caught_by = {
        "row_ids_are_unique_and_never_null",
        "a_delete_removes_the_named_rows_and_no_other",
    }


# -- layouts


class Buckets(MemoryPartitioningProvider):
    """Returns other buckets for inserted rows."""

    function: Any = MemoryBucketFunction

    def get_bucket_function(self, transaction_handle, session, partitioning_handle, types):
        if partitioning_handle.arguments is None:
            return super().get_bucket_function(
                transaction_handle, session, partitioning_handle, types
            )
        return self.function(partitioning_handle.bucket_count, partitioning_handle.arguments)


class OutOfRange(MemoryBucketFunction):
    def get_buckets(self, page):
        return pa.array(
            [bucket + 1 for bucket in super().get_buckets(page).to_pylist()], pa.int32()
        )


class TestABucketIsOutOfRange(Kit):
    parts = {"partitioning": type("OutOfRangeBuckets", (Buckets,), {"function": OutOfRange})}
    caught_by = {"every_row_has_a_bucket_within_the_bucket_count"}


class ByPlace(MemoryBucketFunction):
    def get_buckets(self, page):
        return pa.array(np.arange(page.num_rows, dtype=np.int32) % self.count)


class TestABucketDependsOnThePlaceInThePage(Kit):
    parts = {"partitioning": type("ByPlaceBuckets", (Buckets,), {"function": ByPlace})}
    caught_by = {"equal_values_have_equal_buckets_wherever_they_stand"}


class MoreBuckets(MemoryBucketFunction):
    @property
    def bucket_count(self):
        return self.count + 1


class TestTheLayoutsDisagreeOnTheNumberOfBuckets(Kit):
    parts = {"partitioning": type("MoreBucketsOfRows", (Buckets,), {"function": MoreBuckets})}
    caught_by = {"both_layouts_have_equally_many_buckets"}


# -- sinks


def sinks(kind: type) -> dict[str, Any]:
    return {"sinks": type(f"Makes{kind.__name__}", (Sinks,), {"sink": kind})}


class Eager(MemoryMergeSink):
    def store_merged_rows(self, page):
        super().store_merged_rows(page)
        store = STORES[0]
        store.put(store._tables[TABLE].metadata, store.read(TABLE).slice(1))


class TestASinkWritesAtOnce(Kit):
    parts = sinks(Eager)
    caught_by = {
        "nothing_is_visible_before_finish_merge",
        "a_stream_that_ends_early_changes_nothing",
        "a_rollback_restores_the_table_and_leaves_nothing_behind",
        "an_aborted_sink_leaves_nothing",
        "a_fault_at_any_step_leaves_the_table_as_it_was",
    }


class OneEra(MemoryMergeSink):
    def store_merged_rows(self, page):
        known = pa.array(
            [operation in {1, 2, 3} for operation in page.column(self._column_count).to_pylist()]
        )
        super().store_merged_rows(page.filter(known))


class TestTheHalvesOfAnUpdateAreIgnored(Kit):
    parts = sinks(OneEra)
    caught_by = {
        "a_merge_deletes_updates_and_inserts_the_right_rows",
        "an_update_changes_the_assigned_columns_and_no_other",
    }


class Forgetful(MemoryMergeSink):
    def store_merged_rows(self, page):
        self._deletes.clear()
        super().store_merged_rows(page)


class TestASinkRemembersItsLastPageOnly(Kit):
    parts = sinks(Forgetful)
    caught_by = {
        "a_merge_deletes_updates_and_inserts_the_right_rows",
        "all_rows_are_deleted_and_new_ones_inserted",
    }


class NoNulls(MemoryMergeSink):
    def store_merged_rows(self, page):
        operation = page.column(self._column_count).to_pylist()
        whole = [
            o == Operation.DELETE or page.column(1)[i].is_valid for i, o in enumerate(operation)
        ]
        if any(whole):
            super().store_merged_rows(page.filter(pa.array(whole)))


class TestRowsWithNullAreDropped(Kit):
    parts = sinks(NoNulls)
    caught_by = {
        "an_insert_by_merge_adds_rows_and_keeps_all_others",
        "values_of_every_type_are_inserted_and_updated",
    }


# -- the older flow


class TableOrderUpdates(MemoryUpdatablePageSource):
    def update_rows(self, page, column_value_and_row_id_channels):
        super().update_rows(page, sorted(column_value_and_row_id_channels))


class AllRows(MemoryUpdatablePageSource):
    def get_next_page(self):
        page = super().get_next_page()
        if page is not None:
            super().delete_rows(page.column(page.num_columns - 1))
        return page

    def delete_rows(self, row_ids):
        assert len(row_ids)


class Nothing(MemoryUpdatablePageSource):
    def finish(self):
        return []


def updatable(kind: type) -> dict[str, Any]:
    class Sources(MemoryPageSourceProvider):
        def create_page_source(self, transaction_handle, session, split, table_handle, columns):
            source = super().create_page_source(
                transaction_handle, session, split, table_handle, columns
            )
            return (
                kind(source.source, table_handle)
                if isinstance(source, MemoryUpdatablePageSource)
                else source
            )

    return {"sources": Sources}


class TestChannelsAreTakenInTheirOwnOrder(Kit):
    parts = updatable(TableOrderUpdates)
    caught_by = {"page_sources_update_the_assigned_columns_whatever_the_order_of_channels"}


class TestAPageSourceDeletesWhatItReads(Kit):
    parts = updatable(AllRows)
    caught_by = {
        "page_sources_delete_the_named_rows_and_no_other",
        "page_sources_that_change_nothing_leave_the_table_as_it_was",
    }


class TestAPageSourceForgetsItsChanges(Kit):
    parts = updatable(Nothing)
    caught_by = {
        "page_sources_delete_the_named_rows_and_no_other",
        "of_several_attempts_at_a_split_the_one_whose_fragments_arrive_counts",
    }
