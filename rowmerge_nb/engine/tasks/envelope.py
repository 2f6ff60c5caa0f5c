"""The wrapper of tasks for remote executors: it checks the worker before anything of the package is
loaded there.

The functions are pickled by value and use nothing of the package, which a worker may lack.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import pickle
import socket
import sys
import types
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

PROBLEM = b"rowmerge_nb problem: "
"""The prefix of the record of an unsuitable worker; JSON follows, because such a worker may lack
our classes.
"""


def deliver(
    envelope: Mapping[str, Any], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Check the worker process, then run the task on a partition.

    A problem is returned as the task's record.

    The envelope has the pickled ``task``, the driver's ``python`` and ``pyarrow`` versions, the
    ``bundles`` and ``marks``, and the ``record_schema``, or None to raise instead.
    """
    problem, task = _look(envelope), None
    if problem is None:
        try:
            task = pickle.loads(envelope["task"])  # noqa: S301 - the driver wrote it
        except Exception as error:  # noqa: BLE001 - reported as the task's record
            text = (
                f"A Python worker on '{socket.gethostname()}' cannot load what it"
                f" receives: {type(error).__name__}: {error}"
            )
            problem = {
                "message": text,
                "hint": ("Install the connector's libraries for the Python of the executors."),
            }
    if problem is None and task is not None:
        yield from task(batches)
        return
    record = PROBLEM + json.dumps(problem).encode()
    if envelope["record_schema"] is None:
        raise RuntimeError(f"[[CONFIGURATION_INVALID]] {record.decode()}")
    deque(batches, maxlen=0)
    yield _record(envelope["record_schema"], record)


def _look(envelope: Mapping[str, Any]) -> dict[str, str] | None:
    cache = sys.modules.setdefault("_rowmerge_nb_seen", types.ModuleType("_rowmerge_nb_seen"))
    verified = vars(cache).setdefault("verified", set())
    who = f"A Python worker on '{socket.gethostname()}'"
    import pyarrow as pa

    ours = {"python": f"{sys.version_info[0]}.{sys.version_info[1]}", "pyarrow": pa.__version__}
    for library, name in (("python", "Python"), ("pyarrow", "pyarrow")):
        if ours[library] != envelope[library]:
            return {
                "message": f"{who} has {name} {ours[library]}; the driver has {envelope[library]}",
                "hint": (
                    f"Run Python with {name} {envelope[library]} on the executors"
                    " (spark.pyspark.python, PYSPARK_PYTHON)."
                ),
            }
    problem = _load_bundles(envelope["bundles"], who, verified)
    for path, content in envelope["marks"] if problem is None else ():
        if (path, content) not in verified and not _holds(path, content):
            folder = Path(path).parent
            return {
                "message": (
                    f"{who} does not see the store's directory '{folder}' as the"
                    " driver does: it does not find a marker file there"
                ),
                "hint": (
                    "Use a store directory that driver and executors share, under the same path."
                ),
            }
        verified.add((path, content))
    return problem


def _holds(path: str, content: str) -> bool:
    try:
        return Path(path).read_text(encoding="utf-8") == content
    except OSError:
        return False


def _load_bundles(
    bundles: list[tuple[str, str, list[str]]], who: str, verified: set[tuple[str, str]]
) -> dict[str, str] | None:
    """Check that the modules that were sent are the ones imported."""
    entries = {}
    for name, digest, _ in bundles:
        entry = next(
            (entry for entry in sys.path if Path(entry).name == name and Path(entry).is_file()),
            None,
        )
        if entry is None or ((entry, digest) not in verified and _digest(entry) != digest):
            what = "did not get" if entry is None else "has another content of"
            return {
                "message": f"{who} {what} '{name}', which the engine sent",
                "hint": (
                    "Check the executor's log to see why the file was not fetched;"
                    " Engine(spark=session) sends it by addArtifacts."
                ),
            }
        verified.add((entry, digest))
        entries[name] = entry
    loaded = [
        (sys.modules[module], entries[name])
        for name, _, modules in bundles
        for module in modules
        if module in sys.modules
    ]
    if any(not str(getattr(module, "__file__", "")).startswith(entry) for module, entry in loaded):
        stale = {module for _, _, modules in bundles for module in modules}
        for module in [module for module in sys.modules if module.partition(".")[0] in stale]:
            del sys.modules[module]
    first = list(entries.values())
    if sys.path[1 : 1 + len(first)] != first:
        sys.path[1:] = first + [entry for entry in sys.path[1:] if entry not in first]
        importlib.invalidate_caches()
    return None


def _digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _record(serialized_schema: bytes, record: bytes) -> pa.RecordBatch:
    """Return one row with the record in the last binary channel; other channels are NULL or a
    neutral number.
    """
    import pyarrow as pa

    schema = pa.ipc.read_schema(pa.py_buffer(serialized_schema))
    arrays = [pa.nulls(1, field.type) for field in schema]
    arrays[-1] = pa.array([record], schema.field(len(arrays) - 1).type)
    numbers = {"kind": 0, "writer": -1, "$bucket": 0}
    for index, field in enumerate(schema):
        if field.name in numbers:
            arrays[index] = pa.array([numbers[field.name]], field.type)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
