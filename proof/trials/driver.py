"""The process that trials kill or interrupt: a driver that obeys its parent line by line, and one
that inspects the tables afterwards.

Orders and answers are lines of JSON; other output of libraries is redirected.
"""

from __future__ import annotations

import hashlib
import json
import signal
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from rowmerge_nb.spi.connector import Connector

__all__ = [
    "Digest",
    "StoreLocation",
    "digest",
    "initial_rows",
    "merged_rows",
    "news",
    "obey",
    "read",
]

MERGE = (
    "MERGE INTO t USING news s ON t.id = s.id WHEN MATCHED AND s.v % 10 = 0 THEN DELETE WHEN"
    " MATCHED THEN UPDATE SET v = t.v + s.v, name = s.name WHEN NOT MATCHED THEN INSERT (id, v,"
    " name) VALUES (s.id, s.v, s.name)"
)


@dataclass(frozen=True)
class StoreLocation:
    """A store, as every process of the trials opens it.

    Args:
        store: ``sqlite``, ``postgresql``, ``hive`` or ``iceberg``.
        where: a directory; for PostgreSQL a connection string.
    """

    store: str
    where: str

    @property
    def schema(self) -> str:
        """The schema of the table."""
        return {"sqlite": "main", "postgresql": "public"}.get(self.store, "default")

    @property
    def properties(self) -> str:
        """The properties in CREATE TABLE that make rows changeable."""
        return " WITH (primary_key = ARRAY['id'])" if self.store in {"sqlite", "postgresql"} else ""

    def connector(self) -> Connector:
        """Open the store."""
        import rowmerge_nb as rm

        connector: Connector
        if self.store == "sqlite":
            connector = rm.SqliteConnector(f"{self.where}/shop.db", create=True)
        elif self.store == "postgresql":
            connector = rm.PostgresConnector(self.where)
        else:
            connector = getattr(
                rm, {"hive": "HiveAcidConnector"}.get(self.store, f"{self.store.title()}Connector")
            )(self.where)
        return connector


@dataclass(frozen=True)
class Digest:
    """A summary of a table's content that ignores the order of rows.

    Args:
        rows: the number of rows.
        ids: the number of distinct ids; fewer than rows if something is duplicated.
        sums: the sum of each column's values, or of the hashes of texts.
        pairs: the sum of the hashes of rows.
    """

    rows: int
    ids: int
    sums: tuple[int, ...]
    pairs: int


def digest(table: pa.Table) -> Digest:
    """Return the digest of a table of ``id``, ``v`` and ``name``.

    >>> digest(initial_rows(3)) == digest(initial_rows(3).take([2, 0, 1])), digest(initial_rows(3)) == digest(initial_rows(2))
    (True, False)
    """
    table = table.combine_chunks()
    ids, values = (table.column(name).to_numpy().astype(np.uint64) for name in ("id", "v"))
    # Each distinct text is hashed once.
    coded = pc.dictionary_encode(table.column("name").combine_chunks())
    hashed = [
        int.from_bytes(hashlib.blake2b(str(text).encode(), digest_size=8).digest())
        for text in coded.dictionary.to_pylist()
    ]
    names = (
        np.array(hashed, np.uint64)[coded.indices.to_numpy()]
        if len(coded)
        else np.array([], np.uint64)
    )
    mixed = ids * np.uint64(0x9E3779B97F4A7C15) ^ values * np.uint64(0xC2B2AE3D27D4EB4F) ^ names
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    sums = tuple(int(column.sum(dtype=np.uint64)) for column in (ids, values, names))
    return Digest(table.num_rows, len(np.unique(ids)), sums, int(mixed.sum(dtype=np.uint64)))


def initial_rows(count: int) -> pa.Table:
    """Return the table's initial rows."""
    ids = np.arange(count)
    names = pa.array([f"name {number}" for number in range(1000)])
    return pa.table({"id": ids, "v": ids * 7 % 1000, "name": pc.take(names, pa.array(ids % 1000))})


def news(ids: np.ndarray[Any, Any], changes: int, number: int) -> pa.Table:
    """Return the source of a MERGE: nine changes of existing rows to one new row."""
    random = np.random.default_rng(number)
    changed_ids = random.choice(ids, size=min(len(ids), changes * 9 // 10), replace=False)
    added = int(ids.max(initial=0)) + 1 + np.arange(changes - len(changed_ids))
    keys = np.concatenate([changed_ids, added])
    values = random.integers(0, 1000, len(keys))
    return pa.table({"id": keys, "v": values, "name": pa.array([f"changed {number}"] * len(keys))})


def merged_rows(table: pa.Table, source: pa.Table) -> pa.Table:
    """Return the rows after the MERGE, computed without an engine.

    >>> merged_rows(initial_rows(2), pa.table({"id": [1, 5], "v": [1, 30], "name": ["x", "y"]})).to_pylist()[1]
    {'id': 1, 'v': 8, 'name': 'x'}
    """
    ids, keys = table.column("id").to_numpy(), source.column("id").to_numpy()
    order = np.argsort(keys)
    index = np.searchsorted(keys[order], ids).clip(max=len(keys) - 1)
    matched = keys[order][index] == ids
    partner = source.take(order[index])
    deleted = matched & (partner.column("v").to_numpy() % 10 == 0)
    values = np.where(
        matched,
        table.column("v").to_numpy() + partner.column("v").to_numpy(),
        table.column("v").to_numpy(),
    )
    names = pc.if_else(pa.array(matched), partner.column("name"), table.column("name"))
    retained = pa.table({"id": ids, "v": values, "name": names}).filter(pa.array(~deleted))
    added = source.filter(pa.array(~np.isin(keys, ids)))
    return pa.concat_tables([retained, added]).combine_chunks()


def read(connector: Connector, schema: str, table: str = "t") -> pa.Table:
    """Read a table by the connector's contract, without an engine."""
    from rowmerge_nb.spi import ConnectorSession, Constraint, SchemaTableName

    session, transaction = ConnectorSession("look"), connector.begin_transaction()
    try:
        metadata = connector.get_metadata(transaction)
        handle = metadata.get_table_handle(session, SchemaTableName(schema, table))
        if handle is None:
            raise RuntimeError(f"Table '{table}' is gone")
        columns = list(metadata.get_column_handles(session, handle))
        provider, pages = connector.get_page_source_provider(), []
        for split in connector.get_split_manager().get_splits(
            transaction, session, handle, Constraint()
        ):
            source = provider.create_page_source(transaction, session, split, handle, columns)
            while (page := source.get_next_page()) is not None:
                pages.append(page)
            source.close()
    finally:
        connector.rollback(transaction)
    return pa.Table.from_batches(
        pages, pa.schema([(column.name, column.type.arrow) for column in columns])
    )


class Driver:
    """Obeys orders."""

    def __init__(self, place: StoreLocation) -> None:
        self._place = place
        self._engine: Any = None

    def start(self) -> dict[str, Any]:
        """Start Spark."""
        import rowmerge_nb as rm

        self._engine = rm.Engine(catalog="store", schema=self._place.schema, cores=2, trace="off")
        self._engine.add_catalog("store", self._place.connector())
        self._engine.spark.range(1000).repartition(2).mapInArrow(_same, "id long").count()
        return {"ready": True}

    def create(self, rows: int) -> dict[str, Any]:
        """Create the table."""
        self._engine.run(
            f"CREATE TABLE t (id bigint, v bigint, name varchar){self._place.properties}"
        )
        return self.run("INSERT INTO t SELECT * FROM news", initial_rows(rows))

    def merge(self, source: str) -> dict[str, Any]:
        """Run the MERGE whose source is in a file."""
        with pa.memory_map(source) as file:
            return self.run(MERGE, pa.ipc.open_file(file).read_all())

    def update(self, key: int) -> dict[str, Any]:
        """Change one row."""
        return self.run(f"UPDATE t SET v = v + 1 WHERE id = {key}")

    def run(self, sql: str, source: pa.Table | None = None) -> dict[str, Any]:
        """Run a statement; return its count, or its error and whether that reports a change of the
        table.
        """
        from rowmerge_nb.base.errors import RowMergeError

        try:
            return {
                "count": (
                    self._engine.run(
                        sql, namespace={} if source is None else {"news": source}
                    ).count
                )
            }
        except RowMergeError as error:
            return {
                "error": str(error),
                "code": error.code,
                "changed": error.changed,
                "state": error.result.trace.state,
            }
        except KeyboardInterrupt:
            return {
                "error": "KeyboardInterrupt, and no word about the table",
                "changed": None,
                "untold": True,
            }

    def look(self, *, remove: bool) -> dict[str, Any]:
        """Return the digest of the table, and leftovers."""
        connector = self._place.connector()
        try:
            orphans = [
                orphan.name
                for orphan in (connector.remove_orphans() if remove else connector.orphans())
            ]
            return {
                "digest": asdict(digest(read(connector, self._place.schema))),
                "orphans": orphans,
            }
        finally:
            connector.close()

    def ids(self, target: str) -> dict[str, Any]:
        """Write the table into a file."""
        connector = self._place.connector()
        table = read(connector, self._place.schema)
        connector.close()
        with pa.ipc.new_file(target, table.schema) as file:
            file.write_table(table)
        return {"rows": table.num_rows}


def _same(pages: Any) -> Any:
    return pages


def main() -> None:
    """Obey orders until the input ends."""
    # A shell starts background processes with interrupts ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    answers: TextIO = sys.stdout
    sys.stdout = sys.stderr
    obey(Driver(StoreLocation(*sys.argv[1:3])), answers)


def obey(driver: Any, answers: TextIO) -> None:
    """Execute orders until the input ends; ``driver`` has a method per order, and results are
    written to ``answers``.
    """
    while line := _line():
        order = json.loads(line)
        answers.write(json.dumps(getattr(driver, order.pop("order"))(**order)) + "\n")
        answers.flush()


def _line() -> str:
    """Wait for an order; ignore late interrupts."""
    while True:
        with suppress(KeyboardInterrupt):
            return sys.stdin.readline()


if __name__ == "__main__":
    main()
