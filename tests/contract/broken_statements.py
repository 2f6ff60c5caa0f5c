"""Connectors with one bug each in code of the driver (metadata, transactions, types), and one without a bug.

``caught_by`` of each class lists the checks that must fail because of its bug; `test_broken_stores.py` runs them in a separate pytest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.memory.memory_handles import MemoryMergeTableHandle, MemoryTableHandle
from rowmerge_nb.connectors.memory.memory_metadata import MemoryMetadata
from rowmerge_nb.connectors.memory.state import MemoryTable
from rowmerge_nb.connectors.memory.table_properties import fitted
from rowmerge_nb.connectors.memory.writing import MemoryMergeSink
from rowmerge_nb.spi import ColumnHandle, SaveMode, TableStatistics, parse_type
from rowmerge_nb.testing.contract import ConnectorContract
from tests.contract.exchangeable_store import STORES, Kit, Sinks

pytestmark = pytest.mark.filterwarnings("error")


class TestIntact(Kit):
    """No bug: no check fails."""


# -- metadata


class Gathered(Sinks):
    """Creates sinks that also leave their rows in the store itself."""

    class sink(MemoryMergeSink):  # noqa: N801
        def finish(self):
            given = super().finish()
            STORES[0].__dict__.setdefault("gathered", []).extend(given)
            return given


class Gathering(MemoryMetadata):
    def begin_merge(self, session, table_handle, updated_columns=None):
        STORES[0].__dict__["gathered"] = []
        return super().begin_merge(session, table_handle, updated_columns)

    def finish_merge(self, session, merge_handle, fragments):
        super().finish_merge(session, merge_handle, STORES[0].__dict__["gathered"])


class TestEveryAttemptCounts(Kit):
    parts = {"metadata": Gathering, "sinks": Gathered}
    caught_by = {
        "of_a_task_that_is_run_again_the_last_attempt_counts",
        "of_two_copies_of_a_task_only_the_one_whose_fragments_arrive_counts",
    }


class Hasty(MemoryMetadata):
    def finish_merge(self, session, merge_handle, fragments):
        super().finish_merge(session, merge_handle, fragments)
        self._connector._tables.update(self._transaction.tables)


class TestFinishMergeCommits(Kit):
    parts = {"metadata": Hasty}
    caught_by = {
        "nothing_is_visible_before_the_commit",
        "a_rollback_restores_the_table_and_leaves_nothing_behind",
    }


class Needy(MemoryMetadata):
    def finish_merge(self, session, merge_handle, fragments):
        header = next(iter(fragments))
        assert header
        super().finish_merge(session, merge_handle, fragments)


class TestFinishMergeNeedsAFragment(Kit):
    parts = {"metadata": Needy}
    caught_by = {"a_merge_without_fragments_changes_nothing", "new_columns_come_without_rows_too"}


class Rowless(MemoryMetadata):
    def row_count(self, session, table_handle):
        return 7


class TestTheNumberOfRowsIsAGuess(Kit):
    parts = {"metadata": Rowless}
    caught_by = {
        "the_number_of_rows_is_exact_where_it_is_told",
        "a_former_version_is_read_as_it_was",
    }


class Modest(MemoryMetadata):
    def get_table_statistics(self, session, table_handle):
        return TableStatistics(1)


class TestTheStatisticsTellOfFewerRowsThanThereAre(Kit):
    parts = {"metadata": Modest}
    caught_by = {"the_statistics_tell_of_no_fewer_rows_than_there_are"}


class Stubborn(MemoryMetadata):
    def get_insert_layout(self, session, table_handle):
        self.begin_merge(session, table_handle)
        return super().get_insert_layout(session, table_handle)

    def begin_merge(self, session, table_handle, updated_columns=None):
        self._connector._transactions[-1 - len(self._connector._transactions)] = self._transaction
        return MemoryMergeTableHandle(table_handle)


class TestPlanningBeginsSomething(Kit):
    parts = {"metadata": Stubborn}
    caught_by = {"planning_asks_in_the_documents_order_and_begins_nothing"}


# -- transactions


def without_looking(store: MemoryConnector, handle: Any) -> None:
    transaction = store._transactions[handle.number]
    for name in transaction.tables:
        transaction.read[name] = store._tables[name].current if name in store._tables else 0
    MemoryConnector.commit(store, handle)


class TestTheLastToCommitWins(Kit):
    parts = {"commit": without_looking}
    caught_by = {
        "of_two_statements_that_change_one_row_none_is_lost",
        "of_two_statements_that_change_different_rows_none_is_lost",
        "a_row_that_is_deleted_meanwhile_is_not_brought_back",
        "of_two_updates_by_page_sources_none_is_lost",
        "a_version_is_not_put_back_over_a_change",
    }


class Unseeing(MemoryMetadata):
    def get_table_handle(self, session, name):
        store = self._connector
        handle = super().get_table_handle(session, name)
        known = store._tables.get(name)
        return (
            handle
            if known is None or handle is None
            else MemoryTableHandle(name, known.current, known.metadata)
        )


class TestATransactionDoesNotSeeItsOwnChanges(Kit):
    parts = {"metadata": Unseeing}
    caught_by = {"a_transaction_that_shows_its_own_changes_shows_all_of_them"}


class TestARollbackForgetsNothing(Kit):
    parts = {"rollback": lambda store, handle: None}
    caught_by = {
        "a_rollback_restores_the_table_and_leaves_nothing_behind",
        "a_fault_at_any_step_leaves_the_table_as_it_was",
        "an_aborted_sink_leaves_nothing",
    }


class TestARollbackCommits(Kit):
    parts = {
        "rollback": lambda store, handle: (
            store.commit(handle) if handle.number in store._transactions else None
        )
    }
    caught_by = {"a_rollback_restores_the_table_and_leaves_nothing_behind"}


# -- versions


class Forgetful(MemoryMetadata):
    def get_versioned_table_handle(self, session, name, version):
        return self.get_table_handle(session, name)


class TestAFormerVersionIsThePresentOne(Kit):
    parts = {"metadata": Forgetful}
    caught_by = {"a_former_version_is_read_as_it_was", "a_version_that_is_not_kept_is_refused"}


class Overwriting(MemoryMetadata):
    def restore_table(self, session, table_handle, version):
        super().restore_table(session, table_handle, version)
        self._transaction.read.clear()


class TestAVersionIsPutBackOverEveryChange(Kit):
    parts = {"metadata": Overwriting}
    caught_by = {"a_version_is_not_put_back_over_a_change"}


class Early(MemoryMetadata):
    def begin_merge(self, session, table_handle, updated_columns=None):
        store, handle = STORES[0], table_handle
        if handle.column_changes:
            table = store._tables[handle.name]
            rows = fitted(
                table.versions[table.current], table.metadata.columns, handle.metadata.columns
            )
            store._tables[handle.name] = MemoryTable(
                handle.metadata, {table.current: rows}, table.committed
            )
        return super().begin_merge(session, table_handle, updated_columns)


class TestColumnsComeBeforeTheRows(Kit):
    parts = {"metadata": Early}
    caught_by = {"new_columns_come_with_the_rows", "a_fault_leaves_columns_and_rows_as_they_were"}


class Frugal(MemoryMetadata):
    def finish_merge(self, session, merge_handle, fragments):
        return super().finish_merge(session, merge_handle, fragments) if fragments else None


class TestColumnsNeedARow(Kit):
    parts = {"metadata": Frugal}
    caught_by = {"new_columns_come_without_rows_too"}


class Deaf(MemoryMetadata):
    def get_evolved_table_handle(self, session, table_handle, columns):
        self._transaction.read.clear()
        return super().get_evolved_table_handle(session, table_handle, columns)

    def finish_merge(self, session, merge_handle, fragments):
        with mock.patch.object(MemoryTable, "has_columns_of", return_value=True):
            super().finish_merge(session, merge_handle, fragments)


class TestColumnsAreAddedOverThoseOfOthers(Kit):
    parts = {"metadata": Deaf}
    caught_by = {"columns_that_were_altered_meanwhile_are_a_conflict"}


class Narrow(MemoryMetadata):
    def get_evolved_table_handle(self, session, table_handle, columns):
        known = {column.name for column in table_handle.metadata.columns}
        new = [column for column in columns if column.name not in known]
        return super().get_evolved_table_handle(session, table_handle, new)


class TestTypesStayNarrow(Kit):
    parts = {"metadata": Narrow}
    caught_by = {"wider_types_and_fields_come_with_the_rows"}


class Branchless(MemoryMetadata):
    keeps_branches = True


class TestBranchesAreMissing(Kit):
    parts = {"metadata": Branchless}
    caught_by = {
        "a_branch_changes_alone_until_the_fast_forward",
        "a_rollback_leaves_the_branch_as_it_was",
        "a_missing_branch_is_reported",
    }


class Pinning(MemoryMetadata):
    def get_versioned_table_handle(self, session, name, version):
        handle = super().get_versioned_table_handle(session, name, version)
        self.__dict__["pinned"] = handle
        return handle

    def get_table_handle(self, session, name):
        return self.__dict__.get("pinned") or super().get_table_handle(session, name)


class TestAFormerVersionHidesThePresentOne(Kit):
    parts = {"metadata": Pinning}
    caught_by = {"a_former_version_is_read_as_it_was"}


# -- types


class Milliseconds(MemoryMetadata):
    def finish_merge(self, session, merge_handle, fragments):
        super().finish_merge(session, merge_handle, fragments)
        for name, table in self._transaction.tables.items():
            data = table.versions[table.current]
            rough = [
                c.cast(pa.timestamp("ms"), safe=False).cast(c.type)
                if pa.types.is_timestamp(c.type)
                else c
                for c in data.columns
            ]
            table.versions[table.current] = pa.table(rough, schema=data.schema)
            assert name


class TestMicrosecondsAreLost(Kit):
    parts = {"metadata": Milliseconds}
    caught_by = {"values_of_every_type_are_inserted_and_updated"}


class Renaming(MemoryMetadata):
    def get_column_handles(self, session, table_handle):
        kind = parse_type("bigint")
        return tuple(
            ColumnHandle(c.name, kind if c.type.base == "integer" else c.type)
            for c in table_handle.metadata.columns
        )


class TestTypesAreToldDifferently(Kit):
    columns = {"id": "bigint", "Price": "integer", "name": "varchar"}
    parts = {"metadata": Renaming}
    caught_by = {"a_table_tells_its_columns_in_order_with_their_types"}


class Forgetting(MemoryMetadata):
    def create_table(self, session, metadata, save_mode=SaveMode.FAIL):
        columns = tuple(replace(column, default=None) for column in metadata.columns)
        super().create_table(session, replace(metadata, columns=columns), save_mode)


class ReplacingAtOnce(MemoryMetadata):
    def create_table(self, session, metadata, save_mode=SaveMode.FAIL):
        super().create_table(session, metadata, save_mode)
        if save_mode is SaveMode.REPLACE:
            name = metadata.name
            self._connector._tables[name] = self._transaction.tables.pop(name)


class TestATableIsReplacedBeforeTheCommit(Kit):
    parts = {"metadata": ReplacingAtOnce}
    caught_by = {"a_table_is_replaced_by_the_commit_alone"}


class ReplacingNothing(MemoryMetadata):
    def create_table(self, session, metadata, save_mode=SaveMode.FAIL):
        if save_mode is SaveMode.FAIL:
            super().create_table(session, metadata)


class TestAReplacedTableKeepsItsRows(Kit):
    parts = {"metadata": ReplacingNothing}
    caught_by = {"a_table_is_replaced_by_the_commit_alone"}


class TestDefaultsAreForgotten(Kit):
    parts = {"metadata": Forgetting}
    caught_by = {"default_values_are_kept"}


class Misspelt(MemoryMetadata):
    def get_table_metadata(self, session, table_handle):
        return replace(
            super().get_table_metadata(session, table_handle), check_constraints=("prise > 0",)
        )


class TestAConstraintNamesNoColumn(Kit):
    parts = {"metadata": Misspelt}
    caught_by = {"constraints_and_default_values_are_sql_that_the_engine_reads"}


class Computing(MemoryMetadata):
    def get_table_metadata(self, session, table_handle):
        told = super().get_table_metadata(session, table_handle)
        return replace(
            told, columns=(*told.columns[:-1], replace(told.columns[-1], default="lower('A')"))
        )


class TestADefaultIsNoLiteral(Kit):
    parts = {"metadata": Computing}
    caught_by = {"constraints_and_default_values_are_sql_that_the_engine_reads"}


class TestNothingIsWritten(ConnectorContract):
    """A developer who has not started yet."""

    types = ("bigint",)
    caught_by = {"rows_come_back_as_they_were_written"}
