"""The folders of schemas and tables."""

from __future__ import annotations

import re
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.connectors.delta.notes import LOG
from rowmerge_nb.connectors.shared.disk import reading, writing
from rowmerge_nb.connectors.shared.folders import folder_name
from rowmerge_nb.spi import SchemaTableName

if TYPE_CHECKING:
    from collections.abc import Iterator

_DROPPED: Final = re.compile(r"\.dropped-[0-9a-f]{32}")


class Folders:
    """A directory with a folder for each schema, and in it one for each table.

    >>> import tempfile
    >>> folders = Folders(Path(tempfile.mkdtemp()))
    >>> folders.schemas(), folders.tables()
    (['default'], [])
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.create_schema("default")

    def schemas(self) -> list[str]:
        return sorted({name for name, _ in _named_folders(self._directory)})

    def tables(self) -> list[SchemaTableName]:
        return sorted(
            {
                SchemaTableName(schema, name)
                for schema, folder in _named_folders(self._directory)
                for name, table in _named_folders(folder)
                if _is_table(table)
            },
            key=str,
        )

    def all_folders(self) -> list[Path]:
        """Return the folders of tables, and of tables that were never committed."""
        return [
            table
            for _, folder in _named_folders(self._directory)
            for _, table in _named_folders(folder)
        ]

    def table(self, name: SchemaTableName) -> Path | None:
        exact = self.new_table(name)
        if _is_table(exact):
            return exact
        return next(
            (
                table
                for schema, folder in _named_folders(self._directory)
                if schema == name.schema
                for table_name, table in _named_folders(folder)
                if table_name == name.table and _is_table(table)
            ),
            None,
        )

    def new_table(self, name: SchemaTableName) -> Path:
        return self._schema_folder(name.schema) / folder_name(name.table)

    def _schema_folder(self, schema: str) -> Path:
        return next(
            (folder for name, folder in _named_folders(self._directory) if name == schema),
            self._directory / folder_name(schema),
        )

    def remove(self, table: Path) -> None:
        """Remove a table's folder: renamed first, so that readers see all of it or nothing."""
        trash = self._directory / f".dropped-{uuid.uuid4().hex}"
        with writing(f"Folder '{table}'", "DELTA_LAKE_FILESYSTEM_ERROR"):
            table.rename(trash)
        shutil.rmtree(trash, ignore_errors=True)

    def dropped(self) -> list[Path]:
        """Return the folders of dropped tables that could not be removed, or not yet."""
        return [
            path
            for path in _folders(self._directory)
            if _DROPPED.fullmatch(path.name) and not path.is_symlink()
        ]

    def create_schema(self, schema: str) -> None:
        with writing(f"Directory '{self._directory}'", "DELTA_LAKE_FILESYSTEM_ERROR"):
            (self._directory / folder_name(schema)).mkdir(parents=True, exist_ok=True)

    def drop_schema(self, schema: str) -> None:
        """Remove the folder of a schema, which must be empty."""
        folder = self._schema_folder(schema)
        try:
            folder.rmdir()
        except OSError as error:
            raise ConnectorError(
                f"Cannot drop non-empty schema '{schema}': its folder '{folder}' has files",
                code="SCHEMA_NOT_EMPTY",
                hint="Drop its tables, and remove other files in its folder.",
            ) from error


def _is_table(folder: Path) -> bool:
    return (folder / LOG).is_dir()


def _named_folders(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in _folders(folder):
        if not path.name.startswith((".", "_")):
            yield unquote(path.name).lower(), path


def _folders(folder: Path) -> list[Path]:
    with (
        reading(f"Directory '{folder}'", "DELTA_LAKE_FILESYSTEM_ERROR"),
        suppress(FileNotFoundError, NotADirectoryError),
    ):
        return sorted(path for path in folder.iterdir() if path.is_dir())
    return []
