"""Plans describe themselves as plain data: facts are fields, and no text must be parsed for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowmerge_nb import Engine
from rowmerge_nb.report.model.report import build_report

if TYPE_CHECKING:
    from rowmerge_nb.trace.trace import Trace

USING = "MERGE INTO t USING s ON t.id = s.id "


def planned(clauses: str, **options: Any) -> Trace:
    engine = Engine(dialect="extended")
    columns = {"id": [1], "v": ["a"], "p": ["b"], "q": ["c"]}
    engine.register("t", pa.table(columns), not_null=["id"], partitioned_by=["p", "q"])
    engine.register("s", pa.table(columns))
    return engine.run(USING + clauses, dry_run=True, **options).trace


@pytest.mark.parametrize("era", ["documents", "current"])
def test_every_partition_column_has_its_own_channel(era: str) -> None:
    pages = build_report(planned("WHEN MATCHED THEN DELETE", era=era)).pages
    assert pages is not None
    assert [(channel.number, channel.name) for channel in pages.channels.redistribution] == [
        ("0", "p"),
        ("1", "q"),
    ]


@pytest.mark.parametrize(
    ("clause", "writes"),
    [
        ("WHEN MATCHED THEN UPDATE SET q = concat(s.q, ')', 'p = 1, v = 2'), \"v\" = s.v", "q, v"),
        ("WHEN MATCHED THEN UPDATE SET *", "id, v, p, q"),
        ("WHEN MATCHED THEN UPDATE SET v = CASE WHEN s.id = 1 THEN ', p = ' END", "v"),
        ("WHEN NOT MATCHED THEN INSERT (v, id) VALUES (NULL, s.id)", "id, v"),
        ("WHEN NOT MATCHED THEN INSERT (v) VALUES (s.v)", "v"),
        ("WHEN MATCHED THEN DO NOTHING", "nothing"),
    ],
)
def test_columns_written_by_a_clause_are_those_that_it_names(clause: str, writes: str) -> None:
    clauses = build_report(planned(clause)).clauses
    assert clauses is not None
    assert clauses.rows[0].writes == writes


@pytest.mark.parametrize(
    ("clause", "head", "by_source"),
    [
        (
            "WHEN MATCHED AND s.v = ' THEN DELETE ' THEN UPDATE SET v = s.v",
            "WHEN MATCHED AND s.v = ' THEN DELETE ' THEN UPDATE",
            False,
        ),
        (
            "WHEN NOT MATCHED /* BY SOURCE */ THEN /* all */ INSERT *",
            "WHEN NOT MATCHED /* BY SOURCE */ THEN /* all */ INSERT",
            False,
        ),
        ("WHEN NOT MATCHED BY SOURCE THEN DELETE", "WHEN NOT MATCHED BY SOURCE THEN DELETE", True),
        ("WHEN MATCHED THEN DO NOTHING", "WHEN MATCHED THEN DO NOTHING", False),
    ],
)
def test_a_clause_knows_its_head_and_its_rows(clause: str, head: str, by_source: bool) -> None:
    record = planned(clause).clauses[0]
    assert (record.head, record.by_source) == (head, by_source)


def test_a_scan_is_named_as_in_the_statement() -> None:
    engine = Engine()
    engine.register("my table", pa.table({"id": [1]}))
    sql = 'MERGE INTO "my table" USING (VALUES 1) s(id) ON "my table".id = s.id WHEN MATCHED THEN DELETE'
    plan = build_report(engine.run(sql, dry_run=True).trace).plan
    assert plan is not None
    assert [operator.short for operator in plan.operators if operator.kind == "TableScan"] == [
        "my table"
    ]
