"""Checks of reading and restoring former versions, for connectors with ``keeps_versions``."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

import pytest

from rowmerge_nb.base.errors import RowMergeError
from rowmerge_nb.spi.handles import ConnectorTableVersion
from rowmerge_nb.testing.contract.contract_statement import Changes, PageStatement, Row
from rowmerge_nb.testing.contract.differences import same_rows
from rowmerge_nb.testing.contract.store_under_test import ContractStore, FilledTable, in_order


class VersionChecks(ContractStore):
    """Committed versions can be read, and restored unless the table has changed meanwhile."""

    varies: ClassVar[Collection[str]] = ("layout",)

    def test_a_former_version_is_read_as_it_was(self, filled_table: FilledTable) -> None:
        version = self._version(filled_table)
        filled_table.merge(self.some_changes())
        statement = filled_table.statement()
        statement.handle = statement.metadata.get_versioned_table_handle(
            statement.session, statement.name, version
        )
        assert statement.handle is not None, "the table exists, but its version does not"
        former_rows = in_order(statement.rows())
        row_count = statement.metadata.row_count(statement.session, statement.handle)
        statement.handle = statement.metadata.get_table_handle(statement.session, statement.name)
        present = in_order(statement.rows())
        statement.rollback()
        assert same_rows(former_rows, filled_table.stored(filled_table.before)), (
            "an earlier version has different rows than it had"
        )
        assert row_count in {None, len(former_rows)}, "row_count of an earlier version has changed"
        assert same_rows(present, filled_table.expected(self.some_changes())), (
            "the current version has different rows after an earlier one was looked up"
        )

    def test_a_former_version_becomes_the_table_again(self, filled_table: FilledTable) -> None:
        before = self._version(filled_table)
        filled_table.merge(self.some_changes())
        after = self._version(filled_table)
        statement = self._restoring(filled_table, before)
        filled_table.must_hold(self.some_changes(), "a reader sees a version that is not committed")
        statement.commit()
        filled_table.must_be_unchanged("the restored version has different rows than it had")
        self._restoring(filled_table, after).commit()
        filled_table.must_hold(self.some_changes())
        filled_table.must_have_left_nothing()

    def test_a_version_is_not_put_back_over_a_change(self, filled_table: FilledTable) -> None:
        """A statement that began before the change gets a TRANSACTION_CONFLICT."""
        before = self._version(filled_table)
        filled_table.merge(self.some_changes())
        restoring = self._restoring(filled_table, before)
        late = Changes(inserted=(self.row(31),))
        expected = self._with(filled_table, late)
        filled_table.merge(late)
        with pytest.raises(RowMergeError) as error_info:
            restoring.commit()
        restoring.rollback()
        assert error_info.value.code == "TRANSACTION_CONFLICT"
        filled_table.must_have(expected, "a change is lost")
        filled_table.must_have_left_nothing()

    def test_a_version_that_is_not_kept_is_refused(self, filled_table: FilledTable) -> None:
        """With INVALID_ARGUMENTS."""
        self._version(filled_table)
        statement = filled_table.statement()
        metadata = statement.metadata
        session = statement.session
        strange = ConnectorTableVersion(-1)
        with pytest.raises(RowMergeError) as read:
            metadata.get_versioned_table_handle(session, statement.name, strange)
        with pytest.raises(RowMergeError) as restored:
            metadata.restore_table(session, statement.handle, strange)
        assert [error_info.value.code for error_info in (read, restored)] == [
            "INVALID_ARGUMENTS"
        ] * 2
        statement.rollback()
        filled_table.must_be_unchanged()

    def _version(self, filled_table: FilledTable) -> ConnectorTableVersion:
        statement = filled_table.statement()
        keeps = statement.metadata.keeps_versions
        version = statement.metadata.get_table_version(statement.session, statement.handle)
        statement.rollback()
        if not keeps:
            pytest.skip("keeps_versions = False: earlier versions are not kept")
        assert version is not None, "get_table_version returned None for a table with rows"
        return version

    def _restoring(
        self, filled_table: FilledTable, version: ConnectorTableVersion
    ) -> PageStatement:
        statement = filled_table.statement()
        statement.metadata.restore_table(statement.session, statement.handle, version)
        return statement

    def _with(self, filled_table: FilledTable, late: Changes) -> list[Row]:
        return in_order([*filled_table.expected(self.some_changes()), *late.inserted])
