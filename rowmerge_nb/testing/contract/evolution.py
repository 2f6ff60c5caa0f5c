"""Checks of a MERGE that adds columns: they come with its rows, or not at all. A connector claims them by ``evolves_tables``."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ClassVar, Final

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.metadata import ColumnMetadata
from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.testing.contract.contract_statement import Changes, PageStatement, Row, expected_rows
from rowmerge_nb.testing.contract.differences import must_be, must_be_same, same_rows
from rowmerge_nb.testing.contract.sample_values import numbered_value, stored_values
from rowmerge_nb.testing.contract.store_under_test import ContractStore, FilledTable, in_order
from rowmerge_nb.testing.faults import Fault, FaultyConnector

NEW: Final = "added_by_merge"
WAITED: Final = 1.0
"""So many seconds a reader is waited for; one that comes back later has waited for the commit, as it may."""
ENDS: Final = [
    pytest.param("finish_merge", False, id="finish_merge before it works"),
    pytest.param("finish_merge", True, id="finish_merge after it worked"),
    pytest.param("commit", False, id="commit before it works"),
]


class EvolutionChecks(ContractStore):
    """``MERGE WITH SCHEMA EVOLUTION``: what its handle reads, what its commit makes, and what a failure leaves."""

    varies: ClassVar[Collection[str]] = ("layout",)

    def test_new_columns_come_with_the_rows(self, filled: FilledTable) -> None:
        """By one commit: who reads before it sees neither, or waits for it."""
        statement = self._evolving(filled)
        statement.merge(self._evolved_changes())
        with ThreadPoolExecutor(1) as readers:
            reading = readers.submit(self._state, filled)
            with suppress(TimeoutError):
                reading.result(WAITED)
            statement.commit()
            seen = reading.result()
        columns, rows = self._state(filled)
        must_be("the columns after the commit", columns, [*self.columns, NEW])
        must_be_same("the rows after the commit", rows, self._expected(filled))
        old, new = (list(self.columns), filled.stored(filled.before)), (columns, rows)
        assert any(seen[0] == names and same_rows(seen[1], values) for names, values in (old, new)), (
            f"a reader beside the commit saw the columns {', '.join(seen[0])} with the rows {seen[1]}"
        )
        filled.must_have_left_nothing()

    def test_a_new_column_is_null_until_it_is_written(self, filled: FilledTable) -> None:
        """Asking for it changes nothing."""
        statement = self._evolving(filled)
        told = statement.metadata.get_table_metadata(statement.session, statement.handle).columns[-1]
        rows = in_order(statement.rows())
        statement.rollback()
        assert told.nullable, f"column '{told.name}' is NOT NULL, which no old row fulfils"
        must_be_same("the rows before they are changed", rows, in_order([(*row, None) for row in filled.stored(filled.before)]))
        self._must_be_as_it_was(filled)

    def test_new_columns_come_without_rows_too(self, filled: FilledTable) -> None:
        """Also where no sink has given a fragment."""
        statement = self._evolving(filled)
        statement.begin()
        statement.finish([])
        statement.commit()
        columns, rows = self._state(filled)
        must_be("the columns after the commit", columns, [*self.columns, NEW])
        must_be_same("the rows after the commit", rows, in_order([(*row, None) for row in filled.stored(filled.before)]))
        filled.must_have_left_nothing()

    @pytest.mark.parametrize(("step", "after"), ENDS)
    def test_a_fault_leaves_columns_and_rows_as_they_were(self, filled: FilledTable, step: str, *, after: bool) -> None:
        """And the statement can be run again."""
        if filled.connector.commits_in_finish and (step == "commit" or after):
            pytest.skip("commits_in_finish = True: finish_merge is the commit")
        statement = self._evolving(filled, FaultyConnector(filled.connector, Fault(step, after=after)))
        with pytest.raises(OSError, match="the disk is full"):
            self._merge(statement)
        statement.rollback()
        self._must_be_as_it_was(filled)
        again = self._evolving(filled)
        self._merge(again)
        must_be_same("the rows of the next attempt", self._state(filled)[1], self._expected(filled))

    def test_columns_that_were_altered_meanwhile_are_a_conflict(self, filled: FilledTable) -> None:
        """Of two statements that add a column, the one that comes second gets TRANSACTION_CONFLICT."""
        new = (*self.row(31), numbered_value(self._type(), 31))
        late, first = self._evolving(filled), self._evolving(filled)
        first.merge(Changes(inserted=(new,)))
        first.commit()
        with pytest.raises(RowMergeError) as caught:
            self._merge(late)
        late.rollback()
        assert caught.value.code == "TRANSACTION_CONFLICT"
        columns, rows = self._state(filled)
        must_be("the columns of the first statement", columns, [*self.columns, NEW])
        must_be_same(
            "the rows of the first statement",
            rows,
            in_order([*((*row, None) for row in filled.stored(filled.before)), *self._stored([new])]),
        )
        filled.must_have_left_nothing()

    def _evolving(self, filled: FilledTable, connector: Any = None) -> PageStatement:
        """Begin a statement on the table with a new column; skip where there is no such statement."""
        statement = filled.statement(connector)
        if not statement.metadata.evolves_tables:
            statement.rollback()
            pytest.skip("evolves_tables = False: a MERGE adds no columns")
        statement.evolve(ColumnMetadata(NEW, self._type()))
        return statement

    def _type(self) -> Any:
        return parse_type(list(self.columns.values())[-1])

    def _merge(self, statement: PageStatement) -> None:
        statement.merge(self._evolved_changes())
        statement.commit()

    def _evolved_changes(self) -> Changes:
        """Return changes of which some write the new column, and some do not."""
        some, kind = self.some_changes(), self._type()
        updated = [*some.updated, (self.key(7), {NEW: numbered_value(kind, 7)})]
        return Changes(some.deleted, updated, [(*row, numbered_value(kind, n)) for n, row in enumerate(some.inserted)])

    def _expected(self, filled: FilledTable) -> list[Row]:
        before = [(*row, None) for row in filled.before]
        return in_order(self._stored(expected_rows(before, [*self.columns, NEW], self._evolved_changes())))

    def _stored(self, rows: list[Row]) -> list[Row]:
        """Return rows with the new column in the form in which they are read."""
        types = [*map(parse_type, self.columns.values()), self._type()]
        return list(
            zip(*(stored_values(values, of) for values, of in zip(zip(*rows, strict=True), types, strict=True)), strict=True)
        )

    def _state(self, filled: FilledTable) -> tuple[list[str], list[Row]]:
        """Return the names of the table's columns, and its rows, as a statement sees them that begins now."""
        statement = PageStatement(filled.connector, self.name())
        try:
            kept = {column.lower(): column for column in self.columns}
            names = [column.name for column in statement.columns]
            return [kept.get(name.lower(), name) for name in names], in_order(statement.rows())
        finally:
            statement.rollback()

    def _must_be_as_it_was(self, filled: FilledTable) -> None:
        columns, rows = self._state(filled)
        must_be("the columns", columns, list(self.columns))
        must_be_same("the rows", rows, in_order(filled.stored(filled.before)))
        filled.must_have_left_nothing()
