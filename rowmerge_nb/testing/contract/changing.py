"""Checks of changes: after every statement the table has the rows that it should have, in both eras and every paradigm."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import TYPE_CHECKING, ClassVar

import pytest

from rowmerge_nb.errors import RowMergeError
from rowmerge_nb.spi.operations import RowChangeParadigm
from rowmerge_nb.testing.contract.differences import must_be
from rowmerge_nb.testing.contract.reading import ReadingChecks, read_by_key, typed
from rowmerge_nb.testing.contract.statement import Changes
from rowmerge_nb.testing.contract.store import FilledTable
from rowmerge_nb.testing.contract.values import awkward_values

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
        column = list(self.columns)[1]
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
        new = (self.key(3), *self.new_values(3).values())
        changes = Changes(deleted=(self.key(3),), inserted=(new,))
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
        changes = Changes((self.key(21), self.key(3)), ((self.key(5), self.new_values(6)),), (self.row(2), self.row(26)))
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
        again = (self.key(2), *self.new_values(2).values())
        changes = Changes(some.deleted, [*some.updated, *moved], [*some.inserted, again])
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
            versions = [(self.key(3), *self.new_values(number).values()) for number in (3, 4)]
            filled.must_have([row for row in filled.before if row[0] != self.key(3)] + versions)

    def test_values_of_every_type_are_inserted_and_updated(self, connector: Connector, type_name: str) -> None:
        """By a MERGE, at the type's edges, from NULL and to NULL."""
        values = awkward_values(type_name)
        table = self.typed_table(connector, type_name, [(0, values[0]), (1, None), (2, None)])
        changes = Changes(
            updated=((0, {"value": None}), (1, {"value": values[-1]})),
            inserted=tuple((3 + number, value) for number, value in enumerate([*values, None])),
        )
        table.merge(changes)
        table.commit()
        again = type(table)(connector, table.name)
        must_be(f"values of {type_name}", typed(read_by_key(again)), typed([None, values[-1], None, *values, None]))

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
