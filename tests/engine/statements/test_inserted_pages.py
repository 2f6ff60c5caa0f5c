"""An INSERT is the same whether the tasks that read its table compute its rows, or Spark does."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.plan.rules import RuleSettings

pytestmark = pytest.mark.spark

ROWS = pa.table(
    {
        "id": pa.array([1, 2, None, 4], pa.int32()),
        "part": ["a", None, "b", "a"],
        "x": [1.5, float("nan"), -0.0, None],
    }
)
QUERIES = {
    "columns": "SELECT id, part, x FROM s",
    "a condition": "SELECT id, part, x FROM s WHERE id > 1",
    "values": "SELECT id + 1, upper(part), x * 2 FROM s WHERE id IS NOT NULL",
    "a query of a query": "SELECT b, a, x FROM (SELECT part AS a, id AS b, x FROM s WHERE part = 'a')",
    "an aggregate below": "SELECT 7, 'one', 1e0 FROM (SELECT count(*) AS n FROM s)",
    "a limit": "SELECT id, part, x FROM s ORDER BY id LIMIT 2",
    "no column": "SELECT 1, 'c', 2e0 FROM s",
    "NULL": "SELECT id, NULL, NULL FROM s",
    "a division by zero": "SELECT id / (id - 4), part, x FROM s",
    "a failing condition": "SELECT id, part, x FROM s WHERE 1 / (id - 4) > 0",
    "a failing store": "SELECT 3000000000 + id, part, x FROM s",
    "NULL where none may be": "SELECT id, part, x FROM s",
}


def outcome(spark: Any, query: str, off: frozenset[str], *, partitioned: bool, required: bool = False) -> dict[str, Any]:
    """Run the INSERT, and return what it left and reported."""
    engine = Engine(spark=spark, rule_settings=RuleSettings(small_rows=0))
    engine.options = engine.options.changed(rules_off=off)
    engine.register("s", ROWS)
    layout = " WITH (partitioned_by = ARRAY['part'])" if partitioned else ""
    engine.run(f"CREATE TABLE t (id integer{' NOT NULL' if required else ''}, part varchar, x double){layout}")
    try:
        result = engine.run(f"INSERT INTO t {query}")
        report: Any = (result.count, sum(writer.counted for writer in result.trace.writers))
    except RowMergeError as error:
        report = (error.code, error.message, error.line, error.column)
    rows = sorted(map(repr, engine.table("t").to_pylist()))
    engine.close()
    return {"report": report, "rows": rows}


@pytest.mark.parametrize("name", QUERIES)
def test_pages_and_spark_insert_the_same_rows_and_report_the_same_errors(spark: Any, name: str) -> None:
    partitioned, required = len(name) % 2 == 0, name.startswith("NULL where")
    forms = [
        outcome(spark, QUERIES[name], off, partitioned=partitioned, required=required)
        for off in (frozenset[str](), frozenset({"insert_on_pages"}))
    ]
    assert forms[0] == forms[1]
