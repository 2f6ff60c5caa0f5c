"""pyiceberg's catalog in a SQL database, as the one in a warehouse directory has it: nothing stays of an attempt that was overtaken."""

from __future__ import annotations

import itertools
import re
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy import select
from sqlalchemy.orm import Session

from rowmerge_nb.connectors.iceberg.notes import metadata_id
from rowmerge_nb.connectors.iceberg.servers import local_path, require_reachable, require_readable
from rowmerge_nb.connectors.iceberg.trust import GuardedCatalog

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import CommitTableResponse, StagedTable, Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate

__all__ = ["EmbeddedCatalog"]

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class EmbeddedCatalog(GuardedCatalog, SqlCatalog):
    """Removes the metadata file of a commit that another one has overtaken: pyiceberg writes a new one for its next attempt.

    Args:
        name: the catalog's name.
        properties: as pyiceberg has them.
    """

    trusts_entries = False
    """Its file lies in the warehouse, which others may write too."""

    def __init__(self, name: str, **properties: str) -> None:
        self._written = threading.local()
        super().__init__(name, **properties)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates to a table; errors as pyiceberg has them."""
        self._written.path = None
        try:
            return super().commit_table(table, requirements, updates)
        except CommitFailedException:
            # The catalog has said that the table has another metadata file, so nobody knows this one.
            self.discard(table.io)
            raise

    @property
    def written(self) -> str | None:
        """The metadata file that this thread's last commit has written; None if it has written none."""
        path: str | None = getattr(self._written, "path", None)
        return path

    def begin_commit(self, prefix: str) -> None:
        """Forget the metadata file of this thread's last commit: that of another statement begins.

        Args:
            prefix: the prefix of the statement, from which the names of its metadata files are made.
        """
        self._written.path, self._written.prefix, self._written.attempt = None, prefix, itertools.count()

    def discard(self, io: FileIO) -> None:
        """Remove the metadata file of this thread's last commit, which has not gone through."""
        if self.written is not None:
            with suppress(OSError):
                io.delete(self.written)
            self._written.path = None

    def metadata_files(self) -> list[str]:
        """Give the locations of all tables' newest metadata files."""
        files = select(IcebergTables.metadata_location).where(IcebergTables.catalog_name == self.name)
        with Session(self.engine) as session:
            return [file for file in session.scalars(files) if file is not None]

    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        location = orm_table.metadata_location or ""
        require_reachable(self.properties, location)
        path = local_path(location)
        if path is not None:
            require_readable(path)
        return super()._convert_orm_to_iceberg(orm_table)

    def _update_and_stage_table(self, *arguments: Any, **options: Any) -> StagedTable:
        staged = super()._update_and_stage_table(*arguments, **options)
        prefix = getattr(self._written, "prefix", "")
        if prefix:
            folder, _, name = staged.metadata_location.rpartition("/")
            made = metadata_id(prefix, next(self._written.attempt))
            staged.metadata_location = f"{folder}/{_ID.sub(str(made), name, count=1)}"
        return staged

    def _write_metadata(self, metadata: TableMetadata, io: FileIO, metadata_path: str) -> Any:  # type: ignore[override]
        self._written.path = metadata_path
        try:
            super()._write_metadata(metadata, io, metadata_path)
        except BaseException:
            self.discard(io)
            raise
