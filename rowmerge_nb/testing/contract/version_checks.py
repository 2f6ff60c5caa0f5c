"""Checks of former versions: read as they were, and put back. A connector claims them by ``keeps_versions``."""

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
    """What was committed once can be read again, and becomes the table again, if nobody has changed that meanwhile."""

    varies: ClassVar[Collection[str]] = ("layout",)

    def test_a_former_version_is_read_as_it_was(self, filled: FilledTable) -> None:
        """Beside the present one, in one transaction."""
        version = self._version(filled)
        filled.merge(self.some_changes())
        statement = filled.statement()
        statement.handle = statement.metadata.get_versioned_table_handle(statement.session, statement.name, version)
        assert statement.handle is not None, "the table is there, and its version is not"
        former, told = in_order(statement.rows()), statement.metadata.row_count(statement.session, statement.handle)
        statement.handle = statement.metadata.get_table_handle(statement.session, statement.name)
        present = in_order(statement.rows())
        statement.rollback()
        assert same_rows(former, filled.stored(filled.before)), "a former version has other rows than it had"
        assert told in {None, len(former)}, "row_count of a former version is another one"
        assert same_rows(present, filled.expected(self.some_changes())), (
            "the present version has other rows once a former one was looked up"
        )

    def test_a_former_version_becomes_the_table_again(self, filled: FilledTable) -> None:
        """With a commit, and not before; what was put back can be taken for a version too."""
        before = self._version(filled)
        filled.merge(self.some_changes())
        after = self._version(filled)
        statement = self._restoring(filled, before)
        filled.must_hold(self.some_changes(), "a reader sees a version that is not committed")
        statement.commit()
        filled.must_be_unchanged("the version that was put back has other rows than it had")
        self._restoring(filled, after).commit()
        filled.must_hold(self.some_changes())
        filled.must_have_left_nothing()

    def test_a_version_is_not_put_back_over_a_change(self, filled: FilledTable) -> None:
        """Whoever has looked the table up before the change gets a TRANSACTION_CONFLICT."""
        before = self._version(filled)
        filled.merge(self.some_changes())
        restoring = self._restoring(filled, before)
        late = Changes(inserted=(self.row(31),))
        expected = self._with(filled, late)
        filled.merge(late)
        with pytest.raises(RowMergeError) as caught:
            restoring.commit()
        restoring.rollback()
        assert caught.value.code == "TRANSACTION_CONFLICT"
        filled.must_have(expected, "a change is lost")
        filled.must_have_left_nothing()

    def test_a_version_that_is_not_kept_is_refused(self, filled: FilledTable) -> None:
        """With INVALID_ARGUMENTS."""
        self._version(filled)
        statement = filled.statement()
        metadata, session, strange = statement.metadata, statement.session, ConnectorTableVersion(-1)
        with pytest.raises(RowMergeError) as read:
            metadata.get_versioned_table_handle(session, statement.name, strange)
        with pytest.raises(RowMergeError) as restored:
            metadata.restore_table(session, statement.handle, strange)
        assert [caught.value.code for caught in (read, restored)] == ["INVALID_ARGUMENTS"] * 2
        statement.rollback()
        filled.must_be_unchanged()

    def _version(self, filled: FilledTable) -> ConnectorTableVersion:
        """Return the present version."""
        statement = filled.statement()
        keeps = statement.metadata.keeps_versions
        version = statement.metadata.get_table_version(statement.session, statement.handle)
        statement.rollback()
        if not keeps:
            pytest.skip("keeps_versions = False: former versions are not kept")
        assert version is not None, "get_table_version gave None of a table with rows"
        return version

    def _restoring(self, filled: FilledTable, version: ConnectorTableVersion) -> PageStatement:
        statement = filled.statement()
        statement.metadata.restore_table(statement.session, statement.handle, version)
        return statement

    def _with(self, filled: FilledTable, late: Changes) -> list[Row]:
        return in_order([*filled.expected(self.some_changes()), *late.inserted])
