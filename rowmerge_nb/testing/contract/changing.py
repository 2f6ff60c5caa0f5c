"""Checks of changes: after every statement the table has the rows that it should have, in both eras and every paradigm."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.operations import RowChangeParadigm
from rowmerge_nb.testing.contract.contract_statement import Changes, PageStatement, expected_rows
from rowmerge_nb.testing.contract.reading_checks import ReadingChecks
from rowmerge_nb.testing.contract.store_under_test import FilledTable, Way

if TYPE_CHECKING:
    from rowmerge_nb.spi.connector import Connector


class ChangeChecks(ReadingChecks):
    """What a store that is changed must do."""

    varies: ClassVar[Collection[str]] = ("layout", "era", "paradigm")

    def test_a_delete_removes_the_named_rows_and_no_other(self, filled: FilledTable) -> None:
        """Rows that hold NULL included."""
        changes = Changes(deleted=(self.key(1), self.key(5), self.key(14)))
        filled.merge(changes)
        filled.must_hold(changes)

    def test_an_update_changes_the_assigned_columns_and_no_other(self, filled: FilledTable) -> None:
        """One column of one row."""
        column = list(self.columns)[-1]
        changes = Changes(updated=((self.key(4), {column: self.new_values(4)[column]}),))
        filled.merge(changes)
        filled.must_hold(changes)

    def test_an_update_may_set_the_key(self, filled: FilledTable) -> None:
        """Of the first column, which identifies rows here and perhaps in the store."""
        first = next(iter(self.columns))
        changes = Changes(updated=((self.key(4), {first: self.key(30)}),))
        filled.merge(changes)
        filled.must_hold(changes)

    def test_an_insert_by_merge_adds_rows_and_keeps_all_others(self, filled: FilledTable) -> None:
        """A row with NULL among them."""
        changes = Changes(inserted=(self.row(21), self.row(25)))
        filled.merge(changes)
        filled.must_hold(changes)

    def test_a_merge_deletes_updates_and_inserts_the_right_rows(self, filled: FilledTable) -> None:
        """Two clauses that update, NULL written and overwritten."""
        filled.merge(self.some_changes())
        filled.must_hold(self.some_changes())
        filled.must_have_left_nothing()

    def test_a_row_is_replaced_by_another_one_of_the_same_key(self, filled: FilledTable) -> None:
        """Deleted and inserted by one statement."""
        changes = Changes(deleted=(self.key(3),), inserted=(self.row(3, shift=20),))
        filled.merge(changes)
        filled.must_hold(changes)

    def test_all_rows_are_deleted_and_new_ones_inserted(self, filled: FilledTable) -> None:
        """Until the table is empty, and afterwards."""
        filled.merge(Changes(deleted=tuple(row[0] for row in filled.before)))
        filled.must_have([])
        filled.merge(Changes(inserted=(self.row(1), self.row(2))))
        filled.must_have([self.row(1), self.row(2)])

    def test_statements_follow_one_another(self, filled: FilledTable) -> None:
        """Rows that were updated are updated again, rows that were inserted are deleted."""
        filled.merge(self.some_changes())
        filled.before = filled.contents()
        again = (self.new_key(5), self.new_values(6))
        changes = Changes((self.key(21), self.new_key(3)), (again,), (self.row(2), self.row(26)))
        filled.merge(changes)
        filled.must_hold(changes)

    def test_keys_may_be_exchanged(self, filled: FilledTable) -> None:
        """Between two rows, and passed on along several."""
        first = next(iter(self.columns))
        pairs = ((3, 4), (4, 3), (6, 7), (7, 8), (8, 40))
        changes = Changes(updated=[(self.key(old), {first: self.key(new)}) for old, new in pairs])
        filled.merge(changes)
        filled.must_hold(changes)

    @pytest.mark.parametrize("order", ["reversed", "shuffled"])
    def test_any_order_of_rows_and_any_cut_of_pages_gives_the_same_table(self, filled: FilledTable, order: str) -> None:
        """The order of pages and fragments is indeterminate too: a key's new row may come before its old one goes."""
        some, first = self.some_changes(), next(iter(self.columns))
        moved = [(self.key(6), {first: self.key(7)}), (self.key(7), {first: self.key(6)})]
        changes = Changes(some.deleted, [*some.updated, *moved], [*some.inserted, self.row(2, shift=20)])
        statement = filled.statement()
        statement.begin(changes)
        fragments: list[bytes] = []
        for writer, pages in statement.sink_pages(changes).items():
            rows = [page.slice(i, 1) for page in pages for i in range(page.num_rows)][::-1]
            if order == "shuffled":
                random.Random(writer).shuffle(rows)  # noqa: S311 - any order will do
            fragments += statement.attempt(writer, rows)
        statement.finish(fragments[::-1])
        statement.commit()
        filled.must_hold(changes)

    def test_of_two_equal_rows_only_the_named_one_is_deleted(self, filled: FilledTable) -> None:
        """The row id tells them apart, not their values."""
        if self.keyed:
            pytest.skip("keyed = True: no two rows of this connector are equal")
        filled.merge(Changes(inserted=(filled.before[0], filled.before[0])))
        filled.merge(Changes(deleted=(self.key(1),)))
        filled.must_have([*filled.before, filled.before[0]])

    def test_two_updates_of_one_row_leave_two_versions_or_are_refused(self, filled: FilledTable) -> None:
        """The engine lets two clauses act on one row of a table that deletes and inserts, as Trino does."""
        changes = Changes(updated=((self.key(3), self.new_values(3)), (self.key(3), self.new_values(4))))
        statement = filled.statement()
        try:
            statement.begin(changes)
            paradigm = statement.metadata.get_row_change_paradigm(statement.session, statement.handle)
            if paradigm is RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS:
                pytest.skip("rows are changed in place: the engine refuses two changes of one row before the connector sees them")
            statement.finish(statement.store(changes))
            statement.commit()
        except RowMergeError:
            statement.rollback()
            filled.must_be_unchanged()
        except BaseException:
            statement.rollback()
            raise
        else:
            rest = expected_rows(filled.before, list(self.columns), Changes(deleted=(self.key(3),)))
            versions = [
                row
                for new in changes.updated
                for row in expected_rows([self.row(3)], list(self.columns), Changes(updated=(new,)))
            ]
            filled.must_have([*rest, *versions])

    def test_rows_with_null_in_the_first_column_are_changed_like_others(self, connector: Connector, way: Way) -> None:
        """One of them is updated and deleted, and others are inserted, by both kinds of statements, one with NULL everywhere."""
        filled = self._with_null_key(connector, way)
        columns = list(self.columns)
        assigned = {columns[-1]: self.row(9)[-1]}
        filled.merge(Changes(updated=((None, assigned),)))
        filled.must_hold(Changes(updated=((None, assigned),)))
        filled.before = filled.contents()
        filled.merge(Changes(deleted=(self.key(2),) if len(columns) == 1 else (None, self.key(2))))
        rest = [self.row(number) for number in (1, 3, *([9] if len(columns) == 1 else []))]
        filled.must_have(rest)
        new = [(None, *self.row(8)[1:]), (None, *self.row(25)[1:]), self.row(26)]
        filled.merge(Changes(inserted=new))
        filled.must_have([*rest, *new])
        if self.inserts:
            statement = filled.statement()
            statement.insert(new[:2])
            statement.commit()
            filled.must_have([*rest, *new, *new[:2]])

    def _with_null_key(self, connector: Connector, way: Way) -> FilledTable:
        """Make a table of three rows with a key and one without; skip the check where the first column is never NULL."""
        if self.keyed or not self.creates_tables:
            pytest.skip("keyed = True or creates_tables = False: the first column is never NULL")
        before = [*(self.row(number) for number in (1, 2, 3)), (None, *self.row(7)[1:])]
        metadata = self.metadata(way.layout, nullable_key=True)
        try:
            self.create_table(connector, metadata)
        except RowMergeError as error:
            if error.code != "NOT_SUPPORTED":
                raise
            pytest.skip(f"CREATE TABLE refuses a first column that may be NULL: {error.message}")
        statement = PageStatement(connector, metadata.name)
        statement.merge(Changes(inserted=before))
        statement.commit()
        filled = FilledTable(self, connector, way, before)
        filled.must_be_unchanged()
        return filled

    def test_values_of_every_type_are_inserted_and_updated(self, connector: Connector, type_name: str) -> None:
        """By a MERGE, at the type's edges, from NULL and to NULL; of two columns of one type only the assigned one changes."""
        rows = self.typed_rows(connector, type_name)
        first, *others = rows
        table = self.typed_table(connector, type_name, [(0, *first[1:]), (1, None, None), (2, *first[1:]), (3, *first[1:])])
        (_, value, other) = names = [column.name for column in table.columns]
        changes = Changes(
            deleted=(3,),
            updated=((0, {value: None}), (1, {other: others[0][1]}), (2, {value: others[0][1], other: None})),
            inserted=[(10 + row[0], *row[1:]) for row in rows],
        )
        expected = expected_rows([(0, *first[1:]), (1, None, None), (2, *first[1:]), (3, *first[1:])], names, changes)
        table.merge(changes)
        table.commit()
        self.typed_must_have(type(table)(connector, table.name), type_name, expected)

    def test_an_insert_statement_adds_rows(self, filled: FilledTable) -> None:
        """By begin_insert, page sinks and finish_insert."""
        if not self.inserts:
            statement = filled.statement()
            with pytest.raises(RowMergeError, match="does not support") as refused:
                statement.metadata.begin_insert(statement.session, statement.handle, statement.columns)
            statement.rollback()
            assert refused.value.code == "NOT_SUPPORTED"
            return
        new = [self.row(number) for number in (21, 22, 25)]
        statement = filled.statement()
        statement.insert(new)
        statement.commit()
        filled.must_have([*filled.before, *new])
        filled.must_have_left_nothing()
