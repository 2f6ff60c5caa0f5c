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
from rowmerge_nb.base.front_end import connect_command
from rowmerge_nb.base.names import quoted_where_needed
from rowmerge_nb.connectors.delta.notes import LOG
from rowmerge_nb.connectors.shared.disk import reading, writing
from rowmerge_nb.connectors.shared.folders import folder_name
from rowmerge_nb.spi import SchemaTableName

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT: Final = "default"
_DROPPED: Final = re.compile(r"\.dropped-[0-9a-f]{32}")


class Folders:
    """A directory with a folder for each schema, and in it one for each table."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        if _is_table(directory):
            table = quoted_where_needed(unquote(directory.name).lower())
            raise ConnectorError.invalid(
                f"The folder '{directory}' is a Delta table, not a folder of tables",
                hint=(
                    f"Connect the folder above it:"
                    f" {connect_command('delta', str(directory.parent), 'lake')}; the table is"
                    f" lake.{DEFAULT}.{table}."
                ),
            )

    def schemas(self) -> list[str]:
        return sorted({DEFAULT, *(name for name, _ in self._schema_folders())})

    def tables(self) -> list[SchemaTableName]:
        return sorted(
            {
                SchemaTableName(schema, name)
                for schema, name, folder in self._table_folders()
                if _is_table(folder)
            },
            key=str,
        )

    def all_folders(self) -> list[Path]:
        """Return the folders of tables, and of tables that were never committed."""
        return [folder for _, _, folder in self._table_folders()]

    def table(self, name: SchemaTableName) -> Path | None:
        exact = self._schema_folder(name.schema) / folder_name(name.table)
        if _is_table(exact):
            return exact
        return next(
            (
                folder
                for schema, table, folder in self._table_folders()
                if (schema, table) == (name.schema, name.table) and _is_table(folder)
            ),
            None,
        )

    def new_table(self, name: SchemaTableName) -> Path:
        schema = self._schema_folder(name.schema)
        _require_no_table(schema)
        return schema / folder_name(name.table)

    def _schema_folder(self, schema: str) -> Path:
        return next(
            (folder for name, folder in self._schema_folders() if name == schema),
            self._directory / folder_name(schema),
        )

    def _schema_folders(self) -> Iterator[tuple[str, Path]]:
        for name, folder in _named_folders(self._directory):
            if "=" not in folder.name and not _is_table(folder):
                yield name, folder

    def _table_folders(self) -> Iterator[tuple[str, str, Path]]:
        for schema, folder in self._schema_folders():
            for name, table in _named_folders(folder):
                yield schema, name, table
        for name, table in _named_folders(self._directory):
            if _is_table(table):
                yield DEFAULT, name, table

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
        folder = self._directory / folder_name(schema)
        _require_no_table(folder)
        with writing(f"Directory '{self._directory}'", "DELTA_LAKE_FILESYSTEM_ERROR"):
            folder.mkdir(parents=True, exist_ok=True)

    def drop_schema(self, schema: str) -> None:
        if schema == DEFAULT:
            raise ConnectorError(
                f"Schema '{schema}' cannot be dropped: every folder of Delta tables has it",
                hint="Drop its tables.",
            )
        folder = self._schema_folder(schema)
        try:
            folder.rmdir()
        except OSError as error:
            raise ConnectorError(
                f"Cannot drop non-empty schema '{schema}': its folder '{folder}' has files",
                code="SCHEMA_NOT_EMPTY",
                hint="Drop its tables, and remove other files in its folder.",
            ) from error


def _require_no_table(schema: Path) -> None:
    if _is_table(schema):
        raise ConnectorError(
            f"The folder '{schema}' of the schema is a table",
            code="ALREADY_EXISTS",
            hint="Choose another schema.",
        )


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
