"""Spark with Iceberg's own library as the engine that executed and committed a statement;
`rowmerge_nb` only reads its tables.

It runs in its own environment: ROWMERGE_ICEBERG_PYTHON names a Python with a PySpark that suits the
runtime ROWMERGE_ICEBERG_JAR.
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
"""How Iceberg's library changes rows of files: it rewrites the files, or adds files of deleted
positions.
"""


class SparkIceberg:
    """Spark executes and commits the statements.

    Args:
        engine: an engine whose default catalog is ``lake``; this class adds it.
        folder: an empty folder for both catalogs and intermediate rows.

    Raises:
        SetupError: Spark is missing, or does not start.
    """

    def __init__(self, engine: Engine, folder: str) -> None:
        from rowmerge_nb import IcebergConnector

        python, jar = (
            os.environ.get("ROWMERGE_ICEBERG_PYTHON"),
            os.environ.get("ROWMERGE_ICEBERG_JAR"),
        )
        if not python or not jar:
            raise SetupError(
                "There is no Spark with Iceberg",
                hint=(
                    "ROWMERGE_ICEBERG_PYTHON names a Python with PySpark, ROWMERGE_ICEBERG_JAR the"
                    " runtime of Iceberg for it."
                ),
            )
        self._folder, self._warehouse = Path(folder), Path(folder) / "spark"
        self._connector = IcebergConnector(str(self._folder / "own"))
        engine.add_catalog("lake", self._connector)
        self._before: int | None = None
        self._left: list[Row] | None = None
        self.refused: dict[str, str] = {}
        clean = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PYTHON", "SPARK"))
        }
        command = [
            python,
            str(Path(__file__).with_name("iceberg_peer.py")),
            str(self._warehouse),
            jar,
        ]
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=clean,
        )
        self._answer()

    def executed(self, scenario: Scenario) -> tuple[str, list[Row]] | None:
        """Create a scenario's tables by Spark and execute its statement.

        Returns:
            The name of the implementation and the resulting rows; None if the oracle predicts a
            failure, or Spark refuses the statement.
        """
        if predict(scenario, "standard").errors:
            return None
        # Alternate between modes, but always the same one for a statement.
        mode = _MODES[len(Printer("spark").statement(scenario)) % len(_MODES)]
        for table in scenario.tables:
            partitioned_by = scenario.settings.partitioned_by if table is scenario.target else ()
            failure = self._asked(self._making(table, mode, partitioned_by))
            if failure is not None:
                return None
        self._before = self._known(scenario.target.name)
        failure = self._asked([Printer("spark").statement(scenario)])
        if failure is not None:
            self.refused[Printer("spark").statement(scenario)] = failure.splitlines()[0]
            return None
        for table in scenario.tables[1:]:
            self._known(table.name)
        self._known(scenario.target.name)
        try:
            result = (
                self._connector.catalog.load_table(("default", scenario.target.name))
                .scan()
                .to_arrow()
            )
        except TypeError as error:
            # It is partitioned by two columns of one type of decimals, which pyiceberg does not
            # read.
            self.refused[Printer("spark").statement(scenario)] = str(error)
            return None
        self._left = [tuple(row.values()) for row in result.to_pylist()]
        return f"Spark, {mode}", self._left

    def audit(self, engine: Engine, scenario: Scenario, rows: Sequence[Row]) -> Audit:
        """Audit Spark's result or, for other rows, the result of an overwrite with them."""
        name = scenario.target.name
        if rows is not self._left:
            path = self._written("other", rows_as_table(scenario.target, rows))
            failure = self._asked([f"INSERT OVERWRITE {name} SELECT * FROM parquet.`{path}`"])
            assert failure is None, failure
        after = self._known(name)
        return engine.audit(
            name, before=self._before, after=after, statement=Printer("trino").statement(scenario)
        )

    def _making(self, table: Table, mode: str, partitioned_by: Sequence[str]) -> list[str]:
        """Return the statements that recreate a table with its rows."""
        modes = ", ".join(
            f"'write.{operation}.mode' = '{mode}'" for operation in ("merge", "update", "delete")
        )
        by = f" PARTITIONED BY ({', '.join(partitioned_by)})" if partitioned_by else ""
        create = Printer("spark").create(table)
        path = self._written(table.name, arrow_table(table))
        return [
            f"DROP TABLE IF EXISTS {table.name}",
            # Overwriting is static: the table then has exactly the written rows.
            "SET spark.sql.sources.partitionOverwriteMode = static",
            f"{create} USING iceberg{by} TBLPROPERTIES ('format-version' = '2', {modes})",
            f"INSERT INTO {table.name} SELECT * FROM parquet.`{path}`",
        ]

    def _written(self, name: str, rows: Any) -> Path:
        path = self._folder / f"{name}.parquet"
        parquet.write_table(rows, path)
        return path

    def _known(self, name: str) -> int:
        """Register the current state of a table in the engine's catalog; return its snapshot."""
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
        """Execute statements one after the other; return the failure of one."""
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
