"""Checks of the rows after statements, in both eras and every paradigm."""

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
    """Requirements of a store that is changed."""

    varies: ClassVar[Collection[str]] = ("layout", "era", "paradigm")

    def test_a_delete_removes_the_named_rows_and_no_other(self, filled_table: FilledTable) -> None:
        changes = Changes(deleted=(self.key(1), self.key(5), self.key(14)))
        filled_table.merge(changes)
        filled_table.must_hold(changes)

    def test_an_update_changes_the_assigned_columns_and_no_other(
        self, filled_table: FilledTable
    ) -> None:
        column = list(self.columns)[-1]
        changes = Changes(updated=((self.key(4), {column: self.new_values(4)[column]}),))
        filled_table.merge(changes)
        filled_table.must_hold(changes)

    def test_an_update_may_set_the_key(self, filled_table: FilledTable) -> None:
        first = next(iter(self.columns))
        changes = Changes(updated=((self.key(4), {first: self.key(30)}),))
        filled_table.merge(changes)
        filled_table.must_hold(changes)

    def test_an_insert_by_merge_adds_rows_and_keeps_all_others(
        self, filled_table: FilledTable
    ) -> None:
        changes = Changes(inserted=(self.row(21), self.row(25)))
        filled_table.merge(changes)
        filled_table.must_hold(changes)

    def test_a_merge_deletes_updates_and_inserts_the_right_rows(
        self, filled_table: FilledTable
    ) -> None:
        filled_table.merge(self.some_changes())
        filled_table.must_hold(self.some_changes())
        filled_table.must_have_left_nothing()

    def test_a_row_is_replaced_by_another_one_of_the_same_key(
        self, filled_table: FilledTable
    ) -> None:
        changes = Changes(deleted=(self.key(3),), inserted=(self.row(3, shift=20),))
        filled_table.merge(changes)
        filled_table.must_hold(changes)

    def test_all_rows_are_deleted_and_new_ones_inserted(self, filled_table: FilledTable) -> None:
        filled_table.merge(Changes(deleted=tuple(row[0] for row in filled_table.before)))
        filled_table.must_have([])
        filled_table.merge(Changes(inserted=(self.row(1), self.row(2))))
        filled_table.must_have([self.row(1), self.row(2)])

    def test_statements_follow_one_another(self, filled_table: FilledTable) -> None:
        filled_table.merge(self.some_changes())
        filled_table.before = filled_table.contents()
        again = (self.new_key(5), self.new_values(6))
        changes = Changes((self.key(21), self.new_key(3)), (again,), (self.row(2), self.row(26)))
        filled_table.merge(changes)
        filled_table.must_hold(changes)

    def test_keys_may_be_exchanged(self, filled_table: FilledTable) -> None:
        first = next(iter(self.columns))
        pairs = ((3, 4), (4, 3), (6, 7), (7, 8), (8, 40))
        changes = Changes(updated=[(self.key(old), {first: self.key(new)}) for old, new in pairs])
        filled_table.merge(changes)
        filled_table.must_hold(changes)

    @pytest.mark.parametrize("order", ["reversed", "shuffled"])
    def test_any_order_of_rows_and_any_cut_of_pages_gives_the_same_table(
        self, filled_table: FilledTable, order: str
    ) -> None:
        """Pages and fragments have no order: a key's new row may precede the deletion of its old
        one.
        """
        some, first = self.some_changes(), next(iter(self.columns))
        moved = [(self.key(6), {first: self.key(7)}), (self.key(7), {first: self.key(6)})]
        changes = Changes(
            some.deleted, [*some.updated, *moved], [*some.inserted, self.row(2, shift=20)]
        )
        statement = filled_table.statement()
        statement.begin(changes)
        fragments: list[bytes] = []
        for writer, pages in statement.sink_pages(changes).items():
            rows = [page.slice(i, 1) for page in pages for i in range(page.num_rows)][::-1]
            if order == "shuffled":
                random.Random(writer).shuffle(rows)  # noqa: S311 - any order will do
            fragments += statement.attempt(writer, rows)
        statement.finish(fragments[::-1])
        statement.commit()
        filled_table.must_hold(changes)

    def test_of_two_equal_rows_only_the_named_one_is_deleted(
        self, filled_table: FilledTable
    ) -> None:
        if self.keyed:
            pytest.skip("keyed = True: no two rows of this connector are equal")
        filled_table.merge(Changes(inserted=(filled_table.before[0], filled_table.before[0])))
        filled_table.merge(Changes(deleted=(self.key(1),)))
        filled_table.must_have([*filled_table.before, filled_table.before[0]])

    def test_two_updates_of_one_row_leave_two_versions_or_are_refused(
        self, filled_table: FilledTable
    ) -> None:
        """Like Trino, the engine allows two clauses to change one row of a table that deletes and
        inserts.
        """
        changes = Changes(
            updated=((self.key(3), self.new_values(3)), (self.key(3), self.new_values(4)))
        )
        statement = filled_table.statement()
        try:
            statement.begin(changes)
            paradigm = statement.metadata.get_row_change_paradigm(
                statement.session, statement.handle
            )
            if paradigm is RowChangeParadigm.CHANGE_ONLY_UPDATED_COLUMNS:
                pytest.skip(
                    "rows are changed in place: the engine refuses two changes of one row before"
                    " the connector sees them"
                )
            statement.finish(statement.store(changes))
            statement.commit()
        except RowMergeError:
            statement.rollback()
            filled_table.must_be_unchanged()
        except BaseException:
            statement.rollback()
            raise
        else:
            rest = expected_rows(
                filled_table.before, list(self.columns), Changes(deleted=(self.key(3),))
            )
            versions = [
                row
                for new in changes.updated
                for row in expected_rows([self.row(3)], list(self.columns), Changes(updated=(new,)))
            ]
            filled_table.must_have([*rest, *versions])

    def test_rows_with_null_in_the_first_column_are_changed_like_others(
        self, connector: Connector, way: Way
    ) -> None:
        filled_table = self._with_null_key(connector, way)
        columns = list(self.columns)
        assigned = {columns[-1]: self.row(9)[-1]}
        filled_table.merge(Changes(updated=((None, assigned),)))
        filled_table.must_hold(Changes(updated=((None, assigned),)))
        filled_table.before = filled_table.contents()
        filled_table.merge(
            Changes(deleted=(self.key(2),) if len(columns) == 1 else (None, self.key(2)))
        )
        rest = [self.row(number) for number in (1, 3, *([9] if len(columns) == 1 else []))]
        filled_table.must_have(rest)
        new = [(None, *self.row(8)[1:]), (None, *self.row(25)[1:]), self.row(26)]
        filled_table.merge(Changes(inserted=new))
        filled_table.must_have([*rest, *new])
        if self.inserts:
            statement = filled_table.statement()
            statement.insert(new[:2])
            statement.commit()
            filled_table.must_have([*rest, *new, *new[:2]])

    def _with_null_key(self, connector: Connector, way: Way) -> FilledTable:
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
        filled_table = FilledTable(self, connector, way, before)
        filled_table.must_be_unchanged()
        return filled_table

    def test_values_of_every_type_are_inserted_and_updated(
        self, connector: Connector, type_name: str
    ) -> None:
        rows = self.typed_rows(connector, type_name)
        first, *others = rows
        table = self.typed_table(
            connector,
            type_name,
            [(0, *first[1:]), (1, None, None), (2, *first[1:]), (3, *first[1:])],
        )
        _, value, other = names = [column.name for column in table.columns]
        changes = Changes(
            deleted=(3,),
            updated=(
                (0, {value: None}),
                (1, {other: others[0][1]}),
                (2, {value: others[0][1], other: None}),
            ),
            inserted=[(10 + row[0], *row[1:]) for row in rows],
        )
        expected = expected_rows(
            [(0, *first[1:]), (1, None, None), (2, *first[1:]), (3, *first[1:])], names, changes
        )
        table.merge(changes)
        table.commit()
        self.typed_must_have(type(table)(connector, table.name), type_name, expected)

    def test_an_insert_statement_adds_rows(self, filled_table: FilledTable) -> None:
        if not self.inserts:
            statement = filled_table.statement()
            with pytest.raises(RowMergeError, match="does not support") as error_info:
                statement.metadata.begin_insert(
                    statement.session, statement.handle, statement.columns
                )
            statement.rollback()
            assert error_info.value.code == "NOT_SUPPORTED"
            return
        new = [self.row(number) for number in (21, 22, 25)]
        statement = filled_table.statement()
        statement.insert(new)
        statement.commit()
        filled_table.must_have([*filled_table.before, *new])
        filled_table.must_have_left_nothing()
