"""An interrupt in each phase of a MERGE: the message about the table is true, and no file remains."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rowmerge_nb import DeltaConnector, Engine, StatementInterrupted
from rowmerge_nb.connectors.delta import log
from rowmerge_nb.connectors.delta.delta_connector import DeltaSplitManager
from rowmerge_nb.connectors.delta.delta_metadata import DeltaMetadata

pytestmark = pytest.mark.spark

MERGE = (
    "MERGE INTO lake.default.t t USING (VALUES (2, 5), (9, 9)) s (id, v) ON t.id = s.id"
    " WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.v)"
)
PHASES: dict[str, tuple[Any, str]] = {
    "open": (DeltaMetadata, "get_table_handle"),
    "begin": (DeltaMetadata, "begin_merge"),
    "read": (DeltaSplitManager, "get_splits"),
    "finish": (DeltaMetadata, "finish_merge"),
    "log": (log, "commit"),
    "commit": (DeltaConnector, "commit"),
}


def rows(table: DeltaTable) -> list[tuple[int, int]]:
    return sorted(map(tuple, (row.values() for row in table.to_pyarrow_table().to_pylist())))


BEFORE, AFTER = [(1, 10), (2, 20), (3, 30)], [(1, 10), (2, 5), (3, 30), (9, 9)]


class World:
    """An engine with a table of three rows."""

    def __init__(self, spark: Any, directory: Path) -> None:
        self.connector = DeltaConnector(directory)
        self.engine = Engine(spark=spark)
        self.engine.add_catalog("lake", self.connector)
        self.engine.run("CREATE TABLE lake.default.t (id bigint, v bigint)")
        self.engine.run("INSERT INTO lake.default.t VALUES (1, 10), (2, 20), (3, 30)")
        self.folder = directory / "default" / "t"

    def rows(self) -> list[tuple[int, int]]:
        read = DeltaTable(self.folder).to_pyarrow_table().to_pylist()
        return sorted((row["id"], row["v"]) for row in read)

    def check(self, changed: bool | None) -> None:
        """Compare the claim of an error with the table, and merge again."""
        assert changed is not None
        table = DeltaTable(self.folder)
        assert self.rows() == (AFTER if changed else BEFORE)
        assert table.version() == (2 if changed else 1)
        if not changed:
            live = pa.table(table.get_add_actions()).column("path").to_pylist()
            names = {path.name for path in self.folder.glob("*.parquet")}
            assert names == {unquote(path) for path in live}
        assert self.connector.orphans() == []
        self.engine.run(MERGE)
        assert self.rows() == AFTER


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("phase", PHASES)
def test_an_interrupt_in_a_call_of_a_merge_is_reported_truthfully(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str, after: bool
) -> None:
    world = World(spark, tmp_path)
    owner, name = PHASES[phase]
    method, calls = getattr(owner, name), 0

    def interrupted(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1 and not after:
            signal.raise_signal(signal.SIGINT)
        result = method(*arguments, **named)
        if calls == 1 and after:
            signal.raise_signal(signal.SIGINT)
        return result

    with monkeypatch.context() as patched, pytest.raises(StatementInterrupted) as caught:
        patched.setattr(owner, name, interrupted)
        world.engine.run(MERGE)
    assert calls > 0
    if phase in {"open", "begin", "read"}:
        assert caught.value.changed is False
    world.check(caught.value.changed)


def test_an_interrupt_at_each_step_of_a_merge_is_reported_truthfully(
    spark: Any, tmp_path: Path
) -> None:
    steps: list[str] = []
    World(spark, tmp_path / "steps").engine.run(MERGE, rehearse=True, progress=steps.append)
    assert len(steps) > 2
    for index, step in enumerate(dict.fromkeys(steps)):
        world = World(spark, tmp_path / str(index))

        def interrupt(name: str, step: str = step) -> None:
            if name == step:
                signal.raise_signal(signal.SIGINT)

        with pytest.raises(StatementInterrupted) as caught:
            world.engine.run(MERGE, progress=interrupt)
        world.check(caught.value.changed)
