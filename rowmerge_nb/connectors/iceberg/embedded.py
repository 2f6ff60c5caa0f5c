"""pyiceberg's catalog in a SQL database, as the one in a warehouse directory has it: nothing stays of an attempt that was overtaken."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from sqlalchemy import select
from sqlalchemy.orm import Session

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.table import CommitTableResponse, Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate

__all__ = ["EmbeddedCatalog"]


class EmbeddedCatalog(SqlCatalog):
    """Removes the metadata file of a commit that another one has overtaken: pyiceberg writes a new one for its next attempt.

    Args:
        name: the catalog's name.
        properties: as pyiceberg has them.
    """

    def __init__(self, name: str, **properties: str) -> None:
        self._written = threading.local()
        super().__init__(name, **properties)

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates to a table; errors as pyiceberg has them."""
        self.begin_commit()
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

    def begin_commit(self) -> None:
        """Forget the metadata file of this thread's last commit: another one begins."""
        self._written.path = None

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

    def _write_metadata(self, metadata: TableMetadata, io: FileIO, metadata_path: str) -> Any:  # type: ignore[override]
        self._written.path = metadata_path
        try:
            super()._write_metadata(metadata, io, metadata_path)
        except BaseException:
            self.discard(io)
            raise
