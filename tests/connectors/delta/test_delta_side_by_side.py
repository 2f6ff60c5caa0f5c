"""Two processes that change one Delta table concurrently: this connector, and delta-rs through its own interface."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from proof.trials.points.in_process import InProcessEngine, without_spark
from rowmerge_nb import DeltaConnector, RowMergeError

ROUNDS = 25
OTHER = """
import json, sys
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

folder, rounds = sys.argv[1], int(sys.argv[2])
changed = added = 0
print("ready", flush=True)
for number in range(rounds):
    try:
        if number % 2:
            DeltaTable(folder).update(updates={"n": "n + 1"}, predicate="owner = 'them'")
            changed += 1
        else:
            rows = pa.table({"owner": ["theirs"], "n": pa.array([1], pa.int64())})
            write_deltalake(folder, rows, mode="append")
            added += 1
    except DeltaError:
        continue
print(json.dumps([changed, added]))
"""


def run(engine: InProcessEngine, sql: str) -> bool:
    """Run a statement; return False if it conflicts with another commit."""
    try:
        engine.run(sql, trace="off")
    except RowMergeError as error:
        if error.code != "TRANSACTION_CONFLICT":
            raise
        return False
    return True


@pytest.fixture(autouse=True)
def _no_spark() -> Iterator[None]:
    with without_spark():
        yield


@pytest.mark.trial
def test_no_change_of_either_writer_is_lost(tmp_path: Path) -> None:
    store = DeltaConnector(tmp_path)
    folder = tmp_path / "default" / "t"
    engine = InProcessEngine(catalog="lake")
    engine.add_catalog("lake", store)
    engine.run("CREATE TABLE t (owner varchar, n bigint)")
    engine.run("INSERT INTO t (owner, n) VALUES ('us', 0), ('them', 0)")
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, str(folder), str(ROUNDS)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        changed = added = 0
        for number in range(ROUNDS):
            if number % 2:
                changed += run(engine, "UPDATE t SET n = n + 1 WHERE owner = 'us'")
            else:
                added += run(engine, "INSERT INTO t (owner, n) VALUES ('ours', 1)")
        theirs = json.loads(other.stdout.read())
    assert other.returncode == 0
    rows = DeltaTable(folder).to_pyarrow_table().to_pylist()
    counts = {word: [row["n"] for row in rows if row["owner"] == word] for word in ("us", "them")}
    assert counts == {"us": [changed], "them": [theirs[0]]}
    owners = [row["owner"] for row in rows]
    assert (owners.count("ours"), owners.count("theirs")) == (added, theirs[1])
    assert changed + theirs[0] > 0
    # Conflicting statements have left no file.
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("rowmerge-*.parquet")}
    log = "".join(path.read_text() for path in (folder / "_delta_log").glob("*.json"))
    assert all(path in log for path in files)
    assert store.orphans() == []
