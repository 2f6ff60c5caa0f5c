"""pyiceberg's catalog in a SQL database, without leftover metadata files of failed attempts."""

from __future__ import annotations

import itertools
import re
import threading
import weakref
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from sqlalchemy import Column, MetaData, String, delete, inspect, select, update
from sqlalchemy import Table as SqlTable
from sqlalchemy.orm import Session

from rowmerge_nb.connectors.iceberg.notes import metadata_id
from rowmerge_nb.connectors.iceberg.servers import local_path, require_reachable, require_readable
from rowmerge_nb.connectors.iceberg.trust import GuardedCatalog
from rowmerge_nb.connectors.shared.orphans import this_process

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyiceberg.io import FileIO
    from pyiceberg.table import CommitTableResponse, StagedTable, Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.update import TableRequirement, TableUpdate
    from pyiceberg.typedef import Identifier

_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DROPPED: Final = SqlTable(
    "rowmerge_nb_dropped",
    MetaData(),
    Column("folder", String(1000), primary_key=True),
    Column("process", String(300), nullable=False),
)
"""The folders of dropped tables that are still to be removed, each with the process that removes
it, or ``""`` if it gave up.
"""

_LEAVING: Final[set[str]] = set()
"""The folders that threads of this process are removing."""


class EmbeddedCatalog(GuardedCatalog, SqlCatalog):
    """Removes the metadata file of an overtaken commit, since a retry writes a new one."""

    trusts_entries = False
    """False: the database is in the warehouse, where others may write."""

    def __init__(self, name: str, **properties: str) -> None:
        self._local = threading.local()
        super().__init__(name, **properties)
        # A catalog that was not closed closes its connections when it is collected.
        weakref.finalize(self, self.engine.dispose).atexit = False

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        self._local.path = None
        try:
            return super().commit_table(table, requirements, updates)
        except CommitFailedException:
            # The catalog has another metadata file for the table, so this one is unreferenced.
            self.discard(table.io)
            raise

    @contextmanager
    def leaving(self, folder: str | None) -> Iterator[None]:
        """Make this thread's `drop_table` record in the same transaction that the folder is being
        removed; the record lasts as long as the context.
        """
        self._local.leaves = folder
        if folder is not None:
            _LEAVING.add(folder)
        try:
            yield
        finally:
            self._local.leaves = None
            _LEAVING.discard(folder or "")

    def drop_table(self, identifier: str | Identifier) -> None:
        folder = getattr(self._local, "leaves", None)
        if folder is None:
            super().drop_table(identifier)
            return
        _DROPPED.create(self.engine, checkfirst=True)
        name = Catalog.table_name_from(identifier)
        namespace = Catalog.namespace_to_string(Catalog.namespace_from(identifier))
        entry = delete(IcebergTables).where(
            IcebergTables.catalog_name == self.name,
            IcebergTables.table_namespace == namespace,
            IcebergTables.table_name == name,
        )
        with Session(self.engine) as session:
            if not session.execute(entry).rowcount:  # type: ignore[attr-defined]
                raise NoSuchTableError(f"Table does not exist: {namespace}.{name}")
            session.execute(delete(_DROPPED).where(_DROPPED.c.folder == folder))
            session.execute(_DROPPED.insert().values(folder=folder, process=this_process()))
            session.commit()

    def register_table(
        self, identifier: str | Identifier, metadata_location: str, *arguments: Any, **options: Any
    ) -> Table:
        """Register a table by its metadata file; its folder is retained even if it is a dropped
        table's.
        """
        path = Path(local_path(metadata_location) or "")
        self.forget_folders(
            [folder for folder in self.dropped_folders() if path.is_relative_to(folder)]
        )
        return super().register_table(identifier, metadata_location, *arguments, **options)

    def dropped_folders(self) -> dict[str, str]:
        """Return the folders of dropped tables with the process that is removing each, or ``""``."""
        if not inspect(self.engine).has_table(_DROPPED.name):
            return {}
        with Session(self.engine) as session:
            recorded = session.execute(select(_DROPPED.c.folder, _DROPPED.c.process)).all()
        # If the disk failed, this process may have been unable to record that it gave up.
        here = this_process()
        return {
            folder: "" if process == here and folder not in _LEAVING else process
            for folder, process in recorded
        }

    def release_folder(self, folder: str) -> None:
        """Record that this process no longer removes a dropped table's folder."""
        if folder not in self.dropped_folders():
            return
        if not Path(folder).exists():
            self.forget_folders([folder])
            return
        with Session(self.engine) as session:
            session.execute(update(_DROPPED).where(_DROPPED.c.folder == folder).values(process=""))
            session.commit()

    def forget_folders(self, folders: Sequence[str]) -> None:
        if folders:
            with Session(self.engine) as session:
                session.execute(delete(_DROPPED).where(_DROPPED.c.folder.in_(folders)))
                session.commit()

    @property
    def written(self) -> str | None:
        """The metadata file that this thread's last commit has written, if any."""
        path: str | None = getattr(self._local, "path", None)
        return path

    def begin_commit(self, prefix: str) -> None:
        """Start the commit of another statement on this thread."""
        self._local.path, self._local.prefix, self._local.attempt = None, prefix, itertools.count()

    def discard(self, io: FileIO) -> None:
        """Remove the metadata file of this thread's failed commit."""
        if self.written is not None:
            with suppress(OSError):
                io.delete(self.written)
            self._local.path = None

    def metadata_files(self) -> list[str]:
        files = select(IcebergTables.metadata_location).where(
            IcebergTables.catalog_name == self.name
        )
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
        prefix = getattr(self._local, "prefix", "")
        if prefix:
            folder, _, name = staged.metadata_location.rpartition("/")
            unique = metadata_id(prefix, next(self._local.attempt))
            staged.metadata_location = f"{folder}/{_ID.sub(str(unique), name, count=1)}"
        return staged

    def _write_metadata(self, metadata: TableMetadata, io: FileIO, metadata_path: str) -> Any:  # type: ignore[override]
        self._local.path = metadata_path
        try:
            super()._write_metadata(metadata, io, metadata_path)
        except BaseException:
            self.discard(io)
            raise
