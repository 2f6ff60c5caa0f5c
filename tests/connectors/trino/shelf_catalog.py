"""A catalog of the Java plugin for tests, with one table and a MERGE."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import rowmerge_nb as rm

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rowmerge_nb.engine.api.result import Result
    from tests.connectors.trino.shelf_plugin import Patch, ShelfBuild

BEFORE = [(1, "a", "x"), (2, "b", "y"), (3, "c", "z"), (4, None, None)]
AFTER = [(1, "new name", "x"), (3, "c", "z"), (4, None, None), (9, "new", "city")]
MERGE = """MERGE INTO shelf.shop.accounts t
USING (VALUES (1, 'new name'), (2, 'gone'), (9, 'new')) s(id, name) ON t.id = s.id
WHEN MATCHED AND s.name = 'gone' THEN DELETE
WHEN MATCHED THEN UPDATE SET name = s.name
WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.name, 'city')"""
_VALUES = "(1, 'a', 'x'), (2, 'b', 'y'), (3, 'c', 'z'), (4, NULL, NULL)"


class ShelfCatalog:
    """The catalog ``shelf`` of an engine.

    Args:
        engine: the engine.
        build: the classes of the plugin.
        folder: where its jar and its tables are.
        trino: the folder with the jars of Trino's engine.
        java: the folder of a JDK.
    """

    def __init__(
        self,
        engine: rm.Engine,
        build: ShelfBuild,
        folder: Path,
        trino: Path,
        java: Path,
        *patches: Patch,
        java_options: Sequence[str] = ("-Xmx64m",),
    ) -> None:
        self.engine = engine
        self.folder = folder
        self._build = build
        self._request = folder / "request"
        self.plant(*patches)
        self._settings: dict[str, Any] = {
            "plugin": [folder / "plugin", *build.needed_jars],
            "trino": trino,
            "java": java,
            "java_options": [*java_options, f"-Dshelf.trouble={self._request}"],
        }
        self.connector = self.new_connector(folder / "data")
        engine.add_catalog("shelf", self.connector)
        engine.run("CREATE SCHEMA shelf.shop")

    def new_connector(self, folder: Path) -> rm.TrinoConnector:
        """Return a connector of the plugin with its tables in a folder."""
        return rm.TrinoConnector("shelf", properties={"shelf.folder": folder}, **self._settings)

    def plant(self, *patches: Patch) -> None:
        """Rebuild the plugin with bugs."""
        self._build.jar(self.folder / "plugin", *patches)

    def fill(self, properties: str = "") -> None:
        """Recreate the table."""
        self.engine.run("DROP TABLE IF EXISTS shelf.shop.accounts")
        self.engine.run(
            "CREATE TABLE shelf.shop.accounts (id bigint, name varchar, city varchar)" + properties
        )
        self.engine.run(f"INSERT INTO shelf.shop.accounts VALUES {_VALUES}")

    def merge(self, **options: Any) -> Result:
        """Run the MERGE."""
        return self.engine.run(MERGE, **options)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows of the table in order."""
        frame = self.engine.run("SELECT * FROM shelf.shop.accounts ORDER BY id").to_pandas()
        values = frame.astype(object).where(frame.notna(), None)
        return [tuple(row) for row in values.itertuples(index=False)]

    def make_trouble(self, place: str, trouble: str, argument: object = "") -> None:
        """Request trouble from the plugin in its next call at a step."""
        (self.folder / "reached").unlink(missing_ok=True)
        (self.folder / "interrupted").unlink(missing_ok=True)
        self._request.write_text(f"{place} {trouble} {argument}")

    def wait_for(self, name: str, seconds: float = 60) -> bool:
        """Return whether the plugin writes a file, ``reached`` or ``interrupted``, in time."""
        end = time.monotonic() + seconds
        while not (self.folder / name).exists():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def data_files(self) -> list[str]:
        """Return the files of the table except its state."""
        folder = self.folder / "data" / "shop" / "accounts"
        return sorted(file.name for file in folder.iterdir() if file.name != "state")
