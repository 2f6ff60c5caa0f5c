"""The parent of all Python workers of our own sessions: Spark's own, with what tasks need loaded beforehand.

Workers are forked from it. What it has loaded they have too, so a first statement, and one after a failed task, does not wait for imports.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main() -> None:
    """Load what tasks need, and fork workers as Spark asks for them."""
    sys.path[:] = without_archives(sys.path, os.environ.get("SPARK_HOME", ""))
    # What has looked into the archives already would read their lists again as well.
    sys.path_importer_cache.clear()

    import duckdb  # noqa: F401 - loaded for the workers, as all that follows
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
    # Of what pages give back, Arrow's usual allocator keeps more. Nothing was allocated from this one yet, so it has no thread either.
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
    pyspark.daemon.manager()


def without_archives(path: Sequence[str], spark: str) -> list[str]:
    """Return where modules are looked for without Spark's own archives, if its PySpark is found without them.

    Spark puts archives of its own first. What is imported from one is compiled anew in every process, and every worker reads their lists
    of files once more for each package that came from them, which takes it longer than a small task.

    Args:
        path: the entries of ``sys.path``.
        spark: Spark's directory, which is that of PySpark where it was installed as a package.

    >>> without_archives(["/spark/python/lib/pyspark.zip", "/nowhere"], "/spark")
    ['/spark/python/lib/pyspark.zip', '/nowhere']
    """
    others = [entry for entry in path if not (spark and Path(entry).is_relative_to(spark))]
    found, beside = PathFinder.find_spec("pyspark", others), PathFinder.find_spec("py4j", others)
    if found is None or found.origin is None or beside is None:
        return [*path]
    return others if Path(found.origin).parent.resolve() == Path(spark).resolve() else [*path]


if __name__ == "__main__":
    main()
