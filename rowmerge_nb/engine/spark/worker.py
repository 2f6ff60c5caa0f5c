"""The parent of all Python workers of our own sessions: Spark's own, with what tasks need loaded beforehand.

Workers are forked from it. What it has loaded they have too, so a first statement, and one after a failed task, does not wait for imports.
"""

from __future__ import annotations

import duckdb  # noqa: F401
import pyarrow as pa
import pyarrow.compute
from pyspark import daemon

import rowmerge_nb.connectors.memory.reading
import rowmerge_nb.engine.tasks.merge
import rowmerge_nb.engine.tasks.replicated  # noqa: F401 - loaded for the workers

# Threads do not survive a fork: none may be started here.
pa.set_cpu_count(1)

if __name__ == "__main__":
    daemon.manager()
