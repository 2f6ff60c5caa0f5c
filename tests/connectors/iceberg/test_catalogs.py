"""A catalog's database keeps neither locks nor changes of interrupted and failed statements."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from rowmerge_nb import ConnectorError, IcebergConnector
from rowmerge_nb.connectors.iceberg.iceberg_catalog import Tables


def test_an_interrupt_while_the_catalog_is_read_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(IcebergConnector(tmp_path)) as store:
        tables, dialect = Tables(store.catalog, tmp_path), type(store.catalog.engine.dialect)  # type: ignore[attr-defined]
        done = dialect.do_execute

        def interrupted(self: Any, cursor: Any, statement: str, *rest: Any) -> None:
            done(self, cursor, statement, *rest)
            raise KeyboardInterrupt

        monkeypatch.setattr(dialect, "do_execute", interrupted)
        with pytest.raises(KeyboardInterrupt) as kept:
            tables.schemas()
        with closing(sqlite3.connect(tmp_path / "catalog.sqlite", timeout=0)) as other:
            other.execute("BEGIN EXCLUSIVE")
        assert kept.value is not None


def test_a_schema_stays_unchanged_if_its_change_was_not_committed(tmp_path: Path) -> None:
    with closing(IcebergConnector(tmp_path)) as store:
        tables, engine = Tables(store.catalog, tmp_path), store.catalog.engine  # type: ignore[attr-defined]
        tables.create_schema("old")
        engine.dispose()
        event.listen(
            engine, "connect", lambda connection, _: connection.execute("PRAGMA busy_timeout = 20")
        )
        with closing(sqlite3.connect(tmp_path / "catalog.sqlite")) as other:
            query = "SELECT a.* FROM iceberg_namespace_properties a, iceberg_namespace_properties b"
            with closing(other.execute(query)) as reading:
                assert reading.fetchone()
                with pytest.raises(ConnectorError, match="ICEBERG_CATALOG_ERROR"):
                    tables.create_schema("new")
                assert tables.schemas() == ["default", "old"]
                with pytest.raises(ConnectorError, match="ICEBERG_CATALOG_ERROR"):
                    tables.drop_schema("old")
                assert tables.schemas() == ["default", "old"]
