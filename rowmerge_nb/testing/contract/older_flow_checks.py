"""Checks of the older flow of UPDATE and DELETE."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.page import row_ids_of
from rowmerge_nb.spi.updatable import UpdatablePageSource
from rowmerge_nb.testing.contract.contract_statement import Changes, PageStatement, given, travel
from rowmerge_nb.testing.contract.sample_values import identity, read_values
from rowmerge_nb.testing.contract.store_under_test import ContractStore, FilledTable
from rowmerge_nb.testing.contract.unchanged import WatchedPages
from rowmerge_nb.testing.faults import Fault, FaultyConnector

if TYPE_CHECKING:
    from rowmerge_nb.spi.handles import ColumnHandle
    from rowmerge_nb.spi.page import Page

DELETE_STEPS = [
    "begin_delete",
    "get_splits",
    "create_page_source",
    "get_next_page",
    "delete_rows",
    "finish",
    "finish_delete",
]
UPDATE_STEPS = ["begin_update", "update_rows", "finish_update"]
"""Additional steps of an UPDATE."""


@dataclass
class UpdatableStatement(PageStatement):
    """An UPDATE or DELETE of the older flow; ``rotated`` shifts the channels of updated pages."""

    rotated: int = 0

    def begin_change(self, changes: Changes) -> None:
        """Begin with deletes, or with updates that all assign the same columns."""
        self.verb = "update" if changes.updated else "delete"
        assigned = {name.lower() for _, new in changes.updated for name in new}
        self.updated = [column for column in self.columns if column.name.lower() in assigned]
        arguments: tuple[Any, ...] = (
            self.session,
            self.handle,
            *([self.updated] if changes.updated else []),
        )
        self.changed_id: ColumnHandle = getattr(
            self.metadata, f"get_{self.verb}_row_id_column_handle"
        )(*arguments)
        self.changed_handle: Any = getattr(self.metadata, f"begin_{self.verb}")(*arguments)

    def opened(self) -> list[Any]:
        return self.splits(handle=self.changed_handle)

    def source(self, split: Any, number: int) -> UpdatablePageSource:
        provider = travel(self.connector.get_page_source_provider())
        session = replace(self.session, writer=number)
        columns = [*map(travel, [*self.columns, self.changed_id])]
        source = provider.create_page_source(
            travel(self.transaction), session, travel(split), travel(self.changed_handle), columns
        )
        assert isinstance(source, UpdatablePageSource), (
            f"for the handle of begin_{self.verb}, the provider must return an"
            f" UpdatablePageSource, not {type(source).__name__}"
        )
        return source

    def change(
        self, source: UpdatablePageSource, changes: Changes, *, pages: int = 1 << 30
    ) -> None:
        new = {
            self._key(key): {name.lower(): value for name, value in values.items()}
            for key, values in changes.updated
        }
        requested: Collection[Any] = (
            new if changes.updated else {self._key(key) for key in changes.deleted}
        )
        passed_pages = WatchedPages("an updatable page source")
        while pages and (page := source.get_next_page()) is not None:
            pages -= 1
            assert page.num_columns == len(self.columns) + 1, (
                "a page has the requested columns, with the row id last"
            )
            keys = [*map(identity, read_values(page.column(0), self.columns[0].type))]
            indexes = pa.array(
                [index for index, key in enumerate(keys) if key in requested], pa.int64()
            )
            if not len(indexes):
                continue
            row_ids = row_ids_of(page).take(indexes)
            if not changes.updated:
                passed_pages.add(pa.RecordBatch.from_arrays([row_ids], names=["row_id"]))
                source.delete_rows(row_ids)
            else:
                rows = [new[keys[index]] for index in indexes.to_pylist()]
                updated, channels = self._updated_page(rows, row_ids)
                passed_pages.add(updated)
                source.update_rows(updated, channels)
            passed_pages.check()

    def _updated_page(
        self, rows: Sequence[Mapping[str, Any]], row_ids: pa.Array
    ) -> tuple[Page, list[int]]:
        values = [
            pa.array([row[column.name.lower()] for row in rows], column.type.arrow)
            for column in self.updated
        ]
        arrays = [*values, row_ids]
        channels = [(index + self.rotated) % len(arrays) for index in range(len(arrays))]
        ordered = [
            array
            for _, array in sorted(zip(channels, arrays, strict=True), key=lambda pair: pair[0])
        ]
        return (
            pa.RecordBatch.from_arrays(ordered, names=[f"channel{i}" for i in range(len(ordered))]),
            channels,
        )

    def attempt_split(self, split: Any, number: int, changes: Changes) -> list[bytes]:
        """Run a split to its end; return its fragments."""
        source = self.source(split, number)
        try:
            self.change(source, changes)
            return given(source.finish())
        except BaseException:
            source.abort()
            raise
        finally:
            source.close()

    def finish_change(self, fragments: Collection[bytes]) -> None:
        getattr(self.metadata, f"finish_{self.verb}")(self.session, self.changed_handle, fragments)

    def run_change(self, changes: Changes) -> None:
        self.begin_change(changes)
        self.finish_change(
            [
                f
                for n, split in enumerate(self.opened())
                for f in self.attempt_split(split, n, changes)
            ]
        )


class UpdatableChecks(ContractStore):
    """Requirements of updatable page sources; skipped without them."""

    varies: ClassVar[Collection[str]] = ("layout",)

    @pytest.fixture
    def older(self, filled_table: FilledTable) -> FilledTable:
        statement = filled_table.statement()
        try:
            statement.metadata.get_delete_row_id_column_handle(statement.session, statement.handle)
        except RowMergeError as error:
            if error.code != "NOT_SUPPORTED":
                raise
            pytest.skip(
                f"the connector has no updatable page sources, which are optional: {error.message}"
            )
        finally:
            statement.rollback()
        return filled_table

    def updates(self, filled_table: FilledTable, *numbers: int) -> Changes:
        """Return updates of all columns except those of the insert layout, which a connector may
        refuse to update.
        """
        statement = filled_table.statement()
        layout = statement.metadata.get_insert_layout(statement.session, statement.handle)
        statement.rollback()
        placing = (
            {name.lower() for name in layout.partition_columns} if layout is not None else set()
        )
        new = {
            n: {c: v for c, v in self.new_values(n).items() if c.lower() not in placing}
            for n in numbers
        }
        if not all(new.values()):
            pytest.skip("every column of this table decides where a row is stored")
        return Changes(updated=[(self.key(n), new[n]) for n in numbers])

    def test_page_sources_delete_the_named_rows_and_no_other(self, older: FilledTable) -> None:
        self._changes(older, Changes(deleted=(self.key(1), self.key(5), self.key(14))))

    @pytest.mark.parametrize("rotated", [0, 1, 2])
    def test_page_sources_update_the_assigned_columns_whatever_the_order_of_channels(
        self, older: FilledTable, rotated: int
    ) -> None:
        self._changes(older, self.updates(older, 2, 5, 13), rotated)

    def test_page_sources_that_change_nothing_leave_the_table_as_it_was(
        self, older: FilledTable
    ) -> None:
        self._changes(older, Changes(deleted=(self.key(99),)))
        statement = self._statement(older)
        statement.begin_change(Changes())
        statement.finish_change([])
        statement.commit()
        older.must_be_unchanged()

    def test_what_page_sources_change_is_not_visible_before_the_commit(
        self, older: FilledTable
    ) -> None:
        changes = Changes(deleted=(self.key(3),))
        statement = self._statement(older)
        statement.begin_change(changes)
        fragments = [
            f
            for n, split in enumerate(statement.opened())
            for f in statement.attempt_split(split, n, changes)
        ]
        older.must_be_unchanged("a reader sees the rows of a finished page source")
        statement.finish_change(fragments)
        assert older.connector.commits_in_finish or older.unchanged(), (
            "a reader sees the result of the finish call before the commit"
        )
        statement.commit()
        older.must_hold(changes)

    def test_a_rollback_undoes_what_page_sources_have_changed(self, older: FilledTable) -> None:
        changes = Changes(deleted=(self.key(3), self.key(4)))
        statement = self._statement(older)
        statement.begin_change(changes)
        for number, split in enumerate(statement.opened()):
            statement.attempt_split(split, number, changes)
            for aborted in (True, False):
                source = statement.source(split, number)
                statement.change(source, changes, pages=1)
                if aborted:
                    source.abort()
                source.close()
        statement.rollback()
        older.must_be_unchanged()
        older.must_have_left_nothing()

    def test_of_several_attempts_at_a_split_the_one_whose_fragments_arrive_counts(
        self, older: FilledTable
    ) -> None:
        changes = Changes(deleted=(self.key(3), self.key(8)))
        statement = self._statement(older)
        statement.begin_change(changes)
        fragments: list[bytes] = []
        for number, split in enumerate(statement.opened()):
            statement.attempt_split(split, number, Changes(deleted=(self.key(1),)))
            fragments += statement.attempt_split(split, number, changes)
            statement.attempt_split(split, number, changes)
        statement.finish_change(fragments)
        statement.commit()
        older.must_hold(changes)
        older.must_have_left_nothing()

    def test_of_two_updates_by_page_sources_none_is_lost(self, older: FilledTable) -> None:
        """The second one fails, since it read the old row."""
        first, second = self._statement(older), self._statement(older)
        changes = self.updates(older, 3)
        first.run_change(changes)
        key, new = changes.updated[0]
        late = Changes(updated=[(key, {name: self.new_values(4)[name] for name in new})])
        second.begin_change(late)
        fragments = [
            f
            for n, split in enumerate(second.opened())
            for f in second.attempt_split(split, n, late)
        ]
        first.commit()
        with pytest.raises(RowMergeError) as error_info:
            self._ended(second, fragments)
        second.rollback()
        assert error_info.value.code == "TRANSACTION_CONFLICT"
        older.must_hold(changes)

    @pytest.mark.parametrize("step", [*DELETE_STEPS, *UPDATE_STEPS])
    def test_a_fault_at_any_step_of_the_older_flow_leaves_the_table_as_it_was(
        self, older: FilledTable, step: str
    ) -> None:
        if step in {"finish_delete", "finish_update"} and older.connector.commits_in_finish:
            pytest.skip(f"commits_in_finish = True: {step} is the commit")
        changes = (
            self.updates(older, 3, 4)
            if step in UPDATE_STEPS
            else Changes(deleted=(self.key(3), self.key(4)))
        )
        statement = self._statement(
            older, FaultyConnector(older.connector, Fault(step, after=True))
        )
        with pytest.raises(OSError, match="the disk is full"):
            statement.run_change(changes)
        statement.rollback()
        older.must_be_unchanged()
        older.must_have_left_nothing()
        self._changes(older, changes)

    @staticmethod
    def _ended(statement: UpdatableStatement, fragments: list[bytes]) -> None:
        statement.finish_change(fragments)
        statement.commit()

    def _changes(self, filled_table: FilledTable, changes: Changes, rotated: int = 0) -> None:
        statement = self._statement(filled_table)
        statement.rotated = rotated
        try:
            statement.run_change(changes)
            statement.commit()
        except BaseException:
            statement.rollback()
            raise
        filled_table.must_hold(changes)
        filled_table.must_have_left_nothing()

    def _statement(self, filled_table: FilledTable, connector: Any = None) -> UpdatableStatement:
        return UpdatableStatement(
            connector or filled_table.connector,
            self.name(),
            filled_table.way.era,
            filled_table.way.paradigm,
        )
