"""An audit from arguments to result: run the statement, compare, and find known differences that
explain the differing rows.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowmerge_nb.base.arguments import checked
from rowmerge_nb.base.choices import Flow, RepeatedMatches, TraceLevel
from rowmerge_nb.base.errors import ParseError, RowMergeError
from rowmerge_nb.base.names import did_you_mean
from rowmerge_nb.base.words import join
from rowmerge_nb.engine.reruns.audit.audited_tables import (
    Audited,
    Point,
    columns_in,
    given_state,
    state_of,
    version_in_words,
)
from rowmerge_nb.engine.reruns.audit.evidence import Evidence, key_of
from rowmerge_nb.engine.reruns.audit.statement_readings import Variant, momentary, variants_of
from rowmerge_nb.engine.spark.frames import is_frame
from rowmerge_nb.sql.tree import statements as t
from rowmerge_nb.sql.tree import syntax as s
from rowmerge_nb.trace.audit import Audit, AuditCounts, Cause, Explanation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rowmerge_nb.engine.api.statement_options import Options
    from rowmerge_nb.engine.catalog.engine_catalogs import TableName
    from rowmerge_nb.engine.reruns.audit.connector import TableState
    from rowmerge_nb.engine.sessions.runner import StatementRunner
    from rowmerge_nb.engine.tasks.bags import Bag
    from rowmerge_nb.trace.audit import AuditedRow
    from rowmerge_nb.trace.trace import Trace

MOST_ROWS: Final = 100
"""The default number of listed rows."""
_VERSION: Final = (
    "a version's number, a snapshot's id, the name of a tag or a branch, a date or datetime, or a"
    " DataFrame"
)
REFUSED: Final = {
    "dry_run": "an audit evaluates the statement",
    "era": "pages of an audit have one form",
    "fault": "an audit does not call the connector's sinks",
    "flow": "an audit evaluates by the machinery of MERGE",
    "near": "an audit itself searches for explanations of the rows that differ",
    "paradigm": "nothing is stored",
    "rehearse": "an audit is a rehearsal anyway",
    "trace": "an audit keeps the rows that differ",
    "verify": "the table is compared with what another engine has committed",
    "duplicates": "repeated matches do not end an audit; they are reported",
}
"""Statement options that an audit rejects, and the reasons."""


@dataclass(frozen=True)
class Request:
    """The arguments of `rowmerge_nb.engine.engine.Engine.audit`."""

    statement: str
    table: str | None
    before: Any
    after: Any = None
    source: Any = None
    by: Any = None
    rows: int = MOST_ROWS


def audit(
    runner: StatementRunner, request: Request, options: Options, arguments: Mapping[str, Any]
) -> Audit:
    _check_options(arguments)
    tree = _parsed(request.statement, options)
    name = _target(runner, tree, request.table)
    before, after = _states(runner, name, request, options)
    sources = _sources(runner, tree, request.source)
    run = replace(
        options,
        rehearse=True,
        duplicates=RepeatedMatches.NONE,
        flow=Flow.MERGE,
        trace=TraceLevel.AUTO,
        near=0,
    )
    run = replace(run, verify=None, paradigm=None, dry_run=False)
    tables = Audited(runner, name, before, after, sources, run)
    by = _columns(request.by, tables.names)
    return _Audit(tables, tree, request, ".".join(name), by).result(sources)


class _Audit:
    def __init__(
        self,
        tables: Audited,
        tree: t.Merge | t.Update | t.Delete,
        request: Request,
        name: str,
        by: tuple[str, ...] | None,
    ) -> None:
        self.tables, self.tree, self.request, self.name, self.by = tables, tree, request, name, by
        self.seconds: dict[str, float] = {}

    def result(self, sources: Mapping[tuple[str, ...], Any]) -> Audit:
        with self._timed("evaluate"):
            expected, result = self.tables.run(self.tree.text)
        if unknown := [name for name in sources if name and name not in self.tables.asked]:
            raise RowMergeError.invalid(
                f"The statement does not read table '{'.'.join(unknown[0])}', for"
                " which a state is given",
                hint="Give states of the tables that the statement names.",
            )
        with self._timed("compare"):
            before, after, committed = self.tables.committed()
        wrong = expected - committed
        trace = result.trace
        counts = AuditCounts(
            before,
            after,
            committed.less.total,
            committed.more.total,
            expected.less.total,
            expected.more.total,
            wrong.more.total,
            wrong.less.total,
        )
        outcome = Audit(
            statement=self.tree.text,
            kind=trace.kind,
            table=self.name,
            before=version_in_words(self.request.before),
            after=version_in_words(self.request.after),
            counts=counts,
            clauses=tuple(clause for clause in trace.clauses if clause.number >= 0),
            columns=tuple((name, str(sql_type)) for name, sql_type in self.tables.columns),
            repeated=tuple(
                p for p in trace.join.multiple_matches or () if p.repeated or p.acting > 1
            ),
            notices=tuple(dict.fromkeys(self._notices(trace))),
            seconds=self.seconds,
            target_alias=trace.target.alias,
            source_alias=trace.join.source_alias,
        )
        return self._explained(outcome, trace, wrong, committed) if wrong.size else outcome

    def _notices(self, trace: Trace) -> Iterator[str]:
        yield from self.tables.notices
        yield from (notice.message for notice in trace.notices)
        if names := momentary(self.tree):
            yield (
                f"The statement uses {join(names)}, which an audit evaluates again, so"
                " columns with its value differ."
            )

    def _explained(self, outcome: Audit, trace: Trace, wrong: Bag, committed: Bag) -> Audit:
        with self._timed("find rows"):
            key = self.by or key_of(trace, self.tables.names)
            evidence = Evidence(self.tables, self.tree, trace, wrong, key, self.request.rows)
            rows = evidence.rows()
        explanations = list(_by_rows(rows))
        with self._timed("explain"):
            explained, rows = self._variants(rows, wrong, committed, evidence)
        listed_rows = sum(len(row.missing) + len(row.unexpected) for row in rows)
        return replace(
            outcome, rows=tuple(rows), told=listed_rows, explanations=(*explanations, *explained)
        )

    def _variants(
        self, rows: list[AuditedRow], wrong: Bag, committed: Bag, evidence: Evidence
    ) -> tuple[list[Explanation], list[AuditedRow]]:
        """Run the statement as other engines may read it; a reading explains rows if it fixes some and
        breaks none.
        """
        explained: list[tuple[Explanation, Bag]] = []
        integers = {
            name.lower(): pa.types.is_integer(sql_type.arrow)
            for name, sql_type in self.tables.columns
        }
        for variant in variants_of(self.tree, integers):
            if not evidence.speaks_for(variant.cause, rows):
                continue
            rest, text = self._left(variant, committed)
            if (
                rest is None
                or rest.size >= wrong.size
                or (wrong - rest).size != wrong.size - rest.size
            ):
                continue
            if evidence.is_explained(rows, rest):
                explained.append(
                    (
                        Explanation(
                            variant.cause,
                            variant.sentence,
                            wrong.size - rest.size,
                            wrong.size,
                            text,
                        ),
                        rest,
                    )
                )
            if not rest.size:
                # A reading that explains all rows leaves none for other readings.
                explained = explained[-1:]
                break
        for one, rest in explained:
            rows = evidence.with_cause(rows, rest, one.cause)
        return sorted((one for one, _ in explained), key=lambda one: -one.rows), rows

    def _left(self, variant: Variant, committed: Bag) -> tuple[Bag | None, str]:
        """Return the rows that would still differ, and the statement; None if the reading cannot be
        expressed.
        """
        reading = variant
        if (
            len(variant.changes) > 1
            and variant.cause is not Cause.ORDER
            and not self._can_be_said(variant.statement)
        ):
            changes = [
                part.changes[0] for part in variant.parts if self._can_be_said(part.statement)
            ]
            reading = replace(variant, changes=tuple(changes))
        if not reading.changes:
            return None, ""
        try:
            expected, _ = self.tables.run(reading.statement, trace=TraceLevel.OFF)
        except RowMergeError:
            return None, ""
        return expected - committed, reading.statement

    def _can_be_said(self, sql: str) -> bool:
        try:
            self.tables.run(sql, dry_run=True)
        except RowMergeError:
            return False
        return True

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[step] = time.perf_counter() - started


def _by_rows(rows: Sequence[AuditedRow]) -> Iterator[Explanation]:
    listed_rows = sum(len(row.missing) + len(row.unexpected) for row in rows)
    sentences = {
        Cause.DUPLICATES: (
            "several source rows change one target row, and the table holds the"
            " result of one of them"
        ),
        Cause.TIME_ZONE: "timestamps are shifted by the same number of hours in all columns of a row",
    }
    for cause, sentence in sentences.items():
        explained = [row for row in rows if cause in row.causes]
        if explained:
            remarks = sorted({row.remark for row in explained if row.remark})
            text = f"{sentence}: {join(remarks)}" if remarks else sentence
            yield Explanation(
                cause, text, sum(len(r.missing) + len(r.unexpected) for r in explained), listed_rows
            )


# -- arguments


def _check_options(arguments: Mapping[str, Any]) -> None:
    for name, why in REFUSED.items():
        if arguments.get(name):
            raise RowMergeError.invalid(
                f"An audit has no option '{name}': {why}",
                hint=f"Omit {name}.",
            )


def _parsed(statement: Any, options: Options) -> t.Merge | t.Update | t.Delete:
    from rowmerge_nb.engine.sessions.error_positions import placed_in
    from rowmerge_nb.sql.parser.statement_reader import parse, split_statements

    checked(
        statement,
        "statement",
        lambda text_value: isinstance(text_value, str) and bool(text_value.strip()),
        "the text of a MERGE, UPDATE or DELETE",
    )
    statements = split_statements(statement)
    if len(statements) != 1:
        raise ParseError(
            f"An audit takes one statement; this text has {len(statements)}",
            hint="Audit the statements one at a time, each between two states.",
        )
    text, offset = statements[0]
    with placed_in(statement, text, offset):
        tree = parse(text, dialect=options.dialect)
    if not isinstance(tree, t.Merge | t.Update | t.Delete):
        raise RowMergeError.unsupported(
            "An audit takes a MERGE, UPDATE or DELETE; this is another statement",
            hint="Rows of other statements are compared by result.check_rows(...).",
        )
    if isinstance(tree, t.Merge) and tree.evolution is not None:
        msg = (
            "An audit compares rows that have the same columns before and after; WITH"
            " SCHEMA EVOLUTION may add columns"
        )
        hint = (
            "Remove these words, and pass before=... as rows that already have the"
            " new columns, with NULL in them."
        )
        with placed_in(statement, text, offset):
            raise RowMergeError.unsupported(msg, hint=hint).at(tree.evolution)
    if tree.target.branch is not None:
        branch = tree.target.branch
        with placed_in(statement, text, offset):
            raise RowMergeError.unsupported(
                "An audit compares versions of a table, but the statement changes"
                f" branch '{branch.text}'",
                hint=(
                    f"Remove @ {branch.text}, and name the states: before= with the"
                    f" snapshot id before the statement, after={branch.text!r}."
                ),
            ).at(branch.span)
    return tree


def _target(runner: StatementRunner, tree: t.Merge | t.Update | t.Delete, table: Any) -> TableName:
    target = _full(runner, [part.value for part in tree.target.parts])
    if table is None:
        return target
    checked(
        table,
        "table",
        lambda name: isinstance(name, str) and bool(name),
        "the name of a table, as 'accounts' or 'lake.default.accounts'",
    )
    full_name = runner.catalogs.full_name(table)
    if full_name != target:
        raise RowMergeError.invalid(
            f"The statement changes {'.'.join(target)}, not {'.'.join(full_name)}",
            hint=(
                f"Give '{'.'.join(target)}' as table, or the statement that changes the other one."
            ),
        )
    return target


def _full(runner: StatementRunner, parts: Sequence[str]) -> TableName:
    catalog, schema, table = (*runner.catalogs.default[: 3 - len(parts)], *parts)
    return catalog, schema, table


def _is_point(value: Any) -> bool:
    return (
        isinstance(value, int | str | dt.date) and not isinstance(value, bool) and value != ""
    ) or is_frame(value)


def _states(
    runner: StatementRunner, name: TableName, request: Request, options: Options
) -> tuple[TableState, TableState]:
    checked(request.before, "before", _is_point, _VERSION)
    checked(
        request.after,
        "after",
        lambda value: value is None or _is_point(value),
        f"{_VERSION}, or None for the table as it is",
    )
    checked(
        request.rows,
        "rows",
        lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
        "how many rows are reported, from 1",
    )
    before, after = request.before, request.after
    if not is_frame(before):
        first = state_of(runner, name, before)
        return first, (
            given_state(name, after, columns_in(runner, first, options))
            if is_frame(after)
            else state_of(runner, name, after)
        )
    if is_frame(after):
        first = given_state(name, before)
        return first, given_state(name, after, columns_in(runner, first, options))
    last = state_of(runner, name, after)
    return given_state(name, before, columns_in(runner, last, options)), last


def _sources(
    runner: StatementRunner, tree: t.Merge | t.Update | t.Delete, source: Any
) -> dict[tuple[str, ...], Point | TableState]:
    """Return the user's states of sources by full table names; one for all has the key ``()``."""
    if source is None:
        return {}
    if isinstance(source, Mapping):
        states: dict[tuple[str, ...], Point | TableState] = {}
        for table, point in source.items():
            checked(table, "source", str, "names of tables, each with its state")
            checked(point, f"source[{table!r}]", _is_point, _VERSION)
            name = runner.catalogs.full_name(table)
            states[name] = given_state(name, point) if is_frame(point) else point
        return states
    checked(
        source, "source", _is_point, f"{_VERSION}; or a dictionary of them by the names of tables"
    )
    if not is_frame(source):
        return {(): source}
    relation = tree.source if isinstance(tree, t.Merge) else None
    while isinstance(relation, s.Aliased):
        relation = relation.relation
    if not isinstance(relation, s.Table):
        raise RowMergeError.invalid(
            "Which table of the statement the rows of source are is not clear",
            hint="Give a dictionary: source={'news': rows}.",
        )
    name = _full(runner, [part.value for part in relation.name.parts])
    return {name: given_state(name, source)}


def _columns(by: Any, names: Sequence[str]) -> tuple[str, ...] | None:
    if by is None:
        return None
    requested_names = [by] if isinstance(by, str) else by
    checked(
        requested_names,
        "by",
        lambda them: isinstance(them, list | tuple) and len(them) > 0,
        "the name of a column, or a list of names",
    )
    column_names = {name.lower(): name for name in names}
    for name in requested_names:
        if str(name).lower() not in column_names:
            raise RowMergeError.invalid(
                f"The table has no column '{name}'",
                hint=did_you_mean(str(name), list(names)) or f"There are: {', '.join(names)}.",
            )
    return tuple(column_names[str(name).lower()] for name in requested_names)
