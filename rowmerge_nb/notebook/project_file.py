"""The settings of a project: ``[tool.rowmerge_nb]`` of pyproject.toml, or rowmerge_nb.toml.

The file holds plain values: options of cells, and the catalogs of the default engine. It cannot
name code.
"""

from __future__ import annotations

import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.errors import RowMergeError, SetupError

if TYPE_CHECKING:
    from pathlib import Path

    from rowmerge_nb.engine.catalog.connecting import ConnectionRequest
    from rowmerge_nb.engine.engine import Engine

OWN_FILE: Final = "rowmerge_nb.toml"
"""A file whose tables are those below ``[tool.rowmerge_nb]`` of pyproject.toml."""
CATALOGS: Final = "catalogs"
"""The table of catalogs."""


def project_defaults(directory: Path) -> tuple[dict[str, Any], Path | None]:
    """Return the project's settings and their file, from the nearest folder with a pyproject.toml
    or a rowmerge_nb.toml; nothing without one.

    In one folder, rowmerge_nb.toml takes precedence.
    """
    for folder in (directory, *directory.parents):
        for file, tables in ((folder / OWN_FILE, ()), (folder / "pyproject.toml", _TABLES)):
            if file.is_file():
                try:
                    settings = tomllib.loads(file.read_text("utf-8"))
                    for table in tables:
                        settings = settings.get(table, {})
                    return dict(settings), file
                except (OSError, ValueError, AttributeError, TypeError) as error:
                    raise SetupError(f"{file} cannot be read: {error}") from error
    return {}, None


_TABLES: Final = ("tool", "rowmerge_nb")


@dataclass(frozen=True)
class DeclaredCatalogs:
    """The catalogs of a project's file, for its default engine."""

    requests: tuple[ConnectionRequest, ...]
    errors: Mapping[str, RowMergeError]

    def connect(self, engine: Engine) -> None:
        """Connect the catalogs; a failure is a warning, and the error of statements that name it.

        No store is asked anything, so that one that does not answer costs no time.
        """
        for name, error in self.errors.items():
            engine.note_unconnected(name, error)
        for request in self.requests:
            try:
                engine.open_connection(request, check=False)
            except RowMergeError as error:
                name = str(request.name)
                if all(each.name != name.lower() for each in engine.catalogs()):
                    engine.note_unconnected(name, error)
                warnings.warn(_problem(name, request.origin, error), stacklevel=2)

    def problems(self, file: Path) -> list[str]:
        return [_problem(name, str(file), error) for name, error in self.errors.items()]


def declared_catalogs(table: Any, file: Path) -> DeclaredCatalogs:
    # Only files with catalogs pay for this import.
    from rowmerge_nb.engine.catalog.connecting import ConnectionRequest, validate

    requests: list[ConnectionRequest] = []
    errors: dict[str, RowMergeError] = {}
    if not isinstance(table, Mapping):
        return DeclaredCatalogs((), {CATALOGS: _wrong_shape(f"{CATALOGS} is no table")})
    for name, entry in table.items():
        if not isinstance(entry, Mapping) or not isinstance(entry.get("store"), str):
            errors[name] = _wrong_shape("It is not a table with a key 'store'")
            continue
        properties = {key: value for key, value in entry.items() if key != "store"}
        request = ConnectionRequest(
            entry["store"], None, name, properties, str(file), file.absolute().parent
        )
        try:
            if not request.store:
                raise _wrong_shape("Its key 'store' is empty")
            validate(request)
        except RowMergeError as error:
            errors[name] = error
        else:
            requests.append(request)
    return DeclaredCatalogs(tuple(requests), errors)


def _wrong_shape(message: str) -> RowMergeError:
    return RowMergeError.invalid(
        message,
        hint='Write, for example: ice = {store = "iceberg", warehouse = "warehouse/", create = true}',
    )


def _problem(name: str, file: str, error: RowMergeError) -> str:
    return f"The catalog '{name}' of {file} is not connected: {error}"
