"""Random statements with their expected effects."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from proof.trials.side_by_side.ledger import KEYS, SHARED, Effect, State, name_of

__all__ = ["MERGE", "Statement", "Writer", "own_table"]

MERGE: Final = (
    "MERGE INTO {table} USING news s ON {table}.id = s.id WHEN MATCHED AND s.gone = 1 THEN DELETE"
    " WHEN MATCHED THEN UPDATE SET n = {table}.n + s.n"
    " WHEN NOT MATCHED THEN INSERT (id, owner, n, name) VALUES (s.id, s.owner, s.n, s.name)"
)
_UNDOABLE: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "MERGE WITH SCHEMA EVOLUTION"})
_MOST_ROWS: Final = 40
"""With more own rows, a writer deletes some."""
_NOT_KEPT: Final = frozenset({"INVALID_ARGUMENTS", "INVALID_PROCEDURE_ARGUMENT", "NOT_FOUND"})
"""Error codes for an expired version."""


def own_table(writer: int) -> str:
    """Return the name of a writer's own table."""
    return f"own{writer}"


@dataclass(frozen=True)
class Statement:
    """A statement.

    Args:
        kind: its kind in the summary.
        text: SQL, or a word for a call of the engine or connector.
        effect: its effect if it succeeds.
        news: the source of a MERGE.
        codes: Trino's codes that it may fail with, apart from TRANSACTION_CONFLICT.
        argument: the version to restore, or the change of a column: the verb, its name, its new
            name.
    """

    kind: str
    text: str
    effect: Effect = field(default_factory=Effect)
    news: pa.Table | None = None
    codes: frozenset[str] = frozenset()
    argument: Any = None


class Writer:
    """Draws the statements of one writer.

    Args:
        store: the kind of store.
        number: the writer's number.
        writers: the number of writers.
        seed: determines all choices.
    """

    def __init__(self, store: str, number: int, writers: int, seed: int) -> None:
        self.random = random.Random(f"{store}-{seed}-{number}")  # noqa: S311 - no secret
        self.state = State()
        self.last: tuple[str, Effect, str] | None = None
        self.versions: list[tuple[Any, Mapping[int, int]]] = []
        self._store = store
        self._number = number
        self._writers = writers
        self._next = 1
        self._columns: list[str] = []
        factor = _MAINTAINER if number == writers - 1 else 1
        self._kinds = {
            kind: weight * (factor if kind in _MAINTENANCE else 1)
            for kind, weight in _KINDS[store].items()
        }

    def draw(self) -> Statement:
        """Draw the next statement."""
        while True:
            (name,) = self.random.choices(list(self._kinds), list(self._kinds.values()))
            statement: Statement | None = getattr(self, f"_{name}")()
            if statement is not None:
                return statement

    def draw_maintenance(self) -> Statement:
        """Draw a maintenance statement, which changes no row."""
        kinds = {kind: weight for kind, weight in self._kinds.items() if kind in _MAINTENANCE}
        (name,) = self.random.choices(list(kinds), list(kinds.values()))
        statement: Statement = getattr(self, f"_{name}")()
        return statement

    def succeeded(self, statement: Statement) -> None:
        """Record the success of a statement."""
        effect = statement.effect
        inverse = effect.inverse(self.state.rows(effect.table))
        self.state = self.state.after(effect)
        changes = effect.own or effect.shared or effect.clears
        if changes and statement.kind in _UNDOABLE:
            self.last = effect.table, inverse, statement.argument[1] if statement.argument else ""
        elif self.last is not None and (not effect.table or effect.table == self.last[0]):
            self.last = None
        if statement.kind == "CREATE OR REPLACE":
            self.versions.clear()
        if isinstance(statement.argument, tuple):
            self._altered(*statement.argument)

    # -- rows

    def _table(self) -> str:
        return self.random.choice(("t", "t", own_table(self._number)))

    def _new_key(self) -> int:
        self._next += 1
        return KEYS * (self._number + 1) + self._next

    def _insert(self) -> Statement | None:
        table = self._table()
        if len(self.state.rows(table)) > _MOST_ROWS:
            return None
        rows = {
            self._new_key(): self.random.randrange(10) for _ in range(self.random.randint(1, 3))
        }
        values = ", ".join(
            f"({key}, {self._number}, {n}, '{name_of(key)}')" for key, n in rows.items()
        )
        return Statement(
            "INSERT",
            f"INSERT INTO {table} (id, owner, n, name) VALUES {values}",
            Effect(table, rows),
        )

    def _update(self) -> Statement | None:
        table = self._table()
        rest = self.random.randrange(3)
        rows = {key: n + 1 for key, n in self.state.rows(table).items() if key % 3 == rest}
        if not rows:
            return None
        text = f"UPDATE {table} SET n = n + 1 WHERE owner = {self._number} AND id % 3 = {rest}"
        return Statement("UPDATE", text, Effect(table, rows))

    def _delete(self) -> Statement | None:
        table = self._table()
        own_rows = list(self.state.rows(table))
        if not own_rows:
            return None
        keys = self.random.sample(own_rows, min(len(own_rows), self.random.randint(1, 4)))
        text = f"DELETE FROM {table} WHERE id IN ({', '.join(map(str, keys))})"
        return Statement("DELETE", text, Effect(table, dict.fromkeys(keys)))

    def _increment(self) -> Statement:
        key = self.random.randrange(SHARED)
        return Statement(
            "UPDATE", f"UPDATE t SET n = n + 1 WHERE id = {key}", Effect("t", {}, {key: 1})
        )

    def _merge(self) -> Statement:
        table = self._table()
        own, shared, news = self._news(table)
        return Statement("MERGE", MERGE.format(table=table), Effect(table, own, shared), news)

    def _news(self, table: str) -> tuple[dict[int, int | None], dict[int, int], pa.Table]:
        own: dict[int, int | None] = {}
        rows: list[tuple[int, int, int, int]] = []
        own_rows = self.state.rows(table)
        for key in self.random.sample(list(own_rows), min(len(own_rows), 4)):
            is_deleted = self.random.random() < 0.4
            own[key] = None if is_deleted else own_rows[key] + 5
            rows.append((key, self._number, 5, int(is_deleted)))
        for _ in range(self.random.randint(0, 3)):
            key = self._new_key()
            own[key] = 1
            rows.append((key, self._number, 1, 0))
        shared = {key: 1 for key in range(SHARED) if table == "t" and self.random.random() < 0.3}
        rows += [(key, -1, 1, 0) for key in shared]
        if not rows:
            key = self._new_key()
            own[key] = 1
            rows = [(key, self._number, 1, 0)]
        return own, shared, _source(rows)

    # -- tables of a writer's own

    def _truncate(self) -> Statement | None:
        table = own_table(self._number)
        if not self.state.rows(table) or self.random.random() < 0.5:
            return None
        return Statement("TRUNCATE", f"TRUNCATE TABLE {table}", Effect(table, {}, {}, clears=True))

    def _replace(self) -> Statement:
        table = own_table(self._number)
        half = {key: n + 1 for key, n in self.state.rows(table).items() if key % 2}
        text = (
            f"CREATE OR REPLACE TABLE {table} WITH (partitioning = ARRAY['name']) AS"
            f" SELECT id, owner, n + 1 AS n, name FROM {table} WHERE id % 2 = 1"
        )
        return Statement("CREATE OR REPLACE", text, Effect(table, half, {}, clears=True))

    def _restore(self) -> Statement | None:
        if not self.versions:
            return None
        version, rows = self.random.choice(self.versions)
        effect = Effect(own_table(self._number), dict(rows), {}, clears=True)
        return Statement(
            "restore", own_table(self._number), effect, codes=_NOT_KEPT, argument=version
        )

    def _rollback(self) -> Statement | None:
        restored = self._restore()
        if restored is None:
            return None
        table = own_table(self._number)
        texts = (
            f"ALTER TABLE {table} EXECUTE rollback_to_snapshot(snapshot_id => {restored.argument})",
            f"CALL store.system.rollback_to_snapshot('default', '{table}', {restored.argument})",
        )
        return Statement(
            "rollback_to_snapshot", self.random.choice(texts), restored.effect, codes=_NOT_KEPT
        )

    def _undo(self) -> Statement | None:
        if self.last is None:
            return None
        table, inverse, column = self.last
        return Statement(
            "undo",
            table,
            inverse,
            codes=_NOT_KEPT,
            argument=("drop", column, "") if column else None,
        )

    # -- the table of all

    def _add_column(self) -> Statement | None:
        if len(self._columns) > 1:
            return None
        name = f"c{self._number}_{self.random.randrange(1000)}"
        if name in self._columns:
            return None
        return Statement(
            "ADD COLUMN", f"ALTER TABLE t ADD COLUMN {name} bigint", argument=("add", name, "")
        )

    def _drop_column(self) -> Statement | None:
        if not self._columns:
            return None
        name = self.random.choice(self._columns)
        return Statement(
            "DROP COLUMN", f"ALTER TABLE t DROP COLUMN {name}", argument=("drop", name, "")
        )

    def _rename_column(self) -> Statement | None:
        if not self._columns:
            return None
        name, new = (
            self.random.choice(self._columns),
            f"d{self._number}_{self.random.randrange(1000)}",
        )
        text = f"ALTER TABLE t RENAME COLUMN {name} TO {new}"
        return Statement("RENAME COLUMN", text, argument=("rename", name, new))

    def _altered(self, what: str, name: str, new: str) -> None:
        """Record that a column was added, dropped or renamed."""
        if what in {"drop", "rename"}:
            self._columns.remove(name)
        if what in {"add", "rename"}:
            self._columns.append(new or name)

    def _evolve(self) -> Statement | None:
        if len(self._columns) > 1:
            return None
        name = f"e{self._number}_{self.random.randrange(1000)}"
        own, shared, news = self._news("t")
        news = news.append_column(name, pa.array([1] * news.num_rows, pa.int64()))
        text = (
            "MERGE WITH SCHEMA EVOLUTION INTO t USING news s ON t.id = s.id WHEN MATCHED AND"
            f" s.gone = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET n = t.n + s.n, {name} = s.{name}"
            f" WHEN NOT MATCHED THEN INSERT (id, owner, n, name, {name}) VALUES (s.id, s.owner,"
            f" s.n, s.name, s.{name})"
        )
        return Statement(
            "MERGE WITH SCHEMA EVOLUTION",
            text,
            Effect("t", own, shared),
            news,
            argument=("add", name, ""),
        )

    def _properties(self) -> Statement:
        value = self.random.choice(
            (
                "isolation_level = 'snapshot'",
                "isolation_level = 'serializable'",
                "max_commit_retry = 4",
            )
        )
        table = self.random.choice(("t", own_table(self._number)))
        return Statement("SET PROPERTIES", f"ALTER TABLE {table} SET PROPERTIES {value}")

    # -- maintenance, of tables that others write to

    def _any_table(self) -> str:
        return self.random.choice(("t", own_table(self.random.randrange(self._writers))))

    def _execute(self, procedure: str) -> Statement:
        return Statement(
            procedure.partition("(")[0], f"ALTER TABLE {self._any_table()} EXECUTE {procedure}"
        )

    def _optimize(self) -> Statement:
        return self._execute("optimize")

    def _optimize_manifests(self) -> Statement:
        return self._execute("optimize_manifests")

    def _expire(self) -> Statement:
        # Readers of an older snapshot need its files for a moment.
        return self._execute("expire_snapshots(retention_threshold => '5s')")

    def _remove_orphan_files(self) -> Statement:
        return self._execute("remove_orphan_files(retention_threshold => '0s')")

    def _remove_orphans(self) -> Statement:
        return Statement("remove_orphans", "remove_orphans")

    def _minor(self) -> Statement:
        return Statement(
            "compact minor", f"CALL store.system.compact('default', '{self._any_table()}', 'minor')"
        )

    def _major(self) -> Statement:
        return Statement(
            "compact major", f"CALL store.system.compact('default', '{self._any_table()}', 'major')"
        )


def _source(rows: list[tuple[int, int, int, int]]) -> pa.Table:
    keys, owners, values, deleted = zip(*rows, strict=True)
    return pa.table(
        {
            "id": pa.array(keys, pa.int64()),
            "owner": pa.array(owners, pa.int64()),
            "n": pa.array(values, pa.int64()),
            "name": pa.array([name_of(key) for key in keys], pa.string()),
            "gone": pa.array(deleted, pa.int64()),
        }
    )


_ROWS: Final = {"insert": 6, "update": 4, "delete": 3, "increment": 4, "merge": 6}
_COLUMNS: Final = {"add_column": 1, "drop_column": 1, "rename_column": 1}
_MAINTENANCE: Final = frozenset(
    {
        "optimize",
        "optimize_manifests",
        "expire",
        "remove_orphan_files",
        "remove_orphans",
        "minor",
        "major",
    }
)
_MAINTAINER: Final = 8
"""The factor by which the last writer draws maintenance statements more often."""
_KINDS: Final[Mapping[str, Mapping[str, int]]] = {
    "memory": {
        **_ROWS,
        **_COLUMNS,
        "truncate": 1,
        "undo": 2,
        "restore": 1,
        "remove_orphans": 1,
        "evolve": 1,
    },
    "hive": {**_ROWS, "minor": 5, "major": 4, "remove_orphans": 2},
    "iceberg": {
        **_ROWS,
        **_COLUMNS,
        "truncate": 2,
        "replace": 2,
        "restore": 1,
        "rollback": 1,
        "undo": 2,
        "evolve": 1,
        "properties": 1,
        "optimize": 1,
        "optimize_manifests": 3,
        "expire": 1,
        "remove_orphan_files": 4,
        "remove_orphans": 3,
    },
    "sqlite": {**_ROWS, **_COLUMNS, "truncate": 1, "remove_orphans": 1, "evolve": 1},
    "postgresql": {**_ROWS, **_COLUMNS, "truncate": 1, "remove_orphans": 1, "evolve": 1},
    "outside": {"insert": 6, "update": 4, "delete": 3, "increment": 6},
}
"""The weight of each kind of statement, per store."""
