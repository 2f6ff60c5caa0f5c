from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from proof.trials.driver import StoreLocation
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.connectors.shared.orphans import process_name
from rowmerge_nb.engine.catalog.leftovers import orphans_of
from rowmerge_nb.engine.spark.errors.translate import translate
from rowmerge_nb.engine.spark.job import fragments_and_records
from rowmerge_nb.engine.spark.marks import orphaned_marks, put_mark
from rowmerge_nb.engine.tasks.envelope import deliver
from rowmerge_nb.engine.tasks.outcome import OUTCOME, outcome
from rowmerge_nb.spi import ConnectorSession

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"


def task(batches):
    for batch in batches:
        yield outcome([(1, 0, str(batch.num_rows).encode())])


def envelope(**changes):
    return {
        "task": pickle.dumps(task),
        "python": PYTHON,
        "pyarrow": pa.__version__,
        "bundles": [],
        "marks": [],
        "record_schema": OUTCOME.serialize().to_pybytes(),
        **changes,
    }


def delivered(**changes):
    batches = list(deliver(envelope(**changes), [pa.record_batch({"a": [1, 2]})]))
    return fragments_and_records(pa.Table.from_batches(batches, OUTCOME))


def test_a_worker_that_is_as_it_must_be_does_the_task(tmp_path):
    mark = put_mark(tmp_path, "q1")
    assert delivered(marks=[(str(mark.path), mark.content)]) == ([b"2"], [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"python": "2.7"}, f"has Python {PYTHON}; the driver has 2.7"),
        ({"pyarrow": "1.0"}, f"has pyarrow {pa.__version__}; the driver has 1.0"),
        (
            {"bundles": [("rowmerge_nb-0.zip", "00", ["rowmerge_nb"])]},
            "did not get 'rowmerge_nb-0.zip'",
        ),
        (
            {"marks": [("/nowhere/.rowmerge_nb-mark-1", "q1")]},
            "does not see the store's directory '/nowhere'",
        ),
        (
            {"task": b"cno_such_module\nf\n."},
            "cannot load what it receives: ModuleNotFoundError: No module named 'no_such_module'",
        ),
    ],
)
def test_a_faulty_worker_returns_a_record_with_a_next_step(changes, message):
    fragments, (record,) = delivered(**changes)
    assert fragments == []
    assert message in record.error.message
    assert record.error.code == "CONFIGURATION_INVALID"
    assert record.error.hint


def test_a_worker_that_cannot_return_a_record_raises_an_equivalent_error():
    with pytest.raises(RuntimeError) as caught:
        delivered(python="2.7", record_schema=None)
    # Spark passes on the text, with more around it.
    told = translate(
        RuntimeError(f"Job aborted: Traceback ...\nRuntimeError: {caught.value}\n SQLSTATE: 38000"),
        "run",
    )
    assert told.code == "CONFIGURATION_INVALID"
    assert told.message.endswith(f"has Python {PYTHON}; the driver has 2.7")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.12, PySpark cannot run",
            "The executors' Python workers have Python 3.9; the driver has 3.12",
        ),
        (
            'java.io.IOException: Cannot run program "python3": error=2',
            "An executor cannot start Python: the program does not exist: 'python3'",
        ),
        (
            "[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed; it was not found.\n",
            "A Python worker lacks a library: PyArrow",
        ),
        (
            "PythonException: Traceback (most recent call last):\nModuleNotFoundError: No module named 'pyarrow'\n SQLSTATE: 38000",
            "A Python worker lacks a library: pyarrow",
        ),
    ],
)
def test_a_worker_that_cannot_start_tasks_is_reported_in_a_sentence(text, message):
    told = translate(RuntimeError(text), "run")
    assert told.message.startswith(message)
    assert told.code == "CONFIGURATION_INVALID"
    assert told.hint


def test_a_changed_archive_is_reloaded_in_a_worker_that_loaded_the_former_one(tmp_path):
    # In its own process, like a worker.
    code = f"""
import hashlib, pickle, sys, types, zipfile
sys.path.insert(0, {str(Path.cwd())!r})
from rowmerge_nb.engine.tasks import envelope
sys.path.pop(0)

def archive(name, value):
    path = {str(tmp_path)!r} + "/" + name
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("edited_module.py", f"def task(batches):\\n    yield {{value!r}}")
    sys.path.insert(1, path)
    return name, hashlib.sha256(open(path, "rb").read()).hexdigest(), ["edited_module"]

def run(bundle):
    import pyarrow
    content = b"cedited_module\\ntask\\n."
    ours = dict(task=content, python={PYTHON!r}, pyarrow=pyarrow.__version__, bundles=[bundle], marks=[], record_schema=None)
    return list(envelope.deliver(ours, []))

first, second = archive("modules-1.zip", "first"), archive("modules-2.zip", "second")
print(run(first), run(second), run(first))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['first'] ['second'] ['first']\n"


def test_a_mark_of_a_dead_process_is_an_orphan_and_that_of_a_living_one_is_not(tmp_path):
    alive = put_mark(tmp_path, "q1")
    dead = put_mark(tmp_path, "q2")
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE
    ) as gone:
        dead.path.write_text(f"q2\n{process_name(gone.pid)}\n")
    assert [orphan.statement for orphan in orphaned_marks(tmp_path, remove=False)] == ["q2"]
    assert [orphan.name for orphan in orphaned_marks(tmp_path, remove=True)] == [str(dead.path)]
    assert [entry.name for entry in tmp_path.iterdir()] == [alive.path.name]


def test_a_store_that_cannot_be_written_is_used_without_a_mark(tmp_path):
    assert put_mark(tmp_path / "missing", "q1") is None


@pytest.mark.parametrize("store", ["hive", "iceberg", "sqlite"])
def test_no_listing_of_a_store_shows_a_mark_which_becomes_an_orphan_of_its_dead_process(
    tmp_path, store
):
    connector = StoreLocation(store, str(tmp_path)).connector()
    transaction = connector.begin_transaction()
    metadata, session = connector.get_metadata(transaction), ConnectorSession("q1")
    tables, schemas = list(metadata.list_tables(session)), list(metadata.list_schemas(session))
    mark = put_mark(connector.shared_directory, "q1")
    assert (list(metadata.list_tables(session)), list(metadata.list_schemas(session))) == (
        tables,
        schemas,
    )
    connector.rollback(transaction)
    assert list(connector.orphans()) == []
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    mark.path.write_text(mark.content.replace(f":{os.getpid()}", f":{gone.pid}"))
    assert [
        [orphan.name for orphan in found.orphans]
        for found in orphans_of({"c": connector}, remove=True)
    ] == [[str(mark.path)]]
    assert not mark.path.exists()
    connector.close()


def test_a_store_without_a_directory_gets_no_mark():
    assert MemoryConnector().shared_directory is None
    assert list(orphans_of({"memory": MemoryConnector()}, remove=False)[0].orphans) == []
