"""Two statements in every order of their calls: on every store, and on deliberately wrong connectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import (
    HiveAcidConnector,
    IcebergConnector,
    MemoryConnector,
    PostgresConnector,
    RowMergeError,
    SqliteConnector,
)
from rowmerge_nb.base.errors import ConnectorError
from rowmerge_nb.testing.interleaving import Changes, Interleaving, interleave, upsert
from rowmerge_nb.testing.interleaving.orders import orders, steps
from tests.contract.exchangeable_store import Store

SHORTEST = 8
KEYED = {"primary_key": ("id",)}


def sets(value: str, key: int = 3) -> Changes:
    return Changes(updated=[(key, {"v": value})])


def adds(text: str) -> Any:
    """Adds a text to the value that it has read in row 1, like ``v = v || 'x'``."""
    return lambda rows: Changes(updated=[(key, {"v": v + text}) for key, v in rows if key == 1])


PAIRS: dict[str, tuple[Any, Any]] = {
    "one row": (sets("x"), sets("y")),
    "two rows": (sets("x", 1), sets("y", 2)),
    "delete and update": (Changes(deleted=[3]), sets("y")),
    "new key": (upsert((9, "x")), upsert((9, "y"))),
}


def hive(folder: Path) -> HiveAcidConnector:
    return HiveAcidConnector(folder / "lake")


def sqlite(folder: Path) -> SqliteConnector:
    return SqliteConnector(folder / "shop.db", create=True)


def iceberg(folder: Path) -> IcebergConnector:
    return IcebergConnector(folder)


def right(told: Interleaving, conflicts: set[str]) -> None:
    assert told.wrong == (), str(told)
    assert {code for _, code in told.conflicts} <= conflicts
    assert told.possible == 50
    # The two serial orders are among them, and both statements are committed in these.
    assert sum(all(order.committed) for order in told.orders) >= 2


@pytest.mark.parametrize("pair", PAIRS)
def test_every_order_in_memory_is_as_good_as_one_after_the_other(pair: str) -> None:
    right(interleave(MemoryConnector, *PAIRS[pair]), {"TRANSACTION_CONFLICT"})


# By default, one pair runs in its shortest orders; with --long, every pair in all.
EXTENTS = [
    pytest.param("one row", SHORTEST),
    *(pytest.param(name, None, marks=pytest.mark.long) for name in PAIRS),
]


@pytest.mark.parametrize(("pair", "most"), EXTENTS)
@pytest.mark.parametrize("make", [hive, iceberg])
def test_every_order_on_files_is_as_good_as_one_after_the_other(
    make: Any, pair: str, most: int | None
) -> None:
    right(interleave(make, *PAIRS[pair], most=most), {"TRANSACTION_CONFLICT"})


@pytest.mark.parametrize(("pair", "most"), EXTENTS)
def test_every_order_on_sqlite_is_as_good_as_one_after_the_other(
    pair: str, most: int | None
) -> None:
    # New keys: a database reports an existing key.
    told = interleave(sqlite, *PAIRS[pair], properties=KEYED, most=most, patience=0.2)
    right(told, {"TRANSACTION_CONFLICT", "CONSTRAINT_VIOLATION"})


@pytest.mark.trial
@pytest.mark.slow
@pytest.mark.parametrize(("pair", "most"), EXTENTS)
def test_every_order_on_postgresql_is_as_good_as_one_after_the_other(
    postgresql: str, pair: str, most: int | None
) -> None:
    connector = PostgresConnector(postgresql)
    try:
        told = interleave(connector, *PAIRS[pair], properties=KEYED, most=most, patience=0.2)
        right(told, {"TRANSACTION_CONFLICT", "CONSTRAINT_VIOLATION"})
        assert told.connector == "PostgresConnector"
    finally:
        connector.close()


class Careless(Store):
    """Commits on top of all commits of others since its read."""

    def __init__(self) -> None:
        super().__init__({})

    def commit(self, transaction_handle: Any) -> None:
        self._transactions[transaction_handle.number].read.clear()
        super().commit(transaction_handle)


def test_a_lost_update_is_found_and_printed_as_the_shortest_order() -> None:
    told = interleave(Careless, adds("x"), adds("y"))
    assert told.shortest.keys() == {"lost update"}
    order = told.shortest["lost update"]
    assert all(order.committed)
    assert order.kind == "lost update"
    # In the shortest orders the turn changes twice: one statement reads, the other runs completely, the first one ends.
    assert order.length[0] == 2
    text = str(told)
    assert "Lost update, in " in text
    assert "U 1 id " in text
    assert "must be: (1, 'axy'), (2, 'b'), (3, 'c')" in text
    assert len(text.split("The shortest:")[1].splitlines()) <= 20
    assert "<pre>" in told._repr_html_()
    assert set(told.table.column("wrong").to_pylist()) == {"", "lost update"}


def test_a_lost_update_of_another_row_is_found_too() -> None:
    told = interleave(Careless, *PAIRS["two rows"])
    assert "is lost" in told.shortest["lost update"].about


class Appending(Careless):
    """Keeps inserts of others since its read, like a log of inserts, and never checks for an existing key."""

    def commit(self, transaction_handle: Any) -> None:
        import pyarrow as pa

        transaction = self._transactions[transaction_handle.number]
        for name, read in transaction.read.items():
            table = self._tables.get(name)
            changed = transaction.tables.get(name)
            if table is None or changed is None or not read or table.current == read:
                continue
            before, now = table.versions[read], table.versions[table.current]
            ours = changed.versions[changed.current]
            new = now.filter(
                pa.compute.invert(
                    pa.compute.is_in(now.column("id"), before.column("id").combine_chunks())
                )
            )
            changed.versions[changed.current] = pa.concat_tables([ours, new])
        super().commit(transaction_handle)


def test_a_doubled_row_is_found() -> None:
    told = interleave(Appending, upsert((9, "x")), upsert((9, "y")))
    assert "doubled row" in told.shortest
    assert told.shortest["doubled row"].about == "key 9 exists 2 times"


class Halfhearted(Store):
    """Reports a conflict after its rows are stored."""

    def __init__(self) -> None:
        super().__init__({})

    def commit(self, transaction_handle: Any) -> None:
        transaction = self._transactions[transaction_handle.number]
        late = any(
            name in self._tables
            and name in transaction.tables
            and self._tables[name].current != version
            for name, version in transaction.read.items()
        )
        transaction.read.clear()
        super().commit(transaction_handle)
        if late:
            message = "too late"
            raise ConnectorError(message, code="TRANSACTION_CONFLICT")


def test_a_change_of_a_statement_that_failed_is_found() -> None:
    told = interleave(Halfhearted, sets("x"), sets("y"))
    assert "change of a statement that failed" in told.shortest


def test_the_last_of_several_blind_writes_stays_and_nothing_is_lost() -> None:
    assert interleave(Careless, sets("x"), sets("y")).wrong == ()


def test_only_the_shortest_orders_are_tried_by_default() -> None:
    told = interleave(MemoryConnector, sets("x"), sets("y"), most=3)
    assert str(told).startswith(
        "The 3 shortest of 50 orders of the calls of two statements on MemoryConnector: each leaves"
    )
    assert [order.length[0] for order in told.orders][:2] == [1, 1]


def test_a_statement_may_depend_on_the_rows_that_it_reads() -> None:
    told = interleave(MemoryConnector, adds("x"), adds("y"))
    assert told.wrong == ()
    assert {order.rows[0] for order in told.orders} == {
        (1, "axy"),
        (1, "ayx"),
        (1, "ax"),
        (1, "ay"),
    }
    assert {serial for order in told.orders for serial in order.serial} >= {
        ("first", "second"),
        ("second", "first"),
    }


def test_orders_that_are_one_are_tried_once() -> None:
    own = steps(commits_in_finish=False)
    found = list(orders(own))
    assert len(found) == len(set(found)) == 50
    assert all(turns.count(0) == turns.count(1) == len(own) for turns in found)
    assert (0,) * 6 + (1,) * 6 in found
    assert (1,) * 6 + (0,) * 6 in found


@pytest.mark.parametrize(
    ("arguments", "more", "message"),
    [
        ((7, sets("x"), sets("y")), {}, "connector is of type int"),
        ((MemoryConnector, 7, sets("y")), {}, "first"),
        (
            (MemoryConnector, sets("x"), Changes(updated=[(1, {"w": 2})])),
            {},
            "second updates the column 'w'",
        ),
        ((MemoryConnector, lambda rows: rows, sets("y")), {}, "first returned list"),
        ((MemoryConnector, sets("x"), sets("y")), {"rows": [(1,)]}, "rows"),
        ((MemoryConnector, sets("x"), sets("y")), {"rows": [(1, "a"), (1, "b")]}, "rows"),
        ((MemoryConnector, sets("x"), sets("y")), {"columns": {"id": "bigint"}}, "columns"),
        ((MemoryConnector, sets("x"), sets("y")), {"properties": 7}, "properties"),
        ((MemoryConnector, sets("x"), sets("y")), {"make_table": 7}, "make_table"),
        ((MemoryConnector, sets("x"), sets("y")), {"patience": 0}, "patience"),
        ((MemoryConnector, sets("x"), sets("y")), {"most": 0}, "most"),
        ((MemoryConnector, sets("x"), sets("y")), {"table": "t"}, "table"),
        (
            (MemoryConnector(), sets("x"), sets("y")),
            {"table": "a.t"},
            "Existing tables are not changed",
        ),
    ],
)
def test_invalid_arguments_are_an_error(arguments: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(RowMergeError) as caught:
        interleave(*arguments, **more)
    assert caught.value.code == "INVALID_ARGUMENTS"
    assert message in caught.value.message
    assert caught.value.hint


def test_a_table_that_cannot_be_created_names_the_missing_argument() -> None:
    with pytest.raises(RowMergeError) as caught:
        interleave(sqlite, sets("x"), sets("y"), properties={"nope": 1})
    assert caught.value.code == "NOT_SUPPORTED"
    assert "make_table" in (caught.value.hint or "")
