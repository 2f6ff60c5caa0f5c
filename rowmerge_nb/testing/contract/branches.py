"""Checks of branches of tables, for connectors with ``keeps_branches``."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, Final

import pytest

from rowmerge_nb.base.errors import RowMergeError, error_text
from rowmerge_nb.spi.alterations import Alteration, CreateBranch, DropBranch, FastForwardBranch
from rowmerge_nb.spi.handles import ConnectorTableVersion, PointerType
from rowmerge_nb.testing.contract.contract_statement import PageStatement
from rowmerge_nb.testing.contract.differences import must_be, must_be_same
from rowmerge_nb.testing.contract.store_under_test import ContractStore, FilledTable, in_order

BRANCH: Final = "audit"
MAIN: Final = "main"


class BranchChecks(ContractStore):
    """A MERGE into a branch, its fast forward, and branches that do not exist."""

    varies: ClassVar[Collection[str]] = ("layout",)

    def test_a_branch_changes_alone_until_the_fast_forward(self, filled_table: FilledTable) -> None:
        self._alter(filled_table, CreateBranch(BRANCH))
        statement = self._begun(filled_table)
        branches = statement.metadata.list_branches(statement.session, statement.handle)
        statement.rollback()
        must_be("the branches of the table", [*branches], [BRANCH, MAIN])
        statement = self._in_branch(filled_table)
        must_be_same(
            "the rows of a new branch",
            in_order(statement.rows()),
            in_order(filled_table.stored(filled_table.before)),
        )
        statement.merge(self.some_changes())
        statement.commit()
        filled_table.must_be_unchanged("a MERGE into a branch has changed the table")
        statement = self._in_branch(filled_table)
        rows = in_order(statement.rows())
        statement.rollback()
        must_be_same("the rows of the branch", rows, filled_table.expected(self.some_changes()))
        self._alter(filled_table, FastForwardBranch(MAIN, BRANCH))
        filled_table.must_hold(self.some_changes(), "the fast forward has not moved the table")
        filled_table.must_have_left_nothing()

    def test_a_rollback_leaves_the_branch_as_it_was(self, filled_table: FilledTable) -> None:
        self._alter(filled_table, CreateBranch(BRANCH))
        statement = self._in_branch(filled_table)
        statement.merge(self.some_changes())
        statement.rollback()
        statement = self._in_branch(filled_table)
        rows = in_order(statement.rows())
        statement.rollback()
        must_be_same(
            "the rows of the branch", rows, in_order(filled_table.stored(filled_table.before))
        )
        filled_table.must_have_left_nothing()

    def test_a_missing_branch_is_reported(self, filled_table: FilledTable) -> None:
        """Before its creation, and after its removal."""
        self._must_be_missing(filled_table)
        self._alter(filled_table, CreateBranch(BRANCH))
        self._alter(filled_table, DropBranch(BRANCH))
        self._must_be_missing(filled_table)

    def _must_be_missing(self, filled_table: FilledTable) -> None:
        statement = self._begun(filled_table)
        try:
            with pytest.raises(RowMergeError) as error_info:
                self._look_up(statement)
        finally:
            statement.rollback()
        assert error_info.value.code == "BRANCH_NOT_FOUND", (
            f"a missing branch is {error_info.value.code}, not BRANCH_NOT_FOUND"
        )

    def _alter(self, filled_table: FilledTable, change: Alteration) -> None:
        statement = self._begun(filled_table)
        try:
            statement.metadata.alter_table(statement.session, statement.handle, change)
            statement.commit()
        except Exception as error:
            statement.rollback()
            raise AssertionError(
                f"keeps_branches = True, but alter_table refuses {change}: {error_text(error)}"
            ) from error

    def _in_branch(self, filled_table: FilledTable) -> PageStatement:
        statement = self._begun(filled_table)
        try:
            self._look_up(statement)
        except Exception as error:
            statement.rollback()
            raise AssertionError(
                "keeps_branches = True, but get_versioned_table_handle refuses branch"
                f" '{BRANCH}': {error_text(error)}"
            ) from error
        return statement

    @staticmethod
    def _look_up(statement: PageStatement) -> None:
        statement.handle = statement.metadata.get_versioned_table_handle(
            statement.session,
            statement.name,
            ConnectorTableVersion(BRANCH, PointerType.BRANCH),
        )

    @staticmethod
    def _begun(filled_table: FilledTable) -> PageStatement:
        statement = filled_table.statement()
        if not statement.metadata.keeps_branches:
            statement.rollback()
            pytest.skip("keeps_branches = False: tables have no branches")
        return statement
