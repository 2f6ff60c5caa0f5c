"""Synthetic traces; the engine is not needed to test reports."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from rowmerge_nb.plan.older_flow import plan_updatable
from rowmerge_nb.plan.records import describe
from rowmerge_nb.spi.handles import ColumnHandle
from rowmerge_nb.spi.operations import Operation
from rowmerge_nb.spi.page import PageLayout
from rowmerge_nb.spi.types import BIGINT
from rowmerge_nb.trace.clause_record import ClauseRecord
from rowmerge_nb.trace.contract_calls import Call, WriterRecord
from rowmerge_nb.trace.error_record import Consequence, ErrorRecord, StateEvidence
from rowmerge_nb.trace.join_record import DuplicateGroup, MatchedRow
from rowmerge_nb.trace.node_records import ExchangeFacts, ProcessorFacts, ScanFacts
from rowmerge_nb.trace.notice_record import NoticeRecord
from rowmerge_nb.trace.page_samples import PageSample, StoredSample
from rowmerge_nb.trace.target_record import TargetRecord
from rowmerge_nb.trace.trace import Trace
from tests.report.building import (
    CLAUSES,
    DELETE_AND_INSERT,
    ROWS,
    STATEMENT,
    Clause,
    Joined,
    Setup,
    called,
    clause_records,
    merge_trace,
    node,
)
from tests.sql.support import meaning
from tests.trace.parts import with_parts


def explain_trace(setup: Setup | None = None, state: str = "explained") -> Trace:
    """Build the trace of an EXPLAIN (or, with ``planned``, of a dry run): a plan without a run."""
    setup = setup or Setup()
    trace = merge_trace(setup)
    return with_parts(
        trace,
        state=state,
        rows={},
        clauses=clause_records(setup, None),
        join={"rows": None, "matched_rows": None, "unmatched_rows": None, "source_rows": None},
        count=None,
        target={"rows_before": None, "rows_after": None},
        samples={"pages": None, "stored_pages": ()},
        writers=(),
        calls=trace.calls[:4],
        seconds={},
    )


def duplicate_trace() -> Trace:
    """Build the trace of a merge that failed the duplicate check: an eighth source row, a second Carol."""
    setup = Setup()
    trace = merge_trace(setup)
    sources = (
        MatchedRow(2, {"customer": "Carol", "purchases": 9, "address": "Centreville"}, 2),
        MatchedRow(7, {"customer": "Carol", "purchases": 4, "address": "Concord"}, 2),
    )
    group = DuplicateGroup(
        2, {"customer": "Carol", "purchases": 3, "address": "Cambridge"}, sources, 2
    )
    error = ErrorRecord(
        code="MERGE_TARGET_ROW_MULTIPLE_MATCHES",
        message="One MERGE target table row matched more than one source row",
        line=2,
        column=6,
        length=23,
        hint="Give each target row only one source row, for example by aggregating the source",
        step="DuplicateCheck",
        consequences=(
            Consequence("was called.", "begin_merge"),
            Consequence("No sink was created."),
            Consequence("was not called; the transaction was rolled back.", "finish_merge"),
        ),
        evidence=StateEvidence.NO_SINK,
    )
    rollback = Call(6, "coordinator", "rollback")
    return with_parts(
        trace,
        state="failed",
        error=error,
        join={"duplicate_groups": (group,), "rows": 8, "matched_rows": 5, "source_rows": 8},
        count=None,
        target={"rows_after": None},
        samples={"pages": None, "stored_pages": ()},
        writers=(),
        clauses=clause_records(setup, None),
        rows={},
        calls=(*trace.calls[:5], rollback),
    )


def analysis_trace() -> Trace:
    """Build the trace of a statement refused by the analysis."""
    statement = STATEMENT.replace(", address = s.address", ", adress = s.address")
    error = ErrorRecord(
        code="COLUMN_NOT_FOUND",
        message="Merge column name does not exist in target table: adress",
        line=8,
        column=53,
        length=6,
        hint="Did you mean 'address'?",
        step="analysis",
    )
    return Trace(
        statement=statement,
        kind="MERGE",
        state="failed",
        target=TargetRecord(name="accounts", qualified_name="memory.default.accounts"),
        error=error,
    )


def wide_trace(columns: int = 24) -> Trace:
    """Build a merge into a table with many columns and a composite row id."""
    fields = (
        pa.field("customer", pa.string()),
        *(pa.field(f"measure_{n:02d}", pa.float64()) for n in range(columns - 2)),
    )
    fields = (*fields, pa.field("region", pa.string()))
    row_id = pa.struct(
        [("original_transaction", pa.int64()), ("bucket", pa.int32()), ("row", pa.int64())]
    )

    def values(name: str, base: float, region: str) -> tuple[Any, ...]:
        return (name, *(base + n / 4 for n in range(columns - 2)), region)

    rows = (
        Joined(
            values("Ann", 1, "east"),
            0,
            values("Ann", 1, "east"),
            values("Ann", 0, "west"),
            (1, 536870912, 0),
            (0, 0),
        ),
        Joined(values("Bob", 1, "east"), 1, values("Bob", 1, "east"), writers=(0,)),
    )
    clauses = (
        Clause(
            Operation.UPDATE,
            "present",
            "WHEN MATCHED THEN UPDATE SET region = s.region",
            3,
            assigned=("region",),
        ),
        Clause(
            Operation.INSERT,
            "present IS NULL",
            "WHEN NOT MATCHED THEN INSERT VALUES (s.customer)",
            4,
        ),
    )
    setup = Setup(
        rows=[
            replace(
                row, row_id=dict(zip(row_id.names, row.row_id, strict=True)) if row.row_id else None
            )
            for row in rows
        ],
        clauses=clauses,
        columns=fields,
        redistribution=("region",),
        row_id=row_id,
        writers=1,
        rows_before=1,
    )
    return merge_trace(setup)


def many_clauses_trace(count: int = 14, rows: int = 60) -> Trace:
    """Build a merge with many clauses, long conditions and many rows over six writers."""
    operations = (Operation.UPDATE, Operation.DELETE)
    clauses = [
        Clause(
            operations[n % 2],
            f"present AND s.address = 'A rather long town name number {n}' AND s.purchases > {n}",
            f"WHEN MATCHED AND s.address = 'A rather long town name number {n}' AND s.purchases > {n} THEN\n    DELETE",
            3 + 2 * n,
            ("t.customer", "s.purchases", "t.address"),
        )
        for n in range(count - 1)
    ]
    clauses.append(
        Clause(
            Operation.INSERT,
            "present IS NULL",
            "WHEN NOT MATCHED THEN INSERT VALUES (s.customer, 1, 'x')",
            40,
        )
    )
    joined = []
    for n in range(rows):
        name, case = f"customer {n:03d}", n % (count + 1) - 1
        insert = case == count - 1
        old = None if insert else (name, n, f"town {n % 7}")
        new = (
            (name, n + 1, f"town {n % 5}")
            if case >= 0 and clauses[case].operation is not Operation.DELETE
            else None
        )
        place = (n % 6, (n + 1) % 6)
        joined.append(
            Joined((name, n, f"town {n % 5}"), case, new, old, None if insert else n, place)
        )
    return merge_trace(
        Setup(rows=joined, clauses=clauses, writers=6, rows_before=rows, mark_exchange=True)
    )


def warning_trace() -> Trace:
    """Build a merge in which two acting clauses change one row, so that its balance does not hold."""
    trace = merge_trace()
    notice = NoticeRecord(
        "Two clauses changed one target row: the table now holds two versions of it", 5, 1
    )
    return with_parts(trace, target={"rows_after": 7}, notices=(notice,))


def simple_trace(kind: str, **facts: Any) -> Trace:
    """Build the trace of a statement that is not a merge."""
    trace = Trace(
        statement=f"{kind} accounts",
        kind=kind,
        state="finished",
        target=TargetRecord(
            name="accounts",
            qualified_name="memory.default.accounts",
            connector="memory",
            catalog="memory",
        ),
    )
    return with_parts(trace, **facts)


def insert_trace() -> Trace:
    """Build the trace of an INSERT of five rows."""
    rows = (("customer", "varchar"), ("purchases", "decimal(38,0)"), ("address", "varchar"))
    writes = (("partialrows", "bigint"), ("fragment", "varbinary"))
    plan = (
        node("n4", "Output", "Output", "", (("rows", "bigint"),), ("n3",)),
        node("n3", "TableFinish", "TableCommit", "accounts", (("rows", "bigint"),), ("n2",)),
        node("n2", "TableWriter", "TableWriter", "accounts", writes, ("n1",)),
        node("n1", "Source", "Source", "VALUES", rows, ()),
    )
    counts = {"n1": ((), 5), "n2": ((5,), None)}
    methods = ((None, "begin_insert"), (0, "create_page_sink"), (0, "append_page"))
    methods = (*methods, (0, "finish"), (None, "finish_insert"), (None, "commit"))
    calls = tuple(
        called(n, writer, method, rows=5 if method == "append_page" else None)
        for n, (writer, method) in enumerate(methods, 1)
    )
    writer = WriterRecord(0, {1: 5}, 1, 1, 80, 5)
    statement = "INSERT INTO accounts VALUES ('Aaron', 5, 'Antioch')"
    return simple_trace(
        "INSERT",
        statement=statement,
        plan=plan,
        rows=counts,
        count=5,
        target={"rows_before": 0, "rows_after": 5},
        writers=(writer,),
        calls=calls,
    )


def insert_only_trace() -> Trace:
    """Build a merge without a clause for matched rows, in which nothing matches."""
    rows = [row for row in ROWS if row.target is None and row.case >= 0]
    rows = [replace(row, case=0) for row in rows]
    return merge_trace(Setup(rows=rows, clauses=CLAUSES[3:]))


def nothing_fired_trace() -> Trace:
    """Build a merge with a matched row that no clause takes."""
    row = Joined(("Aaron", 6, "Arches"), -1, None, ("Aaron", 5, "Antioch"), 0)
    return merge_trace(Setup(rows=(row,)))


EVIL = '<script>alert("1")</script>\'&\u202eabc\u200f\x07'


def hostile_trace() -> Trace:
    """Build a merge whose names, values and texts try to break out of every format."""
    columns = (
        pa.field("customer", pa.string()),
        pa.field('"</td>\\n|{}', pa.string()),
        pa.field("address", pa.string()),
    )
    long = "x" * 100_000
    rows = (
        Joined((EVIL, EVIL, long), 0, (EVIL, EVIL, long), (EVIL, "old", "old"), 0, (0, 0)),
        Joined(("نص", "日本語", "a\nb"), 1, ("نص", "日本語", "a\nb"), writers=(0,)),
    )
    clauses = (
        Clause(
            Operation.UPDATE,
            f"present AND s.x = '{EVIL}'",
            f"WHEN MATCHED AND s.x = '{EVIL}' THEN UPDATE SET x = ']]>'",
            2,
        ),
        Clause(
            Operation.INSERT, "present IS NULL", "WHEN NOT MATCHED THEN INSERT VALUES ('<b>')", 3
        ),
    )
    names = {"statement_target": '"<img src=x>"', "source": '"</svg><script>"'}
    statement = f'MERGE INTO "<img src=x>" -- {EVIL}\n</pre></div>'
    return merge_trace(
        Setup(
            rows=rows,
            clauses=clauses,
            columns=columns,
            rows_before=1,
            writers=1,
            statement=statement,
            **names,
        )
    )


def pruned_trace() -> Trace:
    """Build a merge whose plan drops target rows that no source row can match, and whose source is a query."""
    trace = merge_trace()
    records = []
    for record in trace.plan:
        if record.id == "n2":
            semi = node(
                "n21",
                "SemiJoin",
                "SemiJoin",
                "t.customer = s.customer",
                record.layout[:-1],
                ("n1",),
            )
            records += [replace(record, sources=("n21",)), semi]
        elif record.id == "n20":
            text = "SELECT customer, sum(purchases) AS purchases, max(address) AS address FROM updates GROUP BY customer"
            records.append(node("n20", "Source", "Source", text, record.layout, ()))
        else:
            records.append(record)
    counts = {**trace.rows, "n21": ((5,), 4), "n2": ((4,), 4), "n3": ((4,), 4), "n4": ((4, 7), 7)}
    return replace(trace, plan=tuple(records), rows=counts)


def update_trace() -> Trace:
    """Build an UPDATE: a processor over the filtered scan, with an exchange and no WHEN clauses."""
    scan = (("customer", "varchar"), ("address", "varchar"), ("row_id", "bigint"))
    after = (*scan[:2], ("operation", "tinyint"), scan[2], ("insert_from_update", "tinyint"))
    plan = (
        node("n6", "Output", "Output", "", (("rows", "bigint"),), ("n5",)),
        node("n5", "TableFinish", "TableCommit", "accounts", (("rows", "bigint"),), ("n4",)),
        node("n4", "MergeWriter", "MergeWriter", "accounts", (("fragment", "varbinary"),), ("n3",)),
        node(
            "n3",
            "Exchange",
            "Exchange",
            "insert = hash(address)",
            after,
            ("n2",),
            ExchangeFacts("hash(address)", "", "hash", ""),
        ),
        node(
            "n2",
            "MergeProcessor",
            "MergeProcessor",
            DELETE_AND_INSERT,
            after,
            ("n1",),
            ProcessorFacts(DELETE_AND_INSERT, ("address",)),
        ),
        node("n1", "TableScan", "TableScan", "accounts", scan, (), ScanFacts(True, "accounts")),
    )
    counts = {"n1": ((), 2), "n2": ((2,), 4), "n3": ((4,), 4), "n4": ((4,), None)}
    writer = WriterRecord(0, {1: 2, 2: 2}, 1, 1, 80, 2)
    return simple_trace(
        "UPDATE",
        plan=plan,
        rows=counts,
        count=2,
        settings={"paradigm": DELETE_AND_INSERT},
        writers=(writer,),
    )


def by_split(number: int, method: str, *rest: Any) -> Call:
    """Build a call of a page source."""
    return called(0, number, method, *rest, worker="split")


def updatable_trace(
    sql: str = "UPDATE accounts SET address = upper(address), purchases = 0 WHERE purchases > 3",
) -> Trace:
    """Build the trace of a statement in the older flow: two splits, the second one without a row to change."""
    analysis: Any = meaning(sql)
    plan = describe(plan_updatable(analysis, ColumnHandle("$row_id", BIGINT)))
    kind, verb = plan[2].name.upper(), plan[2].name.lower()
    update = kind == "UPDATE"
    old = [("Aaron", 5, "Antioch"), ("Bill", 7, "Buena")]
    new = (
        [(name, 0, address.upper()) for name, _, address in old]
        if update
        else [(None, None, None)] * 2
    )
    fields = [
        pa.field("customer", pa.string()),
        pa.field("purchases", pa.decimal128(38, 0)),
        pa.field("address", pa.string()),
    ]
    columns = [pa.array([row[i] for row in new], field.type) for i, field in enumerate(fields)]
    operation = Operation.UPDATE if update else Operation.DELETE
    control = [
        pa.array([int(operation)] * 2, pa.int8()),
        pa.array([0, 1]),
        pa.array([0, 0], pa.int8()),
    ]
    names = [*(field.name for field in fields), "operation", "row_id", "insert_from_update"]
    after = pa.RecordBatch.from_arrays([*columns, *control], names=names)
    target = pa.array([dict(zip(names, row, strict=False)) for row in old], pa.struct(fields))
    witness = pa.RecordBatch.from_arrays(
        [pa.nulls(2, pa.int64()), target], names=["source_row", "target"]
    )
    given = (
        by_split(0, "update_rows", "U 2, channels [2, 1, 0]", "", 2, 96)
        if update
        else by_split(0, "delete_rows", "D 2", "", 2, 16)
    )
    calls = [
        Call(0, "coordinator", f"get_{verb}_row_id_column_handle", gave="$row_id bigint"),
        Call(0, "coordinator", f"begin_{verb}", "purchases, address" if update else ""),
        Call(0, "coordinator", "get_splits", gave="2 splits"),
        *(
            by_split(0, *call)
            for call in (("create_page_source",), ("get_next_page", "", "", 3, 120))
        ),
        given,
        *(
            by_split(0, *call)
            for call in (("get_next_page", "", "end"), ("finish", "", "1 fragment", None, 300))
        ),
        *(
            by_split(1, *call)
            for call in (("create_page_source",), ("get_next_page", "", "", 1, 40))
        ),
        *(by_split(1, *call) for call in (("get_next_page", "", "end"), ("finish",))),
        Call(0, "coordinator", f"finish_{verb}", "1 fragment"),
        Call(0, "coordinator", "commit"),
    ]
    back = [
        ("row_id", pa.array([0, 1])),
        *([("address", columns[2]), ("purchases", columns[1])] if update else []),
    ]
    stored = (
        StoredSample(
            0,
            pa.RecordBatch.from_arrays(
                [array for _, array in back], names=[name for name, _ in back]
            ),
            2,
        ),
    )
    rows: dict[str, Any] = {record.id: ((2,), 2) for record in plan}
    rows |= {record.id: ((4,), 2) for record in plan if record.kind == "Filter"}
    rows |= {record.id: ((), 4) for record in plan if not record.sources}
    writers = (WriterRecord(0, {int(operation): 2}, 1, 1, 300, 2), WriterRecord(1, {}, 0, 0, 0, 0))
    return simple_trace(
        kind,
        statement=sql,
        settings={"flow": "updatable"},
        plan=plan,
        rows=rows,
        count=2,
        join={"rows": 2},
        target={"rows_before": 4, "rows_after": 4 if update else 2},
        clauses=(ClauseRecord(0, operation, True, sql, 1, 2),),
        samples={
            "pages": PageSample(
                after,
                after,
                (1, 1),
                (0, 0),
                witness,
                2,
                2,
                complete=True,
                layout=PageLayout(3),
                transformed=False,
            ),
            "stored_pages": stored,
        },
        writers=writers,
        calls=tuple(replace(call, order=number) for number, call in enumerate(calls, 1)),
    )
