"""Concurrent compactions, with statements and under faults: one at a time, visible after its commit, without leftovers of others."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proof.trials.points.watch import Fault
from rowmerge_nb import HiveAcidConnector, RowMergeError, StatementInterrupted
from rowmerge_nb.connectors.hive_acid import hive_connector as module
from rowmerge_nb.connectors.hive_acid.metastore import embedded
from rowmerge_nb.connectors.hive_acid.metastore.metastore import new_compaction
from rowmerge_nb.connectors.hive_acid.reader import splits_of
from tests.connectors.hive_acid.kit import (
    NAME,
    Statement,
    contents,
    files,
    inserted,
    make_table,
    merge,
    row_ids,
)
from tests.connectors.hive_acid.points import READ, Trials, filled
from tests.connectors.hive_acid.test_writes import drop


@pytest.fixture
def store(tmp_path: Path) -> HiveAcidConnector:
    filled(tmp_path)
    return HiveAcidConnector(tmp_path)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "COMPACTION_PATIENCE_SECONDS", 0.0)


def when_written(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Run a function once, when a compaction has read its state and written its files."""
    write = module.write_compaction

    def written(*arguments: Any, **more: Any) -> Any:
        monkeypatch.setattr(module, "write_compaction", write)
        made = write(*arguments, **more)
        action()
        return made

    monkeypatch.setattr(module, "write_compaction", written)


def when_placed(monkeypatch: pytest.MonkeyPatch, action: Callable[[], object]) -> None:
    """Run a function whenever a directory of a compaction was moved."""
    place = module.place

    def placed(*arguments: Any) -> None:
        place(*arguments)
        action()

    monkeypatch.setattr(module, "place", placed)


def refused(code: str, action: Callable[[], object]) -> RowMergeError:
    with pytest.raises(RowMergeError) as caught:
        action()
    assert caught.value.code == code, caught.value
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_a_second_compaction_is_refused_and_inserts_continue(
    store: HiveAcidConnector,
    monkeypatch: pytest.MonkeyPatch,
    impatient: None,
    first: bool,
    second: bool,
) -> None:
    other = HiveAcidConnector(store.warehouse.parent)
    before = contents(store)

    def meanwhile() -> None:
        merge(other, inserted((70, "new", "p0")))
        merge(other, inserted((71, "new", "p0")))
        error = refused("TRANSACTION_CONFLICT", lambda: other.compact("default", "t", major=second))
        assert "is being compacted by transaction" in error.message

    when_written(monkeypatch, meanwhile)
    store.compact("default", "t", major=first)
    expected = sorted([*before, (70, "new", "p0"), (71, "new", "p0")], key=repr)
    assert contents(other) == expected
    other.compact("default", "t", major=second)
    other.remove_obsolete("default", "t")
    assert contents(store) == expected
    assert (store.orphans(), store.open_transactions()) == ([], [])


def test_a_second_compaction_waits_for_the_first(
    store: HiveAcidConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = HiveAcidConnector(store.warehouse.parent)
    before, made, asked = contents(store), [], threading.Event()
    running = embedded._running_compaction

    def noted(*arguments: Any) -> Any:
        holder = running(*arguments)
        if holder is not None:
            asked.set()
        return holder

    monkeypatch.setattr(embedded, "_running_compaction", noted)
    second = threading.Thread(target=lambda: made.append(other.compact("default", "t")))

    def meanwhile() -> None:
        second.start()
        assert asked.wait(30)

    when_written(monkeypatch, meanwhile)
    assert len(store.compact("default", "t")) == 1
    second.join(30)
    assert made == [[]], "nothing is left to compact"
    assert contents(other) == before


@pytest.mark.parametrize("major", [True, False])
def test_nothing_is_seen_before_the_commit_and_the_cleaner_leaves_it(
    store: HiveAcidConnector, monkeypatch: pytest.MonkeyPatch, major: bool
) -> None:
    other = HiveAcidConnector(store.warehouse.parent)
    before, seen = contents(store), []

    def meanwhile() -> None:
        statement = Statement(other)
        seen.append(sorted((tuple(row.values()) for row in statement.rows()), key=repr))
        assert not any("_v" in str(split) for split in splits_of(statement.handle))
        # The file is locked by the compaction's own thread and is not asked for write access.
        assert list(module.obsolete(statement.handle.table, statement.handle.snapshot)) == []
        statement.commit()

    when_placed(monkeypatch, meanwhile)
    made = store.compact("default", "t", major=major)
    assert seen == [before] * len(made)
    assert len(made) == (1 if major else 2)
    assert {path.parent.name for path in (store.warehouse / "t").rglob("bucket_*")} >= {
        path.name for path in made
    }


def test_a_compaction_of_a_dead_process_is_taken_over_and_its_results_are_orphans(
    store: HiveAcidConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(store)
    with monkeypatch.context() as patched:
        patched.setattr(
            store.metastore, "commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        patched.setattr(
            store.metastore, "abort", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        with pytest.raises(StatementInterrupted, match="The table has the same rows") as caught:
            store.compact("default", "t", major=False)
        assert caught.value.changed is None
    assert contents(store) == before
    # Two directories were moved; their transaction is open, and nothing will end it.
    assert len([name for name in files(store) if name.endswith("_v0000006")]) == 2
    survivor = HiveAcidConnector(store.warehouse.parent)
    assert len(survivor.compact("default", "t", major=False)) == 2
    assert contents(survivor) == before
    assert len(survivor.remove_orphans()) == 2
    assert not [name for name in files(store) if "_v0000006" in name]
    assert contents(survivor) == before


def test_a_compaction_of_a_table_replaced_meanwhile_does_not_touch_the_new_one(
    store: HiveAcidConnector, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile() -> None:
        drop(store)
        make_table(store)
        for number in range(6):
            merge(store, inserted((number, "new", "x")))

    when_written(monkeypatch, meanwhile)
    refused("TRANSACTION_CONFLICT", lambda: store.compact("default", "t", major=False))
    assert [row[:2] for row in contents(store)] == [(number, "new") for number in range(6)]
    assert not [name for name in files(store) if "_v0" in name or "_tmp" in name]
    assert store.compact("default", "t")
    assert len(contents(store)) == 6


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.EIO, "HIVE_FILESYSTEM_ERROR"), (errno.ENOSPC, "GENERIC_INSUFFICIENT_RESOURCES")],
)
def test_a_refusal_of_the_disk_is_named(
    store: HiveAcidConnector, monkeypatch: pytest.MonkeyPatch, number: int, code: str
) -> None:
    before, names = contents(store), files(store)

    def broken() -> None:
        raise OSError(number, os.strerror(number))

    when_placed(monkeypatch, broken)
    error = refused(code, lambda: store.compact("default", "t", major=False))
    assert os.strerror(number) in error.message
    assert (contents(store), files(store), store.open_transactions()) == (before, names, [])


def test_a_transaction_of_a_compaction_is_abandoned_once_the_compaction_has_ended(
    store: HiveAcidConnector,
) -> None:
    table = store.metastore.get_table(NAME)
    assert table is not None
    with new_compaction() as query_id:
        number = store.metastore.open_compaction(query_id, table)
        assert store.orphans() == []
        assert [opened.number for opened in store.open_transactions()] == [number]
    assert store.orphans() == []
    assert store.open_transactions() == []


def test_a_statement_that_began_before_a_compaction_commits_after_it(
    store: HiveAcidConnector,
) -> None:
    ids = row_ids(store)
    statement = Statement(store)
    statement.stage([[(2, ids[0], None, None, "p0")]])
    before = contents(store)
    store.compact("default", "t", major=False)
    store.compact("default", "t")
    assert sorted((tuple(row.values()) for row in statement.rows()), key=repr) == before
    statement.finish()
    statement.commit()
    assert contents(store) == [row for row in before if row[0] != 0]


def test_a_process_killed_between_the_moves_leaves_the_rows_unchanged(
    tmp_path: Path,
) -> None:
    trials = Trials(tmp_path, lambda store: store.compact("default", "t", major=False))
    trials.prepare()
    assert len(trials.moves) == 2
    for number in trials.moves:
        trials.try_fault(Fault("kill", number, after=True))
        trials.try_fault(Fault(READ, number))
    assert trials.problems == []
    assert trials.before == trials.after


@pytest.mark.long
@pytest.mark.parametrize("major", [True, False])
def test_the_rows_are_stored_once_without_leftovers_after_a_fault_at_any_point(
    tmp_path: Path, major: bool
) -> None:
    trials = Trials(tmp_path, lambda store: store.compact("default", "t", major=major))
    points = trials.prepare(partitioned_by=("p",))
    for fault in trials.faults(points):
        trials.try_fault(fault)
    assert trials.problems == []
    assert trials.before == trials.after
