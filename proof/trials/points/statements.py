"""The statements under test, and the observable state of a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from proof.trials.driver import read
from proof.trials.points.in_process import MERGE
from proof.trials.points.stores import NEWS, table_of

if TYPE_CHECKING:
    from proof.trials.points.stores import Store
    from rowmerge_nb.engine.engine import Engine
    from rowmerge_nb.spi.connector import Connector

__all__ = [
    "STATEMENTS",
    "Acting",
    "PointStatement",
    "Seen",
    "observe",
    "rows_of",
    "statements_of",
    "version_of",
]

Seen: TypeAlias = dict[str, Any]
"""The content of a store by table: columns, rows and properties; None for a missing table."""
_TABLES: Final = ("t", "u")
_ALL: Final = ("memory", "hive", "iceberg", "delta", "sqlite", "postgresql")
_ALTERED: Final = ("memory", "iceberg", "sqlite", "postgresql")
_VERSIONED: Final = ("memory", "iceberg", "delta")
_PARTITIONED: Final = {
    "iceberg": " WITH (partitioning = ARRAY['name'])",
    "hive": " WITH (partitioned_by = ARRAY['name'])",
    "delta": " WITH (partitioned_by = ARRAY['name'])",
}


@dataclass
class Acting:
    """The context of a statement.

    Args:
        store: the store.
        connector: the open store.
        engine: an engine with this default catalog.
        version: the version of the table before `PointStatement.prepare`; None if none is kept.
    """

    store: Store
    connector: Connector
    engine: Engine
    version: Any = None

    def sql(self, text: str, **options: Any) -> Any:
        """Run a statement."""
        return self.engine.run(text, trace="off", dialect="extended", **options)

    @property
    def table(self) -> str:
        """The full name of the table."""
        return f"store.{self.store.schema}.t"


@dataclass(frozen=True)
class PointStatement:
    """A statement.

    Args:
        name: its name in tables of counts and for ``--statements``.
        run: runs it.
        stores: the stores that support it.
        prepare: runs undisturbed before it, with the same engine.
    """

    name: str
    run: Callable[[Acting], Any]
    stores: tuple[str, ...] = _ALL
    prepare: Callable[[Acting], Any] = lambda _: None


def observe(connector: Connector, schema: str) -> Seen:
    """Return the content of the store, read with our connector."""
    from rowmerge_nb.spi import ConnectorSession, SchemaTableName

    content: Seen = {}
    for name in _TABLES:
        session, transaction = ConnectorSession("look"), connector.begin_transaction()
        try:
            metadata = connector.get_metadata(transaction)
            handle = metadata.get_table_handle(session, SchemaTableName(schema, name))
            properties = (
                {} if handle is None else metadata.get_table_metadata(session, handle).properties
            )
        finally:
            connector.rollback(transaction)
        if handle is None:
            content[name] = None
            continue
        rows = read(connector, schema, name)
        values = sorted((list(row.values()) for row in rows.to_pylist()), key=repr)
        content[name] = {
            "columns": rows.column_names,
            "rows": values,
            "properties": sorted(str(p) for p in properties.items() if p[0] != "location"),
        }
    return content


def rows_of(seen: Seen) -> list[list[Any]]:
    """Return the rows of the table ``t`` as independent readers return them: its first three
    columns.
    """
    return [] if seen["t"] is None else sorted(row[:3] for row in seen["t"]["rows"])


def version_of(connector: Connector, schema: str) -> Any:
    """Return the version of the table ``t``; None if the store keeps none."""
    from rowmerge_nb.spi import ConnectorSession, SchemaTableName

    session, transaction = ConnectorSession("look"), connector.begin_transaction()
    try:
        metadata = connector.get_metadata(transaction)
        handle = metadata.get_table_handle(session, SchemaTableName(schema, "t"))
        version = (
            None
            if handle is None or not metadata.keeps_versions
            else metadata.get_table_version(session, handle)
        )
        return None if version is None else version.version
    finally:
        connector.rollback(transaction)


def _sql(text: str, **options: Any) -> Callable[[Acting], Any]:
    return lambda acting: acting.sql(text, **options)


def _evolve(acting: Acting) -> Any:
    source = table_of(NEWS)
    source = source.append_column("z", pa.array(range(source.num_rows), pa.int64()))
    text = (
        "MERGE WITH SCHEMA EVOLUTION INTO t USING news s ON t.id = s.id WHEN MATCHED THEN UPDATE"
        " SET v = t.v + s.v, z = s.z WHEN NOT MATCHED THEN INSERT (id, v, name, z) VALUES (s.id,"
        " s.v, s.name, s.z)"
    )
    return acting.sql(text, namespace={"news": source})


def _created(word: str) -> Callable[[Acting], Any]:
    def run(acting: Acting) -> Any:
        properties = _PARTITIONED.get(acting.store.name, acting.store.properties[1])
        return acting.sql(f"{word}{properties} AS SELECT id, v, name FROM t WHERE id > 3")

    return run


def _rollback(text: str) -> Callable[[Acting], Any]:
    return lambda acting: acting.sql(text.format(version=acting.version))


_CHANGE: Final = _sql("UPDATE t SET v = v + 100 WHERE id < 5")
_COLUMN: Final = _sql("ALTER TABLE t ADD COLUMN x bigint")
_REWRITING: Final = _sql(
    "ALTER TABLE t SET PROPERTIES extra_properties = MAP(ARRAY['write.merge.mode'],"
    " ARRAY['copy-on-write'])"
)


def _merge(acting: Acting) -> Any:
    return acting.sql(MERGE, namespace={"news": table_of(NEWS)})


def _compact(kind: str) -> Callable[[Acting], Any]:
    return _sql(f"CALL store.system.compact('default', 't', '{kind}')")


STATEMENTS: Final[Mapping[str, PointStatement]] = {
    statement.name: statement
    for statement in (
        PointStatement("MERGE", _merge),
        PointStatement("MERGE-copy-on-write", _merge, ("iceberg",), _REWRITING),
        PointStatement(
            "INSERT", _sql("INSERT INTO t (id, v, name) VALUES (40, 4, 'a'), (41, 5, 'b')")
        ),
        PointStatement("UPDATE", _sql("UPDATE t SET v = v + 1 WHERE id % 2 = 0")),
        PointStatement("DELETE", _sql("DELETE FROM t WHERE id % 3 = 0")),
        PointStatement("TRUNCATE", _sql("TRUNCATE TABLE t"), (*_ALTERED, "delta")),
        PointStatement("CREATE", _sql("CREATE TABLE u (id bigint, v bigint)")),
        PointStatement("CREATE-AS", _created("CREATE TABLE u")),
        PointStatement("REPLACE", _created("CREATE OR REPLACE TABLE t")),
        PointStatement("DROP", _sql("DROP TABLE t")),
        PointStatement("ADD-COLUMN", _COLUMN, (*_ALTERED, "delta")),
        PointStatement(
            "RENAME-COLUMN", _sql("ALTER TABLE t RENAME COLUMN x TO y"), _ALTERED, _COLUMN
        ),
        PointStatement("DROP-COLUMN", _sql("ALTER TABLE t DROP COLUMN x"), _ALTERED, _COLUMN),
        PointStatement("EVOLUTION", _evolve, (*_ALTERED, "delta")),
        PointStatement(
            "PROPERTIES",
            _sql("ALTER TABLE t SET PROPERTIES isolation_level = 'snapshot'"),
            ("iceberg",),
        ),
        PointStatement("optimize", _sql("ALTER TABLE t EXECUTE optimize"), ("iceberg", "delta")),
        PointStatement(
            "vacuum",
            _sql("ALTER TABLE t EXECUTE vacuum(retention_threshold => '0s')"),
            ("delta",),
            _CHANGE,
        ),
        PointStatement(
            "expire_snapshots",
            _sql("ALTER TABLE t EXECUTE expire_snapshots(retention_threshold => '0s')"),
            ("iceberg",),
        ),
        PointStatement(
            "remove_orphan_files",
            _sql("ALTER TABLE t EXECUTE remove_orphan_files(retention_threshold => '0s')"),
            ("iceberg",),
        ),
        PointStatement(
            "optimize_manifests", _sql("ALTER TABLE t EXECUTE optimize_manifests"), ("iceberg",)
        ),
        PointStatement(
            "rollback",
            _rollback("ALTER TABLE t EXECUTE rollback_to_snapshot(snapshot_id => {version})"),
            ("iceberg",),
            _CHANGE,
        ),
        PointStatement(
            "CALL-rollback",
            _rollback("CALL store.system.rollback_to_snapshot('default', 't', {version})"),
            ("iceberg",),
            _CHANGE,
        ),
        PointStatement(
            "undo", lambda acting: acting.engine.undo(acting.table), _VERSIONED, _CHANGE
        ),
        PointStatement(
            "restore",
            lambda acting: acting.engine.restore(acting.table, acting.version),
            _VERSIONED,
            _CHANGE,
        ),
        PointStatement("compact-minor", _compact("minor"), ("hive",)),
        PointStatement("compact-major", _compact("major"), ("hive",)),
        PointStatement(
            "remove_obsolete",
            _sql("CALL store.system.remove_obsolete('default', 't')"),
            ("hive",),
            _compact("major"),
        ),
        PointStatement("remove_orphans", lambda acting: acting.connector.remove_orphans()),
    )
}
"""All statements by their names."""


def statements_of(store: str) -> list[PointStatement]:
    """Return the statements that a store supports.

    >>> "compact-minor" in [statement.name for statement in statements_of("iceberg")]
    False
    """
    return [statement for statement in STATEMENTS.values() if store in statement.stores]
