"""A small statement's trace has the target rows that took no part, found by their row ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rowmerge_nb import Engine, load_trace, save_trace
from rowmerge_nb.base.words import MINUS
from rowmerge_nb.connectors.hive_acid.hive_connector import HiveAcidConnector
from rowmerge_nb.connectors.iceberg.iceberg_connector import IcebergConnector
from rowmerge_nb.engine.observers import untouched_rows as untouched
from rowmerge_nb.spi.values import python_values

pytestmark = pytest.mark.spark

MERGE = "MERGE INTO {} t USING (VALUES (1, 'x'), (9, 'y')) AS q (id, s) ON t.id = q.id WHEN MATCHED AND q.s = 'z' THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (9, 'y')"


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Engine:
    engine = Engine(spark=spark, dialect="extended")
    engine.add_catalog("ice", IcebergConnector(tmp_path / "ice"))
    engine.add_catalog("hive", HiveAcidConnector(tmp_path / "hive"))
    return engine


def filled(engine: Engine, catalog: str) -> str:
    engine.run(f"CREATE SCHEMA IF NOT EXISTS {catalog}.default")
    engine.run(
        f"CREATE TABLE {catalog}.default.t AS SELECT * FROM (VALUES (1, VARCHAR 'a'), (2, 'b'), (2, 'b'), (3, NULL)) AS v (id, s)"
    )
    return f"{catalog}.default.t"


def rows(engine: Engine, statement: str, **options: Any) -> list[tuple[Any, ...]] | None:
    found = engine.run(statement, rehearse=True, **options).trace.samples.untouched_rows
    return None if found is None else list(zip(*map(python_values, found.columns), strict=True))


@pytest.mark.parametrize("catalog", ["memory", "ice"])
def test_untouched_rows_are_those_without_a_source_row_or_not_selected_by_where(
    engine: Engine, catalog: str
) -> None:
    table = filled(engine, catalog)
    assert rows(engine, MERGE.format(table)) == [(2, "b"), (2, "b"), (3, None)]
    assert rows(engine, f"UPDATE {table} SET s = 'z' WHERE id < 3") == [(3, None)]
    assert rows(engine, f"DELETE FROM {table} WHERE id = 77") == [
        (1, "a"),
        (2, "b"),
        (2, "b"),
        (3, None),
    ]
    assert rows(engine, f"DELETE FROM {table}") == []


def test_they_are_in_the_report_and_in_a_saved_trace(engine: Engine, tmp_path: Path) -> None:
    result = engine.run(MERGE.format(filled(engine, "memory")))
    untouched = "3 target rows untouched, since no source row matches them."
    assert untouched in result.text()
    same = [line.split()[1:] for line in str(result).splitlines() if line.startswith("=")]
    assert same == [["1", "a", f"{MINUS}1", "0"], ["2", "b"], ["2", "b"], ["3", "NULL"]]
    assert "4 rows before: 4 unchanged. 5 rows after: 4 unchanged + 1 inserted." in str(result)
    save_trace(result.trace, tmp_path / "trace.json")
    assert load_trace(tmp_path / "trace.json") == result.trace


def test_large_tables_stores_without_versions_and_failed_reads_have_no_untouched_rows(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(engine, "memory")
    assert rows(engine, MERGE.format(table), trace="off") is None
    assert rows(engine, MERGE.format(filled(engine, "hive"))) is None
    monkeypatch.setattr(untouched, "MOST_READ", 3)
    assert rows(engine, MERGE.format(table)) is None
    monkeypatch.setattr(untouched, "MOST_READ", 4)
    assert rows(engine, MERGE.format(table)) is not None
    monkeypatch.setattr(untouched, "TableScan", None)
    assert rows(engine, MERGE.format(table)) is None


@pytest.mark.parametrize("catalog", ["memory", "ice", "hive"])
def test_a_requested_untouched_row_is_reported_without_a_partner(
    engine: Engine, catalog: str
) -> None:
    result = engine.run(MERGE.format(filled(engine, catalog)))
    assert str(result.why(s="b")).split("\n\n")[0].splitlines() == [
        "Target row (2, b): no clause fired",
        "  No source row matches it.",
        "  No clause fires, so the row does nothing.",
    ]
    assert len(result.why(id=2)) == 2
