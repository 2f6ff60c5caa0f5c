"""Checks of a MERGE that adds columns together with its rows, for connectors with
``evolves_tables``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, ClassVar, Final

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.connector import Connector
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.testing.contract.contract_statement import (
    Changes,
    PageStatement,
    Row,
    expected_rows,
)
from rowmerge_nb.testing.contract.differences import must_be, must_be_same, same_rows
from rowmerge_nb.testing.contract.sample_values import numbered_value, stored_values
from rowmerge_nb.testing.contract.store_under_test import ContractStore, FilledTable, in_order
from rowmerge_nb.testing.faults import Fault, FaultyConnector

NEW: Final = "added_by_merge"
WAITED: Final = 1.0
"""Seconds to wait for a reader; a later one waited for the commit, which is allowed."""
ENDS: Final = [
    pytest.param("finish_merge", False, id="finish_merge before it works"),
    pytest.param("finish_merge", True, id="finish_merge after it worked"),
    pytest.param("commit", False, id="commit before it works"),
]


NARROW: Final = {"id": "bigint", "n": "integer", "a": "row(x integer)"}
WIDE: Final = {"id": "bigint", "n": "bigint", "a": "row(x integer, y bigint)"}
NARROW_ROW: Final = (1, 7, {"x": 1})
WIDE_ROW: Final = (2, 5_000_000_000, {"x": 2, "y": 5_000_000_000})
ALL_ROWS: Final = [(1, 7, {"x": 1, "y": None}), WIDE_ROW]


class EvolutionChecks(ContractStore):
    """``MERGE WITH SCHEMA EVOLUTION``: reads of its handle, its commit, and failures."""

    varies: ClassVar[Collection[str]] = ("layout",)

    def test_new_columns_come_with_the_rows(self, filled_table: FilledTable) -> None:
        """With one commit: earlier readers see neither, or wait."""
        statement = self._evolving(filled_table)
        statement.merge(self._evolved_changes())
        with ThreadPoolExecutor(1) as readers:
            reading = readers.submit(self._state, filled_table)
            with suppress(TimeoutError):
                reading.result(WAITED)
            statement.commit()
            observed = reading.result()
        columns, rows = self._state(filled_table)
        must_be("the columns after the commit", columns, [*self.columns, NEW])
        must_be_same("the rows after the commit", rows, self._expected(filled_table))
        old, new = (list(self.columns), filled_table.stored(filled_table.before)), (columns, rows)
        assert any(
            observed[0] == names and same_rows(observed[1], values) for names, values in (old, new)
        ), (
            f"a reader during the commit saw the columns {', '.join(observed[0])} with"
            f" the rows {observed[1]}"
        )
        filled_table.must_have_left_nothing()

    def test_a_new_column_is_null_until_it_is_written(self, filled_table: FilledTable) -> None:
        statement = self._evolving(filled_table)
        new_column = statement.metadata.get_table_metadata(
            statement.session, statement.handle
        ).columns[-1]
        rows = in_order(statement.rows())
        statement.rollback()
        assert new_column.nullable, (
            f"column '{new_column.name}' is NOT NULL, which no old row satisfies"
        )
        must_be_same(
            "the rows before they are changed",
            rows,
            in_order([(*row, None) for row in filled_table.stored(filled_table.before)]),
        )
        self._must_be_as_it_was(filled_table)

    def test_new_columns_come_without_rows_too(self, filled_table: FilledTable) -> None:
        statement = self._evolving(filled_table)
        statement.begin()
        statement.finish([])
        statement.commit()
        columns, rows = self._state(filled_table)
        must_be("the columns after the commit", columns, [*self.columns, NEW])
        must_be_same(
            "the rows after the commit",
            rows,
            in_order([(*row, None) for row in filled_table.stored(filled_table.before)]),
        )
        filled_table.must_have_left_nothing()

    @pytest.mark.parametrize(("step", "after"), ENDS)
    def test_a_fault_leaves_columns_and_rows_as_they_were(
        self, filled_table: FilledTable, step: str, *, after: bool
    ) -> None:
        if filled_table.connector.commits_in_finish and (step == "commit" or after):
            pytest.skip("commits_in_finish = True: finish_merge is the commit")
        statement = self._evolving(
            filled_table, FaultyConnector(filled_table.connector, Fault(step, after=after))
        )
        with pytest.raises(OSError, match="the disk is full"):
            self._merge(statement)
        statement.rollback()
        self._must_be_as_it_was(filled_table)
        again = self._evolving(filled_table)
        self._merge(again)
        must_be_same(
            "the rows of the next attempt",
            self._state(filled_table)[1],
            self._expected(filled_table),
        )

    def test_columns_that_were_altered_meanwhile_are_a_conflict(
        self, filled_table: FilledTable
    ) -> None:
        """The second of two statements that add a column gets TRANSACTION_CONFLICT."""
        new = (*self.row(31), numbered_value(self._type(), 31))
        late, first = self._evolving(filled_table), self._evolving(filled_table)
        first.merge(Changes(inserted=(new,)))
        first.commit()
        with pytest.raises(RowMergeError) as error_info:
            self._merge(late)
        late.rollback()
        assert error_info.value.code == "TRANSACTION_CONFLICT"
        columns, rows = self._state(filled_table)
        must_be("the columns of the first statement", columns, [*self.columns, NEW])
        must_be_same(
            "the rows of the first statement",
            rows,
            in_order(
                [
                    *((*row, None) for row in filled_table.stored(filled_table.before)),
                    *self._stored([new]),
                ]
            ),
        )
        filled_table.must_have_left_nothing()

    def test_wider_types_and_fields_come_with_the_rows(self, connector: Connector) -> None:
        """For ``evolves_types``: old rows keep their values, and have NULL in new fields."""
        self._require_evolved_types(connector)
        width = self._make_narrow(connector)
        statement = PageStatement(connector, self.name())
        statement.evolve(*_columns(WIDE)[:width])
        wide_table = statement.metadata.get_table_metadata(statement.session, statement.handle)
        must_be("the types of the evolved handle", _types(wide_table), _parsed(WIDE, width))
        statement.merge(Changes(inserted=[WIDE_ROW[:width]]))
        must_be("the types before the commit", self._types(connector), _parsed(NARROW, width))
        statement.commit()
        must_be("the types after the commit", self._types(connector), _parsed(WIDE, width))
        statement = PageStatement(connector, self.name())
        rows = sorted(statement.read().to_pylist(), key=lambda row: str(row["id"]))
        statement.rollback()
        expected = [row[:width] for row in ALL_ROWS]
        must_be("the rows after the commit", [tuple(row.values()) for row in rows], expected)

    def test_a_rollback_leaves_types_as_they_were(self, connector: Connector) -> None:
        self._require_evolved_types(connector)
        width = self._make_narrow(connector)
        statement = PageStatement(connector, self.name())
        statement.evolve(*_columns(WIDE)[:width])
        statement.merge(Changes(inserted=[WIDE_ROW[:width]]))
        statement.rollback()
        must_be("the types after a rollback", self._types(connector), _parsed(NARROW, width))

    def _require_evolved_types(self, connector: Connector) -> None:
        transaction = connector.begin_transaction()
        evolves_types = connector.get_metadata(transaction).evolves_types
        connector.rollback(transaction)
        if not evolves_types:
            pytest.skip("evolves_types = False: a MERGE changes no types")

    def _make_narrow(self, connector: Connector) -> int:
        for width in (len(NARROW), len(NARROW) - 1):
            metadata = ConnectorTableMetadata(
                self.name(), _columns(NARROW)[:width], self.evolution_properties
            )
            try:
                self.make_table(connector, metadata, [NARROW_ROW[:width]])
            except RowMergeError as error:
                if error.code != "NOT_SUPPORTED":
                    raise
            else:
                return width
        pytest.skip("CREATE TABLE refuses a bigint with an integer")

    def _types(self, connector: Connector) -> dict[str, str]:
        statement = PageStatement(connector, self.name())
        try:
            return _types(
                statement.metadata.get_table_metadata(statement.session, statement.handle)
            )
        finally:
            statement.rollback()

    def _evolving(self, filled_table: FilledTable, connector: Any = None) -> PageStatement:
        statement = filled_table.statement(connector)
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
        some, sql_type = self.some_changes(), self._type()
        updated = [*some.updated, (self.key(7), {NEW: numbered_value(sql_type, 7)})]
        return Changes(
            some.deleted,
            updated,
            [(*row, numbered_value(sql_type, n)) for n, row in enumerate(some.inserted)],
        )

    def _expected(self, filled_table: FilledTable) -> list[Row]:
        before = [(*row, None) for row in filled_table.before]
        return in_order(
            self._stored(expected_rows(before, [*self.columns, NEW], self._evolved_changes()))
        )

    def _stored(self, rows: list[Row]) -> list[Row]:
        types = [*map(parse_type, self.columns.values()), self._type()]
        return list(
            zip(
                *(
                    stored_values(values, of)
                    for values, of in zip(zip(*rows, strict=True), types, strict=True)
                ),
                strict=True,
            )
        )

    def _state(self, filled_table: FilledTable) -> tuple[list[str], list[Row]]:
        statement = PageStatement(filled_table.connector, self.name())
        try:
            original_names = {column.lower(): column for column in self.columns}
            names = [column.name for column in statement.columns]
            return [original_names.get(name.lower(), name) for name in names], in_order(
                statement.rows()
            )
        finally:
            statement.rollback()

    def _must_be_as_it_was(self, filled_table: FilledTable) -> None:
        columns, rows = self._state(filled_table)
        must_be("the columns", columns, list(self.columns))
        must_be_same("the rows", rows, in_order(filled_table.stored(filled_table.before)))
        filled_table.must_have_left_nothing()


def _columns(types: Mapping[str, str]) -> tuple[ColumnMetadata, ...]:
    return tuple(ColumnMetadata(name, parse_type(text)) for name, text in types.items())


def _types(metadata: ConnectorTableMetadata) -> dict[str, str]:
    return {column.name: str(column.type) for column in metadata.columns}


def _parsed(types: Mapping[str, str], width: int) -> dict[str, str]:
    return {name: str(parse_type(text)) for name, text in list(types.items())[:width]}
