"""Spark with Iceberg's and Delta's own libraries in the race, if installed: they need
a matching Spark.

ROWMERGE_ICEBERG_PYTHON names a Python with PySpark 4.1, ROWMERGE_ICEBERG_JAR Iceberg's runtime for
it, ROWMERGE_DELTA_JARS Delta's jars, separated by commas.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyarrow import parquet

from benchmarks.engines import BIGINT_KEYS, Contestant, SqlContestant

if TYPE_CHECKING:
    import pyarrow as pa

    from benchmarks.data import Case
    from benchmarks.engines import Work


def spark_peers() -> list[Contestant]:
    """Return the contestants with configured libraries."""
    python = os.environ.get("ROWMERGE_ICEBERG_PYTHON")
    jars = {
        "iceberg": os.environ.get("ROWMERGE_ICEBERG_JAR"),
        "delta": os.environ.get("ROWMERGE_DELTA_JARS"),
    }
    return [SparkPeer(form, python, named) for form, named in jars.items() if python and named]


class SparkPeer(SqlContestant):
    """Spark and another table format, in its own process."""

    below = True
    folder: Path
    keys = BIGINT_KEYS

    def __init__(self, form: str, python: str, jars: str) -> None:
        words = {"iceberg": "Iceberg v2, merge-on-read", "delta": "Delta, deletion vectors"}
        self.name = f"Spark + {words[form]}"
        self.folder = Path(tempfile.mkdtemp())
        self._command = [
            python,
            str(Path(__file__).with_name("spark_peer.py")),
            form,
            str(self.folder),
            jars,
        ]
        self._process: subprocess.Popen[str] | None = None

    def prepare(self, case: Case, work: Work) -> None:
        """Write both tables to Parquet files, and load them into the other Spark."""
        assert work in {"merge", "delete", "update"}, "the other Spark has no other work"
        self.case = case
        if self._process is None:
            clean = {
                key: value
                for key, value in os.environ.items()
                if not key.startswith(("PYTHON", "SPARK"))
            }
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=clean,
            )
            self._answer()
        paths = {name: str(self.folder / f"{name}.parquet") for name in ("target", "source")}
        for name, table in (("target", case.target), ("source", case.source)):
            parquet.write_table(table, paths[name])
        self._ask(prepare=paths["target"], source=paths["source"])

    def _ask(self, **order: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process is not None
        for line in self._process.stdout or ():
            if line.startswith("ANSWER "):
                found: dict[str, Any] = json.loads(line.removeprefix("ANSWER "))
                return found
        raise RuntimeError(f"{self.name} has ended")

    def execute(self, statement: str) -> None:
        """Run a statement."""
        self._ask(run=statement)

    def query(self, statement: str) -> pa.Table:
        """Write the table's rows to a file; no other query is raced."""
        path = str(self.folder / "content")
        self._ask(content=path)
        rows = parquet.read_table(path)
        shutil.rmtree(path)
        return rows

    def close(self) -> None:
        """End the process."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()
