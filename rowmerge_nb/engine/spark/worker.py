"""The parent of all Python workers of our own sessions: Spark's own, with what tasks need loaded beforehand.

Workers are forked from it. What it has loaded they have too, so a first statement, and one after a failed task, does not wait for imports.
"""

from __future__ import annotations

import os

import duckdb  # noqa: F401
import pyarrow as pa
import pyarrow.compute
from pyspark import daemon

import rowmerge_nb.connectors.memory.reading
import rowmerge_nb.engine.tasks.merge
import rowmerge_nb.engine.tasks.replicated  # noqa: F401 - loaded for the workers

# Threads do not survive a fork: none may be started here.
pa.set_cpu_count(1)

# Of what pages give back, Arrow's usual allocator keeps more. Nothing was allocated from this one yet, so it has no thread either.
if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ and "jemalloc" in pa.supported_memory_backends():
    pa.set_memory_pool(pa.jemalloc_memory_pool())

if __name__ == "__main__":
    daemon.manager()
