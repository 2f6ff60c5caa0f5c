"""A driver killed at any step of a statement: the table has the rows from before or after it, and the next statement works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import Any

import pyarrow as pa
import pytest

from tests.connectors.jdbc.support import Database, Statement, merge
from tests.connectors.jdbc.test_calls import insert
from tests.connectors.jdbc.test_concurrency import opened, place_of

ROWS = 20_000
STEPS = ("stage", "finish", "commit")
CHILD = "import sys; from tests.connectors.jdbc.test_kills import die_at; die_at(*sys.argv[1:])"


def die_at(kind: str, where: str, step: str) -> None:
    """Change every row, and get killed after a step."""
    database = opened(kind, where)
    if kind == "sqlite":
        # With a small cache, changed pages go to the file before the commit, and only SQLite's journal has the former ones.
        store: Any = type(database.connector.store)
        connect = store.connect

        def narrow(self: Any, **more: Any) -> Any:
            session = connect(self, **more)
            session.execute("PRAGMA cache_size = 10")
            return session

        store.connect = narrow
    statement = Statement(database, "t")

    def reached(name: str) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    statement.begin()
    sink = statement.sink()
    rows = statement.read(row_id=True)
    changed = rows.set_column(1, "v", pa.array([7] * ROWS, pa.int32()))
    page = changed.add_column(2, "operation", pa.array([3] * ROWS, pa.int8()))
    for batch in page.to_batches():
        sink.store_merged_rows(batch)
    fragments = sink.finish()
    reached("stage")
    statement.finish(fragments)
    reached("finish")
    statement.commit()
    reached("commit")


@pytest.mark.trial
@pytest.mark.each_value
@pytest.mark.parametrize("step", STEPS)
def test_a_driver_that_is_killed_leaves_the_rows_of_before_or_those_of_after(
    database: Database, step: str
) -> None:
    database.sql("CREATE TABLE t (id int PRIMARY KEY, v int)")
    insert(
        database,
        "t",
        pa.table({"id": pa.array(range(ROWS), pa.int32()), "v": pa.array([1] * ROWS, pa.int32())}),
    )
    child = subprocess.run(
        [sys.executable, "-c", CHILD, database.kind, place_of(database), step],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    after = step == "commit"
    statement = Statement(database, "t")
    found = statement.read().to_pydict()
    statement.rollback()
    assert sorted(found["id"]) == list(range(ROWS))
    assert set(found["v"]) == {7 if after else 1}
    end = time.monotonic() + 20
    # A server soon notices the end of its client.
    while not after and not database.connector.orphans() and time.monotonic() < end:
        time.sleep(0.1)
    assert [bool(database.leftovers()), len(database.connector.orphans())] == (
        [False, 0] if after else [True, 1]
    )
    merge(database, "t", [(0, 9, 3, 0)])
    assert database.leftovers() == [], "the next statement has removed what was left"
    assert database.rows("SELECT v FROM t WHERE id = 0") == [(9,)]
