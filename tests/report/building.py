"""Builds the synthetic trace of a MERGE: pages, plan, counts and calls from joined rows, exactly as in the contracts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from rowmerge_nb.spi.operations import Era, Operation
from rowmerge_nb.spi.page import PageLayout
from rowmerge_nb.spi.types import from_arrow
from rowmerge_nb.trace.clause_record import ClauseRecord
from rowmerge_nb.trace.contract_calls import Call, WriterRecord
from rowmerge_nb.trace.join_record import JoinRecord
from rowmerge_nb.trace.node_records import (
    BranchRecord,
    ExchangeFacts,
    JoinFacts,
    JoinType,
    MarkDistinctFacts,
    NodeFacts,
    NodeRecord,
    ProcessorFacts,
    ProjectFacts,
    ScanFacts,
)
from rowmerge_nb.trace.page_samples import PageSample, Placement, StoredSample
from rowmerge_nb.trace.row_samples import RowSamples
from rowmerge_nb.trace.run_settings import RunSettings
from rowmerge_nb.trace.target_record import TargetRecord
from rowmerge_nb.trace.trace import Trace
from tests.trace.parts import with_parts

JOIN = JoinFacts("AUTOMATIC", replicate_target=False, type=JoinType.RIGHT)
CASE_NUMBER, PRESENT = ProjectFacts(("case_number",)), ProjectFacts(("present",))
ROOT = Path(__file__).parents[2]
DELETE_AND_INSERT = "DELETE_ROW_AND_INSERT_ROW"
ONLY_CHANGED = "CHANGE_ONLY_UPDATED_COLUMNS"

STATEMENT = """\
MERGE INTO accounts t USING monthly_accounts_update s
  ON (t.customer = s.customer)
WHEN MATCHED AND s.address = 'Berkeley' THEN
  DELETE
WHEN MATCHED AND s.customer = 'Joe Shmoe' THEN
  UPDATE SET purchases = t.purchases + 100.0
WHEN MATCHED THEN
  UPDATE SET purchases = s.purchases + t.purchases, address = s.address
WHEN NOT MATCHED AND s.purchases > 0 THEN
  INSERT (customer, purchases, address)
  VALUES (s.customer, s.purchases, s.address)"""

ACCOUNTS = (
    pa.field("customer", pa.string()),
    pa.field("purchases", pa.decimal128(38, 0)),
    pa.field("address", pa.string()),
)


@dataclass(frozen=True)
class Clause:
    """A WHEN clause of a synthetic statement."""

    operation: Operation
    condition: str
    text: str
    line: int = 1
    values: tuple[str, ...] = ()
    assigned: tuple[str, ...] = ()

    @property
    def matched(self) -> bool:
        return self.operation is not Operation.INSERT


CLAUSES = (
    Clause(
        Operation.DELETE,
        "present AND s.address = 'Berkeley'",
        "WHEN MATCHED AND s.address = 'Berkeley' THEN\n  DELETE",
        3,
        ("NULL", "NULL", "t.address"),
    ),
    Clause(
        Operation.UPDATE,
        "present AND s.customer = 'Joe Shmoe'",
        "WHEN MATCHED AND s.customer = 'Joe Shmoe' THEN\n  UPDATE SET purchases = t.purchases + 100.0",
        5,
        ("t.customer", "t.purchases + 100.0", "t.address"),
        ("purchases",),
    ),
    Clause(
        Operation.UPDATE,
        "present",
        "WHEN MATCHED THEN\n  UPDATE SET purchases = s.purchases + t.purchases, address = s.address",
        7,
        ("t.customer", "s.purchases + t.purchases", "s.address"),
        ("purchases", "address"),
    ),
    Clause(
        Operation.INSERT,
        "present IS NULL AND s.purchases > 0",
        "WHEN NOT MATCHED AND s.purchases > 0 THEN\n  INSERT (customer, purchases, address)\n"
        "  VALUES (s.customer, s.purchases, s.address)",
        9,
        ("s.customer", "s.purchases", "s.address"),
        ("customer", "purchases", "address"),
    ),
)


@dataclass(frozen=True)
class Joined:
    """One joined row with the outcome of its clause."""

    source: tuple[Any, ...]
    case: int
    new: tuple[Any, ...] | None = None
    target: tuple[Any, ...] | None = None
    row_id: Any = None
    writers: tuple[int, ...] = (0, 0)


ROWS = (
    Joined(("Aaron", 6, "Arches"), 2, ("Aaron", 11, "Arches"), ("Aaron", 5, "Antioch"), 0, (0, 1)),
    Joined(("Bill", 9, "Berkeley"), 0, None, ("Bill", 7, "Buena"), 1, (0,)),
    Joined(
        ("Carol", 9, "Centreville"),
        2,
        ("Carol", 12, "Centreville"),
        ("Carol", 3, "Cambridge"),
        2,
        (0, 1),
    ),
    Joined(("Ed", 7, "Etherville"), 3, ("Ed", 7, "Etherville"), writers=(1,)),
    Joined(("Fay", None, "Falmouth"), -1),
    Joined(("Gus", 2, "Gilroy"), 3, ("Gus", 2, "Gilroy"), writers=(0,)),
    Joined(
        ("Joe Shmoe", 4, "Jamestown"),
        1,
        ("Joe Shmoe", 112, "Jamestown"),
        ("Joe Shmoe", 12, "Jamestown"),
        4,
        (1, 0),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The parts of a synthetic merge."""

    rows: Sequence[Joined] = ROWS
    clauses: Sequence[Clause] = CLAUSES
    columns: Sequence[pa.Field] = ACCOUNTS
    redistribution: Sequence[str] = ("address",)
    row_id: pa.DataType = field(default_factory=pa.int64)
    paradigm: str = DELETE_AND_INSERT
    era: str = "documents"
    statement: str = STATEMENT
    rows_before: int | None = 5
    writers: int = 2
    mark_exchange: bool = False
    witness: bool = True
    statement_target: str = "accounts"
    source: str = "monthly_accounts_update"
    source_columns: Sequence[pa.Field] | None = None

    def operation(self, row: Joined) -> Operation:
        return self.clauses[row.case].operation if row.case >= 0 else Operation.NONE


def merge_trace(setup: Setup | None = None, **changes: Any) -> Trace:
    """Build the trace of a finished MERGE; keyword arguments replace fields of the trace."""
    setup = setup or Setup()
    pages = page_sample(setup)
    counts = {
        number: sum(row.case == number for row in setup.rows)
        for number in range(-1, len(setup.clauses))
    }
    writers = writer_records(setup, pages)
    inserts = sum(row["operation"] in (1, 4) for row in pages.after.to_pylist())
    deletes = sum(row["operation"] in (2, 5) for row in pages.after.to_pylist())
    after = None if setup.rows_before is None else setup.rows_before + inserts - deletes
    matched = sum(row.target is not None for row in setup.rows)
    trace = Trace(
        statement=setup.statement,
        kind="MERGE",
        state="finished",
        target=TargetRecord(
            name=setup.statement_target,
            alias="t",
            qualified_name=f"memory.default.{setup.statement_target}",
            connector="memory",
            catalog="memory",
            rows_before=setup.rows_before,
            rows_after=after,
        ),
        settings=RunSettings(paradigm=setup.paradigm, era=setup.era),
        plan=plan_records(setup),
        rows=row_counts(setup, pages),
        clauses=clause_records(setup, counts),
        join=JoinRecord(
            source_alias="s",
            rows=len(setup.rows),
            matched_rows=matched,
            unmatched_rows=len(setup.rows) - matched,
            source_rows=len(setup.rows),
        ),
        count=sum(writer.counted for writer in writers),
        samples=RowSamples(pages=pages, stored_pages=stored_samples(setup, pages)),
        writers=writers,
        calls=merge_calls(setup, writers),
        seconds={"analysis": 0.012, "planning": 0.007, "execution": 0.291, "total": 0.310},
    )
    return with_parts(trace, **changes)


def page_sample(setup: Setup) -> PageSample:
    """Build the pages before and after ``transform_page`` from the joined rows."""
    before, after, produced, writers, witness = [], [], [], [], []
    for number, row in enumerate(setup.rows):
        before.append(_before_row(setup, row))
        halves = _halves(setup, row, before[-1])
        after += halves
        produced.append(len(halves))
        writers += list(row.writers[: len(halves)]) or []
        witness.append([row.source, row.target, number])
    return PageSample(
        before=_batch(before, before_schema(setup)),
        after=_batch(after, after_schema(setup)),
        produced=tuple(produced),
        writers=tuple(writers),
        witness=_witness(setup, witness) if setup.witness else None,
        total_before=len(before),
        total_after=len(after),
        complete=True,
        layout=layout(setup),
        placement=Placement(setup.writers, tuple(_numbers(after, writers, setup.writers)))
        if setup.redistribution
        else None,
    )


def _numbers(after: Sequence[Sequence[Any]], chosen: Sequence[int], writers: int) -> Iterator[int]:
    """Build the numbers by which rows find their writers."""
    for row, writer in zip(after, chosen, strict=True):
        number = 1_000_003 * sum(map(ord, str(row[2]))) ** 4 % 2**62
        yield number - number % writers + writer


def layout(setup: Setup) -> PageLayout:
    """The positions of the channels of the pages."""
    return PageLayout(len(setup.columns), tuple(_places(setup)), Era(setup.era))


def before_schema(setup: Setup) -> pa.Schema:
    """Channels before ``transform_page``."""
    control = [("present", pa.bool_()), ("operation", pa.int8()), ("case_number", pa.int32())]
    merge_row = pa.struct([*setup.columns, *(pa.field(name, kind) for name, kind in control)])
    places = [column for column in setup.columns if column.name in setup.redistribution]
    hashed = [pa.field("hash", pa.int64())] if places and setup.era == "documents" else []
    rest = [
        ("row_id", setup.row_id),
        ("merge_row", merge_row),
        ("case_number", pa.int32()),
        ("is_distinct", pa.int8()),
    ]
    return pa.schema([*places, *hashed, *(pa.field(name, kind) for name, kind in rest)])


def after_schema(setup: Setup) -> pa.Schema:
    """Channels after ``transform_page``."""
    number = [pa.field("case_number", pa.int32())] if setup.era == "current" else []
    rest = [pa.field("row_id", setup.row_id), pa.field("insert_from_update", pa.int8())]
    return pa.schema([*setup.columns, pa.field("operation", pa.int8()), *number, *rest])


def _places(setup: Setup) -> list[int]:
    return [
        index for index, column in enumerate(setup.columns) if column.name in setup.redistribution
    ]


def _before_row(setup: Setup, row: Joined) -> list[Any]:
    places = _places(setup)
    old = [row.target[index] if row.target else None for index in places]
    operation = setup.operation(row)
    data: list[Any] = list(row.new) if row.new is not None else [None] * len(setup.columns)
    if row.new is None and row.target is not None:
        for index in places:
            data[index] = row.target[index]
    merge_row: Any = (*data, row.target is not None, int(operation), row.case)
    if setup.era == "current" and operation is Operation.NONE:
        merge_row = None
    number = 1_000_003 * (sum(map(ord, str(old[0]))) if places and old[0] else 1) ** 4
    hashed = [number] if places and setup.era == "documents" else []
    return [*old, *hashed, row.row_id, merge_row, row.case, 1]


def _halves(setup: Setup, row: Joined, before: list[Any]) -> list[list[Any]]:
    operation = setup.operation(row)
    number = [row.case if setup.paradigm == ONLY_CHANGED else 0] if setup.era == "current" else []
    kept = [
        row.target[i] if row.target and i in _places(setup) else None
        for i in range(len(setup.columns))
    ]
    new = list(row.new) if row.new is not None else kept
    current = setup.era == "current"
    if operation is Operation.NONE:
        return []
    if operation is Operation.INSERT:
        return [[*new, 1, *number, None, 0]]
    if operation is Operation.DELETE:
        return [[*kept, 2, *number, row.row_id, 0]]
    if setup.paradigm == ONLY_CHANGED:
        return [[*new, 3, *number, row.row_id, 0]]
    return [
        [*kept, 5 if current else 2, *number, row.row_id, 0],
        [*new, 4 if current else 1, *number, None, 1],
    ]


def _batch(rows: list[list[Any]], schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch(
        [_array([row[i] for row in rows], column.type) for i, column in enumerate(schema)],
        schema=schema,
    )


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Build a channel; structs from tuples, since two of their fields may have one name."""
    if not pa.types.is_struct(kind) or any(isinstance(value, dict) for value in values):
        return pa.array(values, kind)
    fields = list(kind)
    parts = [
        _array([None if value is None else value[i] for value in values], part.type)
        for i, part in enumerate(fields)
    ]
    return pa.StructArray.from_arrays(
        parts, fields=fields, mask=pa.array([value is None for value in values], pa.bool_())
    )


def _witness(setup: Setup, rows: list[list[Any]]) -> pa.RecordBatch:
    sources = list(setup.source_columns or setup.columns)
    schema = pa.schema(
        [
            ("source", pa.struct(sources)),
            ("target", pa.struct(list(setup.columns))),
            ("source_row", pa.int64()),
        ]
    )
    return _batch(rows, schema)


def writer_records(setup: Setup, pages: PageSample) -> tuple[WriterRecord, ...]:
    """Count the rows of the after page per writer."""
    records = []
    for writer in range(setup.writers):
        rows = [
            row
            for row, place in zip(pages.after.to_pylist(), pages.writers, strict=True)
            if place == writer
        ]
        if not rows:
            continue
        counts: dict[int, int] = {}
        for row in rows:
            counts[row["operation"]] = counts.get(row["operation"], 0) + 1
        counted = len(rows) - sum(row["insert_from_update"] for row in rows)
        records.append(WriterRecord(writer, counts, 1, 1, 96, counted))
    return tuple(records)


def stored_samples(setup: Setup, pages: PageSample) -> tuple[StoredSample, ...]:
    """Extract the sinks' pages from the after page."""
    samples = []
    for writer in range(setup.writers):
        keep = pa.array([place == writer for place in pages.writers], pa.bool_())
        page = pages.after.filter(keep)
        if page.num_rows:
            stored = layout(setup).stored_page(page)
            samples.append(StoredSample(writer, stored, page.num_rows, layout(setup)))
    return tuple(samples)


def clause_records(setup: Setup, counts: Mapping[int, int] | None) -> tuple[ClauseRecord, ...]:
    """Build the clause records; without counts, like in EXPLAIN."""
    records = [
        ClauseRecord(
            number,
            clause.operation,
            clause.matched,
            clause.text,
            clause.line,
            counts[number] if counts else None,
            head=head_of(clause),
        )
        for number, clause in enumerate(setup.clauses)
    ]
    return (*records, ClauseRecord(-1, Operation.NONE, None, "", 0, counts[-1] if counts else None))


def head_of(clause: Clause) -> str:
    """Return a clause up to its operation."""
    before, then, after = clause.text.partition("THEN")
    return f"{before}{then} {after.split()[0]}"


def called(
    order: int, number: int | None, method: str, *rest: Any, worker: str = "writer", **facts: Any
) -> Call:
    """Build a call of the coordinator, or of the worker with a number."""
    return Call(
        order, "coordinator" if number is None else worker, method, *rest, number=number, **facts
    )


def merge_calls(setup: Setup, writers: Sequence[WriterRecord]) -> tuple[Call, ...]:
    """List the calls of a finished merge in the log's order."""
    calls: list[tuple[int | None, str, str, str, int | None, int | None]] = [
        (
            None,
            "get_merge_row_id_column_handle",
            "",
            f"row_id {from_arrow(setup.row_id)}",
            None,
            None,
        ),
        (None, "get_row_change_paradigm", "", setup.paradigm, None, None),
        (
            None,
            "get_insert_layout",
            "",
            "partitioned by address" if setup.redistribution else "none",
            None,
            None,
        ),
        (None, "get_update_layout", "", "none", None, None),
        (None, "begin_merge", setup.statement_target, "", None, None),
    ]
    calls += [(w.writer, "create_merge_sink", "", "", None, None) for w in writers]
    for w in writers:
        given = ", ".join(
            f"{Operation(op).letter} {count}" for op, count in sorted(w.rows.items(), reverse=True)
        )
        calls.append((w.writer, "store_merged_rows", given, "", sum(w.rows.values()), 412))
    calls += [(w.writer, "finish", "", "1 fragment", None, w.fragment_bytes) for w in writers]
    calls.append(
        (
            None,
            "finish_merge",
            f"{len(writers)} fragments",
            "",
            None,
            sum(w.fragment_bytes for w in writers),
        )
    )
    calls.append((None, "commit", "", "", None, None))
    return tuple(
        called(
            order,
            writer,
            method,
            given,
            gave,
            rows,
            size,
            seconds=0.001 * order,
            started=0.02 * order,
        )
        for order, (writer, method, given, gave, rows, size) in enumerate(calls, 1)
    )


def _layout(schema: pa.Schema | Sequence[pa.Field]) -> tuple[tuple[str, str], ...]:
    return tuple((column.name, str(from_arrow(column.type))) for column in schema)


def plan_records(setup: Setup) -> tuple[NodeRecord, ...]:
    """Describe the plan of a merge, the root first."""
    columns = _layout(setup.columns)
    row_id = ("row_id", str(from_arrow(setup.row_id)))
    unique, present = ("unique_id", "bigint"), ("present", "boolean")
    before = _layout(before_schema(setup))
    marked = (*before[:-4], unique, *before[-4:])
    after = _layout(after_schema(setup))
    places = ", ".join(setup.redistribution)
    writes = (("partialrows", "bigint"), ("fragment", "varbinary"))
    target, source = setup.statement_target, setup.source
    nodes = [
        node("n13", "Output", "Output", "", (("rows", "bigint"),), ("n12",)),
        node("n12", "TableFinish", "TableCommit", target, (("rows", "bigint"),), ("n11",)),
        node(
            "n11",
            "MergeWriter",
            "MergeWriter",
            target,
            writes,
            ("n10",) if setup.redistribution else ("n9",),
        ),
    ]
    if setup.redistribution:
        facts = ExchangeFacts(
            f"hash({places})", "ROUND_ROBIN" if setup.era == "current" else "", "hash", ""
        )
        nodes.append(
            node("n10", "Exchange", "Exchange", f"insert = hash({places})", after, ("n9",), facts)
        )
    processor = ProcessorFacts(setup.paradigm, tuple(setup.redistribution))
    nodes += [
        node("n9", "MergeProcessor", "MergeProcessor", setup.paradigm, after, ("n8",), processor),
        node("n8", "DuplicateCheck", "Filter", "is_distinct", marked, ("n7",)),
        node(
            "n7",
            "MarkDistinct",
            "MarkDistinct",
            "(unique_id, case_number)",
            marked,
            ("n6",),
            MarkDistinctFacts(setup.mark_exchange),
        ),
        node(
            "n6",
            "Project",
            "Project",
            "case_number := merge_row.case_number",
            marked[:-1],
            ("n5",),
            CASE_NUMBER,
        ),
        replace(
            node("n5", "Project", "Project", "merge_row := CASE", marked[:-2], ("n4",)),
            branches=case_branches(setup),
        ),
        node(
            "n4",
            "Join",
            "RightJoin",
            "t.customer = s.customer",
            (*columns, row_id, unique, present, *columns),
            ("n3", "n20"),
            JOIN,
        ),
        node(
            "n3",
            "Project",
            "Project",
            "present := true",
            (*columns, row_id, unique, present),
            ("n2",),
            PRESENT,
        ),
        node(
            "n2",
            "AssignUniqueId",
            "AssignUniqueId",
            "unique_id",
            (*columns, row_id, unique),
            ("n1",),
        ),
        node(
            "n1",
            "TableScan",
            "TableScan",
            f"{target} t",
            (*columns, row_id),
            (),
            ScanFacts(True, "t"),
        ),
        node("n20", "TableScan", "TableScan", f"{source} s", columns, (), ScanFacts(False, "s")),
    ]
    return tuple(nodes)


def node(
    identity: str,
    kind: str,
    name: str,
    arguments: str,
    layout: tuple[tuple[str, str], ...],
    sources: tuple[str, ...],
    facts: NodeFacts | None = None,
) -> NodeRecord:
    """Build a node record with the meaning of the plan's class."""
    from rowmerge_nb.plan import plan_nodes as nodes

    meaning = getattr(nodes, kind).meaning
    return NodeRecord(identity, kind, name, arguments, (), layout, sources, meaning, (), facts)


def case_branches(setup: Setup) -> tuple[BranchRecord, ...]:
    """Build the CASE's branches, ELSE last."""
    branches = [
        BranchRecord(
            n,
            c.operation,
            c.matched,
            c.condition,
            c.values or ("NULL",) * len(setup.columns),
            "true" if c.matched else "false",
            assigned=c.assigned,
        )
        for n, c in enumerate(setup.clauses)
    ]
    other = tuple(
        f"t.{c.name}" if c.name in setup.redistribution else "NULL" for c in setup.columns
    )
    return (*branches, BranchRecord(-1, Operation.NONE, None, "ELSE", other, "present IS NOT NULL"))


def row_counts(
    setup: Setup, pages: PageSample
) -> dict[str, tuple[tuple[int | None, ...], int | None]]:
    """Count rows in and out of every node."""
    target, joined, after = setup.rows_before, pages.total_before, pages.total_after
    counts: dict[str, tuple[tuple[int | None, ...], int | None]] = {
        "n1": ((), target),
        "n2": ((target,), target),
        "n3": ((target,), target),
        "n20": ((), joined),
        "n4": ((target, joined), joined),
    }
    counts |= dict.fromkeys(("n5", "n6", "n7", "n8"), ((joined,), joined))
    counts["n9"] = ((joined,), after)
    if setup.redistribution:
        counts["n10"] = ((after,), after)
    counts["n11"] = ((after,), None)
    return counts
