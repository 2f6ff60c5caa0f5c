"""UPDATE and DELETE through the machinery of MERGE: plans, pages, sinks, counts, and the results of failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rowmerge_nb import Engine, RowMergeError
from rowmerge_nb.connectors.memory.memory_connector import MemoryConnector
from rowmerge_nb.spi.handles import SchemaTableName
from rowmerge_nb.spi.metadata import ColumnMetadata, ConnectorTableMetadata
from rowmerge_nb.spi.types import parse_type
from rowmerge_nb.testing.faults import Fault, FaultyConnector

pytestmark = pytest.mark.spark

PARADIGMS = ("DELETE_ROW_AND_INSERT_ROW", "CHANGE_ONLY_UPDATED_COLUMNS")
ROWS = pa.table({"id": [1, 2, 3, 4], "part": ["p", "q", "p", None], "v": [10, 20, None, 40]})


@pytest.fixture(params=PARADIGMS)
def engine(request: pytest.FixtureRequest, spark: Any) -> Engine:
    made = Engine(spark=spark)
    made.register("t", ROWS, paradigm=request.param, partitioned_by=["part"], not_null=["id"])
    made.register("s", pa.table({"id": [2, 3, 9], "n": [5, None, 7]}))
    return made


def rows(engine: Engine, name: str = "t") -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in engine.table(name).to_pylist()), key=repr)


@pytest.mark.parametrize("era", ["documents", "current"])
def test_an_update_moves_rows_between_partitions_and_sees_old_values_only(
    engine: Engine, era: str
) -> None:
    result = engine.run(
        "UPDATE t SET part = CASE WHEN v > 15 THEN 'z' END, v = id, id = id + 10 WHERE id <> 2",
        era=era,
    )
    assert result.count == 3
    assert rows(engine) == [(11, None, 1), (13, None, 3), (14, "z", 4), (2, "q", 20)]


@pytest.mark.parametrize("era", ["documents", "current"])
def test_a_delete_sends_only_the_row_id_and_the_old_partition(engine: Engine, era: str) -> None:
    result = engine.run("DELETE FROM t WHERE id IN (SELECT id FROM s) OR part IS NULL", era=era)
    assert result.count == 3
    assert rows(engine) == [(1, "p", 10)]
    stored = pa.Table.from_batches([sample.page for sample in result.trace.samples.stored_pages])
    assert stored.column("id").null_count == stored.column("v").null_count == 3
    assert sorted(stored.column("part").to_pylist(), key=repr) == ["p", "q", None]
    assert set(stored.column("operation").to_pylist()) == {2}
    assert ("case_number" in stored.column_names) == (era == "current")


def test_the_plans_are_those_of_the_merge_machinery(engine: Engine) -> None:
    kinds = {
        statement: [record.kind for record in engine.explain(statement, kind="LOGICAL").trace.plan]
        for statement in (
            "UPDATE t SET v = 1 WHERE id = 1",
            "DELETE FROM t WHERE id = 1",
            "DELETE FROM t",
        )
    }
    writer = ["Output", "TableFinish", "MergeWriter", "Exchange"]
    assert list(kinds.values()) == [
        [*writer, "MergeProcessor", "Project", "Filter", "TableScan"],
        [*writer, "DeleteProject", "Filter", "TableScan"],
        [*writer, "DeleteProject", "TableScan"],
    ]


def test_the_calls_are_in_the_order_of_merge(engine: Engine) -> None:
    coordinator = [
        *(
            "get_merge_row_id_column_handle",
            "get_row_change_paradigm",
            "get_insert_layout",
            "get_update_layout",
            "begin_merge",
        ),
        *("finish_merge", "commit"),
    ]
    for statement in ("UPDATE t SET v = 1 WHERE id = 1", "DELETE FROM t WHERE id = 1"):
        calls = engine.run(statement).trace.calls
        assert [call.method for call in calls if call.where == "coordinator"] == coordinator


def test_old_and_new_values_are_reported(engine: Engine) -> None:
    changed = engine.run("UPDATE t SET v = v + 1 WHERE id = 2").diff().to_dict("records")
    assert [(row["old.v"], row["new.v"], row["operation"]) for row in changed] == [
        (20, 21, "UPDATE")
    ]
    gone = engine.run("DELETE FROM t WHERE id = 2")
    assert gone.diff()[["operation", "old.id", "old.part", "old.v"]].to_numpy().tolist() == [
        ["DELETE", 2, "q", 21]
    ]
    assert "1 row deleted from t. t 4 → 3 rows." in str(gone)


SUBQUERIES = [
    ("UPDATE t SET v = (SELECT max(n) FROM s) WHERE id = 1", 1),
    ("UPDATE t SET v = (SELECT n FROM s WHERE s.id = t.id)", 4),
    ("UPDATE t SET v = (SELECT sum(v) FROM t)", 4),
    ("UPDATE t SET v = 0 WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id AND n > 4)", 1),
    ("UPDATE t SET v = 0 WHERE id NOT IN (SELECT n FROM s)", 0),
    ("DELETE FROM t WHERE v < (SELECT avg(v) FROM t)", 2),
    ("DELETE FROM t WHERE id NOT IN (SELECT min(id) FROM t GROUP BY part)", 1),
    ("DELETE FROM t WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.id = t.id)", 2),
]


@pytest.mark.parametrize(("statement", "count"), SUBQUERIES)
def test_conditions_and_values_may_be_any_subquery(
    engine: Engine, statement: str, count: int
) -> None:
    assert engine.run(statement).count == count


BAD = [
    ("UPDATE t SET id = nullif(id, 2)", "INVALID_ARGUMENTS", (1, 19)),
    ("UPDATE t SET v = 1 / (v - 10)", "DIVISION_BY_ZERO", (1, 18)),
    ("UPDATE t SET part = 'x', v = v + 9223372036854775807", "NUMERIC_VALUE_OUT_OF_RANGE", (1, 30)),
    (
        "UPDATE t SET v = 1 WHERE id + 9223372036854775807 > 0",
        "NUMERIC_VALUE_OUT_OF_RANGE",
        (1, 26),
    ),
    ("UPDATE t SET v = 1 WHERE 1 / (id - 1) > 0", "DIVISION_BY_ZERO", (1, 26)),
    ("DELETE FROM t WHERE\n  1 / (id - 1) > 0", "DIVISION_BY_ZERO", (2, 3)),
    ("UPDATE t SET v = (SELECT n FROM s)", "SUBQUERY_MULTIPLE_ROWS", None),
    ("UPDATE t SET v = 1, v = 2", "DUPLICATE_COLUMN_NAME", (1, 21)),
    ("UPDATE t SET v = sum(v)", "EXPRESSION_NOT_SCALAR", (1, 18)),
    ("DELETE FROM t WHERE count(*) > 1 AND id = 1", "EXPRESSION_NOT_SCALAR", (1, 21)),
    ("UPDATE nope SET v = 1", "TABLE_NOT_FOUND", (1, 1)),
]


@pytest.mark.parametrize(("statement", "code", "place"), BAD)
def test_a_failing_statement_changes_nothing_and_names_the_position(
    engine: Engine, statement: str, code: str, place: tuple[int, int] | None
) -> None:
    before = rows(engine)
    with pytest.raises(RowMergeError) as caught:
        engine.run(statement)
    assert caught.value.code == code
    if place is not None:
        assert (caught.value.line, caught.value.column) == place
    assert rows(engine) == before


@pytest.mark.parametrize(
    "fault",
    ["begin_merge", "create_merge_sink", "store_merged_rows", "finish", "finish_merge", "commit"],
)
@pytest.mark.parametrize(
    "statement", ["UPDATE shop.default.t SET v = v + 1", "DELETE FROM shop.default.t WHERE id > 1"]
)
def test_a_fault_at_any_step_leaves_the_table_unchanged(
    spark: Any, fault: str, statement: str
) -> None:
    connector = FaultyConnector(MemoryConnector(), Fault(fault, after=fault != "commit"))
    name, kept = SchemaTableName("default", "t"), pa.table({"id": [1, 2], "v": [10, 20]})
    columns = tuple(ColumnMetadata(column, parse_type("bigint")) for column in kept.column_names)
    connector.put(ConnectorTableMetadata(name, columns), kept)
    engine = Engine(spark=spark)
    engine.add_catalog("shop", connector)
    with pytest.raises(RowMergeError):
        engine.run(statement)
    assert connector.read(name) == kept


def test_a_delete_reads_only_necessary_columns_of_a_large_table(spark: Any) -> None:
    engine = Engine(spark=spark)
    numbers = np.arange(50_000)
    engine.register("big", pa.table({"id": numbers, "a": numbers, "b": numbers}))
    result = engine.run("DELETE FROM big WHERE id % 5 = 0")
    assert (result.count, engine.table("big").num_rows) == (10_000, 40_000)
    scan = next(record for record in result.trace.plan if record.kind == "TableScan")
    assert [name for name, _ in scan.layout] == ["id", "row_id"]
    assert engine.run("UPDATE big SET a = -b WHERE id % 5 = 1").count == 10_000
    assert sum(engine.table("big").column("a").to_pylist()) == int(
        np.where(numbers % 5 == 1, -numbers, numbers)[numbers % 5 != 0].sum()
    )


@pytest.mark.parametrize("era", ["documents", "current"])
def test_a_tables_columns_may_have_the_names_of_channels(spark: Any, era: str) -> None:
    engine = Engine(spark=spark)
    engine.register("named", pa.table({"operation": [1, 2], "merge_row": [5, 6], "row_id": [7, 8]}))
    result = engine.run("DELETE FROM named WHERE operation = 2", era=era)
    changed = result.diff().to_dict("records")
    assert [(row["old.operation"], row["old.merge_row"], row["old.row_id"]) for row in changed] == [
        (2, 6, 8)
    ]
    assert "Changed rows: 1 row changed; 1 target row unchanged" in str(result)


def test_names_of_columns_may_hold_points_and_quotes(spark: Any) -> None:
    engine = Engine(spark=spark)
    engine.run(
        """CREATE TABLE odd (k INTEGER, "x`.y" ROW(a INTEGER, "b.c" VARCHAR), "a.b" INTEGER)"""
    )
    engine.run("INSERT INTO odd VALUES (1, ROW(1, 'q'), 2), (2, NULL, 3), (3, NULL, 4)")
    assert (
        engine.run(
            """UPDATE odd SET "a.b" = "a.b" + 1, "x`.y" = ROW(k, 'u') WHERE "a.b" > 2"""
        ).count
        == 2
    )
    assert engine.run("""DELETE FROM odd WHERE "x`.y"."b.c" = 'u' AND "a.b" = 5""").count == 1
    assert rows(engine, "odd") == [(1, {"a": 1, "b.c": "q"}, 2), (2, {"a": 2, "b.c": "u"}, 4)]


def test_statements_without_a_source_have_no_verdicts(engine: Engine) -> None:
    result = engine.run("UPDATE t SET v = 1")
    with pytest.raises(RowMergeError, match="no joined rows to judge: this UPDATE is finished"):
        result.verdicts()
