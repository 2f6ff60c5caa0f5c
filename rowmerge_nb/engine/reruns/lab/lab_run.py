"""Running the lab: a table is loaded for each point of the grid, and the statements run on it."""

from __future__ import annotations

import re
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rowmerge_nb.base.arguments import checked, checked_path
from rowmerge_nb.base.errors import ConnectorError, RowMergeError, StatementInterrupted
from rowmerge_nb.base.names import did_you_mean, quoted, quoted_path, quoted_text
from rowmerge_nb.engine.api.statement_options import Options
from rowmerge_nb.engine.reruns.compared_stores import costs_of, target_of
from rowmerge_nb.engine.reruns.lab.grid import GRID, points_of
from rowmerge_nb.engine.reruns.lab.lab_file import LabFile
from rowmerge_nb.engine.reruns.lab.lab_rows import (
    CHANGES,
    MADE_STATEMENT,
    MADE_TABLE,
    LabRows,
    made_rows,
    sampled_rows,
)
from rowmerge_nb.engine.reruns.rerun_checks import existing_table, refuse_options
from rowmerge_nb.engine.reruns.temporary_stores import OpenStore, TemporaryStores
from rowmerge_nb.engine.spark.interrupts import guarded, interruptible
from rowmerge_nb.spi.types import from_arrow
from rowmerge_nb.trace.file_costs import FileCosts
from rowmerge_nb.trace.lab import Lab, LabRun, LabStep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rowmerge_nb.engine.api.result import Result
    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.reruns.running_engine import RunningEngine
    from rowmerge_nb.spi.connector import Connector
    from rowmerge_nb.trace.lab import LabPoint

REFUSED: Final = ("check", "dry_run", "fault", "near", "record", "rehearse", "verify", "why")
"""Options that the lab and evidence do not have."""
MOST_ROWS: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class LabRequest:
    sql: str | None
    grid: Any
    rows: Any
    key: Any
    seconds: Any
    results: Any
    options: Mapping[str, Any]

    def check(self) -> None:
        checked(self.sql, "sql", (str, type(None)), "a statement, or None")
        checked(
            self.rows,
            "rows",
            lambda v: type(v) is int and 1 <= v <= MOST_ROWS,
            f"the number of rows of each table, from 1 to {MOST_ROWS:,}",
        )
        checked(self.key, "key", (str, type(None)), "the name of the column that identifies a row")
        checked(
            self.seconds,
            "seconds",
            lambda v: isinstance(v, int | float) and not isinstance(v, bool) and v > 0,
            "a number of seconds above 0",
        )
        if self.results is not None:
            checked_path(self.results, "results")
        refuse_options("The lab", REFUSED, self.options)
        for name in GRID.keys() & self.options:
            raise RowMergeError.invalid(
                f"The lab has no argument '{name}', but a dimension of this name",
                hint=f"Pass grid={{'{name}': {self.options[name]!r}}}.",
            )
        Options().changed(**self.options)


def run_lab(
    engine: RunningEngine,
    connectors: Mapping[str, Connector],
    request: LabRequest,
    cancel: Callable[[], None],
) -> Lab:
    request.check()
    points = points_of(request.grid)
    deadline = Deadline(time.monotonic(), request.seconds)
    return guarded(partial(_run, engine, connectors, request, points, deadline, cancel))


@dataclass
class Deadline:
    """The budget of a lab.

    Attributes:
        longest: the duration of the longest run per statement so far.
        has_ended_a_statement: whether the budget ended while a statement ran.
    """

    started: float
    seconds: float
    longest: float = 0.0
    has_ended_a_statement: bool = field(default=False, compare=False)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def has_room(self, point: LabPoint) -> bool:
        """Return whether a run fits, as long as the longest one so far."""
        return self.elapsed + self.longest * (1 + point.statements) / 2 < self.seconds

    @contextmanager
    def ending(self, cancel: Callable[[], None]) -> Iterator[None]:
        """Cancel the running statement when the budget ends."""
        finished = threading.Event()

        def end() -> None:
            if finished.wait(max(0.0, self.seconds - self.elapsed)):
                return
            self.has_ended_a_statement = True
            # A statement that begins meanwhile is cancelled too.
            while not finished.wait(0.1):
                cancel()

        thread = threading.Thread(target=end, name="rowmerge_nb-lab", daemon=True)
        thread.start()
        try:
            yield
        finally:
            finished.set()
            thread.join()


class _Results:
    def __init__(
        self, subject: Subject, points: Sequence[LabPoint], path: Path | None, deadline: Deadline
    ) -> None:
        self._subject, self._points, self._path = subject, points, path
        self._deadline = deadline
        rows = subject.rows
        data = {"rows": rows.rows.num_rows, "data": rows.fingerprint}
        self._file = LabFile(path, {"statement": subject.sql, **data})

    @property
    def rest(self) -> list[LabPoint]:
        return [point for point in self._points if point not in self._file.runs]

    def add(self, run: LabRun) -> None:
        self._file.add(run)

    def lab(self) -> Lab:
        runs = tuple(self._file.runs[point] for point in self._points if point in self._file.runs)
        seconds = self._deadline.seconds
        budget_end = f"The budget of {seconds:g} seconds ended after {len(runs)} of {len(self._points)} runs."
        next_step = self._next_step("Pass more seconds, or results='lab.jsonl'")
        return Lab(
            statement=self._subject.sql,
            rows=self._subject.rows.rows.num_rows,
            runs=runs,
            planned=len(self._points),
            seconds=self._deadline.elapsed,
            file="" if self._path is None else str(self._path),
            notices=() if len(runs) == len(self._points) else (f"{budget_end} {next_step}",),
        )

    def interruption(self) -> StatementInterrupted:
        lab = replace(self.lab(), notices=())
        where = f"; they are in '{self._path}'" if self._path is not None else ""
        error = StatementInterrupted(
            f"The lab was interrupted after {len(lab.runs)} of {len(self._points)} runs{where}",
            step="run",
            hint=self._next_step("Pass results='lab.jsonl'"),
        )
        error.changed = False
        error.result = lab
        return error

    def _next_step(self, without_file: str) -> str:
        if self._path is not None:
            return "Call it again with the same results to continue."
        return f"{without_file}, so that a second call continues."


def _run(
    engine: RunningEngine,
    connectors: Mapping[str, Connector],
    request: LabRequest,
    points: Sequence[LabPoint],
    deadline: Deadline,
    cancel: Callable[[], None],
) -> Lab:
    subject = _subject(engine, request)
    path = None if request.results is None else Path(request.results)
    results = _Results(subject, points, path, deadline)
    rest = results.rest
    if not rest:
        return results.lab()
    stores = TemporaryStores(sorted({point.store for point in rest}), connectors)
    try:
        with interruptible("run"), deadline.ending(cancel):
            bench = Bench(engine.with_copies(stores.connectors, {}), stores, subject, request)
            for number, point in enumerate(rest, len(points) - len(rest) + 1):
                bench.report(f"run {number} of {len(points)}: {point}")
                if not deadline.has_room(point):
                    break
                run = bench.run(point)
                deadline.longest = max(deadline.longest, run.seconds * 2 / (1 + point.statements))
                results.add(run)
    except StatementInterrupted as interrupt:
        if not deadline.has_ended_a_statement:
            raise results.interruption() from interrupt
    finally:
        stores.remove()
    return results.lab()


@dataclass(frozen=True)
class Subject:
    sql: str
    target: TableName
    rows: LabRows


def _subject(engine: RunningEngine, request: LabRequest) -> Subject:
    if request.sql is None:
        if request.key is not None:
            raise RowMergeError.invalid(
                "The lab without a statement takes no key",
                hint="Omit key: generated rows are identified by id.",
            )
        return Subject(MADE_STATEMENT, MADE_TABLE, made_rows(request.rows))
    sql = request.sql.strip().removesuffix(";")
    if not re.search(rf"(?i)\b{CHANGES}\b", sql):
        raise RowMergeError.invalid(
            f"The statement does not read {CHANGES}, the rows that the lab changes",
            hint=f"Write MERGE INTO t USING {CHANGES} s ON ..., or WHERE id IN (SELECT id FROM"
            f" {CHANGES}): it has columns and rows of the target.",
        )
    # Names and types are checked against the target itself, whose columns the changes have.
    target = engine.full_name(
        _target_name(sql, request.options.get("dialect") or engine.options.dialect)
    )
    metadata = existing_table(engine, target)
    names = [column.name for column in metadata.columns]
    primary_key = metadata.properties.get("primary_key") or (names[0],)
    key = str(primary_key[0]) if request.key is None else request.key
    if key not in names:
        raise RowMergeError.invalid(
            f"Table '{'.'.join(target)}' has no column '{key}'",
            hint=did_you_mean(key, names) or f"There are: {', '.join(names)}.",
        )
    table = engine.table(quoted_path(target))
    rows = sampled_rows(table, key, request.rows)
    if not rows.rows.num_rows:
        raise RowMergeError.invalid(
            f"Table '{'.'.join(target)}' has no rows with a {key}",
            hint="Insert rows, or call the lab without a statement: it makes rows.",
        )
    options = _with_changes(request.options, rows.rows.slice(0, 1))
    return Subject(sql, target_of(engine, sql, options)[0], rows)


def _target_name(sql: str, dialect: str) -> str:
    from rowmerge_nb.sql.parser.statement_reader import parse
    from rowmerge_nb.sql.tree.statements import Delete, Merge, Update

    statement = parse(sql, dialect=dialect)
    if not isinstance(statement, Merge | Update | Delete):
        raise RowMergeError.unsupported(
            "The lab runs statements that change rows of a table",
            hint="MERGE, UPDATE and DELETE can.",
        )
    branch = statement.target.branch
    if branch is not None:
        raise RowMergeError.unsupported(
            f"The lab runs on copies of a table, which lack its branch '{branch.text}'",
            hint=f"Remove @ {branch.text}.",
        )
    return ".".join(part.value for part in statement.target.parts)


def _with_changes(options: Mapping[str, Any], changes: Any) -> dict[str, Any]:
    frames = {
        name: frame
        for name, frame in (options.get("namespace") or {}).items()
        if name.lower() != CHANGES
    }
    return {**options, "namespace": {**frames, CHANGES: changes}}


class Bench:
    def __init__(
        self, engine: RunningEngine, stores: TemporaryStores, subject: Subject, request: LabRequest
    ) -> None:
        self._engine, self._stores, self._subject = engine, stores, subject
        self._options = {k: v for k, v in request.options.items() if k != "progress"}
        self.report: Callable[[str], object] = request.options.get("progress") or (lambda _: None)
        self._number = 0

    def run(self, point: LabPoint) -> LabRun:
        """Load a table and run the statements; a refusal of the store is part of the run."""
        began = time.monotonic()
        if point.store in self._stores.refusals:
            return LabRun(point=point, refusal=str(self._stores.refusals[point.store]))
        store = self._stores.stores[point.store]
        self._number += 1
        table = f"lab_{self._number}"
        engine = self._engine.apart({self._subject.target: store.table_name(table)})
        loaded: dict[str, Any] = {}
        steps: list[LabStep] = []
        refusal = ""
        try:
            self._load(engine, store, table, point)
            count = FileCosts() if not store.kind.has_files else costs_of(store, table, {}, {})
            if count.full_read is not None:
                loaded = {
                    "loaded_files": count.full_read.files,
                    "loaded_bytes": count.full_read.bytes,
                }
            steps.extend(
                self._step(engine, store, table, point, index) for index in range(point.statements)
            )
        except StatementInterrupted:
            raise
        except RowMergeError as error:
            refusal = f"{error.code}: {error.message}"
        engine.run(f"DROP TABLE IF EXISTS {quoted_path(store.table_name(table))}")
        return LabRun(
            point=point,
            loaded_rows=self._subject.rows.rows.num_rows,
            **loaded,
            steps=tuple(steps),
            refusal=refusal,
            seconds=time.monotonic() - began,
        )

    def _load(self, engine: RunningEngine, store: OpenStore, table: str, point: LabPoint) -> None:
        name = quoted_path(store.table_name(table))
        names = self._subject.rows.rows.column_names
        if self._subject.target == MADE_TABLE and point.partitioned_by in names:
            # Hive has partition columns at the end. Columns of your tables keep their places, which
            # an INSERT without names relies on.
            names.append(names.pop(names.index(point.partitioned_by)))
        schema = self._subject.rows.rows.schema
        columns = ", ".join(
            f"{quoted(name)} {from_arrow(schema.field(name).type)}" for name in names
        )
        properties = table_properties(store, point, self._subject.rows.key)
        with_properties = f" WITH ({', '.join(properties)})" if properties else ""
        engine.run(f"CREATE TABLE {name} ({columns}){with_properties}")
        for rows in self._subject.rows.loads(point):
            engine.run(
                f"INSERT INTO {name} SELECT {', '.join(map(quoted, names))} FROM loaded_rows",
                namespace={"loaded_rows": rows},
            )

    def _step(
        self, engine: RunningEngine, store: OpenStore, table: str, point: LabPoint, index: int
    ) -> LabStep:
        before = store.files(table) if store.kind.has_files else {}
        store.recorder.forget()
        changes = self._subject.rows.changes(point, index)
        began = time.monotonic()
        result = engine.run(self._subject.sql, **_with_changes(self._options, changes))
        seconds = time.monotonic() - began
        costs = costs_of(store, table, before, store.recorder.files)
        compaction_bytes = None
        if point.compact_every and (index + 1) % point.compact_every == 0:
            compaction_bytes, costs = self._compact(engine, store, table, costs)
        return step_of(result, costs, compaction_bytes, seconds)

    def _compact(
        self, engine: RunningEngine, store: OpenStore, table: str, costs: FileCosts
    ) -> tuple[int | None, FileCosts]:
        """Compact a table; return the bytes written, and the costs of a full read."""
        if not store.kind.compaction:
            raise ConnectorError.unsupported(
                f"Store '{store.name}' has no compaction here",
                hint="Use compact_every=0 for it.",
            )
        catalog, schema, name = store.table_name(table)
        before = store.files(table)
        engine.run(
            store.kind.compaction.format(
                table=quoted_path((catalog, schema, name)),
                catalog=catalog,
                schema=schema,
                name=name,
            )
        )
        after = costs_of(store, table, before, {})
        return (
            None if after.written is None else after.written.bytes,
            FileCosts(
                loaded=costs.loaded,
                read=costs.read,
                written=costs.written,
                to_merge=after.to_merge,
                full_read=after.full_read,
            ),
        )


def step_of(
    result: Result, costs: FileCosts, compaction_bytes: int | None, seconds: float
) -> LabStep:
    writer_rows = [rows for w in result.trace.writers if (rows := sum(w.rows.values()))]
    counts = {
        ("files_read", "bytes_read"): costs.read,
        ("files_written", "bytes_written"): costs.written,
        ("full_read_files", "full_read_bytes"): costs.full_read,
        ("files_to_merge", "bytes_to_merge"): costs.to_merge,
    }
    numbers: dict[str, Any] = {
        name: value
        for names, count in counts.items()
        for name, value in zip(
            names, (None, None) if count is None else (count.files, count.bytes), strict=True
        )
    }
    return LabStep(
        rows_changed=result.count or 0,
        **numbers,
        compaction_bytes=compaction_bytes,
        writers=len(writer_rows),
        busiest_writer_rows=max(writer_rows, default=0),
        mean_writer_rows=sum(writer_rows) / len(writer_rows) if writer_rows else 0.0,
        seconds=seconds,
    )


def table_properties(store: OpenStore, point: LabPoint, key: str) -> list[str]:
    """Return the properties of a point's table, as SQL.

    Raises:
        ConnectorError: NOT_SUPPORTED if the store has no partitions or buckets.
    """
    accepted = store.connector.get_table_properties()
    properties = [f"{name} = {value}" for name, value in store.kind.properties.items()]
    if "primary_key" in accepted:
        properties.append(f"primary_key = {_array(key)}")
    has_transforms = "partitioning" in accepted
    if point.partitioned_by and not has_transforms:
        _require(store, accepted, "partitioned_by", "partitions")
        properties.append(f"partitioned_by = {_array(point.partitioned_by)}")
    if point.buckets and not has_transforms:
        _require(store, accepted, "bucketed_by", "buckets")
        properties += [f"bucketed_by = {_array(key)}", f"bucket_count = {point.buckets}"]
    if has_transforms and (point.partitioned_by or point.buckets):
        transforms = [quoted(point.partitioned_by)] if point.partitioned_by else []
        transforms += [f"bucket({quoted(key)}, {point.buckets})"] if point.buckets else []
        properties.append(f"partitioning = {_array(*transforms)}")
    return properties


def _array(*texts: str) -> str:
    return f"ARRAY[{', '.join(map(quoted_text, texts))}]"


def _require(store: OpenStore, accepted: Mapping[str, str], name: str, what: str) -> None:
    if name not in accepted:
        raise ConnectorError.unsupported(
            f"Store '{store.name}' has no {what}",
            hint=f"Remove {what} from the grid, or remove the store.",
        )
