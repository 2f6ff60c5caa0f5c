"""Spark with Iceberg's own library as the engine that has executed a statement, and committed it: `rowmerge_nb` reads its tables alone.

It runs in an environment of its own: ROWMERGE_ICEBERG_PYTHON names a Python with the PySpark that Iceberg's runtime is made for, and
ROWMERGE_ICEBERG_JAR that runtime.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyarrow import parquet
from pyiceberg.exceptions import NoSuchTableError

from proof.engines.backends import arrow_table
from proof.engines.committing import rows_as_table
from proof.oracle.oracle import predict
from proof.statements.printing import Printer
from rowmerge_nb.base.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proof.statements.model import Row, Scenario, Table
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.trace.audit import Audit

__all__ = ["SparkIceberg"]

_MODES: Final = ("copy-on-write", "merge-on-read")
"""What Iceberg's library does to files that have changed rows: it writes them anew, or files of deleted positions beside them."""


class SparkIceberg:
    """The statements are Spark's to execute, and the commits are its own.

    Args:
        engine: an engine whose default catalog is ``lake``, which it is given here.
        folder: an empty folder for both catalogs and the rows on their way.

    Raises:
        SetupError: there is no such Spark, or it does not start.
    """

    def __init__(self, engine: Engine, folder: str) -> None:
        from rowmerge_nb import IcebergConnector

        python, jar = os.environ.get("ROWMERGE_ICEBERG_PYTHON"), os.environ.get("ROWMERGE_ICEBERG_JAR")
        if not python or not jar:
            raise SetupError(
                "There is no Spark with Iceberg",
                hint="ROWMERGE_ICEBERG_PYTHON names a Python with PySpark, ROWMERGE_ICEBERG_JAR the runtime of Iceberg for it.",
            )
        self._folder, self._warehouse = Path(folder), Path(folder) / "spark"
        self._connector = IcebergConnector(str(self._folder / "own"))
        engine.add_catalog("lake", self._connector)
        self._before: int | None = None
        self._left: list[Row] | None = None
        self.refused: dict[str, str] = {}
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "SPARK"))}
        command = [python, str(Path(__file__).with_name("iceberg_peer.py")), str(self._warehouse), jar]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=clean
        )
        self._answer()

    def executed(self, scenario: Scenario) -> tuple[str, list[Row]] | None:
        """Have Spark make a scenario's tables and execute its statement.

        Returns:
            Who has executed it, and the rows left; None where the oracle sees it fail, and where Spark refuses it.
        """
        if predict(scenario, "standard").errors:
            return None
        # By turns, and a statement always in the same way.
        mode = _MODES[len(Printer("spark").statement(scenario)) % len(_MODES)]
        for table in scenario.tables:
            placed = scenario.settings.partitioned_by if table is scenario.target else ()
            failed = self._asked(self._making(table, mode, placed))
            if failed is not None:
                return None
        self._before = self._known(scenario.target.name)
        failed = self._asked([Printer("spark").statement(scenario)])
        if failed is not None:
            self.refused[Printer("spark").statement(scenario)] = failed.splitlines()[0]
            return None
        for table in scenario.tables[1:]:
            self._known(table.name)
        self._known(scenario.target.name)
        try:
            found = self._connector.catalog.load_table(("default", scenario.target.name)).scan().to_arrow()
        except TypeError as error:
            # It is partitioned by two columns of one type of decimals, which pyiceberg does not read.
            self.refused[Printer("spark").statement(scenario)] = str(error)
            return None
        self._left = [tuple(row.values()) for row in found.to_pylist()]
        return f"Spark, {mode}", self._left

    def audit(self, engine: Engine, scenario: Scenario, rows: Sequence[Row]) -> Audit:
        """Audit what Spark has left, or, of other rows than these, what an overwrite by them leaves."""
        name = scenario.target.name
        if rows is not self._left:
            path = self._written("other", rows_as_table(scenario.target, rows))
            failed = self._asked([f"INSERT OVERWRITE {name} SELECT * FROM parquet.`{path}`"])
            assert failed is None, failed
        after = self._known(name)
        return engine.audit(name, before=self._before, after=after, statement=Printer("trino").statement(scenario))

    def _making(self, table: Table, mode: str, placed: Sequence[str]) -> list[str]:
        """Return the statements that make a table with its rows anew."""
        modes = ", ".join(f"'write.{kind}.mode' = '{mode}'" for kind in ("merge", "update", "delete"))
        by = f" PARTITIONED BY ({', '.join(placed)})" if placed else ""
        made = Printer("spark").create(table)
        path = self._written(table.name, arrow_table(table))
        return [
            f"DROP TABLE IF EXISTS {table.name}",
            # Of dynamic overwriting there is nothing here: an overwrite leaves what it is given, and nothing else.
            "SET spark.sql.sources.partitionOverwriteMode = static",
            f"{made} USING iceberg{by} TBLPROPERTIES ('format-version' = '2', {modes})",
            f"INSERT INTO {table.name} SELECT * FROM parquet.`{path}`",
        ]

    def _written(self, name: str, rows: Any) -> Path:
        path = self._folder / f"{name}.parquet"
        parquet.write_table(rows, path)
        return path

    def _known(self, name: str) -> int:
        """Let the engine's catalog know a table as it is by now; give its snapshot."""
        folder = self._warehouse / "default" / name / "metadata"
        version = (folder / "version-hint.text").read_text(encoding="utf-8").strip()
        catalog, identifier = self._connector.catalog, ("default", name)
        with suppress(NoSuchTableError):
            catalog.drop_table(identifier)
        table = catalog.register_table(identifier, f"file://{folder}/v{version}.metadata.json")
        snapshot = table.current_snapshot()
        assert snapshot is not None
        return int(snapshot.snapshot_id)

    def _asked(self, statements: Sequence[str]) -> str | None:
        """Have statements executed, one after the other; give what one of them has failed with."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"statements": list(statements)}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> str | None:
        for line in self._process.stdout or ():
            if line.startswith("ANSWER "):
                error: str | None = json.loads(line.removeprefix("ANSWER "))["error"]
                return error
        self._errors.seek(0)
        raise SetupError(
            f"Spark with Iceberg has ended: {self._errors.read()[-2000:]}",
            hint="Is the PySpark of ROWMERGE_ICEBERG_PYTHON the one that the runtime is made for?",
        )

    def close(self) -> None:
        """End Spark, and close the connector."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._errors.close()
        self._connector.close()
