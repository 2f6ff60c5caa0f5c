"""Branches: statements that change one, and their creation, removal and fast forward."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, Self

from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.update import (
    AssertRefSnapshotId,
    RemoveSnapshotRefUpdate,
    SetSnapshotRefUpdate,
)

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.spi.alterations import CreateBranch, DropBranch

if TYPE_CHECKING:
    from pyiceberg.table import Transaction
    from pyiceberg.table.metadata import TableMetadata

    from rowmerge_nb.spi import SchemaTableName
    from rowmerge_nb.spi.alterations import FastForwardBranch


class BranchTable(Table):
    """A table whose current snapshot is the head of a branch; its columns are the table's."""

    branch: str

    @classmethod
    def of(cls, table: Table, branch: str, name: SchemaTableName) -> Self:
        """Return a table at the head of a branch, or raise BRANCH_NOT_FOUND."""
        head = _head(table.metadata, branch, name)
        at_head = table.metadata.model_copy(update={"current_snapshot_id": head})
        result = cls(table.name(), at_head, table.metadata_location, table.io, table.catalog)
        result.branch = branch
        return result

    def refresh(self) -> Self:
        latest = self.catalog.load_table(self.name())
        reference = latest.metadata.refs.get(self.branch)
        head = None if reference is None else reference.snapshot_id
        self.metadata = latest.metadata.model_copy(update={"current_snapshot_id": head})
        self.metadata_location = latest.metadata_location
        return self


def branches_of(metadata: TableMetadata) -> list[str]:
    return sorted(
        name
        for name, reference in metadata.refs.items()
        if reference.snapshot_ref_type is SnapshotRefType.BRANCH
    )


def stage_branch(
    name: SchemaTableName,
    change: CreateBranch | DropBranch | FastForwardBranch,
    transaction: Transaction,
) -> None:
    """Add a change of a branch to a pyiceberg transaction.

    The commit fails if the branch has another head by then.
    """
    metadata = transaction.table_metadata
    reference = metadata.refs.get(change.name)
    if reference is not None and reference.snapshot_ref_type is not SnapshotRefType.BRANCH:
        raise ConnectorError.invalid(f"'{change.name}' is a tag of table '{name}', not a branch")
    if isinstance(change, CreateBranch):
        if reference is not None and change.if_not_exists:
            return
        if reference is not None and not change.replace:
            raise ConnectorError(
                f"Branch '{change.name}' already exists",
                code="BRANCH_ALREADY_EXISTS",
                hint="Write CREATE OR REPLACE BRANCH, or choose another name.",
            )
        _require_other(change.name, "replaced")
        _set_head(transaction, change.name, _head(metadata, change.origin or MAIN_BRANCH, name))
    elif isinstance(change, DropBranch):
        if reference is None:
            if not change.if_exists:
                _refuse_missing(metadata, change.name)
            return
        _require_other(change.name, "dropped")
        update = RemoveSnapshotRefUpdate.model_validate({"ref-name": change.name})
        transaction._apply((update,), (_unchanged(metadata, change.name),))  # noqa: SLF001
    else:
        old, new = (_head(metadata, branch, name) for branch in (change.name, change.destination))
        if not _comes_after(metadata, new, old):
            raise ConnectorError.invalid(
                f"Branch '{change.name}' cannot be fast-forwarded to '{change.destination}': it has"
                f" snapshot {old}, which is not among the snapshots before {new}",
                hint=(
                    f"Create '{change.destination}' again from '{change.name}', and repeat its"
                    " statements."
                ),
            )
        _set_head(transaction, change.name, new)


def _head(metadata: TableMetadata, branch: str, name: SchemaTableName) -> int:
    reference = metadata.refs.get(branch)
    if reference is None and branch == MAIN_BRANCH:
        raise ConnectorError.invalid(
            f"Table '{name}' has no snapshot at which a branch could start",
            hint="Insert rows into it first.",
        )
    if reference is None or reference.snapshot_ref_type is not SnapshotRefType.BRANCH:
        _refuse_missing(metadata, branch)
    return int(reference.snapshot_id)


def _refuse_missing(metadata: TableMetadata, branch: str) -> NoReturn:
    branches = branches_of(metadata)
    raise ConnectorError(
        f"Branch '{branch}' does not exist",
        code="BRANCH_NOT_FOUND",
        hint=did_you_mean(branch, branches)
        or (f"There are: {', '.join(branches)}." if branches else "There are none: CREATE BRANCH."),
    )


def _require_other(branch: str, verb: str) -> None:
    if branch == MAIN_BRANCH:
        raise ConnectorError.invalid(
            f"Branch '{MAIN_BRANCH}' cannot be {verb}: it is the table",
            hint="ALTER BRANCH main IN TABLE ... FAST FORWARD TO a branch moves it.",
        )


def _unchanged(metadata: TableMetadata, branch: str) -> AssertRefSnapshotId:
    reference = metadata.refs.get(branch)
    head = None if reference is None else reference.snapshot_id
    return AssertRefSnapshotId.model_validate({"ref": branch, "snapshot-id": head})


def _set_head(transaction: Transaction, branch: str, head: int) -> None:
    assertion = _unchanged(transaction.table_metadata, branch)
    update = {"ref-name": branch, "snapshot-id": head, "type": SnapshotRefType.BRANCH}
    transaction._apply((SetSnapshotRefUpdate.model_validate(update),), (assertion,))  # noqa: SLF001


def _comes_after(metadata: TableMetadata, later: int, earlier: int) -> bool:
    """Return whether a snapshot is another one, or was made from it."""
    current: int | None = later
    while current is not None and current != earlier:
        snapshot = metadata.snapshot_by_id(current)
        current = None if snapshot is None else snapshot.parent_snapshot_id
    return current == earlier
