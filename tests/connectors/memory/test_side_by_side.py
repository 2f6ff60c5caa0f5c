"""Concurrent statements on one memory table: appends run beside everything, changes wait for each other in a queue."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import MemoryConnector, RowMergeError
from rowmerge_nb.connectors.memory.memory_handles import MemoryTableHandle
from rowmerge_nb.connectors.memory.turns import Turns
from rowmerge_nb.spi import (
    ColumnMetadata,
    ConnectorTableMetadata,
    ConnectorTableVersion,
    SchemaTableName,
    parse_type,
)
from rowmerge_nb.spi.alterations import AddColumn, SetTableComment
from rowmerge_nb.spi.transactions import Transactions
from rowmerge_nb.testing.contract.contract_statement import Changes, PageStatement

NAME = SchemaTableName("default", "t")
COLUMNS = (ColumnMetadata("id", parse_type("bigint")), ColumnMetadata("v", parse_type("varchar")))


def store(keep: int = 5, **properties: Any) -> MemoryConnector:
    connector = MemoryConnector(keep_versions=keep)
    connector.put(
        ConnectorTableMetadata(NAME, COLUMNS, properties), pa.table({"id": [0], "v": ["a"]})
    )
    return connector


def statement(connector: MemoryConnector) -> PageStatement:
    return PageStatement(connector, NAME)


def ids(connector: MemoryConnector) -> list[int]:
    return sorted(connector.read(NAME).column("id").to_pylist())


class Append:
    """An INSERT whose finish call and commit are separate steps."""

    def __init__(self, connector: MemoryConnector, *keys: int) -> None:
        self.statement = statement(connector)
        self.rows = [(key, "new") for key in keys]

    def finish(self) -> Append:
        self.statement.insert(self.rows)
        return self

    def commit(self) -> Any:
        return self.statement.connector.commit(self.statement.transaction)


def failure(call: Any) -> str:
    with pytest.raises(RowMergeError) as caught:
        call()
    return str(caught.value.code)


def test_appends_do_not_conflict_in_any_order_of_their_calls() -> None:
    for order in ("AaBb", "ABab", "ABba"):
        connector = store()
        appends = {"A": Append(connector, 1, 2), "B": Append(connector, 3)}
        for step in order:
            appends[step.upper()].finish() if step.isupper() else appends[step.upper()].commit()
        assert ids(connector) == [0, 1, 2, 3], order
        assert len(connector.versions(NAME)) == 3


def test_an_append_survives_more_commits_than_there_are_kept_versions() -> None:
    connector = store(keep=0)
    slow = Append(connector, 9)
    for key in range(1, 5):
        Append(connector, key).finish().commit()
    slow.finish().commit()
    assert ids(connector) == [0, 1, 2, 3, 4, 9]


def test_appends_of_many_threads_are_all_there() -> None:
    connector = store()
    barrier = threading.Barrier(8)

    def append(key: int) -> None:
        one = Append(connector, key)
        barrier.wait()
        one.finish().commit()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(1, 9)))
    assert ids(connector) == list(range(9))


def test_a_transaction_may_begin_while_another_thread_searches_a_version() -> None:
    connector = store()

    class Watched(Transactions[Any]):
        def values(self) -> Any:
            for value in super().values():
                beginning = threading.Thread(target=connector.begin_transaction)
                beginning.start()
                beginning.join(0.05)
                threads.append(beginning)
                yield value

    threads: list[threading.Thread] = []
    reading = statement(connector)
    connector._transactions.__class__ = Watched
    handle = reading.metadata.get_table_handle(reading.session, NAME)
    assert isinstance(handle, MemoryTableHandle)
    assert connector.splits_of(handle)
    for thread in threads:
        thread.join()
    assert len(connector._transactions) == 1 + len(threads)


def test_an_append_follows_a_change_but_a_change_fails_after_an_append() -> None:
    connector = store()
    append, change = Append(connector, 1), statement(connector)
    change.merge(Changes(updated=((0, {"v": "changed"}),)))
    late = statement(connector)
    late.merge(Changes(deleted=(0,)))
    append.finish()
    change.commit()
    append.commit()
    assert sorted(connector.read(NAME).column("v").to_pylist()) == ["changed", "new"]
    assert failure(late.commit) == "TRANSACTION_CONFLICT"
    assert ids(connector) == [0, 1]


def test_an_append_follows_truncate_and_a_restored_version() -> None:
    connector = store()
    first = connector.versions(NAME)[0]
    Append(connector, 5).finish().commit()
    append, truncate = Append(connector, 1).finish(), statement(connector)
    truncate.metadata.truncate_table(truncate.session, truncate.handle)
    truncate.commit()
    append.commit()
    assert ids(connector) == [1]
    append, restore = Append(connector, 2).finish(), statement(connector)
    restore.metadata.restore_table(restore.session, restore.handle, ConnectorTableVersion(first))
    restore.commit()
    append.commit()
    assert ids(connector) == [0, 2]


def test_a_repeated_key_is_found_when_the_second_append_commits() -> None:
    connector = store(primary_key=("id",))
    first, second = Append(connector, 1).finish(), Append(connector, 1).finish()
    first.commit()
    assert failure(second.commit) == "CONSTRAINT_VIOLATION"
    assert ids(connector) == [0, 1]


def test_a_comment_does_not_matter_to_an_append_and_stays() -> None:
    connector = store()
    append, comment = Append(connector, 1).finish(), statement(connector)
    comment.metadata.alter_table(comment.session, comment.handle, SetTableComment("of the shop"))
    comment.commit()
    append.commit()
    now = statement(connector)
    assert (now.handle.metadata.comment, ids(connector)) == ("of the shop", [0, 1])


@pytest.mark.parametrize("other", ["drop", "drop and create", "add a column", "register"])
def test_an_append_to_a_recreated_table_conflicts(other: str) -> None:
    for finished in (True, False):
        connector = store()
        append = Append(connector, 1)
        if finished:
            append.finish()
        change = statement(connector)
        if other == "add a column":
            new = AddColumn(ColumnMetadata("w", parse_type("bigint")))
            change.metadata.alter_table(change.session, change.handle, new)
            change.commit()
        elif other == "register":
            change.rollback()
            connector.put(ConnectorTableMetadata(NAME, COLUMNS), pa.table({"id": [7], "v": ["b"]}))
        else:
            change.metadata.drop_table(change.session, change.handle)
            change.commit()
        if other == "drop and create":
            again = PageStatement(connector, NAME)
            again.metadata.create_table(again.session, ConnectorTableMetadata(NAME, COLUMNS))
            again.commit()
        before = None if other == "drop" else ids(connector)
        assert failure(append.commit if finished else append.finish) == "TRANSACTION_CONFLICT"
        assert (None if other == "drop" else ids(connector)) == before


def evolved(connector: MemoryConnector, key: int, column: str) -> PageStatement:
    """Build a MERGE that adds a column and a row, up to its commit."""
    merge = statement(connector)
    merge.evolve(ColumnMetadata(column, parse_type("bigint")))
    merge.merge(Changes(inserted=((key, "new", 1),)))
    return merge


@pytest.mark.parametrize("change", ["merge", "merge that adds a column", "truncate", "append"])
def test_a_change_of_a_table_with_columns_added_meanwhile_conflicts(change: str) -> None:
    connector = store()
    slow = statement(connector)
    evolved(connector, 1, "w").commit()

    def finish() -> None:
        if change == "truncate":
            slow.metadata.truncate_table(slow.session, slow.handle)
        elif change == "append":
            slow.insert([(2, "new")])
        elif change == "merge":
            slow.merge(Changes(updated=((0, {"v": "changed"}),), inserted=((2, "new"),)))
        else:
            slow.evolve(ColumnMetadata("x", parse_type("bigint")))
            slow.merge(Changes(inserted=((2, "new", 1),)))

    assert failure(finish) == "TRANSACTION_CONFLICT"
    slow.rollback()
    assert ids(connector) == [0, 1]
    assert connector.read(NAME).column_names == ["id", "v", "w"]


def test_a_change_of_a_table_with_columns_dropped_meanwhile_conflicts() -> None:
    connector = store()
    first = connector.versions(NAME)[0]
    evolved(connector, 1, "w").commit()
    slow, undo = statement(connector), statement(connector)
    undo.metadata.restore_table(undo.session, undo.handle, ConnectorTableVersion(first), ["w"])
    undo.commit()
    assert (
        failure(lambda: slow.merge(Changes(updated=((0, {"w": 5}),), inserted=((2, "new", 2),))))
        == "TRANSACTION_CONFLICT"
    )
    slow.rollback()
    assert connector.read(NAME).to_pydict() == {"id": [0], "v": ["a"]}


def test_a_commit_reports_the_version_that_it_builds_on() -> None:
    connector = store()
    first, second = Append(connector, 1).finish(), Append(connector, 2).finish()
    one, two = first.commit(), second.commit()
    assert two.made_from == one
    assert connector.read(NAME, one.version).num_rows == 2


# -- turns


def in_thread(call: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


@pytest.fixture
def elsewhere() -> Any:
    """Yield a function that runs calls in another thread that stays alive; in a second one for `third`."""
    with ThreadPoolExecutor(1) as second, ThreadPoolExecutor(1) as third:
        yield (
            lambda call, name="second": (third if name == "third" else second).submit(call).result()
        )


def test_changes_run_in_the_order_of_their_requests(elsewhere: Any) -> None:
    turns = Turns()
    assert elsewhere(lambda: turns.wait(NAME, 1, 0, exclusive=True))
    assert not turns.wait(NAME, 2, 0, exclusive=True)
    assert not elsewhere(lambda: turns.wait(NAME, 3, 0, exclusive=False), "third"), (
        "an append waits for changes before it, too"
    )
    turns.leave(1)
    assert turns.wait(NAME, 2, 0, exclusive=True)
    assert not elsewhere(lambda: turns.wait(NAME, 3, 0, exclusive=False), "third")
    turns.leave(2)
    assert elsewhere(lambda: turns.wait(NAME, 3, 0, exclusive=False), "third")


def test_appends_do_not_wait_for_each_other_and_a_change_waits_for_both(elsewhere: Any) -> None:
    turns = Turns()
    assert elsewhere(lambda: turns.wait(NAME, 1, 0, exclusive=False))
    assert turns.wait(NAME, 2, 0, exclusive=False)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(turns.wait, NAME, 3, 30, exclusive=True)
        turns.leave(1)
        assert not waiting.done()
        turns.leave(2)
        assert waiting.result()


def test_tables_have_queues_of_their_own(elsewhere: Any) -> None:
    turns = Turns()
    assert elsewhere(lambda: turns.wait(NAME, 1, 0, exclusive=True))
    assert turns.wait(SchemaTableName("default", "other"), 2, 0, exclusive=True)


def test_a_thread_does_not_wait_for_itself_nor_for_a_dead_one(elsewhere: Any) -> None:
    turns = Turns()
    assert turns.wait(NAME, 1, 0, exclusive=True)
    assert turns.wait(NAME, 2, 0, exclusive=True), (
        "what this thread has begun it could never end while it waits"
    )
    assert not elsewhere(lambda: turns.wait(NAME, 3, 0, exclusive=True))
    other = Turns()
    assert in_thread(lambda: other.wait(NAME, 1, 0, exclusive=True))
    assert other.wait(NAME, 2, 0, exclusive=True)


@pytest.mark.parametrize("end", ["commit", "rollback", "failed commit"])
def test_a_turn_ends_with_its_transaction(end: str, elsewhere: Any) -> None:
    connector = store()
    one, two = statement(connector), statement(connector)
    assert one.metadata.wait_for_turn(one.session, NAME, 0)
    assert not elsewhere(lambda: two.metadata.wait_for_turn(two.session, NAME, 0))
    if end == "failed commit":
        one.merge(Changes(deleted=(0,)))
        Append(connector, 1).finish().commit()
        assert failure(one.commit) == "TRANSACTION_CONFLICT"
    elif end == "commit":
        one.merge(Changes(deleted=(0,)))
        one.commit()
    else:
        one.rollback()
    assert elsewhere(lambda: two.metadata.wait_for_turn(two.session, NAME, 0))
