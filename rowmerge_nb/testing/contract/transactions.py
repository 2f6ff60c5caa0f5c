"""Checks of visibility: sinks, attempts of tasks, rollback, concurrent statements."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.operations import SaveMode
from rowmerge_nb.testing.contract.contract_statement import Changes, given
from rowmerge_nb.testing.contract.differences import must_be_same
from rowmerge_nb.testing.contract.store_under_test import ContractStore, FilledTable, in_order

if TYPE_CHECKING:
    from rowmerge_nb.testing.contract.contract_statement import PageStatement


class TransactionChecks(ContractStore):
    """A reader sees the old table or the new one, never a mixture."""

    varies: ClassVar[Collection[str]] = ("layout", "paradigm")

    def test_nothing_is_visible_before_finish_merge(self, filled_table: FilledTable) -> None:
        statement = filled_table.statement()
        statement.begin(self.some_changes())
        filled_table.must_be_unchanged("a reader sees changes of a merge that has only begun")
        for writer, pages in statement.sink_pages(self.some_changes()).items():
            sink = statement.sink(writer)
            for page in pages:
                sink.store_merged_rows(page)
                filled_table.must_be_unchanged("a reader sees the rows that a sink stored")
            given(sink.finish())
            filled_table.must_be_unchanged("a reader sees the rows of a finished sink")
        statement.rollback()
        filled_table.must_be_unchanged()

    def test_nothing_is_visible_before_the_commit(self, filled_table: FilledTable) -> None:
        if filled_table.connector.commits_in_finish:
            pytest.skip("commits_in_finish = True: finish_merge is the commit")
        statement = filled_table.statement()
        statement.merge(self.some_changes())
        filled_table.must_be_unchanged("a reader sees the result of finish_merge before the commit")
        statement.commit()
        filled_table.must_hold(self.some_changes())

    def test_a_merge_without_fragments_changes_nothing(self, filled_table: FilledTable) -> None:
        """finish_merge is called even without a sink."""
        statement = filled_table.statement()
        statement.begin()
        statement.finish([])
        statement.commit()
        filled_table.must_be_unchanged()
        filled_table.must_have_left_nothing()

    @pytest.mark.parametrize(
        "until", ["begin_merge", "store_merged_rows", "finish", "finish_merge"]
    )
    def test_a_rollback_restores_the_table_and_leaves_nothing_behind(
        self, filled_table: FilledTable, until: str
    ) -> None:
        if until == "finish_merge" and filled_table.connector.commits_in_finish:
            pytest.skip("commits_in_finish = True: finish_merge is the commit")
        statement = filled_table.statement()
        statement.begin(self.some_changes())
        fragments: list[bytes] = []
        if until != "begin_merge":
            for writer, pages in statement.sink_pages(self.some_changes()).items():
                sink = statement.sink(writer)
                for page in pages:
                    sink.store_merged_rows(page)
                if until != "store_merged_rows":
                    fragments += given(sink.finish())
        if until == "finish_merge":
            statement.finish(fragments)
        statement.rollback()
        filled_table.must_be_unchanged()
        filled_table.must_have_left_nothing()
        self._can_be_changed(filled_table)

    def test_an_aborted_sink_leaves_nothing(self, filled_table: FilledTable) -> None:
        statement = filled_table.statement()
        statement.begin(self.some_changes())
        for writer, pages in statement.sink_pages(self.some_changes()).items():
            sink = statement.sink(writer)
            if writer:
                sink.store_merged_rows(pages[0])
            sink.abort()
        statement.rollback()
        filled_table.must_be_unchanged()
        filled_table.must_have_left_nothing()

    def test_a_stream_that_ends_early_changes_nothing(self, filled_table: FilledTable) -> None:
        """After a failure in Spark, a task's input ends: finish() is called, and its fragments are
        discarded.
        """
        statement = filled_table.statement()
        statement.begin(self.some_changes())
        for writer, pages in statement.sink_pages(self.some_changes()).items():
            for _ in range(2):
                statement.attempt(writer, pages[:1])
        statement.rollback()
        filled_table.must_be_unchanged()
        filled_table.must_have_left_nothing()

    def test_of_a_task_that_is_run_again_the_last_attempt_counts(
        self, filled_table: FilledTable
    ) -> None:
        def before(statement: PageStatement, writer: int, pages: list[Any]) -> None:
            statement.attempt(writer, pages[:1])
            aborted = statement.sink(writer)
            aborted.store_merged_rows(pages[0])
            aborted.abort()
            statement.sink(writer).store_merged_rows(pages[0])

        self._with_other_attempts(filled_table, before=before)

    def test_of_two_copies_of_a_task_only_the_one_whose_fragments_arrive_counts(
        self, filled_table: FilledTable
    ) -> None:
        """Spark may run a slow task twice, and either copy may finish first."""
        self._with_other_attempts(
            filled_table, before=lambda statement, writer, pages: statement.attempt(writer, pages)
        )
        filled_table.before = filled_table.contents()
        changes = Changes((self.new_key(3),), ((self.key(4), self.new_values(4)),), (self.row(31),))
        self._with_other_attempts(
            filled_table,
            changes,
            after=lambda statement, writer, pages: statement.attempt(writer, pages),
        )

    def _with_other_attempts(
        self,
        filled_table: FilledTable,
        changes: Changes | None = None,
        *,
        before: Any = None,
        after: Any = None,
    ) -> None:
        changes = changes or self.some_changes()
        statement = filled_table.statement()
        statement.begin(changes)
        fragments: list[bytes] = []
        for writer, pages in statement.sink_pages(changes).items():
            if before is not None:
                before(statement, writer, pages)
            fragments += statement.attempt(writer, pages)
            if after is not None:
                after(statement, writer, pages)
        statement.finish(fragments)
        statement.commit()
        filled_table.must_hold(changes)
        filled_table.must_have_left_nothing()

    def test_a_transaction_that_shows_its_own_changes_shows_all_of_them(
        self, filled_table: FilledTable
    ) -> None:
        """In a handle requested after finish_merge; other transactions do not see them."""
        statement = filled_table.statement()
        if not statement.metadata.shows_own_changes:
            statement.rollback()
            pytest.skip("shows_own_changes = False: changes are visible only after the commit")
        statement.merge(self.some_changes())
        statement.merge_handle = None
        statement.handle = statement.metadata.get_table_handle(statement.session, statement.name)
        must_be_same(
            "the rows that the transaction sees",
            in_order(statement.rows()),
            filled_table.expected(self.some_changes()),
        )
        statement.rollback()
        filled_table.must_be_unchanged()

    def test_a_table_is_replaced_by_the_commit_alone(self, filled_table: FilledTable) -> None:
        """CREATE OR REPLACE TABLE: after a rollback the former table has its rows, and after a
        commit the new one has none.
        """
        for ends_with_commit in (False, True):
            statement = filled_table.statement()
            if not (self.creates_tables and statement.metadata.replaces_tables):
                statement.rollback()
                pytest.skip("replaces_tables = False: the engine refuses CREATE OR REPLACE TABLE")
            try:
                metadata = self.metadata(filled_table.way.layout)
                statement.metadata.create_table(statement.session, metadata, SaveMode.REPLACE)
            except BaseException as error:
                statement.rollback()
                if isinstance(error, RowMergeError) and error.code == "NOT_SUPPORTED":
                    pytest.skip(f"CREATE OR REPLACE TABLE is refused: {error.message}")
                raise
            if ends_with_commit:
                statement.commit()
                filled_table.must_have([], "a table that was replaced has rows")
            else:
                statement.rollback()
                filled_table.must_be_unchanged("a rollback does not restore a replaced table")
            filled_table.must_have_left_nothing()
        filled_table.before = []
        changes = Changes(inserted=(self.row(1), self.row(2)))
        filled_table.merge(changes)
        filled_table.must_hold(changes)

    # -- statements at the same time

    def test_of_two_statements_that_change_one_row_none_is_lost(
        self, filled_table: FilledTable
    ) -> None:
        """The second one read the old row, so it must fail; rerun, it succeeds."""
        first = Changes(updated=((self.key(3), self.new_values(3)),))
        second = Changes(updated=((self.key(3), self.new_values(4)),))
        assert not self._both(filled_table, first, second), (
            "both were committed, so the first one's change is lost"
        )
        filled_table.must_hold(first)
        filled_table.merge(Changes(updated=((self.new_key(3), self.new_values(4)),)))
        filled_table.must_hold(second)
        filled_table.must_have_left_nothing()

    def test_a_row_that_is_deleted_meanwhile_is_not_brought_back(
        self, filled_table: FilledTable
    ) -> None:
        first = Changes(deleted=(self.key(3),))
        second = Changes(updated=((self.key(3), self.new_values(3)),))
        assert not self._both(filled_table, first, second), "a deleted row was updated"
        filled_table.must_hold(first)

    def test_of_two_statements_that_change_different_rows_none_is_lost(
        self, filled_table: FilledTable
    ) -> None:
        first = Changes(updated=((self.key(3), self.new_values(3)),), inserted=(self.row(21),))
        second = Changes((self.key(5),), ((self.key(4), self.new_values(4)),), (self.row(22),))
        succeeded = self._both(filled_table, first, second)
        if succeeded:
            filled_table.before = filled_table.expected(first)
        filled_table.must_hold(second if succeeded else first)
        filled_table.must_have_left_nothing()

    def _both(self, filled_table: FilledTable, first: Changes, second: Changes) -> bool:
        """Run two statements side by side, and return whether the second one succeeded too."""
        one, other = filled_table.statement(), filled_table.statement()
        try:
            one.begin(first)
            other.begin(second)
            fragments, late_fragments = one.store(first), other.store(second)
            one.finish(fragments)
            one.commit()
            try:
                other.finish(late_fragments)
                other.commit()
            except RowMergeError as error:
                other.rollback()
                if error.code != "TRANSACTION_CONFLICT":
                    pytest.fail(
                        f"the statement that came second failed with {error}; a conflict is reported as"
                        " TRANSACTION_CONFLICT"
                    )
                return False
        except BaseException:
            one.rollback()
            other.rollback()
            raise
        return True

    def _can_be_changed(self, filled_table: FilledTable) -> None:
        filled_table.merge(self.some_changes())
        filled_table.must_hold(self.some_changes())
