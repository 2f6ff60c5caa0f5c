"""The parent of our Python workers: Spark's daemon with preloaded libraries."""

from __future__ import annotations

import gc
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main() -> None:
    """Import the libraries of tasks, and fork workers as Spark requests them."""
    sys.path[:] = without_archives(sys.path, os.environ.get("SPARK_HOME", ""))
    # Cached importers of the archives would read their file lists again.
    sys.path_importer_cache.clear()

    gc.disable()
    import duckdb  # noqa: F401 - preloaded for the workers, like the following imports
    import pyarrow as pa
    import pyarrow.compute
    import pyspark.daemon
    import pyspark.worker

    import rowmerge_nb.connectors.memory.reading
    import rowmerge_nb.connectors.memory.writing
    import rowmerge_nb.engine.tasks.merge_passes
    import rowmerge_nb.engine.tasks.replicated  # noqa: F401

    # Threads do not survive a fork: none may be started here.
    pa.set_cpu_count(1)
    # jemalloc returns more memory of freed pages than Arrow's default. It is unused so far, so it
    # has no thread yet.
    if (
        "ARROW_DEFAULT_MEMORY_POOL" not in os.environ
        and "jemalloc" in pa.supported_memory_backends()
    ):
        pa.set_memory_pool(pa.jemalloc_memory_pool())
    # Each worker collects garbage after each task, which would visit the objects of all libraries.
    gc.freeze()
    gc.enable()
    pyspark.daemon.manager()


def without_archives(path: Sequence[str], spark: str) -> list[str]:
    """Return ``sys.path`` without Spark's archives, if the same PySpark is found without them.

    Modules from archives are compiled in every process, and reading the archives' file lists takes
    longer than a small task.
    """
    others = [entry for entry in path if not (spark and Path(entry).is_relative_to(spark))]
    pyspark_spec = PathFinder.find_spec("pyspark", others)
    py4j_spec = PathFinder.find_spec("py4j", others)
    if pyspark_spec is None or pyspark_spec.origin is None or py4j_spec is None:
        return [*path]
    return (
        others if Path(pyspark_spec.origin).parent.resolve() == Path(spark).resolve() else [*path]
    )


if __name__ == "__main__":
    main()
