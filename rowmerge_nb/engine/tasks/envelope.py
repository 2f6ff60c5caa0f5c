"""What a task travels in to executors that may be anywhere: it looks at the worker process before anything of ours is loaded there.

The functions of this module are pickled by value, since a worker process need not find the package: so they use nothing of it.
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
"""What the record of a worker process begins with that is not as it must be; JSON follows, since such a process may lack our classes."""


def deliver(envelope: Mapping[str, Any], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Look at the worker process, then have the task work on a partition; what is wrong is told as the task's record.

    Args:
        envelope: ``task``: the pickled task; ``python`` and ``pyarrow``: the driver's versions; ``bundles``: the names and hashes of the
            archives that were sent, each with the modules in it; ``marks``: files that the driver has put into stores, and what they
            hold; ``told``: the schema in which a record is told, or None where nothing can be told but by an error.
        batches: the partition's rows.
    """
    problem, task = _look(envelope), None
    if problem is None:
        try:
            task = pickle.loads(envelope["task"])  # noqa: S301 - the driver wrote it
        except Exception as error:  # noqa: BLE001 - told as the task's record
            text = f"A Python worker on '{socket.gethostname()}' cannot load what it is sent: {type(error).__name__}: {error}"
            problem = {
                "message": text,
                "hint": "Have the libraries that the connector needs installed for the Python of the executors.",
            }
    if problem is None and task is not None:
        yield from task(batches)
        return
    record = PROBLEM + json.dumps(problem).encode()
    if envelope["told"] is None:
        raise RuntimeError(f"[[CONFIGURATION_INVALID]] {record.decode()}")
    deque(batches, maxlen=0)
    yield _record(envelope["told"], record)


def _look(envelope: Mapping[str, Any]) -> dict[str, str] | None:
    """Return what is wrong with this process; None if nothing is. What was found right once is not looked at again."""
    seen = sys.modules.setdefault("_rowmerge_nb_seen", types.ModuleType("_rowmerge_nb_seen"))
    known = vars(seen).setdefault("known", set())
    who = f"A Python worker on '{socket.gethostname()}'"
    import pyarrow as pa

    ours = {"python": f"{sys.version_info[0]}.{sys.version_info[1]}", "pyarrow": pa.__version__}
    for library, name in (("python", "Python"), ("pyarrow", "pyarrow")):
        if ours[library] != envelope[library]:
            return {
                "message": f"{who} has {name} {ours[library]}; the driver has {envelope[library]}",
                "hint": f"Have the executors run a Python with {name} {envelope[library]} (spark.pyspark.python, PYSPARK_PYTHON).",
            }
    problem = _load_bundles(envelope["bundles"], who, known)
    for path, content in envelope["marks"] if problem is None else ():
        if (path, content) not in known and not _holds(path, content):
            folder = Path(path).parent
            return {
                "message": f"{who} does not see the store's directory '{folder}' as the driver does: a mark put there is not found",
                "hint": "Give the store a directory that driver and executors share, under the same path.",
            }
        known.add((path, content))
    return problem


def _holds(path: str, content: str) -> bool:
    try:
        return Path(path).read_text(encoding="utf-8") == content
    except OSError:
        return False


def _load_bundles(bundles: list[tuple[str, str, list[str]]], who: str, known: set[tuple[str, str]]) -> dict[str, str] | None:
    """Check that the modules which were sent are the ones that are imported; what an earlier statement's task has loaded of them goes."""
    entries = {}
    for name, digest, _ in bundles:
        entry = next((entry for entry in sys.path if Path(entry).name == name and Path(entry).is_file()), None)
        if entry is None or ((entry, digest) not in known and _digest(entry) != digest):
            what = "did not get" if entry is None else "has another content of"
            return {
                "message": f"{who} {what} '{name}', which the engine has sent",
                "hint": "Look into the executor's log for why the file was not fetched; Engine(spark=session) sends it by addArtifacts.",
            }
        known.add((entry, digest))
        entries[name] = entry
    loaded = [(sys.modules[module], entries[name]) for name, _, modules in bundles for module in modules if module in sys.modules]
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


def _record(told: bytes, record: bytes) -> pa.RecordBatch:
    """Return one row in which all is NULL but the record, which is the last binary channel, and what must be a number."""
    import pyarrow as pa

    schema = pa.ipc.read_schema(pa.py_buffer(told))
    arrays = [pa.nulls(1, field.type) for field in schema]
    arrays[-1] = pa.array([record], schema.field(len(arrays) - 1).type)
    numbers = {"kind": 0, "writer": -1, "$bucket": 0}
    for index, field in enumerate(schema):
        if field.name in numbers:
            arrays[index] = pa.array([numbers[field.name]], field.type)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
